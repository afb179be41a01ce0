"""The steering of an open loop: which rate of operations makes the server do as many I/Os as are wanted.

A state machine without clock, server or thread. It sees windows, each at a fixed rate, and says the next rate. It ends
with an outcome, each of which is a result: the goal is reached, the limit of reads breaks before, what is asked for
is not done, or the server does more by itself.

I/Os for each operation are estimated from all windows near the present rate. Reads fall while caches warm: where the
later half of the windows tells another number than the earlier one, the oldest are forgotten. Writes come in bursts of
checkpoints: the estimate counts as known only when parts of these windows, bursts or none, agree on it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from statistics import fmean

MOST_CHANGE = 2.0
"""The most that a rate is raised or lowered by at once: what a doubled load does is seen before it is doubled again."""
NEAR = 0.1
"""Windows whose rates differ by no more tell the same number of I/Os for each operation: what the server does by itself
is a part of it, and as many operations share it."""
PARTS = 10
"""Parts of the windows by whose scatter the estimate is judged."""
QUANTILE = 2.26  # Student's t of PARTS - 1 degrees of freedom: 95 %
SETTLED_WITHIN = 0.03
"""The width to each side of the 95 % interval, as a share of the goal, with which the goal counts as reached."""
DEADBAND = 0.02
"""A rate nearer than this to the wanted one is left alone."""
DRIFTS = 2.0
"""Standard errors between the halves of the windows from which on they tell of a drift."""
ENOUGH_S, ENOUGH_IOS, LONGEST_S = 5.0, 400.0, 15.0
"""A window lasts until it has so many seconds and I/Os, or the longest time."""
FEWEST_READS = 30
"""The reads of a window whose mean time is a figure."""
FAR = 3.0
"""Reads that take so many times the limit in one window have broken it."""
CLOSED = 1.08
"""The bracket of the limit is closed when the lowest rate that broke it is only so many times the highest that kept
it."""
LOWEST = 0.05
"""The share of the goal below which no lower rate is tried."""
MOST_IOS = 2_000
"""An operation is never thought to need more I/Os: what the server does at such a low rate is its own doing."""
SHORT_BY = 0.1
"""The share of the operations asked for that may be missing."""


def enough(seconds: float, ios: float) -> bool:
    """Tell whether a window has lasted long enough to go by."""
    return seconds >= LONGEST_S or (seconds >= ENOUGH_S and ios >= ENOUGH_IOS)


class Outcome(StrEnum):
    REACHED = "reached"
    """The I/Os are those of the goal."""
    LIMIT = "limit"
    """Reads take longer than the limit at any higher rate, and the goal is not reached at this one."""
    UNSERVED = "unserved"
    """Operations asked for are not done: there are too few users, or the server can do no more for another reason."""
    ALONE = "alone"
    """The server does more I/Os by itself, however few operations are asked for."""
    TIME = "time"
    """The time was over before one of the others was certain."""


@dataclass(frozen=True)
class Goal:
    """I/Os per second, and the mean time of reads that must not be exceeded."""

    iops: float
    limit_ms: float


@dataclass(frozen=True)
class Window:
    """Operations and I/Os while the rate asked for was the same. `read_ms` is the mean of the reads."""

    rate: float
    seconds: float
    done: int
    reads: float
    writes: float
    read_ms: float | None

    @property
    def ios(self) -> float:
        return self.reads + self.writes


@dataclass(frozen=True)
class Estimate:
    """I/Os for each operation, `within` this share of it (95 %; infinite as long as windows are too few). The later
    half of the windows alone tells `later`; the halves differ by `drift`, as a share, and by so many standard errors.
    """

    ios: float
    within: float
    later: float
    drift: float
    drift_errors: float


class Steering:
    """The steering of one load in one step. `rate` is what to ask for now; `outcome` is None until it has settled."""

    def __init__(self, goal: Goal, rate: float):
        self.goal = goal
        self.rate = rate
        self.outcome: Outcome | None = None
        self.estimate: Estimate | None = None
        self._windows: list[Window] = []  # near the present rate
        self._kept: float | None = None  # the highest rate at which reads kept the limit
        self._broke: float | None = None  # the lowest at which they did not
        self._ios_when_broke = 0.0  # for each operation
        self._tried_again = False
        self._short: list[Window] = []  # in a row, in which operations were missing

    def see(self, window: Window) -> None:
        """Take in a window at the present rate, and decide on the next rate."""
        if self.outcome not in (None, Outcome.REACHED):
            return  # a rate at an edge stays as it is: what it does is to be measured
        self._windows.append(window)
        kept = self._keeps_limit()
        if kept is False:
            self._back_off(window)
            return
        if kept:
            self._kept = max(self.rate, self._kept or 0.0)
            if self._broke is not None and self._kept >= self._broke:
                self._broke, self._tried_again = None, False
        if self._falls_short(window):
            return
        known, near = self._without_drift(), self._near()
        self.estimate = known if len(near) == len(self._windows) else estimate(near)
        self._go_on(known)

    def conclude(self) -> None:
        """End where the time is over: at the highest rate known to keep the limit, where a higher one broke it."""
        if self.outcome is None and self._broke is not None and self._kept is not None:
            self.rate = min(self.rate, self._kept)

    @property
    def within(self) -> float | None:
        """Return how far off the estimate of I/Os may be, as a share of it; None as long as nobody knows."""
        return self.estimate.within if self.estimate and math.isfinite(self.estimate.within) else None

    def _keeps_limit(self) -> bool | None:
        """Tell whether reads at this rate keep the limit; None as long as that is not known. Windows scatter: the mean
        must be a standard error off the limit, or of many."""
        here = [one for one in self._windows if abs(one.rate / self.rate - 1) <= DEADBAND]
        timed = [(one.read_ms, one.reads) for one in here if one.read_ms is not None and one.reads >= FEWEST_READS]
        if timed and timed[-1][0] > FAR * self.goal.limit_ms:
            return False
        if len(timed) < 2:
            return None
        times, reads = zip(*timed, strict=True)
        mean, middle = fmean(times, reads), [fmean(times)] * len(times)
        error = math.dist(times, middle) / math.sqrt(len(times) * (len(times) - 1))
        if abs(mean - self.goal.limit_ms) < error and len(times) < PARTS:
            return None
        return mean <= self.goal.limit_ms

    def _back_off(self, window: Window) -> None:
        self._broke, self._ios_when_broke = self.rate, window.ios / max(1, window.done)
        if window.ios / window.seconds < LOWEST * self.goal.iops:
            self.outcome = Outcome.LIMIT
        elif self._kept is None or self._kept >= self.rate:  # what was kept once is kept no more
            self._kept = None
            self._move(self.rate / MOST_CHANGE)
        elif self._closed:
            self._move(self._kept)
        else:
            self._move(math.sqrt(self._kept * self._broke))

    @property
    def _closed(self) -> bool:
        return bool(self._kept and self._broke and self._broke <= self._kept * CLOSED)

    def _falls_short(self, window: Window) -> bool:
        """Tell whether operations were missing; settle on what was done after two such windows in a row."""
        asked = window.rate * window.seconds
        missing = asked - window.done
        if missing <= max(SHORT_BY * asked, 3 * math.sqrt(asked)):
            self._short.clear()
            return False
        self._short.append(window)
        if len(self._short) == 2:
            if done := sum(w.done for w in self._short):  # of none no rate follows
                self.rate = (1 - SHORT_BY) * done / sum(w.seconds for w in self._short)
            self.outcome = Outcome.UNSERVED
        return True

    def _near(self) -> list[Window]:
        return [one for one in self._windows if abs(one.rate / self.rate - 1) <= NEAR]

    def _without_drift(self) -> Estimate | None:
        """Return the estimate from all windows, the oldest forgotten while they tell of a drift."""
        while (found := estimate(self._windows)) and found.drift_errors > DRIFTS and len(self._windows) > 2 * PARTS:
            del self._windows[: len(self._windows) // 4]
        return found

    def _go_on(self, known: Estimate | None) -> None:
        if not known:
            return  # nothing was done
        here = self.estimate
        found = here if here and here.within <= known.within else known
        wanted = self.goal.iops / found.later if found.later > 0 else math.inf
        error = found.within / QUANTILE if math.isfinite(found.within) else SHORT_BY
        if self._broke is not None and wanted >= self._broke:
            self._at_the_limit(found)
        elif wanted * MOST_IOS < self.goal.iops:
            self.outcome = Outcome.ALONE
        elif abs(wanted / self.rate - 1) > max(DEADBAND, error):
            self.outcome = None
            self._move(wanted)
        elif found is here and found.within <= SETTLED_WITHIN and found.drift <= SETTLED_WITHIN:
            self.outcome = Outcome.REACHED
            self.rate = wanted
        else:
            self.outcome = None

    def _at_the_limit(self, found: Estimate) -> None:
        """Close the bracket between the rates that kept and broke the limit. Open it again where caches have warmed
        since, so that as many operations are fewer I/Os, and once because it may have been chance."""
        assert self._broke is not None
        self.outcome = None
        if self._kept is None or self._kept < self.rate:
            return  # it is not known of this rate yet
        if not self._closed:
            self._move(math.sqrt(self._kept * self._broke))
        elif math.isfinite(found.within) and found.later * CLOSED < self._ios_when_broke:
            self._broke *= self._ios_when_broke / found.later
            self._ios_when_broke = found.later
        elif math.isfinite(found.within) and not self._tried_again:
            self._tried_again = True
            self._move(self._broke)
        elif self._tried_again:
            self.outcome = Outcome.LIMIT

    def _move(self, rate: float) -> None:
        if rate == self.rate:
            return
        self.rate = min(self.rate * MOST_CHANGE, max(self.rate / MOST_CHANGE, rate))
        if self._broke is not None and self.rate > self._broke * CLOSED:
            self._broke, self._tried_again = None, False
        self._short.clear()


def estimate(windows: Sequence[Window]) -> Estimate | None:
    """Estimate I/Os for each operation: a ratio of sums, whose error is the scatter of parts about it (batch means)."""
    parts = [_summed(part) for part in _parts(windows)]
    if not any(done for _, done in parts):
        return None
    ios = _ratio(parts)
    if len(parts) < PARTS or not ios:
        return Estimate(ios, math.inf, ios, 0.0, 0.0)
    within = QUANTILE * _error(parts) / ios
    earlier, later = parts[: PARTS // 2], parts[PARTS // 2 :]
    ratios = [_ratio(half) for half in (earlier, later)]
    between = math.hypot(_error(earlier), _error(later))
    off = abs(ratios[1] - ratios[0])
    return Estimate(ios, within, ratios[1], off / ios, off / between if between else 0.0)


def _parts(windows: Sequence[Window]) -> list[Sequence[Window]]:
    """Return neighbouring windows together, as many parts as are judged."""
    cuts = [len(windows) * part // PARTS for part in range(PARTS + 1)]
    return [windows[since:until] for since, until in pairwise(cuts) if since < until]


def _summed(windows: Sequence[Window]) -> tuple[float, float]:
    return sum([one.reads + one.writes for one in windows]), float(sum([one.done for one in windows]))


def _ratio(parts: Sequence[tuple[float, float]]) -> float:
    done = sum(part for _, part in parts)
    return sum(ios for ios, _ in parts) / done if done else 0.0


def _error(parts: Sequence[tuple[float, float]]) -> float:
    """Return the standard error of the ratio of sums over these parts."""
    ratio, done = _ratio(parts), sum(part for _, part in parts)
    scatter = sum((ios - ratio * part) ** 2 for ios, part in parts) * len(parts) / (len(parts) - 1)
    return math.sqrt(scatter) / done if done else math.inf
