"""The waits of sampled sessions as parts of a transaction's time, second by second.

The classes of `waits` put every I/O of files together. Here reads are told from other I/O by the event's name, because
it is reads that a device's read time and a buffer pool change. A commit that waits for a replica is commit time, as one
that waits for the log.
"""

from dataclasses import dataclass

import numpy as np

from stallmark.analysis.read.counters import codes
from stallmark.analysis.read.interval import Interval
from stallmark.analysis.read.sample_times import numbers
from stallmark.record.reader import Record

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
        """Return the mean number of sessions by part, and how many were sampled. Empty where none was."""
        looks = int(interval.of(self.looks).sum())
        if not looks:
            return {}, 0
        return {part: float(np.nanmean(interval.of(users))) for part, users in self.users.items()}, looks


def read_wait_parts(record: Record, seconds: int) -> WaitParts | None:
    """Read the parts; None where no sessions were sampled. Samples are divided by the polls of their second, as
    in waits.py."""
    second = numbers(record, "waits", "second")
    if second is None or not len(second):
        return None
    samples, polls = numbers(record, "waits", "samples"), numbers(record, "waits", "polls")
    assert samples is not None and polls is not None
    classes, class_names = codes(record, "waits", "wait_class", len(second))
    events, event_names = codes(record, "waits", "event", len(second))
    inside = second < seconds
    at = second[inside].astype(np.int64)
    samples, polls = samples[inside], np.maximum(polls[inside], 1)
    of_pair = classes[inside].astype(np.int64) * len(event_names) + events[inside]
    seen = np.bincount(at, minlength=seconds) > 0
    users: dict[str, np.ndarray] = {}
    for pair in np.unique(of_pair):
        part = part_of(class_names[pair // len(event_names)], event_names[pair % len(event_names)])
        rows = of_pair == pair
        counted = np.bincount(at[rows], weights=samples[rows] / polls[rows], minlength=seconds)
        users[part] = users.get(part, 0.0) + counted
    return WaitParts(
        {part: np.where(seen, counted, np.nan) for part, counted in users.items()},
        np.bincount(at, weights=samples, minlength=seconds),
    )


def part_of(wait_class: str, event: str) -> str:
    """Return the part, of PARTS of analysis/bottleneck/summary.py, that a wait belongs to."""
    if wait_class == "io":
        name = event.upper()
        return "read" if any(known in name for known in _READS) else "other_io"
    return _OF_CLASS.get(wait_class, "rest")
