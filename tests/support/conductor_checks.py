"""Checks of the conductor, run by test_locust_conductor.py in a process of their own: Locust patches its process."""

from stallmark.driver import locust_conductor as conductor  # isort: skip  (patches the process: before everything else)

import signal
import time
from types import SimpleNamespace

import numpy as np
import pytest
from gevent import monkey
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some
from locust.runners import WorkerNode

from stallmark.driver import executor_pool
from stallmark.driver.channel import Closed, start_child
from stallmark.driver.load import Timeline, consecutive_steps
from stallmark.driver.locust_dispatcher import LoadsDispatcher
from stallmark.driver.messages import ExecutorDied, Report, decode, encode
from stallmark.driver.messages import Message as OurMessage
from stallmark.driver.rows import Rows, TransactionRow
from stallmark.record import histogram as hdr
from support.driving import load_spec

BANK, MAIL = conductor.user_class(0), conductor.user_class(1)


def test_this_process_is_patched():
    assert monkey.is_module_patched("socket")


@pytest.mark.parametrize(
    ("before", "users", "ramp_s", "rate"),
    [
        ({}, {BANK: 30}, 10, 3),
        ({}, {BANK: 30}, 0, 30),
        ({}, {BANK: 30}, 0.5, 30),
        ({BANK: 1}, {BANK: 11}, 5, 2),
        ({BANK: 11}, {BANK: 5}, 5, 1.2),
        ({BANK: 5}, {BANK: 5}, 5, 0.2),
        ({BANK: 5, MAIL: 0}, {BANK: 0, MAIL: 5}, 5, 2),  # as many, and others
    ],
)
def test_users_are_there_when_the_ramp_ends(before, users, ramp_s, rate):
    assert conductor.spawn_rate(before, users, ramp_s) == pytest.approx(rate)


def test_the_shape_follows_the_plan_and_ends_with_it(monkeypatch):
    shape = conductor.PlannedShape()
    timeline = Timeline(
        consecutive_steps([("10 users", 10), ("30 users", 30), ("30 users", 30)], ramp_s=2, warm_up_s=5, measure_s=10)
    )
    users = [{BANK: 10, MAIL: 0}, {BANK: 10, MAIL: 20}, {BANK: 20, MAIL: 10}]
    monkeypatch.setattr(conductor.PlannedShape, "timeline", timeline, raising=False)
    monkeypatch.setattr(conductor.PlannedShape, "users", users, raising=False)
    monkeypatch.setattr(conductor.PlannedShape, "start_ns", 0, raising=False)

    def tick(second: float):
        monkeypatch.setattr(time, "monotonic_ns", lambda: int(second * 1e9))
        return shape.tick()

    told = [(10, 5, users[0]), (30, 10, users[1]), (30, 10, users[2])]
    assert [tick(second) for second in (0, 16.9, 17, 33.9, 34, 52.9, 53, 1000)] == [
        told[0], told[0], told[1], told[1], told[2], told[2], None, None,
    ]  # fmt: skip


class Dispatched:
    """The users of each load on each of so many machines, as the dispatcher tells of them time after time."""

    def __init__(self, machines: int):
        self.dispatcher = LoadsDispatcher([WorkerNode(f"m{number}") for number in range(machines)], [BANK, MAIL])

    def __call__(self, bank: int, mail: int, rate: float = 100) -> list[list[tuple[int, int]]]:
        self.dispatcher.new_dispatch(bank + mail, rate, {BANK: bank, MAIL: mail})
        return [[(here["Load0"], here["Load1"]) for here in told.values()] for told in self.dispatcher]


@pytest.fixture
def no_pause(monkeypatch):
    slept: list[float] = []
    monkeypatch.setattr("stallmark.driver.locust_dispatcher.gevent.sleep", slept.append)
    return slept


STEPS = some.lists(some.tuples(some.integers(0, 40), some.integers(0, 40)), min_size=1, max_size=6)


@given(machines=some.integers(1, 4), steps=STEPS, rate=some.floats(0.1, 1000))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_load_has_its_number_after_each_step_evenly_on_all_machines(machines, steps, rate, no_pause):
    dispatched = Dispatched(machines)
    for bank, mail in steps:
        *_, last = dispatched(bank, mail, rate)
        for wanted, here in zip((bank, mail), zip(*last, strict=True), strict=True):
            assert sum(here) == wanted and max(here) - min(here) <= 1


def test_users_of_one_load_go_while_those_of_another_come_at_the_rate(no_pause):
    dispatched = Dispatched(1)
    dispatched(4, 0)
    told = dispatched(0, 4, rate=2)
    assert [bank + mail for [(bank, mail)] in told] == [4, 4, 4, 4] and told[0] == [(3, 1)] and told[-1] == [(0, 4)]
    assert no_pause == [1.0] * 3
    assert dispatched(0, 4) == [[(0, 4)]]  # nothing to do is told, too: Locust waits for one


def test_a_machine_that_has_gone_has_no_users_and_nobody_gets_its_own(no_pause):
    dispatched = Dispatched(2)
    dispatched(6, 2)
    dispatched.dispatcher.remove_worker(WorkerNode("m1"))
    assert dispatched.dispatcher._users_on_workers == {"m0": {"Load0": 3, "Load1": 1}}


def test_reports_are_passed_on_as_they_came():
    sent: list[OurMessage] = []
    here = conductor.Conductor.__new__(conductor.Conductor)
    here._parent, here._page = SimpleNamespace(send=sent.append), None
    histogram = hdr.encode(np.array([1000], np.int64))
    rows = Rows([TransactionRow(0, "bank", "transfer", 1, 0, 0, 0, 1000, 1000, histogram, histogram)])
    report = decode(encode(Report.from_rows(rows)))
    here._deliver(report)
    assert sent == [report] and sent[0].rows() == rows


def test_an_executor_that_is_killed_before_it_has_its_order_is_told_as_dead(monkeypatch):
    def killed(module):
        process, channel = start_child(module)
        process.kill()
        process.wait()
        return process, channel

    monkeypatch.setattr(executor_pool, "start_child", killed)
    told: list[OurMessage] = []
    with pytest.raises(Closed):
        executor_pool.Executors([load_spec(1)], "mssql://sa@192.0.2.1/bank", told.append)
    [died] = told
    assert isinstance(died, ExecutorDied) and died.code == -signal.SIGKILL
