"""The reasons why a step is invalid: the driver was the bottleneck, the server was lost, counters are missing."""

import math
from collections.abc import Iterator, Sequence
from enum import StrEnum

import numpy as np

from stallmark.analysis.finding import Finding, Kind, invalid
from stallmark.analysis.read.counters import Counters, Delta
from stallmark.analysis.read.driver_tables import Load
from stallmark.analysis.read.interval import Interval
from stallmark.analysis.read.io import Io, over
from stallmark.analysis.read.transactions import Errors, ErrorSummary
from stallmark.record.manifest.workload import Step
from stallmark.record.reader import Record
from stallmark.stats.thresholds import (
    DRIVER_OVERHEAD,
    EXECUTOR_CPU,
    FAILED,
    FOREIGN_BUSY,
    FOREIGN_CPU,
    FOREIGN_FLOOR_PER_S,
    FOREIGN_IO,
    GAP_S,
    LAG_FLOOR_MS,
    LAG_SHARE,
    LITTLE,
    LOST_WITHIN_S,
    NOT_CONNECTED,
    UNCOVERED,
)

# The kinds of findings on the validity of a step.


class ValidityKind(Kind):
    """Reasons why the figures of a step must not be compared, or say less than they seem to."""

    RUN_INCOMPLETE = "run_incomplete"
    ENDED_EARLY = "ended_early"
    LOADS_MISSED = "loads_missed"
    SERVER_STARTED = "server_started"
    CONNECTIONS_LOST = "connections_lost"
    COUNTERS_BEGAN_AGAIN = "counters_began_again"
    NOT_TIMED = "io_not_timed"
    COUNTERS_INCOMPLETE = "counters_incomplete"
    FOREIGN_IO = "foreign_io"
    FOREIGN_CPU = "foreign_cpu"
    NOT_CONNECTED = "users_not_connected"
    TRANSACTIONS_FAILED = "transactions_failed"
    LITTLES_LAW = "littles_law"
    STORAGE_ERROR = "storage_error"
    DRIVER_OVERHEAD = "driver_overhead"
    EXECUTOR_CPU = "executor_cpu"
    LATE_STARTS = "late_starts"


class GateKind(Kind):
    """The validity gates, by the names that a reader sees."""

    MIX = "mix"
    FOLLOWERS = "followers"
    ABORTS = "aborts"
    LOCKS = "locks"
    LIMITS = "p90_limits"
    LAG = "background_lag"
    CONSISTENCY = "consistency"
    COMPLETED = "completed"


class ServiceLevelKind(Kind):
    """The kinds of findings on a service level, and reasons why it is not judged on a percentile."""

    READS_TAKE = "reads_take"
    READS_NOT_KNOWN = "reads_not_known"
    NO_HISTOGRAM = "no_histogram"
    TOO_FEW_READS = "too_few_reads"
    READS_NOT_MEASURED = "reads_not_measured"
    NOTHING_READ = "nothing_read"


class CounterSource(StrEnum):
    """The source of counters."""

    DATA_FILES = "data_files"
    LOG = "log"
    DATA_DEVICE = "data_device"
    LOG_DEVICE = "log_device"


# The judgement whether the driver was the bottleneck. Then the figures say nothing about the server.


def driver_bound(load: Load, interval: Interval, arrivals: str, *, answered: bool = True) -> Iterator[Finding]:
    """Yield the ways in which the driver held the load back in this interval; nothing when it did not.

    In a closed loop every moment of a user is think time or inside a call; the rest is the driver's overhead, unless
    the server was lost or a call never ended, and not all was `answered`: then users waited for the server. A
    late start lengthens the user's cycle by its delay. In an open loop idle users wait for arrivals, so only the start
    delay of free users counts, against the latency that holds it. `machine` of a finding is the number of the load
    machine, 0 where there was only one.
    """
    for machine, executors in sorted(load.executors.items()):
        running = float(interval.of(load.user_sum("running", machine)).sum()) * 1e6
        if arrivals == "closed" and running and answered:
            used = float(interval.of(_used_us(load, machine)).sum())
            if (overhead := 1 - used / running) > DRIVER_OVERHEAD:
                yield invalid(ValidityKind.DRIVER_OVERHEAD, machine=machine, share=overhead)
        cpu = max(float(interval.of(load.users[executor]["cpu_us"]).mean()) / 1e6 for executor in executors)
        if cpu > EXECUTOR_CPU:
            yield invalid(ValidityKind.EXECUTOR_CPU, machine=machine, share=cpu)
    done = float(interval.of(load.of_users("committed") + load.of_users("rolled_back")).sum())
    if done:
        late_ms = float(interval.of(load.user_sum("lag_us")).sum()) / done / 1000
        latency_ms = float(interval.of(load.of_users("latency_us")).sum()) / done / 1000
        think_ms = float(interval.of(load.user_sum("think_us")).sum()) / done / 1000 if arrivals == "closed" else 0.0
        if late_ms > max(LAG_SHARE * (latency_ms + think_ms), LAG_FLOOR_MS):
            yield invalid(ValidityKind.LATE_STARTS, late_ms=late_ms, latency_ms=latency_ms, think_ms=think_ms)


def little_gap(load: Load, interval: Interval) -> Finding | None:
    """Return by how much users ≈ TPS × (latency + think time) does not close in a closed loop; None when it closes."""
    running = load.user_sum("running")
    users = float(interval.of(running).mean())
    if not users:
        return None
    spent_us = load.of_users("latency_us") + load.user_sum("think_us")
    accounted = float(interval.of(spent_us).mean()) / 1e6
    spread_us, left_us = _spread_back(spent_us, running * 1e6)
    passed = float(interval.of(spread_us).mean()) / 1e6
    if min(abs(accounted / users - 1), abs(passed / users - 1) + left_us / running.sum() / 1e6) <= LITTLE:
        return None
    return invalid(ValidityKind.LITTLES_LAW, users=users, accounted_users=accounted)


def _used_us(load: Load, machine: int) -> np.ndarray:
    """Return the users' time per second that was think time or inside a call."""
    used_us = load.user_sum("busy_us", machine) + load.user_sum("think_us", machine)
    return _spread_back(used_us, load.user_sum("running", machine) * 1e6)[0]


def _spread_back(spent_us: np.ndarray, users_us: np.ndarray) -> tuple[np.ndarray, float]:
    """Return time by the second in which it passed, and what is left that no second has room for.

    Time is counted in the second in which a call ended. What is more than the users of a second have lies in the
    seconds before: a call of many seconds, such as one that ends after an interval, must not pass for an idle user.
    """
    over = np.cumsum((spent_us - users_us)[::-1])
    left = np.append((over - np.minimum(np.minimum.accumulate(over), 0.0))[::-1], 0.0)  # that each second passes on
    return spent_us + left[1:] - left[:-1], float(left[0])


# The server that was lost while a step was measured: started again, replaced, or not reached.
def server_lost(
    load: Load, errors: Errors, starts: np.ndarray, begin_s: float, interval: Interval
) -> Iterator[Finding]:
    """Yield the signs that the server was lost in an interval, which then tells nothing of its limits. `starts` are the
    times between which the server had another start.

    One that was lost in the warm-up, which began at `begin_s`, is lost unless a transaction ended before the interval.
    """
    for before, after in starts:
        if before < interval.end and after > interval.begin:
            yield invalid(ValidityKind.SERVER_STARTED, before_s=float(before), after_s=float(after))
    ended = load.of_users("committed") + load.of_users("rolled_back")
    first = math.floor(begin_s)
    answered = np.flatnonzero(ended[first : interval.begin])
    since = first + (int(answered[-1]) if len(answered) else 0)
    users = int(load.user_sum("running")[since : interval.end].max(initial=0))
    lost = errors.lost_connections()[since : interval.end]
    together = int(np.convolve(lost, np.ones(LOST_WITHIN_S)).max(initial=0)) if len(lost) else 0
    if users and together >= users:
        yield invalid(ValidityKind.CONNECTIONS_LOST, users=users, lost=together, within_s=LOST_WITHIN_S)


# The reasons why a step is invalid.


def invalid_findings(
    load: Load,
    io: Io,
    interval: Interval,
    step: Step,
    errors: Sequence[ErrorSummary],
    driver_bound: bool,
    foreign_cpu: float | None = None,
) -> Iterator[Finding]:
    """Yield the reasons why the figures of an interval must not be compared; nothing when they may."""
    if interval.cut:
        yield invalid(ValidityKind.ENDED_EARLY, measured_s=interval.seconds, planned_s=interval.planned_s)
    if step.missed:
        yield invalid(ValidityKind.LOADS_MISSED, loads=list(step.missed))
    for which, counters, kind in (
        (CounterSource.DATA_FILES, io.data, "data"),
        (CounterSource.LOG, io.wal, "wal"),
        (CounterSource.DATA_DEVICE, io.data_device, None),
        (CounterSource.LOG_DEVICE, io.wal_device, None),
    ):
        if any(begin < interval.end and end > interval.begin for begin, end in io.untimed.get(kind or "", ())):
            yield invalid(ValidityKind.NOT_TIMED, of=which)
        else:
            yield from _lost(which, counters, interval)
    foreign = foreign_share(io, interval)
    if foreign is not None and foreign > FOREIGN_IO:
        yield invalid(ValidityKind.FOREIGN_IO, share=foreign, with_writes=io.foreign is not None)
    if foreign_cpu is not None and foreign_cpu > FOREIGN_CPU:
        yield invalid(ValidityKind.FOREIGN_CPU, share=foreign_cpu)
    yield from _not_connected(load, interval, step.users)
    done, failed = (float(interval.of(load.all(column)).sum()) for column in ("committed", "failed"))
    if failed > FAILED * (done + failed):
        most = max(errors, key=lambda one: one.given_up, default=None)
        words = {"transaction": most.transaction, "said": most.message, "code": most.code} if most else {}
        yield invalid(ValidityKind.TRANSACTIONS_FAILED, share=failed / (done + failed), **words)
    elif step.arrivals == "closed" and not driver_bound and (gap := little_gap(load, interval)):
        yield gap


def _not_connected(load: Load, interval: Interval, users: int) -> Iterator[Finding]:
    """Yield the users that had no session while it was measured: on many servers a login takes seconds when all log in
    at once, and a load of fewer users is another load."""
    if not load.users:
        return
    connected = float(interval.of(load.user_sum("running")).mean())
    if connected < users * (1 - NOT_CONNECTED):
        yield invalid(ValidityKind.NOT_CONNECTED, users=users, connected_users=connected)


def storage_errors(record: Record) -> Iterator[Finding]:
    """Yield the storage errors in the server's error log: no figure of such a run can be relied upon."""
    for batch in record.batches("error_log", ["number", "text"]):
        for row in batch.to_pylist():
            yield invalid(ValidityKind.STORAGE_ERROR, text=row["text"], error=row["number"])


def foreign_share(io: Io, interval: Interval) -> float | None:
    """Return the share of foreign I/O: the largest of three shares, None where none is known or matters.

    They are other databases' blocks read, bytes read and written in other databases' files, and, on a real data device,
    bytes read by other programs. A share above the limit is left out where the I/O is so little that it delays nobody.
    """
    shares = _of_databases(io, interval), _of_files(io, interval), _of_device(io, interval)
    return max((share for share in shares if share is not None), default=None)


def _of_databases(io: Io, interval: Interval) -> float | None:
    own, other = over(io.own_database, interval), over(io.other_databases, interval)
    if own is None or other is None or own.broken or other.broken:
        return None
    foreign = other["blocks_read"]
    share = foreign / max(own["blocks_read"] + foreign, 1)
    return None if share > FOREIGN_IO and foreign / other.seconds <= FOREIGN_FLOOR_PER_S else share


def _of_files(io: Io, interval: Interval) -> float | None:
    """Return the share of bytes in other databases' files, where the server counts by file; tempdb is taken to
    be ours."""
    foreign = over(io.foreign, interval)
    ours = [over(counters, interval) for counters in (io.data, io.wal, io.temp) if counters]
    if foreign is None or foreign.broken or any(delta is None or delta.broken for delta in ours):
        return None
    theirs = _bytes_per_second(foreign)
    share = theirs / max(theirs + sum(_bytes_per_second(delta) for delta in ours if delta), 1.0)
    per_second = (foreign["reads"] + foreign["writes"]) / foreign.seconds
    return None if share > FOREIGN_IO and per_second <= FOREIGN_FLOOR_PER_S else share


def _bytes_per_second(delta: Delta) -> float:
    return (delta["read_bytes"] + delta["write_bytes"]) / delta.seconds


def _of_device(io: Io, interval: Interval) -> float | None:
    """Return the share of bytes read from a real device beyond the server's own and those of raw loads. An emulated
    array serves these alone."""
    server, temp, device = (over(counters, interval) for counters in (io.data, io.temp, io.data_device))
    if io.emulated or server is None or device is None or server.broken or device.broken:
        return None
    if not device["read_bytes"]:
        return 0.0
    ours = server["read_bytes"] / server.seconds + (temp["read_bytes"] / temp.seconds if temp else 0)
    if io.raw_bytes is not None:
        ours += float(interval.of(io.raw_bytes).sum()) / interval.seconds
        if math.isnan(ours):
            return None
    share = max(0.0, 1 - ours / (device["read_bytes"] / device.seconds))
    busy = device.values.get("busy_ms", 0.0) / 1000 / device.seconds
    within = FOREIGN_IO + server.uncertainty + device.uncertainty
    return None if share > FOREIGN_IO and (busy <= FOREIGN_BUSY or share <= within) else share


def _lost(which: CounterSource, counters: Counters | None, interval: Interval) -> Iterator[Finding]:
    if counters is None:
        return
    delta = over(counters, interval)
    covered = delta.seconds if delta else 0.0
    if delta and delta.broken:
        yield invalid(ValidityKind.COUNTERS_BEGAN_AGAIN, of=which)
    elif interval.seconds - covered > max(GAP_S, UNCOVERED * interval.seconds):
        yield invalid(ValidityKind.COUNTERS_INCOMPLETE, of=which, covered_s=covered, measured_s=interval.seconds)
