"""The statements of procedures: what each read and waited for, and by which plans it was executed."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from stallmark.analysis.finding import Finding, caution
from stallmark.analysis.read.codes import Codes
from stallmark.analysis.read.counters import Counters, Delta, read_counters
from stallmark.analysis.read.dropped import Dropped, read_dropped
from stallmark.analysis.read.interval import Interval
from stallmark.analysis.read.io import over
from stallmark.analysis.read.kinds import ReadKind
from stallmark.analysis.read.server_summary import StatementSummary
from stallmark.record.reader import Record

_ABOUT = ("planned", "statement", "procedure", "position", "plan_hash", "text")
_COUNTS = ("executions", "worker_us", "elapsed_us", "physical_reads", "logical_reads")


@dataclass(frozen=True)
class Statements:
    """The counters of one run by statement and plan; `about` has the other columns of each, and `dropped` the plans
    that left the cache."""

    counters: Mapping[str, Counters] = field(default_factory=dict)
    about: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    dropped: Sequence[Dropped] = ()

    def findings(self, interval: Interval) -> Iterator[Finding]:
        """Yield how many plans left the cache while they were executed."""
        if dropped := [plan for plan in self.dropped if plan.overlaps(interval)]:
            procedures = sorted({self.about[plan.group]["procedure"] for plan in dropped})
            yield caution(ReadKind.PLANS_LEFT, plans=len(dropped), procedures=procedures)

    def summaries(self, interval: Interval) -> list[StatementSummary]:
        """Return the statements that were executed, those that read most first."""
        by_statement: dict[str, list[tuple[Mapping[str, str], Delta]]] = defaultdict(list)
        for planned, counters in self.counters.items():
            delta = over(counters, interval)
            if delta is not None and not delta.broken and delta["executions"]:
                about = self.about[planned]
                by_statement[about["statement"]].append((about, delta))
        partial = {self.about[plan.group]["statement"] for plan in self.dropped if plan.overlaps(interval)}
        found = [_summary(plans, whole=name not in partial) for name, plans in by_statement.items()]
        return sorted(found, key=lambda one: (-one.physical_reads, one.procedure, one.position))


def _summary(plans: list[tuple[Mapping[str, str], Delta]], whole: bool) -> StatementSummary:
    plans = sorted(plans, key=lambda plan: -plan[1]["executions"])
    about = plans[0][0]
    total = {name: sum(delta[name] for _, delta in plans) for name in _COUNTS}
    return StatementSummary(
        procedure=about["procedure"],
        position=int(about["position"]),
        text=about["text"],
        plans=tuple(about["plan_hash"] for about, _ in plans),
        executions=round(total["executions"]),
        physical_reads=total["physical_reads"],
        logical_reads=total["logical_reads"],
        cpu_ms=total["worker_us"] / 1000,
        waited_ms=max(0.0, total["elapsed_us"] - total["worker_us"]) / 1000,
        seconds=plans[0][1].seconds,
        whole=whole,
    )


def read_statements(record: Record, intervals: Sequence[Interval]) -> Statements:
    counters = read_counters(record, "statements", _COUNTS, group="planned", entity="plan", within=intervals)
    return Statements(
        counters, _about(record), read_dropped(record, "statements", group="planned", entity="plan", count="executions")
    )


def _about(record: Record) -> dict[str, Mapping[str, str]]:
    """Return the other columns of each statement and plan."""
    found: dict[str, Mapping[str, str]] = {}
    for batch in record.batches("statements", _ABOUT):
        if batch.num_columns == len(_ABOUT):
            planned = Codes().of(batch, "planned")
            _, last = np.unique(planned[::-1], return_index=True)
            rows = batch.take(pa.array(len(planned) - 1 - last)).to_pylist()
            found |= {row["planned"]: row for row in rows}
    return found
