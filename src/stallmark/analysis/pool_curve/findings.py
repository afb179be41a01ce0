"""Findings on the curve of memory: where it bends, and memory against flash."""

from collections.abc import Iterator, Sequence
from itertools import combinations
from statistics import fmean

from stallmark.analysis.compare.claims import Claims
from stallmark.analysis.finding import Finding, Kind, caution, info
from stallmark.analysis.points import Point, points
from stallmark.analysis.pool_curve.curve import CurveSize, Gain, PoolCurve, gain, throughput_curve
from stallmark.analysis.run import RunSummary
from stallmark.analysis.step_summary import StepSummary
from stallmark.record.manifest import Manifest
from stallmark.stats.curve_search import MonotoneCurve, smallest_enough
from stallmark.stats.thresholds import SAME

# Memory against flash, where the record has both: how much memory gives the throughput that flash gave.
#
# Where no run had flash, faster reads stand in: those that the model of a step predicts (`bottleneck/laws.py`).

GIB = 1024**3
FAST_MS = 1.0
"""A read time of fast storage that a prediction is told for."""
SLOW_TIMES = 2.0
"""How many times as long reads must have taken for that to be another storage."""


class FlashKind(Kind):
    FOR_MEMORY = "flash_for_memory"
    BEYOND_MEMORY = "flash_beyond_memory"
    NO_GAIN = "flash_gives_no_more"
    READS_FOR_MEMORY = "faster_reads_for_memory"


def flash_findings(curve: PoolCurve, runs: Sequence[RunSummary], claims: Claims) -> Iterator[Finding]:
    """Yield a finding for every variant with flash that may be compared with the curve's sizes, or one of predicted
    faster reads if there is none. A curve that was itself measured with flash says nothing of memory without it."""
    manifests = {step.key: run.manifest for run in runs for step in run.steps}
    steps = [step for run in runs for step in run.steps if not step.validity.invalid and step.result_tps > 0]
    variants = {size.variant for size in curve.sizes}
    of_curve = [step for step in steps if step.variant in variants]
    if any(flash_bytes(manifests[step.key]) for step in of_curve):
        return
    others = points([step for step in steps if _alike(curve, step) and step.variant not in variants])
    flash = [(point, of_flash) for point in others if (of_flash := flash_bytes(manifests[point.first.key]))]
    for point, of_flash in flash:
        if not all(claims.claim(size, point).comparable for size in points(of_curve)):
            continue
        if found := _against(curve, point, of_flash, manifests[point.first.key].scenario.cost or {}):
            yield found
    if not flash and (found := _predicted(curve, of_curve)):
        yield found


def flash_bytes(manifest: Manifest) -> int | None:
    """Return the flash of an array, emulated or as it is described; None where it has none."""
    array = manifest.devices.of("data").emulated_array
    parts = [array.cache, array.tier] if array else []
    sizes = [part.size for part in parts if part]
    if manifest.array:
        sizes += [size for size in (manifest.array.flash_cache_bytes, manifest.array.flash_tier_bytes) if size]
    return sum(sizes) or None


def _alike(curve: PoolCurve, step: StepSummary) -> bool:
    """Tell whether a step may be held against the curve: an emulated device says nothing about a real one."""
    alone = not (step.beside or step.streams or step.maintenance)
    return step.emulated == curve.emulated and step.users == curve.users and alone


def _against(curve: PoolCurve, point: Point, of_flash: int, cost: dict[str, float]) -> Finding | None:
    """Hold the throughput of a variant with flash against the curve of memory without."""
    pool = point.first.buffer_pool_bytes
    fitted = throughput_curve(curve)
    if pool is None or not fitted.sizes[0] <= pool <= fitted.sizes[-1]:
        return None
    without = fitted.value_at(pool)
    facts = {
        "variant": point.first.variant,
        "pool_bytes": pool,
        "flash_bytes": of_flash,
        "per_s": [without, point.tps],
        "primary": curve.primary,
        "fewest_runs": min(curve.fewest_runs, len(point.steps)),
    }
    if point.tps <= without * (1 + SAME):
        return info(FlashKind.NO_GAIN, **facts)
    equal = fitted.size_of(point.tps)
    if equal is None:
        return info(FlashKind.BEYOND_MEMORY, largest_bytes=fitted.sizes[-1], **facts)
    memory_gib, flash_gib = (equal - pool) / GIB, of_flash / GIB
    return info(
        FlashKind.FOR_MEMORY,
        equal_bytes=equal,
        equal_range=_between(fitted, equal),
        worth=memory_gib / flash_gib,
        costs=[memory_gib * cost["memory"], flash_gib * cost["flash"]] if cost else None,
        **facts,
    )


def _between(fitted: MonotoneCurve, size: float) -> list[int]:
    """Return the sizes that were measured on both sides of one: whatever the curve does between, it lies there."""
    below = [one for one in fitted.sizes if one < size]
    above = [one for one in fitted.sizes if one >= size]
    return [below[-1] if below else above[0], above[0] if above else below[-1]]


def _predicted(curve: PoolCurve, steps: Sequence[StepSummary]) -> Finding | None:
    """Return what faster reads in place of memory would give, at the size whose prediction leaves least memory out: the
    smallest with reads that were slow, and a prediction within the curve."""
    fitted = throughput_curve(curve)
    for size in curve.sizes:
        found = _prediction(size, steps)
        if found is None:
            continue
        read_ms, tps, low, high = found
        equal = fitted.size_of(tps)
        if equal is None or equal <= size.pool_bytes:
            continue
        ends = [fitted.size_of(low), fitted.size_of(high)]
        return caution(
            FlashKind.READS_FOR_MEMORY,
            pool_bytes=size.pool_bytes,
            read_ms=[read_ms, FAST_MS],
            per_s=[size.rate.value, tps, low, high],
            primary=curve.primary,
            equal_bytes=equal,
            equal_range=ends,
        )
    return None


def _prediction(size: CurveSize, steps: Sequence[StepSummary]) -> tuple[float, float, float, float] | None:
    """Return the read time as measured, and the throughput predicted for FAST_MS with its range, means over the runs of
    a size; None if reads were not slow in each of them, or nothing is predicted of one."""
    causes = [step.cause for step in steps if step.variant == size.variant]
    demands = [cause.demands for cause in causes if cause and cause.demands]
    found = [one for cause in causes if cause for one in cause.predictions if one.read_ms == FAST_MS]
    if not causes or len(demands) < len(causes) or len(found) < len(causes):
        return None
    if min(one.read_ms for one in demands) < SLOW_TIMES * FAST_MS:
        return None
    tps, low, high = (fmean(getattr(one, name) for one in found) for name in ("tps", "low", "high"))
    return fmean(one.read_ms for one in demands), tps, low, high


# The findings of a curve of memory: how much is enough, what more and less of it do, and how well it is known.

NEAR_TWICE = (1.5, 2.7)
"""How many times as much memory a size may be to stand for twice of another. It is named as it is."""


ALL = 0.99
"""The share of the data that is all of them, as a pool of 100 % is rounded."""


class CurveKind(Kind):
    ENOUGH = "memory_enough"
    MAY_BE_ENOUGH = "memory_may_be_enough"
    STILL_BUYS = "memory_still_buys"
    FELL = "throughput_fell_with_memory"
    KNOWN = "curve_of_memory_known"
    NOT_KNOWN = "curve_of_memory_not_known"


ANSWERS = (CurveKind.ENOUGH, CurveKind.MAY_BE_ENOUGH, CurveKind.STILL_BUYS)


def curve_findings(curve: PoolCurve) -> Iterator[Finding]:
    """Yield the answer first, where the figures give one, then how well the curve is known."""
    if fell := _fell(curve):
        yield fell
    elif found := _enough(curve):
        yield found
    yield _known(curve)


def _fell(curve: PoolCurve) -> Finding | None:
    """Find throughput that fell with more memory by more than runs scatter: then no size is called enough."""
    falls = [(gain(curve, one, other), one) for one, other in combinations(curve.sizes, 2)]
    worst, one = min(falls, key=lambda pair: pair[0].change)
    if worst.change >= -2 * SAME or (worst.high is not None and worst.high >= 0):
        return None
    return caution(
        CurveKind.FELL,
        pools_bytes=[one.pool_bytes, worst.pool_bytes],
        change=worst.change,
        primary=curve.primary,
        fewest_runs=curve.fewest_runs,
    )


def _enough(curve: PoolCurve) -> Finding | None:
    """Return the smallest size from which no larger one gives more than SAME, with twice and half of it. Only a size of
    which twice was measured as well, or all of the data, is called enough."""
    by_bytes = {size.pool_bytes: size for size in curve.sizes}
    enough, largest = by_bytes[smallest_enough(throughput_curve(curve))], curve.sizes[-1]
    double = _near(curve, enough, 1)
    if double is None and enough is not largest and (largest.pool_share or 0.0) >= ALL:
        double = largest  # twice as much could hold no more
    if double is None:
        return _still_buys(curve, largest)
    more, half = gain(curve, enough, double), _near(curve, enough, -1)
    less = gain(curve, enough, half) if half else None
    too_wide = more.high is not None and more.high > 2 * SAME
    may_give_more = more.change > SAME or too_wide or double.driver_bound
    make = caution if may_give_more else info
    return make(
        CurveKind.MAY_BE_ENOUGH if may_give_more else CurveKind.ENOUGH,
        pool_bytes=enough.pool_bytes,
        pool_share=enough.pool_share,
        per_s=enough.rate.value,
        primary=curve.primary,
        more=_facts(more),
        less=_facts(less) if less and _shown(less) and less.change < 0 else None,
        smallest=enough is curve.sizes[0],
        driver_bound=double.driver_bound,
        fewest_runs=curve.fewest_runs,
    )


def _still_buys(curve: PoolCurve, largest: CurveSize) -> Finding | None:
    """Return what the largest size gives more than half of it, where that is shown."""
    half = _near(curve, largest, -1)
    if half is None:
        return None
    last = gain(curve, half, largest)
    if last.change <= SAME or not _shown(last):
        return None
    return info(
        CurveKind.STILL_BUYS,
        pool_bytes=largest.pool_bytes,
        pool_share=largest.pool_share,
        per_s=largest.rate.value,
        primary=curve.primary,
        last=_facts(last),
        fewest_runs=curve.fewest_runs,
    )


def _near(curve: PoolCurve, size: CurveSize, way: int) -> CurveSize | None:
    """Return the size nearest to twice another (`way` 1), or to half of it (-1)."""
    low, high = NEAR_TWICE
    near = [one for one in curve.sizes if low <= (one.pool_bytes / size.pool_bytes) ** way <= high]
    return min(near, key=lambda one: abs((one.pool_bytes / size.pool_bytes) ** way - 2), default=None)


def _shown(found: Gain) -> bool:
    """Tell whether an interval leaves no doubt of the direction; without one, whether it is more than single runs
    scatter."""
    if found.low is None or found.high is None:
        return abs(found.change) > SAME
    return found.low > 0 or found.high < 0


def _facts(found: Gain) -> list[float | None]:
    return [found.times, found.change, found.low, found.high]


def _known(curve: PoolCurve) -> Finding:
    """Return how far the curve missed sizes that were left out. It is known where that is within what was asked for, or
    within twice what runs differ by anyway."""
    fits = [curve.throughput, *([curve.reads] if curve.reads else [])]
    error = max(fit.error for fit in fits)
    known = error <= (curve.tolerance or 2 * SAME)
    worst = curve.throughput.worst
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
