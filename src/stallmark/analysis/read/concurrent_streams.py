"""Concurrent streams of queries: their work in each measured interval, from the record."""

from collections.abc import Sequence
from dataclasses import dataclass

from stallmark.analysis.read.interval import Interval
from stallmark.analysis.read.queries import Execution, executions_of, in_order
from stallmark.analysis.read.query_figures import geometric_mean
from stallmark.record.reader import Record


@dataclass(frozen=True)
class StreamQuerySummary:
    """A query of concurrent streams: how often it ended, and the geometric mean of its times."""

    name: str
    done: int
    seconds: float


@dataclass(frozen=True)
class StreamsSummary:
    """The work of concurrent streams of queries within the measured interval of a step."""

    streams: int
    done: int
    failed: int
    per_hour: float  # of all streams
    queries: list[StreamQuerySummary]


def streams_within(record: Record, intervals: Sequence[Interval]) -> dict[int, StreamsSummary]:
    """Return the work of a run's concurrent streams, by the index of the step; none of a run without them."""
    asked = {interval: record.manifest.steps[interval.index].streams for interval in intervals}
    if record.manifest.queries or not any(asked.values()):
        return {}
    executions = executions_of(record)
    return {one.index: _within(one, streams, executions) for one, streams in asked.items() if streams}


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
