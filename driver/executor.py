"""The executor: a plain process whose threads are virtual users and background sessions, of one load or of several.

Run as `python -m stallmark.driver.executor FD`. It is told which users to start and stop. Four times a second it
reports what was measured, transactions by whole seconds. It ends when its parent does.
"""

import os
import select
import sys
import threading
import time
from collections.abc import Iterable

from stallmark.driver.channel import Channel, Closed, inherited_channel
from stallmark.driver.client import Client
from stallmark.driver.load_users import LoadUsers
from stallmark.driver.messages import (
    CannotStart,
    EndLoad,
    ExecutorOrder,
    ExecutorReady,
    Go,
    Message,
    NotUnderstood,
    Quit,
    Rate,
    RateShare,
    Report,
    Resting,
    StartUser,
    StopUser,
)
from stallmark.driver.rows import Rows
from stallmark.driver.tally import SECOND_NS
from stallmark.engines import open_engine
from stallmark.errors import CallFailed, StallmarkError, as_reason
from stallmark.processes import may_open_most_files

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
        """Execute orders until told to quit. Nothing is measured before "go" says when the run started."""
        while not isinstance(message := self._channel.receive(), Go):
            if isinstance(message, Quit):
                for load in self._loads.values():
                    self._channel.send(load.bye(unfinished=0))
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
            if not all(load.works() for load in self._loads.values()):
                raise RuntimeError("The deferred queue has ended: users would go on without what follows from them.")
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
                self._loads[load].take_share(share)
            case Rate(load, per_s) if load in self._loads:
                self._loads[load].take_rate(per_s)
            case EndLoad(name):
                for users in self._loads.values():
                    if users.name == name:
                        users.end()
            case _:
                self._leave_out()

    def _finish(self) -> None:
        clients = {load: load.end() for load in self._loads.values()}
        leaving = [client for each in clients.values() for client in each]
        _join(leaving, LAST_CALL_S)
        self._send_report(everything=True)
        leaving = [client for client in leaving if client.is_alive() and not client.lost]
        for client in leaving:  # each in a thread of its own: a server that hangs may not answer this either
            threading.Thread(target=client.cancel, daemon=True).start()
        _join(leaving, CANCELLED_WITHIN_S)
        self._send_report(everything=True)
        unfinished = {client for client in leaving if client.is_alive()}
        for load, each in clients.items():
            self._channel.send(load.bye(len(unfinished.intersection(each))))

    def _send_report(self, *, everything: bool = False) -> None:
        now, cpu = time.monotonic_ns(), time.process_time_ns()
        # A histogram for each type and second: one for each report would take as much CPU as a tenth of the users.
        before = now if everything else now - (now - self._start_ns) % SECOND_NS
        rows, loads = Rows(), list(self._loads.values())
        ended = [load.ended() for load in loads]
        for load, share in zip(loads, ended if any(ended) else [1] * len(loads), strict=True):
            spent = (cpu - self._cpu_ns) * share // (sum(ended) or len(loads))
            load.report(rows, before, self._reported_ns, now, spent)
        self._reported_ns, self._cpu_ns = now, cpu
        self._channel.send(Report.of(rows))
        for load in loads:
            for message in load.lost():
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
