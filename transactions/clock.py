"""The time of a workload: the wall clock when the load began, continued by a monotonic clock.

A wall clock that is set back during a run changes nothing. A test has a clock of its own.
"""

import time
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    def now(self) -> datetime:
        """Return the time in UTC, without a zone, as the tables have it."""


class RunClock:
    def __init__(self) -> None:
        self._began = datetime.now(UTC).replace(tzinfo=None)
        self._began_ns = time.monotonic_ns()

    def now(self) -> datetime:
        return self._began + timedelta(microseconds=(time.monotonic_ns() - self._began_ns) // 1000)


def as_text(moment: datetime) -> str:
    """Return a time as text for the server, which keeps milliseconds."""
    return moment.isoformat(timespec="milliseconds")
