"""The answer of an experiment: the one finding that stands above all others."""

from collections.abc import Sequence

from stallmark.analysis.ceiling.findings import ANSWERS as OF_CEILINGS
from stallmark.analysis.compare.summary import ComparisonSummary, Verdict
from stallmark.analysis.finding import Finding, Severity, info
from stallmark.analysis.kinds import ExperimentKind
from stallmark.analysis.points import Point, points
from stallmark.analysis.pool_curve.findings import ANSWERS
from stallmark.analysis.run import RunSummary

MOST = 6
"""Variants that one sentence can name; of more it names the best and the worst."""


def answer(findings: Sequence[Finding], runs: Sequence[RunSummary], judged: ComparisonSummary | None) -> Finding | None:
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
    if against := None if any(run.queries for run in runs) else _against_first(runs, judged):
        return against
    return next((one for one in findings if one.severity is Severity.INFO), findings[0] if findings else None)


def _against_first(runs: Sequence[RunSummary], judged: ComparisonSummary | None) -> Finding | None:
    """Return every variant's rate against the first one's; None where variants have several steps, or there are fewer
    than three."""
    found = points([step for run in runs for step in run.steps if not step.validity.invalid and step.result_tps > 0])
    names = [point.first.variant for point in found]
    if len(set(names)) < len(names) or len(names) < 3:
        return None
    first, *others = found
    if len({point.first.emulated for point in found}) > 1:  # an emulated device says nothing about a real one
        return None
    verdicts = {pair.b: pair.verdict for pair in judged.pairs} if judged else {}
    unlike = [point for point in others if verdicts.get(point.first.variant) is Verdict.NOT_COMPARABLE]
    if len(others) >= MOST and (alike := [point for point in others if point not in unlike]):
        named = list({id(point): point for point in (max(alike, key=_rate), min(alike, key=_rate))}.values())
    else:
        named, alike = others, others
    return info(
        ExperimentKind.AGAINST_FIRST,
        first=first.first.variant,
        per_s=first.tps,
        primary=first.first.throughput.primary,
        others=[
            [
                point.first.variant,
                None if point in unlike else point.tps / first.tps,  # no ratio of what must not be compared
                verdicts.get(point.first.variant),
            ]
            for point in named
        ],
        left_out=len(alike) - len(named),
        not_comparable=len(others) - len(alike),
        fewest_runs=min(len(point.steps) for point in found),
    )


def _rate(point: Point) -> float:
    return point.tps
