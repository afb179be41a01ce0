"""Every load in every step of a run, and each step over all loads."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from stallmark.analysis.compare.sides import name_of
from stallmark.analysis.finding import Finding, invalid
from stallmark.analysis.finding import Kind as FindingKind
from stallmark.analysis.read.load_io import IoByLoad, LoadIo, RawFigures, read_raw_io
from stallmark.analysis.read.queries import Execution, LeftQuery, read_executions, read_left_queries
from stallmark.analysis.read.times import Interval, numbers
from stallmark.analysis.run import RunSummary
from stallmark.analysis.service_level import MEAN_ONLY, LevelOutcome, ServiceLevel, judge_figure, judge_reads
from stallmark.analysis.step_summary import Budget, StepSummary
from stallmark.analysis.validity import ValidityKind
from stallmark.record.manifest import Manifest
from stallmark.record.manifest.workload import Load
from stallmark.record.reader import Record
from stallmark.stats.thresholds import LEAST_DONE, QUERY_WAITED_S


# The kinds of findings on several loads.
class LoadsKind(FindingKind):
    TOGETHER = "loads_against_alone"
    CELLS = "loads_by_cells"
    VARIANTS = "loads_by_variant"
    AT_ONCE = "loads_at_once"
    OF_LOAD = "of_load"
    LEVELS = "service_levels_of_loads"
    HOST = "host_of_loads"
    READS_UNLIKE = "reads_of_loads_unlike_server"
    RAW_ENDED = "raw_load_ended_early"
    FEW_DONE = "few_done_by_load"
    VERDICTS = "verdicts_by_load"
    QUERIES_WAITED = "queries_waited_for_streams"


# One load in one step of one run: its figures, from the summaries that there are of users, raw I/O and streams.

Kind = Literal["users", "streams", "raw"]
_OF_THE_STEP = (
    ValidityKind.BY_HAND,
    ValidityKind.ENDED_EARLY,
    ValidityKind.FOREIGN_IO,
    ValidityKind.FOREIGN_CPU,
    ValidityKind.STORAGE_ERROR,
)
"""Reasons that void a step for every load in it."""


@dataclass(frozen=True)
class LoadLevel:
    """A load's service level in a step.

    For users and streams the figure covers all reads of the server; for a raw load it covers its own I/Os.
    """

    limit_ms: float
    outcome: LevelOutcome
    figure: str  # "p95", "mean_only" or "none"
    figure_ms: float | None


@dataclass(frozen=True)
class LateQueries:
    """Queries at a rate that began in an interval or waited at its end."""

    due: int
    waited: int  # queries that had waited for a stream by the interval's end
    mean_s: float  # mean wait of those
    worst_s: float


@dataclass(frozen=True)
class LoadStep:
    """A load in the measured interval of a step of a run."""

    run: str  # folder of the run, with the experiment's
    variant: str
    repeat: int
    step: str
    cells: int | None
    alone: bool
    load: str
    kind: Kind
    count: int  # users, streams, or cells of a raw load
    emulated: bool
    rate: float | None
    """Users: committed (primary) transactions per second; streams: queries per hour; raw loads: I/Os per second."""
    primary: str | None = None  # transaction whose rate is the result; None: all
    mb_per_s: float | None = None
    mean_ms: float | None = None
    p95_ms: float | None = None
    p99_ms: float | None = None
    failed: int | None = None
    reads_per_s: float | None = None  # physical reads by the load's sessions
    level: LoadLevel | None = None
    budget: Budget | None = None
    open_loop: bool = False  # the rate is given
    waiting_unknown: bool = False  # raw I/O at a rate: the number due that had not ended is unknown
    late: LateQueries | None = None  # streams in an open loop
    ended: int = 0  # streams: queries that were done or failed
    doubts: list[Finding] = field(default_factory=list)  # reasons why the load must not be compared


def users_step(load: Load, whole: StepSummary, own: StepSummary, alone: bool, io: LoadIo | None) -> LoadStep:
    """Return a load of users, whose own summary is `own`."""
    return LoadStep(
        *_common_fields(load, whole, own.users, alone),
        rate=own.result_tps,
        primary=own.throughput.primary,
        mean_ms=own.latency.mean_ms,
        p95_ms=own.latency.percentiles_ms.get("p95"),
        p99_ms=own.latency.percentiles_ms.get("p99"),
        failed=own.throughput.failed,
        reads_per_s=io.reads_per_s if io else None,
        level=_level(own.validity.slo),
        budget=own.budget,
        open_loop=load.arrivals != "closed",
        doubts=[*own.validity.invalid, *own.validity.driver_bound, *few_done(own)],
    )


def few_done(own: StepSummary) -> list[Finding]:
    """Return a finding if the committed transactions are too few for a rate."""
    done = round((own.result_tps or 0.0) * own.interval.measured_s)
    if done >= LEAST_DONE:
        return []
    return [invalid(LoadsKind.FEW_DONE, done=done, least=LEAST_DONE, primary=own.throughput.primary)]


def raw_step(load: Load, whole: StepSummary, count: int, alone: bool, raw_figures: RawFigures | None) -> LoadStep:
    """Return a raw load; without figures if it was planned for the step and did not run."""
    planned_s = whole.interval.measured_s
    seen_s = raw_figures.seen_s if raw_figures else 0
    # The last second of a load may be partial.
    ended = seen_s < planned_s - 1
    plan = load.raw
    return LoadStep(
        *_common_fields(load, whole, count, alone),
        rate=raw_figures.iops if raw_figures else None,
        mb_per_s=raw_figures.mb_per_s if raw_figures else None,
        mean_ms=raw_figures.mean_ms if raw_figures else None,
        p95_ms=raw_figures.latency_ms.get("p95") if raw_figures else None,
        p99_ms=raw_figures.latency_ms.get("p99") if raw_figures else None,
        level=_level_of_raw(load, raw_figures),
        open_loop=bool(plan and (plan.rate_iops or plan.rate_bytes)),
        waiting_unknown=_is_waiting_unknown(load, raw_figures),
        doubts=[
            invalid(LoadsKind.RAW_ENDED, load=load.name, seen_s=seen_s, planned_s=planned_s, said=load.ended_because)
        ]
        if ended
        else [],
    )


def streams_step(
    load: Load,
    whole: StepSummary,
    count: int,
    alone: bool,
    executions: Sequence[Execution],
    left: Sequence[LeftQuery],
    io: LoadIo | None,
) -> LoadStep:
    """Return streams of queries.

    A query counts in the step in which it ends; its time starts when it was due. A query at a rate that has not ended
    by the end of the step counts if it has already taken longer than the mean of the others: its time can only grow.
    """
    interval = whole.interval
    ended = [
        execution
        for execution in executions
        if interval.begin_s <= execution.started_s + execution.seconds < interval.end_s
    ]
    # A failed query ended early, so its time is not that of the query.
    done = [execution for execution in ended if not execution.failed]
    queries, begin_s, end_s = _queries_at_rate(executions, left), interval.begin_s, interval.end_s
    waits = [
        min(query.began_s, end_s) - query.due_s for query in queries if query.due_s < end_s and query.began_s >= begin_s
    ]
    so_far = [min(query.until_s, end_s) - query.due_s for query in queries if query.is_under_way(begin_s, end_s)]
    return LoadStep(
        *_common_fields(load, whole, count, alone),
        rate=len(done) / interval.measured_s * 3600,
        mean_ms=_mean_ms([execution.late_s + execution.seconds for execution in done], so_far),
        failed=len(ended) - len(done),
        ended=len(ended),
        reads_per_s=io.reads_per_s if io else None,
        level=_level(judge_reads(load.service_level, whole.server.io_latency, whole.storage.data)),
        open_loop=load.arrivals != "closed",
        late=_late(waits),
        doubts=[doubt for doubt in whole.validity.invalid if doubt.kind in _OF_THE_STEP],
    )


@dataclass(frozen=True)
class _QueryAtRate:
    """A query at a rate: when it was due, when it began or was forgotten, and when it ended or was given up."""

    due_s: float
    began_s: float  # time of its start, or of its removal from the queue
    until_s: float  # time at which it ended or was given up
    ended: bool

    def is_under_way(self, begin_s: float, end_s: float) -> bool:
        """Return True if the query was due and still running at the end of an interval, or was given up within the
        interval."""
        return self.due_s < end_s and (self.until_s >= end_s or (not self.ended and self.until_s >= begin_s))


def _queries_at_rate(executions: Sequence[Execution], left: Sequence[LeftQuery]) -> list[_QueryAtRate]:
    ended = [
        _QueryAtRate(execution.due_s, execution.started_s, execution.started_s + execution.seconds, True)
        for execution in executions
        if execution.due_s is not None
    ]
    unended = [
        _QueryAtRate(query.due_s, query.left_s if query.started_s is None else query.started_s, query.left_s, False)
        for query in left
    ]
    return [*ended, *unended]


def _mean_ms(done_s: Sequence[float], so_far_s: Sequence[float]) -> float | None:
    """Return the mean time of queries, including running ones that already took longer than the mean."""
    if not done_s:
        return None
    mean_s = sum(done_s) / len(done_s)
    known_s = [*done_s, *(seconds for seconds in so_far_s if seconds > mean_s)]
    return sum(known_s) / len(known_s) * 1000


def _late(at_a_rate_s: Sequence[float]) -> LateQueries | None:
    waits = [seconds for seconds in at_a_rate_s if seconds > QUERY_WAITED_S]
    if not at_a_rate_s:
        return None
    return LateQueries(len(at_a_rate_s), len(waits), sum(waits) / max(len(waits), 1), max(waits, default=0.0))


def _common_fields(
    load: Load, whole: StepSummary, count: int, alone: bool
) -> tuple[str, str, int, str, int | None, bool, str, Kind, int, bool]:
    emulated = bool(load.raw.emulated) if load.raw else whole.emulated
    return (
        whole.run, whole.variant, whole.repeat, whole.step, whole.cells, alone, load.name, load.kind, count, emulated,
    )  # fmt: skip


def _level(judged: ServiceLevel | None) -> LoadLevel | None:
    """Return the level of a load that is judged by the server's reads."""
    return LoadLevel(judged.limit_ms, judged.outcome, judged.figure, judged.figure_ms) if judged else None


def _level_of_raw(load: Load, raw_figures: RawFigures | None) -> LoadLevel | None:
    objective = load.service_level
    if objective is None or objective.read_ms is None:
        return None
    percentile_ms = raw_figures.latency_ms.get(objective.percentile) if raw_figures else None
    mean_ms = raw_figures.mean_ms if raw_figures else None
    figure, figure_ms = (objective.percentile, percentile_ms) if percentile_ms is not None else (MEAN_ONLY, mean_ms)
    outcome = judge_figure(figure, figure_ms, objective.read_ms)
    # I/Os that still waited would only be slower, so a met limit is uncertain.
    if _is_waiting_unknown(load, raw_figures) and outcome != LevelOutcome.NOT_MET:
        outcome = LevelOutcome.NOT_KNOWN
    return LoadLevel(objective.read_ms, outcome, "none" if figure_ms is None else figure, figure_ms)


def _is_waiting_unknown(load: Load, raw_figures: RawFigures | None) -> bool:
    """Return True if the record lacks the waiting I/Os of a rate. Such older records also measure from issuing."""
    return bool(load.raw and load.raw.rate_iops and raw_figures and raw_figures.waiting is None)


# Every load in every step of a run, and the whole of each step: its I/O, its device, its host.

_DRIVES = re.compile(r"\s*(\d+)\s*(?:x|×|drives?\b|disks?\b|SSDs?\b|HDDs?\b)", re.IGNORECASE)


@dataclass(frozen=True)
class WholeStep:
    """A step of a run over all its loads."""

    run: str
    variant: str
    repeat: int
    step: str
    cells: int | None
    measured_s: float
    iops: float | None  # I/Os per second of the data's device
    drives: int | None
    busy_share: float | None
    read_ms: float | None  # data files, by the server's counters
    reads_per_s: float | None
    cpu_busy_share: float | None
    memory_share: float | None  # largest share of the host's memory that was not available
    io: IoByLoad | None  # if the server reports I/O by session
    emulated: bool

    @property
    def iops_per_drive(self) -> float | None:
        return None if self.iops is None or not self.drives else self.iops / self.drives


@dataclass(frozen=True)
class MeasuredStep:
    """A measured step of a run, the `number`th of its manifest, with the I/O of its loads."""

    number: int
    summary: StepSummary
    interval: Interval
    raw: Mapping[str, RawFigures]  # keys: load
    io: IoByLoad | None  # if the server reports I/O by session


def measured_steps(record: Record, run: RunSummary) -> list[MeasuredStep]:
    """Read the measured steps of a run. `run` is the summary of its record."""
    steps = _planned(record.manifest, run)
    intervals = [_interval(number, step) for number, step, _ in steps]
    raw = read_raw_io(record, intervals)
    return [
        MeasuredStep(number, step, interval, raw.get(interval.index, {}), by_load)
        for (number, step, by_load), interval in zip(steps, intervals, strict=True)
    ]


def steps_of_loads(record: Record, measured: Sequence[MeasuredStep], views: Mapping[str, RunSummary]) -> list[LoadStep]:
    """Return the loads of every measured step. `views` are the summaries of the run's loads of users."""
    streams = any(load.kind == "streams" for load in record.loads)
    executions, left = (read_executions(record), read_left_queries(record)) if streams else ([], [])
    load_steps = []
    for measured_step in measured:
        planned, step = record.manifest.steps[measured_step.number], measured_step.summary
        for load in record.loads:
            if not (count := load.counts[measured_step.number]):
                continue
            alone = planned.alone == load.name
            own_io = measured_step.io.loads.get(load.name) if measured_step.io else None
            match load.kind:
                case "raw":
                    load_steps.append(raw_step(load, step, count, alone, measured_step.raw.get(load.name)))
                case "streams":
                    queries = [execution for execution in executions if execution.load == load.name]
                    unended = [query for query in left if query.load == load.name]
                    load_steps.append(streams_step(load, step, count, alone, queries, unended, own_io))
                case "users":
                    for own in views[load.name].steps:  # empty if the load ended before
                        if planned.begin_s <= own.interval.begin_s < planned.end_s:
                            load_steps.append(users_step(load, step, own, alone, own_io))
    return load_steps


def whole_steps(record: Record, measured: Sequence[MeasuredStep]) -> list[WholeStep]:
    """Return the measured steps of a run over all their loads."""
    emulated = {load.name for load in record.loads if load.raw and load.raw.emulated and load.raw.folder is None}
    free, total = _available_bytes(record), record.manifest.machine.memory_bytes
    steps = []
    for measured_step in measured:
        step, interval = measured_step.summary, measured_step.interval
        data, device = step.storage.data, step.storage.data_device
        # Such loads are counted apart from the device.
        raw_iops = sum(figures.iops for load, figures in measured_step.raw.items() if load in emulated)
        least = min((available for t, available in free if interval.begin <= t < interval.end), default=None)
        steps.append(
            WholeStep(
                run=step.run,
                variant=step.variant,
                repeat=step.repeat,
                step=step.step,
                cells=step.cells,
                measured_s=step.interval.measured_s,
                iops=device.iops + raw_iops if device else None,
                drives=count_drives(record.manifest),
                busy_share=step.storage.busy_share,
                read_ms=data.read_ms if data else None,
                reads_per_s=data.reads / data.seconds if data else None,
                cpu_busy_share=step.server.cpu_busy_share,
                memory_share=1 - least / total if least is not None and total else None,
                io=measured_step.io,
                emulated=step.emulated,
            )
        )
    return steps


def count_drives(manifest: Manifest) -> int | None:
    """Return the number of drives that hold the data, or None if unknown.

    They are the spindles of an emulated array, or the number that begins the description of a real one: "24 x 600 GB
    10k".
    """
    if emulated := manifest.devices.for_role("data").emulated_array:
        return emulated.spindles
    described = _DRIVES.match(manifest.array.drives or "") if manifest.array else None
    return int(described[1]) if described else None


def _planned(manifest: Manifest, run: RunSummary) -> list[tuple[int, StepSummary, IoByLoad | None]]:
    """Return the measured steps, under a name of their run that is unique, with their numbers in the manifest and their
    I/O by load: one that was not reached is left out."""
    return [
        (index, replace(step, run=name_of(run)), by_load)
        for step, by_load in zip(run.steps, run.io_by_load, strict=True)
        for index, planned in enumerate(manifest.steps)
        if planned.begin_s <= step.interval.begin_s < planned.end_s
    ]


def _interval(index: int, step: StepSummary) -> Interval:
    within = step.interval
    return Interval(index, within.begin_s, within.end_s, within.measured_s, within.cut)


def _available_bytes(record: Record) -> list[tuple[float, float]]:
    t, available = numbers(record, "host", "t"), numbers(record, "host", "available_bytes")
    if t is None or available is None:
        return []
    return [(float(when), float(size)) for when, size in zip(t, available, strict=True) if not np.isnan(size)]
