"""A load machine's part of one run: Locust's worker, with the executors of this machine.

Run as `python -m stallmark.driver.cluster.worker FD`, because Locust patches the standard library of its process. It
waits for a master for as long as its parent lives, and ends with the run, with the parent, or with the master.
"""

from stallmark.driver.locust_bridge import VirtualUserHandle  # isort: skip  (patches the process: before everything else)
import logging
import socket
import sys
import time
from argparse import Namespace
from contextlib import suppress
from typing import Any

import gevent
from locust.env import Environment
from locust.exception import RPCError
from locust.rpc import Message

from stallmark.driver.cluster.join import STALLMARK, ThisMachine
from stallmark.driver.executor_pool import ExecutorPool
from stallmark.driver.messages import Channel, Closed, inherited_channel
from stallmark.driver.timeline import Timeline

MASTER_SILENT_S = 8  # Locust itself would go on for a minute, and the load with it
RELEASED_WITHIN_S = 5
LINGER_MS = 500


class LoadWorker:
    """From the moment a master has answered. The parent says who we are ("facts") and hears how it goes."""

    def __init__(self, parent: Channel, order: dict[str, Any]):
        self._parent = parent
        self._engine: str = order["engine"]
        # Without options Locust would read those of its own command line, from files and the environment.
        options = Namespace(web_base_path="")
        self._environment = Environment(user_classes=[VirtualUserHandle], parsed_options=options)
        self._pool: ExecutorPool | None = None
        self._sent = 0
        self._silent_s = 0
        self._runner = self._environment.create_worker_runner(order["host"], order["port"])
        self._runner.register_message(STALLMARK, self._receive)
        self._environment.events.heartbeat_received.add_listener(self._heard)

    def serve(self) -> None:
        """Until the master releases us, or is not heard of any more."""
        self._tell_parent("connected")
        watch = gevent.spawn(self._watch)
        self._runner.greenlet.join()
        watch.kill()
        self.leave()

    def join(self, fields: dict[str, Any]) -> None:
        self._tell_master("join", **fields)

    def leave(self) -> None:
        """End the load here, whatever the master thinks of it."""
        with suppress(RPCError):
            self._environment.events.quitting.fire(environment=self._environment, reverse=True)
        self._end_load()
        self._runner.quit()
        self._runner.client.close(linger=LINGER_MS)

    def _receive(self, environment: Environment, msg: Message) -> None:
        kind, fields = msg.data["kind"], msg.data["fields"]
        if kind == "order":
            gevent.spawn(self._get_ready, **fields)
        elif kind == "refused":
            self._tell_parent("refused", **fields)
        elif kind == "ping":
            self._tell_master("pong", **fields, seen_ns=time.monotonic_ns())
        elif kind == "finish":
            gevent.spawn(self._finish)
        elif self._pool and kind == "go":
            self._pool.go(fields["start_ns"])
            self._tell_parent("begun")
        elif self._pool and kind == "elsewhere":
            self._pool.note_elsewhere(fields["users"])

    def _get_ready(self, timeline: dict, executor: dict, number: int, of: int) -> None:
        here, load = ThisMachine(number, of), Timeline.from_dict(timeline)
        try:
            pool = ExecutorPool(load, executor | {"engine": self._engine}, self._tell_master, here)
        except Closed:
            self._tell_parent("unable")
            return
        self._pool = VirtualUserHandle.pool = pool
        self._tell_parent("ready", number=number, of=of)
        self._tell_master("ready", executors=load.executors(of))

    def _finish(self) -> None:
        self._runner.stop()
        self._end_load()
        self._tell_master("done")
        gevent.sleep(RELEASED_WITHIN_S)  # the master's "quit" comes in between
        self._runner.quit()

    def _end_load(self) -> None:
        pool, self._pool = self._pool, None
        if pool:
            pool.quit()

    def _heard(self, **_: Any) -> None:
        self._silent_s = 0

    def _watch(self) -> None:
        """Counts seconds of silence itself: a clock would go on while this process is kept from reading."""
        while self._silent_s < MASTER_SILENT_S:
            gevent.sleep(1)
            self._silent_s += 1
        self._tell_parent("alone")
        self._runner.quit()

    def _tell_master(self, kind: str, **fields: Any) -> None:
        """Messages are counted, so that the master notices when one is missing."""
        self._sent += 1
        try:
            self._runner.send_message(STALLMARK, {"kind": kind, "fields": fields, "count": self._sent})
        except RPCError:
            self._runner.quit()

    def _tell_parent(self, kind: str, **fields: Any) -> None:
        with suppress(Closed):
            self._parent.send(kind, **fields)


def _connect(parent: Channel, order: dict[str, Any]) -> LoadWorker:
    """Waits for the master's name to be known, and for its answer: both may come long after us."""
    said = False
    while True:
        try:
            socket.getaddrinfo(order["host"], order["port"])
            return LoadWorker(parent, order)
        except socket.gaierror as error:
            if not said:
                parent.send("unknown", why=error.strerror)
                said = True
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
        parent.send("finished")

    with suppress(Closed):
        # Stopped at once, the parent may say "quit" before it has given the order.
        while (message := parent.receive())[0] != "quit":
            kind, fields = message
            if kind == "order":
                order = fields
                working = gevent.spawn(work)
            elif worker and kind == "facts":
                worker.join(fields)
    if worker and not working.dead:
        worker.leave()
    with suppress(Closed):
        parent.send("finished")


if __name__ == "__main__":
    main()
