"""The summary of one run, from its record: its steps, its lines for the charts, and findings that no figure shows, such
as processes that stopped reporting."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from stallmark import capabilities
from stallmark.analysis.finding import Finding, Kind, caution, info
from stallmark.analysis.read.active_set import ActiveOverTime, active_over_time
from stallmark.analysis.read.io import Io, read_checkpoints, read_io
from stallmark.analysis.read.load_io import IoByLoad, LoadSessions
from stallmark.analysis.read.queries import QueryRunSummary, read_queries, summarise_streams
from stallmark.analysis.read.server_io import read_server_io
from stallmark.analysis.read.server_state import StateViews, read_state_views
from stallmark.analysis.read.server_summary import SERVER, per_second_mean, summed
from stallmark.analysis.read.server_views import read_server_views
from stallmark.analysis.read.throughput import DriverTables, Load, Part
from stallmark.analysis.read.times import (
    ServerClock,
    clock_findings,
    forget_calls,
    gap_findings,
    measured_intervals,
    server_clock,
)
from stallmark.analysis.read.transactions import background_names, read_deferred_queue, read_errors
from stallmark.analysis.read.waits import DeadlockShape, SessionWaits, read_blocking, read_deadlocks
from stallmark.analysis.steady import cut_to_whole_cycles, marks_of_counter, marks_of_writes
from stallmark.analysis.step import Server, summarise_step
from stallmark.analysis.step_summary import StepSummary
from stallmark.analysis.validity_gates import Validity
from stallmark.record.manifest import Manifest
from stallmark.record.manifest.course import Condition
from stallmark.record.reader import Record, recorded_seconds
from stallmark.stats.thresholds import CLOCKS_APART_MS, UNREPORTED_S


@dataclass(frozen=True)
class RunSeries:
    """Per-second lines of one run for the charts, in single precision; NaN if nothing is known. All arrays have equal
    length. Loads of one run share the lines of their server."""

    second: np.ndarray
    tps: np.ndarray
    read_ms: np.ndarray
    read_stall_ms_per_s: np.ndarray
    users: np.ndarray
    primary_tps: np.ndarray | None = None  # rate of the transaction that is the result
    checkpoint_pages: np.ndarray | None = None  # written by checkpoints, of all databases; None where not counted
    background_pages: np.ndarray | None = None  # written by the background writer, for indirect checkpoints
    flash_share: np.ndarray | None = (
        None  # share of the data device's reads that its flash answered; None without flash
    )
    active_bytes: np.ndarray | None = None  # different extents touched since the run began; a bound where not counted
    active_minute_bytes: np.ndarray | None = None  # bytes active in the last full minute; None if not counted

    def line(self, name: str) -> np.ndarray:
        """Return a line by its name; NaN throughout where the run has no such line."""
        line = getattr(self, name)
        return np.full(len(self.second), np.nan) if line is None else line


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

    @property
    def has_wrong_data(self) -> bool:
        """Return True if a consistency condition did not hold after the run."""
        return any(condition.holds is False for condition in self.conditions)

    @property
    def is_rate_given(self) -> bool:
        """Return True if throughput is the rate of arrivals, while the server keeps up with them."""
        manifest = self.manifest
        return manifest.search is None and any(step.arrivals != "closed" for step in manifest.steps)


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
    marks = None
    if not run.manifest.queries:
        marks = marks_of_counter(checkpoints) or marks_of_writes(state.checkpoint_pages())
    measured = [_measured(call.record) for call in calls]
    over_cycles = [
        replace(measured_part, intervals=[cut_to_whole_cycles(i, marks) for i in measured_part.intervals])
        for measured_part in measured
    ]
    within = [interval for part in (*measured, *over_cycles) for interval in part.intervals]
    sessions = LoadSessions(run, within) if run.manifest.loads else None
    server_io = read_server_io(run, [*within, *(sessions.stretches if sessions else ())])
    by_load = sessions.io_by_load(server_io) if sessions else {}
    del sessions  # the counters of each load, for all seconds of the run
    io = read_io(run, server_io, checkpoints)
    # SQL Server writes the pages of each database at its own times, and counts them in one sum.
    parts = measured if len(server_io.our_databases()) > 1 else over_cycles
    intervals = list({interval.span: interval for part in parts for interval in part.intervals}.values())
    seconds = max(part.seconds for part in parts)
    clock, clocks, gaps = server_clock(run), clock_findings(run, intervals), gap_findings(run, intervals)
    server = Server(
        io=io,
        lines=server_lines(io, active_over_time(run, io, seconds), state, seconds),
        views=read_server_views(run, io, state, intervals),
        blocked=read_blocking(run, intervals),
        clocks=clocks,
        gaps=gaps,
        io_by_load=by_load,
        clock=clock,
    )
    forget_calls()
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
        clock=server.clock,
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


class RunKind(Kind):
    COLLECTOR_OUTAGE = "collector_outage"
    SAMPLES_MISSED = "samples_missed"
    SAMPLES_INCOMPLETE = "samples_incomplete"
    CLOCKS_APART = "clocks_of_load_machines_apart"
    ARRIVALS_WAITED = "arrivals_waited_at_the_end"
    QUERIES_LEFT = "queries_of_an_open_loop_left"
    DEFERRED_WAITED = "deferred_transactions_waited_at_the_end"
    UNFINISHED = "transactions_did_not_end"
    EXECUTORS_SILENT = "executors_silent"
    EXECUTORS_LOST = "executors_lost"
    MAINTENANCE_FAILED = "maintenance_failed"


def run_notes(record: Record) -> list[Finding]:
    manifest = record.manifest
    return [*_load(manifest), *_lost_executors(record), *_maintenance(record), *_collectors(manifest)]


def _load(manifest: Manifest) -> Iterator[Finding]:
    apart_ms = max((machine.clock_within_ms for machine in manifest.load_machines), default=0.0)
    if apart_ms > CLOCKS_APART_MS:
        yield caution(RunKind.CLOCKS_APART, apart_ms=apart_ms)
    if count := manifest.left_waiting.arrivals:
        yield caution(RunKind.ARRIVALS_WAITED, transactions=count)
    for load in manifest.loads:
        if load.kind == "streams" and load.arrivals != "closed" and (load.left_waiting.arrivals or load.given_up):
            yield (caution if load.left_waiting.arrivals else info)(
                RunKind.QUERIES_LEFT, load=load.name, waiting=load.left_waiting.arrivals, given_up=load.given_up
            )
    if count := manifest.unheard.unfinished:
        yield caution(RunKind.UNFINISHED, transactions=count)
    if count := manifest.left_waiting.deferred:
        yield info(RunKind.DEFERRED_WAITED, transactions=count, cleared_by_next=manifest.workload.opening is not None)
    if count := manifest.unheard.silent:
        yield caution(RunKind.EXECUTORS_SILENT, executors=count)


def _lost_executors(record: Record) -> Iterator[Finding]:
    """Yield the number of lost executors, with the commits of each transaction that the database counted and no
    executor reported."""
    made = record.manifest
    if not made.unheard.lost:
        return
    seen: Counter[str] = Counter()
    for batch in record.batches("transactions", ["transaction", "committed"]):
        for name, committed in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            seen[name] += committed
    counted = {
        name: numbers.after - numbers.before
        for name, numbers in made.workload.counted.items()
        if numbers.after is not None
    }
    more = {name: number - seen[name] for name, number in counted.items()}
    yield caution(
        RunKind.EXECUTORS_LOST, executors=made.unheard.lost, within_s=UNREPORTED_S, unreported=more if counted else None
    )


def _maintenance(record: Record) -> Iterator[Finding]:
    """Yield the error by which maintenance ended: a statement that failed is not tried again."""
    for row in record.rows("maintenance", ["kind", "error"]):
        if row["error"]:
            yield caution(RunKind.MAINTENANCE_FAILED, maintenance=row["kind"], server_said=row["error"])


def _collectors(manifest: Manifest) -> Iterator[Finding]:
    for collector in manifest.collectors.values():
        for outage in collector.outages:
            yield caution(
                RunKind.COLLECTOR_OUTAGE,
                collector=collector.title,
                since_s=outage.since_s,
                until_s=outage.until_s,
                error=outage.reason,
            )
        if collector.missed:
            yield caution(RunKind.SAMPLES_MISSED, collector=collector.title, samples=collector.missed)
        if collector.incomplete:
            yield caution(RunKind.SAMPLES_INCOMPLETE, collector=collector.title, lacks=collector.incomplete)


def server_lines(io: Io, active: ActiveOverTime, state: StateViews, seconds: int) -> dict[str, np.ndarray | None]:
    """Return the lines that all loads of a run have in common, by name, shape (seconds,). Means are of the second's
    I/Os; NaN for a second without I/Os, or if nothing was measured."""
    rise = io.data.per_second(seconds, *SERVER.read_ms, *SERVER.reads) if io.data else {}

    def rate(names: tuple[str, ...]) -> np.ndarray:
        total = summed(rise, names)
        return np.full(seconds, np.nan) if total is None else total

    read_stall = rate(SERVER.read_ms)
    device = io.data_device.per_second(seconds, "flash_reads", "reads") if io.data_device else {}
    lines = {
        "read_ms": per_second_mean(read_stall, rate(SERVER.reads)),
        "read_stall_ms_per_s": read_stall,
        "checkpoint_pages": state.pool_pages("Checkpoint pages/sec", seconds),
        "background_pages": state.pool_pages("Background writer pages/sec", seconds),
        "flash_share": per_second_mean(device["flash_reads"], device["reads"]) if "flash_reads" in device else None,
        "active_bytes": active.run,
        "active_minute_bytes": active.minute,
    }
    return {"second": np.arange(seconds, dtype=np.int32)} | {
        name: _in_single_precision(line) for name, line in lines.items()
    }


def make_series(
    load: Load, server: Mapping[str, np.ndarray | None], primary: str | None, until: int | None
) -> RunSeries:
    """Return the lines of a load beside those of its `server`. `until`: the second at which the load ends; after it
    users stop one by one."""
    lines = dict(server) | {
        "tps": _in_single_precision(load.all("committed")),
        "users": _in_single_precision(load.user_sum("running")),
        "primary_tps": _in_single_precision(_committed(load, primary)) if primary else None,
    }
    cut: dict[str, Any] = {name: None if line is None else line[: load.seconds][:until] for name, line in lines.items()}
    return RunSeries(**cut)


def _in_single_precision(line: np.ndarray | None) -> np.ndarray | None:
    """Return a line in half of the memory, which days of many loads would fill. Counts of a second stay exact up to
    16 million."""
    return None if line is None else line.astype(np.float32)


def _committed(load: Load, transaction: str) -> np.ndarray:
    counts = load.counts.get(transaction)
    return counts["committed"] if counts else np.zeros(load.seconds)
