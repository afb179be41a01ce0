"""The conductor: Locust spawns and stops the users, follows the load shape and shows its web page.

Run as `python -m stallmark.driver.locust_bridge FD`, because Locust patches the standard library of its process for
gevent. No transaction is executed here: a Locust user is a handle on a virtual user in an executor, and Locust's
statistics are fed from the executors' histograms. The executors are this machine's, or those of load machines that
Locust's master commands: then none runs here.
"""

from locust import LoadTestShape, User, task  # isort: skip  (patches the process: before everything else)
import logging
import sys
import time
from contextlib import suppress
from typing import Any

import gevent
import numpy as np
from locust.env import Environment
from locust.runners import Runner
from locust.stats import StatsEntry

from stallmark.driver.cluster.join import ExpectedMachines
from stallmark.driver.cluster.master import MachinesMissing, Master
from stallmark.driver.executor_pool import ExecutorPool
from stallmark.driver.messages import Channel, Closed, inherited_channel
from stallmark.driver.timeline import Step, Timeline
from stallmark.record import histogram as hdr

KEPT_S = 60  # of Locust's counts by the second


class VirtualUserHandle(User):
    """A Locust user that stands for a virtual user in an executor."""

    pool: ExecutorPool

    def on_start(self) -> None:
        self.number = self.pool.start_user()

    @task
    def be_driven(self) -> None:
        gevent.sleep(3600)

    def on_stop(self) -> None:
        self.pool.stop_user(self.number)


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
    """Users per second that reach the step's number within its ramp."""
    index = timeline.steps.index(step)
    change = abs(step.users - (timeline.steps[index - 1].users if index else 0)) or 1
    return change / step.ramp_s if step.ramp_s >= 1 else float(change)


class Conductor:
    """One run: told the timeline by the parent, ends with it or when told to."""

    def __init__(self, parent: Channel, order: dict[str, Any]):
        self._parent = parent
        PlannedShape.timeline = timeline = Timeline.from_dict(order["timeline"])
        self._environment = Environment(user_classes=[VirtualUserHandle], shape_class=PlannedShape())
        self._load: ExecutorPool | Master
        self._runner: Runner
        if order["expected"]:
            expected = ExpectedMachines(**order["expected"])
            self._load = self._runner = Master(self._environment, expected, self._deliver)
        else:
            self._load = VirtualUserHandle.pool = ExecutorPool(timeline, order["executor"], self._deliver)
            self._runner = self._environment.create_local_runner()
        self._order = {"timeline": order["timeline"], "executor": order["executor"]}
        self._web = None
        if order["web_port"]:
            self._web = self._environment.create_web_ui("127.0.0.1", order["web_port"])

    def run(self) -> None:
        getting_ready = gevent.spawn(self._get_ready)
        try:
            kind, fields = self._parent.receive()
            if kind == "go":
                self._go(fields["start_ns"])
                self._follow_changes()
        finally:
            getting_ready.kill()
            self._runner.quit()
            if isinstance(self._load, ExecutorPool):
                self._load.quit()
            if self._web:
                self._web.stop()
        self._parent.send("finished")

    def _follow_changes(self) -> None:
        """Until "quit": the timeline that steps have been moved to, because the load was steady."""
        while True:
            kind, fields = self._parent.receive()
            if kind != "timeline":
                return
            PlannedShape.timeline = Timeline.from_dict(fields["timeline"])

    def _get_ready(self) -> None:
        machines: list[dict[str, Any]] = []
        if isinstance(self._load, Master):
            try:
                machines = self._load.gather(self._order)
            except MachinesMissing as error:
                self._tell("apart", why=str(error))
                return
        self._tell("ready", machines=machines)

    def _go(self, start_ns: int) -> None:
        PlannedShape.start_ns = start_ns
        self._load.go(start_ns)
        self._runner.start_shape()
        self._environment.events.test_stop.add_listener(lambda **_: self._tell("stopped"))

    def _deliver(self, kind: str, **fields: Any) -> None:
        if kind == "users":
            return  # Locust, who starts and stops them, knows
        if kind == "report":
            for row in fields["transactions"]:
                feed(self._environment, row)
        self._tell(kind, **fields)

    def _tell(self, kind: str, **fields: Any) -> None:
        with suppress(Closed):  # the parent has gone: `run` ends for that, too
            self._parent.send(kind, **fields)


def feed(environment: Environment, row: dict[str, Any]) -> None:
    """Add a row of the `transactions` table to Locust's statistics, which know whole milliseconds."""
    done = row["committed"] + row["rolled_back"]
    now = int(time.time())
    times = _as_locust_counts(row["latency"]) if done else {}
    data: Any = {
        "name": row["transaction"], "method": "SQL", "last_request_timestamp": time.time(), "start_time": time.time(),
        "num_requests": done + row["failed"], "num_none_requests": 0, "num_failures": row["failed"],
        "total_response_time": row["latency_us"] / 1000, "total_content_length": 0,
        "max_response_time": max(times, default=0), "min_response_time": min(times, default=None),
        "response_times": times, "num_reqs_per_sec": {now: done + row["failed"]},
        "num_fail_per_sec": {now: row["failed"]} if row["failed"] else {},
    }  # fmt: skip
    stats = environment.stats
    entry = StatsEntry.unserialize(data, stats)
    for known in (stats.get(row["transaction"], "SQL"), stats.total):
        known.extend(entry)
        _forget(known, before=now - KEPT_S)


def _forget(entry: StatsEntry, before: int) -> None:
    """Locust keeps a count for every second and looks at the last few: a long run would fill the memory with them."""
    for counts in (entry.num_reqs_per_sec, entry.num_fail_per_sec):
        for second in [second for second in counts if second < before]:
            del counts[second]


# Whole milliseconds with two significant digits, as StatsEntry.log keeps them, for every counter of a histogram.
_MILLISECONDS = hdr.VALUES_US / 1000
_GRAIN = 10.0 ** np.maximum(0, np.floor(np.log10(np.maximum(_MILLISECONDS, 1))) - 1)
_ROUNDED = (np.round(_MILLISECONDS / _GRAIN) * _GRAIN).astype(int)


def _as_locust_counts(blob: bytes) -> dict[int, int]:
    counts = hdr.counts(blob)
    used = np.flatnonzero(counts)
    rounded, places = np.unique(_ROUNDED[used], return_inverse=True)
    return dict(zip(rounded.tolist(), np.bincount(places, counts[used]).astype(int).tolist(), strict=True))


def main() -> None:
    logging.getLogger("locust").setLevel(logging.ERROR)
    parent = inherited_channel(sys.argv[1])
    try:
        _, order = parent.receive()
        Conductor(parent, order).run()
    except Closed:
        pass  # the parent has gone, and the executors go with us


if __name__ == "__main__":
    main()
