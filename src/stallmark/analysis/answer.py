"""The answer of an experiment: the one finding that stands above all others."""

from collections.abc import Sequence

from stallmark.analysis.ceiling.findings import ANSWERS as OF_CEILINGS
from stallmark.analysis.compare.claims import Claims
from stallmark.analysis.compare.summary import ComparisonSummary, PairKind
from stallmark.analysis.finding import Finding, Severity, info
from stallmark.analysis.kinds import ExperimentKind
from stallmark.analysis.points import points
from stallmark.analysis.pool_curve.findings import ANSWERS
from stallmark.analysis.run import RunSummary

MOST = 6
"""Variants that one sentence can name; of more it names the best and the worst."""


def answer(
    findings: Sequence[Finding],
    runs: Sequence[RunSummary],
    judged: ComparisonSummary | None,
    claims: Claims | None = None,
) -> Finding | None:
    """Return the finding that answers the experiment's question; None where there is none.

    What makes all figures worthless comes first. Then the ceiling, or how much memory is enough, the verdict on two
    variants, or every variant against the first.
    """
    if findings and findings[0].severity is Severity.INVALID:
        return findings[0]
    if curve := next((one for one in findings if one.kind in (*ANSWERS, *OF_CEILINGS)), None):
        return curve
    if judged and len(judged.pairs) == 1:
        return judged.pairs[0].finding
    if not any(run.queries for run in runs) and (against := _rates_against_first(runs, claims or Claims(runs, judged))):
        return against
    apart = next((one for one in findings if one.kind is PairKind.NOT_COMPARABLE), None)
    if apart and len({step.variant for run in runs for step in run.steps}) == 2:
        return apart
    return next((one for one in findings if one.severity is Severity.INFO), findings[0] if findings else None)


def _rates_against_first(runs: Sequence[RunSummary], claims: Claims) -> Finding | None:
    """Return every variant's rate against the first one's; None where variants have several steps, or there are fewer
    than three."""
    found = points([step for run in runs for step in run.steps if not step.validity.invalid and step.result_tps > 0])
    names = [point.first.variant for point in found]
    if len(set(names)) < len(names) or len(names) < 3:
        return None
    first, *others = found
    if len({point.first.emulated for point in found}) > 1:  # an emulated device says nothing about a real one
        return None
    claimed = [(point, claims.claim(first, point)) for point in others]
    alike = [(point, claim.ratio) for point, claim in claimed if claim.comparable and claim.ratio is not None]
    named = claimed
    if len(others) >= MOST and alike:
        ends = [choose(alike, key=lambda one: one[1])[0] for choose in (max, min)]
        named = [one for end in dict.fromkeys(map(id, ends)) for one in claimed if id(one[0]) == end]
    every = [first, *(point for point, _ in alike)]
    return info(
        ExperimentKind.AGAINST_FIRST,
        first=first.first.variant,
        per_s=first.tps,
        primary=first.first.throughput.primary,
        others=[[point.first.variant, claim.ratio, claim.verdict] for point, claim in named],
        left_out=len(alike) - len(named) if named is not claimed else 0,
        ranked=len(claims.comparable_points(every)) == len(every),
        not_comparable=len(others) - len(alike) if named is not claimed else 0,
        one_run_each=all(len(point.steps) == 1 for point in found),
    )
