"""The analysis of one step's bottleneck, put together: the series that moved with throughput, and the laws that its
figures must obey."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from stallmark.analysis.attribution import IoTime, laws, make_budget, relative_spread, wait_laws
from stallmark.analysis.finding import info
from stallmark.analysis.prediction import WHAT_IF_MS, predict
from stallmark.analysis.read.io import DEVICE, SERVER, Io, cpu_of_run, delta_over, host_cpu, per_second_mean, summed
from stallmark.analysis.read.server_summary import IoSummary, ServerWait
from stallmark.analysis.read.throughput import Load
from stallmark.analysis.read.times import Interval
from stallmark.analysis.read.waits import WaitParts
from stallmark.analysis.step_summary import Associated, Association, Budget, Demands, NoteKind, Source, StepCause
from stallmark.record.manifest import Manifest
from stallmark.stats.dependence import binned, correlate_changes, elasticity, lag
from stallmark.stats.thresholds import ASSOCIATION_BIN_S, ASSOCIATION_BINS

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
