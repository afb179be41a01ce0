"""The load changed by hand while it runs: the steps of the timeline and of the manifest, and what follows."""

import pytest
from hypothesis import given
from hypothesis import strategies as some
from support.driving import load_spec
from support.manifests import a_manifest

from stallmark.driver.load import COOL_DOWN_S, Timeline, WarmUpLimits, consecutive_steps
from stallmark.driver.messages import ChangedByHand, StoppedByHand
from stallmark.driver.run_state import changed_by_hand, with_times
from stallmark.experiment.work import steps_of
from stallmark.record.manifest.workload import Load, Waited

PLANNED = Timeline(
    consecutive_steps([("30 users", 30), ("60 users", 60)], ramp_s=2, warm_up_s=8, measure_s=50), WarmUpLimits(5, 60)
)
CHANGES = some.lists(some.tuples(some.floats(0, 119.5), some.integers(1, 99), some.floats(0, 200)), max_size=5)


@given(changes=CHANGES)
def test_steps_follow_each_other_until_the_planned_end(changes):
    timeline = PLANNED
    for second, users, ramp_s in sorted(changes):
        timeline = timeline.changed_at(second, users, ramp_s)
    assert timeline.steps[-1].end_s == PLANNED.steps[-1].end_s and timeline.end_s == PLANNED.end_s
    assert len({step.name for step in timeline.steps}) == len(timeline.steps)
    for step, following in zip(timeline.steps, timeline.steps[1:], strict=False):
        assert step.end_s == following.begin_s
    assert all(step.begin_s <= step.measure_s <= step.end_s for step in timeline.steps)
    assert not changes or timeline.warm_up_limits is None  # nobody waits for a steady state any more


def test_a_change_takes_the_place_of_all_later_steps():
    first, by_hand = PLANNED.changed_at(40.0, 30, 6.0).steps
    assert (first.end_s, by_hand.begin_s, by_hand.measure_s, by_hand.end_s) == (40.0, 40.0, 46.0, 120.0)
    assert (first.name, by_hand.name) == ("30 users", "30 users (2)")


@pytest.mark.parametrize(("second", "steps", "measure_s"), [(40.0, 1, 10.0), (4.0, 1, 4.0), (90.0, 2, 70.0)])
def test_a_stop_ends_the_run_with_the_present_step(second, steps, measure_s):
    timeline = PLANNED.stopped_at(second)
    assert len(timeline.steps) == steps and timeline.steps[-1].measure_s == measure_s
    assert timeline.end_s == second + COOL_DOWN_S


LOADS = [
    load_spec(20, name="bank", cell=1, cells=2),
    load_spec(20, name="bank", cell=2, cells=2),
    load_spec(5, name="mail"),
]
MADE = a_manifest(
    steps=steps_of(PLANNED, LOADS[0].arrivals),
    loads=(
        Load(name="bank", kind="users", counts=(40, 40), cells=2),
        Load(name="mail", kind="users", counts=(5, 5)),
        Load(name="noise", kind="raw", counts=(1, 2)),
    ),
)


def test_the_manifest_has_each_change_as_a_step():
    change = ChangedByHand([7, 8, 3], 2.5, 10.0)
    timeline = PLANNED.changed_at(40.0, 18, 10.0)
    made = MADE.changed(**changed_by_hand(MADE, timeline, LOADS, change))
    waited = [Waited(at_least_s=5, at_most_s=60, seconds=8, steady=True)]
    made = made.changed(steps=with_times(made.steps, timeline, waited))
    assert [load.counts for load in made.loads] == [(40, 15), (5, 3), (1, 1)]  # raw I/O goes on as it was
    planned, by_hand = made.steps
    assert (planned.spawn_rate, by_hand.spawn_rate, by_hand.users) == (None, 2.5, 18)
    assert (planned.end_s, by_hand.measure_s, by_hand.end_s) == (40.0, 50.0, 120.0)
    assert planned.waited and not by_hand.waited and by_hand.is_by_hand and not planned.is_by_hand


def test_the_manifest_ends_with_a_stop():
    made = MADE.changed(**changed_by_hand(MADE, PLANNED.stopped_at(40.0), LOADS, StoppedByHand()))
    [only] = made.steps
    assert only.stopped_by_hand and only.is_by_hand and only.spawn_rate is None
    assert [load.counts for load in made.loads] == [(40,), (5,), (1,)]
