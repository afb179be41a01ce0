"""The counts of Query Store on each procedure's statements, where it was asked for.

Unlike the plan cache it keeps the counts of a plan that was evicted. It counts statements, not calls of procedures.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from stallmark.analysis.read.counters import Counters, read_counters
from stallmark.analysis.read.interval import Interval
from stallmark.analysis.read.io import over
from stallmark.analysis.read.server_summary import QueryStoreSummary
from stallmark.record.reader import Record

TOP_WAITS = 3

_STATEMENT = ["executions", "worker_us", "elapsed_us", "physical_reads", "logical_reads", "logical_writes"]


@dataclass(frozen=True)
class QueryStore:
    """The counters of one run by procedure, and by "procedure: wait category"; empty where it was not asked for."""

    statements: Mapping[str, Counters] = field(default_factory=dict)
    waits: Mapping[str, Counters] = field(default_factory=dict)

    def summaries(self, interval: Interval) -> list[QueryStoreSummary]:
        """Return the procedures whose statements were executed, those that read most first."""
        found = []
        for name, counters in self.statements.items():
            delta = over(counters, interval)
            if delta is None or delta.broken or not delta["executions"]:
                continue
            worker, elapsed = (delta.mean(what, "executions") for what in ("worker_us", "elapsed_us"))
            summary = QueryStoreSummary(
                name,
                round(delta["executions"]),
                delta.mean("physical_reads", "executions"),
                delta.mean("logical_reads", "executions"),
                delta.mean("logical_writes", "executions"),
                None if worker is None else worker / 1000,
                None if elapsed is None else elapsed / 1000,
                self._top_waits(name, interval),
            )
            found.append((delta["physical_reads"], summary))
        return [summary for _, summary in sorted(found, key=lambda pair: (-pair[0], pair[1].name))]

    def _top_waits(self, procedure: str, interval: Interval) -> list[tuple[str, float]]:
        found = []
        for name, counters in self.waits.items():
            whose, _, category = name.rpartition(": ")
            delta = over(counters, interval) if whose == procedure else None
            if delta and not delta.broken and delta["wait_ms"]:
                found.append((category, delta["wait_ms"] / delta.seconds))
        return sorted(found, key=lambda wait: (-wait[1], wait[0]))[:TOP_WAITS]


def read_query_store(record: Record, intervals: Sequence[Interval]) -> QueryStore:
    return QueryStore(
        read_counters(record, "query_store", _STATEMENT, group="procedure", entity="plan", within=intervals),
        read_counters(record, "query_store_waits", ["wait_ms"], group="wait", entity="plan", within=intervals),
    )
