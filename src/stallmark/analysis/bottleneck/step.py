"""The analysis of one step's bottleneck, put together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stallmark.analysis.bottleneck.associations import associations
from stallmark.analysis.bottleneck.attribution import IoTime
from stallmark.analysis.bottleneck.budget import make_budget, relative_spread
from stallmark.analysis.bottleneck.laws import laws, wait_laws
from stallmark.analysis.bottleneck.prediction import WHAT_IF_MS, predict
from stallmark.analysis.bottleneck.summary import Budget, Demands, NoteKind, Source, StepCause
from stallmark.analysis.finding import info
from stallmark.analysis.read.driver_tables import Load
from stallmark.analysis.read.interval import Interval
from stallmark.analysis.read.io import Io, over, own_cpu
from stallmark.analysis.read.server_summary import IoSummary, ServerWait
from stallmark.analysis.read.waits import WaitParts
from stallmark.record.manifest import Manifest


@dataclass(frozen=True)
class StepFigures:
    """The figures of a step that are needed besides its series: means over the measured interval."""

    tps: float  # its result
    data: IoSummary | None  # as the server counted it
    data_device: IoSummary | None
    cpu_process_share: float | None  # of the machine's CPUs, used by the server as it notes it every minute
    server_waits: Sequence[ServerWait]


def step_cause(
    step: StepFigures,
    manifest: Manifest,
    load: Load,
    io: Io,
    waits: WaitParts | None,
    interval: Interval,
    divided: Mapping[str, IoTime],
) -> StepCause:
    """Return what limits a step of transactions."""
    arrivals, beside = manifest.steps[interval.index].arrivals, manifest.steps[interval.index].beside
    budget = make_budget(load, io, waits, interval, divided)
    cycle_ms = _cycle_ms(load, interval) if arrivals == "closed" else None
    notes = []
    demands: Demands | None = None
    if budget is None:
        notes.append(info(NoteKind.OTHER_USERS if beside else NoteKind.NOT_LOOKED_AT))
    elif beside:
        notes.append(info(NoteKind.OTHER_LOADS))
    elif arrivals == "closed" and cycle_ms is None:
        notes.append(info(NoteKind.NOTHING_ENDED))
    elif cycle_ms is None:
        notes.append(info(NoteKind.OPEN_LOOP))
    elif not step.tps:
        notes.append(info(NoteKind.NOTHING_COUNTED))
    else:
        demands = _demands(step, manifest, load, io, waits, interval, budget, cycle_ms)
        if demands is None:
            notes.append(info(NoteKind.NO_READS))
        elif demands.cpu_ms is None:
            notes.append(info(NoteKind.CPU_UNKNOWN))
    return StepCause(
        budget,
        [
            *laws(manifest, load, io, waits, interval, arrivals),
            *wait_laws([] if beside else step.server_waits, waits.over(interval)[0] if waits else {}),
        ],
        associations(load, io, waits, interval, budget, cycle_ms),
        demands,
        [predict(demands, read_ms) for read_ms in WHAT_IF_MS] if demands else [],
        notes,
    )


def _cycle_ms(load: Load, interval: Interval) -> float | None:
    """Return a user's time per transaction."""
    done = interval.of(load.of_users("committed") + load.of_users("rolled_back")).sum()
    running = float(interval.of(load.user_sum("running")).sum())
    return running * 1000 / float(done) if done and running else None


def _demands(
    step: StepFigures,
    manifest: Manifest,
    load: Load,
    io: Io,
    waits: WaitParts | None,
    interval: Interval,
    budget: Budget,
    cycle_ms: float,
) -> Demands | None:
    """Return the demands; None where no reads were counted, or not timed. The budget is of all transactions: its parts
    are taken to be the same shares of those that users start."""
    counted, source = step.data_device, Source.DEVICE
    # Above the device a read takes longer than the device counts.
    if counted is None or not counted.read_ms or budget.is_above("read"):
        counted, source = step.data, Source.SERVER
    if counted is None or not counted.read_ms:
        return None
    done = float(interval.of(load.of_users("committed") + load.of_users("rolled_back")).sum())
    response_ms = min(cycle_ms, float(interval.of(load.of_users("latency_us")).sum()) / done / 1000)
    scale = response_ms / budget.response_ms
    part = {name: ms * scale for name, ms in budget.parts_ms.items()}
    rate = done / interval.seconds
    cores = _cores(manifest, io, interval)
    used = _used_cores(step, load, io, interval, cores)
    return Demands(
        users=rate * cycle_ms / 1000,
        think_ms=cycle_ms - response_ms,
        rate=rate,
        tps=step.tps,
        read_ms=counted.read_ms,
        read_source=source,
        read_part_ms=part["read"],
        read_volume_ms=counted.reads / counted.seconds / rate * counted.read_ms,
        lock_ms=part["lock"],
        cpu_part_ms=part["cpu"],
        cpu_ms=used * 1000 / rate if used else None,
        cores=cores,
        fixed_ms=sum(part[name] for name in ("log", "other_io", "unknown", "client", "queue", "rest")),
        spread=relative_spread(load, interval),
    )


def _used_cores(step: StepFigures, load: Load, io: Io, interval: Interval, cores: int | None) -> float | None:
    """Return the cores that the run itself kept busy, by its processes or as the server noted it, or None if unknown.
    CPU time of other programs is never part of it."""
    if (own := own_cpu(load, io, interval)) is not None:
        return own.cores
    return step.cpu_process_share * cores if step.cpu_process_share is not None and cores else None


def _cores(manifest: Manifest, io: Io, interval: Interval) -> int | None:
    """Return the cores of the server's machine, from the CPU time of all cores per second; else as the server
    reports them."""
    host = over(io.host, interval)
    if host is not None and not host.broken:
        return max(1, round(sum(host.values.values()) / host.seconds))
    told = manifest.server.settings.get("server schedulers", "")
    return int(told) if told.isdecimal() else None
