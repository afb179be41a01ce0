"""Concurrent streams of queries: their work in each measured interval, from the record."""

from collections.abc import Sequence
from dataclasses import replace

from stallmark.analysis.queries.comparison import in_order
from stallmark.analysis.queries.figures import geometric_mean
from stallmark.analysis.queries.runs import executions_of
from stallmark.analysis.queries.summary import Execution, StreamQuerySummary, StreamsSummary
from stallmark.analysis.read.interval import Interval
from stallmark.analysis.step_summary import StepSummary
from stallmark.record.reader import Record


def with_streams(record: Record, steps: Sequence[tuple[StepSummary, Interval]]) -> list[StepSummary]:
    """Return the steps of a run with the work of its concurrent streams. Physical reads are then not given per
    transaction, as they cannot be told from those of the streams."""
    asked = record.manifest.concurrent_streams
    if asked is None or not asked.streams:
        return [step for step, _ in steps]
    executions = executions_of(record)
    return [
        replace(
            step,
            storage=replace(step.storage, reads_per_transaction=None),
            streams=_within(interval, asked.streams, executions),
        )
        for step, interval in steps
    ]


def _within(interval: Interval, streams: int, executions: Sequence[Execution]) -> StreamsSummary:
    """Sum up the queries that ended within an interval: they count as its own, as transactions do."""
    ended = [one for one in executions if interval.begin <= one.started_s + one.seconds < interval.end]
    done = [one for one in ended if not one.failed]
    names = sorted({one.query for one in done}, key=in_order)
    by_name = {name: [one.seconds for one in done if one.query == name] for name in names}
    return StreamsSummary(
        streams=streams,
        done=len(done),
        failed=len(ended) - len(done),
        per_hour=len(done) / interval.seconds * 3600,
        queries=[
            StreamQuerySummary(name, len(seconds), geometric_mean([max(one, 1e-6) for one in seconds]))
            for name, seconds in by_name.items()
        ],
    )
