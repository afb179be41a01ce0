"""The statements of procedures: what each read and waited for, and by which plans it was executed."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from stallmark.analysis.read.codes import Codes
from stallmark.analysis.read.counters import Counters, Delta, read_counters
from stallmark.analysis.read.interval import Interval
from stallmark.analysis.read.io import over
from stallmark.analysis.read.server_summary import StatementSummary
from stallmark.record.reader import Record

_ABOUT = ("planned", "statement", "procedure", "position", "plan_hash", "text")
_COUNTS = ("executions", "worker_us", "elapsed_us", "physical_reads", "logical_reads")


@dataclass(frozen=True)
class Statements:
    """The counters of one run by statement and plan; `about` has the other columns of each."""

    counters: Mapping[str, Counters] = field(default_factory=dict)
    about: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def summaries(self, interval: Interval) -> list[StatementSummary]:
        """Return the statements that were executed, those that read most first."""
        by_statement: dict[str, list[tuple[Mapping[str, str], Delta]]] = defaultdict(list)
        for planned, counters in self.counters.items():
            delta = over(counters, interval)
            if delta is not None and not delta.broken and delta["executions"]:
                about = self.about[planned]
                by_statement[about["statement"]].append((about, delta))
        found = [_summary(plans) for plans in by_statement.values()]
        return sorted(found, key=lambda one: (-one.physical_reads, one.procedure, one.position))


def _summary(plans: list[tuple[Mapping[str, str], Delta]]) -> StatementSummary:
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
    )


def read_statements(record: Record, intervals: Sequence[Interval]) -> Statements:
    counters = read_counters(record, "statements", _COUNTS, group="planned", entity="plan", within=intervals)
    return Statements(counters, _about(record))


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
