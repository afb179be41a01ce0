"""The executors of one machine: starts them, hands out users among them, and passes on what they send."""

from collections.abc import Callable
from dataclasses import asdict

import gevent

from stallmark.driver.children import start_child
from stallmark.driver.plan import Plan
from stallmark.driver.wire import Closed

LAST_WORD_S = 15  # after "quit": executors give their users 10 s


class Fleet:
    """`deliver(kind, **fields)` gets every message of every executor, and "died" when one ends unasked."""

    def __init__(self, plan: Plan, order: dict, deliver: Callable[..., None]):
        self._deliver = deliver
        self._children = [start_child("stallmark.driver.executor") for _ in range(plan.executors)]
        self._users: list[set[int]] = [set() for _ in self._children]
        self._numbers: list[int] = []
        self._quitting = False
        share = 1 / len(self._children)
        for number, (_, channel) in enumerate(self._children):
            channel.send(
                "order", number=number, share=share, arrivals=asdict(plan.arrivals), seed=plan.seed, **order
            )
            channel.receive()  # "ready"
        self._listeners = [gevent.spawn(self._listen, number) for number in range(len(self._children))]

    def go(self, start_ns: int) -> None:
        for _, channel in self._children:
            channel.send("go", start_ns=start_ns)

    def start_user(self) -> int:
        """Start one more user, on the executor that has fewest; returns its number."""
        number = next(n for n in range(len(self._numbers) + 1) if n not in self._numbers)
        self._numbers.append(number)
        executor = min(range(len(self._children)), key=lambda e: len(self._users[e]))
        self._users[executor].add(number)
        self._tell(executor, "start", number)
        return number

    def stop_user(self, number: int) -> None:
        for executor, users in enumerate(self._users):
            if number in users:
                users.remove(number)
                self._numbers.remove(number)
                self._tell(executor, "stop", number)

    def quit(self) -> None:
        """Let users finish what they do, take the last reports, end the executors."""
        self._quitting = True
        for _, channel in self._children:
            try:
                channel.send("quit")
            except Closed:
                continue
        gevent.joinall(self._listeners, timeout=LAST_WORD_S)
        for process, _ in self._children:
            process.kill()
            process.wait()

    def _tell(self, executor: int, kind: str, *numbers: int) -> None:
        try:
            self._children[executor][1].send(kind, users=numbers)
        except Closed:
            pass  # its listener has reported the death

    def _listen(self, executor: int) -> None:
        process, channel = self._children[executor]
        try:
            while True:
                kind, fields = channel.receive()
                self._deliver(kind, **fields)
                if kind == "bye":
                    return
        except Closed:
            if not self._quitting:
                self._deliver("died", executor=executor, pid=process.pid, code=process.poll())
