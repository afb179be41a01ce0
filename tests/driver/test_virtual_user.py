"""One virtual user against a server that does as it is told: retries, reconnects, stalls, and full accounting."""

import itertools
import random
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stallmark.driver import client
from stallmark.driver import transaction_io as own_io
from stallmark.driver.client import COMMITTED, GIVEN_UP, MOST_RECONNECTS, MOST_RETRIES, ROLLED_BACK, Failure
from stallmark.driver.deck import Dealer
from stallmark.driver.pacing import Arrivals, OpenLoop, Pacing, ThinkTime
from stallmark.driver.virtual_user import VirtualUser
from stallmark.engines.base import OwnIO
from stallmark.errors import CallFailed, ErrorClass
from stallmark.transactions.workload import Outcome, Transaction, Workload

CALL_TIMEOUT_S = 12.5
LOST = (ErrorClass.CONNECTION_LOST, ErrorClass.UNKNOWN_OUTCOME)


class Sample(NamedTuple):
    """What a user reports, in its order."""

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
    def call(self, frame: str, parameters: int, dialect: str) -> str:
        return f"{frame} of {parameters} in {dialect}"


WORKLOAD = Payments("payments", 1, "", "", {Pay: 1}, (), "")


@dataclass
class Server:
    """Answers each call with the next of `answers`: an outcome, an error class, or something to do first.

    Once they are used up it tells the user to stop, and commits the calls that still come.
    """

    answers: list[Outcome | ErrorClass | Callable[[], Outcome] | Exception]
    refuses: int = 0  # how many times it takes no new session
    dialect = "spoken"
    calls: list[tuple] = field(default_factory=list)
    sessions: int = 0
    closed: int = 0
    prepared: list[tuple[str, str]] = field(default_factory=list)
    user: VirtualUser | None = None
    is_lost = False
    loses: tuple[ErrorClass, ...] = (ErrorClass.CONNECTION_LOST, ErrorClass.UNKNOWN_OUTCOME)
    """With which errors the session is lost."""
    tells_own_io: bool = True
    refuses_own_io: bool = False
    looks: list[tuple[int, int]] = field(default_factory=list)
    own_ios: list[tuple] = field(default_factory=list)
    """What was reported."""

    def session(self, call_timeout_s: float) -> "Server":
        assert call_timeout_s == CALL_TIMEOUT_S
        self.sessions += 1
        if self.sessions > 1 and self.refuses:
            self.refuses -= 1
            raise CallFailed(ErrorClass.CONNECTION_LOST, "08001", "refused")
        self.is_lost = False
        return self

    def prepare(self, name: str, sql: str) -> None:
        self.prepared.append((name, sql))

    def call(self, name: str, inputs: tuple) -> Outcome:
        self.calls.append(inputs)
        answer = self.answers.pop(0) if self.answers else Outcome.COMMITTED
        if not self.answers and self.user:
            self.user.stop()
        if isinstance(answer, ErrorClass):
            self.is_lost = answer in self.loses
            raise CallFailed(answer, "XXXXX", str(answer))
        if isinstance(answer, Exception):
            raise answer
        return answer() if callable(answer) else answer

    def own_io(self) -> OwnIO | None:
        begin = time.monotonic_ns()
        if self.refuses_own_io:
            raise CallFailed(ErrorClass.OTHER, "42501", "refused")
        self.looks.append((begin, time.monotonic_ns()))
        done = len(self.calls)
        return OwnIO(done, 8192 * done, 3, None, 0) if self.tells_own_io else None

    def close(self) -> None:
        self.closed += 1


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    monkeypatch.setattr(client, "RETRY_PAUSE_S", 1e-6)
    monkeypatch.setattr(client, "RECONNECT_PAUSE_S", 1e-6)


def make(server: Server, pacing: Pacing | None = None) -> tuple[VirtualUser, list[Sample], list[Failure]]:
    samples: list[Sample] = []
    failures: list[Failure] = []
    rng = random.Random(1)
    server.user = VirtualUser(
        0, pacing or ThinkTime(Arrivals(), rng), Dealer(WORKLOAD.deck, rng).next_card,
        server, WORKLOAD, {}, CALL_TIMEOUT_S, rng, lambda sample: samples.append(Sample(*sample)), failures.append,
        server.own_ios.append,
    )  # type: ignore[arg-type]  # fmt: skip
    return server.user, samples, failures


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
    assert sample.started <= failures[0].at <= failures[1].at <= sample.ended


def test_retries_are_bounded_and_then_it_is_given_up():
    server = Server([ErrorClass.DEADLOCK] * (MOST_RETRIES + 1) + [Outcome.COMMITTED])
    samples, failures, _ = run(server)
    assert outcomes(samples) == [GIVEN_UP, COMMITTED]
    assert samples[0].retries == MOST_RETRIES
    assert [failure.given_up for failure in failures] == [False] * MOST_RETRIES + [True]
    assert len(set(server.calls[: MOST_RETRIES + 1])) == 1
    assert server.calls[-1] != server.calls[0]


def test_the_pause_before_a_retry_doubles_and_has_jitter(monkeypatch):
    monkeypatch.setattr(client, "RETRY_PAUSE_S", 0.002)
    pauses: list[float] = []
    server = Server([ErrorClass.DEADLOCK] * 5 + [Outcome.COMMITTED])
    user, _, _ = make(server)
    monkeypatch.setattr(user._stopping, "wait", pauses.append)
    user.run()
    assert len(pauses) == 5
    shares = [pause / (0.002 * 2**attempt) for attempt, pause in enumerate(pauses)]
    assert all(0 <= share < 1 for share in shares) and len(set(shares)) == 5


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


@settings(max_examples=60, deadline=None)
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


def test_a_stall_is_in_the_latency_of_everything_that_should_have_started_meanwhile():
    """Coordinated omission: a closed view of the same run would show one slow transaction and the rest fast."""
    over: list[int] = []

    def stall() -> Outcome:
        time.sleep(0.2)
        over.append(time.monotonic_ns())
        return Outcome.COMMITTED

    gap_ns = 1_000_000
    queue = OpenLoop(Arrivals("fixed", rate=1000), random.Random(1))
    queue.take_share(1, time.monotonic_ns())
    samples, _, _ = run(Server([stall] + [Outcome.COMMITTED] * 250), queue)
    assert len(samples) == 251
    for before, after in itertools.pairwise(samples):
        assert after.scheduled - before.scheduled == pytest.approx(gap_ns, abs=1)
    [end] = over
    waited = [sample for sample in samples[1:] if sample.scheduled < end]
    assert len(waited) >= 198  # a stall of 200 ms at one arrival per ms
    for sample in waited:
        assert sample.started >= end
        assert sample.ended - sample.scheduled >= end - sample.scheduled
    total_latency = sum(sample.ended - sample.scheduled for sample in waited)
    assert total_latency >= 198 * 199 / 2 * gap_ns  # the triangle under the stall, which service times lack


def test_stopped_while_it_waits_for_its_turn_it_ends_without_a_transaction():
    asked = threading.Event()
    given_back = []

    class Later:
        closed = False

        def next_start(self, ended_ns: int) -> int:
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
    monkeypatch.setattr(own_io, "RUN", 2)
    monkeypatch.setattr(own_io.OwnIOSampler, "pause", lambda looks: 1)


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
