"""The reads and writes of each load within an interval, and of all else on the server.

The server counts them by session, and the sessions of a load have a name of their own. The counts of a session are lost
when it ends. So figures cover the longest part of the interval in which none of a load's sessions ended, and are
missing if that is less than half of the interval.

The I/O of raw loads: per second, and in the measured interval of each step, by cell and over all cells.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stallmark.analysis.read.counters import Counters, read_counters
from stallmark.analysis.read.interval import Interval, Span
from stallmark.analysis.read.server_io import COUNTS, DATA, TEMP, ServerIo, by_process
from stallmark.analysis.read.throughput import Latencies
from stallmark.record.manifest import Manifest
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
        of_load = {load: counted[name] for load, name in applications(record.manifest).items() if name in counted}
        self._record, self._intervals = record, intervals
        self._loads = [
            {load: counters for load, counters in of_load.items() if np.any(_inside(counters.t, interval))}
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


def applications(manifest: Manifest) -> dict[str, str]:
    """Return the application name of each load's sessions."""
    if not manifest.loads:
        return {manifest.workload.name: "stallmark-user"}
    return {load.name: application(load.kind, load.name) for load in manifest.loads if load.kind != "raw"}


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


def _inside(t: np.ndarray, interval: Interval) -> np.ndarray:
    return (t >= interval.begin) & (t <= interval.end)


def _io_between(counters: Counters, begin: float, end: float) -> LoadIo | None:
    delta = counters.delta(begin, end)
    if delta is None or delta.broken or not {"reads", "writes"} <= delta.values.keys():
        return None
    grown, grown_bytes = delta.get("extends") or 0.0, delta.get("extend_bytes") or 0.0
    written = delta.get("write_bytes")
    return LoadIo(
        delta.begin,
        delta.end,
        reads=delta["reads"],
        writes=delta["writes"] + grown,
        read_bytes=delta.get("read_bytes"),
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


@dataclass(frozen=True)
class RawLoadSummary:
    """A raw load in the measured interval of one step: all its cells together, and each by itself."""

    load: str
    together: RawFigures
    cells: dict[int, RawFigures]


@dataclass
class RawIo:
    """The raw loads of one run. `counts[(load, cell)][column]` is an array per second, NaN if the load did not run;
    `latency[(interval, load, cell)]` is merged, `waiting[(interval, load, cell)]` of the interval's last second."""

    seconds: int
    counts: dict[tuple[str, int], dict[str, np.ndarray]] = field(default_factory=dict)
    latency: dict[tuple[int, str, int], Latencies] = field(default_factory=dict)
    waiting: dict[tuple[int, str, int], Latencies] = field(default_factory=dict)

    @property
    def loads(self) -> list[str]:
        return list(dict.fromkeys(load for load, _ in self.counts))

    def summaries(self, interval: Interval) -> list[RawLoadSummary]:
        """Return the raw loads that did I/O in an interval, sorted by name."""
        summaries = []
        for load in sorted(self.loads):
            cells = {
                cell: figures
                for (name, cell), counts in sorted(self.counts.items())
                if name == load and (figures := self._figures(interval, load, cell, counts))
            }
            if cells:
                summaries.append(RawLoadSummary(load, self._combine_cells(interval, load, cells), cells))
        return summaries

    def _figures(self, interval: Interval, load: str, cell: int, counts: dict[str, np.ndarray]) -> RawFigures | None:
        seen = ~np.isnan(interval.select(counts["reads"]))
        if not (seen_s := int(seen.sum())):
            return None
        reads, read_bytes, writes, write_bytes, latency_us = (
            int(interval.select(counts[column])[seen].sum()) for column in RAW_COUNTS
        )
        waiting = self.waiting.get((interval.index, load, cell))
        latencies = self._latencies(interval, load, [cell])
        return RawFigures(
            seen_s=seen_s,
            reads=reads,
            writes=writes,
            iops=(reads + writes) / seen_s,
            mb_per_s=(read_bytes + write_bytes) / 1e6 / seen_s,
            mean_ms=(latency_us / 1000 + (waiting.sum_ms() if waiting else 0.0)) / latencies.size
            if latencies.size
            else None,
            latency_ms=latencies.summary(),
            waiting=waiting.size if waiting else None,
        )

    def _latencies(self, interval: Interval, load: str, cells: Iterable[int]) -> Latencies:
        """Return the times of all I/Os, with those that had not ended."""
        merged = Latencies.empty()
        for cell in cells:
            for times in (self.latency, self.waiting):
                merged.add(times.get((interval.index, load, cell), Latencies.empty()))
        return merged

    def _combine_cells(self, interval: Interval, load: str, cells: dict[int, RawFigures]) -> RawFigures:
        if len(cells) == 1:
            return next(iter(cells.values()))
        waiting = [cell.waiting for cell in cells.values() if cell.waiting is not None]
        ios = [cell.reads + cell.writes + (cell.waiting or 0) for cell in cells.values()]
        waited_ms = sum((cell.mean_ms or 0.0) * count for cell, count in zip(cells.values(), ios, strict=True))
        return RawFigures(
            seen_s=min(cell.seen_s for cell in cells.values()),
            reads=sum(cell.reads for cell in cells.values()),
            writes=sum(cell.writes for cell in cells.values()),
            iops=sum(cell.iops for cell in cells.values()),
            mb_per_s=sum(cell.mb_per_s for cell in cells.values()),
            mean_ms=waited_ms / sum(ios) if sum(ios) else None,
            latency_ms=self._latencies(interval, load, cells).summary(),
            waiting=sum(waiting) if len(waiting) == len(cells) else None,
        )


def read_raw_io(record: Record, seconds: int, intervals: Sequence[Interval]) -> RawIo:
    """Read the raw loads of a run of `seconds` seconds; empty without any."""
    raw_io = RawIo(seconds)
    interval_of = np.full(seconds, -1)
    for interval in intervals:
        interval_of[interval.begin : interval.end] = interval.index
    for batch in record.batches(TABLE, ["second", "load", "cell", *RAW_COUNTS, *_HISTOGRAM, *_WAITING]):
        batch = batch.filter(pc.less(batch.column("second"), seconds))
        second = batch.column("second").to_numpy()
        for (load, cell), rows in _by_cell(batch):
            counts = raw_io.counts.setdefault((load, cell), {name: np.full(seconds, np.nan) for name in RAW_COUNTS})
            for column in RAW_COUNTS:
                counts[column][second[rows]] = np.nan_to_num(counts[column][second[rows]])
                np.add.at(counts[column], second[rows], batch.column(column).to_numpy()[rows])
            where = interval_of[second[rows]]
            for index in np.unique(where[where >= 0]):
                merged = raw_io.latency.setdefault((int(index), load, cell), Latencies.empty())
                columns = pa.array(rows[where == index])
                with readable(record.folder / TABLE):
                    merged.merge(*(batch.column(name).take(columns) for name in _HISTOGRAM))
                    if (last := _last_waiting(batch, rows[where == index])) is not None:
                        raw_io.waiting[int(index), load, cell] = last
    return raw_io


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
