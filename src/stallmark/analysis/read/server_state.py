"""The state of SQL Server in a measured interval: its pool and memory, its log, tempdb, pending I/O, replicas."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stallmark.analysis.read.counters import Counters
from stallmark.analysis.read.interval import Interval
from stallmark.analysis.read.sample_times import gap_s, sample_times
from stallmark.analysis.read.server_summary import PoolContent, ReplicaState, ServerState
from stallmark.record.reader import Record
from stallmark.stats.thresholds import GAP_S

PAGE = 8192
TOP_CONTENTS = 6
NOTE_S = 60  # between the notes of the CPU

POOL, NODE, LOG, MEMORY = "Buffer Manager", "Buffer Node", "Databases", "Memory Manager"
LOCKS, GENERAL, REPLICA = "Locks", "General Statistics", "Database Replica"
LIFE = "Page life expectancy"
WANTED = (
    *((POOL, name) for name in (LIFE, "Database pages", "Page reads/sec", "Readahead pages/sec", "Page lookups/sec")),
    *((POOL, name) for name in ("Lazy writes/sec", "Checkpoint pages/sec", "Free list stalls/sec")),
    *((POOL, name) for name in ("Background writer pages/sec",)),
    *((LOG, name) for name in ("Log Flushes/sec", "Log Bytes Flushed/sec", "Log Flush Waits/sec", "Log Growths")),
    *((LOG, name) for name in ("Log Flush Write Time (ms)", "Log Flush Wait Time")),
    *((MEMORY, name) for name in ("Total Server Memory (KB)", "Target Server Memory (KB)")),
    *((MEMORY, name) for name in ("Stolen Server Memory (KB)", "Memory Grants Pending")),
    (LOCKS, "Number of Deadlocks/sec"),
    (GENERAL, "Processes blocked"),
    *((REPLICA, name) for name in ("Transaction Delay", "Mirrored Write Transactions/sec")),
)
REPLICA_COLUMNS = ("t", "replica", "commit_mode", "state", "send_queue_bytes", "redo_queue_bytes")

Line = tuple[np.ndarray, np.ndarray]
"""Times (s since run start) and values."""


@dataclass(frozen=True)
class StateViews:
    """The samples of one run; empty where the server has no such view. Performance counters are by object and name;
    further apart than `gap_s` some were missed."""

    counters: Mapping[tuple[str, str], Line] = field(default_factory=dict)
    gap_s: float = GAP_S
    log_used: Line | None = None
    log_kept_by: Sequence[tuple[float, str]] = ()
    tempdb_used: Line | None = None
    pending: Line | None = None
    runnable: Line | None = None
    cpu_busy: Line | None = None  # at the middle of each note's minute
    cpu_process: Line | None = None  # of the server's process, likewise
    contents: pa.Table | None = None
    node_life: Mapping[str, Line] = field(default_factory=dict)  # by NUMA node
    replicas: Sequence[Mapping[str, Any]] = ()  # rows of the table
    statistics: Sequence[tuple[float, str]] = ()  # when which was counted anew

    def summary(self, interval: Interval) -> ServerState | None:
        """Return the state over an interval; None where none of it was measured."""
        reads = self._rate(interval, POOL, "Page reads/sec")
        ahead = self._rate(interval, POOL, "Readahead pages/sec")
        flushes = self._rate(interval, LOG, "Log Flushes/sec")
        waits = self._rate(interval, LOG, "Log Flush Waits/sec")
        flushed = self._rate(interval, LOG, "Log Bytes Flushed/sec")
        total = self._values(interval, MEMORY, "Total Server Memory (KB)")
        target = self._values(interval, MEMORY, "Target Server Memory (KB)")
        lives = self._values(interval, POOL, LIFE)
        nodes = {node: seen for node, line in self.node_life.items() if len(seen := _inside(line, interval))}
        pages, stolen = (
            self._values(interval, *of) for of in ((POOL, "Database pages"), (MEMORY, "Stolen Server Memory (KB)"))
        )
        blocked = self._values(interval, GENERAL, "Processes blocked")
        grants = self._values(interval, MEMORY, "Memory Grants Pending")
        log_growths = self._values(interval, LOG, "Log Growths")
        delay = self._rate(interval, REPLICA, "Transaction Delay")
        delayed = self._rate(interval, REPLICA, "Mirrored Write Transactions/sec")
        deadlocks = self._rate(interval, LOCKS, "Number of Deadlocks/sec")
        used, tempdb = _inside(self.log_used, interval), _inside(self.tempdb_used, interval)
        pending, runnable = _inside(self.pending, interval), _inside(self.runnable, interval)
        busy, process = _inside(self.cpu_busy, interval), _inside(self.cpu_process, interval)
        kept = Counter(why for t, why in self.log_kept_by if interval.begin <= t <= interval.end and why != "NOTHING")
        state = ServerState(
            page_life_s=float(lives.min()) if len(lives) else None,
            node_life_s={node: float(seen.min()) for node, seen in sorted(nodes.items())} if len(nodes) > 1 else {},
            pool_bytes=round(float(pages.mean()) * PAGE) if len(pages) else None,
            stolen_bytes=round(float(stolen.mean()) * 1024) if len(stolen) else None,
            page_reads_per_s=reads,
            read_ahead_share=ahead / reads if reads and ahead is not None else None,
            page_lookups_per_s=self._rate(interval, POOL, "Page lookups/sec"),
            lazy_writes_per_s=self._rate(interval, POOL, "Lazy writes/sec"),
            checkpoint_pages_per_s=self._rate(interval, POOL, "Checkpoint pages/sec"),
            background_pages_per_s=self._rate(interval, POOL, "Background writer pages/sec"),
            free_list_stalls_per_s=self._rate(interval, POOL, "Free list stalls/sec"),
            memory_bytes=int(total[-1]) * 1024 if len(total) else None,
            memory_target_bytes=int(target[-1]) * 1024 if len(target) else None,
            log_flushes_per_s=flushes,
            log_bytes_per_flush=flushed / flushes if flushes and flushed is not None else None,
            log_write_ms=self._log_write_ms(interval, flushes),
            log_waits_per_s=waits,
            log_wait_ms=self._log_wait_ms(interval, waits),
            log_growths=int(log_growths[-1] - log_growths[0]) if len(log_growths) > 1 else None,
            log_used_share=float(used.max()) if len(used) else None,
            log_kept_by=kept.most_common(1)[0][0] if kept else None,
            tempdb_used_bytes=int(tempdb.max()) if len(tempdb) else None,
            pending_ios=float(pending.mean()) if len(pending) else None,
            runnable_tasks=float(runnable.mean()) if len(runnable) else None,
            deadlocks=None if deadlocks is None else round(deadlocks * interval.seconds),
            blocked=float(blocked.mean()) if len(blocked) else None,
            grants_pending=int(grants.max()) if len(grants) else None,
            commit_delay_ms=delay / delayed if delay is not None and delayed else None,
            delayed_per_s=delayed,
            replicas=_replica_states(self.replicas, interval),
            cpu_busy_share=float(busy.mean()) if len(busy) else None,
            cpu_process_share=float(process.mean()) if len(process) else None,
            contents=self._contents(interval),
            statistics_updated=sorted({name for t, name in self.statistics if interval.begin <= t < interval.end}),
        )
        return None if state == ServerState() else state

    def checkpoint_pages(self) -> Line | None:
        """Return the pages that checkpoints of all databases wrote since the server started, by sample."""
        return self.counters.get((POOL, "Checkpoint pages/sec"))

    def pool_pages(self, counter: str, seconds: int) -> np.ndarray | None:
        """Return the pages per second, NaN where they are not known, that a counter of the pool counts; None
        without it."""
        total = self._total(POOL, counter)
        return total.per_second(seconds)[counter] if total else None

    def _log_write_ms(self, interval: Interval, flushes_per_s: float | None) -> float | None:
        """Return the mean time of a flush: the counter holds the time of those completed in the second before."""
        spent = self._values(interval, LOG, "Log Flush Write Time (ms)")
        return float(spent.mean()) / flushes_per_s if len(spent) and flushes_per_s else None

    def _log_wait_ms(self, interval: Interval, waits_per_s: float | None) -> float | None:
        """Return the mean time that a commit waited for a flush.

        Microsoft does not say whether the counter is a total or of the last second: one that never falls is a total.
        """
        counter = "Log Flush Wait Time"
        spent, total = self._values(interval, LOG, counter), self._total(LOG, counter)
        if total is None or not len(spent) or not waits_per_s:
            return None
        rises = not np.any(total.breaks) and len(total.t) > 1 and np.ptp(total.totals[counter]) > 0
        per_s = self._rate(interval, LOG, counter) if rises else float(spent.mean())
        return None if per_s is None else per_s / waits_per_s

    def _total(self, thing: str, counter: str) -> Counters | None:
        line = self.counters.get((thing, counter))
        if line is None:
            return None
        t, values = line
        return Counters(t, {counter: values}, np.diff(values) < 0, np.diff(t) > self.gap_s)

    def _values(self, interval: Interval, thing: str, counter: str) -> np.ndarray:
        return _inside(self.counters.get((thing, counter)), interval)

    def _rate(self, interval: Interval, thing: str, counter: str) -> float | None:
        """Return the rise per second over the sampled part of the interval; None where the counter began again."""
        total = self._total(thing, counter)
        delta = total.over(interval.begin, interval.end) if total else None
        return None if delta is None or delta.broken else delta[counter] / delta.seconds

    def _contents(self, interval: Interval) -> list[PoolContent]:
        """Return the last sample of the buffer pool in the interval, by database and kind of page, most pages first."""
        if self.contents is None:
            return []
        times = self.contents["t"].to_numpy()
        times = times[(times >= interval.begin) & (times <= interval.end)]
        if not len(times):
            return []
        found: dict[tuple[str, str], Counter[str]] = {}
        for row in self.contents.filter(pc.equal(self.contents["t"], times.max())).to_pylist():
            sums = found.setdefault((row["database"] or "unknown", row["page_type"] or "unknown"), Counter())
            sums.update({name: row[name] or 0 for name in ("pages", "dirty", "read", "read_us")})
        most = sorted(found.items(), key=lambda item: (-item[1]["pages"], item[0]))[:TOP_CONTENTS]
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
    logs = list(_rows(record, "log_space", "t", "size_bytes", "used_bytes", "reuse_wait"))
    tempdb: Counter[float] = Counter()
    for row in _rows(record, "tempdb", "t", "size_bytes", "free_bytes"):
        if row["size_bytes"] is not None and row["free_bytes"] is not None:
            tempdb[row["t"]] += row["size_bytes"] - row["free_bytes"]
    pending: Counter[float] = Counter()
    for row in _rows(record, "pending_io", "t", "requests"):
        if row["requests"] is not None:
            pending[row["t"]] += row["requests"]
    contents = list(_rows(record, "buffer_pool", "t", "database", "page_type", "pages", "dirty", "read", "read_us"))
    times = sample_times(record, "performance")
    counters, node_life = _read_counters(record, times)
    cpu = _cpu(record)
    return StateViews(
        counters=counters,
        node_life=node_life,
        replicas=_read_replicas(record),
        gap_s=gap_s(record, "performance", times) if times is not None else GAP_S,
        log_used=_line(
            [
                (row["t"], row["used_bytes"] / row["size_bytes"])
                for row in logs
                if row["size_bytes"] and row["used_bytes"] is not None
            ]
        ),
        log_kept_by=[(row["t"], row["reuse_wait"] or "NOTHING") for row in logs],
        tempdb_used=_line(list(tempdb.items())),
        pending=_line(list(pending.items())),
        runnable=_line(
            [
                (row["t"], row["runnable"])
                for row in _rows(record, "schedulers", "t", "runnable")
                if row["runnable"] is not None
            ]
        ),
        cpu_busy=_line([(t, process if idle is None else 1 - idle) for t, process, idle in cpu]),
        cpu_process=_line([(t, process) for t, process, _ in cpu]),
        contents=pa.Table.from_pylist(contents) if contents else None,
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


def _read_counters(record: Record, times: np.ndarray | None) -> tuple[dict[tuple[str, str], Line], dict[str, Line]]:
    """Read the performance counters of the server and of our database, and the page life by NUMA node. The query asks
    for tempdb too, which is left out."""
    parts: dict[tuple[str, str, str], list[Line]] = {}
    begin = 0
    for batch in record.batches("performance", ["object", "counter", "instance", "value"]):
        if batch.num_columns < 4 or times is None:
            break
        t = pa.array(times[begin : begin + batch.num_rows])
        begin += batch.num_rows
        thing, name, instance = (batch.column(text).cast(pa.string()) for text in ("object", "counter", "instance"))
        values = batch.column("value").cast(pa.float64())
        wanted = pc.and_(pc.not_equal(instance, "tempdb"), pc.is_valid(values))
        by_node = pc.and_(wanted, pc.equal(thing, NODE))
        nodes = pc.unique(instance.filter(by_node)).to_pylist()
        for key, here in (
            *(((*key, ""), pc.and_(pc.equal(thing, key[0]), pc.equal(name, key[1]))) for key in WANTED),
            *(((NODE, LIFE, node), pc.and_(pc.equal(thing, NODE), pc.equal(instance, node))) for node in nodes),
        ):
            here = pc.and_(wanted, here)
            if pc.any(here).as_py():
                found = (column.filter(here).to_numpy(zero_copy_only=False) for column in (t, values))
                parts.setdefault(key, []).append((next(found), next(found)))
    lines = {
        key: (np.concatenate([t for t, _ in some]), np.concatenate([values for _, values in some]))
        for key, some in parts.items()
    }
    return (
        {(thing, name): line for (thing, name, node), line in lines.items() if not node},
        {node: line for (_, _, node), line in lines.items() if node},
    )


def _rows(record: Record, table: str, *columns: str) -> Iterator[dict]:
    """Yield the rows of a table; nothing where another server's table has the name and other columns."""
    for batch in record.batches(table, columns):
        if batch.num_columns == len(columns):
            yield from batch.to_pylist()


def _line(pairs: Sequence[tuple[float, float]]) -> Line:
    t, values = np.array(sorted(pairs), dtype=float).reshape(-1, 2).T
    return t, values


def _inside(line: Line | None, interval: Interval) -> np.ndarray:
    if line is None:
        return np.empty(0)
    t, values = line
    return values[(t >= interval.begin) & (t <= interval.end)]


def _read_replicas(record: Record) -> list[Mapping[str, Any]]:
    """Return the rows of the table; none where there is no availability group."""
    return [row for batch in record.batches("replicas", REPLICA_COLUMNS) for row in batch.to_pylist()]


def _replica_states(rows: Sequence[Mapping[str, Any]], interval: Interval) -> list[ReplicaState]:
    """Return how far every other replica of our database was behind in the interval."""
    inside = [row for row in rows if interval.begin <= row["t"] <= interval.end]
    found = []
    for name in sorted({row["replica"] for row in inside}):
        own = [row for row in inside if row["replica"] == name]
        send, redo = ([row[queue] for row in own if row[queue] is not None] for queue in REPLICA_COLUMNS[-2:])
        found.append(
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
    return found
