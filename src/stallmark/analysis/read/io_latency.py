"""The latency of single I/Os, from the histograms that SQL Server keeps on request.

Their durations are whole numbers of a unit that Microsoft does not document. The file counters of the same I/Os tell
milliseconds from microseconds; where they agree with neither, no percentile is given.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from stallmark.analysis.finding import caution
from stallmark.analysis.read.counters import codes
from stallmark.analysis.read.interval import Interval
from stallmark.analysis.read.kinds import ReadKind
from stallmark.analysis.read.latency import PERCENTILES
from stallmark.analysis.read.sample_times import numbers, sample_times
from stallmark.analysis.read.server_summary import IoLatencySummary, IoSummary
from stallmark.record.reader import Record
from stallmark.stats.thresholds import HISTOGRAM_LOST, SAMPLES_BEYOND, UNCOVERED

TABLE = "io_latency"
Histograms = Mapping[str, Mapping[str, "HistogramSamples"]]
"""By operation, "read" or "log write", and by database: under "none" where we have one."""
Files = Callable[[str], tuple[IoSummary | None, IoSummary | None]]
"""The file counters of a database, over the interval: of its data files, and of its log."""
NO_PERCENTILES: dict[str, float | None] = dict.fromkeys((*PERCENTILES, "max"))


@dataclass(frozen=True)
class HistogramSamples:
    """The counts up to each sample. `t` (n) in seconds since run start, `durations` (v) rising, `ios` (n, v). `slots`
    (n): durations there was room for; `dropped` (n): events lost; `epochs` (n): numbers of the epochs."""

    t: np.ndarray
    durations: np.ndarray
    ios: np.ndarray
    slots: np.ndarray
    dropped: np.ndarray
    epochs: np.ndarray

    def over(self, interval: Interval) -> "CountedIos | None":
        """Return the counts over the sampled part of an interval; None where that is too short, or counting began again
        inside.

        Counts grow evenly between two samples.
        """
        if not len(self.t):
            return None
        begin, end = max(float(interval.begin), self.t[0]), min(float(interval.end), self.t[-1])
        if end - begin < (1 - UNCOVERED) * interval.seconds:
            return None
        first = int(np.searchsorted(self.t, begin, side="right")) - 1
        last = int(np.searchsorted(self.t, end))
        if len(np.unique(self.epochs[first : last + 1])) > 1:
            return None
        ios = [_at(self.t, self.ios, second) for second in (begin, end)]
        dropped = [float(np.interp(second, self.t, self.dropped)) for second in (begin, end)]
        full = bool(np.count_nonzero(self.ios[last]) >= self.slots[last])
        return CountedIos(end - begin, self.durations, ios[1] - ios[0], dropped[1] - dropped[0], full)


@dataclass(frozen=True)
class CountedIos:
    """I/Os by duration (rising) in some seconds, events lost, and whether the histogram was full by then."""

    seconds: float
    durations: np.ndarray
    ios: np.ndarray
    dropped: float
    full: bool


def _together(parts: Sequence[CountedIos]) -> CountedIos:
    durations, at = np.unique(np.concatenate([part.durations for part in parts]), return_inverse=True)
    ios = np.bincount(at, weights=np.concatenate([part.ios for part in parts]), minlength=len(durations))
    seconds = float(np.mean([part.seconds for part in parts]))
    return CountedIos(seconds, durations, ios, sum(part.dropped for part in parts), any(part.full for part in parts))


def read_io_latency(record: Record) -> Histograms:
    """Read the histograms; empty where they were not asked for."""
    columns = {name: numbers(record, TABLE, name) for name in ("duration", "ios", "slots", "dropped")}
    columns["t"] = sample_times(record, TABLE)
    known = {name: values for name, values in columns.items() if values is not None}
    if len(known) < len(columns) or not len(known["t"]):
        return {}
    operations, names = codes(record, TABLE, "operation", len(known["t"]))
    databases, of = codes(record, TABLE, "database", len(known["t"]))
    known["epoch"], _ = codes(record, TABLE, "epoch", len(known["t"]))
    found: dict[str, dict[str, HistogramSamples]] = {name: {} for name in names}
    for number, operation in enumerate(names):
        for code, database in enumerate(of or ["none"]):
            here = (operations == number) & (databases == code)
            if np.any(here):
                found[operation][database] = _histogram({column: values[here] for column, values in known.items()})
    return found


def summarise_io_latency(
    histograms: Histograms, interval: Interval, data: IoSummary | None, wal: IoSummary | None, files: Files
) -> list[IoLatencySummary]:
    """Summarise the histograms over an interval, of all our databases together and, where there are several, of each;
    `data` and `wal` are the file counters of all over it."""
    found = []
    for operation, by_database in sorted(histograms.items(), reverse=True):  # reads first
        counted = {name: one for name, histogram in by_database.items() if (one := histogram.over(interval))}
        if counted and len(counted) == len(by_database):
            found.append(_summary(operation, None, _together(list(counted.values())), data, wal))
        if len(by_database) > 1:
            found += [_summary(operation, name, one, *files(name)) for name, one in sorted(counted.items())]
    return found


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


def _histogram(rows: Mapping[str, np.ndarray]) -> HistogramSamples:
    t, begins, sample = np.unique(rows["t"], return_index=True, return_inverse=True)
    known = ~np.isnan(rows["duration"])  # an empty histogram has a row without a duration
    durations, slot = np.unique(rows["duration"][known], return_inverse=True)
    ios = np.zeros((len(t), len(durations)))
    ios[sample[known], slot] = rows["ios"][known]
    slots = np.nan_to_num(rows["slots"][begins], nan=np.inf)
    return HistogramSamples(t, durations, ios, slots, rows["dropped"][begins], rows["epoch"][begins])


def _at(t: np.ndarray, counts: np.ndarray, second: float) -> np.ndarray:
    """Return every column of `counts` (n, v) at a second, linear between the samples."""
    after = min(int(np.searchsorted(t, second)), len(t) - 1)
    before = max(after - 1, 0)
    part = (second - t[before]) / (t[after] - t[before]) if after > before else 0.0
    result: np.ndarray = counts[before] + part * (counts[after] - counts[before])
    return result


def _by_files(operation: str, data: IoSummary | None, wal: IoSummary | None) -> tuple[float, float | None]:
    """Return the I/Os of an operation per second by the file counters, and their mean in ms."""
    if operation == "read":
        return (data.reads / data.seconds, data.read_ms) if data else (0.0, None)
    return (wal.writes / wal.seconds, wal.write_ms) if wal else (0.0, None)


def _unit_ms(mean: float, by_files_ms: float | None) -> float | None:
    """Return the unit (ms) with which the mean duration agrees with the file counters; None where none does. A factor
    of 5, and 1 ms, is granted: stalls include scheduling and are whole milliseconds."""
    if by_files_ms is None:
        return None
    for unit_ms in (1.0, 0.001):
        if by_files_ms / 5 - 1 <= mean * unit_ms <= by_files_ms * 5 + 1:
            return unit_ms
    return None


def _percentiles(durations_ms: np.ndarray, ios: np.ndarray) -> dict[str, float | None]:
    total = float(ios.sum())
    ranks = np.cumsum(ios)
    found: dict[str, float | None] = {}
    for name, share in PERCENTILES.items():
        enough = total >= round(SAMPLES_BEYOND / (1 - share), 6)
        at = int(np.searchsorted(ranks, share * total * (1 - 1e-9)))
        found[name] = float(durations_ms[min(at, len(durations_ms) - 1)]) if enough else None
    used = np.flatnonzero(ios >= 0.5)
    return found | {"max": float(durations_ms[used[-1]]) if len(used) else None}
