"""The findings of a curve of memory: how much is enough, what more and less of it do, and how well it is known."""

from collections.abc import Iterator
from itertools import combinations

from stallmark.analysis.finding import Finding, Kind, caution, info
from stallmark.analysis.pool_curve.curve import gain, throughput_curve
from stallmark.analysis.pool_curve.summary import CurveSize, Gain, PoolCurve
from stallmark.stats.curve_search import smallest_enough
from stallmark.stats.thresholds import SAME

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
