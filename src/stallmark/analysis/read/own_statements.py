"""Each statement of SQL of a user's own in the measured interval of a step."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from stallmark.analysis.read.counters import Counters, read_counters
from stallmark.analysis.read.interval import Interval
from stallmark.analysis.read.io import delta_over
from stallmark.analysis.read.throughput import Latencies, Load
from stallmark.record.manifest.workload import Workload
from stallmark.record.reader import Record

_READS = ("executions", "logical_reads", "physical_reads")


@dataclass(frozen=True)
class OwnStatementSummary:
    """One statement in the measured interval of one step. Percentiles are None if the sample is too small for them."""

    name: str  # transaction, and the statement's number in it
    transaction: str
    line: int
    text: str
    executions: int
    per_s: float
    errors: int
    rows: float | None  # returned, or changed where none are, per execution
    latency_mean_ms: float | None
    latency_ms: dict[str, float | None]  # keys as of a transaction: sent to answered whole
    logical_reads: float | None = None  # pages asked for, per execution; None if the server does not tell
    physical_reads: float | None = None  # pages read for it, per execution


def read_statement_reads(record: Record, intervals: Sequence[Interval]) -> Mapping[str, Counters]:
    """Return the server's counts of each statement, by the name that its table has; empty if it has no such view."""
    return read_counters(record, "statement_reads", _READS, group="statement", entity="plan", within=intervals)


def executed_statements(
    workload: Workload, load: Load, reads: Mapping[str, Counters], interval: Interval
) -> list[OwnStatementSummary]:
    """Return the statements that were executed, in the order of the files, with their `reads` where known."""
    summaries = []
    for statement in workload.statements:
        counts = {
            name: int(interval.select(sums).sum()) for name, sums in load.statements.get(statement.name, {}).items()
        }
        if not counts or not (counts["executions"] or counts["errors"]):
            continue
        executions = counts["executions"]
        counters = reads.get(f"{workload.name}: {statement.name}") or reads.get(statement.name)
        logical, physical = _reads_each(counters, load.statements[statement.name]["executions"], interval)
        latency = load.statement_latency.get((interval.index, statement.name), Latencies.empty())
        summaries.append(
            OwnStatementSummary(
                name=statement.name,
                transaction=statement.transaction,
                line=statement.line,
                text=statement.text,
                executions=executions,
                per_s=executions / interval.seconds,
                errors=counts["errors"],
                rows=counts["rows"] / executions if executions else None,
                latency_mean_ms=counts["latency_us"] / executions / 1000 if executions else None,
                latency_ms=latency.summary(),
                logical_reads=logical,
                physical_reads=physical,
            )
        )
    return summaries


def _reads_each(
    counters: Counters | None, executed: np.ndarray, interval: Interval
) -> tuple[float | None, float | None]:
    """Return the pages that an execution asked for and that were read for it. Both are None if the server does not
    count them, or dropped counts within the interval.

    If the server counts only parts of a statement, its executions are those that the driver counted.
    """
    delta = delta_over(counters, interval) if counters else None
    if delta is None or delta.broken:
        return None, None
    executions = delta.get("executions")
    if executions is None:
        executions = delta.count_within(executed)
    if not executions:
        return None, None
    return delta["logical_reads"] / executions, delta["physical_reads"] / executions
