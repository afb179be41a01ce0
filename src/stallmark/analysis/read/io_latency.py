"""The latency of single I/Os, from the histograms that SQL Server keeps on request.

Their durations are whole numbers of a unit that Microsoft does not document. The file counters of the same I/Os show
whether the unit is milliseconds or microseconds; if they agree with neither, no percentile is given.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from stallmark.analysis.finding import Finding, caution
from stallmark.analysis.read.rises import NONE, Codes
from stallmark.analysis.read.server_summary import IoSummary
from stallmark.analysis.read.times import Interval, ReadKind, numbers_of, rows_with_times
from stallmark.record.reader import Record
from stallmark.stats.thresholds import HISTOGRAM_LOST, PERCENTILES, SAMPLES_BEYOND, UNCOVERED

TABLE = "io_latency"
Histograms = Mapping[str, Mapping[str, "HistogramSamples"]]
"""Histograms by operation, "read" or "log write", and by database: under "none" if only one database is ours."""
Files = Callable[[str], tuple[IoSummary | None, IoSummary | None]]
"""The file counters of a database, over the interval: of its data files, and of its log."""
_Of = tuple[str, str]
"""The operation and the database of a histogram."""
_OF_SAMPLE = ("t", "slots", "dropped", "epoch")
NO_PERCENTILES: dict[str, float | None] = dict.fromkeys((*PERCENTILES, "max"))


@dataclass(frozen=True)
class IoLatencySummary:
    """The latency of single I/Os over the measured interval, where the server kept histograms."""

    operation: str  # "read" (data files), "log write"
    ios: int
    coverage: float | None  # share of the I/Os that the file counters counted
    resolution_ms: float | None  # unit of the histogram's durations
    latency_ms: dict[str, float | None]  # keys "p50" "p90" "p95" "p99" "p99.9" "max"
    doubt: Finding | None  # why there are no percentiles
    database: str | None = None  # one of several that are ours; None: all that are


@dataclass(frozen=True)
class HistogramSamples:
    """The counts up to each sample (n), by duration (v)."""

    t: np.ndarray  # n: seconds since run start
    durations: np.ndarray  # v, rising
    ios: Mapping[int, np.ndarray]
    """Counts (v) by number of the sample, only for samples next to the ends of intervals."""
    slots: np.ndarray  # n: capacity of the histogram in durations
    dropped: np.ndarray  # n: events lost
    epochs: np.ndarray  # n: numbers of the epochs

    def delta(self, interval: Interval) -> "CountedIos | None":
        """Return the counts over the sampled part of an interval, or None if that is too short, or counters were reset
        inside. Counts are assumed to grow evenly between two samples."""
        begin, end = _sampled(self.t, interval)
        if end - begin < (1 - UNCOVERED) * interval.seconds:
            return None
        first = int(np.searchsorted(self.t, begin, side="right")) - 1
        last = int(np.searchsorted(self.t, end))
        if len(np.unique(self.epochs[first : last + 1])) > 1:
            return None
        ios = [self._counts_at(second) for second in (begin, end)]
        dropped = [float(np.interp(second, self.t, self.dropped)) for second in (begin, end)]
        full = bool(np.count_nonzero(self.ios[last]) >= self.slots[last])
        return CountedIos(end - begin, self.durations, ios[1] - ios[0], dropped[1] - dropped[0], full)

    def _counts_at(self, second: float) -> np.ndarray:
        """Return the counts at a second, linear between the samples."""
        before, after = _neighbours(self.t, second)
        part = (second - self.t[before]) / (self.t[after] - self.t[before]) if after > before else 0.0
        result: np.ndarray = self.ios[before] + part * (self.ios[after] - self.ios[before])
        return result


@dataclass(frozen=True)
class CountedIos:
    """I/Os by duration (rising) in some seconds, events lost, and whether the histogram was full by then."""

    seconds: float
    durations: np.ndarray
    ios: np.ndarray
    dropped: float
    full: bool


def _combine_histograms(parts: Sequence[CountedIos]) -> CountedIos:
    durations, index = np.unique(np.concatenate([part.durations for part in parts]), return_inverse=True)
    ios = np.bincount(index, weights=np.concatenate([part.ios for part in parts]), minlength=len(durations))
    seconds = float(np.mean([part.seconds for part in parts]))
    return CountedIos(seconds, durations, ios, sum(part.dropped for part in parts), any(part.full for part in parts))


def read_io_latency(record: Record, intervals: Sequence[Interval]) -> Histograms:
    """Read the histograms over some intervals; empty if they were not requested."""
    parts: dict[_Of, list[np.ndarray]] = {}
    for key, rows in _by_histogram(record, _OF_SAMPLE):
        _, first = np.unique(rows[0], return_index=True)
        parts.setdefault(key, []).append(rows[:, first])
    samples: dict[_Of, np.ndarray] = {}
    ios: dict[_Of, dict[float, dict[float, float]]] = {}  # keys: time and duration
    for key, chunks in parts.items():
        _, first = np.unique(np.concatenate([rows[0] for rows in chunks]), return_index=True)
        samples[key] = np.concatenate(chunks, axis=1)[:, first]
        t = samples[key][0]
        ends = [end for interval in intervals for end in _sampled(t, interval)]
        ios[key] = {float(t[sample]): {} for end in ends for sample in _neighbours(t, end)}
    for key, (t, duration, count) in _by_histogram(record, ("t", "duration", "ios")):
        wanted = np.isin(t, list(ios[key])) & ~np.isnan(duration)  # an empty histogram has a row without a duration
        columns = (column[wanted].tolist() for column in (t, duration, count))
        for sample, sample_duration, number in zip(*columns, strict=True):
            ios[key][sample][sample_duration] = number
    by_operation: dict[str, dict[str, HistogramSamples]] = {}
    for (operation, database), (t, slots, dropped, epochs) in samples.items():
        counted = ios[operation, database]
        durations = np.array(sorted({duration for counts in counted.values() for duration in counts}))
        by_operation.setdefault(operation, {})[database] = HistogramSamples(
            t,
            durations,
            {
                int(np.searchsorted(t, sample)): np.array([counts.get(duration, 0.0) for duration in durations])
                for sample, counts in counted.items()
            },
            np.nan_to_num(slots, nan=np.inf),
            dropped,
            epochs,
        )
    return by_operation


def _by_histogram(record: Record, columns: Sequence[str]) -> Iterator[tuple[_Of, np.ndarray]]:
    """Yield some columns of the table as an array (column, row), a batch at a time, of each histogram by itself."""
    operations, databases, epochs = Codes(), Codes(), Codes()
    for t, batch in rows_with_times(record, TABLE, ["operation", "database", *_OF_SAMPLE[1:], "duration", "ios"]):
        known = {name: numbers_of(batch, name) for name in ("slots", "dropped", "duration", "ios")}
        known |= {"t": t, "epoch": epochs.codes(batch, "epoch")}
        if any(values is None for values in known.values()):
            return
        of_row = operations.codes(batch, "operation") << 32 | databases.codes(batch, "database")
        table = np.array([known[name] for name in columns], dtype=float)
        for code in np.unique(of_row):
            database = (databases.names or [NONE])[code & (1 << 32) - 1]
            yield (operations.names[code >> 32], database), table[:, of_row == code]


def summarise_io_latency(
    histograms: Histograms, interval: Interval, data: IoSummary | None, wal: IoSummary | None, files: Files
) -> list[IoLatencySummary]:
    """Summarise the histograms over an interval, of all our databases together and, where there are several, of each;
    `data` and `wal` are the file counters of all over it."""
    summaries = []
    for operation, by_database in sorted(histograms.items(), reverse=True):  # reads first
        counted = {name: delta for name, histogram in by_database.items() if (delta := histogram.delta(interval))}
        if counted and len(counted) == len(by_database):
            summaries.append(_summary(operation, None, _combine_histograms(list(counted.values())), data, wal))
        if len(by_database) > 1:
            summaries += [_summary(operation, name, delta, *files(name)) for name, delta in sorted(counted.items())]
    return summaries


def _summary(
    operation: str, database: str | None, counted: CountedIos, data: IoSummary | None, wal: IoSummary | None
) -> IoLatencySummary:
    ios, dropped = counted.ios, counted.dropped
    by_files, mean_ms = _by_files(operation, data, wal)
    total = float(ios.sum())
    unit_ms = _unit_ms(float(ios @ counted.durations) / total if total else 0.0, mean_ms)
    doubt = None
    if counted.full:
        doubt = caution(ReadKind.HISTOGRAM_FULL)
    elif dropped > HISTOGRAM_LOST * (total + dropped):
        doubt = caution(ReadKind.HISTOGRAM_LOST_EVENTS, events=dropped)
    elif total and unit_ms is None:
        doubt = caution(ReadKind.HISTOGRAM_UNIT_UNKNOWN)
    known = doubt is None and unit_ms is not None
    return IoLatencySummary(
        operation=operation,
        database=database,
        ios=round(total),
        coverage=total / counted.seconds / by_files if by_files else None,
        resolution_ms=unit_ms if known else None,
        latency_ms=_percentiles(counted.durations * (unit_ms or 0.0), ios) if known else NO_PERCENTILES,
        doubt=doubt,
    )


def _sampled(t: np.ndarray, interval: Interval) -> tuple[float, float]:
    """Return the ends of the sampled part of an interval."""
    return max(float(interval.begin), float(t[0])), min(float(interval.end), float(t[-1]))


def _neighbours(t: np.ndarray, second: float) -> tuple[int, int]:
    """Return the samples before and after a second."""
    after = min(int(np.searchsorted(t, second)), len(t) - 1)
    return max(after - 1, 0), after


def _by_files(operation: str, data: IoSummary | None, wal: IoSummary | None) -> tuple[float, float | None]:
    """Return the I/Os of an operation per second by the file counters, and their mean in ms."""
    if operation == "read":
        return (data.reads / data.seconds, data.read_ms) if data else (0.0, None)
    return (wal.writes / wal.seconds, wal.write_ms) if wal else (0.0, None)


def _unit_ms(mean: float, by_files_ms: float | None) -> float | None:
    """Return the unit (ms) with which the mean duration agrees with the file counters, or None if no unit does. A
    factor of 5, and 1 ms, is tolerated: stalls include scheduling and are whole milliseconds."""
    if by_files_ms is None:
        return None
    for unit_ms in (1.0, 0.001):
        if by_files_ms / 5 - 1 <= mean * unit_ms <= by_files_ms * 5 + 1:
            return unit_ms
    return None


def _percentiles(durations_ms: np.ndarray, ios: np.ndarray) -> dict[str, float | None]:
    total = float(ios.sum())
    ranks = np.cumsum(ios)
    percentiles: dict[str, float | None] = {}
    for name, share in PERCENTILES.items():
        enough = total >= round(SAMPLES_BEYOND / (1 - share), 6)
        bucket = int(np.searchsorted(ranks, share * total * (1 - 1e-9)))
        percentiles[name] = float(durations_ms[min(bucket, len(durations_ms) - 1)]) if enough else None
    used = np.flatnonzero(ios >= 0.5)
    return percentiles | {"max": float(durations_ms[used[-1]]) if len(used) else None}
