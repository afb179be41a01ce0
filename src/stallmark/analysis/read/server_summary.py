"""The I/O of the server or of a device over one measured interval, summed up from its counters."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from stallmark.analysis.read.counters import Counters, Delta
from stallmark.analysis.read.times import Interval

WAIT_CLASSES = ("io", "lock", "wal", "replica", "memory", "latch", "parallel", "worker", "cpu", "client", "other")
"""Replica: a commit waits until another server has the log. Memory: for a grant or an allocation. Latch: for a page or
a structure in memory. Parallel: workers of a query for each other. Worker: for a thread to run on. Only SQL Server
distinguishes these five; on others they are in "other"."""


@dataclass(frozen=True)
class IoSummary:
    """I/O of the server or of the device, summed over the measured interval.

    Means are volume-weighted: Δstall / Δcount. Interval means are the mean of the per-second means, which monitoring
    tools draw. The two differ, and the report names both.
    """

    source: str  # "server" or "device"
    seconds: float
    reads: int
    read_bytes: int
    read_ms: float | None
    read_interval_mean_ms: float | None
    writes: int
    write_bytes: int
    write_ms: float | None
    write_interval_mean_ms: float | None
    syncs: int | None
    sync_ms: float | None
    uncertainty: float | None = None
    """Share by which counts and rates may be off, both ways, as samples were few; None if they were close enough."""

    @property
    def iops(self) -> float:
        return (self.reads + self.writes) / self.seconds

    @property
    def mb_per_s(self) -> float:
        """Return 10^6 bytes per second, reads and writes."""
        return (self.read_bytes + self.write_bytes) / self.seconds / 1e6


@dataclass(frozen=True)
class Names:
    """The names by which a source has the counters of an `IoSummary`; several are added up."""

    reads: tuple[str, ...]
    read_bytes: tuple[str, ...]
    read_ms: tuple[str, ...]
    writes: tuple[str, ...]
    write_bytes: tuple[str, ...]
    write_ms: tuple[str, ...]
    syncs: tuple[str, ...]
    sync_ms: tuple[str, ...]


SERVER = Names(
    ("reads",),
    ("read_bytes",),
    ("read_stall_ms",),
    ("writes", "extends"),
    ("write_bytes", "extend_bytes"),
    ("write_stall_ms", "extend_stall_ms"),
    ("syncs",),
    ("sync_stall_ms",),
)
"""Counters of the server's files. **Extends count as writes**, with their bytes and their stall: growing a file by a
block writes to the device too."""
WAL_VIEW = Names((), (), (), ("writes",), ("bytes",), ("write_ms",), ("syncs",), ("sync_ms",))
"""I/O of the write-ahead log, if only its own view counts it (PostgreSQL 16 and 17)."""
DEVICE = Names(
    ("reads",), ("read_bytes",), ("read_ms",), ("writes",), ("write_bytes",), ("write_ms",), ("syncs",), ("sync_ms",)
)


def delta_over(counters: Counters | None, interval: Interval) -> Delta | None:
    return counters.delta(interval.begin, interval.end) if counters else None


def largest_readers(counters: Mapping[str, Counters], interval: Interval) -> list[tuple[str, Delta]]:
    """Return the procedures or statements executed in an interval with their increments, the largest readers first;
    none whose counters were reset inside."""
    deltas = [(name, delta_over(counters_of_one, interval)) for name, counters_of_one in counters.items()]
    known = [(name, delta) for name, delta in deltas if delta and not delta.broken and delta["executions"]]
    return sorted(known, key=lambda pair: (-pair[1]["physical_reads"], pair[0]))


def summarise_io(counters: Counters | None, interval: Interval, names: Names, source: str) -> IoSummary | None:
    """Summarise the I/O in an interval; return None if it was not measured or its counters were reset inside. Means of
    its seconds cover counters that have them."""
    delta = delta_over(counters, interval)
    # After a reset the values are only a part of the interval.
    if counters is None or delta is None or delta.broken:
        return None

    def total(parts: tuple[str, ...]) -> float | None:
        parts_of_total = [delta.values[part] for part in parts if part in delta.values]
        return sum(parts_of_total) if parts_of_total else None

    def mean(stall: tuple[str, ...], count: tuple[str, ...]) -> float | None:
        stalled, counted = total(stall), total(count)
        return stalled / counted if stalled is not None and counted else None

    syncs = total(names.syncs)
    return IoSummary(
        source=source,
        seconds=delta.seconds,
        reads=round(total(names.reads) or 0),
        read_bytes=round(total(names.read_bytes) or 0),
        read_ms=mean(names.read_ms, names.reads),
        read_interval_mean_ms=_mean_of_means(counters, interval, names.read_ms, names.reads),
        writes=round(total(names.writes) or 0),
        write_bytes=round(total(names.write_bytes) or 0),
        write_ms=mean(names.write_ms, names.writes),
        write_interval_mean_ms=_mean_of_means(counters, interval, names.write_ms, names.writes),
        syncs=None if syncs is None else round(syncs),
        sync_ms=mean(names.sync_ms, names.syncs),
        uncertainty=delta.uncertainty or None,
    )


def combine_io(first: IoSummary, second: IoSummary) -> IoSummary:
    """Return the I/O of both files, means weighted by their counts; a mean of intervals cannot be combined."""

    def mean(*parts: tuple[float | None, int | None]) -> float | None:
        known = [(value, count) for value, count in parts if value is not None and count]
        total = sum(count for _, count in known)
        return sum(value * count for value, count in known) / total if total else None

    return IoSummary(
        source=first.source,
        seconds=first.seconds,
        reads=first.reads + second.reads,
        read_bytes=first.read_bytes + second.read_bytes,
        read_ms=mean((first.read_ms, first.reads), (second.read_ms, second.reads)),
        read_interval_mean_ms=None if second.reads else first.read_interval_mean_ms,
        writes=first.writes + second.writes,
        write_bytes=first.write_bytes + second.write_bytes,
        write_ms=mean((first.write_ms, first.writes), (second.write_ms, second.writes)),
        write_interval_mean_ms=None,
        syncs=None if first.syncs is None and second.syncs is None else (first.syncs or 0) + (second.syncs or 0),
        sync_ms=mean((first.sync_ms, first.syncs), (second.sync_ms, second.syncs)),
        uncertainty=max(first.uncertainty or 0.0, second.uncertainty or 0.0) or None,
    )


def per_second_mean(stall: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Return Δstall / Δcount per second; NaN in seconds without at least one I/O."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(count >= 1, stall / count, np.nan)


def summed(per_second: dict[str, np.ndarray], names: tuple[str, ...]) -> np.ndarray | None:
    known = [per_second[name] for name in names if name in per_second]
    return np.sum(known, axis=0) if known else None


def _mean_of_means(
    counters: Counters, interval: Interval, stall: tuple[str, ...], count: tuple[str, ...]
) -> float | None:
    asked = interval.span, stall, count
    if asked not in counters.means:
        rates = counters.per_second(interval.end, *stall, *count) if counters.whole and stall and count else {}
        stalled, counted = summed(rates, stall), summed(rates, count)
        known = np.empty(0)
        if stalled is not None and counted is not None:
            means = interval.select(per_second_mean(stalled, counted))
            known = means[~np.isnan(means)]
        counters.means[asked] = float(known.mean()) if len(known) else None
    return counters.means[asked]
