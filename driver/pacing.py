"""When a virtual user starts its next transaction.

A pacing answers with the scheduled time. Latency is counted from there, so that a transaction which could not
start in time, because its user still waited for the server, carries that delay (no coordinated omission).
"""

import random
import threading
from dataclasses import dataclass
from typing import Literal, Protocol

SECOND_NS = 1_000_000_000


class Pacing(Protocol):
    closed: bool
    """In a closed loop the next start depends on the last end; an idle user then is the driver's doing."""

    def next_start(self, ended_ns: int) -> int:
        """Scheduled start, monotonic ns, of the transaction after one that ended at `ended_ns`."""

    def give_back(self, scheduled_ns: int) -> None:
        """The user leaves before the transaction that was scheduled for it."""

    def unserved(self, now_ns: int) -> int:
        """Transactions that were due by now and that nobody has started."""


@dataclass(frozen=True)
class Arrivals:
    """How transactions arrive. `rate` is per second over all users of the step, for "fixed" and "poisson";
    `think_ms` belongs to "closed"."""

    kind: Literal["closed", "fixed", "poisson"] = "closed"
    rate: float | None = None
    think_ms: float = 0.0
    think: Literal["constant", "exponential"] = "constant"


class ThinkTime:
    """Closed loop: a user thinks, then acts. One per user."""

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
    """Open loop: arrivals come whether or not users are free. One per executor, shared by its users: whoever is
    free takes the next arrival, as customers in one queue before several counters."""

    closed = False

    def __init__(self, arrivals: Arrivals, share: float, rng: random.Random):
        """`share` is this executor's part of the whole rate. Arrivals begin when the first user asks for one."""
        assert arrivals.rate
        self._gap_ns = SECOND_NS / (arrivals.rate * share)
        self._poisson = arrivals.kind == "poisson"
        self._rng = rng
        self._next_ns: float | None = None
        self._given_back: list[int] = []
        self._lock = threading.Lock()

    def next_start(self, ended_ns: int) -> int:
        with self._lock:
            if self._given_back:
                return self._given_back.pop(0)
            if self._next_ns is None:
                self._next_ns = ended_ns + self._gap_ns * self._rng.random()
            return self._advance()

    def give_back(self, scheduled_ns: int) -> None:
        with self._lock:
            self._given_back = sorted([*self._given_back, scheduled_ns])

    def unserved(self, now_ns: int) -> int:
        """Ends the arrivals: those that are counted here nobody will get any more."""
        with self._lock:
            count = sum(scheduled <= now_ns for scheduled in self._given_back)
            while self._next_ns is not None and self._next_ns <= now_ns:
                self._advance()
                count += 1
            return count

    def _advance(self) -> int:
        assert self._next_ns is not None
        scheduled = self._next_ns
        self._next_ns += self._rng.expovariate(1 / self._gap_ns) if self._poisson else self._gap_ns
        return int(scheduled)
