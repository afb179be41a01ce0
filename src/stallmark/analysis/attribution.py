"""The division of response time: into its parts, and of time in I/O into the device, above it, or a CPU.

Laws that a step's figures must obey.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np

from stallmark.analysis.finding import Finding, Severity
from stallmark.analysis.read.counters import Counters, Delta
from stallmark.analysis.read.io import HostCpu, Io, OwnCpu, host_cpu
from stallmark.analysis.read.server_summary import DEVICE, SERVER, Names, delta_over
from stallmark.analysis.read.server_views import ServerWait
from stallmark.analysis.read.throughput import Load
from stallmark.analysis.read.times import Interval
from stallmark.analysis.read.waits import WaitParts, part_of
from stallmark.analysis.step_summary import PARTS, STORAGE, Budget, Law, LawKind
from stallmark.record.manifest import Manifest
from stallmark.record.manifest.storage import EmulatedArray, Role
from stallmark.stats.thresholds import CPU_ACCOUNTED, LAW_FLOOR_USERS, LITTLE, LITTLE_READS, SERVICE_ACCOUNTED

# The division of sessions' time in I/O: in the device, above the device, or at a CPU.
#
# A backend times its I/O from the request until it runs again. What a block device counts (/proc/diskstats) begins when
# a request has been allocated. So a request that is throttled (a cgroup's limit), waits for a tag, or is in a stacked
# or a network file system has not reached the counters: that time is storage too, above the device. CPUs account
# only for the time in which the server's processes ran or were runnable, less the time in which their sessions were
# seen at a CPU. If the processes are not known, the machine's CPUs give a bound, and time within it stays undivided.


@dataclass(frozen=True)
class IoTime:
    """The division of the time in one kind of I/O: shares that sum to 1."""

    device: float = 1.0
    above: float = 0.0
    cpu: float = 0.0
    unknown: float = 0.0
    """Above the device or waiting for a CPU."""

    @property
    def storage(self) -> float:
        return self.device + self.above


def divide_io(
    io: Io, seen: Mapping[str, float], own: OwnCpu | None, interval: Interval, alone: bool
) -> dict[str, IoTime]:
    """Divide the time in each kind of STORAGE between device, above the device, and CPU.

    `seen` are sessions by part (`WaitParts.mean_sessions`). `own` is the CPU time of the server's processes, or None if
    unknown. Unless these sessions are `alone`, other sessions use it too, and it is only a bound. All time is the
    device's if its counters are not known.
    """
    shares = _device_shares(io, interval)
    beyond = {name: seen.get(name, 0.0) * (1 - shares[name]) for name in STORAGE}  # sessions

    total = math.fsum(beyond.values())
    # No session was seen in I/O beyond the device's own time: nothing is left to divide.
    if not total:
        return {name: IoTime() for name in STORAGE}
    in_io = math.fsum(seen.get(name, 0.0) for name in STORAGE)
    cpu, either = _sessions_at_cpus(io, own, seen, in_io, interval, alone)
    cpu_share = min(1.0, cpu / total)
    unknown_share = min(1.0 - cpu_share, either / total)
    return {
        name: IoTime(
            shares[name],
            (1 - shares[name]) * (1 - cpu_share - unknown_share),
            (1 - shares[name]) * cpu_share,
            (1 - shares[name]) * unknown_share,
        )
        for name in STORAGE
    }


def divide_data_file_io(divided: Mapping[str, IoTime], seen: Mapping[str, float]) -> IoTime:
    """Return the division of the time in reads and in other I/O of data files together."""
    read, other = divided["read"], divided["other_io"]
    reading, writing = seen.get("read", 0.0), seen.get("other_io", 0.0)
    weight = reading / (reading + writing) if reading + writing else 1.0

    pairs = zip(astuple(read), astuple(other), strict=True)
    return IoTime(*(weight * of_reads + (1 - weight) * of_writes for of_reads, of_writes in pairs))


def _sessions_at_cpus(
    io: Io, own: OwnCpu | None, seen: Mapping[str, float], in_io: float, interval: Interval, alone: bool
) -> tuple[float, float]:
    """Return the number of sessions in I/O that were really at a CPU, and of further ones that may have been."""
    at_most = in_io
    if own is not None and own.server_run_delay_s is not None:
        at_cpu = (own.server_user_s + own.server_system_s + own.server_run_delay_s) / own.seconds
        at_most = max(0.0, at_cpu - seen.get("cpu", 0.0))
        # These sessions are all that the processes serve, so the CPU time is exact; else it is a bound.
        if alone:
            return at_most, 0.0
    host = host_cpu(delta_over(io.host, interval))
    if host is None:
        return 0.0, at_most
    return 0.0, min(at_most, _waited_share(io, host, interval) * in_io + host.kernel)


def _waited_share(io: Io, host: HostCpu, interval: Interval) -> float:
    """Return the share of the time in which any process may have waited for a CPU.

    It is the kernel's figure if known, else all the time in which CPUs were busy: they are all busy at once for no
    longer than one is on average.
    """
    pressure = delta_over(io.cpu_pressure, interval)
    if pressure is not None and not pressure.broken and "cpu_stalled_s" in pressure.values:
        return min(1.0, pressure["cpu_stalled_s"] / pressure.seconds)
    return host.busy_share


def _device_shares(io: Io, interval: Interval) -> dict[str, float]:
    """Return the share of the server's time in each kind of I/O that its device counted. It is 1 if unknown, or within
    the uncertainty of few samples.

    A log is very rarely read, so reads belong to the data files even if both are on one device. There, writes and syncs
    of both are compared together.
    """
    data, wal = (io.data, SERVER), (io.wal, io.wal_names)
    reads = _share([data], io.data_device, interval, reads=True)
    # Separate devices count writes of data and log apart.
    if io.wal_device is not None:
        writes, log = _share([data], io.data_device, interval), _share([wal], io.wal_device, interval)
    else:
        writes = log = _share([data, wal], io.data_device, interval)
    return {"read": reads, "log": log, "other_io": writes}


def _share(
    sources: Sequence[tuple[Counters | None, Names]], device: Counters | None, interval: Interval, reads: bool = False
) -> float:
    server = _ms_per_second(sources, interval, reads)
    counted = _ms_per_second([(device, DEVICE)], interval, reads)
    if not server or counted is None:
        return 1.0
    deltas = [delta_over(counters, interval) for counters in (device, *(counters for counters, _ in sources))]
    uncertainty = math.fsum(delta.uncertainty for delta in deltas if delta)
    return min(1.0, counted / server * (1 + uncertainty))


def _ms_per_second(sources: Sequence[tuple[Counters | None, Names]], interval: Interval, reads: bool) -> float | None:
    """Return the ms per second in reads, or in writes and syncs together. None if a source is unknown, or counts no
    syncs, as the kernel does not for partitions and volumes."""
    total = 0.0
    for counters, names in sources:
        delta = delta_over(counters, interval)
        if delta is None or delta.broken:
            return None
        if names is DEVICE and not reads and not set(names.sync_ms) <= delta.values.keys():
            return None
        times = set(names.read_ms if reads else (*names.write_ms, *names.sync_ms)) & delta.values.keys()
        total += (
            math.fsum(delta[name] for name in times) / delta.seconds
        )  # fsum: a set has no order, and a plain sum would depend on it
    return total


# The budget of a transaction's response time: reads, log, locks, CPU, client.
#
# By Little's law (J. D. C. Little, Operations Research 9, 1961) the mean number of sessions in a state is a product:
# the rate of transactions times the time each spends in it. So samples of sessions divide the mean response time, and
# no wait has to be timed.

_SERVED = ("read", "log", "other_io", "lock", "cpu", "rest")
BATCHES = 10


def make_budget(
    load: Load, io: Io, waits: WaitParts | None, interval: Interval, divided: Mapping[str, IoTime]
) -> Budget | None:
    """Return the budget, with I/O `divided` by `divide_io`, or None if no sessions were sampled or nothing ended.

    `rest` holds waits of unknown class. Time in which no session was sampled is the client's, between the server's
    answers.
    """
    seen, looks = waits.mean_sessions(interval) if waits else ({}, 0)
    done = int(interval.select(load.all("committed") + load.all("rolled_back")).sum())
    latency, service = (float(interval.select(load.all(column)).sum()) for column in ("latency_us", "service_us"))
    # Without samples or ended transactions there is no time to divide.
    if not seen or not done or latency <= 0:
        return None
    per_transaction = 1000 * interval.seconds / done  # ms of one session
    response_ms = latency / done / 1000
    queue_ms = max(0.0, (latency - service) / done / 1000)
    parts = dict.fromkeys(PARTS, 0.0) | {name: seen.get(name, 0.0) * per_transaction for name in _SERVED}
    served = sum(parts.values())
    within = response_ms - queue_ms
    # Samples vary, but their sum cannot exceed the response time.
    if served > within:
        parts = {name: ms * within / served for name, ms in parts.items()}
    parts["queue"] = queue_ms
    parts["client"] = max(0.0, within - served)
    above_ms = {name: parts[name] * divided[name].above for name in STORAGE}
    for name in STORAGE:
        parts["cpu"] += parts[name] * divided[name].cpu
        parts["unknown"] += parts[name] * divided[name].unknown
        parts[name] *= divided[name].storage
    return Budget(response_ms, done, parts, looks, io.data_device is not None, above_ms)


def relative_spread(load: Load, interval: Interval) -> float:
    """Return the relative standard error of the mean rate of transactions, from means of equal batches of seconds, or 0
    with fewer seconds than batches.

    Batches of a few seconds and more barely depend on one another where single seconds do (batch means: A. M. Law,
    Simulation Modeling and Analysis, 9.5.3).
    """
    done = interval.select(load.users_sum("committed") + load.users_sum("rolled_back"))
    length = len(done) // BATCHES
    if not length or not done.any():
        return 0.0
    means = done[: length * BATCHES].reshape(BATCHES, length).mean(axis=1)
    return float(means.std(ddof=1) / np.sqrt(BATCHES) / means.mean())


# Laws that a step's figures must obey, each with its two sides measured in different ways.
#
# Operational analysis (P. J. Denning and J. P. Buzen, ACM Computing Surveys 10, 1978) holds of any system in any
# interval, whatever its distributions. Little's law is N = X · R, the utilisation law U = X · S. Where the sides
# differ, something was measured wrongly, or something took part that was not measured.


def laws(
    manifest: Manifest, load: Load, io: Io, waits: WaitParts | None, interval: Interval, arrivals: str
) -> list[Law]:
    """Return the laws of which both sides are known."""
    step = manifest.steps[interval.index]
    seen, _ = waits.mean_sessions(interval) if waits else ({}, 0)
    user_laws = [_users_law(load, interval)] if arrivals == "closed" else []
    return [
        law
        for law in (
            *user_laws,
            _readers_law(io, seen, interval, streams=bool(step.streams or step.beside)),
            *_device_laws(manifest, io, interval),
            None if step.beside else _cpu_law(load, io, seen, interval),
        )
        if law
    ]


def _users_law(load: Load, interval: Interval) -> Law | None:
    users = float(interval.select(load.user_sum("running")).mean())
    accounted = float(interval.select(load.users_sum("latency_us") + load.user_sum("think_us")).mean()) / 1e6
    if not users:
        return None
    return _law(LawKind.USERS, users, accounted, LITTLE, abs(accounted / users - 1) <= LITTLE)


def _readers_law(io: Io, seen: Mapping[str, float], interval: Interval, streams: bool) -> Law | None:
    """Compare readers. With concurrent `streams` of queries, or another load, the counters include their reads too,
    while sessions seen are only the users'."""
    server = delta_over(io.data, interval)
    if server is None or server.broken or not seen or "read_stall_ms" not in server.values:
        return None
    stalled = sum(server.values.get(name, 0.0) for name in SERVER.read_ms) / server.seconds / 1000
    waiting = seen.get("read", 0.0)
    # Below a fraction of a session, samples are too few to compare.
    if max(stalled, waiting) < LAW_FLOOR_USERS:
        return None
    gap = waiting / stalled - 1 if stalled else float("inf")
    closed: bool | None = abs(gap) <= LITTLE_READS
    few = _sampling_uncertainty(gap, server.uncertainty)
    if few or (not closed and streams and stalled > waiting):
        closed = None
    return _law(LawKind.READS, stalled, waiting, LITTLE_READS, closed, few=few)


def _device_laws(manifest: Manifest, io: Io, interval: Interval) -> Iterator[Law]:
    """Compare the busy time of emulated arrays, whose service times are known."""
    roles: tuple[tuple[Role, Counters | None], ...] = (("data", io.data_device), ("wal", io.wal_device))
    for role, counters in roles:
        model, delta = manifest.devices.for_role(role).emulated_in_process, delta_over(counters, interval)
        if model is None or delta is None or delta.broken:
            continue
        if model.rpm or model.cache or model.tier:
            continue  # service times then depend on the I/O's position and on earlier I/Os
        busy = delta.values.get("busy_ms", 0.0) / 1000 / delta.seconds / model.spindles
        needed = _needed_busy_share(delta, model)
        if busy * model.spindles < LAW_FLOOR_USERS:
            continue
        gap = needed / busy - 1
        # Needed more than busy: I/Os overlapped or were merged, which is not an error.
        closed = True if abs(gap) <= SERVICE_ACCOUNTED else (None if gap > 0 else False)
        yield _law(LawKind.DEVICE, busy, needed, SERVICE_ACCOUNTED, closed, role=role)


def _needed_busy_share(delta: Delta, model: EmulatedArray) -> float:
    """Return the busy share of the spindles that follows from the number and size of the I/Os, including those of raw
    loads."""

    def all_of(count: str) -> float:
        return delta.values.get(count, 0.0) + delta.values.get(f"raw_{count}", 0.0)

    times = ("reads", model.read_ms), ("writes", model.write_ms), ("syncs", model.sync_ms)
    positioning = sum(all_of(count) * (each_ms or 0.0) for count, each_ms in times)
    moved = all_of("read_bytes") + all_of("write_bytes")
    transfer_ms = moved / model.mb_per_s / 1000 if model.mb_per_s else 0.0
    return float((positioning + transfer_ms) / 1000 / delta.seconds / model.spindles)


def accounted_cores(load: Load, sessions: float, interval: Interval) -> float:
    """Return the cores that `sessions` on a CPU and the executors account for."""
    return sessions + float(interval.select(load.user_sum("cpu_us")).mean()) / 1e6


def _cpu_law(load: Load, io: Io, seen: Mapping[str, float], interval: Interval) -> Law | None:
    """Compare busy cores with sessions on CPU and executors.

    More sessions than cores queue; fewer leave room for other work. Neither is a failure, and neither accounts for the
    busy cores.
    """
    host = host_cpu(delta_over(io.host, interval))
    if host is None or not seen or host.busy < LAW_FLOOR_USERS:
        return None
    known = accounted_cores(load, seen.get("cpu", 0.0), interval)
    closed = True if abs(known / host.busy - 1) <= CPU_ACCOUNTED else None
    return _law(LawKind.CPU, host.busy, known, CPU_ACCOUNTED, closed)


_WAIT_LAW_PARTS = ("read", "log", "lock")


def wait_laws(counted: Sequence[ServerWait], seen: Mapping[str, float]) -> list[Law]:
    """Compare the time waited per second for reads, log and locks by the server's counters (SQL Server's
    sys.dm_os_wait_stats) with the sessions seen waiting.

    The counters include waits of the server's own tasks, so they may be more; sessions seen waiting must be in them.
    """
    return [law for part in _WAIT_LAW_PARTS if (law := _wait_law(part, counted, seen.get(part, 0.0)))] if seen else []


def _wait_law(part: str, counted: Sequence[ServerWait], seen: float) -> Law | None:
    waits = [wait for wait in counted if part_of(wait.wait_class, wait.wait_type) == part]
    waited = sum(wait.resource_ms / wait.seconds / 1000 for wait in waits)
    if not waits or max(waited, seen) < LAW_FLOOR_USERS:
        return None
    gap = seen / waited - 1 if waited else float("inf")
    few = _sampling_uncertainty(gap, max(wait.uncertainty or 0.0 for wait in waits))
    closed = True if abs(gap) <= LITTLE_READS else (None if few or gap < 0 else False)
    names = sorted(wait.wait_type for wait in waits)
    return _law(LawKind.WAITS, waited, seen, LITTLE_READS, closed, few=few, part=part, wait_types=names)


def _sampling_uncertainty(gap: float, uncertainty: float) -> float | None:
    """Return the uncertainty of counters with few samples if it may explain all of the gap beyond the tolerance, else
    None."""
    return uncertainty if LITTLE_READS < abs(gap) <= LITTLE_READS + uncertainty else None


def _law(kind: LawKind, left: float, right: float, tolerance: float, closed: bool | None, **facts: Any) -> Law:
    severity = Severity.CAUTION if closed is False else Severity.INFO
    return Law(
        Finding(kind, severity, {"left": left, "right": right, "closed": closed, **facts}),
        left,
        right,
        tolerance,
        closed,
    )
