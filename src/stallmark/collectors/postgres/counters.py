"""PostgreSQL's own cumulative counters, as its statistics views give them.

A backend hands its counts to the views at most once a second, between transactions: a sample may lack the
last second of work of a busy session. Sums over longer intervals are exact.
"""

import pyarrow as pa

from stallmark.collectors.base import Row
from stallmark.collectors.postgres.collector import PostgresCollector

TEXT, COUNT, MS = pa.string(), pa.int64(), pa.float64()
SERVER_CLOCK = [("server_time", pa.float64()), ("epoch", TEXT)]

FILE_TIMING = {"track_io_timing": "reads and writes"}
WAL_TIMING = {"track_wal_io_timing": "writes and syncs of WAL"}


class ServerIO(PostgresCollector):
    name = "server_io"
    title = "Server I/O"
    help = (
        "Reads, writes, extends and syncs of data, temporary and (from PostgreSQL 18) WAL files with the "
        "time they stalled, per kind of process and context (pg_stat_io). Before 18 a read or write is one "
        "block of 8 KiB; from 18 on it is one I/O of the operating system. Entities that never did anything "
        "are stored in the first sample of an epoch only: elsewhere a missing row is a row of zeros."
    )
    columns = pa.schema(
        [
            *SERVER_CLOCK,
            ("entity", TEXT),  # "client backend/relation/normal"
            ("kind", TEXT),  # data, wal, temp
            ("reads", COUNT),
            ("read_bytes", COUNT),
            ("read_stall_ms", MS),
            ("writes", COUNT),
            ("write_bytes", COUNT),
            ("write_stall_ms", MS),
            ("extends", COUNT),
            ("extend_bytes", COUNT),
            ("extend_stall_ms", MS),
            ("syncs", COUNT),
            ("sync_stall_ms", MS),
            ("hits", COUNT),
            ("evictions", COUNT),
        ]
    )
    _counts = ("reads", "writes", "extends", "syncs", "hits", "evictions")
    _epoch: str | None = None

    def open(self) -> None:
        super().open()
        self._epoch = None

    def timed(self) -> dict[str, str]:
        return FILE_TIMING | (WAL_TIMING if self.major >= 18 else {})

    def sample(self, now: float) -> list[Row]:
        rows = super().sample(now)
        epoch = rows[0]["epoch"]
        if epoch != self._epoch:
            self._epoch = epoch
            return rows
        return [row for row in rows if any(row[count] for count in self._counts)]


class Wal(PostgresCollector):
    name = "wal"
    title = "WAL"
    help = (
        "Records, full-page images and bytes of write-ahead log (pg_stat_wal); its writes and syncs up to "
        "PostgreSQL 17, from 18 on they are in Server I/O."
    )
    columns = pa.schema(
        [
            *SERVER_CLOCK,
            ("records", COUNT),
            ("full_page_images", COUNT),
            ("bytes", COUNT),
            ("buffers_full", COUNT),
            ("writes", COUNT),
            ("syncs", COUNT),
            ("write_ms", MS),
            ("sync_ms", MS),
        ]
    )

    def timed(self) -> dict[str, str]:
        return WAL_TIMING if self.major < 18 else {}


class UserIO(PostgresCollector):
    name = "user_io"
    title = "I/O per virtual user"
    help = "Reads and writes of data and temporary tables by each user's own session (pg_stat_get_backend_io)."
    interval_s = 5.0
    needs = "does not count I/O per session"
    columns = pa.schema(
        [
            ("epoch", TEXT),
            ("pid", pa.int32()),
            ("reads", COUNT),
            ("read_bytes", COUNT),
            ("read_stall_ms", MS),
            ("writes", COUNT),
            ("write_bytes", COUNT),
            ("write_stall_ms", MS),
            ("hits", COUNT),
        ]
    )

    def timed(self) -> dict[str, str]:
        return FILE_TIMING


class Database(PostgresCollector):
    name = "database"
    title = "Databases"
    help = (
        "Commits, rollbacks, deadlocks, blocks and temporary bytes of every database of the server, ours and "
        "others, so that somebody else's I/O is seen (pg_stat_database)."
    )
    columns = pa.schema(
        [
            *SERVER_CLOCK,
            ("database", TEXT),
            ("own", pa.bool_()),
            ("commits", COUNT),
            ("rollbacks", COUNT),
            ("blocks_read", COUNT),
            ("blocks_hit", COUNT),
            ("deadlocks", COUNT),
            ("temp_bytes", COUNT),
        ]
    )


class Checkpoints(PostgresCollector):
    name = "checkpoints"
    title = "Checkpoints"
    help = (
        "Checkpoints by cause, and what they wrote (pg_stat_bgwriter on PostgreSQL 16, pg_stat_checkpointer "
        "later). Timed ones count even when there was nothing to do; `done` counts those that did something, "
        "from 18 on."
    )
    columns = pa.schema(
        [
            *SERVER_CLOCK,
            ("timed", COUNT),
            ("requested", COUNT),
            ("done", COUNT),
            ("write_ms", MS),
            ("sync_ms", MS),
            ("buffers_written", COUNT),
        ]
    )


class Relations(PostgresCollector):
    name = "relations"
    title = "Tables and indexes"
    help = (
        "Blocks read and found in the pool, per table of our database: heap and index, TOAST included "
        "(pg_statio_user_tables). Blocks, not I/Os, and without times."
    )
    interval_s = 5.0
    columns = pa.schema(
        [
            ("epoch", TEXT),
            ("relation", TEXT),
            ("heap_reads", COUNT),
            ("heap_hits", COUNT),
            ("index_reads", COUNT),
            ("index_hits", COUNT),
        ]
    )
