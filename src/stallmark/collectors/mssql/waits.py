"""The waits of virtual users: classes of all wait types, who blocks whom, and deadlocks."""

import time
from collections import Counter
from typing import Any
from xml.etree import ElementTree

import pyarrow as pa

from stallmark.collectors.columns import TEXT, WAITS, PolledUsers, polled_columns
from stallmark.collectors.mssql import MssqlCollector, ask, statement
from stallmark.collectors.sampler import Row
from stallmark.engines import sql_file
from stallmark.engines.base import Engine
from stallmark.engines.mssql.odbc import one_row
from stallmark.errors import CallFailed, StallmarkError
from stallmark.record.schema import column
from stallmark.redact import without_secrets

# Waits of the virtual users, sampled twice a second, and the classes of all wait types.

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
    # Commits that wait until another server has the log.
    "replica": {"DBMIRROR_SEND", "HADR_GROUP_COMMIT", "HADR_SYNC_COMMIT"},
    "memory": {
        "CMEMPARTITIONED",
        "CMEMTHREAD",
        "EE_PMOLOCK",
        "MEMORY_ALLOCATION_EXT",
        "MEMORY_GRANT_UPDATE",
        "RESERVED_MEMORY_ALLOCATION_EXT",
        "RESOURCE_SEMAPHORE",  # memory grants for sorts and joins
        "RESOURCE_SEMAPHORE_QUERY_COMPILE",
    },
    # Workers of one query wait for each other.
    "parallel": {
        "BMPALLOCATION",
        "BMPBUILD",
        "BPSORT",
        "CXCONSUMER",
        "CXPACKET",
        "CXROWSET_SYNC",
        "CXSYNC_CONSUMER",  # both since 2022
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
"""Wait types by name, not by family: of each family some hold commits up (HADR_SYNC_COMMIT, HADR_GROUP_COMMIT …). A
test compares them with FirstResponderKit's and telegraf's lists, and has the reason for each difference.
"""


def class_of(wait_type: str) -> str:
    """Return io, lock, wal, replica, memory, latch, parallel, worker, cpu, client or other."""
    for prefix, kind in _BY_PREFIX.items():
        if wait_type.startswith(prefix):
            return kind
    return _BY_NAME.get(wait_type, "other")


def is_benign(wait_type: str) -> bool:
    """Return True if tasks wait there for work or for time to pass, without blocking others."""
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


class UserWaits(PolledUsers, MssqlCollector):
    name = "waits"
    title = "Waits of the users"
    help = (
        "The activity of each virtual user's session (I/O, lock, log, CPU, client or other), sampled at a random "
        "instant of every half second and counted per second (sys.dm_exec_requests). Samples / polls is a "
        "mean number of users. For a parallel query only the waits of its coordinator are seen."
    )
    interval_s = 0.5
    on_azure = True
    of_users = True
    columns = polled_columns(WAITS)

    def sample(self, now: float) -> list[Row]:
        sessions = self.connection.rows(self.sql)
        users: Counter[tuple[str | None, ...]] = Counter()
        for row in sessions:
            users[row["application"], *wait_class(row["status"], row["wait_type"])] += row["users"] or 0
        return self._polled.add(now, users)


# Users who wait for each other's locks: who blocks whom, and the deadlocks that the server has written down.

_BLOCKED = {
    "blocked": "procedure of the session that waits",
    "blocker": "procedure of the session that it waits for",
    "wait_type": "the server's name of the wait",
}
MOST_GRAPHS = 20
_PERSONAL = ("hostname", "loginname", "hostpid")
READ_WITHIN_S = 10
"""Seconds for all files: the sampler waits 15 s at the end."""
_EVERY_FILE = "system_health*.xel"


class Blocking(PolledUsers, MssqlCollector):
    name = "blocking"
    title = "Who blocks whom"
    help = (
        "Users' sessions that wait for another session, with the procedures that both are in (blocking_session_id of "
        "sys.dm_exec_requests), sampled at random instants."
    )
    interval_s = 2.0
    on_azure = True
    columns = polled_columns(_BLOCKED)

    def sample(self, now: float) -> list[Row]:
        rows = super().sample(now)
        seen = Counter[tuple[str | None, ...]](
            tuple(" ".join((row[name] or "").split()) for name in _BLOCKED) for row in rows
        )
        return self._polled.add(now, seen)


class Deadlocks(MssqlCollector):
    name = "deadlocks"
    title = "Deadlocks"
    help = (
        "Deadlocks of users, with their graphs, from the files of the server's own session system_health, read once "
        "after the load. The server writes them up to two minutes late, so the last ones may be missing; the errors "
        "1205 that clients met are all counted."
    )
    # The server is asked for its time at the beginning, and for the deadlocks at the end.
    interval_s = 3600.0
    columns = pa.schema(
        [
            column("happened", TEXT, "when, UTC"),
            column("victim", TEXT, "the procedure that the victim was in"),
            column("others", TEXT, "the procedures that the others were in"),
            column("isolation", TEXT, "isolation level of the victim"),
            column("resources", TEXT, '"brokerage.trade (ix_trade): S held, X wanted"'),
            column("graph", TEXT, "file in the record's folder; null after the first few deadlocks"),
        ]
    )

    def __init__(self, engine: Engine):
        super().__init__(engine)
        self._since: str | None = None
        self._first_file: str | None = None
        self._graphs: dict[str, str] = {}

    @property
    def sql(self) -> str:  # type: ignore[override]
        return sql_file.read(__package__, "deadlocks.tried")

    def sample(self, now: float) -> list[Row]:
        if self._since is None:
            self._since, self._first_file = self._moment()
        return []

    def finish(self) -> list[Row]:
        # The server was not reachable at any time.
        if self._since is None:
            return []
        _, last = self._moment()
        files = [_EVERY_FILE]
        # Read the newest file first, then the run's first, and the files between them last.
        if last and self._first_file:
            files = [last] if last == self._first_file else [last, self._first_file, _EVERY_FILE]
        deadline = time.monotonic() + READ_WITHIN_S
        # A set, because the pattern for all files reads the first two once more.
        events: set[tuple[str | None, str | None]] = set()
        for file in files:
            try:
                events.update(self._events(file, deadline - time.monotonic()))
            except CallFailed as failure:
                # Without older files something is known, without the newest nothing.
                if file == files[0]:
                    raise StallmarkError(f"the server refused the query ({failure.message})") from failure
                self.incomplete = f"older files of events were not read ({failure.message}): deadlocks may be missing"
        ordered = sorted(events, key=lambda event: event[0] or "")
        return [row for happened, event in ordered if (row := self._read(happened, event or ""))]

    def _events(self, file: str, within_s: float) -> list[tuple]:
        """Return the deadlocks in a file since the run's start, each with its time and its graph."""
        text = statement(self.name, self.major).format(since=self._since, file=file.replace("'", "''"))
        # A timeout of 0 would stand for the usual, longer one.
        return ask(self.engine, text, max(1, round(within_s)))

    def files(self) -> dict[str, str]:
        return self._graphs

    def _moment(self) -> tuple[str, str | None]:
        """Return the server's time, and the path of the file that it writes to, or None if unknown."""
        row = one_row(self.connection.rows(sql_file.read(__package__, "deadlocks.moment")), 2)
        if row["now"] is None:
            raise StallmarkError("the server did not report its time")
        return row["now"], _file_name(row["written"] or "")

    def _read(self, happened: str | None, text: str) -> Row | None:
        try:
            graph = ElementTree.fromstring(text).find(".//deadlock")
        except ElementTree.ParseError:  # SSMS's templates leave names in <…>: still a deadlock
            unknown = {"victim": "", "others": "", "isolation": "", "resources": "unreadable", "graph": None}
            return {"happened": happened} | unknown if "stallmark" in text else None
        if graph is None or not any(
            "stallmark" in (process.get("clientapp") or "") for process in graph.iter("process")
        ):
            return None
        name = None
        if len(self._graphs) < MOST_GRAPHS:
            name = f"deadlocks/{len(self._graphs) + 1:02d}.xdl"
            for process in graph.iter("process"):
                for personal in _PERSONAL:
                    process.attrib.pop(personal, None)
            self._graphs[name] = without_secrets(ElementTree.tostring(graph, encoding="unicode"))
        return {"happened": happened} | shape(graph) | {"graph": name}


def shape(graph: ElementTree.Element) -> dict[str, Any]:
    """Return the victim, the others and what they fought for in a deadlock graph."""
    processes = {process.get("id"): process for process in graph.iter("process")}
    victims = [element.get("id") for element in graph.iter("victimProcess")]
    victim = processes.get(victims[0]) if victims else None
    others = [_procedure(process) for key, process in processes.items() if key not in victims]
    resources = [_resource(resource) for resource in graph.find("resource-list") or []]
    return {
        "victim": "" if victim is None else _procedure(victim),
        "others": ", ".join(sorted(set(others))),
        "isolation": "" if victim is None else (victim.get("isolationlevel") or "").partition(" (")[0],
        "resources": "; ".join(sorted(resources)),
    }


def _procedure(process: ElementTree.Element) -> str:
    """Return the procedure that a process was in, "schema.name"; of a batch the server reports adhoc."""
    frame = process.find(".//frame")
    name = "" if frame is None else frame.get("procname") or ""
    return ".".join(name.split(".")[-2:])


def _file_name(target: str) -> str | None:
    try:
        file = ElementTree.fromstring(target).find(".//File")
    except ElementTree.ParseError:
        return None
    return None if file is None else file.get("name")


def _resource(resource: ElementTree.Element) -> str:
    # With optimized locking a transaction is locked, and the row or page of it stands inside (UnderlyingResource).
    locked = next((element for element in resource.iter() if element.get("objectname")), resource)
    name = ".".join((locked.get("objectname") or locked.tag).split(".")[-2:])
    index = f" ({locked.get('indexname')})" if locked.get("indexname") else ""
    held, wanted = (
        "/".join(sorted({lock.get("mode") or "" for lock in resource.iter(kind)})) for kind in ("owner", "waiter")
    )
    return f"{name}{index}: {held} held, {wanted} wanted"
