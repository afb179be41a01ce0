"""The reasons why a step is invalid: the server was lost, counters are missing, or other programs used the server."""

import math
from collections.abc import Iterator, Sequence
from enum import StrEnum

import numpy as np

from stallmark.analysis.driver_bound import little_gap
from stallmark.analysis.finding import Finding, Kind, invalid
from stallmark.analysis.read.counters import Counters, Delta
from stallmark.analysis.read.io import Io, OwnCpu, cpu_of_run, host_cpu
from stallmark.analysis.read.server_state import ServerState
from stallmark.analysis.read.server_summary import delta_over
from stallmark.analysis.read.throughput import Load
from stallmark.analysis.read.times import Interval
from stallmark.analysis.read.transactions import Errors, ErrorSummary
from stallmark.record.manifest import Manifest
from stallmark.record.manifest.workload import Step
from stallmark.record.reader import Record
from stallmark.stats.thresholds import (
    CPU_DELAY,
    CPU_LIMITS,
    FAILED,
    FOREIGN_BUSY,
    FOREIGN_CPU,
    FOREIGN_FLOOR_PER_S,
    FOREIGN_IO,
    GAP_S,
    LOST_WITHIN_S,
    NOT_CONNECTED,
    UNCOVERED,
)


class ValidityKind(Kind):
    """Reasons why the figures of a step must not be compared, or mean less than they seem to."""

    RUN_INCOMPLETE = "run_incomplete"
    ENDED_EARLY = "ended_early"
    LOADS_MISSED = "loads_missed"
    BY_HAND = "changed_by_hand"
    SERVER_STARTED = "server_started"
    CONNECTIONS_LOST = "connections_lost"
    COUNTERS_BEGAN_AGAIN = "counters_began_again"
    NOT_TIMED = "io_not_timed"
    COUNTERS_INCOMPLETE = "counters_incomplete"
    FOREIGN_IO = "foreign_io"
    FOREIGN_CPU = "foreign_cpu"
    NOT_CONNECTED = "users_not_connected"
    TRANSACTIONS_FAILED = "transactions_failed"
    STORAGE_ERROR = "storage_error"


class CounterSource(StrEnum):
    """The source of counters."""

    DATA_FILES = "data_files"
    LOG = "log"
    DATA_DEVICE = "data_device"
    LOG_DEVICE = "log_device"


def by_hand(steps: Sequence[Step]) -> Iterator[Finding]:
    """Yield a finding if somebody changed the load of the run by hand.

    Such a run cannot be repeated, and its planned steps end at arbitrary times.
    """
    changes = sum(step.spawn_rate is not None for step in steps)
    if any(step.is_by_hand for step in steps):
        yield invalid(ValidityKind.BY_HAND, changes=changes, stopped=steps[-1].stopped_by_hand)


# The server that was lost while a step was measured: started again, replaced, or not reached.
def server_lost(
    load: Load, errors: Errors, starts: np.ndarray, begin_s: float, interval: Interval
) -> Iterator[Finding]:
    """Yield the signs that the server was lost in an interval, which then does not show its limits.

    `starts` are pairs of times between which the server was restarted. A server lost in the warm-up, which began at
    `begin_s`, counts as lost unless a transaction ended before the interval.
    """
    for before, after in starts:
        if before < interval.end and after > interval.begin:
            yield invalid(ValidityKind.SERVER_STARTED, before_s=float(before), after_s=float(after))
    ended = load.users_sum("committed") + load.users_sum("rolled_back")
    first = math.floor(begin_s)
    answered = np.flatnonzero(ended[first : interval.begin])
    since = first + (int(answered[-1]) if len(answered) else 0)
    users = int(load.user_sum("running")[since : interval.end].max(initial=0))
    lost = errors.lost_connections()[since : interval.end]
    together = int(np.convolve(lost, np.ones(LOST_WITHIN_S)).max(initial=0)) if len(lost) else 0
    # As many connections as users at once: the server went away. Fewer may be sessions that it killed.
    if users and together >= users:
        yield invalid(ValidityKind.CONNECTIONS_LOST, users=users, lost=together, within_s=LOST_WITHIN_S)


def invalid_findings(
    load: Load,
    io: Io,
    interval: Interval,
    step: Step,
    errors: Sequence[ErrorSummary],
    driver_bound: bool,
    foreign_cpu: float | None,
) -> Iterator[Finding]:
    """Yield the reasons why the figures of an interval must not be compared; none if they may."""
    if interval.cut:
        yield invalid(ValidityKind.ENDED_EARLY, measured_s=interval.seconds, planned_s=interval.planned_s)
    if step.missed:
        yield invalid(ValidityKind.LOADS_MISSED, loads=list(step.missed))
    for source, counters, kind in (
        (CounterSource.DATA_FILES, io.data, "data"),
        (CounterSource.LOG, io.wal, "wal"),
        (CounterSource.DATA_DEVICE, io.data_device, None),
        (CounterSource.LOG_DEVICE, io.wal_device, None),
    ):
        if any(begin < interval.end and end > interval.begin for begin, end in io.untimed.get(kind or "", ())):
            yield invalid(ValidityKind.NOT_TIMED, of=source)
        else:
            yield from _unusable_counters(source, counters, interval)
    foreign = foreign_share(io, interval)
    if foreign is not None and foreign > FOREIGN_IO:
        yield invalid(ValidityKind.FOREIGN_IO, share=foreign, with_writes=io.foreign is not None)
    if foreign_cpu is not None and foreign_cpu > FOREIGN_CPU:
        yield invalid(ValidityKind.FOREIGN_CPU, share=foreign_cpu)
    yield from _not_connected(load, interval, step.users)
    totals = [float(interval.select(load.all(column)).sum()) for column in ("committed", "rolled_back", "failed")]
    share = totals[-1] / sum(totals) if sum(totals) else 0.0
    if share > FAILED:
        most = max(errors, key=lambda error: error.given_up, default=None)
        words = {"transaction": most.transaction, "said": most.message, "code": most.code} if most else {}
        yield invalid(ValidityKind.TRANSACTIONS_FAILED, share=share, **words)
    # A driver that held the load back fails Little's law too, and has its own finding.
    elif step.arrivals == "closed" and not driver_bound and (gap := little_gap(load, interval)):
        yield gap


def _not_connected(load: Load, interval: Interval, users: int) -> Iterator[Finding]:
    """Yield a finding if some users had no session during the interval.

    On many servers a login takes seconds when all users log in at once, and a load of fewer users is another load.
    """
    if not load.users:
        return
    connected = float(interval.select(load.user_sum("running")).mean())
    if connected < users * (1 - NOT_CONNECTED):
        yield invalid(ValidityKind.NOT_CONNECTED, users=users, connected_users=connected)


def storage_errors(record: Record) -> Iterator[Finding]:
    """Yield the storage errors in the server's error log: no figure of such a run is reliable."""
    for row in record.rows("error_log", ["number", "text"]):
        yield invalid(ValidityKind.STORAGE_ERROR, text=row["text"], error=row["number"])


def foreign_share(io: Io, interval: Interval) -> float | None:
    """Return the share of foreign I/O: the largest of three shares, or None if none is known or matters.

    The shares are other databases' blocks read, bytes read and written in other databases' files, and, on a real data
    device, bytes read by other programs. A share above the limit is omitted if the I/O is too little to delay anything.
    """
    shares = _share_by_databases(io, interval), _share_by_files(io, interval), _share_on_device(io, interval)
    return max((share for share in shares if share is not None), default=None)


def _share_by_databases(io: Io, interval: Interval) -> float | None:
    own, other = delta_over(io.own_database, interval), delta_over(io.other_databases, interval)
    if own is None or other is None or own.broken or other.broken:
        return None
    foreign = other["blocks_read"]
    share = foreign / max(own["blocks_read"] + foreign, 1)
    return None if share > FOREIGN_IO and foreign / other.seconds <= FOREIGN_FLOOR_PER_S else share


def _share_by_files(io: Io, interval: Interval) -> float | None:
    """Return the share of bytes in other databases' files, if the server counts by file; tempdb counts as ours."""
    foreign = delta_over(io.foreign, interval)
    ours = [delta_over(counters, interval) for counters in (io.data, io.wal, io.temp) if counters]
    if foreign is None or foreign.broken or any(delta is None or delta.broken for delta in ours):
        return None
    theirs = _bytes_per_second(foreign)
    share = theirs / max(theirs + sum(_bytes_per_second(delta) for delta in ours if delta), 1.0)
    per_second = (foreign["reads"] + foreign["writes"]) / foreign.seconds
    return None if share > FOREIGN_IO and per_second <= FOREIGN_FLOOR_PER_S else share


def _bytes_per_second(delta: Delta) -> float:
    return (delta["read_bytes"] + delta["write_bytes"]) / delta.seconds


def _share_on_device(io: Io, interval: Interval) -> float | None:
    """Return the share of bytes read from a real device that neither the server nor raw loads read. An emulated array
    serves these alone."""
    server, temp, device = (delta_over(counters, interval) for counters in (io.data, io.temp, io.data_device))
    if io.emulated or server is None or device is None or server.broken or device.broken:
        return None
    if not device["read_bytes"]:
        return 0.0
    ours = server["read_bytes"] / server.seconds + (temp["read_bytes"] / temp.seconds if temp else 0)
    if io.raw_bytes is not None:
        ours += float(interval.select(io.raw_bytes).sum()) / interval.seconds
        if math.isnan(ours):
            return None
    share = max(0.0, 1 - ours / (device["read_bytes"] / device.seconds))
    busy = device.values.get("busy_ms", 0.0) / 1000 / device.seconds
    within = FOREIGN_IO + server.uncertainty + device.uncertainty
    # A large share of an idle device delays no read, and one within the counters' uncertainty is not shown.
    return None if share > FOREIGN_IO and (busy <= FOREIGN_BUSY or share <= within) else share


def _unusable_counters(source: CounterSource, counters: Counters | None, interval: Interval) -> Iterator[Finding]:
    """Yield a finding if counters were reset in the interval, or do not cover it."""
    if counters is None:
        return
    delta = delta_over(counters, interval)
    covered = delta.seconds if delta else 0.0
    if delta and delta.broken:
        yield invalid(ValidityKind.COUNTERS_BEGAN_AGAIN, of=source)
    elif interval.seconds - covered > max(GAP_S, UNCOVERED * interval.seconds):
        yield invalid(ValidityKind.COUNTERS_INCOMPLETE, of=source, covered_s=covered, measured_s=interval.seconds)


# The share of the CPUs of the server's machine that other programs used while a step was measured.


def foreign_cpu_share(
    manifest: Manifest, load: Load, io: Io, state: ServerState | None, interval: Interval
) -> float | None:
    """Return the share of the CPUs that other programs used, or None if it is unknown or does not matter.

    Other programs are all but the server, the client on the same machine and the kernel's threads. A share above the
    limit is omitted if nothing of the run waited for a CPU.
    """
    shares = _cpu_by_processes(manifest, load, io, interval) or _cpu_by_server_notes(state)
    if shares is None:
        return None
    foreign, busy, own = shares
    # Other programs may use idle CPUs: only a run that waited for a CPU was disturbed.
    if foreign > FOREIGN_CPU and not _delays(manifest, load, interval, busy, own):
        return None
    return foreign


def _cpu_by_processes(
    manifest: Manifest, load: Load, io: Io, interval: Interval
) -> tuple[float, float, OwnCpu | None] | None:
    """Return the share of other programs, the share of CPUs that were busy, and the run's own use.

    Not known next to an array that is emulated as a block device: the program that serves it is in no table.
    """
    own, host = cpu_of_run(load, io, interval), host_cpu(delta_over(io.host, interval))
    if own is None or own.cores is None or host is None:
        return None
    # Such an array's program would count as foreign.
    models = (manifest.devices.for_role(role).emulated_array for role in ("data", "wal"))
    if any(model and model.block_device for model in models):
        return None
    kernel = delta_over(io.kernel_cpu, interval)
    threads = kernel["system_s"] / kernel.seconds if kernel and not kernel.broken else 0.0
    return max(0.0, host.cores - host.idle - own.cores - threads) / host.cores, host.busy_share, own


def _cpu_by_server_notes(state: ServerState | None) -> tuple[float, float, OwnCpu | None] | None:
    """Return the same shares from SQL Server's notes of every minute. If these lack the idle time, only the server's
    process is known to be busy."""
    if state is None or state.cpu_busy_share is None or state.cpu_process_share is None:
        return None
    foreign = state.cpu_busy_share - state.cpu_process_share
    return (foreign, state.cpu_busy_share, None) if foreign > 0 else None


def _delays(manifest: Manifest, load: Load, interval: Interval, busy: float, own: OwnCpu | None) -> bool:
    """Return True if the run waited for CPUs: as the kernel counted it or, without its count, if the CPUs were busy
    enough to limit it."""
    # The kernel does not separate the sessions of several loads.
    if own is None or own.server_run_delay_s is None or manifest.loads:
        return busy >= CPU_LIMITS
    spent_s = float(interval.select(load.all("service_us")).sum()) / 1e6
    return own.server_run_delay_s / own.seconds > CPU_DELAY * spent_s / interval.seconds
