"""Which seconds figures are over when checkpoints come and go."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from support.synthetic import Truth, make_run

from stallmark.analysis.experiment import marks as marks_of
from stallmark.analysis.experiment import summarise
from stallmark.analysis.read.counters import Counters
from stallmark.analysis.read.server_state import ServerState
from stallmark.analysis.read.times import Interval
from stallmark.analysis.steady import (
    CycleKind,
    Marks,
    cut_to_whole_cycles,
    marks_of_counter,
    marks_of_writes,
    missing_checkpoint,
)
from stallmark.record.reader import Record
from stallmark.report.experiment import experiment_in_json

MEASURED = Interval(0, 100, 400, 300.0, False)


def marks(*seconds: float) -> Marks:
    return Marks(np.array(seconds), "test", 1.0)


def counted(every_s: float, until: float, **totals) -> Counters:
    """Sampled once a second, not on whole ones; counts how many multiples of `every_s` have passed."""
    t = np.arange(0.3, until)
    nowhere = np.zeros(len(t) - 1, bool)
    return Counters(t, {name: np.floor(t / every_s) * each for name, each in totals.items()}, nowhere, nowhere)


def test_figures_are_over_the_whole_cycles():
    found = cut_to_whole_cycles(MEASURED, marks(50.3, 110.3, 180.3, 250.3, 320.3, 410.3))
    assert (found.begin, found.end) == (111, 321)
    assert found.cycles.whole and found.cycles.count == 3 and found.cycles.mean_s == pytest.approx(70)
    assert found.planned_s == 300 and not found.cut
    assert found.cycles.finding.kind == CycleKind.WHOLE


@pytest.mark.parametrize("seen", [(), (200.5,), (150.5, 250.5), (150.5, 250.5, 350.5)])
def test_fewer_than_three_leave_the_interval_as_it_is(seen):
    found = cut_to_whole_cycles(MEASURED, marks(*seen))
    assert (found.begin, found.end) == (100, 400)
    assert found.cycles.count == max(len(seen) - 1, 0) and not found.cycles.whole
    assert found.cycles.finding.kind == CycleKind.TOO_FEW


def test_checkpoints_that_come_together_are_no_cycles():
    found = cut_to_whole_cycles(MEASURED, marks(110.5, 120.5, 130.5, 145.5))
    assert (found.begin, found.end) == (100, 400)
    assert found.cycles.count == 3 and found.cycles.finding.kind == CycleKind.IRREGULAR


def test_where_checkpoints_are_not_known_nothing_is_said_of_them():
    assert cut_to_whole_cycles(MEASURED, None) is MEASURED


@given(some.floats(5, 140), some.floats(0, 1))
def test_regular_cycles_are_always_whole_and_leave_at_least_three_fifths(length, phase):
    found = cut_to_whole_cycles(MEASURED, marks(*np.arange(phase * length, 500, length)))
    assert MEASURED.begin <= found.begin < found.end <= MEASURED.end
    if found.cycles.count >= 3:
        assert found.cycles.whole and found.seconds >= 0.6 * MEASURED.seconds - 1
        assert found.seconds == pytest.approx(found.cycles.count * length, abs=1.01)


def test_postgres_counts_checkpoints():
    done = marks_of_counter(counted(30, 200, timed=7, requested=5, done=1))
    assert done.t == pytest.approx([30.3, 60.3, 90.3, 120.3, 150.3, 180.3]) and done.resolution_s == 1
    before_18 = marks_of_counter(counted(50, 200, timed=1, requested=0))
    assert before_18.t == pytest.approx([50.3, 100.3, 150.3])
    assert marks_of_counter(None) is None


def test_a_count_that_began_again_tells_nothing():
    broken = counted(30, 200, done=1)
    broken.breaks[100] = True
    assert marks_of_counter(broken) is None


def test_sql_server_tells_checkpoints_by_their_writes():
    """Of 60 s, the first 20 at full speed; what trickles between is none, and a pause of one sample no end."""
    t = np.arange(0.5, 400, 5)
    rate = np.where(t % 60 < 20, 1000.0, 3.0)
    rate[np.isclose(t, 130.5)] = 0
    found = marks_of_writes((t, np.concatenate([[0], np.cumsum(rate[:-1] * 5)])))
    assert found.t == pytest.approx([20.5, 80.5, 140.5, 200.5, 260.5, 320.5, 380.5])
    assert found.resolution_s == 5


@pytest.mark.parametrize(("quiet", "ends"), [(1, [30]), (2, [10, 30])])
def test_a_pause_between_bursts_is_an_end_if_it_is_long_enough(quiet, ends):
    """Two samples of 5 s are: CHECKPOINT_QUIET_S."""
    rate = [1000, 1000, *[0] * quiet, *[1000] * (4 - quiet), 0, 0]
    assert marks_of_writes((5.0 * np.arange(9), np.cumsum([0, *rate]))).t == pytest.approx(ends)


@pytest.mark.parametrize(("quiet", "ends"), [(1, []), (2, [10])])
def test_the_last_burst_has_an_end_if_the_record_goes_on_long_enough(quiet, ends):
    rate = [1000, 1000, *[0] * quiet]
    assert marks_of_writes((5.0 * np.arange(3 + quiet), np.cumsum([0, *rate]))).t == pytest.approx(ends)


def test_indirect_checkpoints_have_no_cycles():
    t = np.arange(0.5, 400, 5)
    assert not len(marks_of_writes((t, 500 * t)).t)
    assert not len(marks_of_writes((t, 0 * t)).t)
    assert marks_of_writes((t, -t)) is None and marks_of_writes(None) is None


@pytest.mark.thorough
def test_every_figure_of_a_step_is_over_the_same_cycles(tmp_path):
    truth = Truth(tps=500, noise=0.0, warm_up_s=10, measured_s=100, checkpoint_every_s=24)
    record = Record(make_run(tmp_path / "run", truth))
    made = summarise([record])
    (step,), (run,) = made.steps, made.runs
    assert len(run.series.second) == 110  # lines go on to the end of what was measured
    assert step.interval.cycles.whole and step.interval.cycles.count == 3
    assert step.interval.end_s - step.interval.begin_s == step.interval.measured_s == 72
    assert step.throughput.committed == 72 * 500 and step.throughput.tps == 500
    assert step.storage.data.seconds == pytest.approx(72) and step.server.checkpoints == 3
    assert step.latency.percentiles_ms["p50"] is not None and step.validity.steadiness.seconds == 72
    (whole,) = summarise([Record(make_run(tmp_path / "other", replace(truth, checkpoint_every_s=70)))]).steps
    assert whole.interval.measured_s == 100 and not whole.interval.cycles.whole


@pytest.mark.parametrize("seen", [(), (99.5, 400.5)])
def test_writes_of_an_interval_without_a_checkpoint_are_partial(seen):
    found = missing_checkpoint(cut_to_whole_cycles(MEASURED, marks(*seen)), None)
    assert found and found.kind is CycleKind.NO_CHECKPOINT and found.facts == {"measured_s": 300}


@pytest.mark.parametrize(
    ("seen", "state"),
    [
        ((200.5,), None),
        ((110.3, 180.3, 250.3, 320.3), ServerState()),
        ((), ServerState(checkpoint_pages_per_s=3.0)),
        ((), ServerState(checkpoint_pages_per_s=0.0, background_pages_per_s=3.0)),
    ],
    ids=["one", "whole cycles", "one that goes on", "indirect"],
)
def test_writes_with_a_checkpoint_are_not_partial(seen, state):
    assert missing_checkpoint(cut_to_whole_cycles(MEASURED, marks(*seen)), state) is None


def test_unknown_checkpoints_make_no_writes_partial():
    assert missing_checkpoint(MEASURED, None) is None


@pytest.mark.thorough
@pytest.mark.parametrize(("every_s", "partial"), [(1000.0, True), (24.0, False)])
def test_a_step_without_a_checkpoint_has_a_mark(tmp_path, every_s, partial):
    truth = Truth(noise=0.0, warm_up_s=5, measured_s=30, checkpoint_every_s=every_s, extends_per_second=0.0)
    made = summarise([Record(make_run(tmp_path / "run", truth))])
    (run,), (step,) = made.runs, made.steps
    assert (CycleKind.NO_CHECKPOINT in {mark.kind for mark in marks_of(run, step)}) is partial
    assert bool(step.storage.writes_partial) is partial
    assert step.storage.writes_per_transaction == pytest.approx(truth.writes_per_transaction, rel=0.01)
    assert step.storage.reads_per_write == pytest.approx(
        truth.reads_per_transaction / truth.writes_per_transaction, rel=0.01
    )
    [in_json] = experiment_in_json(made)["runs"][0]["steps"]
    assert bool(in_json["writes_partial"]) is partial and in_json["processes"]
