"""Waits of the users' sessions, seen at random instants and counted per second: the same on every engine."""

from collections import Counter

import pyarrow as pa

from stallmark.driver.collectors.base import Row

COLUMNS = pa.schema(
    [
        ("second", pa.int32()),
        ("wait_class", pa.string()),
        ("event", pa.string()),
        ("samples", pa.int32()),
        ("polls", pa.int32()),
    ]
)


class PolledWaits:
    """Samples of one second at a time. Samples / polls is a mean number of users."""

    def __init__(self) -> None:
        self._second = 0
        self._polls = 0
        self._seen: Counter[tuple[str, str]] = Counter()

    def add(self, now: float, users: Counter[tuple[str, str]]) -> list[Row]:
        """Count a poll: users by wait class and event. Returns the rows of the second before, once it is over."""
        rows = self.finish() if int(now) != self._second else []
        self._second = int(now)
        self._polls += 1
        self._seen.update(users)
        return rows

    def finish(self) -> list[Row]:
        rows = [
            {
                "second": self._second,
                "wait_class": kind,
                "event": event,
                "samples": samples,
                "polls": self._polls,
            }
            for (kind, event), samples in sorted(self._seen.items())
        ]
        self._polls = 0
        self._seen.clear()
        return rows
