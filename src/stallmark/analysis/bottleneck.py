"""The bottleneck of one step: is it the device? The verdict follows from the users' waits and the load of device and
host. The analysis of the step's causes, put together, with the series that moved with throughput."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from stallmark.analysis.attribution import IoTime, laws, make_budget, relative_spread, wait_laws
from stallmark.analysis.finding import Finding, Kind, info
from stallmark.analysis.prediction import WHAT_IF_MS, predict
from stallmark.analysis.read.io import Io, cpu_of_run, host_cpu
from stallmark.analysis.read.server_summary import DEVICE, SERVER, IoSummary, delta_over, per_second_mean, summed
from stallmark.analysis.read.server_views import ServerWait
from stallmark.analysis.read.throughput import Load
from stallmark.analysis.read.times import Interval
from stallmark.analysis.read.waits import WaitParts
from stallmark.analysis.step_summary import Associated, Association, Budget, Demands, NoteKind, Source, StepCause
from stallmark.record.manifest import Manifest
from stallmark.stats.inference import binned, correlate_changes, elasticity, lag
from stallmark.stats.thresholds import (
    ABOVE,
    ASSOCIATION_BIN_S,
    ASSOCIATION_BINS,
    CPU_ALONE,
    CPU_BUSY,
    CPU_LIMITS,
    DEVICE_BUSY,
    DEVICE_FREE,
    DEVICE_LIMITS,
    DEVICE_QUEUES,
    PROGRESS_FLOOR,
)


class DeviceKind(Kind):
    """Verdicts on the device on which users waited most."""

    LIMITS = "device_limits"
    LATENCY_LIMITS = "device_latency_limits"
    """The device's latency limits, more than its queue."""
    ABOVE_LIMITS = "io_above_device_limits"
    """Storage limits, with more time above the device than in the device: a limit, a queue, a file system."""
    NOT_LIMITING = "device_not_limiting"
    ONE_OF_SEVERAL = "device_one_limit_of_several"
    WITH_CPUS = "device_and_cpus_limit"
    CPUS_LIMIT = "cpus_limit"
    """Faster storage would give next to nothing."""
    NOT_DIVIDED = "io_and_cpu_not_divided"
    """Sessions in I/O may have waited for storage or for a CPU, and that would reverse the verdict."""
    CPUS_BUSY_OTHERWISE = "cpus_busy_otherwise"
    """CPUs were busy with work that is mostly unexplained, so storage's part is unknown."""
    NOT_TOLD = "device_not_told_by_load"


class JudgedDevice(StrEnum):
    DATA = "data"
    LOG = "log"


IS_BOTTLENECK = {
    DeviceKind.LIMITS: True,
    DeviceKind.LATENCY_LIMITS: True,
    DeviceKind.ABOVE_LIMITS: True,
    DeviceKind.NOT_LIMITING: False,
    DeviceKind.CPUS_LIMIT: False,
}
"""The answer to “is storage the bottleneck?” by kind. For other kinds it is unknown, or storage is one limit among
others."""

NOT_JUDGED = (DeviceKind.NOT_DIVIDED, DeviceKind.CPUS_BUSY_OTHERWISE, DeviceKind.NOT_TOLD)
"""The verdicts that leave open whether storage limits."""


def device_verdict(
    waits: Mapping[str, float] | None,
    data_busy: float | None,
    wal_busy: float | None,
    cpu_busy: float | None,
    wal_separate: bool,
    divided: tuple[IoTime, IoTime] = (IoTime(), IoTime()),
    cpu_own: float | None = None,
    closed: bool = True,
) -> Finding | None:
    """Judge the device on which users waited most; return None if too little is known.

    `waits` are shares by wait class. Give a device's busy share only if 1 means that it is saturated. `wal_separate`:
    the log is on its own device. `divided`: the time in I/O of data files and of the log (`divide_io`). `cpu_own`: the
    share of the CPUs that sessions and executors, or the server's process, account for, or None if unknown. `closed`:
    throughput follows from the response time, and is not the requested rate.
    """
    if waits is None:
        return _judge_without_waits(data_busy, cpu_busy, closed)
    of_log = wal_separate and waits["wal"] > waits["io"]
    device, busy = (JudgedDevice.LOG, wal_busy) if of_log else (JudgedDevice.DATA, data_busy)
    progressing = 1 - waits["client"] - waits["lock"]
    # Shares of so little time would be shares of noise.
    if progressing < PROGRESS_FLOOR:
        return _judge_idle_load(waits, cpu_busy, cpu_own)

    def waited(kind: str) -> float:
        return sum(waits[name] * getattr(time, kind) for name, time in zip(("io", "wal"), divided, strict=True))

    in_io, in_storage = waits["io"] + waits["wal"], waited("storage")
    share = in_storage / progressing
    facts = {
        "device": device,
        "io_share": waits["io"],
        "log_share": waits["wal"],
        "lock_share": waits["lock"],
        "progress_share": share,
        "device_share": waited("device") / in_io if in_io >= PROGRESS_FLOOR else 1.0,
        "above_share": waited("above") / in_io if in_io >= PROGRESS_FLOOR else 0.0,
        "busy_share": busy,
        "cpu_share": cpu_busy,
        "cpu_own_share": cpu_own,
    }
    # CPUs are judged before storage: saturated CPUs delay sessions that look as if they waited for I/O.
    if cpu_busy is not None and cpu_busy >= CPU_LIMITS > _needed_cpu_share(cpu_busy, cpu_own):
        return info(DeviceKind.CPUS_BUSY_OTHERWISE, **facts)
    if cpu_busy is not None and cpu_busy >= CPU_LIMITS and (cpu_busy >= CPU_ALONE or share > DEVICE_FREE):
        return _limited_by_cpus(facts, cpu_busy, in_io + waits["lock"], closed)
    # The undivided time would change the verdict if it were all storage.
    if _level(share) != _level(share + waited("unknown") / progressing):
        return info(DeviceKind.NOT_DIVIDED, **facts)
    if share >= DEVICE_LIMITS and waited("above") > ABOVE * in_storage:
        return info(DeviceKind.ABOVE_LIMITS, **facts)
    if share >= DEVICE_LIMITS:
        seldom_busy = busy is not None and busy < DEVICE_QUEUES
        return info(DeviceKind.LATENCY_LIMITS if seldom_busy else DeviceKind.LIMITS, **facts)
    return info(DeviceKind.NOT_LIMITING if share <= DEVICE_FREE else DeviceKind.ONE_OF_SEVERAL, **facts)


def _level(share: float) -> int:
    return (share > DEVICE_FREE) + (share >= DEVICE_LIMITS)


def _judge_idle_load(waits: Mapping[str, float], cpu_busy: float | None, cpu_own: float | None) -> Finding:
    """Judge a load that keeps no session busy: more users do not help if the CPUs are saturated."""
    spent = "client" if waits["client"] >= waits["lock"] else "lock"
    saturated = spent == "client" and cpu_busy is not None and cpu_busy >= CPU_LIMITS
    cpus = {"cpu_share": cpu_busy, "cpu_own_share": cpu_own} if saturated else {}
    return info(DeviceKind.NOT_TOLD, spent_in=spent, share=waits[spent], **cpus)


def _needed_cpu_share(busy: float, own: float | None) -> float:
    """Return the estimated share of the CPUs that the transactions need: half of the unexplained use is the kernel's
    work for their I/O, as in predictions."""
    return busy if own is None else (busy + min(own, busy)) / 2


def _limited_by_cpus(facts: Mapping[str, Any], cpu_busy: float, waiting: float, closed: bool) -> Finding:
    """Return the verdict on CPUs that limit, alone or with the device, with the most throughput that storage without
    latency adds, as a share; None if throughput is the requested rate. `waiting`: the share of the users' time for I/O,
    and for locks, that it could save. The rest remains, think time included, and so does the need of CPUs."""
    kind = DeviceKind.CPUS_LIMIT if cpu_busy >= CPU_ALONE else DeviceKind.WITH_CPUS
    return info(kind, **facts, gain_share=1 / max(cpu_busy, 1 - waiting) - 1 if closed else None)


def _judge_without_waits(busy: float | None, cpu_busy: float | None, closed: bool) -> Finding | None:
    if busy is None:
        return None
    facts = {"device": JudgedDevice.DATA, "busy_share": busy, "cpu_share": cpu_busy}
    if busy >= DEVICE_BUSY and cpu_busy is not None and cpu_busy >= CPU_LIMITS:
        return _limited_by_cpus(facts, cpu_busy, 1.0, closed)
    if busy >= DEVICE_BUSY:
        return info(DeviceKind.LIMITS, **facts)
    if busy < DEVICE_QUEUES and cpu_busy is not None and cpu_busy >= CPU_BUSY:
        return info(DeviceKind.NOT_LIMITING, **facts)
    return None


# Associations: series that moved with throughput within a step (read, write and log times, waiting sessions, CPU).


@dataclass(frozen=True)
class _Candidate:
    """A series per second; a mean is kept as sums and counts. `expected` is the elasticity that theory predicts."""

    series: Associated
    source: Source | None
    top: np.ndarray
    bottom: np.ndarray | None = None
    expected: float | None = None

    def binned_values(self, seconds: int) -> np.ndarray:
        top = binned(self.top, seconds)
        return top if self.bottom is None else per_second_mean(top, binned(self.bottom, seconds))


def associations(
    load: Load, io: Io, waits: WaitParts | None, interval: Interval, budget: Budget | None, cycle_ms: float | None
) -> list[Association]:
    """Return the associations that could be computed, strongest first.

    Strength is computed on segments of ASSOCIATION_BIN_S if a step has enough segments, as they vary less; else on
    seconds. Elasticity is always computed on segments, lag always on seconds. `cycle_ms` is a user's time per
    transaction with think time, in a closed loop. There a part of the time that grows by 1 % takes its share of 1 %
    from throughput, which is the expected elasticity.
    """
    tps = interval.select(load.all("committed")).astype(float)
    bin_s = ASSOCIATION_BIN_S if len(tps) >= ASSOCIATION_BIN_S * ASSOCIATION_BINS else 1
    associated = []
    for candidate in _candidates(io, waits, interval, budget, cycle_ms):
        y, x = binned(tps, bin_s), candidate.binned_values(bin_s)
        strength = correlate_changes(y, x, "transactions per second", candidate.series, "")
        if strength is None:
            continue
        # A lag of a series that does not move with throughput would be noise.
        late = lag(tps, candidate.binned_values(1)) if strength.low > 0 or strength.high < 0 else None
        y, x = binned(tps, ASSOCIATION_BIN_S), candidate.binned_values(ASSOCIATION_BIN_S)
        by = elasticity(y, x)
        lag_s, earliest, latest = late or (None, None, None)
        slope, least, most = by or (None, None, None)
        associated.append(
            Association(
                candidate.series,
                candidate.source,
                strength.n,
                bin_s,
                strength.r,
                strength.low,
                strength.high,
                lag_s=lag_s,
                lag_low_s=earliest,
                lag_high_s=latest,
                elasticity_n=int(np.sum(~np.isnan(np.diff(y) + np.diff(x)))) if by else 0,
                elasticity=slope,
                elasticity_low=least,
                elasticity_high=most,
                expected=candidate.expected,
            )
        )
    return sorted(associated, key=lambda association: -abs(association.r))


def _candidates(
    io: Io, waits: WaitParts | None, interval: Interval, budget: Budget | None, cycle_ms: float | None
) -> Iterator[_Candidate]:
    # The device's times are free of scheduling; the server's are the substitute.
    data, of_data, by = (io.data_device, DEVICE, Source.DEVICE) if io.data_device else (io.data, SERVER, Source.SERVER)
    log, of_log, log_by = (
        (io.wal_device, DEVICE, Source.DEVICE) if io.wal_device else (io.wal, io.wal_names, Source.SERVER)
    )
    for series, source, counters, counts, times, part in (
        (Associated.READ_TIME, by, data, of_data.reads, of_data.read_ms, "read"),
        (Associated.WRITE_TIME, by, data, of_data.writes, of_data.write_ms, None),
        (Associated.LOG_TIME, log_by, log, of_log.syncs, (*of_log.write_ms, *of_log.sync_ms), "log"),
    ):
        rise = counters.per_second(interval.end, *counts, *times) if counters else {}
        count, time = summed(rise, counts), summed(rise, times)
        if count is not None and time is not None:
            expected = -min(1.0, budget.parts_ms[part] / cycle_ms) if part and budget and cycle_ms else None
            yield _Candidate(series, source, interval.select(time), interval.select(count), expected)
    waiting = {"read": Associated.READERS, "log": Associated.LOG_WAITERS, "lock": Associated.LOCK_WAITERS}
    for name, series in waiting.items():
        if waits and name in waits.users:
            yield _Candidate(series, None, interval.select(waits.users[name]))
    if io.host:
        rise = io.host.per_second(interval.end)
        total = interval.select(np.sum(list(rise.values()), axis=0))
        idle = summed(rise, ("idle_s", "iowait_s"))
        if idle is not None:
            yield _Candidate(Associated.CPU, None, total - interval.select(idle), total)


# The analysis of one step's bottleneck, put together.


@dataclass(frozen=True)
class StepFigures:
    """The figures of a step that are needed in addition to its series: means over the measured interval."""

    tps: float  # the step's result
    data: IoSummary | None  # counted by the server
    data_device: IoSummary | None
    cpu_process_share: float | None  # share of the machine's CPUs, as the server notes it every minute
    server_waits: Sequence[ServerWait]


def analyse_bottleneck(
    step: StepFigures,
    manifest: Manifest,
    load: Load,
    io: Io,
    waits: WaitParts | None,
    interval: Interval,
    divided: Mapping[str, IoTime],
) -> StepCause:
    """Return the cause analysis of a step of transactions: its budget, laws, associations and predictions."""
    arrivals, beside = manifest.steps[interval.index].arrivals, manifest.steps[interval.index].beside
    budget = make_budget(load, io, waits, interval, divided)
    cycle_ms = _cycle_ms(load, interval) if arrivals == "closed" else None
    notes = []
    demands: Demands | None = None
    if budget is None:
        notes.append(info(NoteKind.OTHER_USERS if beside else NoteKind.NOT_LOOKED_AT))
    # Other loads would use the time that faster reads free.
    elif beside:
        notes.append(info(NoteKind.OTHER_LOADS))
    elif arrivals == "closed" and cycle_ms is None:
        notes.append(info(NoteKind.NOTHING_ENDED))
    # In an open loop the rate is given, so faster reads cannot raise it.
    elif cycle_ms is None:
        notes.append(info(NoteKind.OPEN_LOOP))
    elif not step.tps:
        notes.append(info(NoteKind.NOTHING_COUNTED))
    else:
        demands = _demands(step, manifest, load, io, interval, budget, cycle_ms)
        if demands is None:
            notes.append(info(NoteKind.NO_READS))
        elif demands.cpu_ms is None:
            notes.append(info(NoteKind.CPU_UNKNOWN))
    return StepCause(
        budget,
        [
            *laws(manifest, load, io, waits, interval, arrivals),
            *wait_laws([] if beside else step.server_waits, waits.mean_sessions(interval)[0] if waits else {}),
        ],
        associations(load, io, waits, interval, budget, cycle_ms),
        demands,
        [predict(demands, read_ms) for read_ms in WHAT_IF_MS] if demands else [],
        notes,
    )


def _cycle_ms(load: Load, interval: Interval) -> float | None:
    """Return a user's time per transaction in ms, or None if nothing ended."""
    done = interval.select(load.users_sum("committed") + load.users_sum("rolled_back")).sum()
    running = float(interval.select(load.user_sum("running")).sum())
    return running * 1000 / float(done) if done and running else None


def _demands(
    step: StepFigures, manifest: Manifest, load: Load, io: Io, interval: Interval, budget: Budget, cycle_ms: float
) -> Demands | None:
    """Return the demands, or None if no reads were counted, or not timed. The budget covers all transactions:
    transactions of users are taken to have the same shares."""
    counted, source = step.data_device, Source.DEVICE
    # A read that waits above the device takes longer than the device counts.
    # The read time to vary is the one that sessions really wait for.
    if counted is None or not counted.read_ms or budget.is_above("read"):
        counted, source = step.data, Source.SERVER
    if counted is None or not counted.read_ms:
        return None
    done = float(interval.select(load.users_sum("committed") + load.users_sum("rolled_back")).sum())
    response_ms = min(cycle_ms, float(interval.select(load.users_sum("latency_us")).sum()) / done / 1000)
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
    """Return the cores that the run itself kept busy, by the CPU time of its processes, else by the server's own share.
    None if neither is known.
    CPU time of other programs is never included."""
    if (own := cpu_of_run(load, io, interval)) is not None:
        return own.cores
    return step.cpu_process_share * cores if step.cpu_process_share is not None and cores else None


def _cores(manifest: Manifest, io: Io, interval: Interval) -> int | None:
    """Return the cores of the server's machine, from the CPU time of all cores per second; else as the server reports
    them."""
    # All CPUs together pass one second per core and second.
    if host := host_cpu(delta_over(io.host, interval)):
        return max(1, round(host.cores))
    schedulers = manifest.server.settings.get("server schedulers", "")
    return int(schedulers) if schedulers.isdecimal() else None
