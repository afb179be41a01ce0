"""Answers of the tests' server to each collector: published (`published`), or made up of the documented types."""

from typing import Any

from stallmark.collectors.mssql import MssqlCollector
from stallmark.collectors.mssql.counters import (
    LoadIO,
    LogSpace,
    Performance,
    Procedures,
    Replicas,
    RowLocks,
    ServerCpu,
    ServerIO,
    ServerWaits,
    SessionWaits,
    StatisticsUpdates,
    TempDb,
)
from stallmark.collectors.mssql.io_latency import IoLatency, LogLatency
from stallmark.collectors.mssql.moments import BufferPool, Cpu, ErrorLog, PendingIO, Schedulers
from stallmark.collectors.mssql.statements import QueryStore, QueryStoreState, QueryStoreWaits, Statements
from stallmark.collectors.mssql.waits import Blocking, Deadlocks, UserWaits
from stallmark.collectors.sampler import Collector, Row
from support import published_waits as published
from support.collecting import opened
from support.mssql_server import Server, rows
from support.tds.answers import Rows

START = "start 2026-03-01T10:00:00"
HANDLE = "0x0000000000000B5C"

# Made up, of the types that the views document.
FILES = [
    (1.5, f"{START} database 7 of 2026-03-02T08:00:00 handle {HANDLE}", "bank/bank", "data", 100, 819200, 700, 10,
     81920, 0, 0, 0, 1 << 30, "/var/opt/mssql/data/bank.mdf", HANDLE),
    (1.5, f"{START} database 7 of 2026-03-02T08:00:00 handle 0x01", "bank/bank_log", "wal", 0, 0, 0, 50, 204800, 45, 0,
     0, 1 << 28, "/var/opt/mssql/data/bank_log.ldf", "0x01"),
    (1.5, f"{START} database 2 of 2026-03-01T10:00:00 handle 0x02", "tempdb/tempdev", "temp", 5, 40960, 3, 5, 40960, 2,
     0, 0, 8 << 20, "/var/opt/mssql/data/tempdb.mdf", "0x02"),
    (1.5, f"{START} database 9 of  handle 0x03", "database 9/file 1", "foreign", 9, 73728, 1, 0, 0, 0, 0, 0, 1 << 20,
     None, "0x03"),
]  # fmt: skip
WAITS = [
    (1.5, START, "PAGEIOLATCH_SH", 120, 900, 30, 45),
    (1.5, START, "LAZYWRITER_SLEEP", 60, 60000, 12, 1010),
    (1.5, START, "WRITELOG", 50, 45, 4, 5),
]
ANSWERS: dict[type[MssqlCollector], Rows] = {
    ServerIO: rows(ServerIO.columns.names, *FILES),
    UserWaits: rows(
        ["application", "status", "wait_type", "users"],
        ("stallmark-user-mail", "suspended", "PAGEIOLATCH_SH", 3), ("stallmark-user-bank", None, None, 2),
        ("stallmark-user-bank", "suspended", "PAGEIOLATCH_SH", 1),
    ),
    ServerCpu: rows(ServerCpu.columns.names, (1.5, START, 812.5, 96.25)),
    ServerWaits: rows(["server_time", "epoch", "wait_type", "waits", "wait_ms", "signal_ms", "max_ms"], *WAITS),
    LoadIO: rows(
        ["epoch", *LoadIO.columns.names[1:]],
        (START, "stallmark-user", "57 since 2026-03-02T09:00:00,58 since 2026-03-02T09:00:00", 4200, 130, 800_000),
    ),
    SessionWaits: rows(
        ["server_time", "epoch", "session", "wait_type", "waits", "wait_ms", "signal_ms", "max_ms"],
        *[(t, epoch, "57 since 2026-03-02T09:00:00", *rest) for t, epoch, *rest in WAITS],
    ),
    Performance: rows(
        Performance.columns.names,
        *[(1.5, START, object.partition(":")[2], counter, instance, kind, value)
          for object, counter, instance, value, kind in published.COUNTERS],
    ),
    Procedures: rows(
        Procedures.columns.names,
        (1.5, "plan cache", "bank.transfer", "0x03 0x05 2026-03-02T09:00:00", 40, 9000, 60000, 130, 800, 200, 0),
    ),
    Statements: rows(
        ["server_time", "epoch", "procedure", "begins", "ends", "plan_hash", "plan_handle", "plan", "text",
         "executions", "worker_us", "elapsed_us", "physical_reads", "logical_reads"],
        (1.5, "plan cache", "bank.transfer", 240, 520, "0x01A2B3C4D5E6F708", "0x0500", "0x0300 2026-03-02T09:00:00",
         "UPDATE bank.accounts\n   SET balance", 40, 9000, 60000, 130, 800),
    ),
    RowLocks: rows(
        RowLocks.columns.names,
        (1.5, f"{START} object 245575913", "bank.branch/pk_branch", "bank.branch", 120, 900, 3, 40, 11, 2, 5, 30),
        (1.5, f"{START} object 245575913", "bank.branch/ix_branch", "bank.branch", 0, 0, 0, 0, 0, 0, 0, 0),
    ),
    Blocking: rows(
        ["blocked", "blocker", "wait_type"],
        ("brokerage.trade_status", "brokerage.trade_result_completion", "LCK_M_S"),
        ("brokerage.trade_status", "brokerage.trade_result_completion", "LCK_M_S"),
        ("brokerage.trade_order_account", "SET XACT_ABORT ON;\n BEGIN", "LCK_M_U"),
    ),
    Deadlocks: rows(["happened", "event"], ("2026-03-02T09:00:00.123", published.DEADLOCK)),
    PendingIO: rows(PendingIO.columns.names, (1.5, HANDLE, "disk", True, 3, 12), (1.5, HANDLE, "disk", False, 1, 2)),
    Schedulers: rows(
        Schedulers.columns.names,
        (1.5, len(published.RUNNABLE_SCHEDULERS), *(
            f(one[at] for one in published.RUNNABLE_SCHEDULERS) for f, at in [(sum, 0), (sum, 1), (max, 1), (sum, 2)]
        ), 0),
    ),
    Cpu: rows(["server_time", "age_ms", "platform", "record"], (1.5, 20000, "Windows", published.CPU_RECORD)),
    LogSpace: rows(LogSpace.columns.names[:-1], (1.5, 1 << 28, 1 << 20, 1 << 19, "LOG_BACKUP")),
    TempDb: rows(TempDb.columns.names, (1.5, 1, 8 << 20, 4 << 20, 0, 1 << 20, 1 << 20, 1 << 20)),
    BufferPool: rows(BufferPool.columns.names, (1.5, "bank", 1, "DATA_PAGE", 900, 40, 0, 850, 4_000_000)),
    QueryStore: rows(
        QueryStore.columns.names,
        (1.5, "query store", "bank.transfer", "12 in 345 as 0", 40, 9000.5, 60000.25, 129.5, 800.0, 200.0),
    ),
    QueryStoreWaits: rows(
        QueryStoreWaits.columns.names, (1.5, "query store", "bank.transfer: Buffer IO", "12 in 345 as 0", 4200)
    ),
    QueryStoreState: rows(
        QueryStoreState.columns.names[:-1],
        (1.5, "query store", "READ_WRITE", 0, "ALL", "ON", 12 << 20, 1000 << 20),
    ),
    IoLatency: rows(
        ["server_time", "epoch", "session", "dropped", "histogram"],
        (1.5, "session 2026-03-02T09:00:00", "stallmark_reads", 0, published.HISTOGRAM),
        (1.5, "session 2026-03-02T09:00:00", "stallmark_log_writes", 0, published.HISTOGRAM),
    ),
    LogLatency: rows(
        ["server_time", "epoch", "session", "dropped", "histogram"],
        (1.5, "session 2026-03-02T09:00:00", "stallmark_log_writes", 0, published.HISTOGRAM),
    ),
    Replicas: rows(
        Replicas.columns.names, (1.5, "replica 1", "SYNCHRONOUS_COMMIT", "SYNCHRONIZED", 12 << 10, 3 << 20),
    ),
    StatisticsUpdates: rows(
        ["server_time", "table", "statistic", "counted_at"],
        (1.5, "bank.accounts", "accounts_pkey", "2026-03-02T09:00:00.000"), (1.5, "bank.branch", "pk_branch", None),
    ),
    ErrorLog: rows(["LogDate", "ProcessInfo", "Text"], ("2026-03-02 09:00:00.000", "spid9s", "no offset to speak of")),
}  # fmt: skip
EVENT_FILE = """<EventFileTarget truncated="0"><Buffers logged="3" dropped="0"/>
<File name="/var/opt/mssql/log/system_health_0_134170000000000000.xel"/></EventFileTarget>"""
# Words of the statements beside a collector's own query.
PLAN, MOMENT, LANGUAGE = "dm_exec_text_query_plan", "AS now,", "msglangid"
SEEN, MAY = "is_user_process = 0", "HAS_PERMS_BY_NAME"
SESSIONS, MADE_OR_DROPPED = "server_event_sessions", "(CREATE|DROP) EVENT SESSION"
LOG_FILES = r"FROM sys\.database_files AS log"
MEMORY, COMMITTED = "Target Server Memory", "FROM sys.dm_os_sys_info\\s*$"
ANY_COUNTER = r"SELECT COUNT\(\*\) FROM sys\.dm_os_performance_counters"
STORE_STATE, STORE_COLUMNS = "current_storage_size_mb", r"COL_LENGTH\('sys.query_store_replicas"
NUMBERED, HIDDEN_REPLICAS = "sp_readerrorlog 0, 1, N': ", "dm_hadr_database_replica_states AS hidden"
_OF_EVENT_SESSIONS, _OF_STORE = (MAY, SESSIONS, LOG_FILES, MADE_OR_DROPPED), (STORE_STATE, STORE_COLUMNS)
BESIDE: dict[type[MssqlCollector], tuple[str, ...]] = {
    UserWaits: (SEEN,), LoadIO: (SEEN,), SessionWaits: (SEEN,), Performance: (ANY_COUNTER,),
    Statements: (PLAN,), Deadlocks: (MOMENT,),
    BufferPool: (MEMORY, COMMITTED), ErrorLog: (NUMBERED, LANGUAGE), Replicas: (HIDDEN_REPLICAS,),
    LogLatency: _OF_EVENT_SESSIONS, IoLatency: _OF_EVENT_SESSIONS,
    QueryStore: _OF_STORE, QueryStoreWaits: _OF_STORE, QueryStoreState: (STORE_COLUMNS,),
}  # fmt: skip
SETTLED = {
    PLAN: (rows(["query_plan"], ["<ShowPlanXML/>"]),),
    MOMENT: (rows(["now", "written"], ["2026-03-02T08:59:00.000", EVENT_FILE]),),
    SEEN: (rows(["may"], [1]),),
    MAY: (rows(["may"], [1]),),
    MEMORY: (rows(["name", "value"], ("Target Server Memory (KB)", 8 << 20)),),
    "FROM sys.dm_os_sys_info AS process": (rows(["running_s"], [4_000_000]),),
    COMMITTED: (rows(["target", "committed"], [8 << 20, 4 << 20]),),
    ANY_COUNTER: (rows(["count"], [1500]),),
    STORE_STATE: (ANSWERS[QueryStoreState],),
    STORE_COLUMNS: (rows(["role", "counts", "waits"], [1, 8, 8]),),
    NUMBERED: (rows(["LogDate", "ProcessInfo", "Text"]),),
    LANGUAGE: (rows(["name"]),),
    HIDDEN_REPLICAS: (rows(["replicas"], [0]),),
    SESSIONS: (rows(["name"]),),
    LOG_FILES: (rows(["database", "log_file"], [7, 2]),),
    MADE_OR_DROPPED: (),
}
REQUESTS = ("query_store", "io_latency")


def words_of(kind: type[MssqlCollector]) -> str:
    """The pattern that tells a collector's query from every other."""
    return {
        UserWaits: r"FROM sys\.dm_exec_sessions AS session\s+LEFT JOIN sys\.dm_exec_requests",
        ServerIO: "dm_io_virtual_file_stats", ServerWaits: "dm_os_wait_stats|dm_db_wait_stats",
        LoadIO: "STRING_AGG.*login_time", SessionWaits: "dm_exec_session_wait_stats",
        Performance: "dm_os_performance_counters AS counters",
        Procedures: r"cached\.total_worker_time", Statements: "dm_exec_query_stats AS used",
        RowLocks: "dm_db_index_operational_stats",
        Blocking: "holder.most_recent_sql_handle", Deadlocks: "fn_xe_file_target_read_file",
        PendingIO: "dm_io_pending_io_requests", Schedulers: "dm_os_schedulers",
        Cpu: "dm_os_ring_buffers", LogSpace: "dm_db_log_space_usage", TempDb: "dm_db_file_space_usage",
        BufferPool: "dm_os_buffer_descriptors", ErrorLog: "sp_readerrorlog 0, 1, N'offset'",
        QueryStore: "query_store_runtime_stats AS", QueryStoreWaits: "query_store_wait_stats AS",
        QueryStoreState: STORE_STATE,
        IoLatency: "AS histogram", LogLatency: "AS histogram",
        ServerCpu: "process_kernel_time_ms",
        Replicas: "dm_hadr_database_replica_states AS other", StatisticsUpdates: "STATS_DATE",
    }[kind]  # fmt: skip


def answer_all(server: Server) -> None:
    for kind, answer in ANSWERS.items():
        server.script.sql(words_of(kind), answer)
    for words, answer in SETTLED.items():
        server.script.sql(words, *answer)


def answered(server: Server, kind: type[MssqlCollector], answer: Any = None, **more: Any) -> MssqlCollector:
    """The collector of a server that answers its query so."""
    server.script.sql(words_of(kind), answer or ANSWERS[kind], **more)
    for words, settled in SETTLED.items():
        server.script.sql(words, *settled)
    return kind(server.engine())


def everything(collector: Collector, seconds: tuple[float, ...] = (0.0, 1.0)) -> list[Row]:
    with opened(collector):
        return [row for second in seconds for row in collector.sample(second)] + list(collector.finish())
