"""External measurements, compared with the throughput of the run they were attached to.

Another tool samples at its own interval and by its own clock. Throughput is therefore taken over exactly the intervals
between its samples, and never the other way round. Where the two clocks lie apart, the changes of both agree better at
another offset: that is given as a hint, and nothing is shifted.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pyarrow as pa

from stallmark.analysis.finding import Finding, Kind, caution
from stallmark.analysis.read.interval import Interval
from stallmark.attach.counter_kinds import Sampled, choose
from stallmark.record.manifest.course import External
from stallmark.record.reader import Record
from stallmark.stats.dependence import Correlation, correlate_changes

LAGS_S = 60
"""How far two clocks may lie apart for a hint; the record keeps samples of so long before and after the run."""

HINT_Z = 3.6
"""Standard errors of Fisher's z by which the best of 121 offsets must be clear of the present one: 5 % among all
of them together (0.05 / 121 two-sided is 3.5), and a little for that they are not normal."""

HINT_R = 0.4
"""Weaker correlations explain less than a sixth of the changes: no ground to doubt a clock."""

_GAP = 1.5  # intervals: what lies further apart had samples missing between


class AttachKind(Kind):
    """The findings on measurements from elsewhere."""

    CLOCK_OFFSET = "clock_offset_likely"


@dataclass(frozen=True)
class ExternalCounter:
    """A counter measured by another tool. `t` and `values` hold its samples, seconds since the run started."""

    kind: str  # what it says of storage: "read_latency", "write_latency", "IOPS", "throughput", "queue", "cache_hits"
    name: str  # as its tool calls it
    instance: str
    unit: str
    t: np.ndarray
    values: np.ndarray
    mean: float | None  # of the samples within measured intervals
    correlation: Correlation | None  # of its changes with those of TPS over the same intervals


@dataclass(frozen=True)
class ExternalSummary:
    """External measurements: a file that was attached to a run, and the clock of its figures."""

    name: str
    file: str
    format: str
    time_zone: str
    offset_s: float  # added to its times
    span: tuple[str, str]  # UTC, ISO 8601
    samples: int
    interval_s: float
    counters: list[ExternalCounter]  # at most six
    others: list[str]  # counters that are not drawn
    notes: list[str]  # what was left out of the file
    hint: Finding | None  # where another offset would fit clearly better


def read_external(record: Record, tps: np.ndarray, intervals: Sequence[Interval]) -> list[ExternalSummary]:
    """Return the external measurements of a run, in the order of attachment. `tps` are commits per second since the
    run started."""
    return [
        _summarise(entry, _counters(record.table(f"external_{slug}")), tps, intervals)
        for slug, entry in record.manifest.external.items()
    ]


def _summarise(
    entry: External, counters: list[Sampled], tps: np.ndarray, intervals: Sequence[Interval]
) -> ExternalSummary:
    chosen = choose([counter for counter in counters if len(_within(counter, len(tps)).t)])
    drawn = {part for _, one in chosen for part in (one.summed or (one.counter,))}
    every = entry.interval_s
    return ExternalSummary(
        name=entry.name,
        file=entry.file,
        format=entry.format,
        time_zone=entry.time_zone,
        offset_s=entry.offset_s,
        span=entry.span,
        samples=entry.samples,
        interval_s=every,
        counters=[_summarise_counter(kind, one, every, tps, intervals) for kind, one in chosen],
        others=list(dict.fromkeys(c.counter for c in counters if c.counter not in drawn)),
        notes=list(entry.notes),
        hint=_hint(entry, [one for _, one in chosen], tps, intervals),
    )


def _summarise_counter(
    kind: str, whole: Sampled, every: float, tps: np.ndarray, intervals: Sequence[Interval]
) -> ExternalCounter:
    drawn = _within(whole, len(tps))
    return ExternalCounter(
        kind=kind,
        name=whole.counter,
        instance=whole.instance,
        unit=whole.unit,
        t=drawn.t,
        values=drawn.values,
        mean=_mean(drawn, every, intervals),
        correlation=correlate(whole, every, tps, intervals),
    )


def correlate(
    counter: Sampled, every: float, tps: np.ndarray, intervals: Sequence[Interval], lag: float = 0.0
) -> Correlation | None:
    """Return the correlation of a counter's changes with those of TPS, with its clock moved by `lag` seconds.

    n counts pairs of neighbouring samples whose intervals both lie within one measured interval.
    """
    end = counter.t + lag
    begin = end - _widths(counter.t, every)
    committed = np.concatenate([[0.0], np.cumsum(tps, dtype=float)])
    seconds = np.arange(len(committed))
    means = (np.interp(end, seconds, committed) - np.interp(begin, seconds, committed)) / (end - begin)
    step = _step(begin, end, intervals)
    missing = np.flatnonzero((np.diff(step) != 0) | (np.diff(counter.t) > _GAP * every)) + 1
    # A pair that spans two steps, or a gap, is no change of one interval to the next.
    left = np.insert(np.where(step >= 0, means, np.nan), missing, np.nan)
    right = np.insert(counter.values, missing, np.nan)
    name = f"{counter.source}: {counter.label}"
    return correlate_changes(left, right, "transactions per second", name, counter.unit)


def _widths(t: np.ndarray, every: float) -> np.ndarray:
    """Return the seconds that each sample covers: back to the one before it, or `every` where some are
    missing between."""
    apart = np.diff(t, prepend=t[:1] - every)
    return np.where((apart > 0) & (apart <= _GAP * every), apart, every)


def _step(begin: np.ndarray, end: np.ndarray, intervals: Sequence[Interval]) -> np.ndarray:
    """Return the index of the measured interval in which each sample lies wholly; -1 for none."""
    result = np.full(len(end), -1)
    for interval in intervals:
        result[(begin >= interval.begin - 1e-6) & (end <= interval.end + 1e-6)] = interval.index
    return result


def _mean(counter: Sampled, every: float, intervals: Sequence[Interval]) -> float | None:
    inside = _step(counter.t - _widths(counter.t, every), counter.t, intervals) >= 0
    return float(counter.values[inside].mean()) if inside.any() else None


def _hint(entry: External, chosen: Sequence[Sampled], tps: np.ndarray, intervals: Sequence[Interval]) -> Finding | None:
    """Return a hint where a counter's changes agree with TPS clearly better at another offset; None otherwise."""
    every = entry.interval_s
    best: tuple[float, int, Correlation, Correlation | None, str] | None = None
    for one in chosen:
        now = correlate(one, every, tps, intervals)
        for lag in range(-LAGS_S, LAGS_S + 1):
            if abs(lag) < max(2.0, every):
                continue
            found = correlate(one, every, tps, intervals, lag)
            if found and (best is None or abs(found.r) > best[0]) and _clearly_better(found, now):
                best = abs(found.r), lag, found, now, one.label
    if best is None:
        return None
    _, lag, found, now, label = best
    return caution(
        AttachKind.CLOCK_OFFSET,
        name=entry.name,
        counter=label,
        lag_s=lag,
        offset_s=entry.offset_s + lag,
        r=found.r,
        r_now=now.r if now else None,
        n=found.n,
    )


def _clearly_better(found: Correlation, now: Correlation | None) -> bool:
    z = math.atanh(abs(found.r))
    # The 95 % interval is ±1.96 standard errors wide in z.
    error = (math.atanh(found.high) - math.atanh(found.low)) / 2 / 1.96
    present = math.atanh(abs(now.r)) if now else 0.0
    return abs(found.r) >= HINT_R and z - HINT_Z * error > present


def _within(counter: Sampled, seconds: int) -> Sampled:
    keep = (counter.t >= 0) & (counter.t <= seconds)
    return replace(counter, t=counter.t[keep], values=counter.values[keep])


def _counters(rows: pa.Table) -> list[Sampled]:
    """Return the counters of a table in the order of their names; none of an empty table."""
    if not rows.num_rows:
        return []
    rows = rows.sort_by([(name, "ascending") for name in ("source", "counter", "instance", "unit", "t")])
    names = ("source", "counter", "instance", "unit")
    columns = [rows[name].combine_chunks().dictionary_encode() for name in names]
    codes = [column.indices.to_numpy() for column in columns]
    changed = np.any([np.diff(code) != 0 for code in codes], axis=0)
    begins = [0, *(np.flatnonzero(changed) + 1).tolist(), rows.num_rows]
    t, values = rows["t"].to_numpy(), rows["value"].to_numpy()
    result = []
    for begin, end in pairwise(begins):
        source, counter, instance, unit = (str(column[begin].as_py()) for column in columns)
        result.append(Sampled(source, counter, instance, unit, t[begin:end], values[begin:end]))
    return result
