"""Waiting for a steady state: when it is decided to measure, and what the timeline then is."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from support.driving import load_spec
from support.synthetic_series import autoregressive

from stallmark.driver.pacing import Arrivals
from stallmark.driver.rows import TransactionRow
from stallmark.driver.timeline import Timeline, WarmUpLimits, consecutive_steps
from stallmark.driver.warm_up import SecondsSeen, Settling
from stallmark.record.histogram import EMPTY


def timeline(*users: int, limits: WarmUpLimits | None = None) -> Timeline:
    limits = limits or WarmUpLimits(30, 300)
    steps = consecutive_steps(users, ramp_s=5, warm_up_s=limits.at_most_s, measure_s=60)
    return Timeline(steps, limits)


def follow(
    given: Timeline, tps: np.ndarray, latency_ms: np.ndarray | None = None, arrivals: Arrivals | None = None
) -> Settling:
    """As a run would: every second is reported, and looked at a fifth of a second after its end."""
    seen = SecondsSeen()
    load = load_spec(*(step.users for step in given.steps), arrivals=arrivals or Arrivals())
    settling = Settling(given, [load], seen)
    latency_ms = np.full(len(tps), 10.0) if latency_ms is None else latency_ms
    for second, (count, ms) in enumerate(zip(tps, latency_ms, strict=True)):
        committed = round(count)
        seen.add(row(second, committed, 0, round(committed * ms * 1000)))
        settling.check(second + 1.2)
    return settling


def row(second: int, committed: int, rolled_back: int, latency_us: int) -> TransactionRow:
    return TransactionRow(second, "bank", "transfer", committed, rolled_back, 0, 0, latency_us, 0, EMPTY, EMPTY)


def steady(seconds: int = 800, seed: int = 1) -> np.ndarray:
    return 5 * autoregressive(seconds, 0.3, noise=0.02, counting=0.01, seed=seed)


def test_a_steady_load_is_measured_soon_but_not_before_the_least():
    settling = follow(timeline(10), steady())
    (step,) = settling.timeline.steps
    assert 35 <= step.measure_s < 200 and step.measure_s == int(step.measure_s)
    assert step.end_s == step.measure_s + 60
    assert [one.model_dump() for one in settling.waited] == [
        {"until": "steady", "at_least_s": 30, "at_most_s": 300, "seconds": step.measure_s - 5, "steady": True}
    ]
    assert not settling.waiting


def test_a_load_that_keeps_drifting_is_measured_at_the_last_moment_and_it_is_said():
    settling = follow(timeline(10), steady() * np.linspace(1, 4, 800))
    (step,) = settling.timeline.steps
    assert step == timeline(10).steps[0]
    assert settling.waited[0].steady is False and settling.waited[0].seconds == 300


def test_every_step_waits_by_itself_and_the_later_ones_come_earlier():
    tps = steady()
    tps[200:] *= 2
    settling = follow(timeline(10, 20), tps)
    first, second = settling.timeline.steps
    assert second.begin_s == first.end_s
    assert second.measure_s >= second.begin_s + 5 + 30
    assert [one.steady for one in settling.waited] == [True, True]
    assert second.end_s < timeline(10, 20).end_s


def test_arrivals_at_a_rate_are_judged_by_their_latency():
    """The throughput is the rate all the time; the latency falls for ten minutes while a cache fills."""
    open_loop, second = Arrivals("fixed", rate=500), np.arange(800)
    warming = follow(timeline(10), np.full(800, 500.0), 10 + 40 * np.exp(-second / 200), open_loop)
    ready = follow(timeline(10), np.full(800, 500.0), steady() / 50, open_loop)
    assert ready.timeline.steps[0].measure_s < 200
    assert warming.timeline.steps[0].measure_s > 250


def test_without_limits_nothing_is_decided():
    steps = consecutive_steps([10], ramp_s=5, warm_up_s=30, measure_s=60)
    settling = Settling(Timeline(steps), [load_spec(10)], SecondsSeen())
    assert not settling.waiting and not settling.check(1000.0)


def test_a_second_in_which_nothing_ended_has_no_latency():
    seen = SecondsSeen()
    seen.add(row(1, 3, 1, 8000))
    assert seen.throughput(0, 3).tolist() == [0, 3, 0]
    assert np.isnan(seen.latency(0, 3)).tolist() == [True, False, True] and seen.latency(1, 2)[0] == 2000


@given(some.lists(some.integers(1, 50), min_size=1, max_size=4), some.data())
def test_a_moved_plan_has_every_step_as_long_as_before(users, data):
    before = timeline(*users)
    index = data.draw(some.integers(0, len(users) - 1))
    moved = before.measuring_from(index, data.draw(some.floats(0, before.steps[index].measure_s)))
    for old, new in zip(before.steps, moved.steps, strict=True):
        assert new.end_s - new.measure_s == pytest.approx(old.end_s - old.measure_s)
    for earlier, later in pairwise(moved.steps):
        assert math.isclose(later.begin_s, earlier.end_s)
