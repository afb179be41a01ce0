"""Calls of many seconds do not pass for idle users, and idle users do not pass for such calls."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stallmark.analysis.driver_bound import DriverKind, _spread_back, driver_bound, little_gap
from stallmark.analysis.read.throughput import Load
from stallmark.analysis.read.times import Interval

SECONDS, INTERVAL = 30, Interval(0, 5, 15, 10.0, False)


def load_of(busy_s: np.ndarray, users: float = 2.0) -> Load:
    """Return a load of one executor, in which calls that ended in a second took so long together."""
    running = np.where(np.arange(SECONDS) < 20, users, 0.0)
    sums = {"running": running, "busy_us": busy_s * 1e6} | {
        name: np.zeros(SECONDS) for name in ("think_us", "lag_us", "cpu_us")
    }
    counts = {"transfer": {"latency_us": busy_s * 1e6} | dict.fromkeys(("committed", "rolled_back"), np.zeros(SECONDS))}
    return Load(SECONDS, counts=counts, users={0: sums}, executors={0: [0]})


def overhead(load: Load) -> float | None:
    found = [one for one in driver_bound(load, INTERVAL, "closed") if one.kind == DriverKind.OVERHEAD]
    return found[0].facts["share"] if found else None


def test_a_call_that_ends_after_the_interval_was_no_idle_user():
    busy = np.where(np.arange(SECONDS) < 20, 1.0, 0.0)  # one user, in calls of less than a second
    assert overhead(load_of(busy)) == pytest.approx(0.5)
    busy[22] = 19.5  # the other's one call, from second 3 on
    assert overhead(load_of(busy)) is None


def test_time_that_no_call_accounts_for_is_the_drivers():
    busy = np.where(np.arange(SECONDS) < 20, 1.6, 0.0)
    assert overhead(load_of(busy)) == pytest.approx(0.2)
    busy[14] += 2.0  # more than the second has: two of the twenty user-seconds before were in that call
    assert overhead(load_of(busy)) == pytest.approx(0.1)


def test_users_who_wait_for_a_server_that_is_lost_are_not_the_drivers_overhead():
    nothing = load_of(np.zeros(SECONDS))
    assert overhead(nothing) == 1
    assert not list(driver_bound(nothing, INTERVAL, "closed", answered=False))


def test_littles_law_holds_with_a_call_that_ends_after_the_interval():
    busy = np.where(np.arange(SECONDS) < 20, 1.0, 0.0)
    assert little_gap(load_of(busy), INTERVAL) is not None
    busy[22] = 19.5
    assert little_gap(load_of(busy), INTERVAL) is None


@pytest.mark.parametrize("each", [1.7, 2.3])
def test_littles_law_does_not_hold_where_time_is_missing_or_counted_twice(each):
    found = little_gap(load_of(np.where(np.arange(SECONDS) < 20, each, 0.0)), INTERVAL)
    assert found is not None and found.facts == {"users": 2, "accounted_users": pytest.approx(each)}


def second_by_second(spent_us: list[int], users_us: list[int]) -> tuple[list[float], float]:
    """Return what `_spread_back` returns, as its docstring says it."""
    passed, before = list(map(float, spent_us)), 0.0
    for second in reversed(range(len(passed))):
        passed[second] += before
        before = max(0.0, passed[second] - users_us[second])
        passed[second] -= before
    return passed, before


MICROSECONDS = st.integers(0, 10**9)


@given(st.lists(st.tuples(MICROSECONDS, MICROSECONDS), max_size=40))
def test_time_is_spread_back_as_it_would_be_second_by_second(seconds):
    spent_us, users_us = (np.array([pair[side] for pair in seconds], float) for side in (0, 1))
    passed, left = _spread_back(spent_us, users_us)
    assert (list(passed), left) == second_by_second(list(spent_us), list(users_us))
    assert passed.sum() + left == spent_us.sum()


def late_starts(late_ms: float, latency_ms: float, think_ms: float, arrivals: str) -> bool:
    """Return whether 4 users that start so late are the driver's fault."""
    done = np.full(SECONDS, np.floor(4000 / (latency_ms + think_ms)))
    sums = {"running": np.full(SECONDS, 4.0), "cpu_us": np.zeros(SECONDS), "think_us": done * think_ms * 1000}
    sums |= {"lag_us": done * late_ms * 1000, "busy_us": done * (latency_ms - late_ms) * 1000}
    counts = {"committed": done, "rolled_back": np.zeros(SECONDS), "latency_us": done * latency_ms * 1000}
    load = Load(SECONDS, counts={"transfer": counts}, users={0: sums}, executors={0: [0]})
    return DriverKind.LATE_STARTS in [one.kind for one in driver_bound(load, INTERVAL, arrivals)]


def test_users_who_think_are_late_by_a_share_of_their_cycle():
    """4 users, 40 ms of think time and 0.25 ms late on an idle server: 0.6 % of the cycle."""
    assert not late_starts(0.25, 1.2, 40, "closed")
    assert late_starts(0.25, 1.2, 0, "closed")
    assert late_starts(2.5, 3.5, 40, "closed")


def test_an_open_loop_has_no_think_time_to_be_late_in():
    assert late_starts(0.25, 1.2, 40, "poisson")
