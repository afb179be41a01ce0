"""Waits for rows by table: the mean number of sessions that waited for each, over a measured interval.

PostgreSQL's locks are sampled five times a second, and the mean is samples / polls. SQL Server sums up its waits by
index, and the mean is Δ wait / Δ time.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from stallmark.analysis.read.counters import Counters, Delta, read_counters
from stallmark.analysis.read.interval import Interval
from stallmark.analysis.read.io import over
from stallmark.analysis.read.server_summary import RowWait
from stallmark.record.reader import Record

TOP = 8

_SUMMED = [
    f"{what}_wait{unit}" for what in ("row_lock", "page_lock", "page_latch", "page_io_latch") for unit in ("s", "_ms")
]


@dataclass(frozen=True)
class RowWaits:
    """The waits for rows of one run: sums by table, or sessions seen waiting, {second: {table: mean number}}."""

    summed: Mapping[str, Counters] = field(default_factory=dict)
    seen: Mapping[int, Counter[str]] = field(default_factory=dict)

    def summaries(self, interval: Interval) -> list[RowWait] | None:
        """Return the tables for whose rows most sessions waited; None where nothing was sampled."""
        if self.summed:
            found = [_from(name, over(counters, interval)) for name, counters in self.summed.items()]
            waits = [one for one in found if one]
        else:
            seconds = [second for second in self.seen if interval.begin <= second < interval.end]
            if not seconds:
                return None
            total: Counter[str] = Counter()
            for second in seconds:
                total.update(self.seen[second])
            waits = [RowWait(name, users / len(seconds)) for name, users in total.items() if users]
        return sorted(waits, key=lambda one: (-one.waiting, one.table))[:TOP]


def _from(table: str, delta: Delta | None) -> RowWait | None:
    """Return the waits for one table; None where its counters began again or no session waited."""
    if delta is None or delta.broken:
        return None

    def sessions(*names: str) -> float:
        return sum(delta.values.get(f"{name}_wait_ms", 0.0) for name in names) / 1000 / delta.seconds

    locks = ("row_lock", "page_lock")
    waits = sum(delta.values.get(f"{name}_waits", 0.0) for name in locks)
    found = RowWait(
        table,
        sessions(*locks),
        waits / delta.seconds,
        sessions(*locks) * 1000 * delta.seconds / waits if waits else None,
        sessions("page_latch"),
        sessions("page_io_latch"),
    )
    return found if found.waiting or found.latched or found.reading else None


def read_row_waits(record: Record) -> RowWaits:
    seen: dict[int, Counter[str]] = {}
    for batch in record.batches("row_locks", ["second", "relation", "samples", "polls"]):
        if "samples" not in batch.schema.names:
            return RowWaits(summed=read_counters(record, "row_locks", _SUMMED, group="relation"))
        users = batch.column("samples").to_numpy() / np.maximum(batch.column("polls").to_numpy(), 1)
        names = batch.column("relation").cast(pa.string()).to_pylist()
        for second, name, mean in zip(batch.column("second").to_pylist(), names, users.tolist(), strict=True):
            seen.setdefault(second, Counter())
            if name is not None:
                seen[second][name] += mean
    return RowWaits(seen=seen)
