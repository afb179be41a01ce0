"""Records of brokerage runs through `summarise`: the result, the transactions, the gates, bursts of errors."""

import json
from dataclasses import replace

import pytest
from support.findings import kinds_of
from support.synthetic import Brokerage, Step, Truth, make_run
from support.synthetic_brokerage import CARDS

from stallmark.analysis.experiment import summarise
from stallmark.analysis.finding import ExperimentKind
from stallmark.analysis.read.times import ReadKind
from stallmark.analysis.validity_gates import GateKind
from stallmark.record.reader import Record
from stallmark.report.experiment import experiment_in_json

pytestmark = pytest.mark.thorough

SOUND = Truth(tps=250, noise=0.0, warm_up_s=12, measured_s=40, brokerage=Brokerage())


def experiment(tmp_path, truth=SOUND, **brokerage):
    truth = replace(truth, brokerage=replace(truth.brokerage, **brokerage))
    return summarise([Record(make_run(tmp_path / "run", truth))])


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    return experiment(tmp_path_factory.mktemp("sound"))


def gate_of(step, name):
    return next(gate for gate in step.validity.gates if gate.name == name)


def test_a_sound_run_passes_every_gate(sound):
    (step,) = sound.steps
    names = [gate.name for gate in step.validity.gates]
    assert names == ["mix", "followers", "aborts", "locks", "p90_limits", "background_lag", "consistency", "completed"]
    assert all(gate.passed for gate in step.validity.gates), step.validity.gates
    assert step.validity.invalid == [] and step.validity.bursts == [] and step.validity.driver_bound == []


def test_the_result_is_the_primary_transactions_rate(sound):
    summary = sound
    (step,) = summary.steps
    results = next(one for one in step.transactions if one.name == "trade_result")
    assert step.throughput.primary == "trade_result" and step.throughput.nominal_tps == 10
    assert step.result_tps == step.throughput.primary_tps == results.tps == pytest.approx(250 * 101 / 890, rel=0.1)
    assert step.throughput.tps == pytest.approx(250 + 1.1 * step.throughput.primary_tps, rel=0.03)
    assert summary.findings[0].facts["primary"] == "trade_result"
    assert summary.findings[0].facts["per_s"] == step.result_tps
    assert summary.runs[0].series.primary_tps[12:].mean() == pytest.approx(step.throughput.primary_tps)


def test_transactions_stand_as_in_the_deck_with_their_shares(sound):
    (step,) = sound.steps
    names = [one.name for one in step.transactions]
    assert names == [*CARDS, "trade_result", "market_feed", "data_maintenance"]
    of_users = step.transactions[: len(CARDS)]
    assert sum(one.share for one in of_users) == pytest.approx(1)
    for one in of_users:
        assert one.deck_share == CARDS[one.name] / 890
        assert one.share == pytest.approx(one.deck_share, rel=0.1)
    assert all(one.share is None for one in step.transactions[len(CARDS) :])
    assert [one.limit_s for one in step.transactions][-2:] == [2.0, None]


@pytest.mark.parametrize(
    ("what", "gate"),
    [
        ({"skipped": {"trade_status": 0.2}}, GateKind.MIX),
        ({"lost_results": 0.3}, GateKind.FOLLOWERS),
        ({"deadlocks": 6.0}, GateKind.ABORTS),
        ({"late_s": 0.3}, GateKind.LAG),
        ({"waiting_more": 2.0}, GateKind.LAG),
        ({"miscounted": 3}, GateKind.COMPLETED),
        ({"miscounted": -1}, GateKind.COMPLETED),
    ],
)
def test_what_is_wrong_fails_its_gate_and_voids_the_step(tmp_path, what, gate):
    truth = replace(SOUND, arrivals="poisson") if "skipped" in what else SOUND
    (step,) = experiment(tmp_path, truth, **what).steps
    assert [one.kind for one in step.validity.gates if one.passed is False] == [gate]
    assert [one.kind for one in step.validity.invalid] == [gate]


def test_a_missed_limit_leaves_a_step_comparable(tmp_path):
    summary = experiment(tmp_path, latency_s={"trade_result": 2.5})
    (step,) = summary.steps
    assert gate_of(step, "p90_limits").passed is False and step.validity.invalid == []
    assert ExperimentKind.OVER_LIMIT in kinds_of(summary.findings)
    slow = next(one for one in step.transactions if one.name == "trade_result")
    assert slow.over_limit > 0.3 and slow.latency_ms["p90"] > 2000


def test_many_locks_void_a_step(tmp_path):
    truth = replace(SOUND, waits={"io": 0.5, "wal": 0.05, "lock": 0.35})
    (step,) = experiment(tmp_path, truth).steps
    assert gate_of(step, "locks").passed is False and len(step.validity.invalid) == 1


def test_unknown_outcomes_may_have_been_committed(tmp_path):
    (step,) = experiment(tmp_path, unknown=3, unknown_committed=2).steps
    gate = gate_of(step, "completed")
    assert gate.passed and gate.value == 2 and gate.limit == 3


def test_bursts_of_errors_are_told_by_transaction(tmp_path):
    (step,) = experiment(tmp_path, burst=(20, 24, 50)).steps
    (burst,) = step.validity.bursts
    assert burst.kind == ReadKind.ERROR_BURST and burst.facts == {
        "transaction": "trade_result", "error_class": "deadlock", "seconds": 4, "measured_s": 40,
        "most_in_a_second": 50, "given_up": 0,
    }  # fmt: skip
    (error,) = step.validity.errors
    assert (error.transaction, error.attempts, error.most_in_a_second) == ("trade_result", 200, 50)
    results = next(one for one in step.transactions if one.name == "trade_result")
    assert results.aborted == results.retries == 200


def test_followers_are_no_work_of_the_users(tmp_path):
    """Little's law holds for users; what background sessions do comes on top."""
    (step,) = experiment(tmp_path, latency_s={"trade_result": 1.5}).steps
    assert step.validity.invalid == []


def test_each_step_of_a_ramp_is_judged_for_itself(tmp_path):
    steps = (Step(10, 150, 0.0, "10 users"), Step(30, 300, 0.0, "30 users"))
    summary = experiment(tmp_path, replace(SOUND, steps=steps))
    assert [step.users for step in summary.steps] == [10, 30]
    assert all(gate.passed for step in summary.steps for gate in step.validity.gates)
    most = summary.findings[0]
    assert most.kind == ExperimentKind.MOST_USERS
    assert most.facts["users"][0] == 10 and most.facts["primary"] == "trade_result"


def test_a_run_that_was_cut_is_judged_by_what_there_is(tmp_path):
    truth = replace(SOUND, cut_at=30)
    record = Record(make_run(tmp_path / "run", truth))
    workload = truth.brokerage.declared(0) | {"counted": {"trade_result": {"before": 0}}}
    record.manifest = record.manifest.changed(workload=workload)
    (step,) = summarise([record]).steps
    assert gate_of(step, "completed").passed is None
    assert gate_of(step, "mix").passed and step.interval.cut


def test_records_from_before_the_workload_was_told_still_read(tmp_path):
    (step,) = summarise([Record(make_run(tmp_path / "run", replace(SOUND, brokerage=None)))]).steps
    assert step.throughput.primary is None and step.result_tps == step.throughput.tps
    assert [gate.name for gate in step.validity.gates] == ["consistency"]
    assert step.transactions[0].share is None


def test_json_carries_gates_and_transactions(tmp_path):
    told = json.loads(json.dumps(experiment_in_json(experiment(tmp_path, late_s=0.3))))
    (step,) = told["runs"][0]["steps"]
    lag = next(gate for gate in step["gates"] if gate["name"] == "background_lag")
    assert lag["passed"] is False and lag["value"] == pytest.approx(0.3) and lag["limit"] == 0.1
    assert step["primary"] == "trade_result" and step["primary_tps"] > 0 and step["nominal_tps"] == 10
    assert step["transactions"][0]["deck_share"] == 101 / 890
