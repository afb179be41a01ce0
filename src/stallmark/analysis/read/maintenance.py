"""Maintenance beside the users, in each measured interval."""

from dataclasses import dataclass

from stallmark.analysis.read.interval import Interval
from stallmark.record.reader import Record


@dataclass(frozen=True)
class MaintenanceSummary:
    """A backup, check or rebuild that was executed over and over. `mean_s` is of those that ended in the interval."""

    kind: str
    done: int
    mean_s: float | None
    share: float  # of the interval in which one was under way
    failed: bool


def maintenance_within(record: Record, interval: Interval) -> MaintenanceSummary | None:
    """Return what ran beside the users in an interval; None where nothing was asked for."""
    columns = ["kind", "started_s", "seconds", "finished", "error"]
    rows = [row for batch in record.batches("maintenance", columns) for row in batch.to_pylist()]
    if not rows:
        return None
    ends = [(row["started_s"], row["started_s"] + row["seconds"], row) for row in rows]
    done = [row["seconds"] for _, end, row in ends if row["finished"] and interval.begin <= end < interval.end]
    under_way = sum(max(0.0, min(end, interval.end) - max(start, interval.begin)) for start, end, _ in ends)
    return MaintenanceSummary(
        kind=rows[0]["kind"],
        done=len(done),
        mean_s=sum(done) / len(done) if done else None,
        share=min(1.0, under_way / interval.seconds),
        failed=any(row["error"] for row in rows),
    )
