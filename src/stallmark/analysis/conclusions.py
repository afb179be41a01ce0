"""The conclusions of an experiment, most important first. Invalid steps are never compared."""

from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise
from typing import Any

from stallmark.analysis.bottleneck import NOT_JUDGED
from stallmark.analysis.ceiling import (
    Ceiling,
    ceiling_findings,
    flash_findings,
    mailboxes_of_ceilings,
    mailboxes_of_steps,
)
from stallmark.analysis.compare.claims import Claims
from stallmark.analysis.compare.summary import PairKind, ReasonKind, Verdict
from stallmark.analysis.finding import ExperimentKind, Finding, Kind, caution, info, invalid
from stallmark.analysis.knee import knee
from stallmark.analysis.metrics import Point, complete_mean, group, labels, mean_of, points, step_names
from stallmark.analysis.pool_curve import PoolCurve, curve_findings
from stallmark.analysis.run import RunSummary
from stallmark.analysis.steady import Judgement
from stallmark.analysis.step_summary import StepSummary
from stallmark.record.devices import DeviceLabel
from stallmark.stats.thresholds import CPU_LIMITS, SAME


def data_wrong(runs: Sequence[RunSummary]) -> Iterator[Finding]:
    """Yield a finding where a consistency condition did not hold after some run."""
    if broken := [run.title for run in runs if run.has_wrong_data]:
        yield invalid(ExperimentKind.DATA_WRONG, runs=broken)


def conclusions(
    axis: str,
    runs: Sequence[RunSummary],
    claims: Claims | None = None,
    curves: Sequence[PoolCurve] = (),
    ceilings: Sequence[Ceiling] = (),
) -> Iterator[Finding]:
    """Yield the findings.

    `claims` decide which statements on variants are allowed; if they contain a comparison, findings on all variants are
    omitted. `curves` are memory curves, `ceilings` the results of searches.
    """
    claims = claims or Claims(runs)
    steps = [step for run in runs for step in run.steps]
    yield from data_wrong(runs)
    if not steps:
        yield invalid(ExperimentKind.NOTHING_MEASURED)
        return
    if ceilings:  # the search has already compared the levels
        yield from ceiling_findings(ceilings, claims)
        yield from mailboxes_of_ceilings(ceilings)
        return
    # Steps with invalid figures are named once, and support no conclusion.
    valid = [step for step in steps if not step.validity.invalid and step.result_tps > 0]
    if len(valid) < len(steps):
        yield caution(ExperimentKind.STEPS_LEFT_OUT, left_out=len(steps) - len(valid), steps=len(steps))
    valid_points = points(valid)
    compared = _fullest_points(axis, valid_points)
    # Computed first: the pairs that it names are not repeated below.
    devices = list(_devices(compared, claims)) if axis in ("buffer_pool", "device") else []
    yield from _incomparable_variants(
        compared, claims, {name for device in devices for name in device.facts["variants"]}
    )
    yield from _unsteady(steps)
    if axis == "users":
        yield from knee(compared, claims)
    for curve in curves:
        yield from curve_findings(curve)
        yield from flash_findings(curve, runs, claims)
    if axis == "buffer_pool":
        yield from _pools(compared, claims, gains=not curves)
    yield from devices
    yield from _flash(valid_points)
    # A comparison has its own verdicts on the variants.
    if axis == "variant" and not claims.judged:
        alike = claims.comparable_points(compared)
        yield from _variants(alike, claims, len(alike) == len(points(steps)))
    yield from _cost_of_others(compared, claims)
    yield from mailboxes_of_steps(valid_points)
    yield from _limits(valid, steps)
    yield from _bottleneck(valid_points, len(valid) == len(steps))
    if bound := [step for step in valid if step.validity.driver_bound]:
        yield caution(ExperimentKind.DRIVER_LIMITS, steps=step_names(bound, steps))
    if len(valid_points) > 1:
        yield _certainty(valid_points)


def _incomparable_variants(compared: Sequence[Point], claims: Claims, covered: Collection[str]) -> Iterator[Finding]:
    """Find the variants that must not be compared with the first one.

    Variants with a verdict of the comparison are listed there. Findings on devices already cover the variants in
    `covered`, which put an emulated device next to a real one.
    """
    # The comparison lists its pairs with their reasons.
    if claims.judged or not compared:
        return
    first = compared[0]
    for point in compared[1:]:
        claim = claims.claim(first, point)
        if claim.comparable or point.first.step != first.first.step:
            continue
        if all(reason.kind is ReasonKind.DEVICES_DIFFER for reason in claim.reasons) and point.first.variant in covered:
            continue
        a, b = first.first.variant, point.first.variant
        yield caution(PairKind.NOT_COMPARABLE, a=a, b=b, step=None, reasons=list(claim.reasons))


def _fullest_points(axis: str, compared: Sequence[Point]) -> list[Point]:
    """Return the comparable points of every variant: those with the most other loads, in the most copies. If points of
    a variant differ only in other loads, return the last."""
    chosen = []
    for same in group(compared, lambda point: point.first.variant):
        most = max(_other_loads(point) for point in same)
        fullest = [point for point in same if _other_loads(point) == most]
        chosen += fullest[-1:] if axis == "variant" else fullest
    return chosen


def _other_loads(point: Point) -> tuple[int, int]:
    return point.first.cells or 0, len(point.first.beside)


def _unsteady(steps: Sequence[StepSummary]) -> Iterator[Finding]:
    """Find loads that never became steady. That is a result: a cache that warms for hours, a device that tires."""
    everything = points(steps)
    for point in everything:
        never = [
            steadiness
            for s in point.steps
            if (steadiness := s.validity.steadiness) and steadiness.verdict == Judgement.NEVER
        ]
        for same in group(never, lambda steadiness: steadiness.finding.kind):
            yield caution(
                ExperimentKind.NO_STEADY_STATE,
                step=labels([point], everything)[0] if len(everything) > 1 else None,
                unsteady=len(same),
                runs=len(point.steps),
                how=same[0].finding,
            )


def _pools(compared: Sequence[Point], claims: Claims, gains: bool) -> Iterator[Finding]:
    """Compare the smallest with the largest buffer pool on each device; with `gains`, also find the largest single
    gain, which a curve shows better."""
    devices = _by_device(compared)
    for same in devices.values():
        same = sorted(claims.comparable_points(same), key=lambda point: point.first.buffer_pool_bytes or 0)
        # Several variants of one size differ in something else.
        if len(same) < 2 or len({point.first.buffer_pool_bytes for point in same}) < len(same):
            continue
        small, large = same[0], same[-1]
        yield info(
            ExperimentKind.POOL,
            variants=[small.first.variant, large.first.variant] if len(devices) > 1 else None,
            pools_bytes=[small.first.buffer_pool_bytes, large.first.buffer_pool_bytes],
            pools_share=[small.first.buffer_pool_share, large.first.buffer_pool_share],
            differ=abs(large.tps / small.tps - 1) > SAME,
            reads_per_transaction=[small.mean("reads"), large.mean("reads")],
            **claims.facts(small, large),
        )
        if gains and len(same) > 2 and large.tps > small.tps * (1 + SAME):
            before, after = max(pairwise(same), key=lambda pair: pair[1].tps / pair[0].tps)
            claim = claims.claim(before, after)
            if claim.verdict is Verdict.NO_DIFFERENCE:
                continue
            yield info(
                ExperimentKind.POOL_GAIN,
                ratio=claim.ratio,
                verdict=claim.verdict,
                pools_bytes=[before.first.buffer_pool_bytes, after.first.buffer_pool_bytes],
                pools_share=[before.first.buffer_pool_share, after.first.buffer_pool_share],
            )


def _devices(compared: Sequence[Point], claims: Claims) -> Iterator[Finding]:
    """Compare devices at the same buffer pool, as far as their runs may be compared."""
    for same in group(compared, lambda point: (point.first.buffer_pool_bytes, point.first.users)):
        by_device = list(_by_device(same).values())
        for slow, fast in pairwise(by_device):
            a, b = slow[0], fast[0]
            facts: dict[str, Any] = {
                "variants": [a.first.variant, b.first.variant],
                "pool_bytes": a.first.buffer_pool_bytes,
                "pool_share": a.first.buffer_pool_share,
            }
            if a.first.emulated_roles != b.first.emulated_roles:
                yield caution(ExperimentKind.DEVICES_UNLIKE, **facts)
            elif claims.claim(a, b).comparable:
                warming = any(step.flash_warming for point in (a, b) for step in point.steps)
                yield info(ExperimentKind.DEVICES, **facts, **claims.facts(a, b), flash_warming=warming)


def _flash(compared: Sequence[Point]) -> Iterator[Finding]:
    """Find the share of reads that flash answered instead of the disks, as means over the runs with such reads."""
    for point in compared:
        uses = [use for step in point.steps if (use := step.storage.flash) and use.share and use.read_ms is not None]
        for same in group(uses, lambda use: use.kind):
            warming = [use for use in same if use.warming]
            yield info(
                ExperimentKind.FLASH,
                step=labels([point], compared)[0],
                flash=same[0].kind,
                share=mean_of([use.share for use in same]),
                read_ms=mean_of([use.read_ms for use in same]),
                spindle_read_ms=complete_mean([use.spindle_read_ms for use in same]),
                halves_share=[
                    mean_of([use.first_half or 0.0 for use in warming]),
                    mean_of([use.second_half or 0.0 for use in warming]),
                ]
                if warming
                else None,
                warming=len(warming),
                runs=len(same),
                of=len(point.steps),
            )


def _cost_of_others(compared: Sequence[Point], claims: Claims) -> Iterator[Finding]:
    """Yield the cost of query streams, and of maintenance, for the users beside it, if nothing else differs."""
    same_users = group(compared, lambda point: (point.first.buffer_pool_bytes, point.first.device, point.first.users))
    for same in same_users:
        alone = next((point for point in same if point.first.streams is None), None)
        for point in same:
            if point.first.streams:
                rates = [step.streams.per_hour for step in point.steps if step.streams]
                yield info(
                    ExperimentKind.STREAMS,
                    streams=point.first.streams.streams,
                    queries_per_h=sum(rates) / len(rates),
                    users=point.first.users,
                    **_facts_beside(alone, point, claims),
                )
    for same in same_users:
        alone = next((point for point in same if point.first.maintenance is None), None)
        for point in same:
            if point.first.maintenance:
                ran = [step.maintenance for step in point.steps if step.maintenance]
                done = sum(maintenance.done for maintenance in ran)
                total_s = sum(maintenance.done * (maintenance.mean_s or 0.0) for maintenance in ran)
                yield info(
                    ExperimentKind.DISTURBED,
                    variant=point.first.variant,
                    maintenance=ran[0].kind,
                    done=done,
                    mean_s=total_s / done if done else None,
                    share=mean_of([maintenance.share for maintenance in ran]),
                    failed=sum(maintenance.failed for maintenance in ran),
                    runs=len(ran),
                    **_facts_beside(alone, point, claims),
                )


def _facts_beside(alone: Point | None, point: Point, claims: Claims) -> dict[str, Any]:
    """Return the throughput of a point, and relative to the same load alone, None if they must not be compared."""
    claim = claims.claim(alone, point) if alone else None
    facts = {"per_s": point.tps, "primary": point.first.throughput.primary}
    if alone is None or claim is None or claim.ratio is None:
        return facts | {"alone_per_s": None, "ratio": None, "verdict": None}
    return facts | {"alone_per_s": alone.tps, "ratio": claim.ratio, "verdict": claim.verdict}


def _variants(compared: Sequence[Point], claims: Claims, every: bool) -> Iterator[Finding]:
    """Name the best and the worst of the comparable variants. `every`: all variants are comparable."""
    if len(compared) < 2:
        for point in compared:
            primary = point.first.throughput.primary
            yield info(ExperimentKind.ONE_VARIANT, variant=point.first.variant, per_s=point.tps, primary=primary)
        return
    worst, best = min(compared, key=lambda p: p.tps), max(compared, key=lambda p: p.tps)
    alike = best.tps <= worst.tps * (1 + SAME)
    kind = ExperimentKind.VARIANTS_ALIKE if alike else ExperimentKind.VARIANTS
    variants = [worst.first.variant, best.first.variant]
    yield info(kind, variants=variants, every=every, **claims.facts(worst, best))


def _bottleneck(compared: Sequence[Point], every_step: bool) -> Iterator[Finding]:
    """Name the steps that storage limits in all or some of their runs, the verdicts on other runs, and the runs without
    a verdict.

    `every_step`: `compared` has every step that was measured.
    """
    limited = [point for point in compared if all(step.bottleneck.is_device for step in point.steps)]
    if limited:
        everywhere = every_step and len(limited) == len(compared) > 1
        yield info(ExperimentKind.STORAGE_LIMITS, steps=None if everywhere else labels(limited, compared))
    for point in compared:
        name, runs = labels([point], compared)[0], len(point.steps)
        limited_runs = sum(step.bottleneck.is_device is True for step in point.steps)
        # Steps limited in all runs are named together above.
        if 0 < limited_runs < runs:
            yield info(ExperimentKind.STORAGE_LIMITS_SOMETIMES, step=name, runs=limited_runs, of=runs)
        verdicts = [
            verdict for step in point.steps if (verdict := step.bottleneck.device_verdict) and _not_storage_alone(step)
        ]
        for same in group(verdicts, lambda verdict: (verdict.kind, verdict.facts.get("device"))):
            yield info(ExperimentKind.STORAGE_DOES_NOT_LIMIT, step=name, verdict=same[0], runs=len(same), of=runs)
    steps = [step for point in compared for step in point.steps]
    for unknown in group([step for step in steps if _not_judged(step)], _verdict_kind):
        because = _verdict_kind(unknown[0])
        yield caution(ExperimentKind.STORAGE_NOT_KNOWN, steps=step_names(unknown, steps), because=because)


def _not_storage_alone(step: StepSummary) -> bool:
    """Return True if storage does not limit a step, or the CPUs do as well."""
    if _not_judged(step):
        return False
    busy = (step.server.cpu_busy_share or 0.0) >= CPU_LIMITS
    return step.bottleneck.is_device is False or (step.bottleneck.is_device is None and busy)


def _not_judged(step: StepSummary) -> bool:
    """Return True if the record does not show whether storage limits a step."""
    kind = _verdict_kind(step)
    return kind is None or kind in NOT_JUDGED


def _verdict_kind(step: StepSummary) -> Kind | None:
    verdict = step.bottleneck.device_verdict
    return verdict.kind if verdict else None


def _limits(valid: Sequence[StepSummary], steps: Sequence[StepSummary]) -> Iterator[Finding]:
    """Find where transactions took longer than the workload allows, which leaves a step comparable."""
    slow = [step for step in valid if any(gate.passed is False and not gate.voids for gate in step.validity.gates)]
    if slow:
        yield caution(ExperimentKind.OVER_LIMIT, steps=step_names(slow, steps))


def _certainty(compared: Sequence[Point]) -> Finding:
    fewest = min(len(point.steps) for point in compared)
    if all(len(point.steps) == 1 for point in compared):
        return caution(ExperimentKind.ONE_RUN_EACH)
    return info(ExperimentKind.SPREAD, share=max(point.relative_range for point in compared), fewest_runs=fewest)


def _by_device(compared: Sequence[Point]) -> dict[DeviceLabel, list[Point]]:
    return {same[0].first.device: same for same in group(compared, lambda point: point.first.device)}
