"""The memory curve: its sizes, and the line through them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
import scipy  # imports its parts lazily

from stallmark.analysis.compare.claims import Claims
from stallmark.analysis.compare.summary import ReasonKind
from stallmark.analysis.points import Point, group, points
from stallmark.analysis.run import RunSummary
from stallmark.analysis.step_summary import StepSummary
from stallmark.record.devices import DeviceLabel
from stallmark.record.manifest.course import ChosenSize
from stallmark.stats.curve_search import FEWEST, LeftOut, MonotoneCurve, Way
from stallmark.stats.student import paired, pooled_spread
from stallmark.stats.thresholds import CONFIDENCE, REPLICATES

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
    """Yield complete runs of one step, with a known buffer pool and comparable figures."""
    for run in runs:
        if run.incomplete_because or len(run.steps) != 1:
            continue
        step = run.steps[0]
        if step.buffer_pool_bytes and step.result_tps > 0 and not step.validity.invalid:
            yield run


def _curve_key(step: StepSummary) -> tuple[object, ...]:
    """Return the properties that two sizes must share to belong to one curve."""
    others = (step.beside, bool(step.streams), step.maintenance.kind if step.maintenance else None)
    return (step.device, step.emulated_roles, step.users, *others)


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
