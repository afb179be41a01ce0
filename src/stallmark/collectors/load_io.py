"""The I/O of the server's sessions, summed by the name of their application: users' and streams', each load by itself.

A session takes its counts with it when it ends, and a sum without them is no continuation of the one before. So the
epoch of an application's sum changes where a session is missing that the sum before it held; new sessions begin at 0.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable

import pyarrow as pa

from stallmark.collectors.base import NAME_OF_SESSIONS, Row, column

TITLE = "I/O per load"
APPLICATION = (
    column("application", pa.string(), NAME_OF_SESSIONS),
    column("sessions", pa.int32(), "sessions that are in the sums", "sessions"),
)


class EndedSessions:
    """Counts, by application, the sums that lack sessions which the sums before them held."""

    def __init__(self) -> None:
        self._held: defaultdict[str, set[str]] = defaultdict(set)
        self._losses: Counter[str] = Counter()

    def noted(self, rows: Iterable[Row]) -> list[Row]:
        """Put the number of sessions in place of their names, and the losses so far into the epoch."""
        found = []
        for row in rows:
            if row["sessions"] is None:
                continue
            name, sessions = row["application"], set(row["sessions"].split(","))
            self._losses[name] += not self._held[name] <= sessions
            self._held[name] = sessions
            found.append(row | {"sessions": len(sessions), "epoch": f"{row['epoch']} losses {self._losses[name]}"})
        return found
