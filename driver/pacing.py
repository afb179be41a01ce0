"""The pacing of virtual users: when each starts its next transaction.

A pacing returns the scheduled time. Latency is counted from there. So a transaction that could not start in time,
because its user still waited for the server, carries that delay (no coordinated omission).
"""

import math
import random
import threading
import time
from collections import deque
from dataclasses import dataclass, replace
from typing import Literal, Protocol

SECOND_NS = 1_000_000_000


class Pacing(Protocol):
    closed: bool
    """In a closed loop the next start depends on the last end; an idle user then is the driver's doing."""

    def next_start(self, ended_ns: int) -> int | None:
        """Return the scheduled start, in monotonic ns, of the transaction after one that ended at `ended_ns`.

        None when nothing is expected of the user any more.
        """

    def give_back(self, scheduled_ns: int) -> None:
        """Return a scheduled transaction whose user leaves before it began."""

    def unserved(self, now_ns: int) -> int:
        """Return how many transactions were due by now and have not been started."""


@dataclass(frozen=True)
class Arrivals:
    """The arrivals of transactions. `rate` is per second over all users of the step, for "fixed" and "poisson";
    `think_ms` belongs to "closed"."""

    kind: Literal["closed", "fixed", "poisson"] = "closed"
    rate: float | None = None
    think_ms: float = 0.0
    think: Literal["constant", "exponential"] = "constant"

    def times(self, factor: float) -> "Arrivals":
        """Return them with a multiple of their rate; those of a closed loop have none."""
        return self if self.rate is None else replace(self, rate=factor * self.rate)


class ThinkTime:
    """The closed loop: a user thinks, then acts. One instance per user."""

    closed = True

    def __init__(self, arrivals: Arrivals, rng: random.Random):
        self._mean_ns = arrivals.think_ms * 1e6
        self._draw = rng.expovariate if arrivals.think == "exponential" else None

    def next_start(self, ended_ns: int) -> int:
        if not self._mean_ns:
            return ended_ns
        return ended_ns + int(self._draw(1 / self._mean_ns) if self._draw else self._mean_ns)

    def give_back(self, scheduled_ns: int) -> None:
        pass  # who has left has no next transaction

    def unserved(self, now_ns: int) -> int:
        return 0


class OpenLoop:
    """The open loop: arrivals come whether or not users are free. One instance per executor, shared by its users:
    whoever is free takes the next arrival."""

    closed = False

    def __init__(self, arrivals: Arrivals, rng: random.Random):
        """Prepare the arrivals; nothing arrives before `take_share`."""
        assert arrivals.rate
        self._rate = arrivals.rate
        self._poisson = arrivals.kind == "poisson"
        self._rng = rng
        self._share = 0.0
        self._gap_ns = math.inf
        self._left = rng.expovariate(1) if self._poisson else rng.random()  # gaps until the next arrival
        self._last_ns = 0  # the arrival that was handed out last
        self._next_ns = math.inf
        self._waiting: deque[int] = deque()  # due, or given back: earliest first
        self._lock = threading.Lock()

    def take_share(self, share: float, now_ns: int) -> None:
        """Take `share` (0 to 1) of the whole rate from now on; with 0 nothing arrives here any more."""
        with self._lock:
            self._share = share
            self._retime(now_ns)
            if not share:
                self._waiting = deque(scheduled for scheduled in self._waiting if scheduled <= now_ns)

    def take_rate(self, rate: float, now_ns: int) -> None:
        """Let all arrivals come at this rate from now on. Those that nobody has taken up yet are forgotten: they are of
        another rate."""
        with self._lock:
            self._rate = rate
            self._retime(now_ns)
            self._waiting.clear()

    def next_start(self, ended_ns: int) -> int | None:
        with self._lock:
            if self._waiting:
                return self._waiting.popleft()
            return self._advance() if self._next_ns < math.inf else None

    def give_back(self, scheduled_ns: int) -> None:
        with self._lock:
            if self._next_ns < math.inf or scheduled_ns <= time.monotonic_ns():
                self._waiting = deque(sorted([*self._waiting, scheduled_ns]))

    def unserved(self, now_ns: int) -> int:
        """End the arrivals, and return how many were due and not served."""
        self.take_share(0, now_ns)
        return len(self._waiting)

    def _retime(self, now_ns: int) -> None:
        while self._next_ns <= now_ns:
            self._waiting.append(self._advance())
        since = max(now_ns, self._last_ns)
        if self._gap_ns < math.inf:
            self._left = (self._next_ns - since) / self._gap_ns
        self._gap_ns = SECOND_NS / (self._rate * self._share) if self._share else math.inf
        self._next_ns = since + self._left * self._gap_ns if self._share else math.inf

    def _advance(self) -> int:
        self._last_ns = int(self._next_ns)
        self._next_ns += self._rng.expovariate(1 / self._gap_ns) if self._poisson else self._gap_ns
        return self._last_ns
