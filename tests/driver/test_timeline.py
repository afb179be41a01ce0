"""The timeline of a run, and how Locust is told about it."""

import itertools
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stallmark.driver.pacing import Arrivals
from stallmark.driver.timeline import COOL_DOWN_S, USERS_PER_EXECUTOR, Timeline, consecutive_steps

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
    timeline = Timeline(steps, Arrivals(), seed=1)
    assert timeline.end_s == steps[-1].end_s + COOL_DOWN_S
    assert timeline.most_users == max(users)
    for step in steps:
        assert timeline.step_at(step.begin_s) is step
        assert timeline.step_at((step.begin_s + step.end_s) / 2) is step
    assert timeline.step_at(timeline.end_s) is timeline.step_at(timeline.end_s + 99) is steps[-1]


@pytest.mark.parametrize(
    ("users", "wanted"), [(1, 1), (USERS_PER_EXECUTOR, 1), (USERS_PER_EXECUTOR + 1, 2), (10_000, 625)]
)
def test_no_more_executors_than_cores(users, wanted, monkeypatch):
    timeline = Timeline(consecutive_steps([1, users], ramp_s=0, warm_up_s=0, measure_s=1), Arrivals(), seed=1)
    monkeypatch.setattr(os, "cpu_count", lambda: 1000)
    assert timeline.executors() == wanted
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    assert timeline.executors() == min(2, wanted)


def test_each_of_several_machines_has_executors_for_its_share_of_the_users(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    timeline = Timeline(consecutive_steps([65], ramp_s=0, warm_up_s=0, measure_s=1), Arrivals("fixed", rate=3), seed=1)
    assert [timeline.executors(machines) for machines in (1, 2, 4, 5, 65)] == [5, 3, 2, 1, 1]


@given(
    users=st.integers(1, 500),
    each=st.sampled_from([0, 0.3, 0.5, 1]),
    executors=st.lists(st.integers(1, 8), min_size=1, max_size=4),
)
def test_background_sessions_are_enough_and_at_most_one_too_many_in_each_executor(users, each, executors):
    timeline = Timeline(
        consecutive_steps([1, users], ramp_s=0, warm_up_s=0, measure_s=1), Arrivals(), seed=1, background_per_user=each
    )
    found = timeline.all_background_sessions(executors)
    assert users * each - 1e-9 <= found < users * each + sum(executors)
    assert (found == 0) is (each == 0)
