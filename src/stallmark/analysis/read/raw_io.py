"""The I/O of raw loads: per second, and in the measured interval of each step, by cell and over all cells."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stallmark.analysis.read.interval import Interval
from stallmark.analysis.read.latency import Latencies
from stallmark.record.reader import Record
from stallmark.record.table_file import readable

TABLE = "raw_io"
COUNTS = ("reads", "read_bytes", "writes", "write_bytes", "latency_us")
_HISTOGRAM = ("latency_gaps", "latency_counts")
_WAITING = ("waiting_gaps", "waiting_counts")


@dataclass(frozen=True)
class RawFigures:
    """The I/O of a raw load in a measured interval. Rates are over the `seen_s` seconds in which it ran: fewer than the
    interval has where it ended early. Percentiles are None where the sample is too small for them.

    Times of a load with a rate of I/Os are from when each was due. An I/O that had not ended at the end of the interval
    is in them, with the time for which it had waited by then. `waiting`: how many these are; None if this was not
    recorded, as of other loads and in older records, whose times are from when each I/O was issued."""

    seen_s: int
    reads: int
    writes: int
    iops: float
    mb_per_s: float  # 10^6 bytes
    mean_ms: float | None
    latency_ms: dict[str, float | None]  # keys "p50" "p90" "p95" "p99" "p99.9" "max"
    waiting: int | None = None


@dataclass(frozen=True)
class RawLoadSummary:
    """A raw load in the measured interval of one step: all its cells together, and each by itself."""

    load: str
    together: RawFigures
    cells: dict[int, RawFigures]


@dataclass
class RawIo:
    """The raw loads of one run. `counts[(load, cell)][column]` is an array per second, NaN where the load did not run;
    `latency[(interval, load, cell)]` is merged, `waiting[(interval, load, cell)]` of the interval's last second."""

    seconds: int
    counts: dict[tuple[str, int], dict[str, np.ndarray]] = field(default_factory=dict)
    latency: dict[tuple[int, str, int], Latencies] = field(default_factory=dict)
    waiting: dict[tuple[int, str, int], Latencies] = field(default_factory=dict)

    @property
    def loads(self) -> list[str]:
        return list(dict.fromkeys(load for load, _ in self.counts))

    def of_load(self, load: str, column: str) -> np.ndarray:
        """Return a count per second over the cells of a load; NaN where none ran."""
        cells = np.array([columns[column] for (name, _), columns in self.counts.items() if name == load])
        return np.where(np.isnan(cells).all(axis=0), np.nan, np.nansum(cells, axis=0))

    def within(self, interval: Interval) -> list[RawLoadSummary]:
        """Return the raw loads that ran within an interval, by name."""
        found = []
        for load in sorted(self.loads):
            cells = {
                cell: figures
                for (name, cell), counts in sorted(self.counts.items())
                if name == load and (figures := self._figures(interval, load, cell, counts))
            }
            if cells:
                found.append(RawLoadSummary(load, self._together(interval, load, cells), cells))
        return found

    def _figures(self, interval: Interval, load: str, cell: int, counts: dict[str, np.ndarray]) -> RawFigures | None:
        seen = ~np.isnan(interval.of(counts["reads"]))
        if not (seen_s := int(seen.sum())):
            return None
        reads, read_bytes, writes, write_bytes, latency_us = (
            int(interval.of(counts[column])[seen].sum()) for column in COUNTS
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

    def _together(self, interval: Interval, load: str, cells: dict[int, RawFigures]) -> RawFigures:
        if len(cells) == 1:
            return next(iter(cells.values()))
        waiting = [one.waiting for one in cells.values() if one.waiting is not None]
        ios = [one.reads + one.writes + (one.waiting or 0) for one in cells.values()]
        waited_ms = sum((one.mean_ms or 0.0) * count for one, count in zip(cells.values(), ios, strict=True))
        return RawFigures(
            seen_s=min(one.seen_s for one in cells.values()),
            reads=sum(one.reads for one in cells.values()),
            writes=sum(one.writes for one in cells.values()),
            iops=sum(one.iops for one in cells.values()),
            mb_per_s=sum(one.mb_per_s for one in cells.values()),
            mean_ms=waited_ms / sum(ios) if sum(ios) else None,
            latency_ms=self._latencies(interval, load, cells).summary(),
            waiting=sum(waiting) if len(waiting) == len(cells) else None,
        )


def read_raw_io(record: Record, seconds: int, intervals: Sequence[Interval]) -> RawIo:
    """Read the raw loads of a run of so many whole seconds; empty where it has none."""
    found = RawIo(seconds)
    interval_of = np.full(seconds, -1)
    for interval in intervals:
        interval_of[interval.begin : interval.end] = interval.index
    for batch in record.batches(TABLE, ["second", "load", "cell", *COUNTS, *_HISTOGRAM, *_WAITING]):
        batch = batch.filter(pc.less(batch.column("second"), seconds))
        second = batch.column("second").to_numpy()
        for (load, cell), rows in _by_cell(batch):
            counts = found.counts.setdefault((load, cell), {name: np.full(seconds, np.nan) for name in COUNTS})
            for column in COUNTS:
                counts[column][second[rows]] = np.nan_to_num(counts[column][second[rows]])
                np.add.at(counts[column], second[rows], batch.column(column).to_numpy()[rows])
            where = interval_of[second[rows]]
            for index in np.unique(where[where >= 0]):
                merged = found.latency.setdefault((int(index), load, cell), Latencies.empty())
                some = pa.array(rows[where == index])
                with readable(record.folder / TABLE):
                    merged.merge(*(batch.column(name).take(some) for name in _HISTOGRAM))
                    if (last := _last_waiting(batch, rows[where == index])) is not None:
                        found.waiting[int(index), load, cell] = last
    return found


def _last_waiting(batch: pa.RecordBatch, rows: np.ndarray) -> Latencies | None:
    """Return how long I/Os had waited at the last of the rows that tells it; None where none does."""
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
