"""A load whose rate is steered while the run goes on: what it did and what the server read and wrote, as windows.

Operations are counted by executors in whole seconds, I/Os by a collector of the server. Both come late, so a window
ends some seconds ago; and it begins after its rate has come into force everywhere.

Counted are I/Os of all the server's processes, because a checkpoint writes what users changed; without what timers
read, where their sessions tell it: that does not depend on the rate.
"""

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import NamedTuple

from stallmark.driver.rows import Rows
from stallmark.driver.steering import ENOUGH_S, NEAR, Goal, Outcome, Steering, Window, enough
from stallmark.driver.timeline import Step
from stallmark.record.manifest.workload import Steered

IN_FORCE_AFTER_S = 1.0
DRAINED_AFTER_S = 5.0  # when a rate is lowered: what was begun at the higher one still waits for its I/Os
REPORTED_AFTER_S = 2.0  # by then all executors have reported a second
COUNTED_AFTER_S = 1.0  # by then a server has counted an I/O (PGSTAT_MIN_INTERVAL)
FIRST_IOS = 20.0
"""I/Os that an operation is thought to need before one was seen: more than it does, so that the first rate is low."""


@dataclass(frozen=True)
class SteeringPlan:
    """The plan of a steered load, by its name: I/Os of data files that `mailboxes` are to have, per mailbox and second,
    and the mean time of reads that must not be exceeded. It is steered in `steps` in which it runs alone, by their
    places, and keeps its rate in all others."""

    load: str
    steps: frozenset[int]
    wanted: float
    mailboxes: int
    limit_ms: float

    @property
    def goal(self) -> Goal:
        return Goal(self.wanted * self.mailboxes, self.limit_ms)


def first_rate(iops: float) -> float:
    """Return the rate that a load begins with which is to do so many I/Os per second."""
    return iops / FIRST_IOS


class IOSample(NamedTuple):
    """I/Os of data files since any time before the run, and the time of their reads."""

    t: float
    reads: float
    writes: float
    read_ms: float | None


class IOCounting:
    """A load that goes by I/Os of data files. Call `count_io` from any thread."""

    def __init__(self) -> None:
        self._io: list[IOSample] = []

    def count_io(self, sample: IOSample) -> None:
        """Take a sample. One that counts less than the last one is of counters that began anew."""
        if self._io and sample.reads < self._io[-1].reads:
            self._io = []
        self._io.append(sample)


class SteeredLoad(IOCounting):
    """The steering of one load, step by step. `send` puts a rate into force.

    Of the transactions, by name, operations are those `of_users`, and what those `of_timers` read is left out. Call
    `count_io` from any thread, all else from one.
    """

    def __init__(
        self,
        plan: SteeringPlan,
        send: Callable[[float], None],
        *,
        of_users: Collection[str],
        of_timers: Collection[str] = (),
    ):
        super().__init__()
        self._plan = plan
        self._of_users, self._of_timers = of_users, of_timers
        self._send = send
        self._done: Counter[int] = Counter()  # by second
        self._timed: Counter[int] = Counter()  # transactions of timers
        self._sampled: Counter[int] = Counter()  # of these, those whose reads are known
        self._apart: Counter[int] = Counter()  # reads of those
        self._rate = first_rate(plan.goal.iops)
        self._index: int | None = None  # of the step that is, or was, steered
        self._ended = False
        self._steering = Steering(plan.goal, self._rate)
        self._windows: list[Window] = []
        self._since_s = 0

    @property
    def load(self) -> str:
        return self._plan.load

    def settled(self, step: int) -> bool:
        """Tell whether this load is no reason to wait before a step is measured."""
        return step not in self._plan.steps or (step == self._index and self._steering.outcome is not None)

    def count(self, reported: Rows) -> None:
        """Count what executors report of this load."""
        for row in reported.transactions:
            if row.load == self._plan.load:
                done = self._timed if row.transaction in self._of_timers else self._done
                if row.transaction in self._of_users or done is self._timed:
                    done[row.second] += row.committed + row.rolled_back
        for own in reported.transaction_io:
            if own.load == self._plan.load and own.transaction in self._of_timers:
                self._sampled[own.second] += own.sampled
                self._apart[own.second] += own.reads

    def check(self, index: int, step: Step, now_s: float) -> Steered | None:
        """Steer while `step`, the one under way, warms up. Return how its steering ended, once, when it is measured."""
        if index not in self._plan.steps or now_s < step.begin_s + step.ramp_s:
            return None
        if index != self._index:
            self._index, self._ended = index, False
            self._steering, self._windows = Steering(self._plan.goal, self._rate), []
            self._ask_for(self._rate, now_s)
        if self._ended:
            return None
        if now_s >= step.measure_s:
            self._ended = True
            return self._described()
        if now_s < step.measure_s - DRAINED_AFTER_S:
            self._look(now_s)
        else:
            self._steering.conclude()
            if self._steering.rate != self._rate:
                self._ask_for(self._steering.rate, now_s)
        return None

    def _ask_for(self, rate: float, now_s: float) -> None:
        self._since_s = math.ceil(now_s + (DRAINED_AFTER_S if rate < self._rate else IN_FORCE_AFTER_S))
        self._rate = rate
        self._send(rate)

    def _look(self, now_s: float) -> None:
        until = math.floor(now_s - REPORTED_AFTER_S)
        if until - self._since_s < ENOUGH_S or (window := self._window(self._since_s, until)) is None:
            return
        if not enough(window.seconds, window.ios):
            return
        self._windows.append(window)
        self._steering.see(window)
        self._since_s = until
        if self._steering.rate != self._rate:
            self._ask_for(self._steering.rate, now_s)

    def _window(self, since: int, until: int) -> Window | None:
        """Return what was done in the seconds since ≤ s < until; None as long as its I/Os are not known."""
        io = self._io
        begin, end = (self._at(io, second + COUNTED_AFTER_S) for second in (since, until))
        if begin is None or end is None:
            return None
        reads = end.reads - begin.reads
        seconds = range(since, until)
        known = begin.read_ms is not None and end.read_ms is not None and reads > 0
        return Window(
            self._rate,
            until - since,
            _over(self._done, seconds),
            max(0.0, reads - self._reads_apart(seconds)),
            end.writes - begin.writes,
            ((end.read_ms or 0.0) - (begin.read_ms or 0.0)) / reads if known else None,
        )

    def _reads_apart(self, seconds: range) -> float:
        """Return what timers read, those that were not sampled as those that were."""
        sampled = _over(self._sampled, seconds)
        return _over(self._apart, seconds) * _over(self._timed, seconds) / sampled if sampled else 0.0

    def _at(self, io: list[IOSample], t: float) -> IOSample | None:
        """Return the counters at this moment, between the samples on both its sides."""
        after = bisect_left(io, t, key=lambda sample: sample.t)
        if after == len(io) or (after == 0 and io[0].t > t):
            return None
        a, b = io[max(0, after - 1)], io[after]
        share = (t - a.t) / (b.t - a.t) if b.t > a.t else 1.0
        timed = a.read_ms is not None and b.read_ms is not None
        read_ms = (a.read_ms or 0.0) + share * ((b.read_ms or 0.0) - (a.read_ms or 0.0)) if timed else None
        return IOSample(t, a.reads + share * (b.reads - a.reads), a.writes + share * (b.writes - a.writes), read_ms)

    def _described(self) -> Steered:
        near = [one for one in self._windows if abs(one.rate / self._rate - 1) <= NEAR]
        seconds, reads = sum(one.seconds for one in near), sum(one.reads for one in near if one.read_ms is not None)
        return Steered(
            wanted=self._plan.wanted,
            mailboxes=self._plan.mailboxes,
            limit_ms=self._plan.limit_ms,
            outcome=(self._steering.outcome or Outcome.TIME).value,
            rate=self._rate,
            iops=sum(one.ios for one in near) / seconds if near else None,
            read_ms=sum(one.reads * (one.read_ms or 0.0) for one in near) / reads if reads else None,
            within=self._steering.within,
            windows=len(self._windows),
        )


def _over(counted: Counter[int], seconds: range) -> int:
    return sum(counted[second] for second in seconds)
