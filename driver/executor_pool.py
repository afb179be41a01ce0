"""The executors of one machine: start them, hand out each load's users among them, and pass on what they report."""

import heapq
from collections.abc import Callable, Sequence
from contextlib import suppress

import gevent

from stallmark.driver.channel import Closed, start_child
from stallmark.driver.load import ALONE, LoadPart, LoadSpec, ThisMachine, pack_executors
from stallmark.driver.messages import (
    CannotStart,
    EndLoad,
    ExecutorDied,
    ExecutorOrder,
    ExecutorReady,
    ExecutorSilent,
    FinalReport,
    Go,
    Message,
    NotUnderstood,
    Quit,
    Rate,
    RateShare,
    Resting,
    StartUser,
    StopUser,
    UsersHere,
)
from stallmark.processes import kill, wait_for_exit_code

LAST_WORD_S = 15  # after Quit: executors give their users 12 s
EXIT_WITHIN_S = 5  # an executor whose channel has closed is ending


class Executors:
    """The executors of one machine; `pools` distribute the users of each load among them.

    Each message of an executor is passed to `deliver`. ExecutorDied is added if an executor ends early, and
    ExecutorSilent if it was killed because its last message did not come. UsersHere is added if arrivals have a rate,
    or other machines take part.
    """

    def __init__(
        self, loads: Sequence[LoadSpec], engine: str, deliver: Callable[[Message], None], here: ThisMachine = ALONE
    ):
        """Start the executors and wait until they are ready. Raise Closed when one ends, which is delivered too."""
        orders = _orders(loads, engine, here)
        executors = [_Executor(order, deliver) for order in orders]
        self._executors = executors
        for executor in executors:
            executor.wait()
        self.pools = [
            LoadPool(load, place, [member for member in executors if place in member.places], deliver, here)
            for place, load in enumerate(loads)
        ]

    def __len__(self) -> int:
        return len(self._executors)

    def go(self, start_ns: int) -> None:
        for executor in self._executors:
            executor.send(Go(start_ns))

    def end_load(self, load: str) -> None:
        """Have the users of a load, all of its cells, finish their work. Other loads continue."""
        for executor in self._executors:
            executor.send(EndLoad(load))

    def set_rate(self, rate: Rate) -> None:
        for executor in self._executors:
            if rate.load in executor.places:
                executor.send(rate)

    def quit(self) -> None:
        """Let users finish what they do, take the last reports, end the executors."""
        for executor in self._executors:
            executor.is_quitting = True
            executor.send(Quit())
        gevent.joinall([executor.listener for executor in self._executors], timeout=LAST_WORD_S)
        for executor in self._executors:
            executor.end()


class _Executor:
    def __init__(self, order: ExecutorOrder, deliver: Callable[[Message], None]):
        self.places = {part.place for part in order.parts}
        self.is_quitting = False
        self._loads = [part.load.name for part in order.parts]
        self._deliver = deliver
        self._process, self._channel = start_child("stallmark.driver.executor")
        self.send(order)

    def wait(self) -> None:
        """Wait until it is ready. Raise Closed when it has ended, and deliver how."""
        try:
            answer: Message = self._channel.expect(ExecutorReady, CannotStart)
        except Closed:
            self._report_death()
            raise
        if isinstance(answer, CannotStart):
            self._report_death(answer.reason)
            raise Closed
        self.listener = gevent.spawn(self._listen)

    def send(self, message: Message) -> None:
        # The death of an executor is reported when its next message is awaited.
        with suppress(Closed):
            self._channel.send(message)

    def end(self) -> None:
        if not self.listener.dead:
            self.listener.kill()
            self._deliver(ExecutorSilent())
        kill(self._process)

    def _listen(self) -> None:
        awaited = len(self._loads)
        try:
            while awaited:
                message = self._channel.receive()
                if message == NotUnderstood():
                    message = NotUnderstood(f"executor process {self._process.pid}")
                self._deliver(message)
                awaited -= isinstance(message, FinalReport)
        except Closed:
            if self.is_quitting:
                self._deliver(ExecutorSilent())
            else:
                self._report_death()

    def _report_death(self, reason: str = "") -> None:
        code = wait_for_exit_code(self._process, EXIT_WITHIN_S)
        self._deliver(ExecutorDied(list(dict.fromkeys(self._loads)), self._process.pid, code, reason=reason))


class LoadPool:
    """The users of one load on one machine, handed out among `executors`. `place` is the load's among all."""

    def __init__(
        self,
        load: LoadSpec,
        place: int,
        executors: Sequence[_Executor],
        deliver: Callable[[Message], None],
        here: ThisMachine,
    ):
        self._load = load
        self._place = place
        self._executors = executors
        self._deliver = deliver
        self._here = here
        self._users: list[set[int]] = [set() for _ in executors]
        self._numbers: set[int] = set()
        self._given_back: list[int] = []  # numbers of users who have left, least first
        self._elsewhere: int | None = None  # not told yet
        self._rests = not load.users[0]

    def __len__(self) -> int:
        """Return the number of its users."""
        return len(self._numbers)

    def start_user(self) -> int:
        """Start one more user, on the executor that has fewest; returns its number."""
        given_back = self._given_back
        number = heapq.heappop(given_back) if given_back else self._here.number(len(self._numbers))
        self._numbers.add(number)
        fewest = min(range(len(self._executors)), key=lambda e: len(self._users[e]))
        self._users[fewest].add(number)
        self._users_changed()
        self._executors[fewest].send(StartUser(self._place, number))
        return number

    def stop_user(self, number: int) -> None:
        for executor, users in zip(self._executors, self._users, strict=True):
            if number in users:
                users.remove(number)
                self._numbers.remove(number)
                heapq.heappush(self._given_back, number)
                executor.send(StopUser(self._place, number))
                self._users_changed()

    def note_elsewhere(self, users: int) -> None:
        """Note how many users of this load the other machines have."""
        self._elsewhere = users
        self._follow_users()

    def _users_changed(self) -> None:
        self._follow_users()
        if self._load.arrivals.kind != "closed" or self._here.machines > 1:
            self._deliver(UsersHere(self._place, len(self._numbers)))

    def _follow_users(self) -> None:
        """Have arrivals shared out as the users are, and what no user starts rest without any."""
        if self._load.arrivals.kind != "closed":
            self._share_arrivals()
        rests = not self._numbers and not self._elsewhere
        if rests != self._rests:
            self._rests = rests
            for executor in self._executors:
                executor.send(Resting(self._place, rests))

    def _share_arrivals(self) -> None:
        """Give each executor its share of an open arrival rate, in proportion to its users.

        Until the other machines have reported their users, each is assumed to have this one's number: users start on
        all machines at once.
        """
        here = len(self._numbers)
        elsewhere = here * (self._here.machines - 1) if self._elsewhere is None else self._elsewhere
        for executor, users in zip(self._executors, self._users, strict=True):
            executor.send(RateShare(self._place, len(users) / max(1, here + elsewhere)))


def _orders(loads: Sequence[LoadSpec], engine: str, here: ThisMachine) -> list[ExecutorOrder]:
    """Return an order for each executor. Parts are numbered over all loads, so that those of two cells with one schema
    do not pass for each other."""
    places = pack_executors(loads, here.machines)
    holders = {
        place: [index for index, loads_of_executor in enumerate(places) if place in loads_of_executor]
        for place in range(len(loads))
    }
    numbers = {pair: number for number, pair in enumerate((p, index) for p in holders for index in holders[p])}

    def part(place: int, index: int) -> LoadPart:
        load, machines = loads[place], here.machines
        return LoadPart(
            load,
            load.background_sessions(len(holders[place]) * machines),
            place=place,
            of_several=len(loads) > 1,
            is_first=holders[place][0] == index and here.machine <= 1,
            number=here.number(numbers[place, index]),
            processes=len(numbers) * machines,
            share=1 / (len(holders[place]) * machines),
        )

    return [
        ExecutorOrder(
            engine,
            [part(place, index) for place in loads_of_executor],
            index=index,
            number=here.number(index),
            machine=here.machine,
            machines=here.machines,
        )
        for index, loads_of_executor in enumerate(places)
    ]
