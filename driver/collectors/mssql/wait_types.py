"""What SQL Server's wait types stand for (sys.dm_os_wait_stats, "Types of waits").

The classes are those the analysis knows: io, lock, wal, cpu, client, other.
"""

_CLASSES = {
    "io": {
        "ASYNC_IO_COMPLETION",
        "BACKUPIO",
        "DISKIO_SUSPEND",
        "IO_COMPLETION",  # spills, and whatever is no page of the pool
        "IO_QUEUE_LIMIT",  # the cloud's limit
        "IO_RETRY",
        "PREEMPTIVE_OS_FLUSHFILEBUFFERS",
        "PREEMPTIVE_OS_WRITEFILE",
        "PREEMPTIVE_OS_WRITEFILEGATHER",  # a file grows
        "WRITE_COMPLETION",
    },
    "wal": {
        "LOGBUFFER",
        "LOGMGR",
        "LOGMGR_FLUSH",
        "LOGMGR_RESERVE_APPEND",
        "LOG_RATE_GOVERNOR",  # the cloud's limit
        "WRITELOG",
    },
    "cpu": {"SOS_SCHEDULER_YIELD"},
    "client": {"ASYNC_NETWORK_IO"},
}
_BY_NAME = {name: kind for kind, names in _CLASSES.items() for name in names}
_BY_PREFIX = {"PAGEIOLATCH_": "io", "LCK_M_": "lock"}

_BENIGN_PREFIXES = (
    "BROKER_",
    "CLR_",
    "DBMIRROR",
    "FT_IFTS",
    "HADR_",
    "PARALLEL_REDO_",
    "PVS_",
    "QDS_",
    "SLEEP_",
    "SQLTRACE_",
    "WAIT_XTP_",
    "XE_",
)
_BENIGN = {
    "CHECKPOINT_QUEUE",
    "CHKPT",
    "DIRTY_PAGE_POLL",
    "DISPATCHER_QUEUE_SEMAPHORE",
    "FSAGENT",
    "KSOURCE_WAKEUP",
    "LAZYWRITER_SLEEP",
    "LOGMGR_QUEUE",
    "ONDEMAND_TASK_QUEUE",
    "PREEMPTIVE_XE_DISPATCHER",
    "PREEMPTIVE_XE_GETTARGETSTATE",
    "PWAIT_ALL_COMPONENTS_INITIALIZED",
    "PWAIT_DIRECTLOGCONSUMER_GETNEXT",
    "PWAIT_EXTENSIBILITY_CLEANUP_TASK",
    "REDO_THREAD_PENDING_WORK",
    "REQUEST_FOR_DEADLOCK_SEARCH",
    "RESOURCE_QUEUE",
    "SERVER_IDLE_CHECK",
    "SNI_HTTP_ACCEPT",
    "SOS_WORK_DISPATCHER",
    "SP_SERVER_DIAGNOSTICS_SLEEP",
    "STARTUP_DEPENDENCY_MANAGER",
    "UCS_SESSION_REGISTRATION",
    "VDI_CLIENT_OTHER",
    "WAITFOR",
    "WAITFOR_TASKSHUTDOWN",
    "WAIT_FOR_RESULTS",
}
_NOT_BENIGN = {
    "HADR_SYNC_COMMIT",
    "HADR_THROTTLE_LOG_RATE_GOVERNOR",
}  # commits wait for another replica, and log is throttled for it


def class_of(wait_type: str) -> str:
    """io, lock, wal, cpu, client or other."""
    for prefix, kind in _BY_PREFIX.items():
        if wait_type.startswith(prefix):
            return kind
    return _BY_NAME.get(wait_type, "other")


def is_benign(wait_type: str) -> bool:
    """Whether a task waits there for work, or for the time to pass, and nobody is held up."""
    if wait_type in _NOT_BENIGN:
        return False
    return wait_type in _BENIGN or wait_type.startswith(_BENIGN_PREFIXES)


def wait_class(status: str | None, wait_type: str | None) -> tuple[str, str]:
    """The class of what a session does, and its name: "PAGEIOLATCH_SH", "CPU", "runnable", "idle".

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
