"""The knee: the number of users from which more users add no throughput."""

from collections.abc import Iterator, Sequence

from stallmark.analysis.compare.claims import Claims
from stallmark.analysis.finding import ExperimentKind, Finding, info
from stallmark.analysis.metrics import Point, group
from stallmark.stats.thresholds import SAME


def knee(compared: Sequence[Point], claims: Claims) -> Iterator[Finding]:
    """Find the number of users from which throughput stops growing, in each variant, and the latency that more users
    add."""
    variants = group(compared, lambda point: point.first.variant)
    for same in variants:
        same = sorted(same, key=lambda point: point.first.users)
        # A single number of users has no curve.
        if len(same) < 2:
            continue
        variant = same[0].first.variant if len(variants) > 1 else None
        few, best = same[0], max(same, key=lambda point: point.tps)
        users = [few.first.users, best.first.users]
        yield info(ExperimentKind.MOST_USERS, variant=variant, users=users, **claims.facts(few, best))
        bend = next(point for point in same if point.tps >= best.tps * (1 - SAME))
        last = same[-1]
        before, after = bend.mean("latency"), last.mean("latency")
        # Without further users, or without more latency, the last step is no worse than the bend.
        if bend is last or before is None or after is None or after <= before:
            continue
        if any(step.validity.driver_bound for point in same for step in point.steps):
            continue  # the knee may be the driver's
        yield info(
            ExperimentKind.KNEE,
            variant=variant,
            users=[bend.first.users, last.first.users],
            share=bend.tps / best.tps,
            last_share=last.tps / best.tps,
            latency_mean_ms=[before, after],
            fewest_runs=min(len(point.steps) for point in (bend, best, last)),
        )
