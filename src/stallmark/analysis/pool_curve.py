"""The memory curve: its sizes, the line through them, and the size from which more memory gives nothing."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean

import numpy as np
import scipy  # imports its parts lazily

from stallmark.analysis.compare.claims import Claims
from stallmark.analysis.compare.summary import ReasonKind
from stallmark.analysis.finding import Finding, Kind, caution, info
from stallmark.analysis.metrics import Point, group, points
from stallmark.analysis.run import RunSummary
from stallmark.analysis.step_summary import StepSummary
from stallmark.record.devices import DeviceLabel
from stallmark.record.manifest.course import ChosenSize
from stallmark.stats.curve_search import FEWEST, LeftOut, MonotoneCurve, Way, smallest_enough
from stallmark.stats.inference import paired, pooled_spread
from stallmark.stats.thresholds import CONFIDENCE, REPLICATES, SAME

# The values of a memory curve, with their units. The replicate is the run.


@dataclass(frozen=True)
class Mean:
    """A mean over runs with its 95 % interval; None if the runs are too few for one."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class CurveSize:
    """One buffer-pool size with its runs and results."""

    pool_bytes: int  # measured on the server
    pool_share: float | None  # share of the database's size at the start
    variant: str
    tps: list[float]  # the result per second, of each run
    rate: Mean
    reads: Mean | None  # physical, of data files, per committed transaction
    chosen: ChosenSize | None = None  # reason for the size, if the experiment chose it
    driver_bound: bool = False  # true if in any run: the server could have done more


@dataclass(frozen=True)
class Fit:
    """A monotone curve through the means of all sizes."""

    way: Way
    error: float  # root mean square error on each size omitted in turn, as a share of the largest value
    left_out: list[LeftOut]
    line: list[tuple[float, float]]  # the curve as drawn: pairs of bytes and value

    @property
    def worst_error(self) -> LeftOut:
        return max(self.left_out, key=lambda size: abs(size.predicted - size.seen))


@dataclass(frozen=True)
class Gain:
    """The effect of another amount of memory."""

    pool_bytes: int
    times: float  # memory ÷ memory before
    change: float  # change of throughput: 0.03 is 3 % more
    low: float | None = None  # interval of `change`, if runs were repeated
    high: float | None = None


@dataclass(frozen=True)
class PoolCurve:
    """The memory curve of one kind of storage."""

    device: DeviceLabel
    emulated: bool
    users: int
    primary: str | None
    sizes: list[CurveSize]  # ascending
    throughput: Fit
    reads: Fit | None
    spread: float | None  # standard deviation of ln of single runs, pooled over all sizes; None without repeats
    df: int  # degrees of freedom of `spread`
    tolerance: float | None = None  # requested accuracy; None if sizes were given
    most: int | None = None  # requested number of sizes at most; None if sizes were given

    @property
    def fewest_runs(self) -> int:
        return min(len(size.tps) for size in self.sizes)


# Curves of memory from the runs of an experiment: of each kind of storage with sizes enough to tell an error.

DRAWN = 60
"""Points of a curve as it is drawn."""


def pool_curves(runs: Sequence[RunSummary], claims: Claims) -> list[PoolCurve]:
    """Return the memory curves, each of at least FEWEST comparable sizes of the same load on the same storage. A driver
    that was the bottleneck does not exclude a size; the curve marks it."""
    same_load = group(list(_usable_runs(runs)), lambda run: _curve_key(run.steps[0]))
    curves = (_make_curve(_comparable_with_first(same, claims)) for same in same_load)
    return [curve for curve in curves if curve]


def _comparable_with_first(runs: Sequence[RunSummary], claims: Claims) -> list[RunSummary]:
    """Return the runs of the first size and all runs that may be compared with these and with each other."""
    kept: list[Point] = []
    for point in points([run.steps[0] for run in runs]):
        reasons = [reason.kind for other in kept for reason in claims.claim(other, point).reasons]
        if all(kind is ReasonKind.DRIVER_BOUND for kind in reasons):
            kept.append(point)
    keys = {step.key for point in kept for step in point.steps}
    return [run for run in runs if run.steps[0].key in keys]


def throughput_curve(curve: PoolCurve) -> MonotoneCurve:
    """Return the fitted curve of throughput."""
    return MonotoneCurve.through({size.pool_bytes: size.rate.value for size in curve.sizes}, "rises")


def gain(curve: PoolCurve, size: CurveSize, other: CurveSize) -> Gain:
    """Return the effect of `other` in place of `size`, its interval from the run-to-run variation pooled over all
    sizes."""
    change = other.rate.value / size.rate.value - 1
    times = other.pool_bytes / size.pool_bytes
    # Without repeats the variation is unknown, and a gain has no interval.
    if curve.spread is None:
        return Gain(other.pool_bytes, times, change)
    reach = _quantile(curve.df) * curve.spread * float(np.sqrt(1 / len(size.tps) + 1 / len(other.tps)))
    low, high = (float(np.expm1(np.log1p(change) + sign * reach)) for sign in (-1, 1))
    return Gain(other.pool_bytes, times, change, low, high)


def _usable_runs(runs: Sequence[RunSummary]) -> Iterator[RunSummary]:
    """Yield complete runs of one step, with a known buffer pool and comparable figures.

    Of a given rate every size has the same throughput: none of them can be called enough.
    """
    for run in runs:
        if run.incomplete_because or run.is_rate_given or len(run.steps) != 1:
            continue
        step = run.steps[0]
        if step.buffer_pool_bytes and step.result_tps > 0 and not step.validity.invalid:
            yield run


def _curve_key(step: StepSummary) -> tuple[object, ...]:
    """Return the properties that two sizes must share to belong to one curve."""
    return step.device, step.emulated_roles, step.users, step.other_work


def _make_curve(runs: Sequence[RunSummary]) -> PoolCurve | None:
    sized = group(runs, lambda run: run.manifest.memory.configured_bytes or run.steps[0].buffer_pool_bytes)
    spread = pooled_spread([[[run.steps[0].result_tps for run in same]] for same in sized])
    sizes = sorted((_size(same, spread) for same in sized), key=lambda size: size.pool_bytes)
    # Two sizes that came out equal on the server have no curve between them.
    if len({size.pool_bytes for size in sizes}) < max(FEWEST, len(sizes)):
        return None
    first, asked = runs[0].steps[0], runs[0].manifest.scenario.buffer_pool
    reads = {size.pool_bytes: size.reads.value for size in sizes if size.reads}
    curve = asked if isinstance(asked, dict) else {}
    most, tolerance = curve.get("sizes"), str(curve.get("tolerance", "")).removesuffix("%").strip()
    return PoolCurve(
        device=first.device,
        emulated=first.emulated,
        users=first.users,
        primary=first.throughput.primary,
        sizes=sizes,
        throughput=_fit({size.pool_bytes: size.rate.value for size in sizes}, "rises"),
        reads=_fit(reads, "falls") if len(reads) == len(sizes) else None,
        spread=spread[0] if spread else None,
        df=spread[1] if spread else 0,
        tolerance=float(tolerance) / 100 if tolerance else None,
        most=most if isinstance(most, int) else None,
    )


def _size(runs: Sequence[RunSummary], spread: tuple[float, int] | None) -> CurveSize:
    steps = [run.steps[0] for run in runs]
    tps = [step.result_tps for step in steps]
    rate = float(np.exp(np.mean(np.log(tps))))
    reach = _quantile(spread[1]) * spread[0] / float(np.sqrt(len(tps))) if spread else None
    shares = [step.buffer_pool_share for step in steps if step.buffer_pool_share is not None]
    return CurveSize(
        pool_bytes=round(fmean(step.buffer_pool_bytes or 0 for step in steps)),
        pool_share=fmean(shares) if shares else None,
        variant=steps[0].variant,
        tps=tps,
        rate=Mean(rate) if reach is None else Mean(rate, rate * float(np.exp(-reach)), rate * float(np.exp(reach))),
        reads=_mean_reads([step.storage.reads_per_transaction for step in steps]),
        chosen=next((run.manifest.memory.chosen for run in runs if run.manifest.memory.chosen), None),
        driver_bound=any(step.validity.driver_bound for step in steps),
    )


def _mean_reads(values: Sequence[float | None]) -> Mean | None:
    """Return the mean of reads, or None if a run did not count them."""
    known = [value for value in values if value is not None]
    # A mean over the other runs would compare different sets of runs.
    if len(known) < len(values):
        return None
    if len(known) < REPLICATES:
        return Mean(fmean(known))
    low, high = map(float, paired(np.zeros(len(known)), np.array(known)).interval())
    return Mean(fmean(known), max(low, 0.0), high)


def _fit(values: Mapping[int, float], way: Way) -> Fit:
    curve = MonotoneCurve.through(values, way)
    sizes = np.geomspace(curve.sizes[0], curve.sizes[-1], DRAWN).clip(curve.sizes[0], curve.sizes[-1])
    line = [(float(size), curve.value_at(float(size))) for size in sizes]
    return Fit(way, curve.error or 0.0, list(curve.left_out), line)


def _quantile(df: int) -> float:
    return float(scipy.special.stdtrit(df, (1 + CONFIDENCE) / 2))


# The findings of a memory curve: how much is enough, what more and less of it do, and how well it is known.

NEAR_TWICE = (1.5, 2.7)
"""Range of the ratio of two sizes that counts as twice as much. Reports name the real ratio."""


ALL_DATA = 0.99
"""The share of the data that counts as all data, as a pool of 100 % is rounded."""


class CurveKind(Kind):
    ENOUGH = "memory_enough"
    MAY_BE_ENOUGH = "memory_may_be_enough"
    STILL_BUYS = "memory_still_buys"
    FELL = "throughput_fell_with_memory"
    KNOWN = "curve_of_memory_known"
    NOT_KNOWN = "curve_of_memory_not_known"


ANSWERS = (CurveKind.ENOUGH, CurveKind.MAY_BE_ENOUGH, CurveKind.STILL_BUYS)


def curve_findings(curve: PoolCurve) -> Iterator[Finding]:
    """Yield the answer first, if the figures give one, then how well the curve is known."""
    if fell := _fall_finding(curve):
        yield fell
    elif finding := _enough_finding(curve):
        yield finding
    yield _accuracy_finding(curve)


def _fall_finding(curve: PoolCurve) -> Finding | None:
    """Find throughput that fell with more memory by more than run-to-run variation: then no size is called enough."""
    falls = [(gain(curve, smaller, larger), smaller) for smaller, larger in combinations(curve.sizes, 2)]
    worst, smaller = min(falls, key=lambda pair: pair[0].change)
    # Twice the usual variation, and an interval below 0, rule out chance.
    if worst.change >= -2 * SAME or (worst.high is not None and worst.high >= 0):
        return None
    return caution(
        CurveKind.FELL,
        pools_bytes=[smaller.pool_bytes, worst.pool_bytes],
        change=worst.change,
        primary=curve.primary,
        fewest_runs=curve.fewest_runs,
    )


def _enough_finding(curve: PoolCurve) -> Finding | None:
    """Return the smallest size from which no larger one gives more than SAME, with the effect of twice and of half that
    memory.

    A size is called enough only if twice the size was measured as well, or all of the data.
    """
    by_bytes = {size.pool_bytes: size for size in curve.sizes}
    enough, largest = by_bytes[smallest_enough(throughput_curve(curve))], curve.sizes[-1]
    double = _size_near_twice(curve, enough, 1)
    if double is None and enough is not largest and (largest.pool_share or 0.0) >= ALL_DATA:
        double = largest  # twice as much could hold no more
    if double is None:
        return _still_buys_finding(curve, largest)
    more, half = gain(curve, enough, double), _size_near_twice(curve, enough, -1)
    less = gain(curve, enough, half) if half else None
    too_wide = more.high is not None and more.high > 2 * SAME
    # A wide interval or a limiting driver leaves open whether more memory would still help.
    may_give_more = more.change > SAME or too_wide or double.driver_bound
    make = caution if may_give_more else info
    return make(
        CurveKind.MAY_BE_ENOUGH if may_give_more else CurveKind.ENOUGH,
        pool_bytes=enough.pool_bytes,
        pool_share=enough.pool_share,
        per_s=enough.rate.value,
        primary=curve.primary,
        more=_gain_facts(more),
        less=_gain_facts(less) if less and _is_shown(less) and less.change < 0 else None,
        smallest=enough is curve.sizes[0],
        driver_bound=double.driver_bound,
        fewest_runs=curve.fewest_runs,
    )


def _still_buys_finding(curve: PoolCurve, largest: CurveSize) -> Finding | None:
    """Return the gain of the largest size over half of it, if that is shown."""
    half = _size_near_twice(curve, largest, -1)
    if half is None:
        return None
    last = gain(curve, half, largest)
    if last.change <= SAME or not _is_shown(last):
        return None
    return info(
        CurveKind.STILL_BUYS,
        pool_bytes=largest.pool_bytes,
        pool_share=largest.pool_share,
        per_s=largest.rate.value,
        primary=curve.primary,
        last=_gain_facts(last),
        fewest_runs=curve.fewest_runs,
    )


def _size_near_twice(curve: PoolCurve, size: CurveSize, way: int) -> CurveSize | None:
    """Return the size nearest to twice another (`way` 1), or to half of it (-1)."""
    low, high = NEAR_TWICE
    near = [other for other in curve.sizes if low <= (other.pool_bytes / size.pool_bytes) ** way <= high]
    return min(near, key=lambda other: abs((other.pool_bytes / size.pool_bytes) ** way - 2), default=None)


def _is_shown(difference: Gain) -> bool:
    """Return True if the interval of a difference excludes 0 or, without an interval, if the difference exceeds that of
    equal single runs."""
    if difference.low is None or difference.high is None:
        return abs(difference.change) > SAME
    return difference.low > 0 or difference.high < 0


def _gain_facts(difference: Gain) -> list[float | None]:
    return [difference.times, difference.change, difference.low, difference.high]


def _accuracy_finding(curve: PoolCurve) -> Finding:
    """Return the finding on the error with which the curve missed sizes that were omitted in turn. It is known if that
    is within the requested tolerance, or within twice the usual variation of runs."""
    fits = [curve.throughput, *([curve.reads] if curve.reads else [])]
    error = max(fit.error for fit in fits)
    known = error <= (curve.tolerance or 2 * SAME)
    worst = curve.throughput.worst_error
    make = info if known else caution
    return make(
        CurveKind.KNOWN if known else CurveKind.NOT_KNOWN,
        sizes=len(curve.sizes),
        error=curve.throughput.error,
        reads_error=curve.reads.error if curve.reads else None,
        worst_bytes=worst.size,
        worst=[worst.predicted, worst.seen],
        tolerance=curve.tolerance or 2 * SAME,
        spent=curve.most is not None and len(curve.sizes) >= curve.most,
    )


def enough_bytes(findings: Sequence[Finding]) -> int | None:
    """Return the most memory that is shown to be enough; None if none is."""
    enough = (finding.facts["pool_bytes"] for finding in findings if finding.kind is CurveKind.ENOUGH)
    return max(enough, default=None)
