"""The executor: a plain process whose threads are the users and background sessions of its part of the loads."""

import os
import random
import select
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import numpy as np

from stallmark.driver.channel import Channel, Closed, inherited_channel
from stallmark.driver.client import BackgroundSession, Client, DeferredQueue, Task, VirtualUser, never_begun
from stallmark.driver.load import LoadPart
from stallmark.driver.messages import (
    CannotStart,
    EndLoad,
    ExecutorOrder,
    ExecutorReady,
    FinalReport,
    Go,
    Message,
    NotUnderstood,
    Quit,
    Rate,
    RateShare,
    Report,
    Resting,
    SessionLost,
    StartUser,
    StopUser,
)
from stallmark.driver.pacing import Dealer, OpenLoop, Pacing, ThinkTime
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
    statement_rows,
    statement_table,
    transaction_rows,
    user_rows,
)
from stallmark.engines import open_engine
from stallmark.engines.base import Engine
from stallmark.errors import CallFailed, StallmarkError, as_reason
from stallmark.processes import may_open_most_files
from stallmark.transactions import define, find_workload
from stallmark.transactions.workload import Transaction, WorkloadContext

# The part of a load that one executor has: its users and background sessions, and what they have reported.


class LoadUsers:
    """The users of one load in this process, and its background sessions."""

    def __init__(self, engine: Engine, order: ExecutorOrder, part: LoadPart):
        load = part.load
        self._engine = engine
        self._order = order
        self._part = part
        self._load = load
        self.name = load.name
        self._has_ended = False
        # A load that is alone draws what it drew before there could be others.
        self._seed = f"{load.seed}/{load.name}/{load.cell}" if part.of_several else str(load.seed)
        self._workload = define(load.definition) if load.definition else find_workload(load.workload)
        self._arrivals = load.arrivals
        self._queue: OpenLoop | None = None
        if self._arrivals.kind != "closed":
            self._queue = OpenLoop(self._arrivals, self._random("executor"))
        self._deferred = DeferredQueue()
        self._statements: deque[Sequence[int]] = deque()
        self._shared = self._workload.users.share(
            WorkloadContext(
                load.scale,
                load.seed,
                self._engine.read,
                self._deferred.post,
                process=part.number,
                processes=part.processes,
                machine=order.machine,
                machines=order.machines,
                locality=load.locality,
                cell=load.cell,
                cells=load.cells,
                users=load.most_users,
                dialect=self._engine.dialect,
                report_statements=self._statements.append,
            )
        )
        deck = {kind: load.deck.get(kind.name, 0) for kind in self._workload.users.deck}
        self._dealer = Dealer(deck, self._random("deck"))
        self._samples: deque[tuple[int, ...]] = deque()
        self._background_samples: deque[tuple[int, ...]] = deque()
        self._waiting = 0  # samples of a second that had not ended at the last report
        self._failures: deque[Failure] = deque()
        self._own_io: deque[tuple] = deque()
        self._users: dict[int, VirtualUser] = {}
        self._leaving: list[VirtualUser] = []
        self._connecting: list[VirtualUser] = []
        self._lost: deque[Client] = deque()
        self._background = [self._background_session(number) for number in range(part.background_sessions)]
        self._unserved = 0
        self._kinds = self._workload.transactions
        self._names = [kind.name for kind in self._kinds]
        self._statement_names = [statement.name for statement in self._workload.statements(engine.dialect)]

    def begin(self, start_ns: int) -> None:
        """Start the background sessions and this executor's part of arrivals at a rate; the first starts all timers."""
        self._start_ns = start_ns
        self.rest(not self._load.users[0])
        for session in self._background:
            session.start()
        if self._part.is_first:
            for kind, every_s in self._workload.background.timers.items():
                self._deferred.add(Task(start_ns, kind, every_s=every_s))
        rng = self._random("rates of")
        for kind, per_s in self._workload.background.rates.items():
            every_s = 1 / (per_s * self._part.share)
            # At a random phase, as a fixed rate of users: executors must not act at the same moments.
            first_ns = start_ns + int(rng.random() * every_s * SECOND_NS)
            self._deferred.add(Task(first_ns, kind, every_s=every_s, is_arrival=True))

    def start(self, number: int) -> None:
        """Start a user. A load that has ended has none: orders that were under way then are of no use."""
        if self._has_ended:
            return
        rng = random.Random(f"{self._seed}/user {number}")  # the same stream in whatever executor
        pacing: Pacing = self._queue or ThinkTime(self._arrivals, rng)
        user = VirtualUser(number, pacing, self._dealer.next_card, *self._client(rng, self._samples.append))
        self._users[number] = user
        self._connecting.append(user)
        user.start()

    def stop(self, number: int) -> None:
        if user := self._users.pop(number, None):
            user.stop()
            self._leaving.append(user)

    def rest(self, rests: bool) -> None:
        """Leave timers and arrivals at a rate out while the load has no users."""
        self._deferred.rest(rests)

    def set_share(self, share: float) -> None:
        """Take this share of the load's open arrivals."""
        if self._queue and not self._has_ended:
            self._queue.set_share(share, time.monotonic_ns())

    def set_rate(self, per_s: float) -> None:
        """Let the load's open arrivals come at this rate, all of them together."""
        if self._queue:
            self._queue.set_rate(per_s, time.monotonic_ns())

    def is_active(self) -> bool:
        """Return True if transactions that follow from the users' are passed on."""
        return self._has_ended or self._deferred.is_alive()

    def ended_count(self) -> int:
        """Return the number of transactions that have ended since the last report."""
        return len(self._samples) + len(self._background_samples) - self._waiting

    def report(self, rows: Rows, before_ns: int, begin_ns: int, end_ns: int, cpu_ns: int) -> None:
        """Add what ended before `before_ns`, and how the users and `cpu_ns` of CPU were from `begin_ns` to `end_ns`."""
        self._give_up_late_arrivals()
        samples = as_table(_pop_samples(self._samples, before_ns))
        background = as_table(_pop_samples(self._background_samples, before_ns))
        self._waiting = len(self._samples) + len(self._background_samples)
        failures = [self._failures.popleft() for _ in range(len(self._failures))]
        own_io = [self._own_io.popleft() for _ in range(len(self._own_io))]
        load, start_ns = self._load.name, self._start_ns
        rows.transactions += transaction_rows(np.concatenate([samples, background]), load, self._names, start_ns)
        rows.users += self._user_rows(samples, begin_ns, end_ns, cpu_ns)
        rows.errors += error_rows(failures, load, start_ns)
        rows.deferred_queue += self._deferred_rows(background)
        rows.transaction_io += own_io_rows(own_io, load, self._names, start_ns)
        statements = statement_table(_pop_samples(self._statements, before_ns, -1))
        rows.own_statements += statement_rows(statements, load, self._statement_names, start_ns)

    def remove_lost(self) -> Iterator[SessionLost]:
        """Remove users and background sessions that have lost the server, and yield a message for each."""
        for _ in range(len(self._lost)):
            match self._lost.popleft():
                case VirtualUser() as user:
                    self._users.pop(user.number, None)
                    yield SessionLost(self._load.name, user.number, str(user.lost))
                case session:
                    self._background = [other for other in self._background if other is not session]
                    yield SessionLost(self._load.name, None, str(session.lost))
        self._leaving = [user for user in self._leaving if user.is_alive() and not user.lost]

    def end(self) -> list[Client]:
        """Return all users and background sessions after telling them to finish. From now on no user starts and no
        transaction arrives.
        """
        self._has_ended = True
        for number in list(self._users):
            self.stop(number)
        self._unserved = self._queue.stop_and_count_unserved(time.monotonic_ns()) if self._queue else 0
        self._deferred.close(len(self._background))
        for session in self._background:
            session.stop()
        return [*self._leaving, *self._background]

    def final_report(self, unfinished: int) -> FinalReport:
        """Return the last message, after `end`."""
        return FinalReport(self._load.name, unfinished, self._unserved, self._deferred.left)

    def _give_up_late_arrivals(self) -> None:
        """Count arrivals as failed that found no free session within the time of a call.

        A service gives up in the same way if its pool of connections is exhausted. Otherwise a server that hung for an
        hour would get that hour's arrivals at once.
        """
        due_ns = time.monotonic_ns() - int(self._load.call_timeout_s * SECOND_NS)
        for scheduled_ns in self._queue.pop_due_before(due_ns) if self._queue else ():
            self._give_up(self._dealer.next_card(), scheduled_ns, self._samples)
        for task in self._deferred.pop_arrivals_before(due_ns):
            self._give_up(task.kind, task.due_ns, self._background_samples)

    def _give_up(self, kind: type[Transaction], due_ns: int, samples: deque[tuple[int, ...]]) -> None:
        reason = f"no session was free within {self._load.call_timeout_s:g} s of its due time"
        sample, failure = never_begun(self._kinds.index(kind), kind, due_ns, time.monotonic_ns(), reason)
        samples.append(sample)
        self._failures.append(failure)

    def _background_session(self, number: int) -> BackgroundSession:
        rng = self._random(f"background session {number} of")
        return BackgroundSession(number, self._deferred, *self._client(rng, self._background_samples.append))

    def _client(self, rng: random.Random, report_sample: Callable[[tuple[int, ...]], None]) -> tuple:
        return (
            self._engine,
            self._workload,
            self._shared,
            self._load.call_timeout_s,
            rng,
            report_sample,
            self._failures.append,
            self._own_io.append,
            self._lost.append,
            self._load.most_reconnects,
            self._load.application,
        )

    def _random(self, whose: str) -> random.Random:
        """Return a generator that differs between repeats, so that the chance of one does not recur in all. All
        variants of a repeat draw the same."""
        return random.Random(f"{self._seed}/{self._load.repeat}/{whose} executor {self._part.number}")

    def _deferred_rows(self, samples: np.ndarray) -> list[DeferredRow]:
        if not self._background:
            return []
        second = (time.monotonic_ns() - self._start_ns) // SECOND_NS
        waiting = {second: self._deferred.waiting()}
        return deferred_rows(samples, self._load.name, waiting, self._start_ns, self._order.machine, self._order.number)

    def _user_rows(self, samples: np.ndarray, begin_ns: int, end_ns: int, cpu_ns: int) -> list[UserRow]:
        rows = user_rows(samples, self._load.name, self._start_ns, self._order.machine, self._order.number)
        # Not all are looked at: of thousands, this would take as long as some of their transactions.
        here = self._users.get
        self._connecting = [
            user
            for user in self._connecting
            if not user.is_connected and (user.is_alive() or here(user.number) is user)
        ]
        running = len(self._users) + sum(user.is_alive() for user in self._leaving) - len(self._connecting)
        for second, part in parts_by_second(begin_ns - self._start_ns, end_ns - self._start_ns):
            rows[second].running = running * part / SECOND_NS
            rows[second].cpu_us = cpu_ns * part // (end_ns - begin_ns) // 1000
        return list(rows.values())


AnySample = TypeVar("AnySample", bound=Sequence[int])


def _pop_samples(samples: deque[AnySample], before_ns: int, ended: int = ENDED) -> list[AnySample]:
    """Remove and return the samples that `ended`, which is the place of that number, before then. They come in that
    order, except where threads overtake each other."""
    taken = []
    while samples and samples[0][ended] < before_ns:
        taken.append(samples.popleft())
    return taken


# The executor: a plain process whose threads are virtual users and background sessions, of one load or of several.
#
# Run as `python -m stallmark.driver.executor FD`. It is told which users to start and stop. Four times a second it
# reports what was measured, transactions by whole seconds. It ends when its parent does.

REPORT_EVERY_S = 0.25
LAST_CALL_S = 10  # how long users may take over their last transaction before it is cancelled
CANCELLED_WITHIN_S = 2  # both together below `executor_pool.LAST_WORD_S`, after which this process is killed

# The interpreter switches threads only this often when several want to run. The default of 5 ms would let one
# user's Python hold up the answers that have arrived for the others.
SWITCH_INTERVAL_S = 0.0005
# Each thread that wants to run wakes up this often to say so: hundreds would do nothing else, and never catch up.
SWITCH_INTERVAL_OF_EACH_S = 0.00002


class Executor:
    """The users of this process, load by load."""

    def __init__(self, channel: Channel, order: ExecutorOrder):
        self._channel = channel
        engine = open_engine(order.engine)
        self._loads = {
            part.place: LoadUsers(engine.on_database(name) if (name := part.load.database) else engine, order, part)
            for part in order.parts
        }

    def run(self) -> None:
        """Execute orders until Quit. Nothing is measured before Go, which holds the run's start."""
        while not isinstance(message := self._channel.receive(), Go):
            if isinstance(message, Quit):
                for load in self._loads.values():
                    self._channel.send(load.final_report(unfinished=0))
                return
            self._leave_out()
        start_ns = self._start_ns = self._reported_ns = message.start_ns
        self._cpu_ns = time.process_time_ns()
        for load in self._loads.values():
            load.begin(start_ns)
        self._follow_orders()
        self._finish()

    def _follow_orders(self) -> None:
        next_report = time.monotonic() + REPORT_EVERY_S
        while True:
            # Orders that have come, before a report: on a busy machine one takes longer than until the next is due.
            # Thousands of users take longer to start, and what is reported meanwhile must not become one report.
            while time.monotonic() < next_report + REPORT_EVERY_S and self._has_orders(until=next_report):
                message = self._channel.receive()
                if isinstance(message, Quit):
                    return
                self._obey(message)
            # Without its thread the deferred queue would collect tasks silently, and users would seem to do less.
            if not all(load.is_active() for load in self._loads.values()):
                raise RuntimeError(
                    "The deferred queue has ended: users would continue without the transactions that follow."
                )
            self._send_report()
            _switch_as_often_as_threads_allow()
            next_report = max(next_report + REPORT_EVERY_S, time.monotonic())

    def _has_orders(self, until: float) -> bool:
        return bool(select.select([self._channel], [], [], max(0.0, until - time.monotonic()))[0])

    def _leave_out(self) -> None:
        self._channel.send(NotUnderstood("the load driver's conductor"))

    def _obey(self, message: Message) -> None:
        match message:
            case StartUser(load, user) if load in self._loads:
                self._loads[load].start(user)
                _switch_as_often_as_threads_allow()
            case StopUser(load, user) if load in self._loads:
                self._loads[load].stop(user)
            case Resting(load, rests) if load in self._loads:
                self._loads[load].rest(rests)
            case RateShare(load, share) if load in self._loads:
                self._loads[load].set_share(share)
            case Rate(load, per_s) if load in self._loads:
                self._loads[load].set_rate(per_s)
            case EndLoad(name):
                for users in self._loads.values():
                    if users.name == name:
                        users.end()
            case _:
                self._leave_out()

    def _finish(self) -> None:
        clients = {load: load.end() for load in self._loads.values()}
        leaving = [client for members in clients.values() for client in members]
        _join(leaving, LAST_CALL_S)
        self._send_report(everything=True)
        leaving = [client for client in leaving if client.is_alive() and not client.lost]
        for client in leaving:  # each in a thread of its own: a server that hangs may not answer this either
            threading.Thread(target=client.cancel, daemon=True).start()
        _join(leaving, CANCELLED_WITHIN_S)
        self._send_report(everything=True)
        # Cancelled clients may still have ended before this moment.
        unfinished = {client for client in leaving if client.is_alive()}
        for load, members in clients.items():
            self._channel.send(load.final_report(len(unfinished.intersection(members))))

    def _send_report(self, *, everything: bool = False) -> None:
        now, cpu = time.monotonic_ns(), time.process_time_ns()
        # A histogram for each type and second: one for each report would take as much CPU as a tenth of the users.
        before = now if everything else now - (now - self._start_ns) % SECOND_NS
        rows, loads = Rows(), list(self._loads.values())
        ended = [load.ended_count() for load in loads]
        # CPU is shared out by transactions ended; with none at all evenly, since an idle process still uses some.
        for load, share in zip(loads, ended if any(ended) else [1] * len(loads), strict=True):
            spent = (cpu - self._cpu_ns) * share // (sum(ended) or len(loads))
            load.report(rows, before, self._reported_ns, now, spent)
        self._reported_ns, self._cpu_ns = now, cpu
        self._channel.send(Report.from_rows(rows))
        for load in loads:
            for message in load.remove_lost():
                self._channel.send(message)


def _switch_as_often_as_threads_allow() -> None:
    sys.setswitchinterval(max(SWITCH_INTERVAL_S, SWITCH_INTERVAL_OF_EACH_S * threading.active_count()))


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
    may_open_most_files()
    channel = inherited_channel(sys.argv[1])
    try:
        order = channel.expect(ExecutorOrder)
        keep_to_one_core(order.index)
        try:
            executor = Executor(channel, order)
        except (CallFailed, StallmarkError) as error:
            channel.send(CannotStart(as_reason(error)))
            sys.exit(1)
        channel.send(ExecutorReady())
        executor.run()
    except Closed:
        pass  # the parent has gone; daemon threads and their connections go with us


if __name__ == "__main__":
    main()
