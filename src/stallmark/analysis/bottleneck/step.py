"""The analysis of one step's bottleneck, put together, with what moved with throughput in it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from stallmark.analysis.bottleneck.attribution import IoTime, make_budget, relative_spread
from stallmark.analysis.bottleneck.laws import WHAT_IF_MS, laws, predict, wait_laws
from stallmark.analysis.bottleneck.summary import Associated, Association, Budget, Demands, NoteKind, Source, StepCause
from stallmark.analysis.finding import info
from stallmark.analysis.read.counters import Counters
from stallmark.analysis.read.interval import Interval
from stallmark.analysis.read.io import DEVICE, SERVER, Io, cpu_of_run, delta_over, host_cpu, per_second_mean, summed
from stallmark.analysis.read.server_summary import IoSummary, ServerWait
from stallmark.analysis.read.throughput import Load
from stallmark.analysis.read.waits import WaitParts
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
    def expected_elasticity(part: str) -> float | None:
        if budget is None or not cycle_ms:
            return None
        return -min(1.0, budget.parts_ms[part] / cycle_ms)

    # The device's times are free of scheduling; the server's are the substitute.
    data, names = (io.data_device, DEVICE) if io.data_device else (io.data, SERVER)
    by = Source.DEVICE if io.data_device else Source.SERVER
    yield from _mean_candidate(
        data, names.reads, names.read_ms, Associated.READ_TIME, by, interval, expected_elasticity("read")
    )
    yield from _mean_candidate(data, names.writes, names.write_ms, Associated.WRITE_TIME, by, interval)
    log, names = (io.wal_device, DEVICE) if io.wal_device else (io.wal, io.wal_names)
    by = Source.DEVICE if io.wal_device else Source.SERVER
    times = (*names.write_ms, *names.sync_ms)
    yield from _mean_candidate(log, names.syncs, times, Associated.LOG_TIME, by, interval, expected_elasticity("log"))
    for part, series in (
        ("read", Associated.READERS),
        ("log", Associated.LOG_WAITERS),
        ("lock", Associated.LOCK_WAITERS),
    ):
        if waits and part in waits.users:
            yield _Candidate(series, None, interval.select(waits.users[part]))
    if io.host:
        rise = io.host.per_second(interval.end)
        total = interval.select(np.sum(list(rise.values()), axis=0))
        idle = summed(rise, ("idle_s", "iowait_s"))
        if idle is not None:
            yield _Candidate(Associated.CPU, None, total - interval.select(idle), total)


def _mean_candidate(
    counters: Counters | None,
    counts: tuple[str, ...],
    times: tuple[str, ...],
    series: Associated,
    source: Source,
    interval: Interval,
    expected: float | None = None,
) -> Iterator[_Candidate]:
    if counters is None:
        return
    rise = counters.per_second(interval.end, *counts, *times)
    count, time = summed(rise, counts), summed(rise, times)
    if count is not None and time is not None:
        yield _Candidate(series, source, interval.select(time), interval.select(count), expected)


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
        demands = _demands(step, manifest, load, io, waits, interval, budget, cycle_ms)
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
    step: StepFigures,
    manifest: Manifest,
    load: Load,
    io: Io,
    waits: WaitParts | None,
    interval: Interval,
    budget: Budget,
    cycle_ms: float,
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
