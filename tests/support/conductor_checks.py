"""Checks of the conductor, run by test_conductor.py in a process of their own: Locust patches its process."""

from stallmark.driver import locust_bridge as conductor  # isort: skip  (patches the process: before everything else)

import time
from types import SimpleNamespace

import numpy as np
import pytest
from gevent import monkey
from locust.env import Environment
from locust.rpc import Message

from stallmark.driver.cluster.join import STALLMARK
from stallmark.driver.cluster.master import MachinesMissing, Master
from stallmark.driver.machines import ExpectedMachines, RunFacts
from stallmark.driver.messages import (
    ExecutorSilent,
    Join,
    MachineFacts,
    MachineLost,
    MessagesLost,
    Refused,
    Report,
    Stopped,
    UsersElsewhere,
    UsersHere,
    decode,
    encode,
)
from stallmark.driver.messages import Message as OurMessage
from stallmark.driver.pacing import Arrivals
from stallmark.driver.rows import Rows, TransactionRow
from stallmark.driver.timeline import Timeline, consecutive_steps
from stallmark.record import histogram as hdr


def timeline(users: list[int], ramp_s: float) -> Timeline:
    return Timeline(consecutive_steps(users, ramp_s=ramp_s, warm_up_s=5, measure_s=10), Arrivals(), seed=1)


def test_this_process_is_patched():
    assert monkey.is_module_patched("socket")


@pytest.mark.parametrize(
    ("users", "ramp_s", "rates"),
    [([30], 10, [3]), ([30], 0, [30]), ([30], 0.5, [30]), ([1, 11, 5], 5, [0.2, 2, 1.2]), ([5, 5], 5, [1, 0.2])],
)
def test_users_are_there_when_the_ramp_ends(users, ramp_s, rates):
    steps = timeline(users, ramp_s)
    assert [conductor.spawn_rate(steps, step) for step in steps.steps] == pytest.approx(rates)


def test_the_shape_follows_the_plan_and_ends_with_it(monkeypatch):
    shape = conductor.PlannedShape()
    monkeypatch.setattr(conductor.PlannedShape, "timeline", timeline([10, 30], 2), raising=False)
    monkeypatch.setattr(conductor.PlannedShape, "start_ns", 0, raising=False)

    def tick(second: float):
        monkeypatch.setattr(time, "monotonic_ns", lambda: int(second * 1e9))
        return shape.tick()

    assert [tick(second) for second in (0, 16.9, 17, 33.9, 34, 35.9, 36, 1000)] == [
        (10, 5), (10, 5), (30, 10), (30, 10), (30, 10), (30, 10), None, None,
    ]  # fmt: skip


def test_reports_are_passed_on_as_they_came():
    sent: list[OurMessage] = []
    here = conductor.Conductor.__new__(conductor.Conductor)
    here._parent = SimpleNamespace(send=sent.append)
    histogram = hdr.encode(np.array([1000], np.int64))
    rows = Rows([TransactionRow(0, "transfer", 1, 0, 0, 0, 1000, 1000, histogram, histogram)])
    report = decode(encode(Report.of(rows)))
    here._deliver(report)
    assert sent == [report] and sent[0].rows() == rows


FACTS = RunFacts("0.1")


class Net:
    """A master, and what it delivers and sends; messages of machines are put into its hand."""

    def __init__(self, count: int, within_s: float = 60):
        environment = Environment(user_classes=[conductor.VirtualUserHandle])
        self.delivered: list[OurMessage] = []
        self.sent: list[tuple[str, OurMessage]] = []
        expected = ExpectedMachines(count, "127.0.0.1", 0, FACTS, within_s)
        self.master = Master(environment, expected, self.delivered.append)
        self.master.server.send_to_client = self._send

    def _send(self, message: Message) -> None:
        if message.type == STALLMARK:
            self.sent.append((message.node_id, decode(message.data["body"])))

    def connect(self, id: str) -> None:
        self.master.handle_message(id, Message("client_ready", -1, id))

    def say(self, id: str, count: int, message: OurMessage) -> None:
        self.master.handle_message(id, Message(STALLMARK, {"body": encode(message), "count": count}, id))

    def join(self, id: str, facts: RunFacts = FACTS) -> None:
        self.connect(id)
        self.say(id, 1, Join(id, facts, MachineFacts(cores=2)))

    def together(self) -> None:
        """As many machines as are wanted have joined, and are told what to do."""
        self.master._wait_for_all()


@pytest.fixture
def net():
    made: list[Net] = []

    def make(*arguments: float) -> Net:
        made.append(Net(*arguments))
        return made[-1]

    yield make
    for each in made:
        each.master.greenlet.kill()
        each.master.server.close(linger=0)


def test_a_machine_that_differs_is_refused_and_gets_no_users(net):
    here = net(1)
    here.join("a", RunFacts("0.2"))
    why = "its Stallmark is 0.2, this run's is 0.1"
    assert here.delivered == [Refused("a", why)]
    assert here.sent == [("a", Refused("a", why))]
    assert not here.master.clients


def test_who_comes_when_all_are_there_waits_for_the_next_run(net):
    here = net(1)
    here.connect("early")  # and has not joined yet
    here.join("a")
    here.together()
    here.join("late")
    here.say("early", 1, Join("early", FACTS, MachineFacts()))
    assert list(here.master.clients) == ["a"] and here.sent == []


def test_machines_that_do_not_come_are_said(net):
    here = net(2, 0.1)
    here.join("a")
    with pytest.raises(MachinesMissing, match=r"1 of 2 load machines came within 0\.1 s"):
        here.together()


def test_a_machine_that_leaves_while_others_are_waited_for_is_not_counted(net):
    here = net(2, 0.3)
    here.join("a")
    here.join("b")
    here.master.handle_message("b", Message("quit", None, "b"))
    with pytest.raises(MachinesMissing, match="1 of 2"):
        here.together()


def test_a_machine_that_leaves_during_the_load_is_told_of_before_locust_stops(net):
    here = net(1)
    here.master.environment.events.test_stop.add_listener(lambda **_: here.delivered.append(Stopped()))
    here.join("a")
    here.together()
    here.master.update_state("running")
    here.master.handle_message("a", Message("quit", None, "a"))
    assert list(map(type, here.delivered)) == [MachineLost, Stopped]


def test_a_message_that_is_missing_is_noticed(net):
    here = net(1)
    here.join("a")
    here.together()
    here.say("a", 2, ExecutorSilent())
    here.say("a", 4, ExecutorSilent())
    number = here.master._machines["a"].number
    assert here.delivered == [ExecutorSilent(number), MessagesLost(number), ExecutorSilent(number)]


def test_every_machine_knows_how_many_users_the_others_have(net):
    here = net(3)
    for id in "abc":
        here.join(id)
    here.together()
    here.say("a", 2, UsersHere(4))
    here.say("c", 2, UsersHere(2))
    assert here.sent[-3:] == [(id, UsersElsewhere(users)) for id, users in zip("abc", (2, 6, 4), strict=True)]
