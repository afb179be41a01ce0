"""Findings on the memory curve: where it bends, and memory compared with flash."""

from collections.abc import Iterator, Sequence
from itertools import combinations
from statistics import fmean

from stallmark.analysis.compare.claims import Claims
from stallmark.analysis.finding import Finding, Kind, caution, info
from stallmark.analysis.points import Point, points
from stallmark.analysis.pool_curve.curve import CurveSize, Gain, PoolCurve, gain, throughput_curve
from stallmark.analysis.prediction import demands_of, mean_prediction
from stallmark.analysis.run import RunSummary
from stallmark.analysis.step_summary import StepSummary
from stallmark.record.manifest import Manifest
from stallmark.stats.curve_search import MonotoneCurve, smallest_enough
from stallmark.stats.thresholds import SAME

# Memory against flash, where the record has both: how much memory gives the throughput that flash gave. Where no run
# had flash, faster reads stand in: those that the model of a step predicts (`prediction.py`).

GIB = 1024**3
FAST_MS = 1.0
"""The read time of fast storage for which predictions are shown."""
SLOW_TIMES = 2.0
"""Factor by which measured reads must be slower than FAST_MS for that to mean other storage."""


class FlashKind(Kind):
    FOR_MEMORY = "flash_for_memory"
    BEYOND_MEMORY = "flash_beyond_memory"
    NO_GAIN = "flash_gives_no_more"
    READS_FOR_MEMORY = "faster_reads_for_memory"


def flash_findings(curve: PoolCurve, runs: Sequence[RunSummary], claims: Claims) -> Iterator[Finding]:
    """Yield a finding for every variant with flash that may be compared with the curve's sizes, or one of predicted
    faster reads if no variant has flash.

    A curve that was itself measured with flash shows nothing about memory without it.
    """
    manifests = {step.key: run.manifest for run in runs for step in run.steps}
    steps = [step for run in runs for step in run.steps if not step.validity.invalid and step.result_tps > 0]
    variants = {size.variant for size in curve.sizes}
    of_curve = [step for step in steps if step.variant in variants]
    # Such a curve already includes the flash.
    if any(flash_bytes(manifests[step.key]) for step in of_curve):
        return
    others = points([step for step in steps if _same_load_as_curve(curve, step) and step.variant not in variants])
    flash = [(point, of_flash) for point in others if (of_flash := flash_bytes(manifests[point.first.key]))]
    for point, of_flash in flash:
        if not all(claims.claim(size, point).comparable for size in points(of_curve)):
            continue
        if finding := _compare_flash(curve, point, of_flash, manifests[point.first.key].scenario.cost or {}):
            yield finding
    if not flash and (finding := _predicted_finding(curve, of_curve)):
        yield finding


def flash_bytes(manifest: Manifest) -> int | None:
    """Return the flash of an array, emulated or as described, or None if it has none."""
    array = manifest.devices.for_role("data").emulated_array
    parts = [array.cache, array.tier] if array else []
    sizes = [part.size for part in parts if part]
    if manifest.array:
        sizes += [size for size in (manifest.array.flash_cache_bytes, manifest.array.flash_tier_bytes) if size]
    return sum(sizes) or None


def _same_load_as_curve(curve: PoolCurve, step: StepSummary) -> bool:
    """Return True if a step may be compared with the curve: an emulated device shows nothing about a real one."""
    alone = not (step.beside or step.streams or step.maintenance)
    return step.emulated == curve.emulated and step.users == curve.users and alone


def _compare_flash(curve: PoolCurve, point: Point, of_flash: int, cost: dict[str, float]) -> Finding | None:
    """Compare the throughput of a variant with flash with the memory curve without flash."""
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
    # Equal runs differ by up to SAME, so this is no gain.
    if point.tps <= without * (1 + SAME):
        return info(FlashKind.NO_GAIN, **facts)
    equal = fitted.size_of(point.tps)
    if equal is None:
        return info(FlashKind.BEYOND_MEMORY, largest_bytes=fitted.sizes[-1], **facts)
    memory_gib, flash_gib = (equal - pool) / GIB, of_flash / GIB
    return info(
        FlashKind.FOR_MEMORY,
        equal_bytes=equal,
        equal_range=_measured_neighbours(fitted, equal),
        worth=memory_gib / flash_gib,
        costs=[memory_gib * cost["memory"], flash_gib * cost["flash"]] if cost else None,
        **facts,
    )


def _measured_neighbours(fitted: MonotoneCurve, size: float) -> list[int]:
    """Return the measured sizes next to `size`, which bound it whatever the curve does in between."""
    below = [measured for measured in fitted.sizes if measured < size]
    above = [measured for measured in fitted.sizes if measured >= size]
    return [below[-1] if below else above[0], above[0] if above else below[-1]]


def _predicted_finding(curve: PoolCurve, steps: Sequence[StepSummary]) -> Finding | None:
    """Return the effect that faster reads would have in place of memory.

    It is computed at the smallest size with slow reads and a prediction within the curve: that size leaves least memory
    out.
    """
    fitted = throughput_curve(curve)
    for size in curve.sizes:
        demands = demands_of([step for step in steps if step.variant == size.variant])
        # Reads that were not slow in each run do not mean other storage.
        if not demands or min(demand.read_ms for demand in demands) < SLOW_TIMES * FAST_MS:
            continue
        predicted = mean_prediction(demands, FAST_MS)
        equal = fitted.size_of(predicted.tps)
        # Outside the curve, or no better than the measured size.
        if equal is None or equal <= size.pool_bytes:
            continue
        return caution(
            FlashKind.READS_FOR_MEMORY,
            pool_bytes=size.pool_bytes,
            read_ms=[fmean(demand.read_ms for demand in demands), FAST_MS],
            per_s=[size.rate.value, predicted.tps, predicted.low, predicted.high],
            primary=curve.primary,
            equal_bytes=equal,
            equal_range=[fitted.size_of(predicted.low), fitted.size_of(predicted.high)],
        )
    return None


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
