"""PostgreSQL's own cumulative counters, as its statistics views give them, and the waits of users, sampled there.

A backend hands its counts to the views at most once a second, between transactions: a sample may lack the
last second of work of a busy session. Sums over longer intervals are exact.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import psycopg
import pyarrow as pa
from psycopg import sql

from stallmark.collectors.columns import (
    APPLICATION,
    COUNT,
    EPOCH,
    MS,
    SERVER_CLOCK,
    STALLS,
    STATEMENT_READS,
    TEXT,
    TITLE,
    WAITS,
    EndedSessions,
    PolledUsers,
    polled_columns,
    statement_names,
)
from stallmark.collectors.postgres import CollectorConnection, PostgresCollector, missing_privilege_sentence, statement
from stallmark.collectors.sampler import EachDatabase, Row, ServerConnection
from stallmark.engines import sql_file
from stallmark.engines.base import Engine
from stallmark.errors import CallFailed, StallmarkError
from stallmark.record.schema import column
from stallmark.transactions.workload import StatementFacts

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


# The reads of each statement of SQL of a user's own, as the extension pg_stat_statements counts them.
#
# The server names what it counts by a number that it computes from a parsed statement. It tells the number of ours when
# it is asked to explain their texts, so no text is compared.

_EXPLAIN = "EXPLAIN (VERBOSE, GENERIC_PLAN, FORMAT JSON) "
_SCHEMA = "SELECT pronamespace::regnamespace::text FROM pg_proc WHERE proname = 'pg_stat_statements_info'"
_COUNTED = "SELECT count(*) FROM {}.pg_stat_statements_info()"


class StatementReads(PostgresCollector):
    name = "statement_reads"
    title = "Reads of statements"
    help = (
        "Executions and pages of each statement of SQL of a user's own (pg_stat_statements). Those that the server "
        "executes without a plan, such as COMMIT, have no row."
    )
    interval_s = 5.0
    columns = STATEMENT_READS

    def __init__(self, engine: Engine, statements: Mapping[str, Sequence[StatementFacts]]):
        super().__init__(engine)
        self._statements = statement_names(statements)
        self._alike: list[str] = []

    def unavailable(self) -> str | None:
        with self.engine.cursor() as cursor:
            schema = cursor.execute(_SCHEMA).fetchone()
            if schema is None and self.engine.is_local:
                return "The embedded PostgreSQL comes without the extension pg_stat_statements."
            if schema is None:
                return (
                    "The database has no extension pg_stat_statements: put it into shared_preload_libraries, restart "
                    "the server, and run CREATE EXTENSION pg_stat_statements;"
                )
            try:
                cursor.execute(_COUNTED.format(schema[0]))
            except psycopg.Error as error:
                return f"pg_stat_statements counts nothing here ({str(error).strip().splitlines()[0]})."
        identities = self._identities()
        counts = Counter((database, identity) for _, database, identity in identities)
        self._alike = [name for name, database, identity in identities if counts[database, identity] > 1]
        known = [ours for ours in identities if counts[ours[1:]] == 1]
        if not known:
            return "The server tells no identity of these statements: set compute_query_id = on (or auto)."
        text = statement(self.name, self.major)
        assert text
        # The query has no parameters of its own, so that it can be prepared once.
        rows = [sql.SQL("({}, {}, {}::bigint)").format(*map(sql.Literal, ours)).as_string() for ours in known]
        self.sql = text.format(schema=schema[0], statements=", ".join(rows))
        return None

    def limitation(self) -> str | None:
        if not self._alike:
            return None
        return f"The server counts these statements as one, so their reads are not known: {', '.join(self._alike)}."

    def _identities(self) -> list[tuple[str, str, int]]:
        """Return name, database and identity of each statement that the server plans."""
        identities = []
        for workload, facts in self._statements.items():
            engine = self.engine.database_of(workload)
            database = engine.database_name()
            with engine.cursor() as cursor:
                for name, fact in facts.items():
                    if (identity := _identity(cursor, fact.sql)) is not None:
                        identities.append((name, database, identity))
        return identities


def _identity(cursor: psycopg.Cursor[Any], text: str) -> int | None:
    """Return the server's number of a statement, or None if it has none."""
    try:
        cursor.execute((_EXPLAIN + text).encode(), prepare=False)
        row = cursor.fetchone()
    except (psycopg.Error, CallFailed):
        return None
    identity: int | None = row[0][0].get("Query Identifier") if row else None
    return identity


# Waits of the virtual users and the rows they wait for, sampled five times a second.

_UNKNOWN = "unknown"
_HIDDEN = "the sessions of the virtual users are hidden from it"


def wait_class(state: str | None, event_type: str | None, event: str | None) -> tuple[str, str]:
    """Return the class of a session's wait (io, lock, wal, cpu, client, other) and its name, "IO:DataFileRead".

    A session that is not executing waits for its client, whatever it seems to do at that instant. Writing and
    syncing WAL is "wal" and not "io", and so is queueing for it.
    """
    if state is None or state == "starting":
        return "other", "starting"
    if state.startswith("idle"):
        return "client", state
    if event_type is None or event is None:
        return "cpu", "CPU"
    name = f"{event_type}:{event}"
    is_wal = event.upper().startswith("WAL")
    match event_type:
        case "IO" | "LWLock" if is_wal:
            return "wal", name
        case "IO":
            return "io", name
        case "IPC" if event.upper() == "BUFFERIO":  # another session reads the same block
            return "io", name
        case "Lock":
            return "lock", name
        case "Client":
            return "client", name
    return "other", name


class UserWaits(PolledUsers, PostgresCollector):
    name = "waits"
    title = "Waits of the users"
    help = (
        "The activity of each virtual user's session (I/O, lock, WAL, CPU or client), sampled at a random "
        "instant of every fifth of a second and counted per second (pg_stat_activity). Samples / polls is a "
        "mean number of users."
    )
    interval_s = 0.2
    columns = polled_columns(WAITS)

    def unavailable(self) -> str | None:
        return super().unavailable() or self._hidden_users()

    def sample(self, now: float) -> list[Row]:
        sessions = self.connection.rows(self.sql)
        if any(row["hidden"] for row in sessions):
            raise StallmarkError(f"{_HIDDEN}: run GRANT pg_monitor TO its role")
        users: Counter[tuple[str | None, ...]] = Counter()
        for row in sessions:
            users[row["application"], *wait_class(row["state"], row["event_type"], row["event"])] += row["users"]
        return self._polled.add(now, users)

    def _hidden_users(self) -> str | None:
        """Return the reason why the users' sessions are hidden; None if they are seen.

        A role always sees its own sessions, so without pg_read_all_stats only a trial shows it.
        """
        with self.engine.cursor() as cursor:
            if cursor.execute("SELECT pg_has_role('pg_read_all_stats', 'USAGE')").fetchone() == (True,):
                return None
            user = self.engine.session(call_timeout_s=10)
            try:
                rows = cursor.execute(self.sql).fetchall()
            finally:
                user.close()
            hidden = [column.name for column in cursor.description].index("hidden")
            return missing_privilege_sentence(cursor, _HIDDEN) if any(row[hidden] for row in rows) else None


class RowLocks(PolledUsers, PostgresCollector):
    name = "row_locks"
    title = "Waits for rows"
    help = (
        "The number of users waiting for a row that another transaction had changed or locked, by table, sampled at a "
        "random instant of every fifth of a second and counted per second (pg_locks). Samples / polls is a mean number "
        "of users. The table is unknown for waits for a key being inserted or for a newer version of a row. Samples "
        "without a waiting user are a row without a table."
    )
    interval_s = 0.2
    named = ("relation",)
    columns = polled_columns(
        {
            "relation": "the table, with its schema; the database before it where several are under load; null: nobody "
            "waited"
        }
    )

    def __init__(self, engine: Engine):
        super().__init__(engine)
        self._catalogues: ServerConnection = self.connection
        if self.several:
            self._catalogues = EachDatabase(self.databases, CollectorConnection)
        self._tables: dict[tuple[str, int], str] = {}  # keyed by database and number

    def sample(self, now: float) -> list[Row]:
        waiting: Counter[tuple[str | None, ...]] = Counter()
        for row in self._with_tables(self.connection.rows(self.sql)):
            waiting[(row["relation"],)] += row["users"]
        # A sample without a waiting user counts too: the mean is over all samples.
        return self._polled.add(now, waiting or Counter({(None,): 0}))

    def close(self) -> None:
        super().close()
        self._catalogues.close()

    def _with_tables(self, rows: Sequence[Row]) -> Sequence[Row]:
        """Return the rows with the names of their tables; the catalogues are read when one of an unknown is met."""
        met = {(row["database"], row["number"]) for row in rows if row["number"] is not None}
        if not met <= self._tables.keys():
            relations = self._catalogues.rows(sql_file.read(__package__, "row_locks.tables"))
            # A table that was dropped meanwhile stays unknown, and is not looked up again.
            self._tables = dict.fromkeys(met, _UNKNOWN)
            self._tables |= {(table["database"], table["number"]): table["relation"] for table in relations}
        named = [row | {"relation": self._tables.get((row["database"], row["number"]), _UNKNOWN)} for row in rows]
        return self.with_database_names(named)
