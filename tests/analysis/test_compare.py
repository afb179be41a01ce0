"""Verdicts of whole comparisons: of runs whose throughput is known, and of runs that must not be compared."""

from dataclasses import replace

import numpy as np
import pytest
from support.comparisons import made, template, with_manifest, with_step

from stallmark.analysis.compare.compare import compare_runs, comparison_within
from stallmark.analysis.compare.plan import plan_runs
from stallmark.analysis.finding import caution, invalid
from stallmark.analysis.steady.steadiness import Steadiness
from stallmark.analysis.validity.kinds import ValidityKind
from stallmark.errors import StallmarkError
from stallmark.record.manifest import Condition

QUIET = {"A": [400.0, 404.0, 402.0], "B": [480.0, 478.0, 484.0]}


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    return template(tmp_path_factory.mktemp("sound"), measured_s=40)


def only(runs, **options):
    [pair] = compare_runs(runs, **options).pairs
    return pair


def test_what_is_faster_beyond_its_scatter_is_better_by_so_much(sound):
    pair = only(made(sound, **QUIET))
    assert pair.verdict == "better"
    assert pair.primary.ratio == pytest.approx(480.66 / 402, rel=1e-3)
    assert pair.primary.low < pair.primary.ratio < pair.primary.high
    assert pair.sentence.startswith("B beats A by 20 % (17 to 22)")
    assert "paired by repeat, 3 pairs" in pair.method and pair.order == "ABABAB" and not pair.confounded


def test_the_baseline_is_the_first_or_the_one_named(sound):
    pair = only(made(sound, **QUIET), baseline="B")
    assert (pair.a, pair.b, pair.verdict) == ("B", "A", "worse")
    assert pair.sentence.startswith("A falls behind B by 16 % (14 to 18)")
    with pytest.raises(StallmarkError, match="there is no such side"):
        compare_runs(made(sound, **QUIET), baseline="C")


def test_what_scatters_as_much_as_it_differs_shows_no_difference_and_says_what_could_have_been_shown(sound):
    pair = only(made(sound, A=[400.0, 404.0, 396.0], B=[402.0, 398.0, 403.0]))
    assert pair.verdict == "no difference shown"
    assert pair.primary.detectable > 0.02
    assert "could have shown" in pair.sentence and "80 % power" in pair.sentence


def test_equal_variants_get_at_most_one_false_verdict_in_twenty(sound, monkeypatch):
    monkeypatch.setattr("stallmark.analysis.compare.compare.explain", lambda *steps: None)  # which decides nothing
    rng = np.random.default_rng(11)
    verdicts = [
        only(made(sound, A=400 * np.exp(pair[0]), B=400 * np.exp(pair[1]))).verdict
        for pair in rng.normal(0, 0.02, (200, 2, 3))
    ]
    assert sum(verdict != "no difference shown" for verdict in verdicts) <= 15


def test_one_run_each_is_indicative_with_the_scatter_of_its_seconds_named_for_what_it_is(sound):
    pair = only(made(sound, A=[400.0], B=[480.0]))
    assert pair.verdict == "indicative only" and pair.primary.p is None
    assert pair.within_run and pair.within_run.batches * pair.within_run.batch_s <= 40
    assert "scatter of seconds, which is not that of runs" in pair.sentence
    assert only(made(sound, A=[400.0, 401.0], B=[480.0, 482.0])).verdict == "indicative only"


def test_without_partners_runs_are_compared_by_welch_and_it_is_said(sound):
    runs = made(sound, A=QUIET["A"]) + made(sound, experiment="e2", B=QUIET["B"])
    pair = only(runs)
    assert pair.verdict == "better" and "not paired, 3 and 3 runs: the sides are different experiments" in pair.method
    assert "Welch" in pair.method


def test_all_of_one_side_before_the_other_is_confounded_with_time(sound):
    pair = only(made(sound, order="AAABBB", **QUIET))
    assert pair.confounded and any("Order confounded" in text for text in pair.cautions)
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
    assert [check.passed for check in pair.checks if check.name == "A′ = A"] == [True]
    tps["A"][3:] = [460.0, 462.0, 459.0]
    pair = only(blocks(made(sound, order="AAABBBAAA", **tps), again=3))
    assert pair.verdict == "not comparable" and "A, run again at the end, was 15 % off itself" in pair.sentence


def test_an_operator_who_runs_the_first_array_again_in_another_experiment_has_an_a_prime(sound):
    runs = [
        *made(sound, order="A", A=[400.0]),
        *(replace(run, started="2025-11-22") for run in made(sound, experiment="e2", B=[480.0])),
        *(replace(run, started="2025-11-23") for run in made(sound, experiment="e3", A=[300.0])),
    ]
    pair = only(runs)
    assert pair.order == "ABA" and pair.verdict == "not comparable" and "A′ = A" in [c.name for c in pair.failed]


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
    assert [pair.verdict for pair in found.pairs] == ["better", "no difference shown"]
    assert len(compare_runs(runs).pairs) == 1, "else their repeats are blocks of one comparison"


def test_several_pairs_are_corrected_among_themselves(sound):
    a, b = [400.0, 404.0, 402.0], [405.0, 408.5, 407.5]
    alone = only(made(sound, A=a, B=b))
    found = compare_runs(made(sound, A=a, B=b, C=[400.0, 403.0, 404.0], D=[401.0, 402.0, 405.0]))
    assert found.pairs[0].primary.p == pytest.approx(alone.primary.p)
    assert found.pairs[0].primary.p_adjusted == pytest.approx(3 * alone.primary.p)
    assert all(any("3 pairs were compared at once" in text for text in pair.cautions) for pair in found.pairs)


def test_the_declared_primary_metric_decides(sound):
    runs = [
        with_manifest(run, scenario=run.manifest.scenario.changed(primary="latency")) for run in made(sound, **QUIET)
    ]
    pair = only(runs)
    assert pair.primary.name == "mean latency" and pair.verdict == "better"
    assert pair.sentence.startswith("B has a mean latency 16 % lower than A (14 to 18)")
    assert "throughput" in [one.name for one in pair.others]


STEADY = Steadiness("never became steady", "It never became steady.", "TPS", 40, "")
BROKEN = {
    "runs": dict(invalid=[invalid(ValidityKind.FOREIGN_IO, share=0.2, with_writes=False)]),
    "driver": dict(driver_bound=[caution(ValidityKind.EXECUTOR_CPU, machine=0, share=0.95)]),
    "foreign I/O": dict(foreign_io_share=0.2),
    "steadiness": dict(steadiness=STEADY),
    "reads per transaction": dict(reads_per_transaction=2.4),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_step_that_is_not_what_it_should_be_is_not_compared(sound, name):
    runs = made(sound, **QUIET)
    pair = only([with_step(run, **BROKEN[name]) if run.steps[0].variant == "B" else run for run in runs])
    assert pair.verdict == "not comparable" and [check.name for check in pair.failed] == [name]
    assert pair.sentence.startswith("A and B are not comparable: ") and pair.failed[0].sentence in pair.sentence
    assert pair.cause is None, "what is not comparable has no cause"


MANIFESTS = {
    "setting work_mem": lambda m: {"server": m.server.changed(settings=m.server.settings | {"work_mem": "1GB"})},
    "scale": lambda m: {"workload": m.workload.changed(scale={"branches": 21})},
    "version of the server": lambda m: {"server": m.server.changed(version="17.1")},
    "cores of the driver": lambda m: {"machine": m.machine.changed(cores=64)},
    "buffer pool": lambda m: {"memory": {"reached_bytes": 1 << 30}},
    "think time": lambda m: {"steps": [m.steps[0].changed(think_ms=5.0)]},
}


@pytest.mark.parametrize("what", MANIFESTS)
def test_what_no_variant_declares_must_be_the_same(sound, what):
    runs = made(sound, **QUIET)
    runs = [with_manifest(run, **MANIFESTS[what](run.manifest)) if run.steps[0].variant == "B" else run for run in runs]
    pair = only([with_manifest(run, variant={"name": run.steps[0].variant}) for run in runs])
    assert [check.name for check in pair.failed] == ["settings"] and what in pair.sentence


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
    assert pair.verdict == "better" and "reads per transaction" not in [check.name for check in pair.checks]


def test_reads_that_differ_within_their_scatter_are_not_held_against_a_pair(sound):
    reads = iter([2.0, 2.3, 2.6, 2.2, 1.9, 2.5])
    pair = only([with_step(run, reads_per_transaction=next(reads)) for run in made(sound, **QUIET)])
    assert pair.verdict == "better"


def test_data_that_grew_and_a_clock_that_went_back_are_not_compared(sound):
    runs = made(sound, **QUIET)
    grown = [replace(run, growth_share=0.09) if run is runs[3] else run for run in runs]
    assert [check.name for check in only(grown).failed] == ["data"]
    late = replace(runs[5], started="2024-01-01T00:00:00+00:00")
    assert [check.name for check in only([*runs[:5], late]).failed] == ["clock"]


def test_wrong_data_is_not_compared(sound):
    runs = made(sound, **QUIET)
    broken = replace(runs[1], conditions=[Condition(name="balances agree", holds=False)])
    assert [check.name for check in only([runs[0], broken, *runs[2:]]).failed] == ["consistency"]


def test_a_run_that_was_cut_counts_for_nothing_and_is_named(sound):
    runs = made(sound, A=[400.0, 404.0, 402.0, 100.0], B=[480.0, 478.0, 484.0, 481.0])
    runs[6] = replace(runs[6], incomplete_because="stopped by Ctrl-C")
    found = compare_runs(runs)
    assert found.left_out == [f"e1/{runs[6].folder} counts for nothing: stopped by Ctrl-C."]
    assert found.pairs[0].verdict == "better" and "1 without a partner left out" in found.pairs[0].method


def test_a_side_that_did_nothing_cannot_be_compared(sound):
    runs = [with_step(run, tps=0.0) if run.steps[0].variant == "B" else run for run in made(sound, **QUIET)]
    assert only(runs).verdict == "not comparable" and "was zero" in only(runs).sentence


def test_one_side_alone_or_no_common_step_is_refused_in_a_sentence(sound):
    with pytest.raises(StallmarkError, match="There is nothing to compare: all runs are of variant 'A'"):
        compare_runs(made(sound, A=[1.0, 2.0]))
    runs = made(sound, **QUIET)
    with pytest.raises(StallmarkError, match="no step in common"):
        compare_runs([with_step(run, users=31) if run.steps[0].variant == "B" else run for run in runs])


def test_steps_that_only_one_side_has_are_named(sound):
    def ramp(run):
        users = (1, 10, 50) if run.steps[0].variant == "A" else (10, 100)
        return replace(run, steps=[replace(run.steps[0], step=f"{n} users", users=n) for n in users])

    pair = only(list(map(ramp, made(sound, **QUIET))))
    assert pair.users == 10
    assert [text for text in pair.cautions if text.startswith("Only")] == [
        "Only A ran 1 user and 50 users, so that is not compared.",
        "Only B ran 100 users, so that is not compared.",
    ]
    assert not [text for text in only(made(sound, **QUIET)).cautions if text.startswith("Only")]


def test_a_side_without_a_step_in_common_is_named(sound):
    runs = [
        with_step(run, users=31) if run.steps[0].variant == "C" else run
        for run in made(sound, **QUIET, C=[300.0, 301.0, 302.0])
    ]
    found = compare_runs(runs)
    assert [(pair.a, pair.b) for pair in found.pairs] == [("A", "B")]
    assert found.left_out == ["C is not compared with A: they have no step in common."]


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
    bad = [
        replace(cut, incomplete_because="cut"),
        with_step(invalid, **BROKEN["runs"]),
        with_step(driver, **BROKEN["driver"]),
    ]
    plan = plan_runs([*bad, *good], 0.05)
    assert plan.spread == plan_runs(good, 0.05).spread and plan.runs_seen == 3
    assert plan.left_out == ("Left out of 6 runs: 1 incomplete, 1 invalid and 1 with the driver as the bottleneck.")
    assert plan_runs(good, 0.05).left_out == ""
    with pytest.raises(StallmarkError, match=r"no run .* \(left out of 3 runs: 1 incomplete, 1 invalid and"):
        plan_runs(bad, 0.05)
    with pytest.raises(StallmarkError, match=r"make at least 2 of one, `repeats: 2` \(left out of 4 runs:"):
        plan_runs([*bad, good[0]], 0.05)
