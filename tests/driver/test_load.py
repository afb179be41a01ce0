"""The executors and background sessions of loads: enough of each, and no more than the machine has cores for."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.driving import load_spec

from stallmark.driver.load import USERS_PER_EXECUTOR, background_sessions, executors, shared_out


@pytest.mark.parametrize(
    ("users", "wanted"), [(1, 1), (USERS_PER_EXECUTOR, 1), (USERS_PER_EXECUTOR + 1, 2), (10_000, 625)]
)
def test_no_more_executors_than_cores(users, wanted, monkeypatch):
    loads = [load_spec(1, users)]
    monkeypatch.setattr(os, "cpu_count", lambda: 1000)
    assert executors(loads) == [wanted]
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    assert executors(loads) == [min(2, wanted)]


def test_each_of_several_machines_has_executors_for_its_share_of_the_users(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    assert [executors([load_spec(65)], machines) for machines in (1, 2, 4, 5, 65)] == [[5], [3], [2], [1], [1]]


@given(users=st.lists(st.integers(1, 500), min_size=1, max_size=12), cores=st.integers(1, 64))
def test_several_loads_take_no_more_executors_than_cores_and_share_none_where_there_are_enough(users, cores):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "cpu_count", lambda: cores)
        loads = [load_spec(each) for each in users]
        found, each = shared_out(loads), executors(loads)
    assert len(found) <= cores and all(found)
    assert sum(each) >= min(cores, len(users)) and (sum(each) > cores or all(len(here) == 1 for here in found))
    assert each == [sum(place in here for here in found) for place in range(len(loads))]
    assert all(1 <= here <= -(-users // USERS_PER_EXECUTOR) for here, users in zip(each, users, strict=True))
    assert [here for _, here in sorted(zip(users, each, strict=True))] == sorted(each)


def test_small_loads_lie_evenly(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    assert sorted(map(len, shared_out([load_spec(16)] * 8))) == [2, 2, 2, 2]


@given(
    users=st.integers(1, 500),
    each=st.sampled_from([0, 0.3, 0.5, 1]),
    machines=st.lists(st.integers(1, 8), min_size=1, max_size=4),
)
def test_background_sessions_are_enough_and_at_most_one_too_many_in_each_executor(users, each, machines):
    loads = [load_spec(1, users, background_per_user=each), load_spec(1, 2 * users)]
    [found] = background_sessions(loads, [[here, 1] for here in machines]).values()  # both are cells of one load
    assert users * each - 1e-9 <= found < users * each + len(machines) * max(machines)
    assert (found == 0) is (each == 0)
