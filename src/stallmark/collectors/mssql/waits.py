"""Waits of the virtual users, sampled twice a second, and the classes of all wait types."""

from collections import Counter

from stallmark.collectors.base import WAITS, Polled, Row, polled_columns
from stallmark.collectors.mssql.collector import MssqlCollector
from stallmark.engines.base import Engine

_CLASSES = {
    "io": {
        "ASYNC_IO_COMPLETION",
        "BACKUPIO",
        "DISKIO_SUSPEND",
        "IMPPROV_IOWAIT",  # bulk load
        "IO_COMPLETION",  # spills, and whatever is no page of the pool
        "IO_QUEUE_LIMIT",  # the cloud's limit
        "IO_RETRY",
        "PREEMPTIVE_OS_FLUSHFILEBUFFERS",
        "PREEMPTIVE_OS_WRITEFILE",
        "PREEMPTIVE_OS_WRITEFILEGATHER",  # a file grows
        "WRITE_COMPLETION",
    },
    "wal": {
        "INSTANCE_LOG_RATE_GOVERNOR",  # the cloud's limits
        "LOGBUFFER",
        "LOGMGR",
        "HADR_THROTTLE_LOG_RATE_GOVERNOR",
        "LOGMGR_FLUSH",
        "LOGMGR_PMM_LOG",
        "LOGMGR_RESERVE_APPEND",
        "LOG_RATE_GOVERNOR",
        "POOL_LOG_RATE_GOVERNOR",
        "WRITELOG",
    },
    "replica": {  # a commit that waits until another server has the log
        "DBMIRROR_SEND",
        "HADR_GROUP_COMMIT",
        "HADR_SYNC_COMMIT",
    },
    "memory": {
        "CMEMPARTITIONED",
        "CMEMTHREAD",
        "EE_PMOLOCK",
        "MEMORY_ALLOCATION_EXT",
        "MEMORY_GRANT_UPDATE",
        "RESERVED_MEMORY_ALLOCATION_EXT",
        "RESOURCE_SEMAPHORE",  # for the memory that a query sorts and joins in
        "RESOURCE_SEMAPHORE_QUERY_COMPILE",
    },
    "parallel": {  # workers of one query wait for each other
        "BMPALLOCATION",
        "BMPBUILD",
        "BPSORT",
        "CXCONSUMER",
        "CXPACKET",
        "CXROWSET_SYNC",
        "CXSYNC_CONSUMER",  # from 2022 on, as the next
        "CXSYNC_PORT",
        "EXCHANGE",
        "EXECSYNC",
        "HTBUILD",
        "HTDELETE",
        "HTMEMO",
        "HTREINIT",
        "HTREPARTITION",
    },
    "worker": {"THREADPOOL"},
    "cpu": {"SOS_SCHEDULER_YIELD"},
    "client": {"ASYNC_NETWORK_IO"},
}
_BY_NAME = {name: kind for kind, names in _CLASSES.items() for name in names}
_BY_PREFIX = {"PAGEIOLATCH_": "io", "LCK_M_": "lock", "PAGELATCH_": "latch", "LATCH_": "latch"}

_BENIGN = {
    *("BROKER_EVENTHANDLER", "BROKER_RECEIVE_WAITFOR", "BROKER_TASK_STOP", "BROKER_TO_FLUSH", "BROKER_TRANSMITTER"),
    *("CHECKPOINT_QUEUE", "CHKPT", "CLR_AUTO_EVENT", "CLR_MANUAL_EVENT", "CLR_SEMAPHORE"),
    *("DBMIRRORING_CMD", "DBMIRROR_DBM_EVENT", "DBMIRROR_DBM_MUTEX", "DBMIRROR_EVENTS_QUEUE", "DBMIRROR_WORKER_QUEUE"),
    *("DBMIRROR_QUEUE", "DIRTY_PAGE_POLL", "DISPATCHER_QUEUE_SEMAPHORE", "FSAGENT"),
    *("FT_IFTSHC_MUTEX", "FT_IFTSISM_MUTEX", "FT_IFTS_SCHEDULER_IDLE_WAIT"),
    *("HADR_CLUSAPI_CALL", "HADR_FABRIC_CALLBACK", "HADR_FILESTREAM_IOMGR_IOCOMPLETION", "HADR_LOGCAPTURE_WAIT"),
    *("HADR_NOTIFICATION_DEQUEUE", "HADR_TIMER_TASK", "HADR_WORK_QUEUE"),
    *("KSOURCE_WAKEUP", "LAZYWRITER_SLEEP", "LOGMGR_QUEUE", "ONDEMAND_TASK_QUEUE"),
    *("PARALLEL_REDO_DRAIN_WORKER", "PARALLEL_REDO_LOG_CACHE", "PARALLEL_REDO_TRAN_LIST"),
    *(
        "PARALLEL_REDO_TRAN_TURN",
        "PARALLEL_REDO_WORKER_SYNC",
        "PARALLEL_REDO_WORKER_WAIT_WORK",
        "POPULATE_LOCK_ORDINALS",
    ),
    *("PREEMPTIVE_HADR_LEASE_MECHANISM", "PREEMPTIVE_SP_SERVER_DIAGNOSTICS"),
    *("PREEMPTIVE_XE_DISPATCHER", "PREEMPTIVE_XE_GETTARGETSTATE", "PVS_PREALLOCATE"),
    *("PWAIT_ALL_COMPONENTS_INITIALIZED", "PWAIT_DIRECTLOGCONSUMER_GETNEXT", "PWAIT_EXTENSIBILITY_CLEANUP_TASK"),
    *("QDS_ASYNC_QUEUE", "QDS_CLEANUP_STALE_QUERIES_TASK_MAIN_LOOP_SLEEP", "QDS_PERSIST_TASK_MAIN_LOOP_SLEEP"),
    *(
        "QDS_SHUTDOWN_QUEUE",
        "RBIO_COMM_RETRY",
        "REDO_THREAD_PENDING_WORK",
        "REQUEST_FOR_DEADLOCK_SEARCH",
        "RESOURCE_QUEUE",
    ),
    *(
        "REQUEST_FOR_DEADLOCK_SEARCH",
        "SERVER_IDLE_CHECK",
        "SNI_HTTP_ACCEPT",
        "SOS_WORK_DISPATCHER",
        "SP_SERVER_DIAGNOSTICS_SLEEP",
    ),
    *("SQLTRACE_BUFFER_FLUSH", "SQLTRACE_INCREMENTAL_FLUSH_SLEEP", "SQLTRACE_WAIT_ENTRIES"),
    *("STARTUP_DEPENDENCY_MANAGER", "UCS_SESSION_REGISTRATION", "VDI_CLIENT_OTHER"),
    *("WAITFOR", "WAITFOR_TASKSHUTDOWN", "WAIT_FOR_RESULTS"),
    *("WAIT_XTP_CKPT_CLOSE", "WAIT_XTP_HOST_WAIT", "WAIT_XTP_OFFLINE_CKPT_NEW_LOG", "WAIT_XTP_RECOVERY"),
    *("XE_BUFFERMGR_ALLPROCESSED_EVENT", "XE_DISPATCHER_JOIN", "XE_DISPATCHER_WAIT", "XE_LIVE_TARGET_TVF"),
    "XE_TIMER_EVENT",
}
"""By name and not by family: of each family some hold commits up (HADR_SYNC_COMMIT, HADR_GROUP_COMMIT …). A test holds
them against FirstResponderKit's and telegraf's lists, and has the reason for each difference."""


def class_of(wait_type: str) -> str:
    """Return io, lock, wal, replica, memory, latch, parallel, worker, cpu, client or other."""
    for prefix, kind in _BY_PREFIX.items():
        if wait_type.startswith(prefix):
            return kind
    return _BY_NAME.get(wait_type, "other")


def is_benign(wait_type: str) -> bool:
    """Tell whether a task waits there for work or for time to pass, so that nobody is held up."""
    return wait_type in _BENIGN or wait_type.startswith("SLEEP_")


def wait_class(status: str | None, wait_type: str | None) -> tuple[str, str]:
    """Return the class of what a session does, and its name: "PAGEIOLATCH_SH", "CPU", "runnable", "idle".

    `status` and `wait_type` are those of its request (sys.dm_exec_requests); a session without one waits for its
    client. A runnable one has got what it waited for and waits for a CPU.
    """
    if status is None:
        return "client", "idle"
    if status.lower() == "runnable":
        return "cpu", "runnable"
    if wait_type:
        return class_of(wait_type), wait_type
    if status.lower() == "running":
        return "cpu", "CPU"
    return "other", status.lower()


class UserWaits(MssqlCollector):
    name = "waits"
    title = "Waits of the users"
    help = (
        "What each virtual user's session was doing: I/O, lock, log, CPU, its client or else, seen at a random "
        "instant of every half second and counted per second (sys.dm_exec_requests). Samples / polls is a "
        "mean number of users. Of a parallel query only what its coordinator waits for is seen."
    )
    interval_s = 0.5
    polling = True
    on_azure = True
    columns = polled_columns(WAITS)

    def __init__(self, engine: Engine):
        super().__init__(engine)
        self._polled = Polled(*WAITS)

    def refusal(self) -> str | None:
        return super().refusal() or self.hidden_users()

    def sample(self, now: float) -> list[Row]:
        sessions = self.connection.rows(self.sql)
        users: Counter[tuple[str | None, ...]] = Counter()
        for row in sessions:
            users[row["application"], *wait_class(row["status"], row["wait_type"])] += row["users"] or 0
        return self._polled.add(now, users)

    def finish(self) -> list[Row]:
        return self._polled.finish()
