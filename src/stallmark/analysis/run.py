"""The summary of one run, from its record."""

from dataclasses import dataclass, field, replace
from functools import lru_cache

from stallmark.analysis.finding import Finding
from stallmark.analysis.read.active_set import active_over_time
from stallmark.analysis.read.blocking import BlockedPair, DeadlockShape, read_blocking, read_deadlocks
from stallmark.analysis.read.clocks import clock_findings
from stallmark.analysis.read.concurrent_streams import StreamsSummary, streams_within
from stallmark.analysis.read.deferred_queue import read_deferred_queue
from stallmark.analysis.read.errors import read_errors
from stallmark.analysis.read.external import ExternalSummary, read_external
from stallmark.analysis.read.gaps import gap_findings
from stallmark.analysis.read.interval import measured_intervals
from stallmark.analysis.read.io import Io, read_io
from stallmark.analysis.read.maintenance import MaintenanceSummary, maintenance_within
from stallmark.analysis.read.queries import QueryRunSummary, read_queries
from stallmark.analysis.read.run_notes import run_notes
from stallmark.analysis.read.sample_times import ServerClock, server_clock
from stallmark.analysis.read.series import RunSeries, make_series
from stallmark.analysis.read.server_state import StateViews, read_state_views
from stallmark.analysis.read.server_views import our_databases, read_file_kinds, read_server_views
from stallmark.analysis.read.throughput import read_load
from stallmark.analysis.read.wait_parts import read_wait_parts
from stallmark.analysis.read.waits import read_waits
from stallmark.analysis.read.workload import read_workload
from stallmark.analysis.steady.cycles import checkpoint_marks, over_whole_cycles
from stallmark.analysis.step import summarise_step
from stallmark.analysis.step_summary import StepSummary
from stallmark.analysis.validity.judge import Validity
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
    collector_cost_share: float | None  # of one core
    growth_share: float | None  # of the database over the run
    conditions: list[Condition]
    deadlocks: list[DeadlockShape] = field(default_factory=list)  # most frequent first
    notes: list[Finding] = field(default_factory=list)  # what happened beside its figures
    clock: ServerClock | None = None  # by which its samples are dated
    external: list[ExternalSummary] = field(default_factory=list)
    queries: QueryRunSummary | None = None  # of a run of queries; its steps are its phases


def summarise_run(record: Record, key: str, repeated: bool = False) -> RunSummary:
    """Return the summary of a run. `key` begins the keys of its steps; `repeated`: its variant ran more than once."""
    manifest = record.manifest
    seconds = recorded_seconds(record)
    measured = measured_intervals(manifest, seconds, cut=record.incomplete_because is not None)
    seconds = max([seconds, *(interval.end for interval in measured)])
    server = record.whole
    io, state, files = _of_server(server)
    # A phase of queries is as long as its queries, whatever checkpoints fall into it.
    marks = None if manifest.queries else checkpoint_marks(io, our_databases(files), state)
    intervals = [over_whole_cycles(interval, marks) for interval in measured]
    views = read_server_views(server, files, state, intervals)
    workload = read_workload(manifest)
    load = read_load(record, seconds, intervals, workload.attended)
    errors, queue = read_errors(record, seconds), read_deferred_queue(record, seconds)
    validity = Validity(workload, load, errors, queue, manifest.conditions)
    blocked = read_blocking(server, intervals)
    clocks, gaps = clock_findings(server, intervals), gap_findings(server, intervals)
    waits, wait_parts = read_waits(record, intervals), read_wait_parts(record, seconds)
    ends = max((interval.end for interval in measured), default=None)
    streams = streams_within(record, intervals)
    active = active_over_time(server, io, load.seconds)
    series = make_series(load, io, active, views.state, workload.primary, ends)
    title = manifest.variant.name or record.folder.name
    return RunSummary(
        folder=record.folder.name,
        title=f"{title}, repeat {manifest.repeat}" if repeated else title,
        started=manifest.started,
        manifest=manifest,
        incomplete_because=record.incomplete_because,
        steps=[
            _read_so(
                summarise_step(
                    record, f"{key}-step{i.index + 1}", i, io, waits.get(i.index), wait_parts, views, validity
                ),
                clocks.get(i.index),
                gaps[i.index],
                blocked[i.index],
                streams.get(i.index),
                maintenance_within(record, i),
            )
            for i in intervals
        ],
        series=series,
        collectors_off={
            collector.title: collector.unavailable
            for collector in manifest.collectors.values()
            if collector.unavailable
        },
        collector_cost_share=_collector_cost(server, seconds),
        growth_share=_growth(record),
        conditions=list(manifest.conditions),
        deadlocks=read_deadlocks(server),
        notes=run_notes(record),
        clock=server_clock(server),
        external=read_external(record, series.tps, intervals),
        queries=read_queries(record),
    )


@lru_cache(maxsize=1)
def _of_server(record: Record) -> tuple[Io, StateViews, dict[str, str]]:
    """Return the server's I/O, its state and its files by kind, which are the same for all loads of a run."""
    return read_io(record), read_state_views(record), read_file_kinds(record)


def _read_so(
    step: StepSummary,
    clock: Finding | None,
    gaps: list[Finding],
    blocked: list[BlockedPair],
    streams: StreamsSummary | None,
    maintenance: MaintenanceSummary | None,
) -> StepSummary:
    """Return the step with who blocked whom, the gaps in what was read of it, and what is wrong with the server's clock
    among its reasons not to be compared. Beside other loads, streams of queries or maintenance physical reads are not
    given per transaction, as they cannot be told from their own."""
    invalid = [*step.validity.invalid, *([clock] if clock else [])]
    validity = replace(step.validity, gaps=gaps, invalid=invalid)
    mixed = streams or maintenance or step.beside
    storage = replace(step.storage, reads_per_transaction=None) if mixed else step.storage
    waits = replace(step.waits, blocked=blocked)
    return replace(step, validity=validity, waits=waits, storage=storage, streams=streams, maintenance=maintenance)


def _collector_cost(record: Record, seconds: int) -> float | None:
    """Return the CPU time of the collectors as a share of one core; None where it was not sampled."""
    spent, sampled = 0.0, False
    for batch in record.batches("collector_cost", ["cpu_us"]):
        spent += batch.column(0).to_numpy().sum() / 1e6
        sampled = sampled or batch.num_rows > 0
    return spent / seconds if sampled and seconds else None


def _growth(record: Record) -> float | None:
    before, after = record.manifest.database.bytes_before, record.manifest.database.bytes_after
    return after / before - 1 if before and after is not None else None
