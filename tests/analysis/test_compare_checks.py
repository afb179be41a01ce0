"""Refused comparisons and their reasons: drift seen by A′, unsteady runs, settings, single runs."""

from dataclasses import replace

import pytest
from support.comparisons import QUIET, made, only, with_manifest, with_step
from support.findings import facts_of

from stallmark.analysis.compare.settings import DifferenceKind, IntentKind
from stallmark.analysis.compare.summary import CheckKind, PairKind, ReasonKind
from stallmark.analysis.compare.verdicts import compare_runs
from stallmark.analysis.finding import invalid
from stallmark.analysis.read.statements import StatementSummary
from stallmark.analysis.steady import Steadiness
from stallmark.analysis.validity import CounterSource, ValidityKind
from stallmark.errors import StallmarkError

NEVER = Steadiness("never_became_steady", "", "TPS", 600, "", trend_p=0.015, change_p=0.5)
STEADY = Steadiness("steady", "", "TPS", 600, "", trend_p=0.5, change_p=0.5)
LATE = Steadiness("became_steady_late", "", "TPS", 600, "", trend_p=0.5, warm_up_s=40, warm_up_shift=0.01)


def check(pair, kind):
    [found] = [one for one in pair.checks if one.kind == kind]
    return found


def drifted(pair):
    """Measures in which A′ was off A, and by how much."""
    [facts] = facts_of(pair.finding.facts["reasons"], ReasonKind.DRIFTED)
    return facts["side"], facts["metric"], round(facts["share"], 2)


def again(runs, last):
    """The `last` of them declared to be A′."""
    return [*runs[:-last], *(with_manifest(run, again=True) for run in runs[-last:])]


def declaring(run, primary):
    return with_manifest(run, scenario=run.manifest.scenario.changed(primary=primary))


DRIFTING = {"A": [400.0, 402.0, 401.0, 460.0, 462.0, 459.0], "B": [480.0, 478.0, 484.0]}


def test_a_baseline_does_not_get_round_the_first_variant_run_again(sound):
    runs = again(made(sound, order="AAABBBAAA", **DRIFTING), 3)
    pair = only(runs, baseline="B")
    assert pair.verdict == "not_comparable" and pair.confounded
    assert drifted(pair) == ("A", "tps", 0.15)
    assert facts_of(pair.cautions, PairKind.CAME_BACK) == [{"side": "A", "other": "B"}]


def test_the_first_variant_run_again_tells_of_every_pair_in_between(sound):
    runs = again(made(sound, order="AAABBBCCCAAA", C=[500.0, 502.0, 501.0], **DRIFTING), 3)
    found = compare_runs(runs, baseline="B")
    assert [(pair.b, pair.verdict) for pair in found.pairs] == [("A", "not_comparable"), ("C", "not_comparable")]
    assert drifted(found.pairs[1])[0] == "A"
    assert [len(side.again) for side in found.sides] == [3, 0, 0]


def test_runs_of_other_experiments_in_between_take_nothing_from_a_pair_made_by_turns(sound):
    """A and B by turns, C, and A and B by turns on a faster day: A against B is sound, either against C is not."""

    def on(day, runs):
        return [replace(run, started=f"2025-11-{day}T{run.started[11:]}") for run in runs]

    faster = {side: [1.15 * tps for tps in values] for side, values in QUIET.items()}
    found = compare_runs(
        [
            *on(21, made(sound, **QUIET)),
            *on(22, made(sound, experiment="e2", C=[480.0, 478.0, 484.0])),
            *on(23, made(sound, experiment="e3", **faster)),
        ]
    )
    assert [(pair.b, pair.verdict) for pair in found.pairs] == [("B", "better"), ("C", "not_comparable")]
    assert not found.pairs[0].confounded and found.pairs[1].confounded


def test_the_first_variant_run_again_is_judged_by_the_declared_metric_and_by_throughput(sound):
    def of(run, mean_ms):
        return with_step(declaring(run, "latency"), latency_mean_ms=mean_ms)

    tps = {"A": [400.0, 400.0], "B": [480.0]}
    first, b, last = again(made(sound, order="ABA", **tps), 1)
    pair = only([of(first, 10.0), of(b, 8.0), of(last, 13.0)])
    assert pair.verdict == "not_comparable" and drifted(pair) == ("A", "latency", 0.3)
    first, b, last = again(made(sound, order="ABA", **tps | {"A": [400.0, 480.0]}), 1)
    pair = only([of(first, 10.0), of(b, 8.0), of(last, 10.0)])
    assert drifted(pair) == ("A", "tps", 0.2)
    pair = only([of(first, 10.0), of(b, 8.0), of(with_step(last, tps=400.0), None)])
    assert check(pair, CheckKind.AGAIN).passed is None


def test_more_runs_are_let_off_with_no_more_drift_than_one(sound):
    """8 % off: too much of one run each, and as much of three that scatter so that no test shows it."""
    one = {"A": [400.0, 432.0], "B": [480.0]}
    three = {"A": [380.0, 400.0, 420.0, 400.0, 432.0, 464.0], "B": [480.0, 478.0, 484.0]}
    for order, last, tps in (("ABA", 1, one), ("AAABBBAAA", 3, three)):
        pair = only(again(made(sound, order=order, **tps), last))
        assert check(pair, CheckKind.AGAIN).passed is False, check(pair, CheckKind.AGAIN).found


def test_sides_that_declare_different_metrics_are_not_compared(sound):
    runs = [declaring(run, "p99" if run.steps[0].variant == "B" else "tps") for run in made(sound, **QUIET)]
    pair = only(runs)
    assert [one.kind for one in pair.failed] == [CheckKind.METRIC_DECLARED]
    assert pair.failed[0].reason.kind is ReasonKind.METRICS_DIFFER
    assert pair.failed[0].reason.facts == {"metrics": {"A": ["tps"], "B": ["p99"]}}
    assert check(only(made(sound, **QUIET)), CheckKind.METRIC_DECLARED).passed


def judged(runs, *found):
    return [with_step(run, steadiness=one) for run, one in zip(runs, found, strict=True)]


def test_several_runs_that_were_each_unsteady_within_chance_are_too_many(sound):
    runs = made(sound, **QUIET)
    pair = only(judged(runs, NEVER, STEADY, STEADY, NEVER, STEADY, STEADY))
    assert [one.kind for one in pair.failed] == [CheckKind.STEADINESS]
    [reason] = pair.failed[0].reason.facts["reasons"]
    assert reason == {"because": NEVER.verdict, "runs": ["01-A", "04-B"]}


def test_one_run_that_was_unsteady_within_chance_is_named_and_not_held_against_them(sound):
    runs = made(sound, **QUIET)
    for one, by_chance in ((NEVER, True), (LATE, False)):
        found = check(only(judged(runs, one, *[STEADY] * 5)), CheckKind.STEADINESS)
        assert found.passed and found.found.facts["steady"] == 5
        tolerated = {"because": one.verdict, "runs": ["01-A"], "by_chance": by_chance}
        assert found.found.facts["tolerated"] == [tolerated]
    found = check(only(judged(runs, *[STEADY] * 6)), CheckKind.STEADINESS)
    assert found.found.facts["steady"] == 6 and not found.found.facts["tolerated"]


def test_runs_must_be_measured_for_as_long_and_may_begin_later(sound):
    def moved(run, later_s, longer_s):
        if run.steps[0].variant == "A":
            return run
        [step] = run.manifest.steps
        begin, end = step.measure_s + later_s, step.end_s + later_s + longer_s
        return with_manifest(run, steps=[step.changed(measure_s=begin, end_s=end)])

    runs = [with_manifest(run, variant={"name": run.steps[0].variant}) for run in made(sound, **QUIET)]
    assert only([moved(run, 7.1, 0) for run in runs]).verdict == "better"
    pair = only([moved(run, 0, 20) for run in runs])
    assert [one.kind for one in pair.failed] == [CheckKind.SETTINGS]
    [difference] = pair.failed[0].reason.facts["differences"]
    assert difference.kind == DifferenceKind.MEASURED and difference.facts == {"a": 40, "b": 60}


def test_a_step_that_one_run_did_not_reach_is_compared_of_the_others(sound):
    def ramp(run, *users):
        return replace(run, steps=[replace(run.steps[0], step=f"{n} users", users=n) for n in users])

    runs = made(sound, A=[400.0, 404.0, 402.0, 401.0], B=[480.0, 478.0, 484.0, 481.0])
    runs = [ramp(run, *((10,) if run is runs[3] else (10, 20))) for run in runs]
    ten, twenty = compare_runs(runs).pairs
    assert (ten.verdict, ten.primary.runs_a, ten.primary.runs_b) == ("better", 4, 4)
    assert (twenty.verdict, twenty.primary.runs_a, twenty.primary.runs_b) == ("better", 3, 3)
    assert twenty.method.facts["runs"] == [3, 3] and twenty.method.facts["left_out"] == 1
    assert twenty.primary.b == pytest.approx((480 * 484 * 481) ** (1 / 3))
    assert not facts_of([*ten.cautions, *twenty.cautions], PairKind.ONLY_ONE_SIDE)


def test_every_reason_of_single_runs_is_given_once_with_its_runs(sound):
    counters = invalid(ValidityKind.COUNTERS_BEGAN_AGAIN, of=CounterSource.LOG)
    failed = invalid(ValidityKind.TRANSACTIONS_FAILED, share=0.03)
    foreign = invalid(ValidityKind.FOREIGN_IO, share=0.2, with_writes=False)
    runs = made(sound, **QUIET)
    runs[0] = with_step(runs[0], invalid=[counters])
    runs[2] = with_step(runs[2], invalid=[counters, foreign], foreign_io_share=0.2)
    runs[5] = with_step(runs[5], invalid=[failed])
    pair = only(runs)
    reasons = [(one["because"], one["runs"]) for one in check(pair, CheckKind.RUNS).reason.facts["reasons"]]
    assert reasons == [(counters, ["01-A", "03-A"]), (failed, ["06-B"])]
    assert check(pair, CheckKind.RUNS).found.facts["invalid"] == 3
    assert check(pair, CheckKind.FOREIGN_IO).reason.facts == {"share": 0.2, "runs": ["03-A"]}


def test_reads_that_differ_within_their_scatter_are_said_to_and_not_called_unknown(sound):
    reads = iter([2.0, 2.3, 2.6, 2.2, 1.9, 2.5])
    pair = only([with_step(run, reads_per_transaction=next(reads)) for run in made(sound, **QUIET)])
    found = check(pair, CheckKind.READS)
    assert pair.verdict == "better" and found.passed and found.found.facts["p"] > 0.05
    assert facts_of(pair.cautions, PairKind.READS_WITHIN_SCATTER) == [
        {name: fact for name, fact in found.found.facts.items() if name != "unknown"}
    ]
    unknown = facts_of(pair.cautions, PairKind.CHECKS_UNKNOWN)
    assert all(CheckKind.READS not in facts["checks"] for facts in unknown)


@pytest.mark.parametrize(
    ("changes", "kind"),
    [({"reads_per_transaction": None}, CheckKind.READS), ({"foreign_io_share": None}, CheckKind.FOREIGN_IO)],
)
def test_what_one_run_does_not_tell_is_not_known_of_all(sound, changes, kind):
    runs = [with_step(run, reads_per_transaction=2.0, foreign_io_share=0.0) for run in made(sound, **QUIET)]
    assert check(only(runs), kind).passed is True
    found = check(only([with_step(runs[0], **changes), *runs[1:]]), kind)
    assert found.passed is None and found.found.facts["unknown"] == 1


def test_conditions_that_were_checked_after_some_runs_are_not_known_after_all(sound):
    runs = made(sound, **QUIET)
    assert check(only(runs), CheckKind.CONSISTENCY).passed is True
    assert check(only([replace(runs[0], conditions=[]), *runs[1:]]), CheckKind.CONSISTENCY).passed is None


@pytest.mark.parametrize(("a", "b", "differs"), [(False, True, False), (None, None, True)])
def test_a_setting_that_a_variant_has_as_it_wants_is_intended(sound, a, b, differs):
    name = "database read committed snapshot"

    def versioned(run):
        wanted, there = (a, "False") if run.steps[0].variant == "A" else (b, "True")
        changed = run.manifest.variant.changed(row_versioning=wanted)
        server = run.manifest.server.changed(settings=run.manifest.server.settings | {name: there})
        return with_manifest(run, variant=changed, server=server)

    found = check(only([versioned(run) for run in made(sound, **QUIET)]), CheckKind.SETTINGS)
    assert [one.facts["name"] for one in found.found.facts["differences"]] == [name] * differs


OFF, ON, NO_JIT = {"synchronous_commit": "off"}, {"synchronous_commit": "on"}, {"jit": "off"}


def with_settings(runs, there, *, scenario=None, variant=None, names=None):
    """Runs whose server had the settings `there` by side, and whose scenario and variants chose some, by side."""

    def changed(run):
        side, manifest = run.steps[0].variant, run.manifest
        server = manifest.server.changed(settings=manifest.server.settings | there[side], names=names or {})
        wanted = manifest.variant.changed(settings=(variant or {}).get(side, {}))
        of_all = manifest.scenario.changed(settings=(scenario or {}).get(side, {}))
        return with_manifest(run, server=server, variant=wanted, scenario=of_all)

    return [changed(run) for run in runs]


def settings_at_fault(pair):
    found = check(pair, CheckKind.SETTINGS)
    return [] if found.passed else [one.facts["name"] for one in found.found.facts["differences"]]


@pytest.mark.parametrize(
    ("chosen", "at_fault"),
    [
        ({}, ["synchronous_commit"]),  # changed by hand
        ({"variant": {"A": ON, "B": OFF}}, []),
        ({"variant": {"B": OFF}}, []),  # A has the server's own
        ({"scenario": {"A": ON, "B": ON}, "variant": {"B": OFF}}, []),
        ({"scenario": {"A": ON, "B": OFF}}, []),  # of two experiments
        ({"variant": {"A": OFF, "B": OFF}}, ["synchronous_commit"]),  # the server did not take one
    ],
)
def test_settings_may_differ_as_they_were_chosen(sound, chosen, at_fault):
    runs = with_settings(made(sound, **QUIET), {"A": ON, "B": OFF}, **chosen)
    assert settings_at_fault(only(runs)) == at_fault


def test_a_chosen_setting_excuses_no_other(sound):
    there = {"A": ON | {"jit": "on"}, "B": OFF | {"jit": "off"}}
    runs = with_settings(made(sound, **QUIET), there, variant={"A": ON, "B": OFF})
    assert settings_at_fault(only(runs)) == ["jit"]


def test_a_setting_may_have_another_name_in_the_record(sound):
    name = "database delayed durability"
    there = {"A": {name: "DISABLED"}, "B": {name: "FORCED"}}
    chosen = {"B": {"DELAYED_DURABILITY": "FORCED"}}
    runs = with_settings(made(sound, **QUIET), there, variant=chosen, names={"DELAYED_DURABILITY": name})
    assert settings_at_fault(only(runs)) == []
    [of_a, of_b] = [facts_of(side.differs, IntentKind.SETTING) for side in compare_runs(runs).sides]
    assert of_a == [] and of_b == [{"name": "DELAYED_DURABILITY", "value": "FORCED"}]
    by_hand = with_settings(made(sound, **QUIET), there)
    assert settings_at_fault(only(by_hand, varied=[name])) == []


def test_the_value_that_the_server_had_is_shown(sound):
    chosen, memory = {"work_mem": "65536kB"}, {"work_mem": "64MB"}
    runs = with_settings(made(sound, **QUIET), {"A": memory, "B": memory}, scenario={"A": chosen})
    [of_a, of_b] = [facts_of(side.differs, IntentKind.SETTING) for side in compare_runs(runs).sides]
    assert of_a == [{"name": "work_mem", "value": "64MB"}] and of_b == []


@pytest.mark.parametrize(
    ("there", "varied", "at_fault"),
    [
        ({"A": ON, "B": OFF}, ["synchronous_commit"], []),
        ({"A": ON | {"jit": "on"}, "B": OFF | {"jit": "off"}}, ["synchronous_commit"], ["jit"]),
        ({"A": ON | {"jit": "on"}, "B": OFF | {"jit": "off"}}, ["synchronous_commit", "jit"], []),
    ],
)
def test_what_was_varied_by_hand_may_differ(sound, there, varied, at_fault):
    runs = with_settings(made(sound, **QUIET), there)
    assert settings_at_fault(only(runs, varied=varied)) == at_fault
    if not at_fault:
        of_a = compare_runs(runs, varied=varied).sides[0]
        assert {one["name"] for one in facts_of(of_a.differs, IntentKind.SETTING)} == set(varied)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("synchronous_comit", "no report .* lists .*did you mean synchronous_commit"),
        ("nothing", "no report .* lists a setting of that name"),
        ("jit", "is on in every run"),
    ],
)
def test_what_was_not_varied_is_refused(sound, name, why):
    """A setting that is the same on both sides is no cause of a difference."""
    runs = with_settings(made(sound, **QUIET), {"A": ON | {"jit": "on"}, "B": OFF | {"jit": "on"}})
    with pytest.raises(StallmarkError, match=f"--varied {name}: .*{why}"):
        compare_runs(runs, varied=[name])


def test_a_setting_that_is_the_same_on_both_sides_is_not_said_to_differ(sound):
    runs = with_settings(made(sound, **QUIET), {"A": ON, "B": OFF}, scenario={"A": NO_JIT, "B": NO_JIT})
    assert settings_at_fault(only(runs)) == ["synchronous_commit"]


def test_experiments_whose_settings_were_varied_are_the_sides(sound):
    """They have the same variants, which would otherwise be the sides, each with runs of both settings."""
    runs = []
    for experiment, there in (("before", ON), ("after", OFF)):
        runs += [
            with_manifest(run, experiment=experiment)
            for run in with_settings(made(sound, **QUIET), {"A": there, "B": there})
        ]
    compared = compare_runs(runs, varied=["synchronous_commit"])
    assert [(pair.a, pair.b) for pair in compared.pairs] == [("A, before", "A, after"), ("B, before", "B, after")]
    assert not any(settings_at_fault(pair) for pair in compared.pairs)


def planned(run, *plans, procedure="bank.transfer"):
    statements = [
        StatementSummary(procedure, position, "", one, 100, 10.0, 99.0, 1.0, 2.0, 30.0)
        for position, one in enumerate(plans)
    ]
    return with_step(run, statements=statements)


@pytest.mark.parametrize(
    ("of_a", "of_b", "changed"),
    [
        ([("x",)], [("x",)], []),
        ([("x", "y")], [("x",)], []),  # executed most by the same
        ([("x",)], [("y", "x")], ["bank.transfer"]),
        ([("x",), ("z",)], [("x",), ("w",)], ["bank.transfer"]),
        ([("x",), ("z",)], [("x",)], []),  # a statement of one side is no change
    ],
)
def test_a_plan_that_changed_is_said_in_the_verdict_and_does_not_forbid_it(sound, of_a, of_b, changed):
    runs = [planned(run, *(of_a if run.steps[0].variant == "A" else of_b)) for run in made(sound, **QUIET)]
    pair = only(runs)
    assert pair.verdict == "better" and pair.finding.facts.get("plans_changed", []) == changed
    assert check(pair, CheckKind.PLANS).passed is (None if changed else True)
    assert facts_of(pair.cautions, ReasonKind.PLANS_DIFFER) == [{"procedures": changed}] * bool(changed)


def test_a_side_whose_runs_had_both_plans_has_not_changed(sound):
    of_a, runs = iter("xyx"), made(sound, **QUIET)
    runs = [planned(run, (next(of_a) if run.steps[0].variant == "A" else "y",)) for run in runs]
    assert check(only(runs), CheckKind.PLANS).passed


@pytest.mark.parametrize(
    ("name", "a", "b", "alike"),
    [
        ("database scoped LEGACY_CARDINALITY_ESTIMATION", "0", "1", False),
        ("automatic tuning FORCE_LAST_GOOD_PLAN", "OFF", "ON", False),
        ("query store mode", "READ_WRITE", "OFF", False),
        ("availability group commit mode", "ASYNCHRONOUS_COMMIT", "SYNCHRONOUS_COMMIT", False),
        ("availability group role", "none", "PRIMARY", False),
        ("resource governor workload group", "default", "small", False),
        ("tempdb metadata in memory", "0", "1", False),
        ("database auto update statistics", "True", "False", False),
        ("server soft numa", "OFF", "ON", False),
        ("query store mode", "READ_WRITE", "READ_WRITE", True),
        ("query store mode", None, "READ_WRITE", True),  # an older record does not say
    ],
)
def test_settings_of_a_sql_server_that_differ_let_nothing_be_compared(sound, name, a, b, alike):
    def told(run):
        value = a if run.steps[0].variant == "A" else b
        more = {} if value is None else {name: value}
        server = run.manifest.server
        return with_manifest(run, server=server.changed(settings=server.settings | more))

    pair = only([told(run) for run in made(sound, **QUIET)])
    assert check(pair, CheckKind.SETTINGS).passed is alike
