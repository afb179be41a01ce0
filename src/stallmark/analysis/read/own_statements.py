"""Each statement of SQL of a user's own in the measured interval of a step."""

from collections.abc import Sequence
from dataclasses import dataclass

from stallmark.analysis.read.interval import Interval
from stallmark.analysis.read.throughput import Latencies, Load
from stallmark.record.manifest.workload import Statement


@dataclass(frozen=True)
class OwnStatementSummary:
    """One statement in the measured interval of one step. Percentiles are None if the sample is too small for them."""

    name: str  # its transaction, and its number in that
    transaction: str
    line: int
    text: str
    executions: int
    per_s: float
    errors: int
    rows: float | None  # returned, per execution
    latency_mean_ms: float | None
    latency_ms: dict[str, float | None]  # keys as of a transaction: sent to answered whole


def executed_statements(
    statements: Sequence[Statement], load: Load, interval: Interval
) -> list[OwnStatementSummary]:
    """Return the statements that were executed, in the order of the files."""
    summaries = []
    for statement in statements:
        counts = {name: int(interval.of(sums).sum()) for name, sums in load.statements.get(statement.name, {}).items()}
        if not counts or not (counts["executions"] or counts["errors"]):
            continue
        executions = counts["executions"]
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
            )
        )
    return summaries
