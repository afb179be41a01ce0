"""The queries of one run, read from its record; `None` where nothing was measured.

Concurrent streams of queries: their work in each measured interval, from the record.

The metrics of a power and a throughput run, by the formulas of TPC-H 2.17.3 (clause 5.4). They are derived: the data,
the refresh sets and the rules of a run are not audited, so they are not TPC results and must not be called QphH.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import geometric_mean
from typing import Annotated, Any

from stallmark.analysis.finding import Finding, caution
from stallmark.analysis.read.times import Interval, ReadKind
from stallmark.format import Shown, words
from stallmark.record.manifest.workload import PHASES, Queries
from stallmark.record.reader import Record
from stallmark.record.schema import QUERIES

REFRESH = ("RF1", "RF2")

_BEFORE = {"beside": "concurrent"}
"""The names of older records."""


@dataclass(frozen=True)
class Execution:
    """One query or refresh function, once. Pages are of 8 KiB; waits are in ms, summed over all its workers."""

    phase: Annotated[str, words("phase", PHASES.__getitem__)]
    stream: Annotated[int, Shown("stream", str)]
    position: int
    query: Annotated[str, words("query")]
    dop: int | None  # asked for; None: as the server is set
    started_s: float
    seconds: Annotated[float, Shown("after s")]
    rows: int | None = None
    logical_reads: int | None = None
    physical_reads: int | None = None
    read_bytes: int | None = None
    spill_bytes: int | None = None
    grant_kib: int | None = None
    cpu_ms: float | None = None
    actual_dop: int | None = None
    wait_ms: Mapping[str, float] | None = None
    plan_hash: str | None = None
    error_class: Annotated[str | None, words("class", lambda known: known or "")] = None
    error: Annotated[str | None, words("message", lambda known: known or "")] = None
    load: str = ""  # load of the stream; empty in older records
    due_s: float | None = None  # due time in an open loop

    @property
    def failed(self) -> bool:
        return self.error_class is not None

    @property
    def late_s(self) -> float:
        """Return the seconds for which the query waited for a stream; 0 in a closed loop."""
        return 0.0 if self.due_s is None else max(0.0, self.started_s - self.due_s)


@dataclass(frozen=True)
class LeftQuery:
    """A query at a rate that did not end. `started_s`: None if it never began."""

    load: str
    due_s: float
    started_s: float | None
    left_s: float


@dataclass(frozen=True)
class QueryFigures:
    """The figures of a run by TPC-H's formulas, or the reason for having none. Derived: not a TPC result, and not
    QphH."""

    power: float | None = None
    throughput: float | None = None
    composite: float | None = None
    power_lacks: Finding | None = None
    throughput_lacks: Finding | None = None


@dataclass(frozen=True)
class QueryRunSummary:
    """A run of queries. `phases` are the completed phases with their durations in seconds."""

    run: str  # "power", "throughput", "both" or "each"
    factor: float
    streams: int | None  # streams of the throughput run
    refresh: bool
    timeout_s: float | None
    phases: dict[str, float]
    executions: list[Execution]
    figures: QueryFigures
    driver_gap_ms: float | None = None  # between the end of one query and the start of the next: mean and most
    driver_gap_most_ms: float | None = None


def read_queries(record: Record) -> QueryRunSummary | None:
    """Return the run; None for one of another kind."""
    manifest = record.manifest
    asked = manifest.queries
    if asked is None:
        return None
    executions = read_executions(record)
    phases = {step.phase: step.end_s - step.measure_s for step in manifest.steps if step.phase}
    factor = float(manifest.workload.scale.get("factor") or 1)
    gaps = _gaps_ms(executions)
    return QueryRunSummary(
        run=asked.run,
        factor=factor,
        streams=asked.streams,
        refresh=asked.refresh,
        timeout_s=asked.timeout_s,
        phases=phases,
        executions=executions,
        figures=figures(factor, asked, phases, executions),
        driver_gap_ms=sum(gaps) / len(gaps) if gaps else None,
        driver_gap_most_ms=max(gaps, default=None),
    )


def read_executions(record: Record) -> list[Execution]:
    """Return the executions in the order of their starts."""
    return [_execution(row) for row in _rows(record)]


def read_left_queries(record: Record) -> list[LeftQuery]:
    """Return the queries at a rate that did not end; none of older records."""
    columns = ["load", "due_s", "started_s", "left_s"]
    return [LeftQuery(**row) for row in record.rows("queries_left", columns)]


def in_order(query: str) -> tuple[int, int]:
    """Return a sort key: RF1 before the queries, by their numbers, and RF2 behind them."""
    number = int(query.lstrip("QRF"))
    return (0, number) if query.startswith("Q") else ((-1, 0) if number == 1 else (1, 0))


def figures(
    factor: float, asked: Queries, phases: Mapping[str, float], executions: Sequence[Execution]
) -> QueryFigures:
    """Return the figures that a run of this kind has; one that it lacks with the reason."""
    wanted = [phase for phase in ("power", "throughput") if phase in (asked.phases or (asked.run,))]
    done = {phase: [execution for execution in executions if execution.phase == phase] for phase in wanted}
    lacks = {phase: _missing_reason(phase, phases, done[phase]) for phase in wanted}
    power = throughput = None
    if "power" in wanted and not lacks["power"]:
        queries = [execution.seconds for execution in done["power"] if execution.query not in REFRESH]
        refreshes = [execution.seconds for execution in done["power"] if execution.query in REFRESH]
        # The power figure is defined over all queries of the stream.
        if len(queries) == QUERY_COUNT:
            power = power_metric(factor, queries, refreshes)
        else:
            lacks["power"] = caution(ReadKind.PHASE_CUT, figure="power")
    if "throughput" in wanted and not lacks["throughput"]:
        throughput = throughput_metric(factor, asked.streams or 1, phases["throughput"])
    composite = None if power is None or throughput is None else composite_metric(power, throughput)
    return QueryFigures(power, throughput, composite, lacks.get("power"), lacks.get("throughput"))


def _missing_reason(phase: str, phases: Mapping[str, float], done: Sequence[Execution]) -> Finding | None:
    """Return the reason why a figure cannot be computed, or None if it can."""
    if failed := [execution for execution in done if execution.failed]:
        first = failed[0]
        timeout = first.error_class == "timeout"
        return caution(
            ReadKind.QUERY_FAILED,
            figure=phase,
            query=first.query,
            error=None if timeout else first.error,
            timeout=timeout,
            others=len(failed) - 1,
        )
    return caution(ReadKind.PHASE_CUT, figure=phase) if phase not in phases else None


def _rows(record: Record) -> list[dict[str, Any]]:
    return sorted(record.rows("queries", QUERIES.names), key=lambda row: (row["started_s"], row["stream"]))


def _execution(row: Mapping[str, Any]) -> Execution:
    waits, phase = row.get("wait_ms"), row["phase"]
    read = {"wait_ms": None if waits is None else json.loads(waits), "phase": _BEFORE.get(phase, phase)}
    return Execution(**{**row, **read})


def _gaps_ms(executions: Sequence[Execution]) -> list[float]:
    """Return the gaps. Between two queries of one stream the driver alone is at work; before a refresh, rows for it
    are made."""
    by_stream: dict[tuple[str, int], list[Execution]] = {}
    for execution in executions:
        by_stream.setdefault((execution.phase, execution.stream), []).append(execution)
    return [
        (after.started_s - before.started_s - before.seconds) * 1000
        for stream in by_stream.values()
        for before, after in pairwise(sorted(stream, key=lambda execution: execution.position))
        if after.position == before.position + 1 and after.query not in REFRESH
    ]


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
    per_hour: float  # queries of all streams per hour
    queries: list[StreamQuerySummary]


def summarise_streams(record: Record, intervals: Sequence[Interval]) -> dict[int, StreamsSummary]:
    """Return the work of a run's concurrent streams, by the index of the step; none of a run without them."""
    asked = {interval: record.manifest.steps[interval.index].streams for interval in intervals}
    if record.manifest.queries or not any(asked.values()):
        return {}
    executions = read_executions(record)
    return {
        interval.index: _summarise_streams(interval, streams, executions)
        for interval, streams in asked.items()
        if streams
    }


def _summarise_streams(interval: Interval, streams: int, executions: Sequence[Execution]) -> StreamsSummary:
    """Sum up the queries that ended within an interval: they count as its own, as transactions do."""
    ended = [
        execution
        for execution in executions
        if interval.begin <= execution.started_s + execution.seconds < interval.end
    ]
    done = [execution for execution in ended if not execution.failed]
    names = sorted({execution.query for execution in done}, key=in_order)
    by_name = {name: [execution.seconds for execution in done if execution.query == name] for name in names}
    return StreamsSummary(
        streams=streams,
        done=len(done),
        failed=len(ended) - len(done),
        per_hour=len(done) / interval.seconds * 3600,
        queries=[
            StreamQuerySummary(name, len(seconds), geometric_mean([max(second, 1e-6) for second in seconds]))
            for name, seconds in by_name.items()
        ],
    )


SHORTEST_S = 0.1
WIDEST = 1000.0
QUERY_COUNT = 22


def power_metric(factor: float, queries_s: Sequence[float], refreshes_s: Sequence[float] = ()) -> float:
    """Return queries per hour, by the geometric mean of 22 queries and the refresh functions (none: of the queries
    alone), times the scale factor. Raise ValueError for other than 22 queries."""
    if len(queries_s) != QUERY_COUNT:
        raise ValueError(f"{len(queries_s)} queries, not {QUERY_COUNT}")
    counted = counted_s(queries_s)
    return 3600 * factor / geometric_mean([*counted, *map(rounded, refreshes_s)])


def throughput_metric(factor: float, streams: int, elapsed_s: float) -> float:
    """Return queries per hour of all streams together, times the scale factor. `elapsed_s`: from the start of the first
    stream to the end of the last, that of the refreshes among them."""
    return streams * QUERY_COUNT * 3600 / rounded(elapsed_s) * factor


def composite_metric(power: float, throughput: float) -> float:
    return math.sqrt(power * throughput)


def counted_s(queries_s: Sequence[float]) -> list[float]:
    """Return run times as a power run counts them: one more than a thousand times faster than the slowest counts as
    a thousandth."""
    least = max(map(rounded, queries_s)) / WIDEST
    return [max(rounded(seconds), least) for seconds in queries_s]


def rounded(seconds: float) -> float:
    """Round to tenths of a second, and never less than one."""
    return max(SHORTEST_S, round(seconds, 1))
