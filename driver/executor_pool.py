"""The executors of one machine: start them, hand out users among them, and pass on what they report."""

from collections.abc import Callable
from contextlib import suppress
from subprocess import TimeoutExpired

import gevent

from stallmark.driver.channel import Closed, start_child
from stallmark.driver.machines import ALONE, ThisMachine
from stallmark.driver.messages import (
    Bye,
    ExecutorDied,
    ExecutorOrder,
    ExecutorReady,
    ExecutorSilent,
    Go,
    LoadSpec,
    Message,
    Quit,
    RateShare,
    StartUser,
    StopUser,
    UsersHere,
)
from stallmark.driver.timeline import Timeline
from stallmark.processes import kill

LAST_WORD_S = 15  # after Quit: executors give their users 12 s
EXIT_WITHIN_S = 5  # for an executor whose channel has closed: it is ending


class ExecutorPool:
    """The executors of one machine. Every message of theirs is delivered, and ExecutorDied when one ends unasked.
    ExecutorSilent says that one was killed because its last message did not come. Where arrivals have a rate, UsersHere
    comes too."""

    def __init__(
        self, timeline: Timeline, load: LoadSpec, deliver: Callable[[Message], None], here: ThisMachine = ALONE
    ):
        """Start the executors and wait until they are ready. Raises Closed when one ends."""
        self._timeline = timeline
        self._load = load
        self._deliver = deliver
        self._here = here
        self._children = [start_child("stallmark.driver.executor") for _ in range(timeline.executors(here.machines))]
        self._users: list[set[int]] = [set() for _ in self._children]
        self._numbers: set[int] = set()
        self._elsewhere = 0
        self._quitting = False
        for index, (_, channel) in enumerate(self._children):
            channel.send(self._order(index))
        for _, channel in self._children:
            channel.expect(ExecutorReady)
        self._listeners = [gevent.spawn(self._listen, number) for number in range(len(self._children))]

    def _order(self, index: int) -> ExecutorOrder:
        processes = len(self._children) * self._here.machines
        return ExecutorOrder(
            self._load,
            self._timeline.arrivals,
            self._timeline.seed,
            self._timeline.background_sessions(processes),
            index,
            self._here.number(index),
            processes,
            self._here.machine,
            self._here.machines,
        )

    def go(self, start_ns: int) -> None:
        for executor in range(len(self._children)):
            self._tell(executor, Go(start_ns))

    def start_user(self) -> int:
        """Start one more user, on the executor that has fewest; returns its number."""
        mine = map(self._here.number, range(len(self._numbers) + 1))
        number = next(n for n in mine if n not in self._numbers)
        self._numbers.add(number)
        executor = min(range(len(self._children)), key=lambda e: len(self._users[e]))
        self._users[executor].add(number)
        self._changed()
        self._tell(executor, StartUser(number))
        return number

    def stop_user(self, number: int) -> None:
        for executor, users in enumerate(self._users):
            if number in users:
                users.remove(number)
                self._numbers.remove(number)
                self._tell(executor, StopUser(number))
                self._changed()

    def note_elsewhere(self, users: int) -> None:
        """Note how many users the other machines have."""
        self._elsewhere = users
        self._share_arrivals()

    def quit(self) -> None:
        """Let users finish what they do, take the last reports, end the executors."""
        self._quitting = True
        for executor in range(len(self._children)):
            self._tell(executor, Quit())
        gevent.joinall(self._listeners, timeout=LAST_WORD_S)
        for listener in self._listeners:
            if not listener.dead:
                listener.kill()
                self._deliver(ExecutorSilent())
        for process, _ in self._children:
            kill(process)

    def _changed(self) -> None:
        if self._timeline.arrivals.kind != "closed":
            self._share_arrivals()
            self._deliver(UsersHere(len(self._numbers)))

    def _share_arrivals(self) -> None:
        """Give each executor the share of an open arrival rate that it has of the users."""
        everywhere = len(self._numbers) + self._elsewhere
        for executor, users in enumerate(self._users):
            self._tell(executor, RateShare(len(users) / max(1, everywhere)))

    def _tell(self, executor: int, message: Message) -> None:
        with suppress(Closed):  # its listener reports the death
            self._children[executor][1].send(message)

    def _listen(self, executor: int) -> None:
        process, channel = self._children[executor]
        try:
            while True:
                message = channel.receive()
                self._deliver(message)
                if isinstance(message, Bye):
                    return
        except Closed:
            if self._quitting:
                self._deliver(ExecutorSilent())
            else:
                with suppress(TimeoutExpired):
                    process.wait(EXIT_WITHIN_S)
                self._deliver(ExecutorDied(process.pid, process.poll()))
