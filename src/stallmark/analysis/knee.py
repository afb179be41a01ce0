"""The knee over the users: the fewest users that give as much throughput as any number of them."""

from collections.abc import Iterator, Sequence

from stallmark.analysis.compare.claims import Claims
from stallmark.analysis.finding import Finding, info
from stallmark.analysis.kinds import ExperimentKind
from stallmark.analysis.points import Point, group
from stallmark.stats.thresholds import SAME


def knee(found: Sequence[Point], claims: Claims) -> Iterator[Finding]:
    """Find where throughput stops growing with the users, in each variant, and what more users only add to latency."""
    variants = group(found, lambda point: point.first.variant)
    for same in variants:
        same = sorted(same, key=lambda point: point.first.users)
        if len(same) < 2:
            continue
        variant = same[0].first.variant if len(variants) > 1 else None
        few, best = same[0], max(same, key=lambda point: point.tps)
        claim = claims.claim(few, best)
        yield info(
            ExperimentKind.MOST_USERS,
            variant=variant,
            users=[few.first.users, best.first.users],
            per_s=[few.tps, best.tps],
            ratio=claim.ratio,
            verdict=claim.verdict,
            primary=few.first.throughput.primary,
        )
        bend = next(point for point in same if point.tps >= best.tps * (1 - SAME))
        last = same[-1]
        before, after = bend.latency_mean_ms, last.latency_mean_ms
        if bend is last or before is None or after is None or after <= before:
            continue
        if any(step.validity.driver_bound for point in same for step in point.steps):
            continue  # the knee may be the driver's
        yield info(
            ExperimentKind.KNEE,
            variant=variant,
            users=[bend.first.users, last.first.users],
            share=bend.tps / best.tps,
            latency_mean_ms=[before, after],
            fewest_runs=min(len(point.steps) for point in (bend, best, last)),
        )
