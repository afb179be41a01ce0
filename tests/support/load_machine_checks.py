"""Checks of the master and its load machines, in the process that runs conductor_checks.py: Locust patches it."""

from stallmark.driver import locust_conductor as conductor  # isort: skip  (patches the process: before everything else)

import math
import time
from types import SimpleNamespace

import gevent
import msgspec
import numpy as np
import pytest
from gevent.pool import Group
from locust.env import Environment
from locust.rpc import Message
from locust.runners import STATE_MISSING

from stallmark.driver.executor_pool import Executors, LoadPool
from stallmark.driver.load import ExpectedMachines, LoadSpec, RunFacts, ThisMachine
from stallmark.driver.locust_dispatcher import LoadsDispatcher
from stallmark.driver.messages import (
    ExecutorDied,
    ExecutorSilent,
    ExecutorsReady,
    FinalReport,
    Finished,
    Go,
    Join,
    LateMachine,
    MachineFacts,
    MachineLost,
    MessagesLost,
    NotUnderstood,
    Quit,
    Rate,
    RateShare,
    Refused,
    Report,
    SessionLost,
    StartUser,
    Stopped,
    UsersElsewhere,
    UsersHere,
    Waiting,
    decode,
    encode,
)
from stallmark.driver.messages import Message as OurMessage
from stallmark.driver.pacing import Arrivals
from stallmark.driver.rows import ErrorRow, RowMerger, Rows, TransactionRow, UserRow
from stallmark.machines import worker
from stallmark.machines.master import MachinesMissing, Master
from stallmark.machines.messages import STALLMARK
from stallmark.record import histogram as hdr
from support import malformed

BANK, MAIL = conductor.user_class(0), conductor.user_class(1)


FACTS = RunFacts("0.1")
LOADS = [LoadSpec(name, "bank", {}, {"transfer": 1}, (1,), seed=1, call_timeout_s=1) for name in ("bank", "mail")]


class Net:
    """A master, and what it delivers and sends; messages of machines are put into its hand."""

    def __init__(self, count: int, within_s: float = 60):
        environment = Environment(user_classes=[BANK, MAIL], dispatcher_class=LoadsDispatcher)
        self.delivered: list[OurMessage] = []
        self.sent: list[tuple[str, OurMessage]] = []
        expected = ExpectedMachines(count, "127.0.0.1", 0, FACTS, within_s)
        self.master = Master(environment, expected, LOADS, self.delivered.append)
        self.master.server.send_to_client = self._send

    def hear(self, id: str, kind: str, data: object = None) -> None:
        """Take a message as it comes over the connection."""
        self.master.handle([id.encode(), Message(kind, data, id).serialize()], "192.0.2.7")

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
    here.connect("late")  # it asks every few seconds
    here.connect("a")
    here.connect("later_0123abc")
    assert here.delivered == [LateMachine(name) for name in ("late", "early", "later")]


def test_one_too_many_at_once_is_said(net):
    here = net(1)
    here.join("a")
    here.join("b")
    here.together()
    assert here.delivered == [LateMachine("b")] and list(here.master.clients) == ["a"]


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


def test_how_many_are_there_is_said_anew_when_one_leaves_and_when_it_comes_back(net, monkeypatch):
    monkeypatch.setattr("stallmark.machines.master.ANSWER_WITHIN_S", 0)
    here = net(2)
    here.join("a")
    waiting = gevent.spawn(here.together)

    def said() -> list[OurMessage]:
        gevent.sleep(0.12)
        return here.delivered

    assert said() == [Waiting(1, 2)]
    here.hear("a", "quit")
    assert said() == [Waiting(1, 2), Waiting(0, 2)]
    here.join("a")
    assert said() == [Waiting(1, 2), Waiting(0, 2), Waiting(1, 2)]
    here.join("b")
    waiting.join()
    assert len(said()) == 3


def test_a_machine_that_was_silent_and_comes_back_is_lost(net):
    """Its users were given up, and Locust would start them once more."""
    here = net(2)
    for id in "ab":
        here.join(id)
    here.together()
    here.master.clients["b"].state = STATE_MISSING
    here.hear("b", "heartbeat", {"state": "running", "current_cpu_usage": 3, "current_memory_usage": 9})
    assert here.delivered == [MachineLost(here.master._machines["b"].number)]


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


def test_a_new_rate_reaches_every_machine_and_every_executor(net):
    here = net(2)
    for id in "ab":
        here.join(id)
    here.together()
    rate = Rate(1, 12.5)
    here.master.set_rate(rate)
    assert here.sent[-2:] == [("a", rate), ("b", rate)]
    told: list[OurMessage] = []
    executors = Executors.__new__(Executors)
    others = SimpleNamespace(places={0})
    executors._executors = [others, *[SimpleNamespace(places={0, 1}, send=told.append)] * 3]
    alone = conductor.Conductor.__new__(conductor.Conductor)
    alone._load = executors
    alone._parent = SimpleNamespace(receive=iter([rate, Quit()]).__next__)
    alone._follow_changes()
    assert told == [rate] * 3


def test_every_machine_knows_how_many_users_the_others_have(net):
    here = net(3)
    for id in "abc":
        here.join(id)
    here.together()
    here.say("a", 2, UsersHere(0, 4))
    here.say("a", 3, UsersHere(1, 9))
    here.say("c", 2, UsersHere(0, 2))
    gevent.sleep(0.1)
    told = [(id, UsersElsewhere(0, users)) for id, users in zip("abc", (2, 6, 4), strict=True)]
    told += [(id, UsersElsewhere(1, users)) for id, users in zip("abc", (0, 9, 9), strict=True)]
    assert here.sent == told  # once, though two machines have told
    here.say("b", 2, UsersHere(0, 1))
    gevent.sleep(0.1)
    assert here.sent[-3:] == [(id, UsersElsewhere(0, users)) for id, users in zip("abc", (3, 6, 5), strict=True)]


def test_a_machine_takes_the_others_to_have_as_many_users_until_it_is_told():
    told: list[OurMessage] = []
    load = msgspec.structs.replace(LOADS[0], arrivals=Arrivals("poisson", rate=100))
    pool = LoadPool(load, 0, [SimpleNamespace(send=told.append)], lambda message: None, ThisMachine(1, 2))
    pool.start_user()
    pool.start_user()
    pool.note_elsewhere(6)
    assert told == [RateShare(0, 0.5), StartUser(0, 0), RateShare(0, 0.5), StartUser(0, 2), RateShare(0, 0.25)]


def of_executor(executor: int, second: int, *latencies_us: int) -> Report:
    """A report of as many transactions, in which one failed before."""
    histogram = hdr.encode(np.array(latencies_us, np.int64))
    counts = len(latencies_us), 0, 0, 1, sum(latencies_us), sum(latencies_us)
    return Report.from_rows(
        Rows(
            [TransactionRow(second, "bank", "transfer", *counts, histogram, histogram)],
            [UserRow(second, "bank", 1, executor, running=0.25, cpu_us=7, lag_max_us=executor)],
            [ErrorRow(second, "bank", "transfer", "deadlock", "1205", 1, 0, f"deadlock {executor}")],
        )
    )


def test_a_load_machine_tells_of_its_executors_together_once_a_second(monkeypatch):
    told: list[OurMessage] = []
    here = worker.LoadWorker.__new__(worker.LoadWorker)
    here._merger, here._users, here._executors = RowMerger(), {}, object()
    here._send_to_master = told.append
    for executor in range(16):
        here._deliver(of_executor(executor, 0, 1000, 2000 + executor))
        here._deliver(of_executor(executor, 1, 500))
        here._deliver(UsersHere(0, executor))
    here._deliver(SessionLost("bank", 3, "gone"))
    assert told == [SessionLost("bank", 3, "gone")]
    monkeypatch.setattr(worker, "TOLD_AFTER_S", -0.95)
    reporting = gevent.spawn(here._report, time.monotonic_ns(), here._executors)
    gevent.sleep(0.2)
    assert sorted(map(type, told[1:]), key=str) == [Report, UsersHere] and UsersHere(0, 15) in told
    [rows] = [message.rows() for message in told if isinstance(message, Report)]
    [row], [error] = rows.transactions, rows.errors
    _, counts = hdr.used(row.latency)
    assert (row.second, row.committed, row.retries, row.latency_us) == (0, 32, 16, 16 * 3000 + 120)
    assert counts.tolist() == [16, *[1] * 16] and row.latency == row.service
    assert [(user.executor, user.running, user.lag_max_us) for user in rows.users] == [(n, 0.25, n) for n in range(16)]
    assert (error.attempts, error.message) == (16, "deadlock 0")
    here._deliver(of_executor(3, 0, 700))  # late, and told as soon as it comes
    gevent.sleep(0.2)
    [row] = told[3].rows().transactions
    assert (row.second, row.committed) == (0, 1)
    here._executors = SimpleNamespace(quit=lambda: here._deliver(of_executor(0, 2, 9)))
    here._end_load()
    assert [row.second for row in told[4].rows().transactions] == [1, 2]
    here._send_rows(math.inf)
    gevent.sleep(0.2)
    assert len(told) == 5 and reporting.ready()


def test_what_an_executor_sends_that_is_no_report_is_left_out_and_told():
    told: list[OurMessage] = []
    here = worker.LoadWorker.__new__(worker.LoadWorker)
    here._merger, here._send_to_master = RowMerger(), told.append
    here._deliver(Report(msgspec.Raw(b"\x91\x91\x01")))
    assert told == [NotUnderstood("an executor process")] and here._merger.pop_before(9) == Rows()


def test_what_is_no_message_is_left_out_and_its_sender_said_once(net):
    here = net(1)
    here.join("a")
    here.together()
    for sent in malformed.frames(7, 300):
        here.master.handle([b"stranger", *sent], "192.0.2.9")
        here.master.handle([b"a", *sent], "192.0.2.7")
    number = here.master._machines["a"].number
    here.master._machines["a"].number = 1
    here.master.handle([b"a", b"\xc1"], "192.0.2.7")
    assert number == 0 and here.delivered == [
        NotUnderstood(one) for one in ("192.0.2.9", "192.0.2.7", "load machine 1")
    ]
    assert list(here.master.clients) == ["a"]
    here.say("a", 2, ExecutorSilent())
    assert here.delivered[-1] == ExecutorSilent(1)


ROW = hdr.encode(np.array([1000], np.int64))
HALF = type(ROW)(ROW.gaps, ROW.counts[:-1])


@pytest.mark.parametrize(
    "message",
    [
        UsersHere(2, 4),
        UsersHere(-1, 4),
        SessionLost("wages", 1, "gone"),
        FinalReport("wages", 0, 0, 0),
        ExecutorDied(["bank", "wages"], 7, 1),
        ExecutorsReady(1, [1]),
        Join("a", FACTS, MachineFacts()),
        Finished(),
        StartUser(0, 1),
        Report.from_rows(Rows([TransactionRow(0, "wages", "transfer", 1, 0, 0, 0, 1, 1, ROW, ROW)])),
        Report.from_rows(Rows(users=[UserRow(0, "bank", 2, 0)])),
        Report(msgspec.Raw(msgspec.msgpack.encode([[[0, "bank", "t", 1, 0, 0, 0, 1, 1, ROW, HALF]], [], [], [], []]))),
        Report(msgspec.Raw(msgspec.msgpack.encode([[], [], [[0, "bank", "t", "odd", "1", 1, 1, ""]], [], []]))),
        Report.from_rows(Rows(users=[UserRow(2**63, "bank", 1, 0)])),
    ],
    ids=str,
)
def test_what_makes_no_sense_in_this_run_is_left_out(message, net):
    here = net(1)
    here.join("a")
    here.together()
    here.master._machines["a"].number = 1
    here.hear("a", STALLMARK, {"body": encode(message), "count": 2})
    assert here.delivered == [NotUnderstood("load machine 1")]
    fine = Report.from_rows(
        Rows(users=[UserRow(0, "bank", 1, 0)], errors=[ErrorRow(0, "mail", "t", "other", "1", 1, 1, "")])
    )
    here.hear("a", STALLMARK, {"body": encode(fine), "count": 2})
    assert here.delivered[1:] == [fine]


def test_what_a_load_machine_says_of_itself_is_understood(net):
    here = net(1)
    here.hear("a", "client_ready", "2.47.0")
    here.hear("a", STALLMARK, {"body": encode(Join("a", FACTS, MachineFacts(cores=2))), "count": 1})
    here.hear("a", "heartbeat", {"state": "running", "current_cpu_usage": 3, "current_memory_usage": 9, "new": 1})
    here.hear("a", "stats", {"user_classes_count": {"Load0": 3}, "user_count": 3, "stats": [], "errors": {}})
    assert here.delivered == [] and here.master.clients["a"].state == "running" and here.master.user_count == 3
    here.hear("a", "quit")
    assert not here.master.clients


def test_a_machine_that_came_and_left_does_not_make_a_later_loss_go_untold(net):
    here = net(1)
    here.join("early")
    here.hear("early", "quit")
    assert not here.master._still_here()
    here.join("a")
    here.together()
    here.hear("a", "quit")
    here.master._report_lost()
    assert list(map(type, here.delivered)) == [MachineLost]


def test_a_worker_leaves_out_what_no_master_sends():
    heard, left_out = [], []
    runner = worker._Runner.__new__(worker._Runner)
    runner._hear, runner._leave_out = heard.append, lambda: left_out.append(True)
    runner.environment, runner.client_id, runner.greenlet = Environment(user_classes=[BANK]), "me", Group()
    sent = list(malformed.frames(8, 300))
    for one in sent:
        runner.handle(one)
    unknown = {
        "timestamp": 1,
        "user_classes_count": {"Load7": 1},
        "host": None,
        "stop_timeout": 0,
        "parsed_options": {},
    }
    runner.handle([Message("spawn", unknown, "me").serialize()])
    runner.handle([Message(STALLMARK, {"body": encode(Join("a", FACTS, MachineFacts()))}, "me").serialize()])
    assert len(left_out) == len(sent) + 2 and heard == []
    runner.handle([Message(STALLMARK, {"body": encode(Go(5))}, "me").serialize()])
    assert heard == [Go(5)]
