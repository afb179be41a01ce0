"""When a comparison, or a report, fails in CI by `--fail-if`."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stallmark.analysis.compare.summary import ComparisonSummary, PairComparison, Ratio, SideSummary
from stallmark.analysis.finding import caution, info
from stallmark.analysis.pool_curve import CurveKind
from stallmark.analysis.rules import fail_rule
from stallmark.errors import StallmarkError
from stallmark.report.text.steady import comparison_doubts, comparison_failures, run_failure

GIB = 1024**3


def pair(verdict: str, ratio: float | None, detectable: float | None = None) -> PairComparison:
    primary = Ratio("throughput", "commits/s", "higher", 1.0, ratio, 3, 3, ratio=ratio, detectable=detectable)
    return PairComparison("A", "B", "steady", 30, verdict, "", primary, [], [], [], [], "", "ABABAB", False)


def reasons(rule: str, *pairs: PairComparison, among: str = "AB") -> list[str]:
    sides = [SideSummary(name, [], [], [], False) for name in among]
    return comparison_failures(fail_rule(rule, of_runs=False), ComparisonSummary("tps", "A", sides, list(pairs)))


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


def test_a_difference_outside_the_limit_is_named_with_its_limit():
    one = pair("worse", 0.8)
    [reason] = reasons("not within 5 %", replace(one, primary=replace(one.primary, low=0.78, high=0.82)))
    assert reason == "B against A is not within 5 %"
    [doubt] = doubts("not within 5 %", replace(one, primary=replace(one.primary, low=0.9, high=1.02)))
    assert "between −10 % and +2 %" in doubt and "within 5 %" in doubt


def test_a_side_that_no_pair_is_of_fails():
    assert reasons("worse", pair("better", 1.2), among="ABC") == ["C was not compared"]


@pytest.mark.parametrize(
    "text", ["", "worse than 5", "worse by", "worse by 5", "5 %", "not", "worse by -5 %", "within 5 %", "not within"]
)
def test_what_is_no_rule_is_refused_with_those_there_are(text):
    with pytest.raises(StallmarkError, match="not better by 10 %"):
        fail_rule(text, of_runs=False)


def doubts(rule: str, *pairs: PairComparison) -> list[str]:
    return comparison_doubts(fail_rule(rule, of_runs=False), ComparisonSummary("tps", "A", [], list(pairs)))


def test_runs_that_could_not_have_shown_what_is_asked_are_inconclusive():
    blind = pair("no_difference_shown", 0.99, detectable=0.12)
    [why] = doubts("worse by 5 %", blind)
    assert "can only show 12 % or more, and --fail-if asks for 5 %" in why
    assert not doubts("worse by 15 %", blind) and not doubts("worse", blind)
    assert not doubts("worse by 5 %", pair("worse", 0.9, detectable=0.12))
    assert not doubts("worse by 5 %", pair("not_comparable", None)), "that fails"


def within(low: float | None, high: float | None) -> tuple[bool, bool]:
    """Return whether `not within 5 %` fails, and whether it is inconclusive."""
    one = pair("no_difference_shown", 1.0)
    one = replace(one, primary=replace(one.primary, low=low, high=high))
    return bool(reasons("not within 5 %", one)), bool(doubts("not within 5 %", one))


def test_a_difference_is_within_a_limit_if_its_whole_interval_is():
    assert within(0.6, 1.84) == (False, True), "+5.4 % (−40 to +84 %) shows nothing"
    assert within(0.96, 1.04) == (False, False)
    assert within(0.8, 0.94) == (True, False) and within(1.06, 1.2) == (True, False), "more is as far from within"
    assert within(1.02, 1.08) == (False, True)
    assert within(None, None) == (False, True)


@given(st.floats(0.1, 3.0), st.floats(0.0, 2.0))
def test_a_gate_passes_only_what_it_knows_to_be_within(low: float, width: float):
    fails, inconclusive = within(low, low + width)
    assert not (fails and inconclusive)
    assert (not fails and not inconclusive) == (low >= 0.95 and low + width <= 1.05)


@pytest.mark.parametrize("text", ["enough above 4GiB", "  Enough  above 4 GiB "])
def test_enough_is_understood(text):
    assert fail_rule(text, of_runs=True).limit == 4 * GIB


@pytest.mark.parametrize("text", ["", "worse", "enough", "enough above", "enough above 4", "enough above lots"])
def test_anything_else_is_refused_of_a_report(text):
    with pytest.raises(StallmarkError, match="--fail-if"):
        fail_rule(text, of_runs=True)


def test_a_report_fails_above_the_limit_and_where_nothing_is_shown():
    rule = fail_rule("enough above 4GiB", of_runs=True)
    assert run_failure(rule, [info(CurveKind.ENOUGH, pool_bytes=4 * GIB)]) is None
    assert "5 GiB" in run_failure(rule, [info(CurveKind.ENOUGH, pool_bytes=5 * GIB)]).replace("\u00a0", " ")
    for shown in ([], [caution(CurveKind.MAY_BE_ENOUGH, pool_bytes=GIB)], [info(CurveKind.STILL_BUYS, pool_bytes=GIB)]):
        assert run_failure(rule, shown)
