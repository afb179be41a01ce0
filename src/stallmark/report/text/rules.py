"""Why a rule makes a command fail: a threshold of a scenario, or one of `--fail-if`."""

from collections.abc import Sequence

from stallmark.analysis.ceiling import CeilingKind
from stallmark.analysis.compare.summary import ComparisonSummary, PairComparison
from stallmark.analysis.finding import Finding
from stallmark.analysis.step_summary import StepSummary
from stallmark.analysis.thresholds import applies, ceilings, enough_bytes
from stallmark.format import short, size
from stallmark.report.text import clause
from stallmark.report.text.ceiling import level
from stallmark.report.text.terms import term
from stallmark.rules import Rule

GIVEN_UP = "given up"
_MORE = "make more runs (`stallmark plan` says how many)"


def missed(text: str, measured: str) -> str:
    return f"{text} was not kept ({measured})"


def not_known(text: str, name: str, why: str, steps: int) -> str:
    more = f" and {steps - 1} more" if steps > 1 else ""
    return f"{text} is not known in {name}{more}: {why}"


def why_not_judged(step: StepSummary, measured: bool, incomplete_because: str | None) -> str:
    """Return why a threshold has no verdict in a step."""
    if not measured:
        return "it was not measured there"
    if step.validity.invalid:
        return clause(step.validity.invalid[0])
    return incomplete_because or "the step ended early"


def comparison_failures(rule: Rule, comparison: ComparisonSummary) -> list[str]:
    """Return why a comparison fails by a rule; empty if it does not."""
    compared = {name for pair in comparison.pairs for name in (pair.a, pair.b)}
    alone = [side.name for side in comparison.sides if side.name not in compared]
    failed = [_why_pair_fails(rule, pair) for pair in comparison.pairs if applies(rule, pair)]
    return [*failed, *(f"{name} was not compared" for name in alone)]


def comparison_doubts(rule: Rule, comparison: ComparisonSummary) -> list[str]:
    """Return why the runs cannot tell whether a rule applies; empty if they can."""
    return [_why_pair_is_open(rule, pair) for pair in comparison.pairs if applies(rule, pair) is None]


def run_failure(rule: Rule, findings: Sequence[Finding]) -> str | None:
    """Return why runs fail by a rule; None if they do not."""
    if rule.metric == "enough":
        if (enough := enough_bytes(findings)) is None:
            return "no size of the buffer pool is shown to be enough"
        return f"{size(enough)} is enough, which is above {size(rule.limit)}" if rule.holds(enough) else None
    if not (searches := ceilings(findings)):
        return "no run searched for a ceiling"
    if unlike := [search.facts["of"] for search in searches if search.facts["of"] != rule.unit]:
        return f"the ceiling is one of {unlike[0]}, and the rule is of {rule.unit}"
    if any(search.kind not in (CeilingKind.FOUND, CeilingKind.AT_LEAST, CeilingKind.NONE) for search in searches):
        return "a search found no ceiling"
    lowest = min(search.facts["holds"] or 0.0 for search in searches)
    carried = f"{level(rule.unit, lowest)} are carried" if lowest else "the lowest level is not carried"
    return f"{carried}, which is below {level(rule.unit, rule.limit)}" if rule.holds(lowest) else None


def _why_pair_fails(rule: Rule, pair: PairComparison) -> str:
    if not pair.claim.decided:
        return f"{pair.b} against {pair.a}: no verdict ({term(pair.verdict)})"
    by = f" by {_percent(rule.limit)}" if rule.limit else ""
    named = f"within {_percent(rule.limit)}" if rule.metric == "difference" else f"{rule.metric}{by}"
    return f"{pair.b} against {pair.a} is {'not ' if rule.negated else ''}{named}"


def _why_pair_is_open(rule: Rule, pair: PairComparison) -> str:
    names, low, high = f"{pair.b} against {pair.a}", pair.primary.low, pair.primary.high
    if rule.metric != "difference":
        least = _percent(pair.primary.detectable)
        return (
            f"{names}: these runs can only show {least} or more, and --fail-if asks for {_percent(rule.limit)}: {_MORE}"
        )
    if low is None or high is None:
        return f"{names}: the interval of the difference is not known"
    return (
        f"{names}: the difference lies between {_signed(low)} and {_signed(high)}, so it is not known to be within "
        f"{_percent(rule.limit)}: {_MORE}"
    )


def _percent(share: float | None) -> str:
    return f"{short((share or 0.0) * 100)} %"


def _signed(ratio: float) -> str:
    return f"{'−' if ratio < 1 else '+'}{_percent(abs(ratio - 1))}"
