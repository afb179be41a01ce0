"""SQL Server's own cumulative counters, and the sizes that go with them, as its management views give them."""

from functools import cache, cached_property

import pyarrow as pa

from stallmark.collectors.base import Row
from stallmark.collectors.mssql.collector import CLOCK, COUNT, MS, SERVER_CLOCK, TEXT, MssqlCollector, statement
from stallmark.collectors.mssql.waits import class_of, is_benign
from stallmark.engines.mssql.server import AZURE


class ServerIO(MssqlCollector):
    name = "server_io"
    title = "Server I/O"
    help = (
        "Reads and writes of every file of every database with the time they stalled, our own and others' "
        "(sys.dm_io_virtual_file_stats). Stalls are whole milliseconds and hold waiting for a CPU as well: below "
        "one millisecond an I/O they say little. Queued: of the stall, what the resource governor added."
    )
    columns = pa.schema(
        [
            *SERVER_CLOCK,
            ("entity", TEXT),  # "database/logical name"
            ("kind", TEXT),  # data, wal, temp, foreign
            ("reads", COUNT),
            ("read_bytes", COUNT),
            ("read_stall_ms", MS),
            ("writes", COUNT),
            ("write_bytes", COUNT),
            ("write_stall_ms", MS),
            ("queued_read_stall_ms", MS),
            ("queued_write_stall_ms", MS),
            ("size_bytes", COUNT),
            ("path", TEXT),
            ("handle", TEXT),  # the same as in `pending_io`
        ]
    )

    def limited(self) -> str | None:
        hidden = [row for row in self.sample_alone() if row["path"] is None]
        if not hidden:
            return None
        return (
            f"The names of other databases' files ({len(hidden)}) are hidden from this login, their I/O is counted: to "
            "see them it needs VIEW ANY DEFINITION."
        )


@cache
def _kind(wait_type: str) -> Row:
    return {"wait_class": class_of(wait_type), "benign": is_benign(wait_type)}


_OF_WAIT_TYPE = (
    ("wait_type", TEXT),
    ("waits", COUNT),
    ("wait_ms", MS),
    ("signal_ms", MS),
    ("max_ms", MS),
    ("wait_class", TEXT),
    ("benign", pa.bool_()),
)


class _WaitTypes(MssqlCollector):
    """The base of collectors whose rows are counts of a wait type: they add its class."""

    def sample(self, now: float) -> list[Row]:
        return [row | _kind(row["wait_type"]) for row in super().sample(now)]


class ServerWaits(_WaitTypes):
    name = "server_waits"
    title = "Waits of the server"
    help = (
        "How often and how long all tasks of the server waited, by wait type (sys.dm_os_wait_stats; on Azure SQL "
        "Database sys.dm_db_wait_stats, our database only). Wait includes signal, the time a task that had got "
        "what it waited for waited for a CPU. Benign: nobody is held up. Types that never occurred are left out."
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
    columns = pa.schema([*SERVER_CLOCK, ("session", TEXT), *_OF_WAIT_TYPE])  # "57 since 2026-03-01T10:00:00.123"


_NAMED, _PHYSICAL = (
    "DB_NAME()",
    "(SELECT own.physical_database_name FROM sys.databases AS own WHERE own.database_id = DB_ID())",
)
"""Return our database's name in the counters of `Databases`: on Azure SQL that of its files, which is a GUID."""
_ANY_COUNTER = "SELECT COUNT(*) FROM sys.dm_os_performance_counters"


class Performance(MssqlCollector):
    name = "performance"
    title = "Performance counters"
    help = (
        "The server's performance counters that tell about memory, pages, log and load, raw "
        "(sys.dm_os_performance_counters). By type: 65792 is the value now; 272696576 is a total, its rise per "
        "second is the rate; 537003264 is to be divided by the counter of type 1073939712 that goes with it; "
        "1073874176 is an average, its rise divided by the base's rise."
    )
    interval_s = 5.0
    on_azure = True
    columns = pa.schema(
        [
            *SERVER_CLOCK,
            ("object", TEXT),  # "Buffer Manager", without the instance's name
            ("counter", TEXT),
            ("instance", TEXT),  # a database or _Total
            ("type", pa.int32()),
            ("value", COUNT),
        ]
    )

    @cached_property
    def sql(self) -> str:
        text = statement(self.name, self.major)
        return text.replace(_NAMED, _PHYSICAL) if self.engine.edition in AZURE else text

    def unavailable(self) -> str | None:
        return super().unavailable() or self._disabled()

    def limited(self) -> str | None:
        rows = self.sample_alone()
        if any(row["object"] == "Databases" and row["instance"] != "tempdb" for row in rows):
            return None
        return (
            "The server has no counters of our database (object Databases): the flushes of its log, and the growth of "
            "its files, are not known from them."
        )

    def _disabled(self) -> str | None:
        """Return why there is nothing to read though it was allowed; None where there is. As Microsoft has it, a view
        without rows means that the counters are disabled."""
        [(count,)] = self.engine.query(_ANY_COUNTER)
        if count:
            return None
        return (
            "The server's performance counters are disabled: sys.dm_os_performance_counters has no rows, though this "
            "login may see it. The server's error log says why at its start; on Windows, lodctr loads them again."
        )


class Procedures(MssqlCollector):
    name = "procedures"
    title = "Procedures"
    help = (
        "Executions, time and pages of our database's procedures, per cached plan (sys.dm_exec_procedure_stats). "
        "A plan that leaves the cache takes its counts with it: the report says how many of the executions are "
        "covered. Physical reads are pages read for the procedure, read-ahead left out."
    )
    interval_s = 5.0
    on_azure = True
    columns = pa.schema(
        [
            *SERVER_CLOCK,
            ("procedure", TEXT),
            ("plan", TEXT),  # SQL handle, plan handle, cached time
            ("executions", COUNT),
            ("worker_us", COUNT),
            ("elapsed_us", COUNT),
            ("physical_reads", COUNT),
            ("logical_reads", COUNT),
            ("logical_writes", COUNT),
            ("spills", COUNT),  # pages; from 2019 on
        ]
    )


class RowLocks(MssqlCollector):
    name = "row_locks"
    title = "Waits for rows"
    help = (
        "How often and how long anybody waited for a row or page lock, for a latch on a page in memory, and for a page "
        "to be read from disk, by index of our database's tables (sys.dm_db_index_operational_stats). An index that "
        "falls out of the metadata cache begins to count anew."
    )
    interval_s = 15.0
    on_azure = True
    columns = pa.schema(
        [
            *SERVER_CLOCK,
            ("entity", TEXT),  # "brokerage.last_trade/pk_last_trade"
            ("relation", TEXT),
            ("row_lock_waits", COUNT),
            ("row_lock_wait_ms", COUNT),
            ("page_lock_waits", COUNT),
            ("page_lock_wait_ms", COUNT),
            ("page_latch_waits", COUNT),
            ("page_latch_wait_ms", COUNT),
            ("page_io_latch_waits", COUNT),  # reads from disk that somebody waited for
            ("page_io_latch_wait_ms", COUNT),
        ]
    )


class LogSpace(MssqlCollector):
    name = "log_space"
    title = "Log space"
    help = (
        "How full our database's log is, and what keeps it from being reused (sys.dm_db_log_space_usage, "
        "sys.databases)."
    )
    interval_s = 5.0
    on_azure = True
    columns = pa.schema(
        [CLOCK, ("size_bytes", COUNT), ("used_bytes", COUNT), ("since_backup_bytes", COUNT), ("reuse_wait", TEXT)]
    )


class StatisticsUpdates(MssqlCollector):
    name = "statistics_updates"
    title = "Updates of statistics"
    help = (
        "Statistics that the planner uses and that were counted anew within the last 25 s (STATS_DATE): queries are "
        "then planned anew as well."
    )
    interval_s = 10.0
    on_azure = True
    columns = pa.schema([CLOCK, ("table", TEXT), ("statistic", TEXT), ("age_s", pa.float64())])


class Replicas(MssqlCollector):
    name = "replicas"
    title = "Replicas"
    help = (
        "Log that the primary has not yet sent to each of the other replicas of our database, and log that they have "
        "and have not yet redone (sys.dm_hadr_database_replica_states). How long commits wait for them is among the "
        "performance counters (Database Replica: Transaction Delay)."
    )
    interval_s = 5.0
    columns = pa.schema(
        [
            CLOCK,
            ("replica", TEXT),  # "replica 1": the names of servers are not recorded
            ("commit_mode", TEXT),  # SYNCHRONOUS_COMMIT, ASYNCHRONOUS_COMMIT
            ("state", TEXT),  # SYNCHRONIZED, SYNCHRONIZING, NOT SYNCHRONIZING …
            ("send_queue_bytes", COUNT),
            ("redo_queue_bytes", COUNT),
        ]
    )

    def unavailable(self) -> str | None:
        if why := super().unavailable():
            return why
        if self.engine.query(self.sql):
            return None
        return "Our database has no other replicas, or this server is not the primary of its availability group."


class TempDb(MssqlCollector):
    name = "tempdb"
    title = "tempdb"
    help = (
        "What the space in tempdb's data files is used for: row versions, users' temporary tables, sorts and "
        "hashes (sys.dm_db_file_space_usage)."
    )
    interval_s = 5.0
    columns = pa.schema(
        [
            CLOCK,
            ("file", pa.int32()),
            ("size_bytes", COUNT),
            ("free_bytes", COUNT),
            ("version_store_bytes", COUNT),
            ("user_objects_bytes", COUNT),
            ("internal_objects_bytes", COUNT),
            ("mixed_extents_bytes", COUNT),
        ]
    )
