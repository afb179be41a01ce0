"""Findings of a search for a ceiling: how much is carried, at which service level, what ends first, and which variant
carries more."""

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

from stallmark.analysis.ceiling.summary import Ceiling, by_variant, of_repeats
from stallmark.analysis.compare.claims import THROUGHPUT, Claims, decide
from stallmark.analysis.compare.metrics import ratio_of
from stallmark.analysis.compare.summary import PairKind
from stallmark.analysis.finding import Finding, Kind, caution, info
from stallmark.analysis.points import group


class CeilingKind(Kind):
    FOUND = "ceiling_found"
    AT_LEAST = "ceiling_not_reached"
    NONE = "ceiling_below_all"
    UNCONFIRMED = "ceiling_unconfirmed"
    ENDED = "ceiling_search_ended"
    REPEATS = "ceiling_of_repeats"
    RATIO = "ceilings_compared"
    LIMIT = "limit_beyond_the_ceiling"
    DRIVER = "ceiling_of_the_driver"


ANSWERS = tuple(kind for kind in CeilingKind if kind not in (CeilingKind.DRIVER, CeilingKind.LIMIT))
_KINDS = {
    "found": CeilingKind.FOUND,
    "at_least": CeilingKind.AT_LEAST,
    "none": CeilingKind.NONE,
    "unconfirmed": CeilingKind.UNCONFIRMED,
    None: CeilingKind.ENDED,
}


def ceiling_findings(found: Sequence[Ceiling], claims: Claims) -> Iterator[Finding]:
    """Yield variants against each other first, as far as they may be compared, then the ceiling of each, and where the
    driver was the limit."""
    variants = by_variant(found)
    for a, b in combinations(variants, 2):
        names = a[0].variant, b[0].variant
        if reasons := claims.reasons_against(*names):
            yield caution(PairKind.NOT_COMPARABLE, a=names[0], b=names[1], step=None, reasons=reasons)
        elif ratio := _ratio(a, b):
            yield ratio
    for same in variants:
        name = same[0].variant if len(variants) > 1 else None
        if len(same) > 1 and all(one.middle for one in same):
            yield _repeats(same, name)
        for one in same:
            repeat = one.repeat if len(same) > 1 else None
            yield _one(one, name, repeat)
            if verdict := one.limit:
                at = {"variant": name, "repeat": repeat, "of": one.of, "breaks": one.breaks}
                yield info(CeilingKind.LIMIT, **at, verdict=verdict)
        for bound in group([one for one in same if one.driver_bound], lambda one: one.breaks):
            facts = {"runs": len(bound), "repeats": len(same)}
            yield caution(CeilingKind.DRIVER, variant=name, of=bound[0].of, breaks=bound[0].breaks, **facts)


def _one(one: Ceiling, variant: str | None, repeat: int | None) -> Finding:
    kind = _KINDS[one.outcome]
    return (info if kind in (CeilingKind.FOUND, CeilingKind.AT_LEAST) else caution)(
        kind,
        variant=variant,
        repeat=repeat,
        of=one.of,
        holds=one.holds,
        breaks=one.breaks,
        asked=[one.low, one.high],
        per_s=one.tps,
        primary=one.levels[0].step.throughput.primary if one.levels else None,
        limits=_limits(one),
        missed=missed(one),
        limit=one.limit,
    )


def _limits(one: Ceiling) -> list[list[Any]]:
    """Return the service level: what each limit is of, the transaction, its percentile, and the limit in ms."""
    if not one.levels:
        return []
    return [[limit.of, limit.transaction, limit.percentile, limit.limit_ms] for limit in _most_limits(one)]


def _most_limits(one: Ceiling) -> Sequence[Any]:
    return max((level.seen.limits for level in one.levels), key=len)


def missed(one: Ceiling) -> list[list[Any]]:
    """Return the limits that the lowest level that breaks did not keep, as `_limits`. A backlog has no limit; one of
    queries names their load in place of a transaction."""
    broken = [level.seen for level in one.levels if level.seen.level == one.breaks and level.seen.verdict != "held"]
    limits = dict.fromkeys(
        (limit.of, limit.transaction, limit.percentile, limit.limit_ms)
        for seen in broken
        for limit in seen.limits
        if limit.value is not None and limit.value > limit.limit
    )
    backlog = [["backlog", None, None, None]] if any(seen.backlog and not seen.behind for seen in broken) else []
    queries = [["queries", load, None, None] for load in dict.fromkeys(load for seen in broken for load in seen.behind)]
    return [*backlog, *queries, *map(list, limits)]


def _repeats(same: Sequence[Ceiling], variant: str | None) -> Finding:
    """Return the ceiling over repeats: the geometric mean, with its interval by Student's t of the runs."""
    mean, low, high = of_repeats([(one.holds, one.breaks) for one in same if one.holds and one.breaks])
    rates = [one.tps for one in same if one.tps is not None]
    return info(
        CeilingKind.REPEATS,
        variant=variant,
        of=same[0].of,
        mean=mean,
        low=low,
        high=high,
        per_s=sum(rates) / len(rates) if rates else None,
        primary=same[0].levels[0].step.throughput.primary,
        limits=_limits(same[0]),
        runs=len(same),
    )


def _ratio(a: Sequence[Ceiling], b: Sequence[Ceiling]) -> Finding | None:
    """Return the ratio of the ceilings of two variants; None if one of them is not between two levels or may be the
    driver's, or they are of unlike things."""
    asked = [[one.of, *(limit for limits in _limits(one) for limit in limits)] for one in (*a, *b)]
    middles_a, middles_b = ([one.middle for one in side] for side in (a, b))
    bound = any(one.driver_bound for one in (*a, *b))
    if bound or any(one != asked[0] for one in asked) or not all([*middles_a, *middles_b]):
        return None
    found = ratio_of("ceiling", a[0].of, "higher", middles_a, middles_b, paired=False)
    return info(
        CeilingKind.RATIO,
        variants=[a[0].variant, b[0].variant],
        of=a[0].of,
        levels=[found.a, found.b],
        ratio=found.ratio,
        verdict=decide(THROUGHPUT, found).verdict,
        low=found.low,
        high=found.high,
    )
