"""The wait for a steady state during a run: it decides for every step when to begin to measure it."""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from stallmark.driver.load import LoadSpec
from stallmark.driver.rows import TransactionRow
from stallmark.driver.timeline import Step, Timeline, WarmUpLimits
from stallmark.record.manifest.workload import Waited

CHECK_EVERY_S = 5
SETTLED_AFTER_S = 2  # by then all executors have reported a second
LAST_PART = 0.5  # of the time since the ramp: what a step began with must not be held against it for ever


@dataclass
class SecondsSeen:
    """The throughput and latency of all loads together that executors of all machines have reported, by second."""

    committed: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    done: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    latency_us: dict[int, int] = field(default_factory=lambda: defaultdict(int))

    def add(self, row: TransactionRow) -> None:
        self.committed[row.second] += row.committed
        self.done[row.second] += row.committed + row.rolled_back
        self.latency_us[row.second] += row.latency_us

    def throughput(self, begin: int, end: int) -> np.ndarray:
        """Return the committed transactions in each of the seconds begin ≤ s < end."""
        return np.array([self.committed.get(second, 0) for second in range(begin, end)], dtype=float)

    def latency(self, begin: int, end: int) -> np.ndarray:
        """Return the mean latency in µs by second; NaN in seconds in which nothing ended."""
        done = np.array([self.done.get(second, 0) for second in range(begin, end)], dtype=float)
        total = np.array([self.latency_us.get(second, 0) for second in range(begin, end)], dtype=float)
        return np.divide(total, done, out=np.full(len(done), np.nan), where=done > 0)


class Settling:
    """The decision, step by step, when a timeline with warm-up limits is measured. `waited` tells how each was made."""

    def __init__(self, timeline: Timeline, loads: Sequence[LoadSpec], seen: SecondsSeen):
        self.timeline = timeline
        self._loads = loads
        self.waited: list[Waited] = []
        self._seen = seen
        self._check_s = 0.0

    @property
    def waiting(self) -> bool:
        """Tell whether a step is still to be decided."""
        return self.timeline.warm_up_limits is not None and len(self.waited) < len(self.timeline.steps)

    def check(self, now_s: float) -> bool:
        """Decide on the next step if it is time. Return whether that was done, and `timeline` is a new one. `now_s`
        counts from the run's start."""
        if not self.waiting or now_s < self._check_s:
            return False
        index = len(self.waited)
        step, earliest_s = self.timeline.steps[index], self._earliest_s()
        steady = earliest_s <= now_s < step.measure_s and self._steady(step, now_s)
        if not steady and now_s < step.measure_s:
            next_s = earliest_s if now_s < earliest_s else now_s + CHECK_EVERY_S
            self._check_s = min(next_s, step.measure_s)
            return False
        self._decide(index, min(math.ceil(now_s), step.measure_s) if steady else step.measure_s, steady)
        return True

    def pass_over(self) -> None:
        """Note that the last step has ended before it was measured as planned."""
        limits, step = self.timeline.warm_up_limits, self.timeline.steps[-1]
        if limits and len(self.waited) < len(self.timeline.steps):
            self._note(limits, step.measure_s - step.begin_s - step.ramp_s, steady=False)

    def _earliest_s(self) -> float:
        step, limits = self.timeline.steps[len(self.waited)], self.timeline.warm_up_limits
        assert limits
        return step.begin_s + step.ramp_s + limits.at_least_s

    def _steady(self, step: Step, now_s: float) -> bool:
        """Tell whether the load is steady: its throughput where one of the loads is a closed loop, else its latency:
        the throughput of an open loop is the rate of arrivals whatever the server does."""
        from stallmark.stats.steady_state import steady_enough

        index = self.timeline.steps.index(step)
        began_s = step.begin_s + step.ramp_s
        until = math.floor(now_s - SETTLED_AFTER_S)
        since = math.ceil(until - LAST_PART * (until - began_s))
        there = [load for load in self._loads if load.users_in(index)]
        if not there:
            return True
        closed = any(load.arrivals.kind == "closed" for load in there)
        series = (self._seen.throughput if closed else self._seen.latency)(since, until)
        return steady_enough(series, step.end_s - step.measure_s)

    def _decide(self, index: int, second: float, steady: bool) -> None:
        limits, step = self.timeline.warm_up_limits, self.timeline.steps[index]
        assert limits
        self.timeline = self.timeline.measuring_from(index, second)
        self._note(limits, second - step.begin_s - step.ramp_s, steady)

    def _note(self, limits: WarmUpLimits, seconds: float, steady: bool) -> None:
        self.waited.append(
            Waited(at_least_s=limits.at_least_s, at_most_s=limits.at_most_s, seconds=max(0.0, seconds), steady=steady)
        )
