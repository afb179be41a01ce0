"""Waits for rows by table: the mean number of sessions that waited for each, over a measured interval.

PostgreSQL's locks are sampled five times a second, and the mean is samples / polls. SQL Server sums up its waits by
index, and the mean is Δ wait / Δ time.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from stallmark.analysis.read.counters import Counters, Delta, read_counters
from stallmark.analysis.read.interval import Interval, Span
from stallmark.analysis.read.io import over
from stallmark.analysis.read.server_summary import RowWait
from stallmark.record.reader import Record

TOP = 8

_SUMMED = [
    f"{what}_wait{unit}" for what in ("row_lock", "page_lock", "page_latch", "page_io_latch") for unit in ("s", "_ms")
]


@dataclass(frozen=True)
class RowWaits:
    """The waits for rows of one run: sums by table, or by the interval the sessions seen waiting for
    each, their mean number added up over the seconds sampled, and how many these were."""

    summed: Mapping[str, Counters] = field(default_factory=dict)
    seen: Mapping[Span, tuple[Counter[str], int]] = field(default_factory=dict)

    def summaries(self, interval: Interval) -> list[RowWait] | None:
        """Return the tables for whose rows most sessions waited; None where nothing was sampled."""
        if self.summed:
            found = [_from(name, over(counters, interval)) for name, counters in self.summed.items()]
            waits = [one for one in found if one]
        else:
            total, seconds = self.seen.get(interval.span, (Counter(), 0))
            if not seconds:
                return None
            waits = [RowWait(name, users / seconds) for name, users in total.items() if users]
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


def read_row_waits(record: Record, intervals: Sequence[Interval]) -> RowWaits:
    total: dict[Span, Counter[str]] = {interval.span: Counter() for interval in intervals}
    looked: dict[Span, set[int]] = {interval.span: set() for interval in intervals}
    for batch in record.batches("row_locks", ["second", "relation", "samples", "polls"]):
        if "samples" not in batch.schema.names:
            return RowWaits(summed=read_counters(record, "row_locks", _SUMMED, group="relation", within=intervals))
        second = batch.column("second").to_numpy()
        users = batch.column("samples").to_numpy() / np.maximum(batch.column("polls").to_numpy(), 1)
        waiting = pa.table({"relation": batch.column("relation").cast(pa.string()), "users": users})
        for interval in intervals:
            inside = (second >= interval.begin) & (second < interval.end)
            looked[interval.span].update(second[inside].tolist())
            sums = waiting.filter(pa.array(inside)).group_by("relation").aggregate([("users", "sum")])
            for row in sums.to_pylist():
                if row["relation"] is not None:  # a second in which nobody waited
                    total[interval.span][row["relation"]] += row["users_sum"]
    return RowWaits(seen={span: (sums, len(looked[span])) for span, sums in total.items()})
