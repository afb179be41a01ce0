"""The executors of one machine: starts them, hands out users among them, and passes on what they send."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from subprocess import TimeoutExpired
from typing import Any

import gevent

from stallmark.driver.cluster.join import ALONE, ThisMachine
from stallmark.driver.messages import Closed
from stallmark.driver.subprocesses import start_child
from stallmark.driver.timeline import Timeline

LAST_WORD_S = 15  # after "quit": executors give their users 12 s
EXIT_WITHIN_S = 5  # of one whose channel has closed: it is ending


class ExecutorPool:
    """`deliver(kind, **fields)` gets every message of every executor, "died" when one ends unasked, "silent" when one
    is killed because its last word did not come, and, where arrivals are shared, "users" with how many there are."""

    def __init__(self, timeline: Timeline, order: dict, deliver: Callable[..., None], here: ThisMachine = ALONE):
        self._deliver = deliver
        self._here = here
        executors = timeline.executors(here.machines)
        self._children = [start_child("stallmark.driver.executor") for _ in range(executors)]
        self._users: list[set[int]] = [set() for _ in self._children]
        self._numbers: set[int] = set()
        self._elsewhere = 0
        self._quitting = False
        self._open_loop = timeline.arrivals.kind != "closed"
        for index, (_, channel) in enumerate(self._children):
            numbers = {
                "index": index,
                "number": here.number(index),
                "processes": executors * here.machines,
                "machine": here.machine,
                "machines": here.machines,
                "background_sessions": timeline.background_sessions(executors * here.machines),
            }
            channel.send("order", **numbers, arrivals=asdict(timeline.arrivals), seed=timeline.seed, **order)
        for _, channel in self._children:
            channel.receive()  # "ready"
        self._listeners = [gevent.spawn(self._listen, number) for number in range(len(self._children))]

    def go(self, start_ns: int) -> None:
        for executor in range(len(self._children)):
            self._tell(executor, "go", start_ns=start_ns)

    def start_user(self) -> int:
        """Start one more user, on the executor that has fewest; returns its number."""
        mine = map(self._here.number, range(len(self._numbers) + 1))
        number = next(n for n in mine if n not in self._numbers)
        self._numbers.add(number)
        executor = min(range(len(self._children)), key=lambda e: len(self._users[e]))
        self._users[executor].add(number)
        self._changed()
        self._tell(executor, "start", user=number)
        return number

    def stop_user(self, number: int) -> None:
        for executor, users in enumerate(self._users):
            if number in users:
                users.remove(number)
                self._numbers.remove(number)
                self._tell(executor, "stop", user=number)
                self._changed()

    def note_elsewhere(self, users: int) -> None:
        """How many users there are on the other machines."""
        self._elsewhere = users
        self._share_arrivals()

    def quit(self) -> None:
        """Let users finish what they do, take the last reports, end the executors."""
        self._quitting = True
        for executor in range(len(self._children)):
            self._tell(executor, "quit")
        gevent.joinall(self._listeners, timeout=LAST_WORD_S)
        for listener in self._listeners:
            if not listener.dead:
                listener.kill()
                self._deliver("silent")
        for process, _ in self._children:
            process.kill()
            process.wait()

    def _changed(self) -> None:
        if self._open_loop:
            self._share_arrivals()
            self._deliver("users", running=len(self._numbers))

    def _share_arrivals(self) -> None:
        """Open arrivals come where the users are: an executor gets the part of the rate that it has of the users."""
        everywhere = len(self._numbers) + self._elsewhere
        for executor, users in enumerate(self._users):
            self._tell(executor, "share", share=len(users) / max(1, everywhere))

    def _tell(self, executor: int, kind: str, **fields: Any) -> None:
        with suppress(Closed):  # its listener reports the death
            self._children[executor][1].send(kind, **fields)

    def _listen(self, executor: int) -> None:
        process, channel = self._children[executor]
        try:
            while True:
                kind, fields = channel.receive()
                self._deliver(kind, **fields)
                if kind == "bye":
                    return
        except Closed:
            if self._quitting:
                self._deliver("silent")
            else:
                with suppress(TimeoutExpired):
                    process.wait(EXIT_WITHIN_S)
                self._deliver("died", executor=executor, pid=process.pid, code=process.poll())
