"""The state of SQL Server in a measured interval: its pool and memory, its log, tempdb, pending I/O, replicas.

Values of the server as they were sampled, and totals among them.

The log of a database in a measured interval, by SQL Server's counters and samples: each has one of its own.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stallmark import format
from stallmark.analysis.read.counters import Counters
from stallmark.analysis.read.times import Interval, longest_apart_s, planned_interval_s, rows_with_times
from stallmark.format import Shown, in_lower_case, words
from stallmark.record.reader import Record


@dataclass(frozen=True)
class PoolContent:
    """Pages of one kind in the buffer pool, by a sample in the measured interval."""

    database: Annotated[str, words("database")]
    page_type: Annotated[str, words("pages", in_lower_case)]
    size_bytes: Annotated[int, Shown("in the pool", format.size)]
    dirty_bytes: Annotated[int, Shown("dirty", format.size)]
    read_ms: Annotated[float | None, Shown("mean read ms")]


@dataclass(frozen=True)
class ReplicaState:
    """Another replica of our database in the measured interval, as the primary saw it."""

    name: Annotated[str, words("replica")]  # "replica 1"
    synchronous: Annotated[bool, words("commits", lambda waited: "synchronous" if waited else "asynchronous")]
    synchronized_share: Annotated[float, Shown("synchronized", format.share)]  # share of samples in which it was
    send_queue_bytes: Annotated[float | None, Shown("mean", format.size, "Not sent")]
    most_send_queue_bytes: Annotated[int | None, Shown("most", format.size, "Not sent")]
    redo_queue_bytes: Annotated[float | None, Shown("mean", format.size, "Not redone")]
    most_redo_queue_bytes: Annotated[int | None, Shown("most", format.size, "Not redone")]


@dataclass(frozen=True)
class LogState:
    """The log of a database in the measured interval, or those of several together. Rates are per second."""

    flushes_per_s: Annotated[float | None, Shown("flushes/s")] = None
    bytes_per_flush: Annotated[float | None, Shown("KiB each", format.kib)] = None
    write_ms: Annotated[float | None, Shown("ms each")] = None
    waits_per_s: Annotated[float | None, Shown("waits/s")] = None  # commits that waited for a flush
    wait_ms: Annotated[float | None, Shown("ms each")] = None
    used_share: Annotated[float | None, Shown("used", format.share)] = None  # the most seen
    growths: Annotated[int | None, Shown("grown", format.count)] = None
    kept_by: Annotated[str | None, Shown("kept by", in_lower_case)] = None
    """The reason that most often kept the log from being reused."""


_POOL, _MEMORY, _SERVER, _COMMITS = "Buffer pool, pages", "Memory", "Server", "Commits"
OF_MEMORY, OF_THE_REST, OF_REPLICAS = (_POOL, _MEMORY), ("", _SERVER), (_COMMITS,)
"""The groups of the columns in each table of the state."""


@dataclass(frozen=True)
class ServerState:
    """The state of the server in the measured interval. Rates are per second; pages are of 8 KiB."""

    page_life_s: Annotated[float | None, Shown("page life s", group=_POOL)] = None  # the least seen
    node_life_s: Annotated[
        dict[str, float], Shown("by node s", lambda s: ", ".join(map(format.number, s.values())) or format.NONE, _POOL)
    ] = field(default_factory=dict)  # the same by NUMA node, where there are several
    page_lookups_per_s: Annotated[float | None, Shown("lookups/s", group=_POOL)] = None
    page_reads_per_s: Annotated[float | None, Shown("reads/s", group=_POOL)] = None
    read_ahead_share: Annotated[float | None, Shown("ahead", format.share, _POOL)] = None  # share of the pages read
    lazy_writes_per_s: Annotated[float | None, Shown("lazy writes/s", group=_POOL)] = None  # written to make room
    checkpoint_pages_per_s: Annotated[float | None, Shown("checkpoint/s", group=_POOL)] = None
    background_pages_per_s: Annotated[float | None, Shown("background/s", group=_POOL)] = None
    """Written for indirect checkpoints."""
    free_list_stalls_per_s: Annotated[float | None, Shown("free list stalls/s", group=_POOL)] = None
    memory_bytes: Annotated[int | None, Shown("total", format.size, _MEMORY)] = None  # last value of the interval
    memory_target_bytes: Annotated[int | None, Shown("target", format.size, _MEMORY)] = None
    pool_bytes: Annotated[int | None, Shown("pool", format.size, _MEMORY)] = None
    """The part of the memory that held pages of databases; mean of the samples."""
    stolen_bytes: Annotated[int | None, Shown("stolen", format.size, _MEMORY)] = None
    """The part that was used for anything else; mean of the samples."""
    log: LogState = field(default_factory=LogState)  # all our databases together; used: the fullest
    logs: dict[str, LogState] = field(default_factory=dict)  # keys: database, if several are ours
    tempdb_used_bytes: Annotated[int | None, Shown("tempdb used", format.size)] = None  # the most seen
    pending_ios: Annotated[float | None, Shown("I/Os pending")] = None  # mean of the samples
    runnable_tasks: Annotated[float | None, Shown("tasks runnable")] = None  # mean of the samples
    deadlocks: Annotated[int | None, Shown("deadlocks", format.count, _SERVER)] = None
    blocked: Annotated[float | None, Shown("blocked", group=_SERVER)] = None
    """Sessions that waited for another's lock; mean of the samples."""
    grants_pending: Annotated[int | None, Shown("grants pending", format.count, _SERVER)] = None
    """Queries that waited for memory; the most seen."""
    cpu_busy_share: float | None = None  # the server's machine, by its notes of every minute
    cpu_process_share: float | None = None  # the same CPUs, used by the server's process
    delayed_per_s: Annotated[float | None, Shown("delayed/s", group=_COMMITS)] = None
    """Commits that waited for replicas."""
    commit_delay_ms: Annotated[float | None, Shown("ms each", group=_COMMITS)] = None
    """Their mean wait; None if no commit waited."""
    replicas: list[ReplicaState] = field(default_factory=list)
    contents: list[PoolContent] = field(default_factory=list)
    statistics_updated: list[str] = field(default_factory=list)  # table and name

    @property
    def hit_share(self) -> float | None:
        """Return the share of page requests that the pool answered, other databases' included; a page that is read
        ahead counts as read."""
        if not self.page_lookups_per_s or self.page_reads_per_s is None:
            return None
        return max(0.0, 1 - self.page_reads_per_s / self.page_lookups_per_s)


Line = tuple[np.ndarray, np.ndarray]
"""Times (s since run start) and values."""


def line(pairs: Sequence[tuple[float, float]]) -> Line:
    t, values = np.array(sorted(pairs), dtype=float).reshape(-1, 2).T
    return t, values


def inside(samples: Line | None, interval: Interval) -> np.ndarray:
    """Return the values within an interval."""
    if samples is None:
        return np.empty(0)
    t, values = samples
    return values[(t >= interval.begin) & (t <= interval.end)]


def total(samples: Line, name: str, interval_s: float) -> Counters:
    """Return samples of a total, planned every `interval_s`, as counters of one name."""
    t, values = samples
    return Counters(t, {name: values}, np.diff(values) < 0, np.diff(t) > longest_apart_s(t, interval_s))


def rate(samples: Line | None, interval_s: float, interval: Interval) -> float | None:
    """Return the increment of a total per second over the sampled part of an interval, or None if it was reset."""
    if samples is None:
        return None
    delta = total(samples, "", interval_s).delta(interval.begin, interval.end)
    return None if delta is None or delta.broken else delta[""] / delta.seconds


def added_up(lines: Sequence[Line]) -> Line:
    """Return the sum of several lines where all were sampled."""
    t = reduce(np.intersect1d, (t for t, _ in lines))
    return t, np.sum([values[np.isin(own, t)] for own, values in lines], axis=0)


FLUSHES, FLUSHED, WAITS, GROWTHS = "Log Flushes/sec", "Log Bytes Flushed/sec", "Log Flush Waits/sec", "Log Growths"
WRITE_TIME, WAIT_TIME = "Log Flush Write Time (ms)", "Log Flush Wait Time"
OF_LOG = (FLUSHES, FLUSHED, WAITS, GROWTHS, WRITE_TIME, WAIT_TIME)


@dataclass(frozen=True)
class LogViews:
    """The samples of one log, or the sums of several: performance counters by name, planned every
    `interval_s`; the share in use; what kept it from being reused, by when."""

    counters: Mapping[str, Line] = field(default_factory=dict)
    interval_s: float = 1.0
    used: Line | None = None
    kept_by: Sequence[tuple[float, str]] = ()

    def summary(self, interval: Interval) -> LogState:
        """Return the state over an interval."""
        flushes, waits, flushed = (self._rate(interval, name) for name in (FLUSHES, WAITS, FLUSHED))
        growths, used = self._values(interval, GROWTHS), inside(self.used, interval)
        kept = Counter(
            reason for t, reason in self.kept_by if interval.begin <= t <= interval.end and reason != "NOTHING"
        )
        return LogState(
            flushes_per_s=flushes,
            bytes_per_flush=flushed / flushes if flushes and flushed is not None else None,
            write_ms=self._write_ms(interval, flushes),
            waits_per_s=waits,
            wait_ms=self._wait_ms(interval, waits),
            growths=int(growths[-1] - growths[0]) if len(growths) > 1 else None,
            used_share=float(used.max()) if len(used) else None,
            kept_by=kept.most_common(1)[0][0] if kept else None,
        )

    def _write_ms(self, interval: Interval, flushes_per_s: float | None) -> float | None:
        """Return the mean time of a flush: the counter holds the time of the flushes completed in the second before."""
        spent = self._values(interval, WRITE_TIME)
        return float(spent.mean()) / flushes_per_s if len(spent) and flushes_per_s else None

    def _wait_ms(self, interval: Interval, waits_per_s: float | None) -> float | None:
        """Return the mean time that a commit waited for a flush. Microsoft does not document whether the counter is a
        total or belongs to the last second: one that never falls is a total."""
        samples, spent = self.counters.get(WAIT_TIME), self._values(interval, WAIT_TIME)
        if samples is None or not len(spent) or not waits_per_s:
            return None
        t, values = samples
        rises = not np.any(total(samples, WAIT_TIME, self.interval_s).breaks) and len(t) > 1 and np.ptp(values) > 0
        per_s = self._rate(interval, WAIT_TIME) if rises else float(spent.mean())
        return None if per_s is None else per_s / waits_per_s

    def _values(self, interval: Interval, name: str) -> np.ndarray:
        return inside(self.counters.get(name), interval)

    def _rate(self, interval: Interval, name: str) -> float | None:
        return rate(self.counters.get(name), self.interval_s, interval)


PAGE = 8192
TOP_CONTENTS = 6
NOTE_S = 60  # between the notes of the CPU

POOL, NODE, LOG, MEMORY = "Buffer Manager", "Buffer Node", "Databases", "Memory Manager"
LOCKS, GENERAL, REPLICA = "Locks", "General Statistics", "Database Replica"
LIFE = "Page life expectancy"
RATES = {
    "page_lookups_per_s": (POOL, "Page lookups/sec"),
    "page_reads_per_s": (POOL, "Page reads/sec"),
    "lazy_writes_per_s": (POOL, "Lazy writes/sec"),
    "checkpoint_pages_per_s": (POOL, "Checkpoint pages/sec"),
    "background_pages_per_s": (POOL, "Background writer pages/sec"),
    "free_list_stalls_per_s": (POOL, "Free list stalls/sec"),
    "delayed_per_s": (REPLICA, "Mirrored Write Transactions/sec"),
}
"""The rates of the server's state, each by the object and the name of its counter."""
SAMPLES: Mapping[str, tuple[str, str, Callable[[np.ndarray], float]]] = {
    "page_life_s": (POOL, LIFE, lambda values: float(values.min())),
    "pool_bytes": (POOL, "Database pages", lambda values: round(float(values.mean()) * PAGE)),
    "stolen_bytes": (MEMORY, "Stolen Server Memory (KB)", lambda values: round(float(values.mean()) * 1024)),
    "memory_bytes": (MEMORY, "Total Server Memory (KB)", lambda values: int(values[-1]) * 1024),
    "memory_target_bytes": (MEMORY, "Target Server Memory (KB)", lambda values: int(values[-1]) * 1024),
    "blocked": (GENERAL, "Processes blocked", lambda values: float(values.mean())),
    "grants_pending": (MEMORY, "Memory Grants Pending", lambda values: int(values.max())),
}
"""The figures of the server's state that are computed of samples, each by object and name of its counter."""
AHEAD, DELAY = (POOL, "Readahead pages/sec"), (REPLICA, "Transaction Delay")
DEADLOCKS = (LOCKS, "Number of Deadlocks/sec")
WANTED = (
    *RATES.values(),
    *((thing, name) for thing, name, _ in SAMPLES.values()),
    *(AHEAD, DELAY, DEADLOCKS),
    *((LOG, name) for name in OF_LOG),
)
OF_DATABASES = (LOG, REPLICA)
"""Objects that have an instance for each database."""
CONTENTS = ("t", "database", "page_type", "pages", "dirty", "read", "read_us")
REPLICA_COLUMNS = ("t", "replica", "commit_mode", "state", "send_queue_bytes", "redo_queue_bytes")


@dataclass(frozen=True)
class StateViews:
    """The samples of one run; empty if the server has no such view. Performance counters are by object and name,
    planned every `interval_s`."""

    counters: Mapping[tuple[str, str], Line] = field(default_factory=dict)
    interval_s: float = 1.0
    log: LogViews = field(default_factory=LogViews)  # all our databases together
    logs: Mapping[str, LogViews] = field(default_factory=dict)  # keys: database, if several are ours
    tempdb_used: Line | None = None
    pending: Line | None = None
    runnable: Line | None = None
    cpu_busy: Line | None = None  # the middle of each note's minute
    cpu_process: Line | None = None  # the server's process, with the same times
    contents: pa.Table | None = None
    node_life: Mapping[str, Line] = field(default_factory=dict)  # keys: NUMA node
    replicas: Sequence[Mapping[str, Any]] = ()  # rows of the table
    statistics: Sequence[tuple[float, str]] = ()  # when which was counted anew

    def summary(self, interval: Interval) -> ServerState | None:
        """Return the state over an interval, or None if nothing was measured."""
        figures: dict[str, Any] = {name: self._rate(interval, *counter) for name, counter in RATES.items()}
        for name, (thing, counter, take) in SAMPLES.items():
            values = inside(self.counters.get((thing, counter)), interval)
            figures[name] = take(values) if len(values) else None
        ahead, delay, deadlocks = (self._rate(interval, *counter) for counter in (AHEAD, DELAY, DEADLOCKS))
        reads, delayed = figures["page_reads_per_s"], figures["delayed_per_s"]
        nodes = {node: seen for node, line in self.node_life.items() if len(seen := inside(line, interval))}
        tempdb = inside(self.tempdb_used, interval)
        pending, runnable = inside(self.pending, interval), inside(self.runnable, interval)
        busy, process = inside(self.cpu_busy, interval), inside(self.cpu_process, interval)
        state = ServerState(
            **figures,
            node_life_s={node: float(seen.min()) for node, seen in sorted(nodes.items())} if len(nodes) > 1 else {},
            read_ahead_share=ahead / reads if reads and ahead is not None else None,
            log=self.log.summary(interval),
            logs={name: log.summary(interval) for name, log in sorted(self.logs.items())},
            tempdb_used_bytes=int(tempdb.max()) if len(tempdb) else None,
            pending_ios=float(pending.mean()) if len(pending) else None,
            runnable_tasks=float(runnable.mean()) if len(runnable) else None,
            deadlocks=None if deadlocks is None else round(deadlocks * interval.seconds),
            commit_delay_ms=delay / delayed if delay is not None and delayed else None,
            replicas=_replica_states(self.replicas, interval),
            cpu_busy_share=float(busy.mean()) if len(busy) else None,
            cpu_process_share=float(process.mean()) if len(process) else None,
            contents=self._contents(interval),
            statistics_updated=sorted({name for t, name in self.statistics if interval.begin <= t < interval.end}),
        )
        # A state without any value would show an empty row.
        return None if state == ServerState() else state

    def checkpoint_pages(self) -> Line | None:
        """Return the pages that checkpoints of all databases wrote since the server started, by sample."""
        return self.counters.get((POOL, "Checkpoint pages/sec"))

    def pool_pages(self, counter: str, seconds: int) -> np.ndarray | None:
        """Return the pages per second, NaN if they are not known, that a counter of the pool counts; None without
        it."""
        pages = self.counters.get((POOL, counter))
        return total(pages, counter, self.interval_s).per_second(seconds)[counter] if pages else None

    def _rate(self, interval: Interval, thing: str, counter: str) -> float | None:
        return rate(self.counters.get((thing, counter)), self.interval_s, interval)

    def _contents(self, interval: Interval) -> list[PoolContent]:
        """Return the last sample of the buffer pool in the interval, by database and kind of page, most pages first."""
        if self.contents is None:
            return []
        times = self.contents["t"].to_numpy()
        times = times[(times >= interval.begin) & (times <= interval.end)]
        if not len(times):
            return []
        pages: dict[tuple[str, str], Counter[str]] = {}
        for row in self.contents.filter(pc.equal(self.contents["t"], times.max())).to_pylist():
            sums = pages.setdefault((row["database"] or "unknown", row["page_type"] or "unknown"), Counter())
            sums.update({name: row[name] or 0 for name in ("pages", "dirty", "read", "read_us")})
        most = sorted(pages.items(), key=lambda item: (-item[1]["pages"], item[0]))[:TOP_CONTENTS]
        return [
            PoolContent(
                database=database,
                page_type=page_type,
                size_bytes=sums["pages"] * PAGE,
                dirty_bytes=sums["dirty"] * PAGE,
                read_ms=sums["read_us"] / sums["read"] / 1000 if sums["read"] else None,
            )
            for (database, page_type), sums in most
        ]


def read_state_views(record: Record) -> StateViews:
    tempdb: Counter[float] = Counter()
    for row in _rows(record, "tempdb", "t", "size_bytes", "free_bytes"):
        if row["size_bytes"] is not None and row["free_bytes"] is not None:
            tempdb[row["t"]] += row["size_bytes"] - row["free_bytes"]
    pending: Counter[float] = Counter()
    for row in _rows(record, "pending_io", "t", "requests"):
        if row["requests"] is not None:
            pending[row["t"]] += row["requests"]
    contents = [batch for batch in record.batches("buffer_pool", CONTENTS) if batch.num_columns == len(CONTENTS)]
    counters, by_database, node_life = _read_counters(record)
    interval_s = planned_interval_s(record, "performance")
    log, logs = _read_logs(record, counters, by_database, interval_s)
    cpu = _cpu(record)
    return StateViews(
        counters=counters,
        node_life=node_life,
        replicas=list(record.rows("replicas", REPLICA_COLUMNS)),
        interval_s=interval_s,
        log=log,
        logs=logs,
        tempdb_used=line(list(tempdb.items())),
        pending=line(list(pending.items())),
        runnable=line(
            [
                (row["t"], row["runnable"])
                for row in _rows(record, "schedulers", "t", "runnable")
                if row["runnable"] is not None
            ]
        ),
        cpu_busy=line([(t, process if idle is None else 1 - idle) for t, process, idle in cpu]),
        cpu_process=line([(t, process) for t, process, _ in cpu]),
        contents=pa.Table.from_batches(contents) if contents else None,
        statistics=[
            (row["t"] - row["age_s"], f"{row['table']}: {row['statistic']}")
            for row in _rows(record, "statistics_updates", "t", "table", "statistic", "age_s")
            if row["age_s"] is not None
        ],
    )


def _cpu(record: Record) -> list[tuple[float, float, float | None]]:
    """Return the shares of the machine's CPUs, by minute: of the server's process, and idle. The server notes the
    minute before; where idle time is not known, the process is the lower bound of what was busy."""
    return [
        (
            note["t"] - note["age_s"] - NOTE_S / 2,
            note["process_percent"] / 100,
            None if note["idle_percent"] is None else note["idle_percent"] / 100,
        )
        for note in _rows(record, "cpu", "t", "age_s", "process_percent", "idle_percent")
    ]


Counted = dict[tuple[str, str], Line]
"""Performance counters by object and name."""


def _read_counters(record: Record) -> tuple[Counted, Mapping[str, Mapping[str, Line]], Mapping[str, Line]]:
    """Read the performance counters of the server and of our databases, these added up and their logs' by database too,
    and the page life by NUMA node. The query asks for tempdb too, which is left out."""
    parts: dict[tuple[str, str, str], list[Line]] = {}
    columns = ["object", "counter", "instance", "value"]
    for times, batch in rows_with_times(record, "performance", columns):
        # A record of an older version lacks the columns in all its batches.
        if not set(columns) <= set(batch.schema.names):
            break
        t = pa.array(times)
        thing, name, instance = (batch.column(text).cast(pa.string()) for text in ("object", "counter", "instance"))
        values = batch.column("value").cast(pa.float64(), safe=False)
        wanted = pc.and_(pc.not_equal(instance, "tempdb"), pc.is_valid(values))
        apart = {
            counter_name: pc.unique(instance.filter(pc.and_(wanted, pc.equal(thing, counter_name)))).to_pylist()
            for counter_name in (*OF_DATABASES, NODE)
        }
        for object_name, counter in (*WANTED, (NODE, LIFE)):
            counted = pc.and_(wanted, pc.and_(pc.equal(thing, object_name), pc.equal(name, counter)))
            for instance_name in apart.get(object_name, [""]):
                here = pc.and_(counted, pc.equal(instance, instance_name)) if object_name in apart else counted
                if pc.any(here).as_py():
                    arrays = (column.filter(here).to_numpy(zero_copy_only=False) for column in (t, values))
                    parts.setdefault((object_name, counter, instance_name), []).append((next(arrays), next(arrays)))
    lines = {
        key: (np.concatenate([t for t, _ in chunks]), np.concatenate([values for _, values in chunks]))
        for key, chunks in parts.items()
    }
    counters: Counted = {
        (object_name, counter): samples for (object_name, counter, _), samples in lines.items() if object_name != NODE
    }
    for object_name, counter in counters:
        if object_name in OF_DATABASES:
            counters[object_name, counter] = added_up(
                [lines[key] for key in lines if key[:2] == (object_name, counter)]
            )
    by_database: dict[str, dict[str, Line]] = {}
    for (object_name, counter, database), samples in lines.items():
        if object_name == LOG:
            by_database.setdefault(database, {})[counter] = samples
    return (
        counters,
        by_database,
        {node: samples for (object_name, _, node), samples in lines.items() if object_name == NODE},
    )


def _read_logs(
    record: Record, counters: Counted, by_database: Mapping[str, Mapping[str, Line]], interval_s: float
) -> tuple[LogViews, dict[str, LogViews]]:
    """Return the samples of all our logs together, and by database where several are ours."""
    rows = list(_rows(record, "log_space", "t", "size_bytes", "used_bytes", "reuse_wait"))
    databases = [row["database"] for row in _rows(record, "log_space", "database")] or [None] * len(rows)

    def log(lines: Mapping[str, Line], here: Sequence[Mapping[str, Any]]) -> LogViews:
        used = [
            (row["t"], row["used_bytes"] / row["size_bytes"])
            for row in here
            if row["size_bytes"] and row["used_bytes"] is not None
        ]
        return LogViews(lines, interval_s, line(used), [(row["t"], row["reuse_wait"] or "NOTHING") for row in here])

    every = log({counter: samples for (object_name, counter), samples in counters.items() if object_name == LOG}, rows)
    names = {name for name in databases if name} | (by_database.keys() if len(by_database) > 1 else set())
    here = {name: [row for row, database in zip(rows, databases, strict=True) if database == name] for name in names}
    return every, {name: log(by_database.get(name, {}), rows_of_database) for name, rows_of_database in here.items()}


def _rows(record: Record, table: str, *columns: str) -> Iterator[dict]:
    """Yield the rows of a table; none if it is another server's table of that name with other columns."""
    for batch in record.batches(table, columns):
        if batch.num_columns == len(columns):
            yield from batch.to_pylist()


def _replica_states(rows: Sequence[Mapping[str, Any]], interval: Interval) -> list[ReplicaState]:
    """Return the lag of every other replica of our database in the interval."""
    inside = [row for row in rows if interval.begin <= row["t"] <= interval.end]
    replicas = []
    for name in sorted({row["replica"] for row in inside}):
        own = [row for row in inside if row["replica"] == name]
        send, redo = ([row[queue] for row in own if row[queue] is not None] for queue in REPLICA_COLUMNS[-2:])
        replicas.append(
            ReplicaState(
                name,
                own[-1]["commit_mode"] == "SYNCHRONOUS_COMMIT",
                sum(row["state"] == "SYNCHRONIZED" for row in own) / len(own),
                sum(send) / len(send) if send else None,
                max(send, default=None),
                sum(redo) / len(redo) if redo else None,
                max(redo, default=None),
            )
        )
    return replicas
