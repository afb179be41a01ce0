"""The summary of one run, from its record."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from stallmark import capabilities
from stallmark.analysis.finding import Finding
from stallmark.analysis.read.active_set import active_over_time
from stallmark.analysis.read.interval import measured_intervals
from stallmark.analysis.read.io import read_checkpoints, read_io
from stallmark.analysis.read.load_io import IoByLoad, LoadSessions
from stallmark.analysis.read.queries import QueryRunSummary, read_queries, summarise_streams
from stallmark.analysis.read.run_notes import run_notes
from stallmark.analysis.read.sample_times import ServerClock, clock_findings, forget_calls, gap_findings, server_clock
from stallmark.analysis.read.series import RunSeries, make_series, server_lines
from stallmark.analysis.read.server_io import read_server_io
from stallmark.analysis.read.server_state import read_state_views
from stallmark.analysis.read.server_views import our_databases, read_server_views
from stallmark.analysis.read.throughput import DriverTables, Load, Part
from stallmark.analysis.read.transactions import background_names, read_deferred_queue, read_errors
from stallmark.analysis.read.waits import DeadlockShape, SessionWaits, read_blocking, read_deadlocks
from stallmark.analysis.steady import checkpoint_marks, cut_to_whole_cycles
from stallmark.analysis.step import Server, summarise_step
from stallmark.analysis.step_summary import StepSummary
from stallmark.analysis.validity.service_level import Validity
from stallmark.record.manifest import Manifest
from stallmark.record.manifest.course import Condition
from stallmark.record.reader import Record, recorded_seconds


@dataclass(frozen=True)
class RunSummary:
    folder: str
    title: str  # "cap 5 %" or "cap 5 %, repeat 2"
    started: str  # UTC, ISO 8601
    manifest: Manifest
    incomplete_because: str | None
    steps: list[StepSummary]
    series: RunSeries
    collectors_off: dict[str, str]  # collector title -> why it measured nothing
    collector_cost_share: float | None  # share of one core
    growth_share: float | None  # growth of the database over the run
    conditions: list[Condition]
    deadlocks: list[DeadlockShape] = field(default_factory=list)  # most frequent first
    notes: list[Finding] = field(default_factory=list)  # events that its figures do not show
    clock: ServerClock | None = None  # dates the samples
    external: list[Any] = field(default_factory=list)  # measurements of other tools, as capabilities show them
    queries: QueryRunSummary | None = None  # a run of queries; its steps are its phases
    io_by_load: Sequence[IoByLoad | None] = ()  # steps of a run of several loads


class Call(NamedTuple):
    """A run, or one of its loads, to be summarised."""

    record: Record
    key: str  # the beginning of the keys of its steps
    repeated: bool = False  # True if its variant ran more than once


def summarise_run(record: Record, key: str, repeated: bool = False) -> RunSummary:
    """Return the summary of a run, or of one of its loads, by itself."""
    [summary] = summarise_together([Call(record, key, repeated)])
    return summary


def summarise_together(calls: Sequence[Call]) -> list[RunSummary]:
    """Return the summaries of one run, of some of its loads, or of both: shared tables are read once."""
    run = calls[0].record.whole
    checkpoints, state = read_checkpoints(run), read_state_views(run)
    # A phase of queries is as long as its queries, whatever checkpoints fall into it.
    marks = None if run.manifest.queries else checkpoint_marks(checkpoints, state)
    measured = [_measured(call.record) for call in calls]
    over_cycles = [
        replace(measured_part, intervals=[cut_to_whole_cycles(i, marks) for i in measured_part.intervals])
        for measured_part in measured
    ]
    within = [interval for part in (*measured, *over_cycles) for interval in part.intervals]
    sessions = LoadSessions(run, within) if run.manifest.loads else None
    server_io = read_server_io(run, [*within, *(sessions.stretches if sessions else ())])
    by_load = sessions.io_by_load(server_io) if sessions else {}
    io = read_io(run, server_io, checkpoints)
    # SQL Server writes the pages of each database at its own times, and counts them in one sum.
    parts = measured if len(our_databases(server_io.file_kinds)) > 1 else over_cycles
    intervals = list({interval.span: interval for part in parts for interval in part.intervals}.values())
    seconds = max(part.seconds for part in parts)
    clocks, gaps = clock_findings(run, intervals), gap_findings(run, intervals)
    forget_calls()
    server = Server(
        io=io,
        lines=server_lines(io, active_over_time(run, io, seconds), state, seconds),
        views=read_server_views(run, io, state, intervals),
        blocked=read_blocking(run, intervals),
        clocks=clocks,
        gaps=gaps,
        io_by_load=by_load,
    )
    driver = DriverTables(run, parts)
    waits = SessionWaits(run, parts)
    return [
        _summarise(
            call,
            part,
            driver.load_of(part),
            waits,
            server,
            max((i.end for i in part_intervals.intervals), default=None),
        )
        for call, part, part_intervals in zip(calls, parts, measured, strict=True)
    ]


def _measured(record: Record) -> Part:
    """Return the seconds and the measured intervals of a run or of one of its loads."""
    seconds = recorded_seconds(record)
    measured = measured_intervals(record.manifest, seconds, cut=record.incomplete_because is not None)
    seconds = max([seconds, *(interval.end for interval in measured)])
    return Part(record.load, seconds, measured, background_names(record.manifest.workload))


def _summarise(
    call: Call, part: Part, load: Load, session_waits: SessionWaits, server: Server, ends: int | None
) -> RunSummary:
    """Return the summary of a run, or of one of its loads. `ends` is the second at which its last measured interval
    ends."""
    record, key, repeated = call
    manifest, seconds, intervals = record.manifest, part.seconds, part.intervals
    errors, queue = read_errors(record, seconds), read_deferred_queue(record, seconds)
    validity = Validity(manifest, load, errors, queue)
    waits, wait_parts = session_waits.sampled(part), session_waits.parts(part)
    streams = summarise_streams(record, intervals)
    series = make_series(load, server.lines, manifest.workload.primary, ends)
    title = manifest.variant.name or record.folder.name
    return RunSummary(
        folder=record.folder.name,
        title=f"{title}, repeat {manifest.repeat}" if repeated else title,
        started=manifest.started,
        manifest=manifest,
        incomplete_because=record.incomplete_because,
        steps=[
            summarise_step(
                record,
                f"{key}-step{i.index + 1}",
                i,
                server,
                waits.get(i.index),
                wait_parts,
                validity,
                streams.get(i.index),
            )
            for i in intervals
        ],
        series=series,
        collectors_off={
            collector.title: collector.unavailable
            for collector in manifest.collectors.values()
            if collector.unavailable
        },
        collector_cost_share=_collector_cost(record.whole, seconds),
        growth_share=_growth(record),
        conditions=list(manifest.conditions),
        deadlocks=read_deadlocks(record.whole),
        notes=run_notes(record),
        clock=server_clock(record.whole),
        external=[
            summary for read in capabilities.parts("measurements") for summary in read(record, series.tps, intervals)
        ],
        queries=read_queries(record),
        io_by_load=[] if part.load else [server.io_by_load.get(interval.span) for interval in intervals],
    )


def _collector_cost(record: Record, seconds: int) -> float | None:
    """Return the CPU time of the collectors as a share of one core, or None if it was not sampled."""
    spent, sampled = 0.0, False
    for batch in record.batches("collector_cost", ["cpu_us"]):
        spent += batch.column(0).to_numpy().sum() / 1e6
        sampled = sampled or batch.num_rows > 0
    return spent / seconds if sampled and seconds else None


def _growth(record: Record) -> float | None:
    before, after = record.manifest.database.bytes_before, record.manifest.database.bytes_after
    return after / before - 1 if before and after is not None else None
