"""A run that is followed: its lines, and its totals for Prometheus, from what was added to its record since."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stallmark.analysis.read.driver_tables import Latencies
from stallmark.live.lines import Sums, sums
from stallmark.record.reader import GrowingStream, RecentRecord, Record, recorded_seconds

COUNTS = ("committed", "rolled_back", "failed", "retries", "latency_us")
_TABLES = ("transactions", "users", "errors", "server_io", "wal", "database", "performance", "waits")
_SETTLED_S = 30
"""Seconds after which a value is final: collectors that sample every 5 s, and servers that report late, are heard."""


@dataclass
class LiveTally:
    """The transactions of one type in one step, while it warmed up or while it was measured."""

    counts: Counter[str] = field(default_factory=Counter)
    latencies: Latencies = field(default_factory=Latencies.empty)


class FollowedRun:
    """A run under way, or one that has ended. `follow` reads what was added."""

    def __init__(self, record: Record):
        self.record = record
        self.seconds = 0
        self.sums: Sums = {}
        self.tallies: dict[tuple[int, bool, str], LiveTally] = defaultdict(LiveTally)
        """By the step's number, whether it was measured, and the transaction."""
        self.errors: Counter[tuple[str, str]] = Counter()
        """Failed attempts by transaction and class."""
        self.files: dict[str, Mapping[str, Any]] = {}
        """The last sample of every file, as the server counts it: since the server's own start."""
        self._streams = {name: GrowingStream(record.folder / f"{name}.arrows") for name in _TABLES}
        self._recent: dict[str, list[pa.RecordBatch]] = {name: [] for name in _TABLES}
        self.whole = False
        """True once a run that has ended was read to its end."""

    def follow(self, record: Record) -> None:
        """Read what was added; `record` is the same one, with its manifest as it is now."""
        self.record = record
        if record.manifest.status == "running":
            self._add()
        elif not self.whole:
            self.whole = True
            self.seconds = _until(record)
            self.sums = sums(record, self.seconds)

    def step_at(self, second: float) -> tuple[int, bool]:
        """Return the number of the step that a second falls into, and whether it is measured."""
        steps = self.record.manifest.steps
        number = next((number for number, step in enumerate(steps) if second < step.end_s), len(steps) - 1)
        return number, bool(steps) and steps[number].measure_s <= second < steps[number].end_s

    def measured(self) -> np.ndarray:
        """Tell of each second if it is measured; all are, where there are no steps yet."""
        second = np.arange(self.seconds)
        inside = [(second >= step.measure_s) & (second < step.end_s) for step in self.record.manifest.steps]
        return np.any(inside, axis=0) if inside else np.ones(self.seconds, dtype=bool)

    def _add(self) -> None:
        new = {name: stream.read() for name, stream in self._streams.items()}
        for name, batches in new.items():
            self._recent[name] += batches
        if new["transactions"]:
            self._count(pa.Table.from_batches(new["transactions"]))
        for batch in new["errors"]:
            for row in batch.select(["transaction", "error_class", "attempts"]).to_pylist():
                self.errors[row["transaction"], row["error_class"]] += row["attempts"]
        for batch in new["server_io"]:
            self.files |= {row["entity"]: row for row in batch.to_pylist()}
        before = max(0, self.seconds - _SETTLED_S)
        self.seconds = max(self.seconds, self._heard(new))
        found = sums(RecentRecord(self.record, self._recent), self.seconds)
        self.sums = {name: np.append(self.sums.get(name, line)[:before], line[before:]) for name, line in found.items()}
        for batches in self._recent.values():
            batches[:] = [batch for batch in batches if _latest(batch) >= self.seconds - 2 * _SETTLED_S]

    def _heard(self, new: Mapping[str, list[pa.RecordBatch]]) -> int:
        """Return the whole seconds that were heard of: of the driver; in a run of queries, of the server."""
        if self.record.manifest.kind == "queries":
            return max((int(_latest(batch)) for batch in new["server_io"] + new["database"]), default=0)
        return max((int(_latest(batch)) + 1 for batch in new["users"] + new["transactions"]), default=0)

    def _count(self, rows: pa.Table) -> None:
        keys = [
            (*self.step_at(second), name)
            for second, name in zip(rows["second"].to_pylist(), rows["transaction"].to_pylist(), strict=True)
        ]
        for key in set(keys):
            some = rows.filter(pa.array([one == key for one in keys])).combine_chunks().to_batches()[0]
            tally = self.tallies[key]
            tally.counts.update({name: int(pc.sum(some.column(name)).as_py() or 0) for name in COUNTS})
            tally.latencies.merge(some.column("latency_gaps"), some.column("latency_counts"))


def _latest(batch: pa.RecordBatch) -> float:
    """Return the last second of a batch's rows."""
    column = batch.column("t" if "t" in batch.schema.names else "second")
    return float(column[-1].as_py()) if len(column) else -1.0


def _until(record: Record) -> int:
    """Return the seconds of an ended run: to the end of its last step, after which users stop one by one."""
    seconds = recorded_seconds(record)
    ends = max((step.end_s for step in record.manifest.steps), default=seconds)
    return min(seconds, int(ends))
