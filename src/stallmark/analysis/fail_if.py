"""The rules of `--fail-if`, by which a command fails in CI.

Of `compare`, judged by the verdict and its estimate, `within` by the whole interval of the difference:

    worse                 B is worse than the baseline
    worse by 5 %          … and by 5 % or more
    not better            B is not better
    not better by 10 %    … or by less than 10 %
    not within 5 %        B differs from the baseline by more than 5 %, either way

Of `report`, judged by the findings of all runs: `ceiling below 200 users`, `below 500 per second`, `below 1.5 times the
load`, and `enough above 4GiB`. A comparison that cannot be made fails always, and so does a value that no run shows:
a gate that sees nothing must not pass.
"""

from collections.abc import Sequence

from stallmark.analysis.ceiling.findings import ANSWERS, CeilingKind
from stallmark.analysis.compare.summary import PairComparison, Verdict
from stallmark.analysis.finding import Finding
from stallmark.analysis.pool_curve.findings import CurveKind
from stallmark.errors import StallmarkError
from stallmark.rules import Measure, Rule, parse_rule

_BY = Measure(("share",), ("", "by", "not", "not by"))
_OF_PAIRS = {"worse": _BY, "better": _BY, "difference": Measure(("share",), ("not within",))}
_OF_RUNS = {
    "enough": Measure(("bytes",), ("above", ">")),
    "ceiling": Measure(("users", "rate", "load"), ("below", "<")),
}
_PAIR_EXAMPLES = "worse, worse by 5 %, not better, not better by 10 %, or not within 5 %"
_RUN_EXAMPLES = (
    "enough above 4GiB, ceiling below 200 users, ceiling below 500 per second, or ceiling below 1.5 times the load"
)


def fail_rule(text: str, *, of_runs: bool) -> Rule:
    """Parse a rule of `report`, else of `compare`. Raise StallmarkError with what to write."""
    try:
        return parse_rule(text, *((_RUN_EXAMPLES, _OF_RUNS) if of_runs else (_PAIR_EXAMPLES, _OF_PAIRS)))
    except ValueError as error:
        raise StallmarkError(f"--fail-if {error}.") from None


def applies(rule: Rule, pair: PairComparison) -> bool | None:
    """Return whether a rule applies to a pair, or the pair has no verdict; None if these runs cannot tell."""
    primary = pair.primary
    if not pair.claim.decided:
        return True
    if rule.metric == "difference":
        if primary.low is None or primary.high is None:
            return None
        if primary.low > 1 + rule.limit or primary.high < 1 - rule.limit:
            return True
        return False if primary.low >= 1 - rule.limit and primary.high <= 1 + rule.limit else None
    amount = abs(pair.claim.ratio - 1) if pair.claim.ratio is not None else 0.0
    if (pair.verdict == rule.metric and amount >= rule.limit) != rule.negated:
        return True
    unseen = pair.verdict == Verdict.NO_DIFFERENCE and 0 < rule.limit < (primary.detectable or 0.0)
    return None if unseen else False


def enough_bytes(findings: Sequence[Finding]) -> int | None:
    """Return the most memory that is shown to be enough; None if none is."""
    enough = (finding.facts["pool_bytes"] for finding in findings if finding.kind is CurveKind.ENOUGH)
    return max(enough, default=None)


def ceilings(findings: Sequence[Finding]) -> list[Finding]:
    """Return what each search for a ceiling found."""
    of_several = (CeilingKind.REPEATS, CeilingKind.RATIO)
    return [finding for finding in findings if finding.kind in ANSWERS and finding.kind not in of_several]
