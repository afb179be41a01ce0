"""The timeline of a run."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stallmark.driver.timeline import COOL_DOWN_S, Timeline, consecutive_steps

SECONDS = st.floats(0, 1000)


def test_users_that_come_again_are_another_step():
    steps = consecutive_steps([10, 20, 10], ramp_s=0, warm_up_s=0, measure_s=1)
    assert [step.name for step in steps] == ["10 users", "20 users", "10 users (2)"]


@given(
    users=st.lists(st.integers(1, 10_000), min_size=1, max_size=6),
    ramp=SECONDS,
    warm_up=SECONDS,
    measure=st.floats(1, 1000),
)
def test_steps_follow_each_other_without_a_gap(users, ramp, warm_up, measure):
    steps = consecutive_steps(users, ramp_s=ramp, warm_up_s=warm_up, measure_s=measure)
    assert [step.users for step in steps] == users
    assert len({step.name for step in steps}) == len(users)
    assert steps[0].begin_s == 0
    for before, after in itertools.pairwise(steps):
        assert after.begin_s == before.end_s
    for step in steps:
        assert step.measure_s == pytest.approx(step.begin_s + ramp + warm_up)
        assert step.end_s == pytest.approx(step.measure_s + measure)
    timeline = Timeline(steps)
    assert timeline.end_s == steps[-1].end_s + COOL_DOWN_S
    for step in steps:
        assert timeline.step_at(step.begin_s) is step
        assert timeline.step_at((step.begin_s + step.end_s) / 2) is step
    assert timeline.step_at(timeline.end_s) is timeline.step_at(timeline.end_s + 99) is steps[-1]
