"""The answer of an experiment: the one finding that stands above all others."""

from collections.abc import Sequence

from stallmark.analysis.ceiling.findings import ANSWERS as OF_CEILINGS
from stallmark.analysis.compare.summary import ComparisonSummary
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
    unlike = {point.first.emulated for point in found}
    if len(unlike) > 1:  # an emulated device says nothing about a real one
        return None
    if len(others) >= MOST:
        others = [max(others, key=_rate), min(others, key=_rate)]
    not_shown = {pair.b for pair in judged.pairs if not pair.primary.shown} if judged else set()
    return info(
        ExperimentKind.AGAINST_FIRST,
        first=first.first.variant,
        per_s=first.tps,
        primary=first.first.throughput.primary,
        others=[[one.first.variant, one.tps / first.tps, one.first.variant in not_shown] for one in others],
        left_out=len(found) - 1 - len(others),
        fewest_runs=min(len(point.steps) for point in found),
    )


def _rate(point: Point) -> float:
    return point.tps
