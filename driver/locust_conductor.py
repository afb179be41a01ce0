"""The conductor: Locust spawns and stops the users, and follows the load shape.

Run as `python -m stallmark.driver.locust_conductor FD`, because Locust patches the standard library of its process for
gevent. No transaction is executed here: a Locust user is a handle on a virtual user in an executor. The executors are
this machine's, or those of load machines that Locust's master commands: then none runs here. With Locust's page,
somebody may change the load: the controller makes each change a step of the timeline.
"""

import stallmark.driver.no_gevent_plugins  # noqa: F401  # isort: skip
from locust import LoadTestShape  # isort: skip  (patches the process: before everything else)
import logging
import math
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import accumulate, pairwise, zip_longest
from typing import Any

import gevent
from locust.env import Environment
from locust.runners import Runner

from stallmark import capabilities
from stallmark.driver.channel import Channel, Closed, inherited_channel
from stallmark.driver.executor_pool import Executors, LoadPool
from stallmark.driver.load import LoadSpec, MachinesMissing, Timeline
from stallmark.driver.locust_dispatcher import LoadsDispatcher, VirtualUserHandle, user_class
from stallmark.driver.messages import (
    ChangedByHand,
    ConductorOrder,
    EndLoad,
    Finished,
    Go,
    Incomplete,
    LoadMachine,
    Malformed,
    Message,
    NewTimeline,
    NotUnderstood,
    Quit,
    Rate,
    Ready,
    Report,
    Stopped,
    StoppedByHand,
    UsersHere,
)
from stallmark.errors import StallmarkError

Users = dict[type[VirtualUserHandle], int]
"""The number of users of each load."""


class PlannedShape(LoadTestShape):
    """The steps of the timeline as a Locust load shape. `users` are those of each step, `rates` the spawn rates that
    somebody asked for, by the index of the step."""

    use_common_options = True  # Locust's page offers no change without
    timeline: Timeline
    users: Sequence[Users]
    rates: Mapping[int, float] = {}
    start_ns: int

    def tick(self) -> tuple[int, float, Users] | None:  # type: ignore[override]
        second = self.second()
        if second >= self.timeline.end_s:
            return None
        index = self.timeline.index_at(second)
        step, users = self.timeline.steps[index], self.users[index]
        rate = self.rates.get(index) or spawn_rate(self.users[index - 1] if index else {}, users, step.ramp_s)
        return sum(users.values()), rate, users

    def second(self) -> float:
        return (time.monotonic_ns() - self.start_ns) / 1e9


def spawn_rate(before: Users, users: Users, ramp_s: float) -> float:
    """Return the users to start or stop per second, so that each load has its number when the ramp ends."""
    change = sum(abs(number - before.get(load, 0)) for load, number in users.items()) or 1
    return change / ramp_s if ramp_s >= 1 else float(change)


def share_out(users: int, loads: Sequence[LoadSpec], weights: Sequence[int]) -> list[int]:
    """Return the users of each load, in the proportions of `weights`. Raise StallmarkError if a load would get more
    than it is prepared for."""
    whole = sum(weights)
    most = min(load.most_users * whole // weight for load, weight in zip(loads, weights, strict=True) if weight)
    if users > most:
        raise StallmarkError(
            f"This run is prepared for at most {most:,} users: ask for fewer, or start it with --most-users {users}."
        )
    ends = [(2 * users * end + whole) // (2 * whole) for end in accumulate(weights, initial=0)]  # rounded half up
    return [end - begin for begin, end in pairwise(ends)]


class Conductor:
    """The conductor of one run, as the controller orders. It ends with the run, or on Quit."""

    def __init__(self, parent: Channel, order: ConductorOrder):
        self._parent = parent
        self._order = order
        self._load: Any
        """The executors of this machine, or the master of load machines."""
        pools: list[LoadPool] = []
        if order.engine is not None:
            self._load = Executors(order.loads, order.engine, self._deliver)
            pools = self._load.pools
        classes = [user_class(place, pool) for place, (_, pool) in enumerate(zip_longest(order.loads, pools))]
        self._classes = classes
        PlannedShape.timeline = order.timeline
        PlannedShape.users = [
            {users: load.users[step] for users, load in zip(classes, order.loads, strict=True)}
            for step in range(len(order.timeline.steps))
        ]
        self._shape = PlannedShape()
        self._environment = Environment(
            user_classes=list(classes), shape_class=self._shape, dispatcher_class=LoadsDispatcher
        )
        self._runner: Runner
        if order.expected:
            [master] = capabilities.parts("master")
            self._load = self._runner = master(self._environment, order.expected, order.loads, self._deliver)
        else:
            self._runner = self._environment.create_local_runner()
        self._page: Any = None
        self._weights: list[int] = []
        """The planned users of each load in the step that was changed by hand first."""
        if order.page:
            [page] = capabilities.parts("page")
            self._page = page(self._environment, order.page, order.loads, self._change_by_hand, self._stop_by_hand)

    def run(self) -> None:
        getting_ready = gevent.spawn(self._get_ready)
        try:
            while not isinstance(message := self._parent.receive(), Go | Quit):
                self._leave_out()
            if isinstance(message, Go):
                self._go(message.start_ns)
                self._follow_changes()
        finally:
            getting_ready.kill()
            self._runner.quit()
            if isinstance(self._load, Executors):
                self._load.quit()
            if self._page:
                self._page.close()
        self._parent.send(Finished())

    def _follow_changes(self) -> None:
        """Apply new timelines and rates, and end loads, until Quit: steps move when the load is steady."""
        while True:
            match self._parent.receive():
                case NewTimeline(timeline, users, rate):
                    last = len(timeline.steps) - 1
                    if users:
                        step = dict(zip(self._classes, users, strict=True))
                        PlannedShape.users = [*PlannedShape.users[:last], step]
                    PlannedShape.timeline = timeline
                    if rate:
                        PlannedShape.rates = {**PlannedShape.rates, last: rate}
                        self._look_at_shape()
                case Rate() as rate:
                    self._load.set_rate(rate)
                case EndLoad(load):
                    self._end_load(load)
                case Quit():
                    return
                case _:
                    self._leave_out()

    def _look_at_shape(self) -> None:
        """Have Locust look at the shape at once, even if it still starts the users of the step before."""
        if self._runner.shape_greenlet:
            self._runner.shape_greenlet.kill(block=True)
        self._runner.shape_greenlet = self._runner.greenlet.spawn(self._runner.shape_worker)

    def _change_by_hand(self, users: int, rate: float) -> None:
        """Ask for a step with so many users. Raise StallmarkError if that cannot be."""
        if users < 1 or not 0 < rate < math.inf:
            raise StallmarkError("Ask for at least one user, and start more than none per second; Stop ends the run.")
        second, shape = self._shape.second(), PlannedShape
        if second >= shape.timeline.steps[-1].end_s:
            raise StallmarkError("The load of this run is over: its report has the figures.")
        self._weights = self._weights or list(shape.users[shape.timeline.index_at(second)].values())
        if not any(self._weights):
            self._weights = []
            raise StallmarkError("No load has users in this step: wait for one that has.")
        wanted = share_out(users, self._order.loads, self._weights)
        running = getattr(self._runner, "reported_user_classes_count", None) or self._runner.user_classes_count
        pairs = zip(self._classes, wanted, strict=True)
        missing = sum(abs(number - running.get(kind.__name__, 0)) for kind, number in pairs)
        self._send(ChangedByHand(wanted, rate, missing / rate))

    def _stop_by_hand(self) -> None:
        self._send(StoppedByHand())

    def _leave_out(self) -> None:
        self._send(NotUnderstood("the load driver's controller"))

    def _end_load(self, load: str) -> None:
        over = {users for users, spec in zip(self._classes, self._order.loads, strict=True) if spec.name == load}
        PlannedShape.users = [
            {users: 0 if users in over else number for users, number in step.items()} for step in PlannedShape.users
        ]
        self._weights = [0 if users in over else weight for users, weight in zip(self._classes, self._weights)]  # noqa: B905
        self._load.end_load(load)

    def _get_ready(self) -> None:
        machines: list[LoadMachine] = []
        if not isinstance(self._load, Executors):
            try:
                machines = self._load.wait_until_ready()
            except MachinesMissing as error:
                self._send(Incomplete(str(error)))
                return
        if self._page:
            self._page.open()
        self._send(Ready(machines))

    def _go(self, start_ns: int) -> None:
        PlannedShape.start_ns = start_ns
        self._load.go(start_ns)
        if self._page:
            self._page.begin(start_ns)
        self._runner.start_shape()
        self._environment.events.test_stop.add_listener(lambda **_: self._send(Stopped()))

    def _deliver(self, message: Message) -> None:
        if isinstance(message, UsersHere):
            return  # Locust, who starts and stops them, knows
        self._send(message)
        if self._page and isinstance(message, Report):
            with suppress(Malformed):  # the controller notes it
                self._page.count(message.rows())

    def _send(self, message: Message) -> None:
        with suppress(Closed):  # the parent has gone: `run` ends for that, too
            self._parent.send(message)


def main() -> None:
    logging.getLogger("locust").setLevel(logging.ERROR)
    parent = inherited_channel(sys.argv[1])
    try:
        Conductor(parent, parent.expect(ConductorOrder)).run()
    except Closed:
        pass  # the parent has gone, and the executors go with us


if __name__ == "__main__":
    main()
