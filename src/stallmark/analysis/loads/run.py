"""Every load in every step of a run, and the whole of each step: its I/O, its device, its host."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from stallmark.analysis.compare.sides import name_of
from stallmark.analysis.loads.step import LoadStep, of_raw, of_streams, of_users
from stallmark.analysis.read.interval import Interval
from stallmark.analysis.read.load_io import IoByLoad, RawLoadSummary, read_io_by_load, read_raw_io
from stallmark.analysis.read.queries import executions_of, left_of
from stallmark.analysis.read.sample_times import numbers
from stallmark.analysis.run import RunSummary
from stallmark.analysis.step_summary import StepSummary
from stallmark.record.manifest import Manifest
from stallmark.record.reader import Record, recorded_seconds

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
    intervals = [_interval(number, step) for number, step in steps]
    raw = read_raw_io(record, max([recorded_seconds(record), *(one.end for one in intervals)]), intervals)
    return [
        MeasuredStep(number, step, interval, raw.within(interval), by_load)
        for (number, step), interval, by_load in zip(steps, intervals, read_io_by_load(record, intervals), strict=True)
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


def _planned(manifest: Manifest, run: RunSummary) -> list[tuple[int, StepSummary]]:
    """Return the measured steps, under a name of their run that is unique, with their numbers in the manifest: one that
    was not reached is left out."""
    return [
        (index, replace(step, run=name_of(run)))
        for step in run.steps
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
