"""Users counted at random instants, by what they do then; a second of such looks becomes rows."""

from collections import Counter

import pyarrow as pa

from stallmark.collectors.base import Row

WAITS = ("wait_class", "event")


def polled_columns(*names: str) -> pa.Schema:
    """Those of the table."""
    texts = [(name, pa.string()) for name in names]
    return pa.schema([("second", pa.int32()), *texts, ("samples", pa.int32()), ("polls", pa.int32())])


class Polled:
    """Samples of one second at a time, by the columns `names`. Samples / polls is a mean number of users."""

    def __init__(self, *names: str) -> None:
        self._names = names
        self._second = 0
        self._polls = 0
        self._seen: Counter[tuple[str | None, ...]] = Counter()

    def add(self, now: float, users: Counter[tuple[str | None, ...]]) -> list[Row]:
        """Count a poll: users by values of `names`. Returns the rows of the second before, once it is over."""
        rows = self.finish() if int(now) != self._second else []
        self._second = int(now)
        self._polls += 1
        self._seen.update(users)
        return rows

    def finish(self) -> list[Row]:
        rows = [
            {"second": self._second}
            | dict(zip(self._names, values, strict=True))
            | {"samples": samples, "polls": self._polls}
            for values, samples in sorted(self._seen.items(), key=str)
        ]
        self._polls = 0
        self._seen.clear()
        return rows
