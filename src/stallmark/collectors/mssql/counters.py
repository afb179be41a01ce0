"""SQL Server's own cumulative counters, and the sizes that go with them, as its management views give them."""

from collections.abc import Sequence
from functools import cache, cached_property

import pyarrow as pa

from stallmark.collectors.columns import (
    APPLICATION,
    COUNT,
    EPOCH,
    MS,
    OF_SEVERAL,
    SERVER_CLOCK,
    SERVER_TIME,
    STALLS,
    TEXT,
    TITLE,
    EndedSessions,
)
from stallmark.collectors.host import CPU_TIMES
from stallmark.collectors.mssql import MssqlCollector, ask, statement, with_databases
from stallmark.collectors.mssql.waits import class_of, is_benign
from stallmark.collectors.sampler import Row, name_of
from stallmark.engines import sql_file
from stallmark.engines.base import Engine
from stallmark.engines.mssql.engine import MssqlEngine
from stallmark.engines.mssql.odbc import one_row
from stallmark.engines.mssql.server import AZURE
from stallmark.record.schema import column
from stallmark.record.writer import Rows


class ServerIO(MssqlCollector):
    name = "server_io"
    title = "Server I/O"
    help = (
        "Reads and writes of every file of every database with the time they stalled, our own and others' "
        "(sys.dm_io_virtual_file_stats). Stalls are whole milliseconds and include waits for a CPU: below one "
        "millisecond an I/O they are not reliable. Queued: the part of the stall that the resource governor added."
    )
    columns = pa.schema(
        [
            *SERVER_CLOCK,
            column("entity", TEXT, '"database/logical name" of the file'),
            column("kind", TEXT, "data or wal (of a database under load), temp or foreign (of another database)"),
            *STALLS,
            column("queued_read_stall_ms", MS, "of the read stall, what the resource governor added"),
            column("queued_write_stall_ms", MS, "of the write stall, what the resource governor added"),
            column("size_bytes", COUNT, "size of the file on disk"),
            column("path", TEXT, "path of the file on the server; null where it is hidden"),
            column("handle", TEXT, "handle of the file, the same as in `pending_io`"),
        ]
    )

    def limits(self) -> str | None:
        hidden = [row for row in self.sample_alone() if row["path"] is None]
        if not hidden:
            return None
        return (
            f"The names of other databases' files ({len(hidden)}) are hidden from this login, their I/O is counted: to "
            "see them it needs VIEW ANY DEFINITION."
        )


class ServerCpu(MssqlCollector):
    name = "server_cpu"
    title = "CPU of the server"
    help = "CPU time of the server's process since it started, of all its threads (sys.dm_os_sys_info)."
    columns = pa.schema([*SERVER_CLOCK, *CPU_TIMES])


@cache
def _kind(wait_type: str) -> tuple[str, bool]:
    return class_of(wait_type), is_benign(wait_type)


_OF_WAIT_TYPE = (
    column("wait_type", TEXT, "the server's name of the wait"),
    column("waits", COUNT, "waits so far", "waits"),
    column("wait_ms", MS, "summed time of the waits, signal included"),
    column("signal_ms", MS, "part of wait_ms: waiting for a CPU after the wait was over"),
    column("max_ms", MS, "longest wait"),
    column("wait_class", TEXT, "class that Stallmark counts it to: io, wal, lock, cpu and so on"),
    column("benign", pa.bool_(), "true: no session is held up by it"),
)


class _WaitTypes(MssqlCollector):
    """The base of collectors whose rows are counts of a wait type: they add its class."""

    def sample(self, now: float) -> Rows:
        rows = self.connection.rows(self.sql)
        of_type = rows.names.index("wait_type")
        named = [(*row, *_kind(row[of_type])) for row in rows.values if row[of_type] is not None]
        return Rows([*rows.names, "wait_class", "benign"], named)


class ServerWaits(_WaitTypes):
    name = "server_waits"
    title = "Waits of the server"
    help = (
        "Number and duration of the waits of all tasks of the server, by wait type (sys.dm_os_wait_stats; on Azure SQL "
        "Database sys.dm_db_wait_stats, our database only). Wait includes signal, the time that a task then waited for "
        "a CPU. Benign waits hold up no work. Types that never occurred are left out."
    )
    interval_s = 10.0
    columns = pa.schema([*SERVER_CLOCK, *_OF_WAIT_TYPE])


class SessionWaits(_WaitTypes):
    name = "session_waits"
    title = "Waits by user"
    help = (
        "The same for each virtual user's session since it was opened (sys.dm_exec_session_wait_stats). "
        "A session that ends takes its counts with it."
    )
    interval_s = 30.0
    on_azure = True
    of_users = True
    columns = pa.schema(
        [
            *SERVER_CLOCK,
            column("session", TEXT, '"57 since 2026-03-01T10:00:00.123": number and login time'),
            *_OF_WAIT_TYPE,
        ]
    )


class LoadIO(MssqlCollector):
    name = "load_io"
    title = TITLE
    help = (
        "Reads and writes by the sessions of users and of streams, by load, as the server counts them for a session "
        "(sys.dm_exec_sessions). A request is counted when it ends."
    )
    interval_s = 2.0
    on_azure = True
    of_users = True
    columns = pa.schema(
        [
            EPOCH,
            *APPLICATION,
            column("reads", COUNT, "physical reads so far", "I/Os"),
            column("writes", COUNT, "writes so far", "I/Os"),
            column("logical_reads", COUNT, "pages asked for so far", "pages"),
        ]
    )

    def __init__(self, engine: Engine):
        super().__init__(engine)
        self._sessions = EndedSessions()

    def sample(self, now: float) -> Sequence[Row]:
        return self._sessions.with_session_counts(super().sample(now))


_NAMED, _PHYSICAL = (
    "DB_NAME()",
    "(SELECT own.physical_database_name FROM sys.databases AS own WHERE own.database_id = DB_ID())",
)
"""Return our database's name in the counters of `Databases`: on Azure SQL that of its files, which is a GUID."""


def name_instance(text: str, engine: MssqlEngine) -> str:
    """Return a query of our database's counters that has the name they have on this server."""
    return text.replace(_NAMED, _PHYSICAL) if engine.edition in AZURE else text


_ANY_COUNTER = "SELECT COUNT(*) FROM sys.dm_os_performance_counters"


class Performance(MssqlCollector):
    name = "performance"
    title = "Performance counters"
    help = (
        "The server's performance counters of memory, pages, log and load "
        "(sys.dm_os_performance_counters). By type: 65792 is the value now; 272696576 is a total, its rise per "
        "second is the rate; 537003264 is to be divided by the counter of type 1073939712 that goes with it; "
        "1073874176 is an average, its rise divided by the base's rise."
    )
    interval_s = 5.0
    on_azure = True
    columns = pa.schema(
        [
            *SERVER_CLOCK,
            column("object", TEXT, '"Buffer Manager", without the instance\'s name'),
            column("counter", TEXT, "name of the counter"),
            column("instance", TEXT, "a database, or _Total"),
            column("type", pa.int32(), "cntr_type: how to read `value`"),
            column("value", COUNT, "as the server counts it", "see `type`"),
        ]
    )

    @cached_property
    def sql(self) -> str:
        text = statement(self.name, self.major)
        if self.several:
            return with_databases(text, list(self._instances))
        return name_instance(text, self.engine)

    @cached_property
    def _instances(self) -> dict[str, str]:
        """Return the names of several databases by those of their counters."""
        names = {database: name_of(database) for database in self.databases}
        if self.engine.edition not in AZURE:
            return {name: name for name in names.values()}
        return {one_row(ask(database, f"SELECT {_PHYSICAL}"), 1)[0] or name: name for database, name in names.items()}

    def sample(self, now: float) -> Sequence[Row]:
        rows = super().sample(now)
        if not self.several:
            return rows
        return [row | {"instance": self._instances.get(row["instance"], row["instance"])} for row in rows]

    def refusal(self) -> str | None:
        return super().refusal() or self._disabled()

    def limits(self) -> str | None:
        counted = {row["instance"] for row in self.sample_alone() if row["object"] == "Databases"} - {"tempdb"}
        missing = [name for name in self._instances.values() if name not in counted] if self.several else []
        if counted and not missing:
            return None
        return (
            f"The server has no counters of {', '.join(missing) or 'our database'} (object Databases): the flushes of "
            "its log, and the growth of its files, are not known from them."
        )

    def _disabled(self) -> str | None:
        """Return the reason why there is nothing to read though it was allowed; None if there is. As Microsoft has it,
        a view without rows means that the counters are disabled.
        """
        [count] = one_row(ask(self.engine, _ANY_COUNTER), 1)
        if count != 0:
            return None
        return (
            "The server's performance counters are disabled: sys.dm_os_performance_counters has no rows, though this "
            "login may see it. The server's error log says why at its start; on Windows, lodctr loads them again."
        )


class Procedures(MssqlCollector):
    name = "procedures"
    title = "Procedures"
    help = (
        "Executions, time and pages of our databases' procedures, per cached plan (sys.dm_exec_procedure_stats). "
        "A plan that leaves the cache takes its counts with it: the report shows the share of executions that is "
        "covered. Physical reads are pages read for the procedure, without read-ahead."
    )
    interval_s = 5.0
    on_azure = True
    named = ("procedure",)
    columns = pa.schema(
        [
            *SERVER_CLOCK,
            column("procedure", TEXT, "name of the procedure"),
            column("plan", TEXT, "cached plan; counts are per plan"),
            column("executions", COUNT, "so far", "executions"),
            column("worker_us", COUNT, "CPU time so far"),
            column("elapsed_us", COUNT, "time from begin to end so far"),
            column("physical_reads", COUNT, "read for it so far, read-ahead left out", "pages"),
            column("logical_reads", COUNT, "read in the pool so far", "pages"),
            column("logical_writes", COUNT, "changed in the pool so far", "pages"),
            column("spills", COUNT, "spilled so far; null before SQL Server 2019", "pages"),
        ]
    )


class RowLocks(MssqlCollector):
    name = "row_locks"
    title = "Waits for rows"
    help = (
        "Number and duration of waits for a row or page lock, for a latch on a page in memory, and for a page to be "
        "read from disk, by index of our databases' tables (sys.dm_db_index_operational_stats). The counts of an index "
        "that falls out of the metadata cache start again at 0."
    )
    interval_s = 15.0
    on_azure = True
    of_each_database = True
    named = ("epoch", "entity", "relation")
    columns = pa.schema(
        [
            *SERVER_CLOCK,
            column("entity", TEXT, '"brokerage.last_trade/pk_last_trade": table and index'),
            column("relation", TEXT, "the table"),
            column("row_lock_waits", COUNT, "waits for row locks so far", "waits"),
            column("row_lock_wait_ms", COUNT, "what these waits took, summed"),
            column("page_lock_waits", COUNT, "waits for page locks so far", "waits"),
            column("page_lock_wait_ms", COUNT, "what these waits took, summed"),
            column("page_latch_waits", COUNT, "waits for latches on pages in memory so far", "waits"),
            column("page_latch_wait_ms", COUNT, "what these waits took, summed"),
            column("page_io_latch_waits", COUNT, "waits for pages to be read from storage so far", "waits"),
            column("page_io_latch_wait_ms", COUNT, "what these waits took, summed"),
        ]
    )


class LogSpace(MssqlCollector):
    name = "log_space"
    title = "Log space"
    help = (
        "How full the log of each of our databases is, and what keeps it from being reused "
        "(sys.dm_db_log_space_usage, sys.databases)."
    )
    interval_s = 5.0
    on_azure = True
    of_each_database = True
    columns = pa.schema(
        [
            SERVER_TIME,
            column("size_bytes", COUNT, "size of the log"),
            column("used_bytes", COUNT, "used part of the size"),
            column("since_backup_bytes", COUNT, "log since the last log backup"),
            column("reuse_wait", TEXT, "what keeps the log from being reused"),
            column("database", TEXT, OF_SEVERAL),
        ]
    )


class StatisticsUpdates(MssqlCollector):
    name = "statistics_updates"
    title = "Updates of statistics"
    help = (
        "Statistics of the planner that were updated since the previous sample (STATS_DATE): queries are then planned "
        "again as well. Age: from the middle between the two samples."
    )
    interval_s = 10.0
    on_azure = True
    of_each_database = True
    named = ("table",)
    columns = pa.schema(
        [
            SERVER_TIME,
            column("table", TEXT, "the table"),
            column("statistic", TEXT, "name of the statistic"),
            column("age_s", pa.float64(), "approximate time since the last count"),
        ]
    )

    def __init__(self, engine: Engine):
        super().__init__(engine)
        self._counted: dict[tuple[str, str], str | None] | None = None  # None: no sample before
        self._sampled_at = 0.0

    def sample(self, now: float) -> list[Row]:
        rows = super().sample(now)
        before, since = self._counted, self._sampled_at
        self._counted = {(row["table"], row["statistic"]): row["counted_at"] for row in rows}
        self._sampled_at = now
        if before is None:
            return []
        age = {"age_s": (now - since) / 2}
        return [
            {name: row[name] for name in ("server_time", "table", "statistic")} | age
            for row in rows
            if row["counted_at"] not in (None, before.get((row["table"], row["statistic"])))
        ]


class Replicas(MssqlCollector):
    name = "replicas"
    title = "Replicas"
    help = (
        "Log that the primary has not yet sent to each of the other replicas of our databases, and log that they have "
        "and have not yet redone (sys.dm_hadr_database_replica_states). How long commits wait for them is among the "
        "performance counters (Database Replica: Transaction Delay)."
    )
    interval_s = 5.0
    named = ("replica",)
    columns = pa.schema(
        [
            SERVER_TIME,
            column("replica", TEXT, '"replica 1": the names of servers are not recorded'),
            column("commit_mode", TEXT, "SYNCHRONOUS_COMMIT or ASYNCHRONOUS_COMMIT"),
            column("state", TEXT, "SYNCHRONIZED, SYNCHRONIZING, NOT SYNCHRONIZING and so on"),
            column("send_queue_bytes", COUNT, "log not yet sent to it"),
            column("redo_queue_bytes", COUNT, "log that it has and has not redone"),
        ]
    )

    def refusal(self) -> str | None:
        if reason := super().refusal():
            return reason
        if ask(self.engine, self.sql):
            return None
        hidden = sql_file.read(__package__, "replicas.hidden")
        if self.several:
            hidden = with_databases(hidden, [name_of(database) for database in self.databases])
        if any(count for (count,) in ask(self.engine, hidden)):
            return self.forbidden("the other replicas are hidden from it", "VIEW ANY DEFINITION")
        return "Our database has no other replicas, or this server is not the primary of its availability group."


class TempDb(MssqlCollector):
    name = "tempdb"
    title = "tempdb"
    help = (
        "The use of space in tempdb's data files: row versions, users' temporary tables, sorts and hashes "
        "(sys.dm_db_file_space_usage)."
    )
    interval_s = 5.0
    columns = pa.schema(
        [
            SERVER_TIME,
            column("file", pa.int32(), "number of the data file"),
            column("size_bytes", COUNT, "size of the file"),
            column("free_bytes", COUNT, "unallocated"),
            column("version_store_bytes", COUNT, "row versions"),
            column("user_objects_bytes", COUNT, "users' temporary tables"),
            column("internal_objects_bytes", COUNT, "sorts, hashes and spools"),
            column("mixed_extents_bytes", COUNT, "mixed extents"),
        ]
    )
