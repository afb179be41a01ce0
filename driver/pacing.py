"""The pacing of virtual users and queries: what each starts next, by its deck, and when."""

import math
import random
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Generic, Literal, Protocol, TypeVar

# The pacing of virtual users: when each starts its next transaction.
#
# A pacing returns the scheduled time. Latency is counted from there. So a transaction that could not start in time,
# because its user still waited for the server, carries that delay (no coordinated omission).

SECOND_NS = 1_000_000_000


AHEAD_NS = SECOND_NS // 20
"""The time before an arrival from which on a user may have it."""
LONGEST_S = 3600.0
"""The longest wait without a check: an Event cannot wait for centuries, as a tiny rate would ask."""


class FreeUser(Protocol):
    """A user who has nothing to do. `awake` is set where there may be something, and where the user is to end."""

    awake: threading.Event

    @property
    def is_ending(self) -> bool: ...


class Pacing(Protocol):
    closed: bool
    """In a closed loop the next start depends on the last end; an idle user then is the driver's doing."""

    def next_start(self, ended_ns: int, user: FreeUser) -> int | None:
        """Return the scheduled start, in monotonic ns, of the transaction after one of the user's that ended at
        `ended_ns`.

        None when nothing is expected of the user any more.
        """

    def give_back(self, scheduled_ns: int) -> None:
        """Return a scheduled transaction whose user leaves before it began."""

    def stop_and_count_unserved(self, now_ns: int) -> int:
        """Stop the arrivals, and return the number of transactions that were due by now and not started."""


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

    def next_start(self, ended_ns: int, user: FreeUser) -> int:
        if not self._mean_ns:
            return ended_ns
        return ended_ns + int(self._draw(1 / self._mean_ns) if self._draw else self._mean_ns)

    def give_back(self, scheduled_ns: int) -> None:
        pass  # nothing to return: the user has no next transaction

    def stop_and_count_unserved(self, now_ns: int) -> int:
        return 0


class OpenLoop:
    """The open loop: arrivals come whether or not users are free. The users of an executor share an instance, and each
    free user takes the next arrival.

    Free users queue. Only the first of them (the leader) waits until the next arrival is near, and takes it then; the
    others wait to be woken. A changed rate therefore takes effect immediately: no user holds an arrival that is far
    ahead.

    The executor's `share` of the rate sets the mean gap between its arrivals. The rest of the current gap is kept in
    gaps, not in seconds, so that a change of rate keeps the phase. For example, 100 arrivals per second with a share of
    0.25 give a gap of 40 ms. If the next arrival is 10 ms ahead (0.25 gaps), and the rate falls to 50 per second, the
    gap becomes 80 ms, and that arrival comes in 20 ms.
    """

    closed = False

    def __init__(self, arrivals: Arrivals, rng: random.Random):
        """Prepare the arrivals; nothing arrives before `set_share`."""
        assert arrivals.rate
        self._rate = arrivals.rate
        self._poisson = arrivals.kind == "poisson"
        self._rng = rng
        self._share = 0.0
        self._gap_ns = math.inf
        # A fixed rate begins at a random phase: executors that begin together must not act at the same moments.
        self._left = rng.expovariate(1) if self._poisson else rng.random()  # gaps until the next arrival
        self._last_ns = 0  # the arrival that was handed out last
        self._next_ns = math.inf
        self._waiting: deque[int] = deque()  # due, or given back: earliest first
        self._leader: threading.Event | None = None  # the leader among the free users
        self._followers: dict[threading.Event, None] = {}  # the followers, in order
        self._lock = threading.Lock()

    def set_share(self, share: float, now_ns: int) -> None:
        """Take `share` (0 to 1) of the whole rate from now on; with 0 nothing arrives here any more."""
        with self._lock:
            self._share = share
            self._retime(now_ns)
            if not share:
                self._waiting = deque(scheduled for scheduled in self._waiting if scheduled <= now_ns)
            self._wake_next(everyone=not share)

    def set_rate(self, rate: float, now_ns: int) -> None:
        """Set the rate of all arrivals from now on. Arrivals that wait for a user are dropped: they belong to another
        rate.
        """
        with self._lock:
            self._rate = rate
            self._retime(now_ns)
            self._waiting.clear()
            self._wake_next()

    def next_start(self, ended_ns: int, user: FreeUser) -> int | None:
        awake = user.awake
        while True:
            # Cleared before the check under the lock, so that a wake-up that comes later stays set.
            awake.clear()
            with self._lock:
                if user.is_ending:
                    self._leave_queue(awake)
                    return None
                until_ns = self._next_ns - AHEAD_NS - time.monotonic_ns()
                # Without further arrivals the user leaves the queue too: `_next_arrival` then returns None.
                if self._waiting or until_ns <= 0 or until_ns == math.inf:
                    self._leave_queue(awake)
                    return self._next_arrival()
                if self._leader is None:
                    self._leader = awake
                elif self._leader is not awake:
                    self._followers.setdefault(awake)
                # Leader and followers: only the leader wakes up by the clock, the others when they are woken.
                wait_s = min(until_ns / SECOND_NS, LONGEST_S) if self._leader is awake else None
            awake.wait(wait_s)

    def next_arrival(self) -> int | None:
        """Return the next arrival, however far ahead it is; None if none comes."""
        with self._lock:
            return self._next_arrival()

    def give_back(self, scheduled_ns: int) -> None:
        with self._lock:
            if self._next_ns < math.inf or scheduled_ns <= time.monotonic_ns():
                self._waiting = deque(sorted([*self._waiting, scheduled_ns]))
                self._wake_next()

    def stop_and_count_unserved(self, now_ns: int) -> int:
        """End the arrivals, and return how many were due and not served."""
        self.set_share(0, now_ns)
        return len(self._waiting)

    def pop_due_before(self, due_ns: int) -> list[int]:
        """Remove and return the arrivals that were due before then and that no user has taken."""
        with self._lock:
            late = []
            while self._waiting and self._waiting[0] < due_ns:
                late.append(self._waiting.popleft())
            while self._next_ns < due_ns:
                late.append(self._advance())
            return late

    def _next_arrival(self) -> int | None:
        if self._waiting:
            return self._waiting.popleft()
        return self._advance() if self._next_ns < math.inf else None

    def _leave_queue(self, awake: threading.Event) -> None:
        """Let a user out of the line, and have the next one be first."""
        if self._leader is awake:
            self._leader = None
        else:
            self._followers.pop(awake, None)
        if self._leader is None:
            self._wake_next()

    def _wake_next(self, *, everyone: bool = False) -> None:
        """Wake the first free user of the queue, or all of them, to check the arrivals again."""
        if self._leader is None and self._followers:
            self._leader = next(iter(self._followers))
            del self._followers[self._leader]
        if self._leader is not None:
            self._leader.set()
        if everyone:
            for waiting in self._followers:
                waiting.set()

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


# The mix of transactions as a shuffled deck: a true permutation, not a weighted draw.
#
# After every full deck the mix is met exactly, so two runs differ in order only.

Card = TypeVar("Card")


class Dealer(Generic[Card]):
    """A dealer of cards to all users of an executor, so that what is dealt is never further from the mix than one
    deck allows."""

    def __init__(self, deck: Mapping[Card, int], rng: random.Random):
        self._cards = [card for card, count in deck.items() for _ in range(count)]
        self._rng = rng
        self._left: list[Card] = []
        self._lock = threading.Lock()

    def next_card(self) -> Card:
        """Return the next card. The deck is reshuffled when it is used up."""
        with self._lock:
            if not self._left:
                self._left = self._cards.copy()
                self._rng.shuffle(self._left)
            return self._left.pop()


# The queries of an open loop: they come due at a rate, whether or not a stream is free to execute them.

LOOK_S = 0.2
"""The time between two checks of a waiting stream, whether it is to end."""


@dataclass(frozen=True)
class QueryQueue:
    """The queries of a load until now: how many came `due`, and how many of them wait for one of its `streams`."""

    streams: int
    due: int
    waiting: int


class DueQueries:
    """The moments, in seconds of `clock`, at which queries come due. Any thread may take the next one.

    Streams wait for one moment together, and none holds a query that is not due yet: at one query a minute, it would
    keep the old rate for minutes after a change.
    """

    def __init__(self, arrivals: Arrivals, rng: random.Random, clock: Callable[[], float]):
        """Prepare the queries; none comes due before `set_rate`."""
        self._poisson = arrivals.kind == "poisson"
        self._rng = rng
        self._clock = clock
        self._gap_s = self._next_s = math.inf
        self._waiting: deque[float] = deque()
        self._due = self._taken = 0
        self._forgotten: list[float] = []
        self._changed = threading.Condition()

    def set_rate(self, rate: float) -> None:
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

    def next_due(self, stopping: threading.Event) -> tuple[int, float] | None:
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
        """Return the queue of queries at this moment."""
        with self._changed:
            self._fall_due(self._clock())
            return QueryQueue(streams, self._due, len(self._waiting))

    def pop_forgotten(self) -> list[float]:
        """Return the due times of queries that were dropped before a stream was free, since the last call."""
        with self._changed:
            forgotten, self._forgotten = self._forgotten, []
            return forgotten

    def _fall_due(self, now_s: float) -> None:
        while self._next_s <= now_s:
            self._waiting.append(self._next_s)
            self._due += 1
            self._next_s += self._rng.expovariate(1) * self._gap_s if self._poisson else self._gap_s
