"""Memory against flash, where the record has both: how much memory gives the throughput that flash gave.

Where no run had flash, faster reads stand in: those that the model of a step predicts (prediction.py).
"""

from collections.abc import Iterator, Sequence
from statistics import fmean

from stallmark.analysis.compare.claims import Claims
from stallmark.analysis.finding import Finding, Kind, caution, info
from stallmark.analysis.metrics import Point, points
from stallmark.analysis.pool_curve import PoolCurve, throughput_curve
from stallmark.analysis.prediction import demands_of, mean_prediction
from stallmark.analysis.run import RunSummary
from stallmark.analysis.step_summary import StepSummary
from stallmark.record.manifest import Manifest
from stallmark.stats.curve_search import MonotoneCurve
from stallmark.stats.thresholds import SAME

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
    return step.emulated == curve.emulated and step.users == curve.users and not any(step.other_work)


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
