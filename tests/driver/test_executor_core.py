"""An executor keeps to one core, and follows orders there however busy it is."""

import math
import os
import socket
import subprocess
import sys
from collections import deque
from types import SimpleNamespace

import numpy as np
import pytest
from support.simulated_time import Time

from stallmark.driver import executor as module
from stallmark.driver.channel import Channel
from stallmark.driver.executor import _pop_samples
from stallmark.driver.messages import CannotStart, NotUnderstood, Quit, Refused, StopUser
from stallmark.driver.tally import ENDED
from stallmark.errors import CallFailed, ErrorClass


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="This system gives no process a core of its own.")
def test_executors_are_spread_over_the_cores_one_each():
    code = (
        "import os; from stallmark.driver.executor import keep_to_one_core; "
        "keep_to_one_core({}); print(*os.sched_getaffinity(0))"
    )
    mine = sorted(os.sched_getaffinity(0), reverse=True)
    for index in range(len(mine) + 1):
        done = subprocess.run([sys.executable, "-c", code.format(index)], capture_output=True, text=True, check=True)
        assert [int(core) for core in done.stdout.split()] == [mine[index % len(mine)]]


def test_orders_are_not_held_up_by_reports_that_take_longer_than_until_the_next_one(monkeypatch):
    """Users who were to leave a busy machine left one a report, into the measured interval of the next step."""
    monkeypatch.setattr(module, "REPORT_EVERY_S", 0.01)
    simulated = Time(until=math.inf)
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=simulated.clock))
    ours, theirs = map(Channel, socket.socketpair())
    obeyed, reports = [], []

    def report() -> None:
        if not reports:
            for user in range(20):
                ours.send(StopUser(0, user))
            ours.send(Quit())
        reports.append(list(obeyed))
        simulated.sleep(3 * module.REPORT_EVERY_S)

    executor = module.Executor.__new__(module.Executor)
    executor._channel = theirs
    executor._loads = {}
    executor._obey = lambda message: obeyed.append(message.user)
    executor._send_report = report
    executor._follow_orders()
    assert obeyed == list(range(20))
    assert reports == [[]], "no report between two orders that had come"
    ours.close()
    theirs.close()


def test_reports_are_sent_while_thousands_of_users_start(monkeypatch):
    simulated = Time(until=math.inf)
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=simulated.clock))
    ours, theirs = map(Channel, socket.socketpair())
    for user in range(100):
        ours.send(StopUser(0, user))
    ours.send(Quit())
    reports: list[float] = []
    executor = module.Executor.__new__(module.Executor)
    executor._channel, executor._loads = theirs, {}
    executor._obey = lambda message: simulated.sleep(0.1)
    executor._send_report = lambda: reports.append(simulated.clock())
    executor._follow_orders()
    assert np.diff([0.0, *reports, simulated.clock()]).max() <= 2 * module.REPORT_EVERY_S + 0.1 + 1e-9
    ours.close()
    theirs.close()


def test_an_executor_that_loses_the_server_while_it_starts_ends_with_a_sentence(monkeypatch):
    def lost(channel: object, order: object) -> None:
        raise CallFailed(ErrorClass.CONNECTION_LOST, "57P01", "terminating connection")

    monkeypatch.setattr(module, "Executor", lost)
    monkeypatch.setattr(module, "keep_to_one_core", lambda index: None)
    monkeypatch.setattr(sys, "argv", ["executor", "7"])
    monkeypatch.setattr(sys, "setswitchinterval", lambda seconds: None)
    order, sent = SimpleNamespace(index=0), list[object]()
    channel = SimpleNamespace(expect=lambda kind: order, send=sent.append)
    monkeypatch.setattr(module, "inherited_channel", lambda number: channel)
    with pytest.raises(SystemExit) as ended:
        module.main()
    assert ended.value.code == 1
    [told] = sent
    assert isinstance(told, CannotStart) and "terminating connection" in told.reason and "\n" not in told.reason


def test_transactions_are_taken_when_their_second_has_ended():
    """And once: what ended later stays for the next report, though another thread came before it."""
    samples = deque((0, at, at, at, at, 0, 0) for at in (10, 25, 19, 31))
    assert [[sample[ENDED] for sample in _pop_samples(samples, before)] for before in (10, 20, 30, 32)] == [
        [], [10], [25, 19], [31],
    ]  # fmt: skip
    assert not samples


def test_an_order_that_makes_no_sense_is_left_out_and_told_of():
    ours, theirs = map(Channel, socket.socketpair())
    stopped = []
    executor = module.Executor.__new__(module.Executor)
    executor._channel, executor._loads = theirs, {0: SimpleNamespace(stop=stopped.append)}
    for order in (NotUnderstood(), StopUser(1, 7), Refused("a", "b"), StopUser(0, 7)):
        executor._obey(order)
    assert stopped == [7]
    assert [type(ours.receive()) for _ in range(3)] == [NotUnderstood] * 3
    ours.close()
    theirs.close()
