"""The threads of an executor that execute transactions: virtual users and background sessions."""

import heapq
import math
import random
import sys
import threading
import time
from abc import abstractmethod
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

from stallmark.driver.pacing import Pacing
from stallmark.driver.retry import MOST_RECONNECTS, Failure, RetryingSession
from stallmark.engines.base import Engine, OwnIO, Session
from stallmark.errors import CallFailed, ErrorClass
from stallmark.transactions.workload import Outcome, Transaction, Workload

# The sampling of own I/O: what some transactions read and wrote, as their own session counts it.
#
# Right before and right after a sampled transaction, outside of what is timed, the client asks its session for what it
# has read and written so far. Which ones are sampled is random, so that it does not coincide with a pattern of the
# deck. RUN of them come in a row, because the sample after one is the sample before the next.

RUN = 4
NEVER = sys.maxsize


def sampling_interval(types: int) -> int:
    """Return N, where one in N transactions is sampled: fewer samples if a workload has a single transaction type.

    Samples then take less than 1 % of the CPU (benchmarks/own_io.py at e53481b5). A sample costs 1.4 of the bank's
    transfers, which are its only type, and 0.4 of the brokerage's mean transaction.
    """
    return 200 if types == 1 else 75


class OwnIOSampler:
    """The sampler of one client.

    `report` is called with a tuple: the transaction's place in the workload, its end (monotonic ns), and the fields of
    an OwnIO for this transaction alone. With `every` all transactions but the first are sampled.
    """

    def __init__(self, types: int, report: Callable[[tuple], None]):
        self.every = False
        self._mean_pause = RUN * (sampling_interval(types) - 1)
        self._report = report
        self._before: tuple[Session, OwnIO] | None = None
        self._left = 0  # samples left of the current run

    def pause(self) -> int:
        """Return after how many transactions to call `sample`, at random with a constant probability for each."""
        return 1 if self.every else 1 + int(random.expovariate(1 / self._mean_pause))

    def sample(self, session: Session, transaction: int, ended: int, *, done: bool) -> int:
        """Take a sample after a transaction; return after how many more to call this again."""
        before, self._before = self._before, None
        try:
            now = session.own_io()
        except CallFailed:  # the next transaction will meet it, too
            return self.pause()
        # The engine has no such counters: never ask again.
        if now is None:
            return NEVER
        if before is None:
            self._left = RUN
        else:
            asked, then = before
            if done and asked is session:
                self._report((transaction, ended, *_io_difference(then, now)))
            self._left -= not self.every
        if not self._left:
            return self.pause()
        self._before = session, now
        return 1


def _io_difference(then: OwnIO, now: OwnIO) -> OwnIO:
    read_us = None if then.read_us is None or now.read_us is None else now.read_us - then.read_us
    return OwnIO(
        now.reads - then.reads,
        now.read_bytes - then.read_bytes,
        now.hits - then.hits,
        read_us,
        now.writes - then.writes,
    )


def never_begun(
    place: int, kind: type[Transaction], due_ns: int, now_ns: int, reason: str
) -> tuple[tuple[int, ...], Failure]:
    """Return the sample and the failure of a transaction that is given up now. It took no session's time."""
    sample = (place, due_ns, now_ns, now_ns, now_ns, GIVEN_UP, 0)
    return sample, Failure(kind.name, now_ns, CallFailed(ErrorClass.MISSED, "Stallmark", reason), given_up=True)


# The base of every thread that executes transactions, with a connection of its own.
#
# Native threads, because the database drivers block in C and release the GIL; a gevent user would stop all others.

COMMITTED, ROLLED_BACK, GIVEN_UP = range(3)
CODES = {Outcome.COMMITTED: COMMITTED, Outcome.ROLLED_BACK: ROLLED_BACK, None: GIVEN_UP}


class Client(threading.Thread):
    """A thread that executes transactions until `stop`, or until the server was away for too long (`lost` is then the
    reason).

    `report_sample` is called with a tuple for each transaction, retries included. The tuple holds the transaction's
    place in the workload, and in monotonic ns its schedule, its start, its end and the end of the client's previous
    transaction. The outcome code and the number of retries follow. A plain tuple, because this is the hot path.
    """

    def __init__(
        self,
        name: str,
        engine: Engine,
        workload: Workload,
        shared: Any,
        call_timeout_s: float,
        rng: random.Random,
        report_sample: Callable[[tuple[int, ...]], None],
        report_failure: Callable[[Failure], None],
        report_own_io: Callable[[tuple], None],
        report_lost: Callable[["Client"], None],
        most_reconnects: int = MOST_RECONNECTS,
        application: str = "stallmark-user",
    ):
        super().__init__(name=name, daemon=True)
        self._fault: CallFailed | None = None
        self.is_connected = False
        """It has begun to work; until then its time is the login's, and not the driver's."""
        self._workload = workload
        self._rng = rng
        self._report_sample = report_sample
        self._report_failure = report_failure
        self._report_lost = report_lost
        self._own_io_sampler = OwnIOSampler(len(workload.transactions), report_own_io)
        self._mine: dict[type[Transaction], tuple[int, Transaction]] = {
            kind: (workload.transactions.index(kind), kind(shared)) for kind in self._kinds()
        }
        self._stopping = threading.Event()
        self._retrying = RetryingSession(
            lambda: engine.session(call_timeout_s, application),
            lambda session: workload.prepare(session, self._mine),
            rng,
            self._stopping,
            report_failure,
            most_reconnects,
        )

    @property
    def lost(self) -> CallFailed | None:
        return self._fault or self._retrying.lost

    def stop(self) -> None:
        """Finish the transaction under way, then end."""
        self._stopping.set()

    def cancel(self) -> None:
        """Ask the server to give up the call under way."""
        if self.is_alive() and (session := self._retrying.session):
            session.cancel()

    def run(self) -> None:
        try:
            self._retrying.open()
            self.is_connected = self._retrying.session is not None
            self._work()
        except CallFailed as error:
            self._fault = error
        except Exception as error:  # a fault of ours must not pass for a client that did less
            self._fault = CallFailed(ErrorClass.OTHER, type(error).__name__, str(error))
            raise
        finally:
            if self.lost:
                self._report_lost(self)
            self._retrying.close()

    @abstractmethod
    def _work(self) -> None:
        """Execute transactions until `stop` is called."""

    @abstractmethod
    def _kinds(self) -> list[type[Transaction]]:
        """Return the transaction types that this client executes."""

    def _sample_own_io(self, index: int, ended: int, outcome: Outcome | None) -> int:
        """Sample the session's own I/O after a transaction; return after how many more transactions to sample again."""
        assert self._retrying.session
        return self._own_io_sampler.sample(self._retrying.session, index, ended, done=outcome is not None)


# A virtual user: a client that executes the transactions of its deck one after the other, as its pacing says.
class VirtualUser(Client):
    def __init__(self, number: int, pacing: Pacing, next_card: Callable[[], type[Transaction]], *client: Any):
        """Take in `client` the arguments of a Client, after its name."""
        super().__init__(f"user-{number}", *client)
        self.number = number
        for _, transaction in self._mine.values():
            transaction.begin_user(number, self._rng)
        self._pacing = pacing
        self._next_card = next_card
        self.awake = threading.Event()

    @property
    def is_ending(self) -> bool:
        return self._stopping.is_set()

    def stop(self) -> None:
        super().stop()
        self.awake.set()

    def _kinds(self) -> list[type[Transaction]]:
        return list(self._workload.users.deck)

    def _work(self) -> None:
        now = time.monotonic_ns
        pacing, stopping, report = self._pacing, self._stopping, self._report_sample
        free_since = now()
        until_sample = self._own_io_sampler.pause()
        while not stopping.is_set():
            index, transaction = self._mine[self._next_card()]
            inputs = transaction.inputs(self._rng)
            scheduled = pacing.next_start(free_since, self)
            if scheduled is None:
                return
            started = now()
            if started < scheduled:
                if stopping.wait((scheduled - started) / 1e9):
                    pacing.give_back(scheduled)
                    return
                started = now()
            outcome, retries = self._retrying.execute(transaction, inputs)
            ended = now()
            report((index, scheduled, started, ended, free_since, CODES[outcome], retries))
            free_since = ended
            until_sample -= 1
            if until_sample < 1:
                until_sample = self._sample_own_io(index, ended, outcome)
                free_since = now()


# The background sessions: they execute transactions that follow from others, and those of timers.
#
# The deferred queue knows which task is due when. Background sessions, each with its own connection, take what is
# due. When they fall behind, tasks wait: how many and how long is measured, because the load then is not as intended.


class Task(NamedTuple):
    """A transaction and its due time (monotonic ns). Inputs of None are drawn when the task is executed. With `every_s`
    the task is due again after each such period: once it has ended, or with `is_arrival` whether it has ended or not.
    """

    due_ns: int
    kind: type[Transaction]
    inputs: tuple | None = None
    every_s: float | None = None
    is_arrival: bool = False

    def at_next_time(self, now_ns: int) -> "Task":
        """Return the task at its next time after now; those that are over are not caught up with."""
        assert self.every_s
        every_ns = int(self.every_s * 1e9)
        missed = max(0, now_ns - self.due_ns) // every_ns
        return self._replace(due_ns=self.due_ns + (missed + 1) * every_ns)

    def times_due(self, now_ns: int) -> int:
        """Return the number of times that the task has been due by now."""
        assert self.every_s
        return max(0, 1 + (now_ns - self.due_ns) // int(self.every_s * 1e9))


READY = 100
"""The number of due tasks beyond which arrivals are held back: each rate then keeps the time of its next one alone, so
that a server that hangs costs no memory."""


class DeferredQueue:
    """The tasks of one executor. A thread of its own passes on what has become due."""

    def __init__(self) -> None:
        self.left = 0
        """The number of tasks left when the queue was closed, without those of timers."""
        self._later: list[tuple[int, int, Task]] = []
        self._due: SimpleQueue[Task | None] = SimpleQueue()
        self._changed = threading.Condition()
        self._order = count()  # breaks ties of tasks due at the same time
        self._rest_ns: tuple[float, float] = (math.inf, math.inf)
        """Begin and end of the last rest; the end is infinite while it lasts."""
        self._holds_back = False
        self._closed = False
        self._thread = threading.Thread(target=self._pass_on, name="deferred queue", daemon=True)
        self._thread.start()

    def post(self, kind: type[Transaction], inputs: tuple, after_s: float) -> None:
        self.add(Task(time.monotonic_ns() + int(after_s * 1e9), kind, inputs))

    def add(self, task: Task) -> None:
        with self._changed:
            if self._closed:
                self._count_left(task)
                return
            heapq.heappush(self._later, (task.due_ns, next(self._order), task))
            if self._later[0][2] is task:
                self._changed.notify()

    def next_due(self) -> Task | None:
        """Wait for the next task that is due; return None once nothing more will come."""
        task = self._due.get()
        # Half of them, so that the thread that passes them on does not wake up for each.
        if self._holds_back and self._due.qsize() < READY // 2:
            with self._changed:
                self._changed.notify()
        return task

    def rest(self, rests: bool) -> None:
        """Leave out timers and arrivals that come due while the load rests. Followers are executed all the same."""
        now_ns = time.monotonic_ns()
        self._rest_ns = (now_ns, math.inf) if rests else (self._rest_ns[0], now_ns)

    def waiting(self) -> int:
        """Return the number of tasks that are due and not yet taken."""
        with self._changed:
            return self._due.qsize() + self._held_back(time.monotonic_ns())

    def pop_arrivals_before(self, due_ns: int) -> list[Task]:
        """Remove and return the arrivals that were due before then and that no session has taken."""
        late = []
        with self._changed:
            if not self._closed and any(task.is_arrival for _, _, task in self._later):
                ready = []
                with suppress(Empty):
                    while task := self._due.get_nowait():
                        ready.append(task)
                for task in ready:
                    if task.is_arrival and task.due_ns < due_ns:
                        late.append(task)
                    else:
                        self._due.put(task)
                while (task := self._later[0][2]).is_arrival and task.due_ns < due_ns:
                    late.append(task)
                    self._replace_first(task.at_next_time(task.due_ns))
                self._changed.notify()
        return late

    def is_alive(self) -> bool:
        """Return True if the thread that passes on due tasks is alive."""
        return self._thread.is_alive()

    def close(self, background_sessions: int) -> None:
        """Stop passing on tasks, and release as many threads as may wait in `next_due`."""
        with self._changed:
            self._closed = True
            self.left += self._held_back(time.monotonic_ns())
            for _, _, task in self._later:
                self._count_left(task)
            self._later.clear()
            with suppress(Empty):
                # Background sessions may take from the queue meanwhile.
                while due := self._due.get_nowait():
                    self._count_left(due)
                    self.left += due.is_arrival
            self._changed.notify()
        for _ in range(background_sessions):
            self._due.put(None)

    def _count_left(self, task: Task) -> None:
        self.left += task.every_s is None

    def _held_back(self, now_ns: int) -> int:
        """Return the number of arrivals that are due and not passed on."""
        return sum(task.times_due(now_ns) for _, _, task in self._later if task.is_arrival)

    def _replace_first(self, task: Task) -> None:
        heapq.heapreplace(self._later, (task.due_ns, next(self._order), task))

    def _pass_on(self) -> None:
        with self._changed:
            while not self._closed:
                wait_ns = self._later[0][0] - time.monotonic_ns() if self._later else None
                if wait_ns is None or wait_ns > 0:
                    self._changed.wait(None if wait_ns is None else wait_ns / 1e9)
                    continue
                task = self._later[0][2]
                # By due times, as this thread may be late. Arrivals from before the rest are still to be executed.
                begin_ns, end_ns = self._rest_ns
                timer_rests = not task.is_arrival and begin_ns < end_ns == math.inf
                if task.every_s and (begin_ns <= task.due_ns < end_ns or timer_rests):
                    self._replace_first(task.at_next_time(int(min(time.monotonic_ns(), end_ns))))
                    continue
                # Set before the queue is measured: whoever takes a task from then on wakes this thread.
                self._holds_back = task.is_arrival
                if task.is_arrival and self._due.qsize() >= READY:
                    self._changed.wait()
                    continue
                self._holds_back = False
                if task.is_arrival:
                    # An arrival that is over is caught up with: each of them counts.
                    self._replace_first(task.at_next_time(task.due_ns))
                else:
                    heapq.heappop(self._later)
                self._due.put(task)


class BackgroundSession(Client):
    def __init__(self, number: int, deferred: DeferredQueue, *client: Any):
        """Take in `client` the arguments of a Client, after its name."""
        super().__init__(f"background_session-{number}", *client)
        self._deferred = deferred
        if not (self._workload.background.followers or self._workload.background.rates):
            # Timers are few, and what they read for themselves is told apart from what users read.
            self._own_io_sampler.every = True

    def _kinds(self) -> list[type[Transaction]]:
        background = self._workload.background
        return [*background.followers, *background.timers, *background.rates]

    def _work(self) -> None:
        now = time.monotonic_ns
        free_since = now()
        until_sample = self._own_io_sampler.pause()
        while not self._stopping.is_set() and (task := self._deferred.next_due()):
            index, transaction = self._mine[task.kind]
            inputs = transaction.inputs(self._rng) if task.inputs is None else task.inputs
            started = now()
            outcome, retries = self._retrying.execute(transaction, inputs)
            ended = now()
            self._report_sample((index, task.due_ns, started, ended, free_since, CODES[outcome], retries))
            free_since = ended
            until_sample -= 1
            if until_sample < 1:
                until_sample = self._sample_own_io(index, ended, outcome)
                free_since = now()
            if task.every_s and not task.is_arrival:
                for _ in range(task.times_due(ended) - 1):
                    missed = never_begun(index, task.kind, ended, ended, "its last execution had not ended")
                    self._report_sample(missed[0])
                    self._report_failure(missed[1])
                self._deferred.add(task.at_next_time(ended))
