"""The waits of users, from samples of their sessions: in a measured interval, and as parts of a transaction's time,
second by second.

Samples are divided by the polls of their second: a busy machine is polled less often, and its seconds must not weigh
less for it.

The classes of `waits` put every I/O of files together. In parts, reads are told from other I/O by the event's name,
because it is reads that a device's read time and a buffer pool change. A commit that waits for a replica is commit
time, as one that waits for the log.

Users who blocked one another, and deadlocks, as SQL Server tells them.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from stallmark.analysis.read.interval import Interval, Span
from stallmark.analysis.read.rises import Codes, PairCodes
from stallmark.analysis.read.server_summary import WAIT_CLASSES
from stallmark.record.of_load import LoadRecord
from stallmark.record.reader import Record
from stallmark.stats.thresholds import SHARE_SAMPLES

TOP = 8
_OF_CLASS = {"lock": "lock", "wal": "log", "replica": "log", "cpu": "cpu", "client": "client"}
_READS = ("DATAFILEREAD", "DATAFILEPREFETCH", "IO:AIO", "BUFFERIO", "PAGEIOLATCH")
"""PostgreSQL's reads of data files, and SQL Server's of pages. Asynchronous I/O of PostgreSQL is all reads, and a wait
for BufferIO is one for another session's read of the same block."""


@dataclass(frozen=True)
class SampledWaits:
    """Sessions seen in (wait class, event), summed over `seconds`; a share is one of the time of all sessions."""

    seen: Mapping[tuple[str, str], float]
    seconds: int

    def of(self, sessions: float) -> "SampledWaits":
        """Return the waits of a mean of `sessions` busy sessions, where more are connected.

        The others have nothing to do and seem to wait for their client, so they are taken out of that class. A
        background session is idle until a transaction is due.
        """
        idle = sum(self.seen.values()) - sessions * self.seconds
        client = sum(samples for (name, _), samples in self.seen.items() if name == "client")
        if idle <= 0 or not client or not sessions:
            return self
        left = max(0.0, 1 - idle / client)
        seen = {key: samples * (left if key[0] == "client" else 1) for key, samples in self.seen.items()}
        return SampledWaits(seen, self.seconds)

    def sessions(self, wait_class: str) -> float:
        """Return the mean number of sessions seen in a class."""
        return sum(samples for (name, _), samples in self.seen.items() if name == wait_class) / self.seconds

    def shares(self) -> dict[str, float]:
        """Return the share of every wait class; they sum to 1."""
        shares = self._shares(lambda key: key[0])
        return {name: shares.get(name, 0.0) for name in WAIT_CLASSES}

    def top(self) -> list[tuple[str, float]]:
        most = sorted(self._shares(lambda key: key[1]).items(), key=lambda item: (-item[1], item[0]))
        return [(event, share) for event, share in most[:TOP] if share]

    def _shares(self, by: Callable[[tuple[str, str]], str]) -> dict[str, float]:
        sums: dict[str, float] = defaultdict(float)
        for key, seen in self.seen.items():
            sums[by(key)] += seen
        total = sum(sums.values())
        return {name: seen / total for name, seen in sums.items()}


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


class SessionWaits:
    """The waits of the sessions of a run, or of one of its loads."""

    def __init__(self, record: Record, seconds: int, intervals: Sequence[Interval]):
        self._load = record if isinstance(record, LoadRecord) else None
        self._seconds, self._intervals = seconds, intervals
        self._sums: dict[int, dict[tuple[str, str], float]] = {one.index: defaultdict(float) for one in intervals}
        self._looks_within: dict[int, int] = defaultdict(int)
        self._looked = {one.index: np.zeros(one.seconds, dtype=bool) for one in intervals}
        self._users: dict[str, np.ndarray] = {}
        self._looks, self._seen = np.zeros(seconds), np.zeros(seconds, dtype=bool)
        self._any_row = False

    def add(self, batch: pa.RecordBatch, pair: np.ndarray, pairs: Sequence[tuple[str, str]]) -> None:
        """Add the own ones of some rows, whose (class, event) is of that number among the `pairs`."""
        if self._load and not (own := np.asarray(self._load.own_samples(batch))).all():
            batch, pair = batch.filter(pa.array(own)), pair[own]
        self._any_row = self._any_row or batch.num_rows > 0
        second, samples, polls = (batch.column(name).to_numpy() for name in ("second", "samples", "polls"))
        users = samples / np.maximum(polls, 1)
        for interval in self._intervals:
            inside = np.flatnonzero((second >= interval.begin) & (second < interval.end))
            self._looked[interval.index][second[inside] - interval.begin] = True
            self._looks_within[interval.index] += int(samples[inside].sum())
            added = np.bincount(pair[inside], users[inside])
            for one in np.flatnonzero(added).tolist():
                wait_class, event = pairs[one]
                seen = self._sums[interval.index]
                seen[wait_class if wait_class in WAIT_CLASSES else "other", event] += float(added[one])
        inside = np.flatnonzero(second < self._seconds)
        if len(inside):
            self._add_parts(second[inside], samples[inside], users[inside], pair[inside], pairs)

    def _add_parts(
        self,
        second: np.ndarray,
        samples: np.ndarray,
        users: np.ndarray,
        pair: np.ndarray,
        pairs: Sequence[tuple[str, str]],
    ) -> None:
        self._seen[second] = True
        low = int(second.min())
        width = int(second.max()) - low + 1
        self._looks[low : low + width] += np.bincount(second - low, samples, width)
        parts = [part_of(*one) for one in pairs]
        names = list(dict.fromkeys(parts))
        of_row = np.array([names.index(part) for part in parts])[pair]
        added = np.bincount(of_row * width + second - low, users, len(names) * width).reshape(len(names), width)
        for number in np.unique(of_row).tolist():
            line = self._users.setdefault(names[number], np.zeros(self._seconds))
            line[low : low + width] += added[number]

    def sampled(self) -> dict[int, SampledWaits]:
        """Return the waits by the number of the interval, if enough sessions were sampled in it."""
        return {
            index: SampledWaits(dict(seen), int(self._looked[index].sum()))
            for index, seen in self._sums.items()
            if self._looks_within[index] >= SHARE_SAMPLES
        }

    def parts(self) -> WaitParts | None:
        """Return the parts; None where no sessions were sampled."""
        if not self._any_row:
            return None
        for line in self._users.values():
            line[~self._seen] = np.nan
        return WaitParts(self._users, self._looks)


def read_waits(run: Record, waits: Sequence[SessionWaits]) -> None:
    """Add the waits of a run to those of its parts."""
    classes, events, pairs = Codes(), Codes(), PairCodes()
    columns = ["second", "wait_class", "event", "samples", "polls"]
    for batch in run.batches("waits", [*columns, "application"] if run.loads else columns):
        pair = pairs.of(classes.of(batch, "wait_class"), events.of(batch, "event"))
        names = [(classes.names[one], events.names[other]) for one, other in pairs.pairs]
        for part in waits:
            part.add(batch, pair, names)


def part_of(wait_class: str, event: str) -> str:
    """Return the part, of PARTS of analysis/bottleneck/summary.py, that a wait belongs to."""
    if wait_class == "io":
        name = event.upper()
        return "read" if any(known in name for known in _READS) else "other_io"
    return _OF_CLASS.get(wait_class, "rest")


TOP_BLOCKED = 8


@dataclass(frozen=True)
class BlockedPair:
    """Sessions in one procedure that waited for a session in another, on average."""

    blocked: str
    blocker: str
    wait_type: str
    sessions: float


@dataclass(frozen=True)
class DeadlockShape:
    """Deadlocks of one shape: the same procedures, and the same locks. `graph`: the file of the first one's graph."""

    victim: str
    others: str
    isolation: str
    resources: str
    times: int
    graph: str | None


def read_blocking(record: Record, intervals: Sequence[Interval]) -> dict[Span, list[BlockedPair]]:
    """Return, by the interval, who blocked whom most. Seconds in which nobody was blocked have no row."""
    every = record.manifest.collectors.get("blocking")
    every_s = (every.interval_s if every else None) or 1.0
    found: dict[Span, Counter[tuple[str, str, str]]] = {interval.span: Counter() for interval in intervals}
    for batch in record.batches("blocking", ["second", "blocked", "blocker", "wait_type", "samples"]):
        for row in batch.to_pylist():
            for interval in intervals:
                if interval.begin <= row["second"] < interval.end:
                    key = row["blocked"], row["blocker"], row["wait_type"]
                    found[interval.span][key] += row["samples"]
    return {
        (begin, end): [
            BlockedPair(*key, seen * every_s / (end - begin)) for key, seen in pairs.most_common(TOP_BLOCKED)
        ]
        for (begin, end), pairs in found.items()
    }


def read_deadlocks(record: Record) -> list[DeadlockShape]:
    """Return the deadlocks of a run, the most frequent shape first."""
    times: Counter[tuple[str, str, str, str]] = Counter()
    graphs: dict[tuple[str, str, str, str], str | None] = {}
    for batch in record.batches("deadlocks", ["victim", "others", "isolation", "resources", "graph"]):
        for row in batch.to_pylist():
            key = row["victim"], row["others"], row["isolation"], row["resources"]
            times[key] += 1
            graphs.setdefault(key, row["graph"])
    return [DeadlockShape(*key, count, graphs[key]) for key, count in times.most_common()]
