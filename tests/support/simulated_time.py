"""Time that costs none: it goes on only while every thread of a sampler waits, to where the first of them wakes."""

import threading
from collections.abc import Callable


class Clock:
    """In place of the module `time` in one module of ours: to sleep moves it on, and nothing else does."""

    def __init__(self, *moments: float):
        """`moments`: what it tells, one after another; it then stays at the last."""
        self._next = list(moments or (0.0,))

    def monotonic(self) -> float:
        return self._next.pop(0) if len(self._next) > 1 else self._next[0]

    def sleep(self, seconds: float) -> None:
        self._next = [self._next[-1] + seconds]


class Time:
    """A clock in seconds, and what a sampler waits with. `until`: when it is told to stop; waits last `late` too
    long."""

    def __init__(self, until: float, late: Callable[[], float] = lambda: 0.0):
        self.now = 0.0
        self.until = until
        self.late = late
        self.threads = 1
        self._asleep: list[float] = []
        self._moved = threading.Condition()

    def clock(self) -> float:
        return self.now

    def wait(self, seconds: float) -> bool:
        self.sleep(seconds + self.late())
        if self.now < self.until:
            return False
        with self._moved:
            self.threads -= 1  # it takes its last sample, for which nobody has to wait
            self._go_on()
        return True

    def sleep(self, seconds: float) -> None:
        with self._moved:
            due = self.now + seconds
            self._asleep.append(due)
            self._go_on()
            self._moved.wait_for(lambda: self.now >= due)
            self._asleep.remove(due)

    def _go_on(self) -> None:
        if self._asleep and len(self._asleep) >= self.threads:
            self.now = max(self.now, min(self._asleep))
            self._moved.notify_all()
