"""Every load in every step of a run, and the whole of each step."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from stallmark.analysis.bottleneck.summary import Budget
from stallmark.analysis.compare.sides import name_of
from stallmark.analysis.finding import Finding, invalid
from stallmark.analysis.finding import Kind as FindingKind
from stallmark.analysis.read.interval import Interval
from stallmark.analysis.read.load_io import IoByLoad, LoadIo, RawFigures, RawLoadSummary, read_raw_io
from stallmark.analysis.read.queries import Execution, LeftQuery, executions_of, left_of
from stallmark.analysis.read.sample_times import numbers
from stallmark.analysis.run import RunSummary
from stallmark.analysis.step_summary import StepSummary
from stallmark.analysis.validity.invalid import ValidityKind
from stallmark.analysis.validity.service_level import MEAN_ONLY, LevelOutcome, ServiceLevel, judge_reads, outcome_of
from stallmark.record.manifest import Manifest
from stallmark.record.manifest.workload import Load
from stallmark.record.reader import Record, recorded_seconds
from stallmark.stats.thresholds import LEAST_DONE, QUERY_WAITED_S


# The kinds of findings on several loads.
class LoadsKind(FindingKind):
    TOGETHER = "loads_against_alone"
    CELLS = "loads_by_cells"
    VARIANTS = "loads_by_variant"
    AT_ONCE = "loads_at_once"
    LEVELS = "service_levels_of_loads"
    HOST = "host_of_loads"
    READS_UNLIKE = "reads_of_loads_unlike_server"
    RAW_ENDED = "raw_load_ended_early"
    FEW_DONE = "few_done_by_load"
    VERDICTS = "verdicts_by_load"
    QUERIES_WAITED = "queries_waited_for_streams"


# One load in one step of one run: its figures, from the summaries that there are of users, raw I/O and streams.

Kind = Literal["users", "streams", "raw"]
_OF_THE_STEP = (ValidityKind.ENDED_EARLY, ValidityKind.FOREIGN_IO, ValidityKind.FOREIGN_CPU, ValidityKind.STORAGE_ERROR)
"""Reasons against a whole step, whichever loads ran in it."""


@dataclass(frozen=True)
class LoadLevel:
    """A load's service level in a step. The figure of users and streams is of the server's reads, whosever they are;
    that of a raw load is of its own I/Os."""

    limit_ms: float
    outcome: LevelOutcome
    figure: str  # "p95", "mean_only" or "none"
    figure_ms: float | None


@dataclass(frozen=True)
class LateQueries:
    """Queries at a rate that began in an interval or waited at its end, and how many of them had `waited` for a stream
    by then: of those the mean and the longest wait."""

    due: int
    waited: int
    mean_s: float
    worst_s: float


@dataclass(frozen=True)
class LoadStep:
    """A load in the measured interval of a step of a run. `rate` is its result: of users committed (primary)
    transactions per second, of streams queries per hour, of a raw load I/Os per second. `doubts`: why it must not be
    compared."""

    run: str  # its folder with the experiment's
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
    primary: str | None = None  # transaction whose rate is the result; None: all
    mb_per_s: float | None = None
    mean_ms: float | None = None
    p95_ms: float | None = None
    p99_ms: float | None = None
    failed: int | None = None
    reads_per_s: float | None = None  # physical, by its sessions
    level: LoadLevel | None = None
    budget: Budget | None = None
    open_loop: bool = False  # its rate is asked for
    waiting_unknown: bool = False  # of raw I/O at a rate: how much of it was due and had not ended
    late: LateQueries | None = None  # of streams in an open loop
    ended: int = 0  # of streams: queries that were done or failed
    doubts: list[Finding] = field(default_factory=list)


def of_users(load: Load, whole: StepSummary, own: StepSummary, alone: bool, io: LoadIo | None) -> LoadStep:
    """Return a load of users, of whom `own` is the summary."""
    return LoadStep(
        *_of(load, whole, own.users, alone),
        rate=own.result_tps,
        primary=own.throughput.primary,
        mean_ms=own.latency.mean_ms,
        p95_ms=own.latency.percentiles_ms.get("p95"),
        p99_ms=own.latency.percentiles_ms.get("p99"),
        failed=own.throughput.failed,
        reads_per_s=io.reads_per_s if io else None,
        level=_level(own.validity.slo),
        budget=own.cause.budget if own.cause else None,
        open_loop=load.arrivals != "closed",
        doubts=[*own.validity.invalid, *own.validity.driver_bound, *few_done(own)],
    )


def few_done(own: StepSummary) -> list[Finding]:
    """Return a finding where so few were committed that their rate is chance."""
    done = round((own.result_tps or 0.0) * own.interval.measured_s)
    if done >= LEAST_DONE:
        return []
    return [invalid(LoadsKind.FEW_DONE, done=done, least=LEAST_DONE, primary=own.throughput.primary)]


def of_raw(load: Load, whole: StepSummary, count: int, alone: bool, found: RawFigures | None) -> LoadStep:
    """Return a raw load; without figures where it did not run in the step though it was to."""
    planned_s = whole.interval.measured_s
    seen_s = found.seen_s if found else 0
    ended = seen_s < planned_s - 1
    plan = load.raw
    return LoadStep(
        *_of(load, whole, count, alone),
        rate=found.iops if found else None,
        mb_per_s=found.mb_per_s if found else None,
        mean_ms=found.mean_ms if found else None,
        p95_ms=found.latency_ms.get("p95") if found else None,
        p99_ms=found.latency_ms.get("p99") if found else None,
        level=_level_of_raw(load, found),
        open_loop=bool(plan and (plan.rate_iops or plan.rate_bytes)),
        waiting_unknown=_is_waiting_unknown(load, found),
        doubts=[
            invalid(LoadsKind.RAW_ENDED, load=load.name, seen_s=seen_s, planned_s=planned_s, said=load.ended_because)
        ]
        if ended
        else [],
    )


def of_streams(
    load: Load,
    whole: StepSummary,
    count: int,
    alone: bool,
    executions: Sequence[Execution],
    left: Sequence[LeftQuery],
    io: LoadIo | None,
) -> LoadStep:
    """Return streams of queries. A query counts in the step in which it ends; its time is from when it was due. One at
    a rate that has not ended by the end of the step counts, if it has taken longer by then than the mean of the others:
    it can only take longer still."""
    interval = whole.interval
    ended = [one for one in executions if interval.begin_s <= one.started_s + one.seconds < interval.end_s]
    done = [one for one in ended if not one.failed]
    queries, begin_s, end_s = _queries_at_rate(executions, left), interval.begin_s, interval.end_s
    waits = [min(one.began_s, end_s) - one.due_s for one in queries if one.due_s < end_s and one.began_s >= begin_s]
    so_far = [min(one.until_s, end_s) - one.due_s for one in queries if one.is_under_way(begin_s, end_s)]
    return LoadStep(
        *_of(load, whole, count, alone),
        rate=len(done) / interval.measured_s * 3600,
        mean_ms=_mean_ms([one.late_s + one.seconds for one in done], so_far),
        failed=len(ended) - len(done),
        ended=len(ended),
        reads_per_s=io.reads_per_s if io else None,
        level=_level(judge_reads(load.service_level, whole.server.io_latency, whole.storage.data)),
        open_loop=load.arrivals != "closed",
        late=_late(waits),
        doubts=[one for one in whole.validity.invalid if one.kind in _OF_THE_STEP],
    )


@dataclass(frozen=True)
class _AtRate:
    """A query at a rate: when it was due, when it began or was forgotten, and when it ended or was given up."""

    due_s: float
    began_s: float
    until_s: float
    ended: bool

    def is_under_way(self, begin_s: float, end_s: float) -> bool:
        """Return whether it was due and had not ended at the end of an interval, or was given up within it."""
        return self.due_s < end_s and (self.until_s >= end_s or (not self.ended and self.until_s >= begin_s))


def _queries_at_rate(executions: Sequence[Execution], left: Sequence[LeftQuery]) -> list[_AtRate]:
    ended = [
        _AtRate(one.due_s, one.started_s, one.started_s + one.seconds, True)
        for one in executions
        if one.due_s is not None
    ]
    unended = [
        _AtRate(one.due_s, one.left_s if one.started_s is None else one.started_s, one.left_s, False) for one in left
    ]
    return [*ended, *unended]


def _mean_ms(done_s: Sequence[float], so_far_s: Sequence[float]) -> float | None:
    """Return the mean time of queries, with those that have not ended and already took longer than the mean."""
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


def _of(
    load: Load, whole: StepSummary, count: int, alone: bool
) -> tuple[str, str, int, str, int | None, bool, str, Kind, int, bool]:
    emulated = bool(load.raw.emulated) if load.raw else whole.emulated
    return (
        whole.run, whole.variant, whole.repeat, whole.step, whole.cells, alone, load.name, load.kind, count, emulated,
    )  # fmt: skip


def _level(judged: ServiceLevel | None) -> LoadLevel | None:
    """Return the level of a load that is held to the server's reads."""
    return LoadLevel(judged.limit_ms, judged.outcome, judged.figure, judged.figure_ms) if judged else None


def _level_of_raw(load: Load, found: RawFigures | None) -> LoadLevel | None:
    asked = load.service_level
    if asked is None or asked.read_ms is None:
        return None
    percentile_ms = found.latency_ms.get(asked.percentile) if found else None
    mean_ms = found.mean_ms if found else None
    figure, figure_ms = (asked.percentile, percentile_ms) if percentile_ms is not None else (MEAN_ONLY, mean_ms)
    outcome = outcome_of(figure, figure_ms, asked.read_ms)
    if _is_waiting_unknown(load, found) and outcome != LevelOutcome.NOT_MET:
        outcome = LevelOutcome.NOT_KNOWN
    return LoadLevel(asked.read_ms, outcome, "none" if figure_ms is None else figure, figure_ms)


def _is_waiting_unknown(load: Load, found: RawFigures | None) -> bool:
    """Return whether it was not recorded which I/Os of a rate still waited. Older records measure from issuing, too."""
    return bool(load.raw and load.raw.rate_iops and found and found.waiting is None)


# Every load in every step of a run, and the whole of each step: its I/O, its device, its host.

_DRIVES = re.compile(r"\s*(\d+)\s*(?:x|×|drives?\b|disks?\b|SSDs?\b|HDDs?\b)", re.IGNORECASE)


@dataclass(frozen=True)
class WholeStep:
    """A step of a run over all its loads. `iops` are of the data's device; `memory_share`: the most of the host's
    memory that was not available."""

    run: str
    variant: str
    repeat: int
    step: str
    cells: int | None
    measured_s: float
    iops: float | None
    drives: int | None
    busy_share: float | None
    read_ms: float | None  # of data files, as the server counts it
    reads_per_s: float | None
    cpu_busy_share: float | None
    memory_share: float | None
    io: IoByLoad | None  # where the server tells it by session
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
    raw: list[RawLoadSummary]
    io: IoByLoad | None  # where the server tells it by session


def measured_steps(record: Record, run: RunSummary) -> list[MeasuredStep]:
    """Read the measured steps of a run, of whose record `run` is the summary."""
    steps = _planned(record.manifest, run)
    intervals = [_interval(number, step) for number, step, _ in steps]
    raw = read_raw_io(record, max([recorded_seconds(record), *(one.end for one in intervals)]), intervals)
    return [
        MeasuredStep(number, step, interval, raw.within(interval), by_load)
        for (number, step, by_load), interval in zip(steps, intervals, strict=True)
    ]


def steps_of_loads(record: Record, measured: Sequence[MeasuredStep], views: Mapping[str, RunSummary]) -> list[LoadStep]:
    """Return the loads of every measured step. `views` are the summaries of the run's loads of users."""
    streams = any(load.kind == "streams" for load in record.loads)
    executions, left = (executions_of(record), left_of(record)) if streams else ([], [])
    found = []
    for one in measured:
        planned, step = record.manifest.steps[one.number], one.summary
        raw = {each.load: each.together for each in one.raw}
        for load in record.loads:
            if not (count := load.counts[one.number]):
                continue
            alone = planned.alone == load.name
            own_io = one.io.loads.get(load.name) if one.io else None
            match load.kind:
                case "raw":
                    found.append(of_raw(load, step, count, alone, raw.get(load.name)))
                case "streams":
                    queries = [each for each in executions if each.load == load.name]
                    unended = [each for each in left if each.load == load.name]
                    found.append(of_streams(load, step, count, alone, queries, unended, own_io))
                case "users":
                    for own in views[load.name].steps:  # none where it had ended before
                        if planned.begin_s <= own.interval.begin_s < planned.end_s:
                            found.append(of_users(load, step, own, alone, own_io))
    return found


def whole_steps(record: Record, measured: Sequence[MeasuredStep]) -> list[WholeStep]:
    """Return the measured steps of a run over all their loads."""
    emulated = {load.name for load in record.loads if load.raw and load.raw.emulated and load.raw.folder is None}
    free, total = _available_bytes(record), record.manifest.machine.memory_bytes
    found = []
    for one in measured:
        step, interval = one.summary, one.interval
        data, device = step.storage.data, step.storage.data_device
        beside = sum(raw.together.iops for raw in one.raw if raw.load in emulated)  # counted apart
        least = min((some for t, some in free if interval.begin <= t < interval.end), default=None)
        found.append(
            WholeStep(
                run=step.run,
                variant=step.variant,
                repeat=step.repeat,
                step=step.step,
                cells=step.cells,
                measured_s=step.interval.measured_s,
                iops=device.iops + beside if device else None,
                drives=drives_of(record.manifest),
                busy_share=step.storage.busy_share,
                read_ms=data.read_ms if data else None,
                reads_per_s=data.reads / data.seconds if data else None,
                cpu_busy_share=step.server.cpu_busy_share,
                memory_share=1 - least / total if least is not None and total else None,
                io=one.io,
                emulated=step.emulated,
            )
        )
    return found


def drives_of(manifest: Manifest) -> int | None:
    """Return how many drives hold the data: of an emulated array, or as the scenario describes a real one with its
    number first, "24 x 600 GB 10k"; None where that is not said."""
    if emulated := manifest.devices.of("data").emulated_array:
        return emulated.spindles
    told = _DRIVES.match(manifest.array.drives or "") if manifest.array else None
    return int(told[1]) if told else None


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
    return [(float(when), float(some)) for when, some in zip(t, available, strict=True) if not np.isnan(some)]
