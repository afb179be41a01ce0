"""Load that no virtual user starts: due in order, executed by clients of their own, late where these do not keep up."""

import random
import threading
import time
import tracemalloc
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.scripted_server import CALL_TIMEOUT_S, Server, no_pauses
from support.waiting import eventually

from stallmark.driver import retry
from stallmark.driver.client import COMMITTED, GIVEN_UP, BackgroundSession, DeferredQueue, Task
from stallmark.driver.retry import Failure
from stallmark.driver.tally import SAMPLE, SECOND_NS, as_table, deferred_rows
from stallmark.errors import ErrorClass
from stallmark.transactions.workload import Background, Outcome, Transaction, UserLoad, Workload

__all__ = ["no_pauses"]

TRANSACTION, SCHEDULED, STARTED, ENDED, FREE, OUTCOME, RETRIES = range(len(SAMPLE.names))
LONG_S = 3_600


class Buy(Transaction):
    name = "buy"
    frames: ClassVar = {}

    def inputs(self, rng: random.Random) -> tuple:
        raise AssertionError("nobody buys by himself here")

    def execute(self, session: Any, inputs: tuple) -> Outcome:
        raise AssertionError("no background session executes what users do")


class Deliver(Transaction):
    name = "deliver"
    frames: ClassVar = {"deliver": 1}

    def inputs(self, rng: random.Random) -> tuple:
        raise AssertionError("it comes with its inputs")

    def execute(self, session: Any, inputs: tuple) -> Outcome:
        return session.call("deliver", inputs)


class Sweep(Transaction):
    name = "sweep"
    frames: ClassVar = {"sweep": 1}

    def inputs(self, rng: random.Random) -> tuple:
        return (rng.random(),)

    def execute(self, session: Any, inputs: tuple) -> Outcome:
        return session.call("sweep", inputs)


WORKLOAD = Workload(
    "shop",
    1,
    "shop",
    "",
    "stallmark.transactions.bank",
    users=UserLoad({Buy: 1}),
    background=Background({Deliver: (Buy, 1.0)}, {Sweep: 60.0}),
)


@pytest.fixture
def deferred() -> Iterator[DeferredQueue]:
    deferred = DeferredQueue()
    yield deferred
    deferred.close(0)


class Attended:
    """One background session at work, and what it reports."""

    def __init__(self, deferred: DeferredQueue, server: Server):
        self.samples: list[tuple[int, ...]] = []
        self.failures: list[Failure] = []
        self.deferred = deferred
        self.background_session = BackgroundSession(
            0, deferred, server, WORKLOAD, {}, CALL_TIMEOUT_S, random.Random(1), self.samples.append,
            self.failures.append, server.own_ios.append, lambda client: None,
        )  # type: ignore[arg-type]  # fmt: skip
        self.background_session.start()

    def until(self, samples: int) -> list[tuple[int, ...]]:
        eventually(lambda: len(self.samples) >= samples)
        return self.samples

    def end(self) -> None:
        self.deferred.close(1)
        self.background_session.stop()
        self.background_session.join(60)
        assert not self.background_session.is_alive()


def begun(samples: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Samples of transactions that were not missed."""
    return [sample for sample in samples if sample[STARTED] < sample[ENDED]]


def now() -> int:
    return time.monotonic_ns()


# The deferred


@given(due=st.lists(st.integers(-5_000_000, 5_000_000), min_size=1, max_size=30))
def test_what_is_due_comes_in_its_order_and_not_before(due):
    deferred = DeferredQueue()
    base = now()
    for number, offset in enumerate(due):
        deferred.add(Task(base + offset, Deliver, (number,)))
    taken, at = [], []
    for _ in due:
        taken.append(deferred.next_due())
        at.append(now())
    deferred.close(0)
    assert sorted(task.inputs[0] for task in taken) == list(range(len(due)))
    assert all(moment >= task.due_ns for moment, task in zip(at, taken, strict=True))
    # Those still to come when all were known: by their time, and at once in the order they were added.
    known = now() - base
    later = [task for task in taken if task.due_ns - base > known]
    assert later == sorted(later, key=lambda task: (task.due_ns, task.inputs))


def test_of_those_due_at_once_the_first_added_comes_first(deferred):
    due = now() + 50_000_000
    for number in range(20):
        deferred.add(Task(due, Deliver, (number,)))
    assert [deferred.next_due().inputs[0] for _ in range(20)] == list(range(20))


def test_one_that_is_due_earlier_is_not_kept_waiting_by_a_later_one(deferred):
    deferred.post(Deliver, ("later",), LONG_S)
    deferred.post(Deliver, ("now",), 0.0)
    assert deferred.next_due().inputs == ("now",)


def test_how_many_are_due_and_not_taken(deferred):
    for _ in range(3):
        deferred.post(Deliver, (), 0.0)
    deferred.post(Deliver, (), LONG_S)
    eventually(lambda: deferred.waiting() == 3)
    deferred.next_due()
    assert deferred.waiting() == 2


def test_closed_it_lets_go_who_waits_and_counts_what_nobody_will_execute(deferred):
    taken: list[Task | None] = []
    waiting = [threading.Thread(target=lambda: taken.append(deferred.next_due())) for _ in range(4)]
    for thread in waiting:
        thread.start()
    deferred.post(Deliver, (), LONG_S)
    deferred.add(Task(now() + LONG_S * SECOND_NS, Sweep, every_s=60.0))  # would have come again and again
    deferred.close(len(waiting))
    for thread in waiting:
        thread.join(60)
    assert taken == [None] * 4
    deferred.post(Deliver, (), 0.0)  # a user's last transaction gives rise to one more
    assert deferred.left == 2
    eventually(lambda: not deferred.is_alive())


def test_closed_while_others_take_it_neither_hangs_nor_loses_count():
    """All that was due is taken by a background session or counted, each once, and nobody waits for ever."""
    for _ in range(30):
        deferred, tasks = DeferredQueue(), 400
        taken = [0] * 4

        def take(index: int, deferred: DeferredQueue = deferred, taken: list[int] = taken) -> None:
            while deferred.next_due():
                taken[index] += 1

        for _ in range(tasks):
            deferred.post(Deliver, (), 0.0)
        threads = [threading.Thread(target=take, args=(index,)) for index in range(4)]
        for thread in threads:
            thread.start()
        closing = threading.Thread(target=deferred.close, args=(4,), daemon=True)
        closing.start()
        for thread in [*threads, closing]:
            thread.join(60)
            assert not thread.is_alive()
        assert sum(taken) + deferred.left == tasks


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_it_says_so_when_it_passes_on_nothing_any_more(deferred, monkeypatch):
    assert deferred.is_alive()
    monkeypatch.setattr("stallmark.driver.client.heapq.heappop", lambda heap: 1 / 0)
    deferred.post(Deliver, (), 0.0)
    eventually(lambda: not deferred.is_alive())


# The background_session


def test_it_executes_what_is_due_with_its_inputs_on_statements_of_its_own(deferred):
    server = Server()
    attended = Attended(deferred, server)
    deferred.post(Deliver, (7,), 0.0)
    [sample] = attended.until(1)
    attended.end()
    assert server.calls == [("deliver", (7,))]
    assert server.prepared == [(name, f"SELECT * FROM shop.{name}($1)") for name in ("deliver", "sweep")]
    assert (sample[TRANSACTION], sample[OUTCOME], sample[RETRIES]) == (1, COMMITTED, 0)
    assert sample[SCHEDULED] <= sample[STARTED] <= sample[ENDED]
    assert attended.failures == [] and attended.background_session.lost is None and server.closed == 1


def test_what_is_late_is_counted_from_when_it_was_due(deferred):
    """A background session that is busy keeps the next one waiting: that is the market's lag, not a shorter latency."""
    over: list[int] = []

    def stall() -> None:
        eventually(lambda: deferred.waiting() == 5)
        over.append(now())

    attended = Attended(deferred, Server([stall]))
    start = now()
    for number in range(6):
        deferred.post(Deliver, (number,), 0.0)
    samples = attended.until(6)
    attended.end()
    assert all(sample[SCHEDULED] < over[0] <= sample[STARTED] for sample in samples[1:])
    rows = deferred_rows(as_table(samples), "bank", {}, start)
    assert sum(row.taken for row in rows) == 6
    late = [(sample[STARTED] - sample[SCHEDULED]) // 1000 for sample in samples]
    assert sum(row.late_us for row in rows) == sum(late)
    assert max(row.late_max_us for row in rows) == max(late)


def test_what_a_timer_brings_comes_again_without_drifting(deferred):
    attended = Attended(deferred, Server([ErrorClass.OTHER]))  # though it fails
    first, every_ns = now(), 3_000_000
    deferred.add(Task(first, Sweep, every_s=every_ns / 1e9))
    eventually(lambda: len(begun(attended.samples)) >= 5)
    samples = begun(attended.samples)[:5]
    attended.end()
    numbers = [(sample[SCHEDULED] - first) / every_ns for sample in samples]
    assert numbers[0] == 0 and numbers == sorted({int(number) for number in numbers})
    assert [sample[OUTCOME] for sample in samples] == [GIVEN_UP] + [COMMITTED] * 4
    assert {sample[TRANSACTION] for sample in samples} == {2}
    assert deferred.left == 0


def test_arrivals_at_a_rate_come_whether_earlier_ones_have_ended_or_not(deferred):
    """A session that is busy does not thin out a rate: those that are over wait, and are late."""

    def stall() -> None:
        eventually(lambda: deferred.waiting() >= 5)

    attended = Attended(deferred, Server([stall]))
    first, every_ns = now(), 3_000_000
    deferred.add(Task(first, Sweep, every_s=every_ns / 1e9, is_arrival=True))
    samples = attended.until(12)[:12]
    attended.end()
    assert [sample[SCHEDULED] for sample in samples] == [first + number * every_ns for number in range(12)]
    assert samples[1][STARTED] - samples[1][SCHEDULED] > 3 * every_ns


def test_arrivals_that_are_due_and_not_begun_are_counted_and_those_to_come_are_not(deferred):
    deferred.add(Task(now() - 1_000_000, Sweep, every_s=0.0002, is_arrival=True))
    deferred.add(Task(now() + LONG_S * SECOND_NS, Sweep, every_s=60.0, is_arrival=True))
    eventually(lambda: deferred.waiting() >= 5)
    deferred.rest(True)
    due = deferred.waiting()
    deferred.close(0)
    assert due <= deferred.left <= due + 2


@pytest.mark.thorough
def test_a_server_that_hangs_costs_no_memory(deferred):
    tracemalloc.start()
    try:
        first = now() - 60 * SECOND_NS
        deferred.add(Task(first, Sweep, every_s=0.0002, is_arrival=True))
        eventually(lambda: deferred.waiting() >= 300_000)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()
    began = now()
    taken = [deferred.next_due() for _ in range(1_000)]
    assert {task.due_ns - before.due_ns for before, task in pairwise(taken)} == {200_000}, "in order, none left out"
    late = deferred.pop_arrivals_before(began)
    assert len(late) + 1_000 == pytest.approx((began - first) / 200_000, abs=2)
    assert max(task.due_ns for task in late) < began
    assert min(task.due_ns for task in late) == taken[-1].due_ns + 200_000
    began = now()
    deferred.pop_arrivals_before(began)
    assert deferred.waiting() <= (now() - began) / 200_000 + 2


def test_arrivals_of_a_slow_server_are_each_taken_given_up_or_left():
    deferred, every_ns = DeferredQueue(), 50_000
    first = now() - 2_000 * every_ns
    for offset in range(2):
        deferred.add(Task(first + offset * every_ns // 2, Sweep, every_s=every_ns / 1e9, is_arrival=True))
    taken: list[list[int]] = [[] for _ in range(3)]

    def take(mine: list[int]) -> None:
        while task := deferred.next_due():
            mine.append(task.due_ns)
            time.sleep(0.0003)

    threads = [threading.Thread(target=take, args=(mine,)) for mine in taken]
    for thread in threads:
        thread.start()
    given_up: list[int] = []
    for _ in range(30):
        given_up += [task.due_ns for task in deferred.pop_arrivals_before(now() - 500 * every_ns)]
        time.sleep(0.01)
    closing = now()
    deferred.close(len(threads))
    closed = now()
    for thread in threads:
        thread.join(60)
    each = sorted([*given_up, *(due for mine in taken for due in mine)])
    assert given_up and all(taken)
    assert len(each) == len(set(each)), "none twice"
    fewest, most = (2 * (moment - first) // every_ns for moment in (closing, closed))
    assert fewest - 3 <= len(each) + deferred.left <= most + 3


def test_arrivals_from_before_a_rest_are_kept_and_those_of_the_rest_are_not(deferred):
    first, every_ns = now() - 20_000_000, 1_000_000
    deferred.add(Task(first, Sweep, every_s=every_ns / 1e9, is_arrival=True))
    eventually(lambda: deferred.waiting() >= 20)
    deferred.rest(True)
    rested = now()
    time.sleep(0.05)
    deferred.rest(False)
    went_on = now()
    eventually(lambda: deferred.waiting() >= (rested - first) // every_ns + 20)
    due = [deferred.next_due().due_ns for _ in range((rested - first) // every_ns + 20)]
    assert not [moment for moment in due if rested + every_ns < moment < went_on - every_ns]
    assert due == sorted(due) and due[0] == first


def test_timers_rest_with_their_load_and_what_follows_from_it_does_not(deferred):
    first, every_ns = now(), 3_000_000
    deferred.rest(True)
    deferred.add(Task(first, Sweep, every_s=every_ns / 1e9))
    deferred.post(Deliver, (), 0.05)
    assert (deferred.next_due() or Task(0, Sweep)).kind is Deliver, "more than ten times of the timer were over by then"
    deferred.rest(False)
    task = deferred.next_due()
    assert task and task.kind is Sweep
    assert task.due_ns > first + 50_000_000 and (task.due_ns - first) % every_ns == 0, "at a time of its own"


@given(due=st.integers(0, 10**12), every_ms=st.integers(1, 100_000), late=st.integers(0, 10**12))
def test_a_timer_comes_again_at_its_next_time(due: int, every_ms: int, late: int) -> None:
    again = Task(due, Sweep, every_s=every_ms / 1000).at_next_time(due + late)
    every_ns = int(every_ms / 1000 * 1e9)
    assert again.due_ns > due + late >= again.due_ns - every_ns
    assert (again.due_ns - due) % every_ns == 0


def test_a_timer_does_not_catch_up_with_what_it_missed(deferred):
    """A timer is a rate at most: a slow server gets no burst afterwards."""
    over: list[int] = []
    first, every_ns = now(), 5_000_000

    def stall() -> None:
        eventually(lambda: now() > first + 10 * every_ns)
        over.append(now())

    attended = Attended(deferred, Server([stall]))
    deferred.add(Task(first, Sweep, every_s=every_ns / 1e9))
    eventually(lambda: len(begun(attended.samples)) >= 2)
    slow, following = begun(attended.samples)[:2]
    attended.end()
    assert slow[SCHEDULED] == first
    assert following[SCHEDULED] > over[0] and (following[SCHEDULED] - first) % every_ns == 0
    # Each that is left out is counted, and none as late.
    until = attended.samples[: attended.samples.index(following)]
    missed = [sample for sample in until if sample not in begun(until)]
    assert len(missed) >= 10 and {sample[OUTCOME] for sample in missed} == {GIVEN_UP}
    assert len(missed) + 1 == (following[SCHEDULED] - first) // every_ns
    assert not any(row.late_us for row in deferred_rows(as_table(missed), "shop", {}, first))
    assert {failure.error.kind for failure in attended.failures} == {ErrorClass.MISSED}


def test_a_server_that_stays_away_ends_it_and_it_says_why(deferred):
    attended = Attended(deferred, Server([ErrorClass.CONNECTION_LOST], refuses=retry.MOST_RECONNECTS))
    for number in range(2):
        deferred.post(Deliver, (number,), 0.0)
    attended.background_session.join(60)
    assert not attended.background_session.is_alive()
    assert "refused" in str(attended.background_session.lost)
    assert [sample[OUTCOME] for sample in attended.samples] == [GIVEN_UP]
    eventually(lambda: deferred.waiting() == 1)  # the other is for somebody else


def test_told_to_end_it_finishes_what_is_under_way_and_begins_nothing_more(deferred):
    begun, go_on = threading.Event(), threading.Event()

    def stall() -> None:
        begun.set()
        assert go_on.wait(60)

    server = Server([stall])
    attended = Attended(deferred, server)
    for number in range(3):
        deferred.post(Deliver, (number,), 0.0)
    assert begun.wait(60)
    deferred.close(1)
    attended.background_session.stop()
    go_on.set()
    attended.background_session.join(60)
    assert not attended.background_session.is_alive()
    assert [sample[OUTCOME] for sample in attended.samples] == [COMMITTED]
    assert len(server.calls) == 1 and deferred.left == 2
