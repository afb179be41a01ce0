"""Memory against flash, where the record has both: how much memory gives the throughput that flash gave.

Where no run had flash, faster reads stand in: those that the model of a step predicts (`bottleneck/prediction.py`).
"""

from collections.abc import Iterator, Sequence
from statistics import fmean

from stallmark.analysis.compare.claims import Claims
from stallmark.analysis.finding import Finding, Kind, caution, info
from stallmark.analysis.points import Point, points
from stallmark.analysis.pool_curve.curve import throughput_curve
from stallmark.analysis.pool_curve.summary import CurveSize, PoolCurve
from stallmark.analysis.run import RunSummary
from stallmark.analysis.step_summary import StepSummary
from stallmark.record.manifest import Manifest
from stallmark.stats.curve_search import MonotoneCurve
from stallmark.stats.thresholds import SAME

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
    without = fitted.at(pool)
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
