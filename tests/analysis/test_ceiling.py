"""The findings of a search for a ceiling, and the cases in which it is not said."""

from dataclasses import replace

import pytest
from support.comparisons import with_manifest
from support.searches import searched
from support.steps import changed_step

from stallmark.analysis.ceiling import CeilingKind, ceiling_findings, ceilings
from stallmark.analysis.compare.claims import Claims
from stallmark.analysis.compare.summary import PairKind, ReasonKind
from stallmark.analysis.compare.verdicts import compare_runs
from stallmark.analysis.conclusions import conclusions
from stallmark.analysis.driver_bound import DriverKind
from stallmark.analysis.experiment import answer
from stallmark.analysis.finding import Finding, caution
from stallmark.analysis.rules import fail_rule
from stallmark.analysis.run import RunSummary
from stallmark.errors import StallmarkError
from stallmark.report.text.steady import run_failure


def found(*runs: RunSummary) -> list[Finding]:
    return list(ceiling_findings(ceilings(runs), Claims(runs)))


def of(kind: CeilingKind, findings: list[Finding]) -> list[Finding]:
    return [one for one in findings if one.kind is kind]


def test_a_ceiling_has_its_two_levels_its_throughput_and_the_limit_it_misses(sound):
    [one] = of(CeilingKind.FOUND, found(searched(sound)))
    assert (one.facts["holds"], one.facts["breaks"], one.facts["per_s"]) == (6, 7, 60)
    assert one.facts["limits"] == one.facts["missed"] == [["reads", None, None, 10.0]]


def test_it_is_the_answer_of_its_experiment_and_its_levels_are_not_compared(sound):
    runs = [searched(sound)]
    findings = list(conclusions("users", runs, ceilings=ceilings(runs)))
    assert answer(findings, runs, None).kind is CeilingKind.FOUND
    assert {type(one.kind) for one in findings} == {CeilingKind}
    with pytest.raises(StallmarkError, match="stallmark report"):
        compare_runs(runs)


@pytest.mark.parametrize(
    ("outcome", "holds", "breaks", "kind"),
    [
        ("at_least", 64, None, CeilingKind.AT_LEAST),
        ("none", None, 4, CeilingKind.NONE),
        ("unconfirmed", 6, 7, CeilingKind.UNCONFIRMED),
        (None, None, None, CeilingKind.ENDED),
    ],
)
def test_what_is_no_ceiling_is_called_none(sound, outcome, holds, breaks, kind):
    findings = found(searched(sound, outcome=outcome, holds=holds, breaks=breaks))
    assert of(kind, findings) and not of(CeilingKind.FOUND, findings)


def test_without_a_search_nothing_is_said(sound):
    assert found(sound) == []


def test_repeats_have_an_interval_that_is_no_narrower_than_what_one_run_knows(sound):
    [alike] = of(CeilingKind.REPEATS, found(*(searched(sound, repeat=n) for n in (1, 2, 3))))
    assert alike.facts["low"] == 6 and alike.facts["high"] == 7
    apart = [searched(sound), searched(sound, repeat=2, holds=8, breaks=9)]
    [wide] = of(CeilingKind.REPEATS, found(*apart))
    assert wide.facts["low"] < 6 and wide.facts["high"] > 9


def test_two_variants_are_compared_by_their_ceilings(sound):
    a = [searched(sound, "A", n) for n in (1, 2, 3)]
    b = [searched(sound, "B", n, holds=12, breaks=14) for n in (1, 2, 3)]
    [ratio] = of(CeilingKind.RATIO, found(*a, *b))
    assert ratio.facts["ratio"] == pytest.approx(2) and ratio.facts["verdict"] == "better"
    [one_each] = of(CeilingKind.RATIO, found(a[0], b[0]))
    assert one_each.facts["verdict"] == "indicative_only" and one_each.facts["low"] is None


def test_ceilings_of_unlike_settings_or_of_the_driver_have_no_ratio(sound):
    a, b = searched(sound, "A"), searched(sound, "B", holds=12, breaks=14)
    machine = b.manifest.machine.changed(cores=64)
    findings = found(a, with_manifest(b, machine=machine))
    assert of(CeilingKind.RATIO, findings) == []
    [apart] = [one for one in findings if one.kind is PairKind.NOT_COMPARABLE]
    assert [one.kind for one in apart.facts["reasons"]] == [ReasonKind.SETTINGS_DIFFER]
    b = searched(sound, "B", levels=[(12, "held"), (14, "broke")], holds=12, breaks=14)
    bound = [changed_step(step, driver_bound=[caution(DriverKind.EXECUTOR_CPU)]) for step in b.steps]
    assert of(CeilingKind.RATIO, found(a, b)) and not of(CeilingKind.RATIO, found(a, replace(b, steps=bound)))


def test_a_ceiling_that_was_not_reached_has_no_ratio(sound):
    open_ended = searched(sound, "B", outcome="at_least", holds=64, breaks=None)
    assert not of(CeilingKind.RATIO, found(searched(sound), open_ended))


@pytest.mark.parametrize(
    ("rule", "fails"),
    [("ceiling below 6 users", False), ("ceiling below 7 users", True), ("ceiling below 5 per second", True)],
)
def test_a_rule_fails_below_what_is_carried(sound, rule, fails):
    assert bool(run_failure(fail_rule(rule, of_runs=True), found(searched(sound)))) is fails


def test_a_rule_fails_where_nothing_was_found(sound):
    rule = fail_rule("Ceiling below 1 user", of_runs=True)
    assert run_failure(rule, [])
    assert run_failure(rule, found(searched(sound, outcome="unconfirmed")))
    assert run_failure(rule, found(searched(sound, outcome="none", holds=None, breaks=4)))
    assert not run_failure(rule, found(searched(sound, outcome="at_least", holds=64, breaks=None)))


@pytest.mark.parametrize("text", ["ceiling", "ceiling below users", "ceiling below 5", "ceiling above 5 users"])
def test_a_rule_that_is_none_is_refused(text):
    with pytest.raises(StallmarkError, match="ceiling below 200 users"):
        fail_rule(text, of_runs=True)
