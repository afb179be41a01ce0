"""Verdicts of whole comparisons: of runs whose throughput is known, and of runs that must not be compared."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from support.comparisons import QUIET, made, only, with_manifest, with_step
from support.findings import facts_of, kinds_of

from stallmark.analysis.compare.plan import plan_runs
from stallmark.analysis.compare.settings import DifferenceKind
from stallmark.analysis.compare.sides import Unpaired
from stallmark.analysis.compare.summary import CheckKind, PairKind, ReasonKind
from stallmark.analysis.compare.verdicts import _interval_within_run, compare_runs, comparison_within
from stallmark.analysis.driver_bound import DriverKind
from stallmark.analysis.finding import EndKind, caution, invalid
from stallmark.analysis.metrics import THROUGHPUT
from stallmark.analysis.rules import fail_rule
from stallmark.analysis.steady import Steadiness
from stallmark.analysis.validity import ValidityKind
from stallmark.errors import StallmarkError
from stallmark.record.manifest.course import Condition
from stallmark.report.text.steady import comparison_failures


def failed(pair):
    return [check.kind for check in pair.failed]


def test_what_is_faster_beyond_its_scatter_is_better_by_so_much(sound):
    pair = only(made(sound, **QUIET))
    assert pair.verdict == "better"
    assert pair.primary.ratio == pytest.approx(480.66 / 402, rel=1e-3)
    assert pair.primary.low < pair.primary.ratio < pair.primary.high
    assert pair.finding.kind == PairKind.DIFFERENCE and pair.finding.facts["ratio"] == pair.primary.ratio
    assert pair.finding.facts["because"] == pair.cause.finding
    assert pair.method.facts["paired"] and pair.method.facts["runs"] == [3, 3]
    assert pair.order == "ABABAB" and not pair.confounded


def test_the_baseline_is_the_first_or_the_one_named(sound):
    pair = only(made(sound, **QUIET), baseline="B")
    assert (pair.a, pair.b, pair.verdict) == ("B", "A", "worse")
    with pytest.raises(StallmarkError, match="no such side"):
        compare_runs(made(sound, **QUIET), baseline="C")


def test_what_scatters_as_much_as_it_differs_shows_no_difference_and_says_what_could_have_been_shown(sound):
    pair = only(made(sound, A=[400.0, 404.0, 396.0], B=[402.0, 398.0, 403.0]))
    assert pair.verdict == "no_difference_shown"
    assert pair.finding.facts["detectable_share"] == pair.primary.detectable > 0.02


@pytest.mark.thorough
def test_equal_variants_get_at_most_one_false_verdict_in_twenty(sound, monkeypatch):
    monkeypatch.setattr("stallmark.analysis.compare.verdicts.explain", lambda *steps: None)  # which decides nothing
    rng = np.random.default_rng(11)
    verdicts = [
        only(made(sound, A=400 * np.exp(pair[0]), B=400 * np.exp(pair[1]))).verdict
        for pair in rng.normal(0, 0.02, (200, 2, 3))
    ]
    assert sum(verdict != "no_difference_shown" for verdict in verdicts) <= 15


def test_one_run_each_is_indicative_with_the_scatter_of_its_seconds_named_for_what_it_is(sound):
    pair = only(made(sound, A=[400.0], B=[480.0]))
    assert pair.verdict == "indicative_only" and pair.primary.p is None
    assert pair.within_run and pair.within_run.batches * pair.within_run.batch_s <= 40
    assert pair.finding.kind == PairKind.INDICATIVE and pair.finding.facts["interval_within_run"]
    assert (pair.finding.facts["low"], pair.finding.facts["high"]) == (pair.within_run.low, pair.within_run.high)
    assert only(made(sound, A=[400.0, 401.0], B=[480.0, 482.0])).verdict == "indicative_only"


@pytest.mark.parametrize(("alike", "least"), [(0.0, 0.92), (0.8, 0.88)])
def test_the_interval_within_a_run_holds_the_truth_though_neighbouring_seconds_are_alike(monkeypatch, alike, least):
    """Of two runs of 60 s with the same rate. Batches of 5 s that were taken for independent: 80 % instead of 95 %."""
    rng, covered, runs = np.random.default_rng(5), 0, 300
    one_each = SimpleNamespace(a=SimpleNamespace(runs=[None]), b=SimpleNamespace(runs=[None]), step=None)
    for _ in range(runs):
        seconds = np.zeros((2, 160))
        for t in range(1, 160):
            seconds[:, t] = alike * seconds[:, t - 1] + rng.normal(0, 1, 2)
        rates = iter(100 + 3 * seconds[:, 100:])
        monkeypatch.setattr("stallmark.analysis.compare.verdicts._measured_rates", lambda *_, rates=rates: next(rates))
        within = _interval_within_run(THROUGHPUT, one_each)
        covered += within.low <= 1 <= within.high
    assert least <= covered / runs <= 0.98


def test_without_partners_runs_are_compared_by_welch_and_it_is_said(sound):
    runs = made(sound, A=QUIET["A"]) + made(sound, experiment="e2", B=QUIET["B"])
    pair = only(runs)
    assert pair.verdict == "better" and not pair.method.facts["paired"]
    assert pair.method.facts["unpaired"] == Unpaired.EXPERIMENTS and pair.method.facts["runs"] == [3, 3]


def test_all_of_one_side_before_the_other_is_confounded_with_time(sound):
    pair = only(made(sound, order="AAABBB", **QUIET))
    assert pair.confounded and PairKind.ONE_SIDE_FIRST in kinds_of(pair.cautions)
    assert not only(made(sound, order="ABBAAB", **QUIET)).confounded


def blocks(runs, again):
    declared = {"scenario": runs[0].manifest.scenario.changed(order="blocks")}
    return [
        with_manifest(run, **declared, **({"again": True} if number >= len(runs) - again else {}))
        for number, run in enumerate(runs)
    ]


def test_the_first_variant_run_again_must_be_what_it_was(sound):
    tps = {"A": [400.0, 402.0, 401.0, 400.0, 403.0, 399.0], "B": [480.0, 478.0, 484.0]}
    pair = only(blocks(made(sound, order="AAABBBAAA", **tps), again=3))
    assert pair.verdict == "better" and pair.confounded
    assert [check.passed for check in pair.checks if check.kind == CheckKind.AGAIN] == [True]
    tps["A"][3:] = [460.0, 462.0, 459.0]
    pair = only(blocks(made(sound, order="AAABBBAAA", **tps), again=3))
    [reason] = pair.finding.facts["reasons"]
    assert pair.verdict == "not_comparable" and reason.kind == ReasonKind.DRIFTED
    assert reason.facts == {"side": "A", "metric": "tps", "share": pytest.approx(0.148, abs=0.01)}


def test_an_operator_who_runs_the_first_array_again_in_another_experiment_has_an_a_prime(sound):
    runs = [
        *made(sound, order="A", A=[400.0]),
        *(replace(run, started="2025-11-22") for run in made(sound, experiment="e2", B=[480.0])),
        *(replace(run, started="2025-11-23") for run in made(sound, experiment="e3", A=[300.0])),
    ]
    pair = only(runs)
    assert pair.order == "ABA" and pair.verdict == "not_comparable" and CheckKind.AGAIN in failed(pair)


def test_the_same_variant_of_two_experiments_is_compared_between_them(sound):
    runs = made(sound, A=QUIET["A"]) + made(sound, experiment="e2", A=QUIET["B"])
    pair = only(runs)
    assert (pair.a, pair.b, pair.verdict) == ("e1", "e2", "better")


def test_between_experiments_each_variant_meets_itself(sound):
    runs = made(sound, **QUIET) + [
        replace(run, started="2025-11-22") for run in made(sound, experiment="e2", A=QUIET["B"], B=QUIET["B"])
    ]
    found = compare_runs(runs, between="experiments")
    assert [(pair.a, pair.b) for pair in found.pairs] == [("A, e1", "A, e2"), ("B, e1", "B, e2")]
    assert [pair.verdict for pair in found.pairs] == ["better", "no_difference_shown"]
    assert len(compare_runs(runs).pairs) == 1, "else their repeats are blocks of one comparison"


@pytest.mark.parametrize(("between", "told"), [(None, True), ("variants", False), ("experiments", False)])
def test_experiments_that_are_taken_together_without_being_asked_for_are_told(sound, between, told):
    runs = made(sound, **QUIET) + made(sound, experiment="e2", **QUIET)
    found = compare_runs(runs, between=between)
    assert facts_of(found.left_out, PairKind.POOLED) == [{"sides": ["A", "B"], "experiments": ["e1", "e2"]}] * told
    assert not facts_of(compare_runs(made(sound, **QUIET)).left_out, PairKind.POOLED)


def test_a_variant_that_one_experiment_alone_has_is_told(sound):
    runs = [
        *made(sound, experiment="e1", A=[100] * 3, B=[200] * 3),
        *made(sound, experiment="e2", A=[50] * 3, C=[90] * 3),
        *made(sound, experiment="e3", C=[90] * 3),
    ]

    def alone(**options):
        found = compare_runs(runs, between="experiments", **options)
        return sorted(facts["side"] for facts in facts_of(found.left_out, PairKind.NO_PARTNER))

    assert alone() == alone(baseline="e1") == ["B, e1", "C, e2", "C, e3"]
    assert alone(baseline="e2") == ["B, e1"]
    assert alone(baseline="A") == [], "the others were not asked for"
    asked = compare_runs(runs, between="experiments", baseline="A")
    assert [side.name for side in asked.sides] == ["A, e1", "A, e2"]
    assert not any("not compared" in why for why in comparison_failures(fail_rule("worse", of_runs=False), asked))
    assert compare_runs(runs).left_out != [] and not facts_of(compare_runs(runs).left_out, PairKind.NO_PARTNER)


def test_several_pairs_are_corrected_among_themselves(sound):
    a, b = [400.0, 404.0, 402.0], [405.0, 408.5, 407.5]
    alone = only(made(sound, A=a, B=b))
    found = compare_runs(made(sound, A=a, B=b, C=[400.0, 403.0, 404.0], D=[401.0, 402.0, 405.0]))
    assert found.pairs[0].primary.p == pytest.approx(alone.primary.p)
    assert found.pairs[0].primary.p_adjusted == pytest.approx(3 * alone.primary.p)
    assert all(facts_of(pair.cautions, PairKind.SEVERAL_PAIRS) == [{"pairs": 3}] for pair in found.pairs)


def test_the_declared_primary_metric_decides(sound):
    runs = [
        with_manifest(run, scenario=run.manifest.scenario.changed(primary="latency")) for run in made(sound, **QUIET)
    ]
    pair = only(runs)
    assert pair.primary.name == "mean latency" and pair.verdict == "better"
    assert pair.finding.facts["metric"] == "latency"
    assert "throughput" in [one.name for one in pair.others]


STEADY = Steadiness("never_became_steady", "It never became steady.", "TPS", 40, "")
INVALID = {"invalid": [invalid(ValidityKind.FOREIGN_IO, share=0.2, with_writes=False)]}
BOUND = {"driver_bound": [caution(DriverKind.EXECUTOR_CPU, machine=0, share=0.95)]}
BROKEN = {
    ReasonKind.RUNS_INVALID: (CheckKind.RUNS, lambda run: with_step(run, **INVALID)),
    ReasonKind.DRIVER_BOUND: (CheckKind.DRIVER, lambda run: with_step(run, **BOUND)),
    ReasonKind.FOREIGN_IO: (CheckKind.FOREIGN_IO, lambda run: with_step(run, foreign_io_share=0.2)),
    ReasonKind.FOREIGN_CPU: (CheckKind.FOREIGN_CPU, lambda run: with_step(run, foreign_cpu_share=0.2)),
    ReasonKind.NOT_STEADY: (CheckKind.STEADINESS, lambda run: with_step(run, steadiness=STEADY)),
    ReasonKind.READS_DIFFER: (CheckKind.READS, lambda run: with_step(run, reads_per_transaction=2.4)),
    ReasonKind.DATA_GREW: (CheckKind.GROWTH, lambda run: replace(run, growth_share=0.09)),
    ReasonKind.CLOCK_WENT_BACK: (CheckKind.CLOCK, lambda run: replace(run, started="2024-01-01T00:00:00+00:00")),
    ReasonKind.DATA_WRONG: (
        CheckKind.CONSISTENCY,
        lambda run: replace(run, conditions=[Condition(name="balances agree", holds=False)]),
    ),
    ReasonKind.NOT_MEASURED: (CheckKind.METRIC_MEASURED, lambda run: with_step(run, tps=0.0)),
}


@pytest.mark.parametrize("reason", BROKEN)
def test_a_run_that_is_not_what_it_should_be_is_not_compared(sound, reason):
    check, change = BROKEN[reason]
    pair = only([change(run) if run.steps[0].variant == "B" else run for run in made(sound, **QUIET)])
    assert pair.verdict == "not_comparable" and failed(pair) == [check]
    assert kinds_of(pair.finding.facts["reasons"]) == [reason]
    assert pair.finding.facts["reasons"] == [check.reason for check in pair.failed]
    assert pair.cause is None, "what is not comparable has no cause"


def test_what_no_variant_declares_must_be_the_same(sound):
    runs = [with_manifest(run, variant={"name": run.steps[0].variant}) for run in made(sound, **QUIET)]
    runs[1] = with_manifest(runs[1], memory={"reached_bytes": 1 << 30})
    pair = only(runs)
    assert failed(pair) == [CheckKind.SETTINGS]
    assert pair.failed[0].reason.kind is ReasonKind.SETTINGS_DIFFER
    assert kinds_of(pair.failed[0].reason.facts["differences"]) == [DifferenceKind.POOL]


def test_a_buffer_pool_that_the_variants_declare_may_differ_and_reads_with_it(sound):
    def of(run):
        if run.steps[0].variant == "A":
            return run
        settings = run.manifest.server.settings | {"shared_buffers": "128MB", "wal_buffers": "4MB"}
        run = with_manifest(
            run, variant={"name": "B", "buffer_pool": "128 MiB"}, memory={"reached_bytes": 128 << 20},
            server=run.manifest.server.changed(settings=settings),
        )  # fmt: skip
        return with_step(run, reads_per_transaction=1.0)

    pair = only([of(run) for run in made(sound, **QUIET)])
    assert pair.verdict == "better" and CheckKind.READS not in [check.kind for check in pair.checks]


def test_a_run_that_was_cut_counts_for_nothing_and_is_named(sound):
    runs = made(sound, A=[400.0, 404.0, 402.0, 100.0], B=[480.0, 478.0, 484.0, 481.0])
    runs[6] = replace(runs[6], incomplete_because="stopped by Ctrl-C")
    found = compare_runs(runs)
    facts = {"run": f"e1/{runs[6].folder}", "said": "stopped by Ctrl-C"}
    assert facts_of(found.left_out, PairKind.INCOMPLETE) == [facts]
    assert found.pairs[0].verdict == "better" and found.pairs[0].method.facts["left_out"] == 1


def test_an_experiment_that_ended_before_a_variant_is_compared_and_says_so(sound):
    runs = made(sound, **QUIET)
    runs[-1] = with_manifest(runs[-1], ended={"before": "C", "because": "the array is full"})
    assert facts_of(compare_runs(runs).left_out, EndKind.EXPERIMENT) == [{"before": "C", "said": "the array is full"}]


def test_one_side_alone_or_no_common_step_is_refused_in_a_sentence(sound):
    alone = "nothing to compare: all runs that were measured to their end are of variant 'A'"
    with pytest.raises(StallmarkError, match=alone):
        compare_runs(made(sound, A=[1.0, 2.0]))
    runs = made(sound, **QUIET)
    with pytest.raises(StallmarkError, match=alone):
        compare_runs([replace(r, incomplete_because="x") if r.steps[0].variant == "B" else r for r in runs])
    with pytest.raises(StallmarkError, match=r"no step in common: .* the same names and numbers"):
        compare_runs([with_step(run, users=31) if run.steps[0].variant == "B" else run for run in runs])


def test_steps_that_only_one_side_has_are_named(sound):
    def ramp(run):
        users = (1, 10, 50) if run.steps[0].variant == "A" else (10, 100)
        return replace(run, steps=[replace(run.steps[0], step=f"{n} users", users=n) for n in users])

    pair = only(list(map(ramp, made(sound, **QUIET))))
    assert pair.users == 10
    assert facts_of(pair.cautions, PairKind.ONLY_ONE_SIDE) == [
        {"side": "A", "steps": [["1 users", 1], ["50 users", 50]]},
        {"side": "B", "steps": [["100 users", 100]]},
    ]
    assert not facts_of(only(made(sound, **QUIET)).cautions, PairKind.ONLY_ONE_SIDE)


def test_a_side_without_a_step_in_common_is_named(sound):
    runs = [
        with_step(run, users=31) if run.steps[0].variant == "C" else run
        for run in made(sound, **QUIET, C=[300.0, 301.0, 302.0])
    ]
    found = compare_runs(runs)
    assert [(pair.a, pair.b) for pair in found.pairs] == [("A", "B")]
    assert facts_of(found.left_out, PairKind.NO_COMMON_STEP) == [{"a": "A", "b": "C"}]


def test_a_report_has_verdicts_where_variants_were_repeated_and_only_there(sound):
    assert comparison_within(made(sound, **QUIET)).pairs[0].verdict == "better"
    assert comparison_within(made(sound, A=[400.0], B=[480.0])) is None
    assert comparison_within(made(sound, A=QUIET["A"])) is None


def test_a_plan_takes_the_spread_from_the_runs_and_needs_a_repeat(sound):
    rng = np.random.default_rng(5)
    a, b = (level * np.exp(rng.normal(0, 0.02, 60)) for level in (400, 500))
    plan = plan_runs(made(sound, A=a, B=b), 0.05)
    assert plan.spread == pytest.approx(0.02, rel=0.15) and plan.df == 118
    assert plan.runs_low <= plan.runs <= plan.runs_high and plan.runs in (4, 5, 6)
    assert dict(plan.can_show)[plan.runs] <= 0.05 < dict(plan.can_show)[plan.runs - 1]
    assert plan.run_s == 45
    with pytest.raises(StallmarkError, match="No variant has two runs in which throughput was measured"):
        plan_runs(made(sound, A=[400.0], B=[480.0]), 0.05)


def test_a_plan_for_runs_that_are_no_pairs_is_by_the_test_that_compares_them(sound):
    values = [400.0, 408.0, 392.0]
    apart = [*made(sound, A=values), *made(sound, experiment="e2", A=values)]
    found = plan_runs(apart, 0.05)
    assert found.unpaired is Unpaired.EXPERIMENTS
    assert compare_runs(apart).pairs[0].method.facts["unpaired"] == found.unpaired
    by_turns = plan_runs(made(sound, A=values, B=values), 0.05)
    assert by_turns.unpaired is None and plan_runs(made(sound, A=values), 0.05).unpaired is None
    assert found.spread == pytest.approx(by_turns.spread) and found.runs <= by_turns.runs
    assert found.can_show[0][1] < by_turns.can_show[0][1], "twice the degrees of freedom"
    in_blocks = blocks(made(sound, order="AAABBBAAA", A=[*values, *values], B=values), again=3)
    assert plan_runs(in_blocks, 0.05).unpaired is Unpaired.BLOCKS


def test_a_plan_takes_the_drift_from_a_to_a_prime_for_no_spread(sound):
    tps = {"A": [400.0, 402.0, 398.0, 500.0, 502.0, 498.0], "B": [480.0, 478.0, 482.0]}
    plan = plan_runs(blocks(made(sound, order="AAABBBAAA", **tps), again=3), 0.05)
    assert plan.spread < 0.01 and (plan.runs_seen, plan.df) == (9, 6)


def test_a_plan_counts_a_run_of_several_steps_once(sound):
    runs = [
        replace(run, steps=[replace(run.steps[0], users=users) for users in (10, 20, 30)])
        for run in made(sound, A=[400.0, 408.0, 392.0])
    ]
    plan = plan_runs(runs, 0.05)
    assert (plan.runs_seen, plan.df) == (3, 2)
    assert plan.spread == pytest.approx(plan_runs(made(sound, A=[400.0, 408.0, 392.0]), 0.05).spread)


def test_a_plan_leaves_out_runs_that_say_nothing_of_the_server_and_says_so(sound):
    cut, invalid, driver, *good = made(sound, A=[100.0, 200.0, 300.0, 400.0, 404.0, 402.0])
    bad = [replace(cut, incomplete_because="cut"), with_step(invalid, **INVALID), with_step(driver, **BOUND)]
    plan = plan_runs([*bad, *good], 0.05)
    assert plan.spread == plan_runs(good, 0.05).spread and plan.runs_seen == 3
    left_out = {"incomplete": 1, "invalid": 1, "driver_bound": 1}
    assert plan.left_out.facts == {"of": 6, "steps": False, "left_out": left_out}
    assert plan_runs(good, 0.05).left_out is None
    with pytest.raises(StallmarkError, match=r"None of these runs .* \(3 of 3 are incomplete, invalid or"):
        plan_runs(bad, 0.05)
    with pytest.raises(StallmarkError, match=r"make at least 2 of one, `repeats: 2` \(3 of 4 are incomplete"):
        plan_runs([*bad, good[0]], 0.05)


@pytest.mark.parametrize(
    ("baseline", "pairs"), [(None, ["A", "B"]), ("e1", ["A", "B"]), ("A", ["A"]), ("B, e1", ["B"])]
)
def test_between_experiments_the_baseline_is_an_experiment_a_variant_or_both(sound, baseline, pairs):
    runs = [
        *made(sound, experiment="e1", A=[100] * 3, B=[200] * 3),
        *made(sound, experiment="e2", A=[50] * 3, B=[90] * 3),
    ]
    found = compare_runs(runs, baseline=baseline, between="experiments")
    assert [(pair.a, pair.b) for pair in found.pairs] == [(f"{name}, e1", f"{name}, e2") for name in pairs]
    [pair] = compare_runs(runs, baseline="A, e2", between="experiments").pairs
    assert (pair.a, pair.b) == ("A, e2", "A, e1")
    alone = [*runs, *made(sound, experiment="e1", C=[70] * 3)]
    with pytest.raises(StallmarkError, match="Variant 'C' of e1 was not run in another"):
        compare_runs(alone, baseline="C", between="experiments")
    with pytest.raises(StallmarkError, match=r"Choose one of 'A, e1', 'A', 'e1'"):
        compare_runs(runs, baseline="C", between="experiments")
