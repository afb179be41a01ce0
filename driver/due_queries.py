"""The queries of an open loop: they come due at a rate, whether or not a stream is free to execute them."""

import math
import random
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from stallmark.driver.pacing import Arrivals

LOOK_S = 0.2
"""How often a stream that waits for a query looks whether it is to end."""


@dataclass(frozen=True)
class QueryQueue:
    """The queries of a load until now: how many came `due`, and how many of them wait for one of its `streams`."""

    streams: int
    due: int
    waiting: int


class DueQueries:
    """The moments, in seconds of `clock`, at which queries come due. Any thread may take the next one.

    Streams wait for one moment together, and none holds one that lies ahead: at a query a minute it would keep the old
    rate for minutes after that has changed.
    """

    def __init__(self, arrivals: Arrivals, rng: random.Random, clock: Callable[[], float]):
        """Prepare the queries; none comes due before `take_rate`."""
        self._poisson = arrivals.kind == "poisson"
        self._rng = rng
        self._clock = clock
        self._gap_s = self._next_s = math.inf
        self._waiting: deque[float] = deque()
        self._due = self._taken = 0
        self._forgotten: list[float] = []
        self._changed = threading.Condition()

    def take_rate(self, rate: float) -> None:
        """Let queries come due at this rate per second from now on; with 0 none does. Those that wait are forgotten:
        they are of another rate."""
        with self._changed:
            now_s = self._clock()
            self._fall_due(now_s)
            self._forgotten += self._waiting
            self._waiting.clear()
            self._gap_s = 1 / rate if rate else math.inf
            first = self._rng.expovariate(1) if self._poisson else self._rng.random()
            self._next_s = now_s + first * self._gap_s if rate else math.inf
            self._changed.notify_all()

    def take(self, stopping: threading.Event) -> tuple[int, float] | None:
        """Wait until a query is due that no stream has begun. Return its number, from 0 without a gap, and when it was
        due; None once `stopping` is set."""
        with self._changed:
            while not stopping.is_set():
                now_s = self._clock()
                self._fall_due(now_s)
                if self._waiting:
                    self._taken += 1
                    return self._taken - 1, self._waiting.popleft()
                self._changed.wait(min(LOOK_S, self._next_s - now_s))
        return None

    def queue(self, streams: int) -> QueryQueue:
        """Return how many are due and wait now."""
        with self._changed:
            self._fall_due(self._clock())
            return QueryQueue(streams, self._due, len(self._waiting))

    def take_forgotten(self) -> list[float]:
        """Return when those were due that were forgotten before a stream was free, since the last call."""
        with self._changed:
            forgotten, self._forgotten = self._forgotten, []
            return forgotten

    def _fall_due(self, now_s: float) -> None:
        while self._next_s <= now_s:
            self._waiting.append(self._next_s)
            self._due += 1
            self._next_s += self._rng.expovariate(1) * self._gap_s if self._poisson else self._gap_s
