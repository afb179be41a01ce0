"""External measurements, compared with the throughput of the run they were attached to.

Another tool samples at its own interval and by its own clock. Throughput is therefore taken over exactly the intervals
between its samples, and never the other way round. Where the two clocks lie apart, the changes of both agree better at
another offset: that is given as a hint, and nothing is shifted.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pyarrow as pa

from stallmark.analysis.finding import Finding, Kind, caution
from stallmark.analysis.read.times import Interval
from stallmark.record.manifest.course import External
from stallmark.record.reader import Record
from stallmark.stats.inference import Correlation, correlate_changes

# The kinds of counters of other tools, told from their names: those of Perfmon, sysstat and arrays.

KINDS = ("read_latency", "write_latency", "IOPS", "throughput", "queue", "cache_hits")
"""Kinds that the report draws, one chart each, in this order."""

_OTHERWISE = {  # kinds whose reads and writes a tool may count apart
    "IOPS": ("read_IOPS", "write_IOPS"),
    "throughput": ("read_throughput", "write_throughput"),
}

_NOT = re.compile(
    # Of the host's memory, processes and network, and of the server's own pages, not of its storage.
    r"^(memory|process|network|system|paging file|cache (copy|data|mdl|pin)|sqlserver:|mssql\$)(?!.*cache hit ratio$)"
    # Extremes, and parts of a latency.
    r"|\b(peak|max(imum)?|min(imum)?|split|qos|reduction|queue us|san us|ratio base)\b",
    re.I,
)
_QUANTITIES = tuple(
    (name, re.compile(pattern, re.I))
    for name, pattern in (
        ("latency", r"sec/(read|write|transfer)$|(?<![df]_)await$|\bus/op|^usec_per_"),
        ("latency", r"latency|(response|service)[ _]?time"),
        ("cache_hits", r"\bhits?\b"),
        ("queue", r"queue[ _](length|depth)|\b(aqu|avgqu)-sz$"),
        ("throughput", r"bytes/sec$|\b[rw]?[km]?b/s|\b[rw]kb$|data rate|transfer rate|throughput|bandwidth"),
        ("IOPS", r"(reads|writes|transfers)/sec$|^[rw]/s$|\bop/s|iops|\bio rate|(read|write)s?_per_sec$|(?<!d)tps$"),
    )
)  # fmt: skip
_READ = re.compile(r"\bread|[_/]read|\brtps$|^r_await$|^r/s$|\br[km]b", re.I)
_WRITE = re.compile(r"\bwrite|[_/]write|\bwtps$|^w_await$|^w/s$|\bw[km]b", re.I)
_SCALES = {  # to milliseconds, and to 10^6 bytes per second where the unit leaves no doubt
    "s": ("ms", 1000.0),
    "us": ("ms", 0.001),
    "B/s": ("MB/s", 1e-6),
    "KiB/s": ("MB/s", 1024e-6),
    "MiB/s": ("MB/s", 1024**2 * 1e-6),
}
_TOTAL = re.compile(r"|_?total|\(total\)|all", re.I)  # or no instance at all


@dataclass(frozen=True)
class Sampled:
    """A counter's samples, ordered by time."""

    source: str
    counter: str
    instance: str
    unit: str
    t: np.ndarray
    values: np.ndarray
    summed: tuple[str, ...] = ()  # counters that this one is the sum of

    @property
    def label(self) -> str:
        return f"{self.instance} {self.counter}".strip()


def kind_of(counter: str) -> str:
    """Return the kind of a counter: one of KINDS, or "latency", "read_IOPS", "write_throughput" and the like. Empty
    where it is not known."""
    if _NOT.search(counter):
        return ""
    quantity = next((name for name, pattern in _QUANTITIES if pattern.search(counter)), "")
    if quantity in ("", "cache_hits"):
        return quantity
    read, write = bool(_READ.search(counter)), bool(_WRITE.search(counter))
    return quantity if read == write else f"{'read' if read else 'write'}_{quantity}"


def choose(counters: Sequence[Sampled]) -> list[tuple[str, Sampled]]:
    """Return at most one counter of each kind, of the instance that did most I/O, in the units they are drawn in."""
    by_kind: dict[str, list[Sampled]] = {}
    for counter in counters:
        by_kind.setdefault(kind_of(counter.counter), []).append(counter)
    busiest = _busiest(by_kind)

    def best(kind: str) -> Sampled | None:
        return _choose_counter(by_kind.get(kind, []), busiest)

    chosen = [(kind, best(kind) or _sum(*map(best, _OTHERWISE.get(kind, ())))) for kind in KINDS]
    if not any(counter for kind, counter in chosen if kind.endswith("latency")):
        chosen.insert(0, ("latency", best("latency")))
    return [(kind, _in_common_units(counter)) for kind, counter in chosen if counter is not None]


def _busiest(by_kind: dict[str, list[Sampled]]) -> tuple[str, str] | None:
    """Return the source and instance with most I/O; sums over all instances only where there is nothing else."""
    amounts: dict[tuple[str, str], float] = {}
    for kind, parts in _OTHERWISE.items():
        for counter in (counter for part in (kind, *parts) for counter in by_kind.get(part, [])):
            key = counter.source, counter.instance
            amounts[key] = amounts.get(key, 0.0) + float(counter.values.mean())
        if amounts:
            break
    single = {key: amount for key, amount in amounts.items() if not _TOTAL.fullmatch(key[1])}
    return max(single or amounts, key=lambda key: amounts[key]) if amounts else None


def _choose_counter(counters: Sequence[Sampled], busiest: tuple[str, str] | None) -> Sampled | None:
    def order(counter: Sampled) -> tuple[bool, bool]:
        return (counter.source, counter.instance) != busiest, bool(_TOTAL.fullmatch(counter.instance))

    return min(counters, key=order, default=None)


def _sum(reads: Sampled | None = None, writes: Sampled | None = None) -> Sampled | None:
    if reads is None or writes is None:
        return reads or writes
    same = (reads.source, reads.instance, reads.unit) == (writes.source, writes.instance, writes.unit)
    # Without common times a sum would add different moments: reads alone are at least right.
    if not same or not np.array_equal(reads.t, writes.t):
        return reads
    names = (reads.counter, writes.counter)
    return replace(reads, counter=" + ".join(names), values=reads.values + writes.values, summed=names)


def _in_common_units(counter: Sampled) -> Sampled:
    unit, scale = _SCALES.get(counter.unit, (counter.unit, 1.0))
    return replace(counter, unit=unit, values=counter.values * scale)


LAGS_S = 60
"""How far two clocks may be apart for a hint; the record keeps samples of so long before and after the run."""

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

    kind: str  # kind of quantity: "read_latency", "write_latency", "IOPS", "throughput", "queue", "cache_hits"
    name: str  # the tool's own name
    instance: str
    unit: str
    t: np.ndarray
    values: np.ndarray
    mean: float | None  # mean of the samples within measured intervals
    correlation: Correlation | None  # correlation of changes with those of TPS


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
    counters: list[ExternalCounter]  # six at most
    others: list[str]  # counters that are not drawn
    notes: list[str]  # parts of the file that were left out
    remarks: list[str]  # conversions of the file's values
    hint: Finding | None  # another offset that fits clearly better, or None


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
    chosen = choose([counter for counter in counters if len(_cut_to_run(counter, len(tps)).t)])
    drawn = {part for _, choice in chosen for part in (choice.summed or (choice.counter,))}
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
        counters=[_summarise_counter(kind, counter, every, tps, intervals) for kind, counter in chosen],
        others=list(dict.fromkeys(c.counter for c in counters if c.counter not in drawn)),
        notes=list(entry.notes),
        remarks=list(entry.remarks),
        hint=_hint(entry, [counter for _, counter in chosen], tps, intervals),
    )


def _summarise_counter(
    kind: str, whole: Sampled, every: float, tps: np.ndarray, intervals: Sequence[Interval]
) -> ExternalCounter:
    drawn = _cut_to_run(whole, len(tps))
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

    n counts pairs of neighbouring samples whose intervals both are within one measured interval.
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
        # Times are differences of large floats: a sample at the border must not fall out by rounding.
        result[(begin >= interval.begin - 1e-6) & (end <= interval.end + 1e-6)] = interval.index
    return result


def _mean(counter: Sampled, every: float, intervals: Sequence[Interval]) -> float | None:
    inside = _step(counter.t - _widths(counter.t, every), counter.t, intervals) >= 0
    return float(counter.values[inside].mean()) if inside.any() else None


def _hint(entry: External, chosen: Sequence[Sampled], tps: np.ndarray, intervals: Sequence[Interval]) -> Finding | None:
    """Return a hint where a counter's changes agree with TPS clearly better at another offset; None otherwise."""
    every = entry.interval_s
    best: tuple[float, int, Correlation, Correlation | None, str] | None = None
    for counter in chosen:
        now = correlate(counter, every, tps, intervals)
        for lag in range(-LAGS_S, LAGS_S + 1):
            # A shift of less than a sample cannot be told from none.
            if abs(lag) < max(2.0, every):
                continue
            lagged = correlate(counter, every, tps, intervals, lag)
            if lagged and (best is None or abs(lagged.r) > best[0]) and _clearly_better(lagged, now):
                best = abs(lagged.r), lag, lagged, now, counter.label
    if best is None:
        return None
    _, lag, lagged, now, label = best
    return caution(
        AttachKind.CLOCK_OFFSET,
        name=entry.name,
        counter=label,
        lag_s=lag,
        offset_s=entry.offset_s + lag,
        r=lagged.r,
        r_now=now.r if now else None,
        n=lagged.n,
    )


def _clearly_better(lagged: Correlation, now: Correlation | None) -> bool:
    z = math.atanh(abs(lagged.r))
    # The 95 % interval is ±1.96 standard errors wide in z.
    error = (math.atanh(lagged.high) - math.atanh(lagged.low)) / 2 / 1.96
    present = math.atanh(abs(now.r)) if now else 0.0
    return abs(lagged.r) >= HINT_R and z - HINT_Z * error > present


def _cut_to_run(counter: Sampled, seconds: int) -> Sampled:
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
