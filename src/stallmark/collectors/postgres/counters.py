"""PostgreSQL's own cumulative counters, as its statistics views give them.

A backend hands its counts to the views at most once a second, between transactions: a sample may lack the
last second of work of a busy session. Sums over longer intervals are exact.
"""

from collections.abc import Sequence

import pyarrow as pa

from stallmark.collectors.base import (
    APPLICATION,
    COUNT,
    EPOCH,
    MS,
    SERVER_CLOCK,
    STALLS,
    TEXT,
    TITLE,
    EndedSessions,
    Row,
)
from stallmark.collectors.postgres.collector import PostgresCollector
from stallmark.engines.base import Engine
from stallmark.record.schema import column

FILE_TIMING = {"track_io_timing": "reads and writes"}
WAL_TIMING = {"track_wal_io_timing": "writes and syncs of WAL"}

_EXTENDS = (
    column("extends", COUNT, "extensions of files so far", "I/Os"),
    column("extend_bytes", COUNT, "bytes that files were extended by"),
)


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
            column("entity", TEXT, '"client backend/relation/normal": process, object and context'),
            column("kind", TEXT, "data, wal or temp"),
            *STALLS,
            *_EXTENDS,
            column("extend_stall_ms", MS, "what these extensions took, summed"),
            column("syncs", COUNT, "syncs so far", "syncs"),
            column("sync_stall_ms", MS, "what these syncs took, summed"),
            column("hits", COUNT, "found in the pool so far", "blocks"),
            column("evictions", COUNT, "evicted from the pool so far", "blocks"),
        ]
    )
    _counts = ("reads", "writes", "extends", "syncs", "hits", "evictions")
    _epoch: str | None = None

    def open(self) -> None:
        super().open()
        self._epoch = None

    def timed(self) -> dict[str, str]:
        return FILE_TIMING | (WAL_TIMING if self.major >= 18 else {})

    def sample(self, now: float) -> Sequence[Row]:
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
            column("records", COUNT, "records of WAL so far", "records"),
            column("full_page_images", COUNT, "full-page images so far", "pages"),
            column("bytes", COUNT, "bytes of WAL so far", "bytes"),
            column("buffers_full", COUNT, "times that WAL was written because its buffers were full", "times"),
            column("writes", COUNT, "writes of WAL so far; null from PostgreSQL 18 on", "I/Os"),
            column("syncs", COUNT, "syncs of WAL so far; null from PostgreSQL 18 on", "syncs"),
            column("write_ms", MS, "what these writes took, summed"),
            column("sync_ms", MS, "what these syncs took, summed"),
        ]
    )

    def timed(self) -> dict[str, str]:
        return WAL_TIMING if self.major < 18 else {}


class LoadIO(PostgresCollector):
    name = "load_io"
    title = TITLE
    help = (
        "Reads and writes of data and temporary tables by the sessions of users and of streams, by load "
        "(pg_stat_get_backend_io). Reads of parallel workers are not included."
    )
    interval_s = 2.0
    needs = "does not count I/O per session"
    columns = pa.schema(
        [EPOCH, *APPLICATION, *STALLS, *_EXTENDS, column("hits", COUNT, "found in the pool so far", "blocks")]
    )

    def __init__(self, engine: Engine):
        super().__init__(engine)
        self._sessions = EndedSessions()

    def timed(self) -> dict[str, str]:
        return FILE_TIMING

    def sample(self, now: float) -> Sequence[Row]:
        return self._sessions.with_session_counts(super().sample(now))


class Database(PostgresCollector):
    name = "database"
    title = "Databases"
    help = (
        "Commits, rollbacks, deadlocks, blocks and temporary bytes of every database of the server, ours and "
        "others, so that foreign I/O is seen (pg_stat_database)."
    )
    columns = pa.schema(
        [
            *SERVER_CLOCK,
            column("database", TEXT, "name of the database"),
            column("own", pa.bool_(), "true: one under load"),
            column("commits", COUNT, "committed so far", "transactions"),
            column("rollbacks", COUNT, "rolled back so far", "transactions"),
            column("blocks_read", COUNT, "read so far", "blocks"),
            column("blocks_hit", COUNT, "found in the pool so far", "blocks"),
            column("deadlocks", COUNT, "deadlocks so far", "deadlocks"),
            column("temp_bytes", COUNT, "size of the temporary files closed so far; passes of a sort write more"),
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
            column("timed", COUNT, "checkpoints by timeout so far", "checkpoints"),
            column("requested", COUNT, "checkpoints by request so far, also by the size of the WAL", "checkpoints"),
            column("done", COUNT, "those that did something; null before PostgreSQL 18", "checkpoints"),
            column("write_ms", MS, "duration of the writing phases, which mostly pause, summed"),
            column("sync_ms", MS, "time of syncing files, summed"),
            column("buffers_written", COUNT, "written by checkpoints so far", "blocks"),
        ]
    )


class Relations(PostgresCollector):
    name = "relations"
    title = "Tables and indexes"
    help = (
        "Blocks read and found in the pool, per table of our databases: heap and index, TOAST included "
        "(pg_statio_user_tables). Blocks, not I/Os, and without times."
    )
    interval_s = 5.0
    of_each_database = True
    named = ("epoch", "relation")
    columns = pa.schema(
        [
            EPOCH,
            column("relation", TEXT, "table, with its schema; the database before it where several are under load"),
            column("heap_reads", COUNT, "of the table read so far, TOAST included", "blocks"),
            column("heap_hits", COUNT, "of the table found in the pool so far", "blocks"),
            column("index_reads", COUNT, "of its indexes read so far", "blocks"),
            column("index_hits", COUNT, "of its indexes found in the pool so far", "blocks"),
        ]
    )
