"""The executor: a plain process whose threads are virtual users and background sessions.

Run as `python -m stallmark.driver.executor FD`. It is told which users to start and stop. Four times a second it
reports what was measured, transactions by whole seconds. It ends when its parent does.
"""

import os
import random
import select
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable

import numpy as np

from stallmark.driver.background import BackgroundSession, DeferredQueue, Task
from stallmark.driver.channel import Channel, Closed, inherited_channel
from stallmark.driver.client import Client
from stallmark.driver.deck import Dealer
from stallmark.driver.messages import (
    Bye,
    ExecutorOrder,
    ExecutorReady,
    Go,
    Malformed,
    Message,
    Quit,
    RateShare,
    Report,
    SessionLost,
    StartUser,
    StopUser,
)
from stallmark.driver.pacing import OpenLoop, Pacing, ThinkTime
from stallmark.driver.retry import Failure
from stallmark.driver.rows import DeferredRow, Rows, UserRow
from stallmark.driver.tally import (
    ENDED,
    SECOND_NS,
    as_table,
    deferred_rows,
    error_rows,
    own_io_rows,
    parts_by_second,
    transaction_rows,
    user_rows,
)
from stallmark.driver.virtual_user import VirtualUser
from stallmark.engines import open_engine
from stallmark.transactions import find_workload
from stallmark.transactions.workload import WorkloadContext

REPORT_EVERY_S = 0.25
LAST_CALL_S = 10  # how long users may take over their last transaction before it is cancelled
CANCELLED_WITHIN_S = 2  # both together below `executor_pool.LAST_WORD_S`, after which this process is killed

# The interpreter switches threads only this often when several want to run. The default of 5 ms would let one
# user's Python hold up the answers that have arrived for the others.
SWITCH_INTERVAL_S = 0.0005


class Executor:
    """The users of this process and what they have reported."""

    def __init__(self, channel: Channel, order: ExecutorOrder):
        load = order.load
        assert load.engine
        self._channel = channel
        self._order = order
        self._engine = open_engine(load.engine)
        self._workload = find_workload(load.workload)
        self._arrivals = order.arrivals
        self._queue: OpenLoop | None = None
        if self._arrivals.kind != "closed":
            self._queue = OpenLoop(self._arrivals, self._random("executor"))
        self._deferred = DeferredQueue()
        self._shared = self._workload.users.share(
            WorkloadContext(
                load.scale,
                order.seed,
                self._engine.query,
                self._deferred.post,
                process=order.number,
                processes=order.processes,
                machine=order.machine,
                machines=order.machines,
                locality=load.locality,
            )
        )
        deck = {kind: load.deck.get(kind.name, 0) for kind in self._workload.users.deck}
        self._dealer = Dealer(deck, self._random("deck"))
        self._samples: deque[tuple[int, ...]] = deque()
        self._background_samples: deque[tuple[int, ...]] = deque()
        self._failures: deque[Failure] = deque()
        self._own_io: deque[tuple] = deque()
        self._users: dict[int, VirtualUser] = {}
        self._leaving: list[VirtualUser] = []
        self._background = [self._background_session(number) for number in range(order.background_sessions)]
        self._names = [transaction.name for transaction in self._workload.transactions]

    def run(self) -> None:
        """Execute orders until told to quit. Nothing is measured before "go" says when the run started."""
        match self._channel.receive():
            case Quit():
                self._channel.send(Bye(unfinished=0, unserved=0, pending=0))
                return
            case Go(start_ns):
                self._start_ns = self._reported_ns = start_ns
            case other:
                raise Malformed(f"{type(other).__name__} came before the start")
        self._cpu_ns = time.process_time_ns()
        self._start_background()
        self._follow_orders()
        self._finish()

    def _follow_orders(self) -> None:
        next_report = time.monotonic() + REPORT_EVERY_S
        while True:
            # All orders that have come, before a report: on a busy machine one takes longer than until the next is due.
            while select.select([self._channel], [], [], max(0.0, next_report - time.monotonic()))[0]:
                message = self._channel.receive()
                if isinstance(message, Quit):
                    return
                self._obey(message)
            if not self._deferred.works():
                raise RuntimeError("The deferred queue has ended: users would go on without what follows from them.")
            self._send_report()
            next_report = max(next_report + REPORT_EVERY_S, time.monotonic())

    def _obey(self, message: Message) -> None:
        match message:
            case StartUser(user):
                self._start(user)
            case StopUser(user):
                self._stop(user)
            case RateShare(share) if self._queue:
                self._queue.take_share(share, time.monotonic_ns())

    def _start_background(self) -> None:
        for session in self._background:
            session.start()
        if self._order.number == 0:
            for kind, every_s in self._workload.background.timers.items():
                self._deferred.add(Task(self._start_ns, kind, every_s=every_s))

    def _background_session(self, number: int) -> BackgroundSession:
        rng = self._random(f"background session {number} of")
        return BackgroundSession(number, self._deferred, *self._client(rng, self._background_samples.append))

    def _start(self, number: int) -> None:
        rng = random.Random(f"{self._order.seed}/user {number}")  # the same stream in whatever executor
        pacing: Pacing = self._queue or ThinkTime(self._arrivals, rng)
        user = VirtualUser(number, pacing, self._dealer.next_card, *self._client(rng, self._samples.append))
        self._users[number] = user
        user.start()

    def _client(self, rng: random.Random, report_sample: Callable[[tuple[int, ...]], None]) -> tuple:
        return (
            self._engine,
            self._workload,
            self._shared,
            self._order.load.call_timeout_s,
            rng,
            report_sample,
            self._failures.append,
            self._own_io.append,
            self._order.load.most_reconnects,
        )

    def _random(self, whose: str) -> random.Random:
        """Return a generator that differs between repeats, so that the chance of one does not recur in all. All
        variants of a repeat draw the same."""
        return random.Random(f"{self._order.seed}/{self._order.load.repeat}/{whose} executor {self._order.number}")

    def _stop(self, number: int) -> None:
        if user := self._users.pop(number, None):
            user.stop()
            self._leaving.append(user)

    def _finish(self) -> None:
        for number in list(self._users):
            self._stop(number)
        unserved = self._queue.unserved(time.monotonic_ns()) if self._queue else 0
        self._deferred.close(len(self._background))
        for session in self._background:
            session.stop()
        leaving: list[Client] = [*self._leaving, *self._background]
        _join(leaving, LAST_CALL_S)
        self._send_report(everything=True)
        leaving = [client for client in leaving if client.is_alive() and not client.lost]
        for client in leaving:  # each in a thread of its own: a server that hangs may not answer this either
            threading.Thread(target=client.cancel, daemon=True).start()
        _join(leaving, CANCELLED_WITHIN_S)
        self._send_report(everything=True)
        unfinished = sum(client.is_alive() for client in leaving)
        self._channel.send(Bye(unfinished, unserved, self._deferred.left))

    def _send_report(self, *, everything: bool = False) -> None:
        now = time.monotonic_ns()
        # A histogram for each type and second: one for each report would take as much CPU as a tenth of the users.
        before = now if everything else now - (now - self._start_ns) % SECOND_NS
        samples, background = _taken(self._samples, before), _taken(self._background_samples, before)
        failures = [self._failures.popleft() for _ in range(len(self._failures))]
        own_io = [self._own_io.popleft() for _ in range(len(self._own_io))]
        self._channel.send(
            Report.of(
                Rows(
                    transactions=transaction_rows(np.concatenate([samples, background]), self._names, self._start_ns),
                    users=self._user_rows(samples),
                    errors=error_rows(failures, self._start_ns),
                    deferred_queue=self._deferred_rows(background),
                    transaction_io=own_io_rows(own_io, self._names, self._start_ns),
                )
            )
        )
        for user in [*self._users.values(), *self._leaving]:
            if user.lost:
                self._users.pop(user.number, None)
                self._channel.send(SessionLost(user.number, str(user.lost)))
        for session in [each for each in self._background if each.lost]:
            self._background.remove(session)
            self._channel.send(SessionLost(None, str(session.lost)))
        self._leaving = [user for user in self._leaving if user.is_alive() and not user.lost]

    def _deferred_rows(self, samples: np.ndarray) -> list[DeferredRow]:
        if not self._background:
            return []
        second = (time.monotonic_ns() - self._start_ns) // SECOND_NS
        waiting = {second: self._deferred.waiting()}
        return deferred_rows(samples, waiting, self._start_ns, self._order.machine, self._order.number)

    def _user_rows(self, samples: np.ndarray) -> list[UserRow]:
        now, cpu = time.monotonic_ns(), time.process_time_ns()
        rows = user_rows(samples, self._start_ns, self._order.machine, self._order.number)
        users = [*self._users.values(), *(user for user in self._leaving if user.is_alive())]
        running = sum(user.is_connected for user in users)
        for second, part in parts_by_second(self._reported_ns - self._start_ns, now - self._start_ns):
            spent = (cpu - self._cpu_ns) * part // (now - self._reported_ns)
            rows[second].running, rows[second].cpu_us = running * part / SECOND_NS, spent // 1000
        self._reported_ns, self._cpu_ns = now, cpu
        return list(rows.values())


def _taken(samples: deque[tuple[int, ...]], before_ns: int) -> np.ndarray:
    """Remove and return the samples that ended before then. They come in that order, except where threads overtake
    each other."""
    taken = []
    while samples and samples[0][ENDED] < before_ns:
        taken.append(samples.popleft())
    return as_table(taken)


def _join(clients: Iterable[Client], timeout_s: float) -> None:
    """Wait for clients to end, `timeout_s` seconds in all. Background sessions that were never started are skipped."""
    deadline = time.monotonic() + timeout_s
    for client in clients:
        if client.ident is not None:
            client.join(max(0.0, deadline - time.monotonic()))


def keep_to_one_core(index: int) -> None:
    """Keep this process on one core, where the system allows it.

    The interpreter runs one thread at a time. On several cores the users would only wake each other across them, which
    with 30 users took 148 µs of CPU per call instead of 15 (benchmarks/mssql.py).
    """
    if hasattr(os, "sched_setaffinity"):  # Linux
        cores = sorted(os.sched_getaffinity(0), reverse=True)  # the first often serves the interrupts
        os.sched_setaffinity(0, {cores[index % len(cores)]})


def main() -> None:
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    channel = inherited_channel(sys.argv[1])
    try:
        order = channel.expect(ExecutorOrder)
        keep_to_one_core(order.index)
        executor = Executor(channel, order)
        channel.send(ExecutorReady())
        executor.run()
    except Closed:
        pass  # the parent has gone; daemon threads and their connections go with us


if __name__ == "__main__":
    main()
