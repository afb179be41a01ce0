"""The waits of users, from samples of their sessions: in a measured interval, and as parts of a transaction's time,
second by second.

Samples are divided by the polls of their second: a busy machine is polled less often, and its seconds must not weigh
less for it. The classes of `waits` put every I/O of files together. In parts, the event's name separates reads from
other I/O, because a device's read time and a buffer pool change reads only. A commit that waits for a replica is commit
time, as one that waits for the log.

Users who blocked one another, and deadlocks, as SQL Server reports them.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import pyarrow as pa

from stallmark import format
from stallmark.analysis.read.rises import Codes, PairCodes
from stallmark.analysis.read.server_summary import WAIT_CLASSES
from stallmark.analysis.read.throughput import Part, SecondLines
from stallmark.analysis.read.times import Interval, Span, planned_interval_s, release_memory
from stallmark.format import Shown, words
from stallmark.record.manifest.workload import application
from stallmark.record.reader import LoadRecord, Record
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

    def without_idle(self, sessions: float) -> "SampledWaits":
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
    sample. `looks` is the number of sessions sampled per second. Parts are PARTS of analysis/step_summary.py."""

    users: dict[str, np.ndarray]
    looks: np.ndarray

    def mean_sessions(self, interval: Interval) -> tuple[dict[str, float], int]:
        """Return the mean number of sessions by part, and the number of samples; `({}, 0)` if there are too few."""
        looks = int(interval.select(self.looks).sum())
        if looks < SHARE_SAMPLES:
            return {}, 0
        return {part: float(np.nanmean(interval.select(users))) for part, users in self.users.items()}, looks


class SessionWaits:
    """The waits of the sessions of a run, read in one pass for several parts of the run."""

    def __init__(self, run: Record, parts: Sequence[Part]):
        if run.loads and "application" not in run.schema("waits").names:  # older records: by the seconds of each load
            self._read = {
                part.load: _Sampled(run if part.load is None else LoadRecord(run, part.load), [part]) for part in parts
            }
        else:
            self._read = dict.fromkeys([part.load for part in parts], _Sampled(run, parts))

    def sampled(self, part: Part) -> dict[int, SampledWaits]:
        """Return the waits by the number of the interval, if enough sessions were sampled in it."""
        return self._read[part.load].sampled(part)

    def parts(self, part: Part) -> WaitParts | None:
        """Return the parts, or None if no sessions were sampled."""
        return self._read[part.load].parts(part)


class _Sampled:
    """The sampled sessions of a record by application: those of each second, and those within intervals."""

    def __init__(self, record: Record, parts: Sequence[Part]):
        intervals = [interval for part in parts for interval in part.intervals]
        self._seconds = max([*(part.seconds for part in parts), *(interval.end for interval in intervals)])
        self._applications, self._classes, self._events = Codes(), Codes(), Codes()
        self._waits, self._owned = PairCodes(), PairCodes()  # (class, event), and (application, wait)
        self._sums = {interval.span: np.zeros(0) for interval in intervals}  # keys: number of `_owned`
        self._numbers = PairCodes()  # (application, part)
        self._samples = SecondLines(self._seconds)  # by number of `_numbers`: users would be fractions, and larger
        self._polls = np.ones(self._seconds, dtype=np.int32)
        self._seen: dict[int, np.ndarray] = {}  # keys: application
        columns = ["second", "wait_class", "event", "samples", "polls"]
        for batch in record.batches("waits", [*columns, "application"] if record.loads else columns):
            if batch.num_rows:
                self._add(batch)
        release_memory()

    def _add(self, batch: pa.RecordBatch) -> None:
        owner = self._applications.codes(batch, "application")
        wait = self._waits.codes(self._classes.codes(batch, "wait_class"), self._events.codes(batch, "event"))
        second, samples, polls = (batch.column(name).to_numpy() for name in ("second", "samples", "polls"))
        users = samples / np.maximum(polls, 1)
        number = self._owned.codes(owner, wait)
        for (begin, end), sums in self._sums.items():
            inside = np.flatnonzero((second >= begin) & (second < end))
            more = np.zeros(len(self._owned) - len(sums))
            added = np.bincount(number[inside], users[inside], len(self._owned))
            self._sums[begin, end] = np.append(sums, more) + added
        for code in np.unique(owner).tolist():
            self._seen.setdefault(code, np.zeros(self._seconds, dtype=bool))
        early = np.flatnonzero(second < self._seconds)
        if len(early):
            self._add_seconds(*(values[early] for values in (owner, wait, second, samples, polls)))

    def _add_seconds(
        self, owner: np.ndarray, wait: np.ndarray, second: np.ndarray, samples: np.ndarray, polls: np.ndarray
    ) -> None:
        low = int(second.min())
        width = int(second.max()) + 1 - low
        parts = self._parts_of_waits()
        met = list(dict.fromkeys(parts))
        number = self._numbers.codes(owner, np.array([met.index(part) for part in parts])[wait])
        shape = len(self._numbers), width
        index = number * width + second - low
        self._samples.add(low, np.bincount(index, samples, shape[0] * width).reshape(shape))
        self._polls[second] = np.maximum(polls, 1)  # the same for all rows of a second (collectors/columns.py)
        for code, seen in self._seen.items():
            seen[second[owner == code]] = True

    def _names(self) -> list[tuple[str, str]]:
        """Return the class and the event of each wait."""
        classes, events = self._classes.names, self._events.names
        return [(classes[class_code], events[event_code]) for class_code, event_code in self._waits.pairs]

    def _parts_of_waits(self) -> list[str]:
        return [part_of(*names) for names in self._names()]

    def _owners(self, load: str | None) -> list[int]:
        """Return the codes of the applications of a load, or of all that sessions were met of."""
        names = self._applications.names
        return [code for code in self._seen if load is None or not names or names[code] == application("users", load)]

    def sampled(self, part: Part) -> dict[int, SampledWaits]:
        owners, names, parts = self._owners(part.load), self._names(), {}
        looks, seen = self._looks(owners)
        for interval in part.intervals:
            if interval.select(looks).sum() < SHARE_SAMPLES:
                continue
            sums: dict[tuple[str, str], float] = defaultdict(float)
            for (owner, wait), users in zip(self._owned.pairs, self._sums[interval.span].tolist(), strict=True):
                wait_class, event = names[wait]
                if users and owner in owners:
                    sums[wait_class if wait_class in WAIT_CLASSES else "other", event] += users
            parts[interval.index] = SampledWaits(dict(sums), int(interval.select(seen).sum()))
        return parts

    def parts(self, part: Part) -> WaitParts | None:
        owners = self._owners(part.load)
        if not owners:
            return None
        looks, seen = self._looks(owners)
        met = list(dict.fromkeys(self._parts_of_waits()))
        numbers: dict[str, list[int]] = defaultdict(list)
        for number, (owner, part_code) in enumerate(self._numbers.pairs):
            if owner in owners:
                numbers[met[part_code]].append(number)
        users = {
            name: np.where(seen, self._samples.sums(of_part, self._seconds) / self._polls, np.nan)[: part.seconds]
            for name, of_part in numbers.items()
        }
        return WaitParts(users, looks[: part.seconds])

    def _looks(self, owners: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        """Return the number of sampled sessions of some applications in each second, and the seconds with any."""
        numbers = [number for number, (owner, _) in enumerate(self._numbers.pairs) if owner in owners]
        seen = np.zeros(self._seconds, dtype=bool)
        for owner in owners:
            seen |= self._seen[owner]
        return self._samples.sums(numbers, self._seconds), seen


def part_of(wait_class: str, event: str) -> str:
    """Return the part, of PARTS of analysis/step_summary.py, that a wait belongs to."""
    if wait_class == "io":
        name = event.upper()
        return "read" if any(known in name for known in _READS) else "other_io"
    return _OF_CLASS.get(wait_class, "rest")


TOP_BLOCKED = 8


@dataclass(frozen=True)
class BlockedPair:
    """Sessions in one procedure that waited for a session in another, on average."""

    blocked: Annotated[str, words("blocked procedure")]
    blocker: Annotated[str, words("blocking procedure")]
    wait_type: Annotated[str, words("wait")]
    sessions: Annotated[float, Shown("sessions")]


@dataclass(frozen=True)
class DeadlockShape:
    """Deadlocks of one shape: the same procedures, and the same locks. `graph`: the file of the first one's graph."""

    times: Annotated[int, Shown("times", format.count)]
    victim: Annotated[str, words("victim in")]
    others: Annotated[str, words("others in")]
    isolation: Annotated[str, words("victim’s isolation")]
    resources: Annotated[str, words("locks")]
    graph: Annotated[str | None, words("graph of the first", lambda file: file or "")]


def read_blocking(record: Record, intervals: Sequence[Interval]) -> dict[Span, list[BlockedPair]]:
    """Return the most frequent blockers of each interval, an empty list if nothing was blocked in it."""
    every_s = planned_interval_s(record, "blocking")
    blockers: dict[Span, Counter[tuple[str, str, str]]] = {interval.span: Counter() for interval in intervals}
    for row in record.rows("blocking", ["second", "blocked", "blocker", "wait_type", "samples"]):
        for interval in intervals:
            if interval.begin <= row["second"] < interval.end:
                key = row["blocked"], row["blocker"], row["wait_type"]
                blockers[interval.span][key] += row["samples"]
    return {
        (begin, end): [
            BlockedPair(*key, seen * every_s / (end - begin)) for key, seen in pairs.most_common(TOP_BLOCKED)
        ]
        for (begin, end), pairs in blockers.items()
    }


def read_deadlocks(record: Record) -> list[DeadlockShape]:
    """Return the deadlocks of a run, the most frequent shape first."""
    times: Counter[tuple[str, str, str, str]] = Counter()
    graphs: dict[tuple[str, str, str, str], str | None] = {}
    for row in record.rows("deadlocks", ["victim", "others", "isolation", "resources", "graph"]):
        key = row["victim"], row["others"], row["isolation"], row["resources"]
        times[key] += 1
        graphs.setdefault(key, row["graph"])
    return [DeadlockShape(count, *key, graphs[key]) for key, count in times.most_common()]
