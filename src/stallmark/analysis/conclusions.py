"""The conclusions of an experiment, most important first. Invalid steps are never compared."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from stallmark.analysis.ceiling.findings import ceiling_findings
from stallmark.analysis.ceiling.summary import Ceiling
from stallmark.analysis.compare.summary import ComparisonSummary, Verdict
from stallmark.analysis.finding import Finding, caution, info, invalid
from stallmark.analysis.io_per_mailbox import io_per_mailbox
from stallmark.analysis.kinds import ExperimentKind
from stallmark.analysis.knee import knee
from stallmark.analysis.points import Point, apart_by_few_samples, group, labels, points
from stallmark.analysis.pool_curve.findings import curve_findings
from stallmark.analysis.pool_curve.flash import flash_findings
from stallmark.analysis.pool_curve.summary import PoolCurve
from stallmark.analysis.run import RunSummary
from stallmark.analysis.steady.steadiness import Judgement
from stallmark.analysis.step_summary import StepSummary
from stallmark.record.devices import DeviceLabel
from stallmark.stats.thresholds import CPU_LIMITS, READS_DIFFER, SAME


def conclusions(
    axis: str,
    runs: Sequence[RunSummary],
    judged: ComparisonSummary | None = None,
    curves: Sequence[PoolCurve] = (),
    ceilings: Sequence[Ceiling] = (),
) -> list[Finding]:
    """Return the findings. With `judged` a comparison gives verdicts on the variants: findings on variants are left
    out, and what must not be compared with the first is compared in no other. `curves` are those of memory, `ceilings`
    those of searches."""
    return list(_conclusions(axis, runs, judged, curves, ceilings))


def data_wrong(runs: Sequence[RunSummary]) -> Iterator[Finding]:
    """Yield a finding where a consistency condition did not hold after some run."""
    broken = [run.title for run in runs if any(c.holds is False for c in run.conditions)]
    if broken:
        yield invalid(ExperimentKind.DATA_WRONG, runs=broken)


def _conclusions(
    axis: str,
    runs: Sequence[RunSummary],
    judged: ComparisonSummary | None,
    curves: Sequence[PoolCurve],
    ceilings: Sequence[Ceiling],
) -> Iterator[Finding]:
    steps = [step for run in runs for step in run.steps]
    yield from data_wrong(runs)
    if not steps:
        yield invalid(ExperimentKind.NOTHING_MEASURED)
        return
    if ceilings:  # its levels are not compared with each other: that is the search's
        yield from ceiling_findings(ceilings)
        return
    valid = [step for step in steps if not step.validity.invalid and step.result_tps > 0]
    if len(valid) < len(steps):
        yield caution(ExperimentKind.STEPS_LEFT_OUT, left_out=len(steps) - len(valid), steps=len(steps))
    found = points(valid)
    yield from io_per_mailbox(found)
    unlike = {pair.b for pair in judged.pairs if pair.verdict is Verdict.NOT_COMPARABLE} if judged else set()
    compared = [point for point in _company(axis, found) if point.first.variant not in unlike]
    yield from _unsteady(steps)
    if axis == "users":
        yield from knee(compared)
    for curve in curves:
        yield from curve_findings(curve)
        yield from flash_findings(curve, runs)
    if axis == "buffer_pool":
        yield from _pools(compared, gains=not curves)
    if axis in ("buffer_pool", "device"):
        yield from _devices(compared)
    yield from _flash(found)
    if axis == "variant" and not judged:
        yield from _variants(compared)
    yield from _streams(compared)
    yield from _disturbed(compared)
    yield from _limits(found)
    yield from _bottleneck(found, len(valid) == len(steps))
    if bound := [point for point in found if any(step.validity.driver_bound for step in point.steps)]:
        yield caution(ExperimentKind.DRIVER_LIMITS, steps=labels(bound, found))
    if len(found) > 1:
        yield _certainty(found)


def _company(axis: str, found: Sequence[Point]) -> list[Point]:
    """Return the points of every variant that may be compared: those beside the most other loads, in the most copies.
    Of several that differ by the other loads alone it is the last."""
    chosen = []
    for same in group(found, lambda point: point.first.variant):
        most = max(_beside(point) for point in same)
        fullest = [point for point in same if _beside(point) == most]
        chosen += fullest[-1:] if axis == "variant" else fullest
    return chosen


def _beside(point: Point) -> tuple[int, int]:
    return point.first.cells or 0, len(point.first.beside)


def _unsteady(steps: Sequence[StepSummary]) -> Iterator[Finding]:
    """Find loads that never became steady. That is a result: a cache that warms for hours, a device that tires."""
    everything = points(steps)
    for point in everything:
        never = [one for s in point.steps if (one := s.validity.steadiness) and one.verdict == Judgement.NEVER]
        if never:
            yield caution(
                ExperimentKind.NO_STEADY_STATE,
                step=labels([point], everything)[0] if len(everything) > 1 else None,
                unsteady=len(never),
                runs=len(point.steps),
                how=never[0].finding,
            )


def _pools(found: Sequence[Point], gains: bool) -> Iterator[Finding]:
    """Compare the smallest with the largest buffer pool on each device; with `gains`, also find the largest single
    gain, which a curve shows better."""
    devices = _by_device(found)
    for same in devices.values():
        same = sorted(same, key=lambda point: point.first.buffer_pool_bytes or 0)
        if len({point.first.buffer_pool_bytes for point in same}) < 2:
            continue
        small, large = same[0], same[-1]
        yield info(
            ExperimentKind.POOL,
            variants=[small.first.variant, large.first.variant] if len(devices) > 1 else None,
            pools_bytes=[small.first.buffer_pool_bytes, large.first.buffer_pool_bytes],
            pools_share=[small.first.buffer_pool_share, large.first.buffer_pool_share],
            per_s=[small.tps, large.tps],
            differ=abs(large.tps / small.tps - 1) > SAME,
            primary=small.first.throughput.primary,
            reads_per_transaction=[small.reads_per_transaction, large.reads_per_transaction],
        )
        if gains and len(same) > 2 and large.tps > small.tps * (1 + SAME):
            before, after = max(pairwise(same), key=lambda pair: pair[1].tps / pair[0].tps)
            yield info(
                ExperimentKind.POOL_GAIN,
                ratio=after.tps / before.tps,
                pools_bytes=[before.first.buffer_pool_bytes, after.first.buffer_pool_bytes],
                pools_share=[before.first.buffer_pool_share, after.first.buffer_pool_share],
            )


def _devices(found: Sequence[Point]) -> Iterator[Finding]:
    """Compare devices at the same buffer pool; there the reads per transaction must not differ."""
    for same in group(found, lambda point: (point.first.buffer_pool_bytes, point.first.users)):
        by_device = list(_by_device(same).values())
        for slow, fast in pairwise(by_device):
            a, b = slow[0], fast[0]
            variants, pool = [a.first.variant, b.first.variant], (a.first.buffer_pool_bytes, a.first.buffer_pool_share)
            if a.first.emulated_roles != b.first.emulated_roles:
                yield caution(ExperimentKind.DEVICES_UNLIKE, variants=variants, pool_bytes=pool[0], pool_share=pool[1])
                continue
            flash = any(point.first.storage.flash for point in (a, b))
            yield info(
                ExperimentKind.DEVICES,
                variants=variants,
                pool_bytes=pool[0],
                pool_share=pool[1],
                per_s=[a.tps, b.tps],
                primary=b.first.throughput.primary,
                one_run_each=flash and len(a.steps) == len(b.steps) == 1,
                flash_warming=any(step.flash_warming for point in (a, b) for step in point.steps),
            )
            before, after = a.reads_per_transaction, b.reads_per_transaction
            if before is None or after is None:
                continue
            if abs(after - before) <= (READS_DIFFER + apart_by_few_samples(a.steps, b.steps)) * max(before, after, 0.1):
                continue
            yield caution(ExperimentKind.DEVICE_READS, variants=variants, reads_per_transaction=[before, after])


def _flash(found: Sequence[Point]) -> Iterator[Finding]:
    """Say how much of the reads flash took off the disks, in the first run of every point that has any."""
    for point in found:
        use = point.first.storage.flash
        if use is None or not use.share or use.read_ms is None:
            continue
        yield info(
            ExperimentKind.FLASH,
            step=labels([point], found)[0],
            flash=use.kind,
            share=use.share,
            read_ms=use.read_ms,
            spindle_read_ms=use.spindle_read_ms,
            halves_share=[use.first_half or 0.0, use.second_half or 0.0] if use.warming else None,
        )


def _streams(found: Sequence[Point]) -> Iterator[Finding]:
    """Say what streams of queries cost the users, where nothing else differs."""
    for same in group(found, lambda point: (point.first.buffer_pool_bytes, point.first.device, point.first.users)):
        alone = next((point for point in same if point.first.streams is None), None)
        for point in same:
            if point.first.streams is None:
                continue
            rates = [step.streams.per_hour for step in point.steps if step.streams]
            yield info(
                ExperimentKind.STREAMS,
                streams=point.first.streams.streams,
                queries_per_h=sum(rates) / len(rates),
                users=point.first.users,
                per_s=point.tps,
                alone_per_s=alone.tps if alone and alone.tps else None,
                primary=point.first.throughput.primary,
            )


def _disturbed(found: Sequence[Point]) -> Iterator[Finding]:
    """Say what maintenance beside the users cost them, where nothing else differs."""
    for same in group(found, lambda point: (point.first.buffer_pool_bytes, point.first.device, point.first.users)):
        alone = next((point for point in same if point.first.maintenance is None), None)
        for point in same:
            if (ran := point.first.maintenance) is None:
                continue
            yield info(
                ExperimentKind.DISTURBED,
                variant=point.first.variant,
                maintenance=ran.kind,
                done=ran.done,
                mean_s=ran.mean_s,
                share=ran.share,
                failed=ran.failed,
                per_s=point.tps,
                alone_per_s=alone.tps if alone and alone.tps else None,
                primary=point.first.throughput.primary,
            )


def _variants(found: Sequence[Point]) -> Iterator[Finding]:
    if len(found) < 2:
        for point in found:
            yield info(
                ExperimentKind.ONE_VARIANT,
                variant=point.first.variant,
                per_s=point.tps,
                primary=point.first.throughput.primary,
            )
        return
    worst, best = min(found, key=lambda p: p.tps), max(found, key=lambda p: p.tps)
    alike = best.tps <= worst.tps * (1 + SAME)
    yield info(
        ExperimentKind.VARIANTS_ALIKE if alike else ExperimentKind.VARIANTS,
        variants=[worst.first.variant, best.first.variant],
        per_s=[worst.tps, best.tps],
        primary=best.first.throughput.primary,
    )


def _bottleneck(found: Sequence[Point], every_step: bool) -> Iterator[Finding]:
    """Name the steps that storage limits in all of their runs or in some, and the verdict of every step in which it
    limits none, or not alone. `every_step`: no step that was measured is left out of `found`."""
    limited = [point for point in found if all(step.bottleneck.is_device for step in point.steps)]
    if limited:
        everywhere = every_step and len(limited) == len(found) > 1
        yield info(ExperimentKind.STORAGE_LIMITS, steps=None if everywhere else labels(limited, found))
    for point in found:
        name, runs = labels([point], found)[0], sum(step.bottleneck.is_device is True for step in point.steps)
        if 0 < runs < len(point.steps):
            yield info(ExperimentKind.STORAGE_LIMITS_SOMETIMES, step=name, runs=runs, of=len(point.steps))
        elif not runs and all(_not_storage_alone(step) for step in point.steps):
            yield info(ExperimentKind.STORAGE_DOES_NOT_LIMIT, step=name, verdict=point.first.bottleneck.device_verdict)


def _not_storage_alone(step: StepSummary) -> bool:
    """Tell whether storage does not limit a step, or the CPUs do as well."""
    if step.bottleneck.device_verdict is None:
        return False
    busy = (step.server.cpu_busy_share or 0.0) >= CPU_LIMITS
    return step.bottleneck.is_device is False or (step.bottleneck.is_device is None and busy)


def _limits(found: Sequence[Point]) -> Iterator[Finding]:
    """Find where transactions took longer than the workload allows, which leaves a step comparable."""
    slow = [p for p in found if any(g.passed is False and not g.voids for s in p.steps for g in s.validity.gates)]
    if slow:
        yield caution(ExperimentKind.OVER_LIMIT, steps=labels(slow, found))


def _certainty(found: Sequence[Point]) -> Finding:
    fewest = min(len(point.steps) for point in found)
    if all(len(point.steps) == 1 for point in found):
        return caution(ExperimentKind.ONE_RUN_EACH)
    return info(ExperimentKind.SPREAD, share=max(point.spread for point in found), fewest_runs=fewest)


def _by_device(found: Sequence[Point]) -> dict[DeviceLabel, list[Point]]:
    return {same[0].first.device: same for same in group(found, lambda point: point.first.device)}
