"""The background sessions: they execute transactions that follow from others, and those of timers.

The deferred queue knows which task is due when. Background sessions, each with its own connection, take what is
due. When they fall behind, tasks wait: how many and how long is measured, because the load then is not as intended.
"""

import heapq
import threading
import time
from contextlib import suppress
from itertools import count
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

from stallmark.driver.client import CODES, Client
from stallmark.transactions.workload import Transaction


class Task(NamedTuple):
    """A transaction and when it is due (monotonic ns). Inputs of None are drawn when it is executed; with `every_s` it
    comes again, at the next of these times that is not over."""

    due_ns: int
    kind: type[Transaction]
    inputs: tuple | None = None
    every_s: float | None = None

    def again(self, now_ns: int) -> "Task":
        """Return a timer's task at its next time; those that are over are not caught up with."""
        assert self.every_s
        every_ns = int(self.every_s * 1e9)
        missed = max(0, now_ns - self.due_ns) // every_ns
        return self._replace(due_ns=self.due_ns + (missed + 1) * every_ns)


class DeferredQueue:
    """The tasks of one executor. A thread of its own passes on what has become due."""

    def __init__(self) -> None:
        self.left = 0
        """The number of tasks that nobody will execute because the queue was closed, without those of timers."""
        self._later: list[tuple[int, int, Task]] = []
        self._due: SimpleQueue[Task | None] = SimpleQueue()
        self._changed = threading.Condition()
        self._order = count()  # of tasks that are due at once
        self._resting = False
        self._closed = False
        self._thread = threading.Thread(target=self._pass_on, name="deferred queue", daemon=True)
        self._thread.start()

    def post(self, kind: type[Transaction], inputs: tuple, after_s: float) -> None:
        self.add(Task(time.monotonic_ns() + int(after_s * 1e9), kind, inputs))

    def add(self, task: Task) -> None:
        with self._changed:
            if self._closed:
                self._leave(task)
                return
            heapq.heappush(self._later, (task.due_ns, next(self._order), task))
            if self._later[0][2] is task:
                self._changed.notify()

    def take(self) -> Task | None:
        """Wait for the next task that is due; return None once nothing more will come."""
        return self._due.get()

    def rest(self, rests: bool) -> None:
        """Leave timers out while the load rests; what follows from its transactions is executed all the same."""
        self._resting = rests

    def waiting(self) -> int:
        """Return how many tasks are due and not yet taken."""
        return self._due.qsize()

    def works(self) -> bool:
        """Tell whether the thread that passes on due tasks is alive."""
        return self._thread.is_alive()

    def close(self, background_sessions: int) -> None:
        """Stop passing on tasks, and release as many threads as may wait in `take`."""
        with self._changed:
            self._closed = True
            for _, _, task in self._later:
                self._leave(task)
            self._later.clear()
            with suppress(Empty):
                while due := self._due.get_nowait():  # background sessions may take from it meanwhile
                    self._leave(due)
            self._changed.notify()
        for _ in range(background_sessions):
            self._due.put(None)

    def _leave(self, task: Task) -> None:
        self.left += task.every_s is None

    def _pass_on(self) -> None:
        with self._changed:
            while not self._closed:
                wait_ns = self._later[0][0] - time.monotonic_ns() if self._later else None
                if wait_ns is not None and wait_ns <= 0:
                    task = heapq.heappop(self._later)[2]
                    if task.every_s and self._resting:
                        again = task.again(time.monotonic_ns())
                        heapq.heappush(self._later, (again.due_ns, next(self._order), again))
                    else:
                        self._due.put(task)
                else:
                    self._changed.wait(None if wait_ns is None else wait_ns / 1e9)


class BackgroundSession(Client):
    def __init__(self, number: int, deferred: DeferredQueue, *client: Any):
        """Take in `client` the arguments of a Client, after its name."""
        super().__init__(f"background_session-{number}", *client)
        self._deferred = deferred
        if not self._workload.background.followers:
            # Timers are few, and what they read for themselves is told apart from what users read.
            self._own_io_sampler.every = True

    def _kinds(self) -> list[type[Transaction]]:
        return [*self._workload.background.followers, *self._workload.background.timers]

    def _work(self) -> None:
        now = time.monotonic_ns
        free_since = now()
        until_sample = self._own_io_sampler.pause()
        while not self._stopping.is_set() and (task := self._deferred.take()):
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
            if task.every_s:
                self._deferred.add(task.again(ended))
