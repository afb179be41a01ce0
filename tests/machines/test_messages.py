"""Machines that may join a load from several machines, and how their clocks are compared."""

from copy import copy

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.waiting import TIMEOUT_S

from stallmark.driver.channel import start_child
from stallmark.driver.load import RunFacts, ThisMachine
from stallmark.driver.messages import Finished, Quit
from stallmark.machines.messages import ClockOffset, refusal

FACTS = RunFacts("0.1", "PostgreSQL 18.4", scale={"branches": 2}, options={}, bytes_as_loaded=7)
DELAYS = st.tuples(st.integers(0, 10**10), st.integers(0, 10**10))


def test_a_machine_like_the_others_may_join():
    assert refusal(FACTS, copy(FACTS)) is None


@pytest.mark.parametrize(
    ("offered", "why"),
    [
        ({"stallmark": "0.2"}, "its Stallmark is 0.2, this run's is 0.1"),
        ({"scale": {"branches": 1}}, "its scale is branches 1, this run's is branches 2"),
        ({"options": {"b": 1, "a": 2}}, "its options is a 2, b 1, this run's is none"),
        ({"bytes_as_loaded": None, "server": "SQL Server"}, "its server is SQL Server, this run's is PostgreSQL 18.4"),
        ({"seed": 1}, "its seed is 1, this run's is none"),
    ],
)
def test_the_first_difference_is_said(offered, why):
    assert refusal(FACTS, msgspec.structs.replace(FACTS, **offered)) == why


def test_what_is_missing_is_a_difference():
    assert refusal(FACTS, RunFacts("0.1")) == "its server is none, this run's is PostgreSQL 18.4"


@given(st.integers(-(10**18), 10**18), st.lists(st.tuples(st.integers(0, 10**18), DELAYS), min_size=1))
def test_the_offset_of_a_clock_is_within_what_is_said(offset, exchanges):
    """However unequal the ways there and back are."""
    seen = [(sent, sent + there + offset, sent + there + back) for sent, (there, back) in exchanges]
    clock = ClockOffset.compare(seen)
    assert abs(clock.offset_ns - offset) <= clock.within_ns
    assert clock.within_ns <= min(there + back for _, (there, back) in exchanges) // 2 + 1


@given(st.integers(1, 50), st.integers(1, 200))
def test_no_number_is_given_twice_over_all_machines(machines, each):
    numbers = [ThisMachine(m, machines).number(i) for m in range(1, machines + 1) for i in range(each)]
    assert sorted(numbers) == list(range(machines * each))
    assert [ThisMachine().number(i) for i in range(each)] == list(range(each))


@given(cores=st.lists(st.integers(1, 8), min_size=1, max_size=5))
def test_what_processes_number_is_numbered_once_though_machines_have_other_numbers_of_them(cores):
    """As the brokerage numbers its trades: from a process's own number on, by as many as it thinks there are."""
    machines = len(cores)
    given_out = [
        ThisMachine(machine, machines).number(index) + turn * executors * machines
        for machine, executors in enumerate(cores, start=1)
        for index in range(executors)
        for turn in range(20)
    ]
    assert len(set(given_out)) == len(given_out)


# The process that joins, and what its parent may say to it when


@pytest.mark.thorough
def test_one_that_is_stopped_before_it_has_an_order_ends_without_a_word(capfd):
    process, channel = start_child("stallmark.machines.worker")
    try:
        channel.send(Quit())
        assert channel.receive() == Finished()
        assert process.wait(TIMEOUT_S) == 0
    finally:
        channel.close()
        process.kill()
        process.wait()
    assert capfd.readouterr().err == ""
