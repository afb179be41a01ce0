"""Associations: series that moved with throughput within a step (read, write and log times, waiting sessions, CPU)."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from stallmark.analysis.bottleneck.summary import Associated, Association, Budget, Source
from stallmark.analysis.read.counters import Counters
from stallmark.analysis.read.driver_tables import Load
from stallmark.analysis.read.interval import Interval
from stallmark.analysis.read.io import DEVICE, SERVER, Io, per_second_mean, summed
from stallmark.analysis.read.waits import WaitParts
from stallmark.stats.dependence import binned, correlate_changes, elasticity, lag
from stallmark.stats.thresholds import ASSOCIATION_BIN_S, ASSOCIATION_BINS


@dataclass(frozen=True)
class _Candidate:
    """A series per second, as sums over counts where it is a mean. `expected` is the elasticity that it should have."""

    series: Associated
    source: Source | None
    top: np.ndarray
    bottom: np.ndarray | None = None
    expected: float | None = None

    def over(self, seconds: int) -> np.ndarray:
        top = binned(self.top, seconds)
        return top if self.bottom is None else per_second_mean(top, binned(self.bottom, seconds))


def associations(
    load: Load, io: Io, waits: WaitParts | None, interval: Interval, budget: Budget | None, cycle_ms: float | None
) -> list[Association]:
    """Return the associations that could be computed, strongest first.

    Strength is computed on stretches of ASSOCIATION_BIN_S where there are enough of them, as they scatter less; else on
    seconds. Elasticity is always of the stretches, lag always of seconds.

    `cycle_ms` is a user's time per transaction with think time, in a closed loop. There a part of the time that grows
    by 1 % takes its share of 1 % from throughput, which is the elasticity to expect.
    """
    tps = interval.of(load.all("committed")).astype(float)
    bin_s = ASSOCIATION_BIN_S if len(tps) >= ASSOCIATION_BIN_S * ASSOCIATION_BINS else 1
    found = []
    for one in _candidates(io, waits, interval, budget, cycle_ms):
        y, x = binned(tps, bin_s), one.over(bin_s)
        strength = correlate_changes(y, x, "transactions per second", one.series, "")
        if strength is None:
            continue
        late = lag(tps, one.over(1)) if strength.low > 0 or strength.high < 0 else None
        y, x = binned(tps, ASSOCIATION_BIN_S), one.over(ASSOCIATION_BIN_S)
        by = elasticity(y, x)
        at, earliest, latest = late or (None, None, None)
        slope, least, most = by or (None, None, None)
        found.append(
            Association(
                one.series,
                one.source,
                strength.n,
                bin_s,
                strength.r,
                strength.low,
                strength.high,
                lag_s=at,
                lag_low_s=earliest,
                lag_high_s=latest,
                elasticity_n=int(np.sum(~np.isnan(np.diff(y) + np.diff(x)))) if by else 0,
                elasticity=slope,
                elasticity_low=least,
                elasticity_high=most,
                expected=one.expected,
            )
        )
    return sorted(found, key=lambda one: -abs(one.r))


def _candidates(
    io: Io, waits: WaitParts | None, interval: Interval, budget: Budget | None, cycle_ms: float | None
) -> Iterator[_Candidate]:
    def expected(part: str) -> float | None:
        if budget is None or not cycle_ms:
            return None
        return -min(1.0, budget.parts_ms[part] / cycle_ms)

    data, names = (io.data_device, DEVICE) if io.data_device else (io.data, SERVER)
    by = Source.DEVICE if io.data_device else Source.SERVER
    yield from _mean(data, names.reads, names.read_ms, Associated.READ_TIME, by, interval, expected("read"))
    yield from _mean(data, names.writes, names.write_ms, Associated.WRITE_TIME, by, interval)
    log, names = (io.wal_device, DEVICE) if io.wal_device else (io.wal, io.wal_names)
    by = Source.DEVICE if io.wal_device else Source.SERVER
    times = (*names.write_ms, *names.sync_ms)
    yield from _mean(log, names.syncs, times, Associated.LOG_TIME, by, interval, expected("log"))
    for part, series in (
        ("read", Associated.READERS),
        ("log", Associated.LOG_WAITERS),
        ("lock", Associated.LOCK_WAITERS),
    ):
        if waits and part in waits.users:
            yield _Candidate(series, None, interval.of(waits.users[part]))
    if io.host:
        rise = io.host.per_second(interval.end)
        total = interval.of(np.sum(list(rise.values()), axis=0))
        idle = summed(rise, ("idle_s", "iowait_s"))
        if idle is not None:
            yield _Candidate(Associated.CPU, None, total - interval.of(idle), total)


def _mean(
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
        yield _Candidate(series, source, interval.of(time), interval.of(count), expected)
