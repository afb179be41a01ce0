"""Users who blocked one another, and deadlocks, as SQL Server tells them."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from stallmark.analysis.read.interval import Interval, Span
from stallmark.record.reader import Record

TOP = 8


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
        (begin, end): [BlockedPair(*key, seen * every_s / (end - begin)) for key, seen in pairs.most_common(TOP)]
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
