"""The conductor: Locust spawns and stops the users, and follows the load shape.

Run as `python -m stallmark.driver.locust_bridge FD`, because Locust patches the standard library of its process for
gevent. No transaction is executed here: a Locust user is a handle on a virtual user in an executor. The executors are
this machine's, or those of load machines that Locust's master commands: then none runs here.
"""

from locust import LoadTestShape  # isort: skip  (patches the process: before everything else)
import logging
import sys
import time
from contextlib import suppress

import gevent
from locust.env import Environment
from locust.runners import Runner

from stallmark.driver.channel import Channel, Closed, inherited_channel
from stallmark.driver.cluster.master import MachinesMissing, Master
from stallmark.driver.executor_pool import ExecutorPool
from stallmark.driver.messages import (
    ConductorOrder,
    Finished,
    Go,
    Incomplete,
    LoadMachine,
    Message,
    NewTimeline,
    Ready,
    Stopped,
    UsersHere,
)
from stallmark.driver.timeline import Step, Timeline
from stallmark.driver.user_handle import VirtualUserHandle


class PlannedShape(LoadTestShape):
    """The steps of the timeline as a Locust load shape."""

    timeline: Timeline
    start_ns: int

    def tick(self) -> tuple[int, float] | None:
        second = (time.monotonic_ns() - self.start_ns) / 1e9
        if second >= self.timeline.end_s:
            return None
        step = self.timeline.step_at(second)
        return step.users, spawn_rate(self.timeline, step)


def spawn_rate(timeline: Timeline, step: Step) -> float:
    """Return how many users per second start or stop, so that the step's number is reached within its ramp."""
    index = timeline.steps.index(step)
    change = abs(step.users - (timeline.steps[index - 1].users if index else 0)) or 1
    return change / step.ramp_s if step.ramp_s >= 1 else float(change)


class Conductor:
    """The conductor of one run, as the controller orders. It ends with the run, or when told to."""

    def __init__(self, parent: Channel, order: ConductorOrder):
        self._parent = parent
        self._order = order
        PlannedShape.timeline = order.timeline
        self._environment = Environment(user_classes=[VirtualUserHandle], shape_class=PlannedShape())
        self._load: ExecutorPool | Master
        self._runner: Runner
        if order.expected:
            self._load = self._runner = Master(self._environment, order.expected, self._deliver)
        else:
            self._load = VirtualUserHandle.pool = ExecutorPool(order.timeline, order.load, self._deliver)
            self._runner = self._environment.create_local_runner()

    def run(self) -> None:
        getting_ready = gevent.spawn(self._get_ready)
        try:
            message = self._parent.receive()
            if isinstance(message, Go):
                self._go(message.start_ns)
                self._follow_changes()
        finally:
            getting_ready.kill()
            self._runner.quit()
            if isinstance(self._load, ExecutorPool):
                self._load.quit()
        self._parent.send(Finished())

    def _follow_changes(self) -> None:
        """Take over new timelines until another message comes: steps move when the load is steady."""
        while isinstance(message := self._parent.receive(), NewTimeline):
            PlannedShape.timeline = message.timeline

    def _get_ready(self) -> None:
        machines: list[LoadMachine] = []
        if isinstance(self._load, Master):
            try:
                machines = self._load.wait_until_ready(self._order.timeline, self._order.load)
            except MachinesMissing as error:
                self._tell(Incomplete(str(error)))
                return
        self._tell(Ready(machines))

    def _go(self, start_ns: int) -> None:
        PlannedShape.start_ns = start_ns
        self._load.go(start_ns)
        self._runner.start_shape()
        self._environment.events.test_stop.add_listener(lambda **_: self._tell(Stopped()))

    def _deliver(self, message: Message) -> None:
        if isinstance(message, UsersHere):
            return  # Locust, who starts and stops them, knows
        self._tell(message)

    def _tell(self, message: Message) -> None:
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
