"""One virtual user against a server that does as it is told: retries, reconnects, stalls, and full accounting."""

import itertools
import math
import random
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, ClassVar, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.scripted_server import CALL_TIMEOUT_S, Server, no_pauses
from support.simulated_time import Time
from support.waiting import eventually

from stallmark.driver import client, pacing, retry
from stallmark.driver.client import COMMITTED, GIVEN_UP, ROLLED_BACK, VirtualUser
from stallmark.driver.pacing import Arrivals, Dealer, OpenLoop, Pacing, ThinkTime
from stallmark.driver.retry import LOGINS_AT_ONCE, MOST_RECONNECTS, MOST_RETRIES, Failure
from stallmark.errors import ErrorClass
from stallmark.transactions.workload import Outcome, Transaction, UserLoad, Workload

__all__ = ["no_pauses"]

LOST = (ErrorClass.CONNECTION_LOST, ErrorClass.UNKNOWN_OUTCOME)


class Sample(NamedTuple):
    """A user's reports, in their order."""

    transaction: int
    scheduled: int
    started: int
    ended: int
    free_since: int
    outcome: int
    retries: int


class Pay(Transaction):
    name = "pay"
    frames: ClassVar = {"pay": 1}

    def inputs(self, rng: random.Random) -> tuple:
        return (rng.randrange(10**9),)

    def execute(self, session: Any, inputs: tuple) -> Outcome:
        return session.call("pay", inputs)


@dataclass(frozen=True)
class Payments(Workload):
    def call(self, kind: type[Transaction], frame: str, dialect: str) -> str:
        return f"{frame} of {kind.frames[frame]} in {dialect}"


WORKLOAD = Payments("payments", 1, "", "", "", users=UserLoad({Pay: 1}))


def make(server: Server, pacing: Pacing | None = None) -> tuple[VirtualUser, list[Sample], list[Failure]]:
    samples: list[Sample] = []
    failures: list[Failure] = []
    rng = random.Random(1)
    server.user = VirtualUser(
        0, pacing or ThinkTime(Arrivals(), rng), Dealer(WORKLOAD.users.deck, rng).next_card,
        server, WORKLOAD, {}, CALL_TIMEOUT_S, rng, lambda sample: samples.append(Sample(*sample)), failures.append,
        server.own_ios.append, lambda client: None,
    )  # type: ignore[arg-type]  # fmt: skip
    return server.user, samples, failures


def test_so_many_log_in_at_once_and_one_who_is_stopped_before_does_not():
    free, under_way, most = threading.Event(), [], []

    class Slow(Server):
        def prepare(self, name: str, sql: str) -> None:
            under_way.append(name)
            most.append(len(under_way))
            free.wait(30)
            under_way.pop()

    users = [make(Slow([]))[0] for _ in range(LOGINS_AT_ONCE + 5)]
    for user in users:
        user.start()
    eventually(lambda: len(under_way) == LOGINS_AT_ONCE)
    users[-1].stop()
    free.set()
    for user in users:
        user.join(30)
    assert max(most) == LOGINS_AT_ONCE and [user.is_connected for user in users] == [True] * (LOGINS_AT_ONCE + 4) + [
        False
    ]


def test_a_user_is_connected_when_it_can_work_and_not_while_it_logs_in():
    login = threading.Event()

    class Slow(Server):
        def prepare(self, name: str, sql: str) -> None:
            login.wait(30)

    user, _, _ = make(slow := Slow([]))
    user.start()
    assert not user.is_connected
    login.set()
    user.join(30)
    assert user.is_connected and slow.calls


def run(server: Server, pacing: Pacing | None = None) -> tuple[list[Sample], list[Failure], VirtualUser]:
    user, samples, failures = make(server, pacing)
    user.start()
    user.join(60)
    assert not user.is_alive()
    return samples, failures, user


def outcomes(samples: Iterable[Sample]) -> list[int]:
    return [sample.outcome for sample in samples]


def test_transactions_run_one_after_the_other_on_prepared_statements():
    server = Server([Outcome.COMMITTED, Outcome.ROLLED_BACK, Outcome.COMMITTED])
    samples, failures, user = run(server)
    assert outcomes(samples) == [COMMITTED, ROLLED_BACK, COMMITTED]
    assert failures == [] and user.lost is None
    assert server.prepared == [("pay", "pay of 1 in spoken")]
    assert (server.sessions, server.closed) == (1, 1)
    for before, after in itertools.pairwise(samples):
        assert before.free_since <= before.scheduled <= before.started <= before.ended <= after.free_since


@pytest.mark.parametrize("kind", [kind for kind in ErrorClass if kind.retryable])
def test_a_transaction_is_tried_again_with_the_same_inputs_and_its_latency_includes_that(kind):
    server = Server([kind, kind, Outcome.COMMITTED])
    [sample], failures, _ = run(server)
    assert (sample.outcome, sample.retries) == (COMMITTED, 2)
    assert len(set(server.calls)) == 1 and len(server.calls) == 3
    assert [failure.given_up for failure in failures] == [False, False]
    assert sample.started <= failures[0].failed_ns <= failures[1].failed_ns <= sample.ended


def test_retries_are_bounded_and_then_it_is_given_up():
    server = Server([ErrorClass.DEADLOCK] * (MOST_RETRIES + 1) + [Outcome.COMMITTED])
    samples, failures, _ = run(server)
    assert outcomes(samples) == [GIVEN_UP, COMMITTED]
    assert samples[0].retries == MOST_RETRIES
    assert [failure.given_up for failure in failures] == [False] * MOST_RETRIES + [True]
    assert len(set(server.calls[: MOST_RETRIES + 1])) == 1
    assert server.calls[-1] != server.calls[0]


def test_the_pause_before_a_retry_doubles_and_has_jitter(monkeypatch):
    monkeypatch.setattr(retry, "RETRY_PAUSE_S", 0.002)
    pauses: list[float] = []
    user, _, _ = make(Server([ErrorClass.DEADLOCK] * 4 + [Outcome.COMMITTED]))
    draws = [0.5, 0.25, 0.75, 0.125]
    monkeypatch.setattr(user._retrying, "_rng", SimpleNamespace(random=iter(draws).__next__))
    monkeypatch.setattr(user._stopping, "wait", pauses.append)
    user.run()
    assert pauses == [0.002 * 2**attempt * draw for attempt, draw in enumerate(draws)]


@pytest.mark.parametrize("kind", [kind for kind in ErrorClass if not kind.retryable])
def test_what_is_not_retryable_is_given_up_at_once(kind):
    """Above all an unknown outcome: trying again might do it twice."""
    server = Server([kind, Outcome.COMMITTED])
    samples, [failure], _ = run(server)
    assert outcomes(samples) == [GIVEN_UP, COMMITTED]
    assert failure.given_up and failure.error.kind is kind
    assert len(server.calls) == 2 and server.calls[0] != server.calls[1]
    assert server.sessions == (2 if kind in LOST else 1)


def test_an_unknown_outcome_on_a_session_that_goes_on_needs_no_other():
    """As after a call that was given up for its time."""
    server = Server([ErrorClass.UNKNOWN_OUTCOME, Outcome.COMMITTED], loses=())
    samples, _, _ = run(server)
    assert outcomes(samples) == [GIVEN_UP, COMMITTED] and server.sessions == 1


def test_after_a_lost_connection_it_comes_back_as_often_as_needed():
    server = Server([ErrorClass.CONNECTION_LOST, Outcome.COMMITTED], refuses=MOST_RECONNECTS - 1)
    samples, failures, user = run(server)
    assert outcomes(samples) == [GIVEN_UP, COMMITTED]
    assert user.lost is None and len(failures) == 1
    assert server.sessions == 1 + MOST_RECONNECTS
    assert len(server.prepared) == 2


def test_a_server_that_stays_away_ends_the_user_who_says_why():
    server = Server([ErrorClass.CONNECTION_LOST, Outcome.COMMITTED], refuses=MOST_RECONNECTS)
    [sample], [failure], user = run(server)
    assert failure.given_up and sample.outcome == GIVEN_UP
    assert user.lost is not None and "refused" in str(user.lost)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_fault_of_the_driver_is_no_user_who_quietly_did_less():
    _, _, user = run(Server([Outcome.COMMITTED, ZeroDivisionError("a fault of ours"), Outcome.COMMITTED]))
    assert user.lost is not None and "a fault of ours" in str(user.lost)


def test_told_to_stop_it_finishes_what_is_under_way_and_no_retry():
    server = Server([ErrorClass.DEADLOCK])
    [sample], [failure], _ = run(server)
    assert sample.outcome == GIVEN_UP and failure.given_up and len(server.calls) == 1


@given(
    answers=st.lists(st.sampled_from([Outcome.COMMITTED, Outcome.ROLLED_BACK, *ErrorClass]), min_size=1, max_size=40)
)
def test_samples_and_failures_account_for_every_call(answers):
    server = Server(list(answers))
    samples, failures, user = run(server)
    done = [sample for sample in samples if sample.outcome != GIVEN_UP]
    given_up = [sample for sample in samples if sample.outcome == GIVEN_UP]
    assert user.lost is None
    assert len(server.calls) == len(answers) == len(done) + len(failures)
    assert len(given_up) == sum(failure.given_up for failure in failures)
    assert sum(sample.retries for sample in samples) == sum(not failure.given_up for failure in failures)
    codes = {Outcome.COMMITTED: COMMITTED, Outcome.ROLLED_BACK: ROLLED_BACK}
    assert outcomes(done) == [codes[answer] for answer in answers if isinstance(answer, Outcome)]
    assert [failure.error.kind for failure in failures] == [a for a in answers if isinstance(a, ErrorClass)]


def test_a_stall_is_in_the_latency_of_everything_that_should_have_started_meanwhile(monkeypatch):
    """Coordinated omission: a closed view of the same run would show one slow transaction and the rest fast."""
    simulated = Time(until=math.inf)
    for module in (client, pacing):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic_ns=lambda: round(simulated.clock() * 1e9)))
    queue = OpenLoop(Arrivals("fixed", rate=1000), random.Random(1))
    queue.set_share(1, 0)
    user, samples, _ = make(Server([lambda: simulated.sleep(0.2)] + [Outcome.COMMITTED] * 250), queue)
    monkeypatch.setattr(user._stopping, "wait", simulated.wait)
    monkeypatch.setattr(user.awake, "wait", simulated.wait)
    user.run()
    ms = 1_000_000
    scheduled = [samples[0].scheduled + number * ms for number in range(251)]
    assert [sample.scheduled for sample in samples] == pytest.approx(scheduled, abs=2)
    # The triangle under the stall: service times lack it.
    waited = [max(200 - number, 0) * ms for number in range(251)]
    assert [sample.ended - sample.scheduled for sample in samples] == pytest.approx(waited, abs=2)
    assert [sample.ended - sample.started for sample in samples] == pytest.approx([200 * ms] + [0] * 250, abs=2)


def test_stopped_while_it_waits_for_its_turn_it_ends_without_a_transaction():
    asked = threading.Event()
    given_back = []

    class Later:
        closed = False

        def next_start(self, ended_ns: int, user: VirtualUser) -> int:
            asked.set()
            return ended_ns + 3_600 * 10**9

        def give_back(self, scheduled_ns: int) -> None:
            given_back.append(scheduled_ns)

    server = Server([])
    user, samples, failures = make(server, Later())
    user.start()
    assert asked.wait(60)
    user.stop()
    user.join(60)
    assert not user.is_alive() and samples == [] and failures == [] and server.calls == []
    assert len(given_back) == 1


@pytest.fixture
def looking_often(monkeypatch):
    monkeypatch.setattr(client, "RUN", 2)
    monkeypatch.setattr(client.OwnIOSampler, "pause", lambda looks: 1)


def test_looks_are_in_no_time_that_is_measured(looking_often):
    server = Server([Outcome.COMMITTED] * 40)
    samples, failures, _ = run(server)
    assert len(server.looks) >= 38 and not failures
    for begin, end in server.looks:
        for before, after in itertools.pairwise(samples):
            assert not (begin < after.ended and end > after.started)
            if before.ended < begin < after.ended:  # neither busy nor late for it
                assert end <= after.free_since <= after.scheduled <= after.started
    looked_at = [sample.ended for number, sample in enumerate(samples) if number % 3]  # two after each that is not
    assert server.own_ios == [(0, ended, 1, 8192, 0, None, 0) for ended in looked_at]


@pytest.mark.parametrize("says", [{"tells_own_io": False}, {"refuses_own_io": True}])
def test_a_server_that_does_not_say_what_it_read_disturbs_nobody(looking_often, says):
    server = Server([Outcome.COMMITTED] * 20, **says)
    samples, failures, user = run(server)
    assert len(samples) == 20 and not failures and user.lost is None
    assert server.own_ios == [] and len(server.looks) == ("tells_own_io" in says)


def test_what_a_transaction_read_that_was_given_up_is_not_told(looking_often):
    server = Server([Outcome.COMMITTED, ErrorClass.OTHER, Outcome.COMMITTED, Outcome.COMMITTED])
    samples, _, _ = run(server)
    assert server.own_ios == [(0, samples[2].ended, 1, 8192, 0, None, 0)]
