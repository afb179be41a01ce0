"""The reads and writes of each load within an interval, and of all else on the server.

The server counts them by session, and the sessions of a load have a name of their own. The counts of a session are lost
when it ends. So figures cover the longest part of the interval in which none of a load's sessions ended, and are
missing if that is less than half of the interval.

The I/O of raw loads: per second, and in the measured interval of each step, by cell and over all cells.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from stallmark.analysis.read.counters import Counters, read_counters
from stallmark.analysis.read.server_io import COUNTS, DATA, TEMP, ServerIo, by_process
from stallmark.analysis.read.throughput import Latencies
from stallmark.analysis.read.times import Interval, Span
from stallmark.record.manifest.workload import application
from stallmark.record.reader import Record
from stallmark.record.table_file import readable
from stallmark.stats.thresholds import FOREIGN_FLOOR_PER_S, REPORT_DELAY_S

LEAST_SHARE = 0.5  # minimum share of the interval that figures must cover to stand for it
OTHER_SESSIONS = "other sessions"
_SESSION = "client backend"  # name in pg_stat_io of a session's process


@dataclass(frozen=True)
class LoadIo:
    """Physical reads and writes of data and temporary tables in a part of a run. Growing a file counts as writing."""

    begin: float  # seconds since run start
    end: float  # seconds since run start
    reads: float
    writes: float
    read_bytes: float | None  # None if the server counts no bytes by session
    write_bytes: float | None

    @property
    def seconds(self) -> float:
        return self.end - self.begin

    @property
    def reads_per_s(self) -> float:
        return self.reads / self.seconds


@dataclass(frozen=True)
class IoByLoad:
    """The server's I/O within an interval, by load. If a load is unknown, the rest is unknown too."""

    loads: Mapping[str, LoadIo | None]  # None for an unknown load
    server: LoadIo | None  # all data and temporary files, over the time in which all loads are known
    others: Mapping[str, float] | None
    """Reads outside the loads' sessions, by kind of process if the server reports it. Parallel workers are "background
    worker", whatever session they read for."""

    @property
    def loads_share(self) -> float | None:
        """Return the loads' share of the server's reads, or None if unknown, or if reads are so few that a moment
        decides the share."""
        if self.server is None or self.others is None or self.server.reads_per_s <= FOREIGN_FLOOR_PER_S:
            return None
        return 1 - sum(self.others.values()) / self.server.reads


class _Stretch(NamedTuple):
    begin: float
    end: float


class LoadSessions:
    """The I/O that the sessions of each load counted within some intervals."""

    def __init__(self, record: Record, intervals: Sequence[Interval]):
        delay_s = REPORT_DELAY_S.get(record.manifest.server.product, 0.0)
        counted = read_counters(record, "load_io", COUNTS, "application", "application", delay_s)
        names = {load.name: application(load.kind, load.name) for load in record.manifest.loads if load.kind != "raw"}
        of_load = {load: counted[name] for load, name in names.items() if name in counted}
        self._record, self._intervals = record, intervals
        self._loads = [
            {
                load: counters
                for load, counters in of_load.items()
                if np.any((counters.t >= interval.begin) & (counters.t <= interval.end))
            }
            for interval in intervals
        ]
        self._known = [_all_known(loads, interval) for loads, interval in zip(self._loads, intervals, strict=True)]

    @property
    def stretches(self) -> list[_Stretch]:
        """Return the times within which the server's I/O is to be read."""
        return [stretch for stretch in self._known if stretch]

    def io_by_load(self, server: ServerIo) -> dict[Span, IoByLoad | None]:
        """Return the I/O of each interval by load, or None if the server does not count it by session. A load without a
        session in the interval rests, and is left out."""
        processes = _processes(self._record, server)
        return {
            interval.span: _io_by_load(loads, interval, stretch, processes) if loads else None
            for loads, interval, stretch in zip(self._loads, self._intervals, self._known, strict=True)
        }


def _all_known(of_load: Mapping[str, Counters], interval: Interval) -> _Stretch | None:
    """Return the time in which all loads are known, or None if it is too short."""
    longest = [_longest(counters, interval) for counters in of_load.values()]
    known = [stretch for stretch in longest if stretch]
    if not known or len(known) < len(longest):
        return None
    begin, end = max(stretch.begin for stretch in known), min(stretch.end for stretch in known)
    return _Stretch(begin, end) if end - begin >= LEAST_SHARE * interval.seconds else None


def _io_by_load(
    of_load: Mapping[str, Counters],
    interval: Interval,
    stretch: _Stretch | None,
    processes: Sequence[tuple[str, Counters]],
) -> IoByLoad:
    loads = {load: _longest(counters, interval) for load, counters in of_load.items()}
    if stretch is None:
        return IoByLoad(loads, None, None)
    begin, end = stretch
    of_process: dict[str, list[LoadIo]] = {}
    for process, counters in processes:
        if io := _io_between(counters, begin, end):
            of_process.setdefault(process, []).append(io)
    if _SESSION not in of_process:
        return IoByLoad(loads, None, None)
    ours = sum(io.reads for counters in of_load.values() if (io := _io_between(counters, begin, end)))
    reads = {process: sum(part.reads for part in parts) for process, parts in of_process.items()}
    others = {OTHER_SESSIONS: reads.pop(_SESSION) - ours} | {name: count for name, count in reads.items() if count}
    return IoByLoad(loads, _sum([part for parts in of_process.values() for part in parts], begin, end), others)


def _processes(record: Record, server: ServerIo) -> list[tuple[str, Counters]]:
    """Return the counters of data and temporary files by kind of process; all are under sessions if the server does not
    separate kinds."""
    if processes := by_process(record, server, DATA, TEMP):
        return list(processes.items())
    return [(_SESSION, server.kinds[kind]) for kind in ("data", "temp") if kind in server.kinds]


def _longest(counters: Counters, interval: Interval) -> LoadIo | None:
    """Return the I/O over the longest part of an interval in which no count was lost, or None if it is too short."""
    t = counters.t
    lost = np.flatnonzero(counters.breaks & (t[1:] > interval.begin) & (t[:-1] < interval.end))
    edges = [interval.begin, *(float(t[index]) for gap in lost for index in (gap, gap + 1)), interval.end]
    parts = [io for part in zip(edges[::2], edges[1::2], strict=True) if (io := _io_between(counters, *part))]
    longest = max(parts, key=lambda part: part.seconds, default=None)
    return longest if longest and longest.seconds >= LEAST_SHARE * interval.seconds else None


def _io_between(counters: Counters, begin: float, end: float) -> LoadIo | None:
    delta = counters.delta(begin, end)
    if delta is None or delta.broken or not {"reads", "writes"} <= delta.values.keys():
        return None
    grown, grown_bytes = delta.values.get("extends") or 0.0, delta.values.get("extend_bytes") or 0.0
    written = delta.values.get("write_bytes")
    return LoadIo(
        delta.begin,
        delta.end,
        reads=delta["reads"],
        writes=delta["writes"] + grown,
        read_bytes=delta.values.get("read_bytes"),
        write_bytes=None if written is None else written + grown_bytes,
    )


def _sum(parts: Sequence[LoadIo], begin: float, end: float) -> LoadIo:
    def total(values: list[float | None]) -> float | None:
        known = [value for value in values if value is not None]
        return sum(known) if len(known) == len(values) else None

    return LoadIo(
        begin,
        end,
        reads=sum(part.reads for part in parts),
        writes=sum(part.writes for part in parts),
        read_bytes=total([part.read_bytes for part in parts]),
        write_bytes=total([part.write_bytes for part in parts]),
    )


TABLE = "raw_io"
RAW_COUNTS = ("reads", "read_bytes", "writes", "write_bytes", "latency_us")
_HISTOGRAM = ("latency_gaps", "latency_counts")
_WAITING = ("waiting_gaps", "waiting_counts")


@dataclass(frozen=True)
class RawFigures:
    """The I/O of a raw load in a measured interval. Percentiles are None if the sample is too small.

    Times of a load with a rate of I/Os are from when each was due. An I/O that had not ended at the end of the interval
    is included, with the time for which it had waited by then.
    """

    seen_s: int
    """The seconds in which the load ran, which rates refer to: fewer than the interval has if it ended early."""
    reads: int
    writes: int
    iops: float
    mb_per_s: float  # 10^6 bytes
    mean_ms: float | None
    latency_ms: dict[str, float | None]  # keys "p50" "p90" "p95" "p99" "p99.9" "max"
    waiting: int | None = None
    """The number of I/Os that had not ended. None if it was not recorded, as for other loads and in older records,
    whose times start when each I/O was issued."""


class _Cell:
    """A cell of a raw load in a measured interval: the seconds in which it ran, its sums, and its latencies."""

    def __init__(self) -> None:
        self.seen: set[int] = set()
        self.total = np.zeros(len(RAW_COUNTS), dtype=np.int64)
        self.latencies = Latencies.empty()
        self.waiting: Latencies | None = None  # in the last second

    def add(self, batch: pa.RecordBatch, rows: np.ndarray) -> None:
        self.seen.update(batch.column("second").to_numpy()[rows].tolist())
        self.total += [batch.column(name).to_numpy()[rows].sum() for name in RAW_COUNTS]
        self.latencies.merge(*(batch.column(name).take(pa.array(rows)) for name in _HISTOGRAM))
        self.waiting = _last_waiting(batch, rows) or self.waiting


def read_raw_io(record: Record, intervals: Sequence[Interval]) -> dict[int, dict[str, RawFigures]]:
    """Return the figures of the raw loads that did I/O, by interval and load."""
    cells: dict[tuple[int, str], dict[int, _Cell]] = {}
    for batch in record.batches(TABLE, ["second", "load", "cell", *RAW_COUNTS, *_HISTOGRAM, *_WAITING]):
        second = batch.column("second").to_numpy()
        for (load, number), rows in _by_cell(batch):
            for interval in intervals:
                inside = rows[(second[rows] >= interval.begin) & (second[rows] < interval.end)]
                if len(inside):
                    cell = cells.setdefault((interval.index, load), {}).setdefault(number, _Cell())
                    with readable(record.folder / TABLE):
                        cell.add(batch, inside)
    raw: dict[int, dict[str, RawFigures]] = {}
    for (index, load), of_load in cells.items():
        raw.setdefault(index, {})[load] = _raw_figures(list(of_load.values()))
    return raw


def _raw_figures(cells: Sequence[_Cell]) -> RawFigures:
    """Return the figures of all cells of a load. Times include those of I/Os that had not ended."""
    waiting = [cell.waiting for cell in cells if cell.waiting]
    latencies = Latencies.empty()
    for part in (*(cell.latencies for cell in cells), *waiting):
        latencies.add(part)
    total = [dict(zip(RAW_COUNTS, cell.total.tolist(), strict=True)) for cell in cells]
    seen_s = [len(cell.seen) for cell in cells]
    spent_ms = sum(cell["latency_us"] for cell in total) / 1000 + sum(part.sum_ms() for part in waiting)
    return RawFigures(
        seen_s=min(seen_s),
        reads=sum(cell["reads"] for cell in total),
        writes=sum(cell["writes"] for cell in total),
        iops=sum((cell["reads"] + cell["writes"]) / seconds for cell, seconds in zip(total, seen_s, strict=True)),
        mb_per_s=sum(
            (cell["read_bytes"] + cell["write_bytes"]) / 1e6 / seconds
            for cell, seconds in zip(total, seen_s, strict=True)
        ),
        mean_ms=spent_ms / latencies.size if latencies.size else None,
        latency_ms=latencies.summary(),
        waiting=sum(part.size for part in waiting) if len(waiting) == len(cells) else None,
    )


def _last_waiting(batch: pa.RecordBatch, rows: np.ndarray) -> Latencies | None:
    """Return the waiting times of I/Os at the last row that has the value, or None without one."""
    if not set(_WAITING) <= set(batch.schema.names):  # an older record
        return None
    known = rows[batch.column(_WAITING[0]).is_valid().to_numpy(zero_copy_only=False)[rows]]
    if not len(known):
        return None
    waiting = Latencies.empty()
    waiting.merge(*(batch.column(name).slice(int(known[-1]), 1) for name in _WAITING))
    return waiting


def _by_cell(batch: pa.RecordBatch) -> Iterator[tuple[tuple[str, int], np.ndarray]]:
    """Yield every load and cell with its rows."""
    loads = np.array(batch.column("load").to_pylist(), dtype=object)
    cells = batch.column("cell").to_numpy()
    for load in sorted(set(loads)):
        for cell in np.unique(cells[loads == load]):
            yield (load, int(cell)), np.flatnonzero((loads == load) & (cells == cell))
