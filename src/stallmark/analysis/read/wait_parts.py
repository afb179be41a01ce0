"""The waits of sampled sessions as parts of a transaction's time, second by second.

The classes of `waits` put every I/O of files together. Here reads are told from other I/O by the event's name, because
it is reads that a device's read time and a buffer pool change. A commit that waits for a replica is commit time, as one
that waits for the log.
"""

from dataclasses import dataclass

import numpy as np

from stallmark.analysis.read.codes import Codes
from stallmark.analysis.read.interval import Interval
from stallmark.record.reader import Record
from stallmark.stats.thresholds import SHARE_SAMPLES

_OF_CLASS = {"lock": "lock", "wal": "log", "replica": "log", "cpu": "cpu", "client": "client"}
_READS = ("DATAFILEREAD", "DATAFILEPREFETCH", "IO:AIO", "BUFFERIO", "PAGEIOLATCH")
"""PostgreSQL's reads of data files, and SQL Server's of pages. Asynchronous I/O of PostgreSQL is all reads, and a wait
for BufferIO is one for another session's read of the same block."""


@dataclass(frozen=True)
class WaitParts:
    """The sessions sampled in each part. `users[part]` is their mean number per second, NaN in seconds without a
    sample. `looks` is the number of sessions sampled per second. Parts are PARTS of analysis/bottleneck/summary.py."""

    users: dict[str, np.ndarray]
    looks: np.ndarray

    def over(self, interval: Interval) -> tuple[dict[str, float], int]:
        """Return the mean number of sessions by part, and how many were sampled. Empty if too few were."""
        looks = int(interval.of(self.looks).sum())
        if looks < SHARE_SAMPLES:
            return {}, 0
        return {part: float(np.nanmean(interval.of(users))) for part, users in self.users.items()}, looks


def read_wait_parts(record: Record, seconds: int) -> WaitParts | None:
    """Read the parts; None where no sessions were sampled. Samples are divided by the polls of their second, as
    in waits.py."""
    users: dict[str, np.ndarray] = {}
    looks, seen, any_row = np.zeros(seconds), np.zeros(seconds, dtype=bool), False
    classes, events = Codes(), Codes()
    for batch in record.batches("waits", ["second", "wait_class", "event", "samples", "polls"]):
        any_row = any_row or batch.num_rows > 0
        second = batch.column("second").to_numpy()
        inside = second < seconds
        at = second[inside].astype(np.int64)
        samples, polls = (batch.column(name).to_numpy()[inside] for name in ("samples", "polls"))
        of_pair = (classes.of(batch, "wait_class")[inside] << 32) | events.of(batch, "event")[inside]
        seen[at] = True
        np.add.at(looks, at, samples)
        for pair in np.unique(of_pair):
            part = part_of(classes.names[pair >> 32], events.names[pair & (1 << 32) - 1])
            rows = of_pair == pair
            counted = samples[rows] / np.maximum(polls[rows], 1)
            np.add.at(users.setdefault(part, np.zeros(seconds)), at[rows], counted)
    if not any_row:
        return None
    return WaitParts({part: np.where(seen, counted, np.nan) for part, counted in users.items()}, looks)


def part_of(wait_class: str, event: str) -> str:
    """Return the part, of PARTS of analysis/bottleneck/summary.py, that a wait belongs to."""
    if wait_class == "io":
        name = event.upper()
        return "read" if any(known in name for known in _READS) else "other_io"
    return _OF_CLASS.get(wait_class, "rest")
