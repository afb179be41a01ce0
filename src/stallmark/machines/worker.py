"""A load machine's share of one run: Locust's worker, with the executors of this machine.

Run as `python -m stallmark.machines.worker FD`, because Locust patches the standard library of its process. It waits
for a master while its parent lives, and ends with the run, the parent or the master.
"""

import stallmark.driver.no_gevent_plugins  # noqa: F401  # isort: skip
from stallmark.driver.locust_dispatcher import user_class  # isort: skip  (patches the process: before everything else)
import logging
import math
import socket
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NoReturn

import gevent
from locust.env import Environment
from locust.exception import RPCError
from locust.rpc import Message
from locust.runners import WorkerRunner
from zmq import ZMQError

from stallmark.driver.channel import Channel, Closed, inherited_channel
from stallmark.driver.executor_pool import Executors
from stallmark.driver.load import MASTER_SILENT_S, TOLD_AFTER_S, USERS_TOLD_AFTER_S, ThisMachine, executor_counts
from stallmark.driver.messages import (
    Begun,
    Connected,
    Done,
    EndLoad,
    ExecutorDied,
    ExecutorsReady,
    Finish,
    Finished,
    Go,
    Join,
    Joined,
    LoadOrder,
    Malformed,
    MasterLost,
    NotUnderstood,
    Ping,
    Pong,
    Quit,
    Rate,
    Refused,
    Report,
    UsersElsewhere,
    UsersHere,
    WorkerOrder,
    decode_of_master,
    encode,
)
from stallmark.driver.messages import Message as OurMessage
from stallmark.driver.rows import RowMerger, Rows
from stallmark.machines.messages import STALLMARK, from_master

RELEASED_WITHIN_S = 5
# Reports are collected for this long: a master has many machines to listen to.
LOOK_EVERY_S = 0.1
LINGER_MS = 500


class _Runner(WorkerRunner):
    """Locust's worker. It hands on what is ours (`hear`), and what makes no sense is left out (`leave_out`)."""

    def __init__(
        self,
        environment: Environment,
        order: WorkerOrder,
        hear: Callable[[OurMessage], None],
        leave_out: Callable[[], None],
    ):
        """Connect. Raise ConnectionError if nothing answers for minutes."""
        self._hear, self._leave_out = hear, leave_out
        super().__init__(environment, order.host, order.port)
        environment.runner = self

    def worker(self) -> NoReturn:
        self.last_received_spawn_timestamp = 0
        while True:
            try:
                frames = self.client.socket.recv_multipart()
            except ZMQError:
                gevent.sleep(1)
            else:
                self.handle(frames)

    def handle(self, frames: Sequence[bytes]) -> None:
        try:
            message = Message(*from_master(frames, self.client_id))
            if message.type == STALLMARK:
                self._hear(decode_of_master(message.data["body"]))
                return
            known = {users.__name__ for users in self.user_classes}
            if message.type == "spawn" and not known.issuperset(message.data["user_classes_count"]):
                raise Malformed("users of no load of this run")
        except Malformed:
            self._leave_out()
        else:
            self.handle_message(message)


class LoadWorker:
    """The worker of one run. It serves the master that has answered. The parent sends this machine's description (Join)
    and receives the progress of the run.
    """

    def __init__(self, parent: Channel, order: WorkerOrder):
        self._parent = parent
        self._engine = order.engine
        # Without options Locust would read those of its own command line, from files and the environment.
        options = Namespace(web_base_path="")
        self._environment = Environment(parsed_options=options)
        self._executors: Executors | None = None
        self._merger = RowMerger()
        # New numbers of users by load, sent with the next report.
        self._users: dict[int, int] = {}
        self._sent = 0
        self._silent_s = 0
        self._has_left_out = False
        self._runner = _Runner(self._environment, order, self._receive, self._leave_out)
        self._environment.events.heartbeat_received.add_listener(self._heard)

    def serve(self) -> None:
        """Serve until the master releases us, or is not heard of any more."""
        self._send_to_parent(Connected())
        watch = gevent.spawn(self._watch)
        self._runner.greenlet.join()
        watch.kill()
        self.leave()

    def join(self, join: Join) -> None:
        self._send_to_master(join)

    def leave(self) -> None:
        """End the load here, regardless of the master."""
        with suppress(RPCError):
            self._environment.events.quitting.fire(environment=self._environment, reverse=True)
        self._end_load()
        self._runner.quit()
        self._runner.client.close(linger=LINGER_MS)

    def _leave_out(self) -> None:
        """Report once that a message of the master was malformed."""
        if not self._has_left_out:
            self._has_left_out = True
            self._send_to_parent(NotUnderstood("the master"))

    def _receive(self, message: OurMessage) -> None:
        """Carry out a message of the master. Raise Malformed."""
        match message:
            case LoadOrder() as order:
                gevent.spawn(self._get_ready, order)
            case Refused() as refused:
                self._send_to_parent(refused)
            case Ping(sent_ns):
                self._send_to_master(Pong(sent_ns, time.monotonic_ns()))
            case Finish():
                gevent.spawn(self._finish)
            case Go(start_ns) if self._executors:
                self._executors.go(start_ns)
                gevent.spawn(self._report, start_ns, self._executors)
                self._send_to_parent(Begun())
            case EndLoad(load) if self._executors:
                self._executors.end_load(load)
            case UsersElsewhere(load, users) if self._executors:
                if not 0 <= load < len(self._executors.pools):
                    raise Malformed("users of a load that is not here")
                self._executors.pools[load].note_elsewhere(users)
            case Rate() as rate if self._executors:
                self._executors.set_rate(rate)

    def _get_ready(self, order: LoadOrder) -> None:
        here = ThisMachine(order.number, order.machines)

        try:
            started = Executors(order.loads, self._engine, self._deliver, here)
        except Closed:
            return
        self._environment.user_classes = [user_class(place, pool) for place, pool in enumerate(started.pools)]
        self._executors = started
        self._send_to_parent(Joined(order.number, order.machines))
        self._send_to_master(ExecutorsReady(len(started), executor_counts(order.loads, order.machines)))

    def _deliver(self, message: OurMessage) -> None:
        """Forward an executor's message, or collect it if it is not urgent: a master has many machines to listen to."""
        match message:
            case Report():
                try:
                    self._merger.add(message.rows())
                except Malformed:
                    self._send_to_master(NotUnderstood("an executor process"))
            case UsersHere(load, running):
                if not self._users:
                    gevent.spawn_later(USERS_TOLD_AFTER_S, self._send_users)
                self._users[load] = running
            case _:
                self._send_to_master(message)
                if isinstance(message, ExecutorDied) and not self._executors:
                    self._send_to_parent(message)

    def _report(self, start_ns: int, executors: Executors) -> None:
        """Report every second of the load once all executors should have reported it, and what comes later at once."""
        while self._executors is executors:
            self._send_rows(math.floor((time.monotonic_ns() - start_ns) / 1e9 - TOLD_AFTER_S))
            gevent.sleep(LOOK_EVERY_S)

    def _send_rows(self, before: float) -> None:
        rows = self._merger.pop_before(before)
        if rows != Rows():
            self._send_to_master(Report.from_rows(rows))

    def _send_users(self) -> None:
        changed, self._users = self._users, {}
        for load, running in changed.items():
            self._send_to_master(UsersHere(load, running))

    def _finish(self) -> None:
        self._runner.stop()
        self._end_load()
        self._send_to_master(Done())
        # The master's "quit" arrives during this wait.
        gevent.sleep(RELEASED_WITHIN_S)
        self._runner.quit()

    def _end_load(self) -> None:
        ending, self._executors = self._executors, None
        if ending:
            ending.quit()
            self._send_rows(math.inf)

    def _heard(self, **_: Any) -> None:
        self._silent_s = 0

    def _watch(self) -> None:
        """End the run after MASTER_SILENT_S of silence. Seconds are counted here: a clock would continue while this
        process is kept from reading.
        """
        while self._silent_s < MASTER_SILENT_S:
            gevent.sleep(1)
            self._silent_s += 1
        self._send_to_parent(MasterLost())
        self._runner.quit()

    def _send_to_master(self, message: OurMessage) -> None:
        """Send a message to the master, with a count by which it notices when one is missing."""
        self._sent += 1
        try:
            self._runner.send_message(STALLMARK, {"body": encode(message), "count": self._sent})
        except RPCError:
            self._runner.quit()

    def _send_to_parent(self, message: OurMessage) -> None:
        with suppress(Closed):
            self._parent.send(message)


def _connect(parent: Channel, order: WorkerOrder) -> LoadWorker:
    """Wait until the master's name is known, and until it answers: both may come long after us."""
    while True:
        try:
            socket.getaddrinfo(order.host, order.port)
            return LoadWorker(parent, order)
        except socket.gaierror:
            gevent.sleep(1)
        except ConnectionError:  # no answer, for minutes: Locust gives up, we do not
            pass


def main() -> None:
    logging.getLogger("locust").setLevel(logging.CRITICAL)
    parent = inherited_channel(sys.argv[1])
    worker: LoadWorker | None = None

    def work() -> None:
        nonlocal worker
        worker = _connect(parent, order)
        worker.serve()
        parent.send(Finished())

    with suppress(Closed):
        # Stopped at once, the parent may say Quit before it has given the order.
        while not isinstance(message := parent.receive(), Quit):
            if isinstance(message, WorkerOrder):
                order = message
                working = gevent.spawn(work)
            elif worker and isinstance(message, Join):
                worker.join(message)
    if worker and not working.dead:
        worker.leave()
    with suppress(Closed):
        parent.send(Finished())


if __name__ == "__main__":
    main()
