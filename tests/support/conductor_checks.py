"""Checks of the conductor, run by test_conductor.py in a process of their own: Locust patches its process."""

from stallmark.driver import locust_bridge as conductor  # isort: skip  (patches the process: before everything else)

import random
import time
from types import SimpleNamespace

import numpy as np
import pytest
from gevent import monkey
from locust.env import Environment
from locust.rpc import Message
from locust.stats import StatsEntry

from stallmark.driver.cluster.join import STALLMARK, ExpectedMachines, RunFacts
from stallmark.driver.cluster.master import MachinesMissing, Master
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


def row(latency_us: list[int], failed: int = 0, rolled_back: int = 0, name: str = "transfer") -> TransactionRow:
    histogram, total = hdr.encode(np.array(latency_us, np.int64)), sum(latency_us)
    committed = len(latency_us) - rolled_back
    return TransactionRow(0, name, committed, rolled_back, failed, 0, total, total, histogram, histogram)


def test_locusts_statistics_are_those_of_the_same_requests_logged_one_by_one():
    rng = random.Random(1)
    fed, logged = Environment(), Environment()
    for name, mean_ms in [("transfer", 3), ("order", 250), ("delivery", 12_000)]:
        for _ in range(4):
            times = [max(1, int(rng.expovariate(1 / (mean_ms * 1000)))) for _ in range(500)]
            conductor.feed(fed, row(times, failed=3, rolled_back=2, name=name))
            for us in times:
                logged.stats.log_request("SQL", name, us / 1000, 0)
            for _ in range(3):
                logged.stats.log_request("SQL", name, 0, 0)
                logged.stats.log_error("SQL", name, "given up")
    for pick in (
        lambda s: s.total, lambda s: s.get("transfer", "SQL"), lambda s: s.get("delivery", "SQL"),
    ):  # fmt: skip
        mine: StatsEntry = pick(fed.stats)
        theirs: StatsEntry = pick(logged.stats)
        assert mine.num_requests == theirs.num_requests
        assert mine.num_failures == theirs.num_failures
        assert mine.total_response_time == pytest.approx(theirs.total_response_time)
        assert sum(mine.num_reqs_per_sec.values()) == sum(theirs.num_reqs_per_sec.values())
        for percent in (0.5, 0.9, 0.99):
            # Locust counts a given-up request as one of 0 ms here; ours has no latency: compare within a bucket.
            assert mine.get_response_time_percentile(percent) == pytest.approx(
                theirs.get_response_time_percentile(percent), rel=0.06, abs=1
            )


def test_percentiles_are_exactly_what_was_fed():
    environment = Environment()
    conductor.feed(environment, row([us * 1000 for us in range(1, 101)]))
    entry = environment.stats.get("transfer", "SQL")
    assert entry.num_requests == 100
    # Locust counts from the top: its median of 1 … 100 is 51.
    assert [entry.get_response_time_percentile(p) for p in (0.5, 0.9, 0.95, 1.0)] == [51, 91, 96, 100]
    assert (entry.min_response_time, entry.max_response_time) == (1, 100)
    assert environment.stats.total.get_response_time_percentile(0.5) == 51


def test_only_failures_can_be_fed_too():
    environment = Environment()
    conductor.feed(environment, row([], failed=5))
    entry = environment.stats.get("transfer", "SQL")
    assert (entry.num_requests, entry.num_failures, entry.fail_ratio) == (5, 5, 1.0)
    conductor.feed(environment, row([2000]))
    assert (entry.num_requests, entry.min_response_time) == (6, 2)


def test_counts_by_the_second_are_forgotten_and_totals_kept(monkeypatch):
    environment, seconds = Environment(), 3 * conductor.KEPT_S
    for second in range(seconds):
        monkeypatch.setattr(conductor.time, "time", lambda second=second: 1_000_000.0 + second)
        conductor.feed(environment, row([1000], failed=1))
    for entry in (environment.stats.total, environment.stats.get("transfer", "SQL")):
        assert len(entry.num_reqs_per_sec) == len(entry.num_fail_per_sec) == conductor.KEPT_S + 1
        assert (entry.num_requests, entry.num_failures) == (2 * seconds, seconds)


@pytest.mark.parametrize("milliseconds", [0.4, 3.6, 99.4, 123, 999, 1234, 45_678])
def test_milliseconds_are_rounded_as_locust_does(milliseconds):
    logged, fed = Environment(), Environment()
    logged.stats.log_request("SQL", "transfer", milliseconds, 0)
    conductor.feed(fed, row([round(milliseconds * 1000)]))
    assert fed.stats.total.response_times == logged.stats.total.response_times


@pytest.mark.parametrize("web", [True, False], ids=["with its page", "without"])
def test_reports_are_passed_on_as_they_came_and_read_for_the_page_alone(web):
    sent: list[OurMessage] = []
    here = conductor.Conductor.__new__(conductor.Conductor)
    here._parent, here._environment, here._web = SimpleNamespace(send=sent.append), Environment(), web or None
    report = decode(encode(Report.of(Rows([row([1000])]))))
    here._deliver(report)
    assert sent == [report] and sent[0].rows() == Rows([row([1000])])
    assert here._environment.stats.total.num_requests == web


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
