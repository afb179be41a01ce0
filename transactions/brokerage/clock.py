"""What time it is in the brokerage: the time of the wall when the load began, and from there on time that only goes on.

A wall clock set back during a run changes nothing. A test has a clock of its own.
"""

import time
from datetime import UTC, datetime, timedelta
from typing import Protocol

from stallmark.schema.brokerage.prices import FIRST_DAY

_ZERO: datetime = FIRST_DAY.astype("datetime64[us]").astype(datetime)


class Clock(Protocol):
    def now(self) -> datetime:
        """UTC, without a zone, as the tables have it."""


class RunClock:
    def __init__(self) -> None:
        self._began = datetime.now(UTC).replace(tzinfo=None)
        self._began_ns = time.monotonic_ns()

    def now(self) -> datetime:
        return self._began + timedelta(microseconds=(time.monotonic_ns() - self._began_ns) // 1000)


def price_second(moment: datetime) -> float:
    """When that is for `brokerage_prices`: prices of a run move by day and night."""
    return (moment - _ZERO).total_seconds()


def as_text(moment: datetime) -> str:
    """For the server, which keeps milliseconds."""
    return moment.isoformat(timespec="milliseconds")
