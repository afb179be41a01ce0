"""The state of SQL Server in a measured interval: its pool and memory, its log, tempdb, pending I/O."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stallmark.analysis.read.interval import Interval
from stallmark.analysis.read.server_summary import PoolContent, ServerState
from stallmark.record.reader import Record

PAGE = 8192
TOP_CONTENTS = 6
NOTE_S = 60  # between the notes of the CPU

POOL, LOG, MEMORY = "Buffer Manager", "Databases", "Memory Manager"
WANTED = (
    *((POOL, name) for name in ("Page life expectancy", "Page reads/sec", "Readahead pages/sec", "Page lookups/sec")),
    *((POOL, name) for name in ("Lazy writes/sec", "Checkpoint pages/sec", "Free list stalls/sec")),
    *((LOG, name) for name in ("Log Flushes/sec", "Log Bytes Flushed/sec")),
    *((MEMORY, name) for name in ("Total Server Memory (KB)", "Target Server Memory (KB)")),
)

Line = tuple[np.ndarray, np.ndarray]
"""Times (s since run start) and values."""


@dataclass(frozen=True)
class StateViews:
    """The samples of one run; empty where the server has no such view. Performance counters are by object and name."""

    counters: Mapping[tuple[str, str], Line] = field(default_factory=dict)
    log_used: Line | None = None
    log_kept_by: Sequence[tuple[float, str]] = ()
    tempdb_used: Line | None = None
    pending: Line | None = None
    runnable: Line | None = None
    cpu_busy: Line | None = None  # at the middle of each note's minute
    contents: pa.Table | None = None

    def summary(self, interval: Interval) -> ServerState | None:
        """Return the state over an interval; None where none of it was measured."""
        reads = self._rate(interval, POOL, "Page reads/sec")
        ahead = self._rate(interval, POOL, "Readahead pages/sec")
        flushes = self._rate(interval, LOG, "Log Flushes/sec")
        flushed = self._rate(interval, LOG, "Log Bytes Flushed/sec")
        total = self._values(interval, MEMORY, "Total Server Memory (KB)")
        target = self._values(interval, MEMORY, "Target Server Memory (KB)")
        lives = self._values(interval, POOL, "Page life expectancy")
        used, tempdb = _inside(self.log_used, interval), _inside(self.tempdb_used, interval)
        pending, runnable = _inside(self.pending, interval), _inside(self.runnable, interval)
        busy = _inside(self.cpu_busy, interval)
        kept = Counter(why for t, why in self.log_kept_by if interval.begin <= t <= interval.end and why != "NOTHING")
        state = ServerState(
            page_life_s=float(lives.min()) if len(lives) else None,
            page_reads_per_s=reads,
            read_ahead_share=ahead / reads if reads and ahead is not None else None,
            page_lookups_per_s=self._rate(interval, POOL, "Page lookups/sec"),
            lazy_writes_per_s=self._rate(interval, POOL, "Lazy writes/sec"),
            checkpoint_pages_per_s=self._rate(interval, POOL, "Checkpoint pages/sec"),
            free_list_stalls_per_s=self._rate(interval, POOL, "Free list stalls/sec"),
            memory_bytes=int(total[-1]) * 1024 if len(total) else None,
            memory_target_bytes=int(target[-1]) * 1024 if len(target) else None,
            log_flushes_per_s=flushes,
            log_bytes_per_flush=flushed / flushes if flushes and flushed is not None else None,
            log_used_share=float(used.max()) if len(used) else None,
            log_kept_by=kept.most_common(1)[0][0] if kept else None,
            tempdb_used_bytes=int(tempdb.max()) if len(tempdb) else None,
            pending_ios=float(pending.mean()) if len(pending) else None,
            runnable_tasks=float(runnable.mean()) if len(runnable) else None,
            cpu_busy_share=float(busy.mean()) if len(busy) else None,
            contents=self._contents(interval),
        )
        return None if state == ServerState() else state

    def checkpoint_pages(self) -> Line | None:
        """Return the pages that checkpoints of all databases wrote since the server started, by sample."""
        return self.counters.get((POOL, "Checkpoint pages/sec"))

    def _values(self, interval: Interval, thing: str, counter: str) -> np.ndarray:
        return _inside(self.counters.get((thing, counter)), interval)

    def _rate(self, interval: Interval, thing: str, counter: str) -> float | None:
        """Return the rise per second over the sampled part of the interval; None where the counter began again."""
        line = self.counters.get((thing, counter))
        if line is None or len(line[0]) < 2:
            return None
        t, values = line
        begin, end = max(interval.begin, t[0]), min(interval.end, t[-1])
        inside = (t[1:] > begin) & (t[:-1] < end)
        if end <= begin or np.any((np.diff(values) < 0) & inside):
            return None
        first, last = np.interp([begin, end], t, values)
        return float((last - first) / (end - begin))

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
        tempdb[row["t"]] += (row["size_bytes"] or 0) - (row["free_bytes"] or 0)
    pending: Counter[float] = Counter()
    for row in _rows(record, "pending_io", "t", "requests"):
        pending[row["t"]] += row["requests"] or 0
    contents = list(_rows(record, "buffer_pool", "t", "database", "page_type", "pages", "dirty", "read", "read_us"))
    return StateViews(
        counters=_read_counters(record),
        log_used=_line([(row["t"], row["used_bytes"] / row["size_bytes"]) for row in logs if row["size_bytes"]]),
        log_kept_by=[(row["t"], row["reuse_wait"] or "NOTHING") for row in logs],
        tempdb_used=_line(list(tempdb.items())),
        pending=_line(list(pending.items())),
        runnable=_line([(row["t"], row["runnable"] or 0) for row in _rows(record, "schedulers", "t", "runnable")]),
        cpu_busy=_cpu_busy(record),
        contents=pa.Table.from_pylist(contents) if contents else None,
    )


def _cpu_busy(record: Record) -> Line:
    """Return the busy share of the machine's CPUs by minute. The server notes the minute before; where idle time is not
    known, its own share is the lower bound."""
    notes = _rows(record, "cpu", "t", "age_s", "process_percent", "idle_percent")
    return _line(
        [
            (
                note["t"] - note["age_s"] - NOTE_S / 2,
                (note["process_percent"] if note["idle_percent"] is None else 100 - note["idle_percent"]) / 100,
            )
            for note in notes
        ]
    )


def _read_counters(record: Record) -> dict[tuple[str, str], Line]:
    """Read the performance counters of the server and of our database. The query asks for tempdb too, which is left
    out."""
    parts: dict[tuple[str, str], list[Line]] = {}
    for batch in record.batches("performance", ["t", "object", "counter", "instance", "value"]):
        if batch.num_columns < 5:
            break
        thing, name, instance = (batch.column(text).cast(pa.string()) for text in ("object", "counter", "instance"))
        ours = pc.not_equal(instance, "tempdb")
        for key in WANTED:
            here = batch.filter(pc.and_(ours, pc.and_(pc.equal(thing, key[0]), pc.equal(name, key[1]))))
            if here.num_rows:
                values = here.column("value").cast(pa.float64()).to_numpy(zero_copy_only=False)
                parts.setdefault(key, []).append((here.column("t").to_numpy(), values))
    return {
        key: (np.concatenate([t for t, _ in lines]), np.concatenate([values for _, values in lines]))
        for key, lines in parts.items()
    }


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
