"""When a comparison fails in CI."""

import pytest

from stallmark.analysis.compare.summary import ComparisonSummary, PairComparison, Ratio, SideSummary
from stallmark.cli.fail_if import FailIf
from stallmark.errors import StallmarkError


def pair(verdict: str, ratio: float | None, detectable: float | None = None) -> PairComparison:
    primary = Ratio("throughput", "commits/s", "higher", 1.0, ratio, 3, 3, ratio=ratio, detectable=detectable)
    return PairComparison("A", "B", "steady", 30, verdict, "", primary, [], [], [], [], "", "ABABAB", False)


def reasons(rule: str, *pairs: PairComparison, among: str = "AB") -> list[str]:
    sides = [SideSummary(name, [], [], [], False) for name in among]
    return FailIf.parse(rule).reasons(ComparisonSummary("tps", "A", sides, list(pairs)))


@pytest.mark.parametrize(
    ("rule", "verdict", "ratio", "fails"),
    [
        ("worse", "worse", 0.99, True),
        ("worse", "better", 1.1, False),
        ("worse", "no_difference_shown", 0.9, False),
        ("worse by 5 %", "worse", 0.96, False),
        ("worse by 5%", "worse", 0.94, True),
        ("Worse  by 2.5 %", "worse", 0.974, True),
        ("better", "better", 1.1, True),
        ("not better", "better", 1.001, False),
        ("not better", "no_difference_shown", 1.001, True),
        ("not better by 10 %", "better", 1.09, True),
        ("not better by 10 %", "better", 1.11, False),
        ("not worse", "better", 1.11, True),
    ],
)
def test_rules(rule, verdict, ratio, fails):
    assert bool(reasons(rule, pair(verdict, ratio))) == fails


@pytest.mark.parametrize("rule", ["worse", "not better", "better by 1 %"])
@pytest.mark.parametrize("verdict", ["not_comparable", "indicative_only"])
def test_a_comparison_that_cannot_be_made_fails_whatever_is_asked(rule, verdict):
    word = verdict.replace("_", " ")
    assert reasons(rule, pair(verdict, None)) == [f"B against A: no verdict ({word})"]


def test_a_side_that_no_pair_is_of_fails():
    assert reasons("worse", pair("better", 1.2), among="ABC") == ["C was not compared"]


@pytest.mark.parametrize("text", ["", "worse than 5", "worse by", "worse by 5", "5 %", "not", "worse by -5 %"])
def test_what_is_no_rule_is_refused_with_those_there_are(text):
    with pytest.raises(StallmarkError, match="not better by 10 %"):
        FailIf.parse(text)


def test_it_says_where_these_runs_could_not_have_shown_what_is_asked():
    blind = pair("no_difference_shown", 0.99, detectable=0.12)
    assert "can only show 12 % or more, and --fail-if asks for 5 %" in FailIf.parse("worse by 5 %").doubt(blind)
    assert FailIf.parse("worse by 15 %").doubt(blind) is None
    assert FailIf.parse("worse by 5 %").doubt(pair("worse", 0.9, detectable=0.12)) is None
