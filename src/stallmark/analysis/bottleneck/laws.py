"""Laws that a step's figures must obey, each with its two sides measured in different ways.

Operational analysis (P. J. Denning and J. P. Buzen, ACM Computing Surveys 10, 1978) holds of any system in any
interval, whatever its distributions. Little's law is N = X · R, the utilisation law U = X · S. Where the sides differ,
something was measured wrongly, or something took part that was not measured.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from stallmark.analysis.bottleneck.summary import Law, LawKind
from stallmark.analysis.finding import Finding, Severity
from stallmark.analysis.read.counters import Counters, Delta
from stallmark.analysis.read.driver_tables import Load
from stallmark.analysis.read.interval import Interval
from stallmark.analysis.read.io import SERVER, Io, over
from stallmark.analysis.read.server_summary import ServerWait
from stallmark.analysis.read.waits import WaitParts, part_of
from stallmark.record.manifest import Manifest
from stallmark.record.manifest.storage import EmulatedArray, Role
from stallmark.stats.thresholds import CPU_ACCOUNTED, LAW_FLOOR_USERS, LITTLE, LITTLE_READS, SERVICE_ACCOUNTED


def laws(
    manifest: Manifest, load: Load, io: Io, waits: WaitParts | None, interval: Interval, arrivals: str
) -> list[Law]:
    """Return the laws whose sides are both known."""
    step = manifest.steps[interval.index]
    seen, _ = waits.over(interval) if waits else ({}, 0)
    found = [_users(load, interval)] if arrivals == "closed" else []
    return [
        law
        for law in (
            *found,
            _readers(io, seen, interval, streams=bool(step.streams or step.beside)),
            *_devices(manifest, io, interval),
            None if step.beside else _cpu(load, io, seen, interval),
        )
        if law
    ]


def _users(load: Load, interval: Interval) -> Law | None:
    users = float(interval.of(load.user_sum("running")).mean())
    accounted = float(interval.of(load.of_users("latency_us") + load.user_sum("think_us")).mean()) / 1e6
    if not users:
        return None
    return _law(LawKind.USERS, users, accounted, LITTLE, abs(accounted / users - 1) <= LITTLE)


def _readers(io: Io, seen: Mapping[str, float], interval: Interval, streams: bool) -> Law | None:
    """Compare readers. With concurrent `streams` of queries, or another load, the counters hold their reads too, while
    sessions seen are users'."""
    server = over(io.data, interval)
    if server is None or server.broken or not seen or "read_stall_ms" not in server.values:
        return None
    stalled = sum(server.values.get(name, 0.0) for name in SERVER.read_ms) / server.seconds / 1000
    waiting = seen.get("read", 0.0)
    if max(stalled, waiting) < LAW_FLOOR_USERS:
        return None
    gap = waiting / stalled - 1 if stalled else float("inf")
    closed: bool | None = abs(gap) <= LITTLE_READS
    few = _few(gap, server.uncertainty)
    if few or (not closed and streams and stalled > waiting):
        closed = None
    return _law(LawKind.READS, stalled, waiting, LITTLE_READS, closed, few=few)


def _devices(manifest: Manifest, io: Io, interval: Interval) -> Iterator[Law]:
    """Compare the busy time of emulated arrays, whose service times are known."""
    roles: tuple[tuple[Role, Counters | None], ...] = (("data", io.data_device), ("wal", io.wal_device))
    for role, counters in roles:
        model, delta = manifest.devices.of(role).emulated_in_process, over(counters, interval)
        if model is None or delta is None or delta.broken:
            continue
        if model.rpm or model.cache or model.tier:
            continue  # how long an I/O is served depends on where it is, and on what was there before
        busy = delta.values.get("busy_ms", 0.0) / 1000 / delta.seconds / model.spindles
        asked = _asked(delta, model)
        if busy * model.spindles < LAW_FLOOR_USERS:
            continue
        gap = asked / busy - 1
        closed = True if abs(gap) <= SERVICE_ACCOUNTED else (None if gap > 0 else False)
        yield _law(LawKind.DEVICE, busy, asked, SERVICE_ACCOUNTED, closed, role=role)


def _asked(delta: Delta, model: EmulatedArray) -> float:
    """Return the busy share of the spindles that the I/Os' number and size ask for, those of raw loads among them."""

    def all_of(count: str) -> float:
        return delta.values.get(count, 0.0) + delta.values.get(f"raw_{count}", 0.0)

    times = ("reads", model.read_ms), ("writes", model.write_ms), ("syncs", model.sync_ms)
    positioning = sum(all_of(count) * (each_ms or 0.0) for count, each_ms in times)
    moved = all_of("read_bytes") + all_of("write_bytes")
    transfer_ms = moved / model.mb_per_s / 1000 if model.mb_per_s else 0.0
    return float((positioning + transfer_ms) / 1000 / delta.seconds / model.spindles)


def cpu_cores(load: Load, io: Io, seen: Mapping[str, float], interval: Interval) -> tuple[float, float] | None:
    """Return the cores busy on the server's machine, and how many of them sessions and executors account for. None
    where the machine's cores are not known or no sessions were sampled."""
    host = over(io.host, interval)
    if host is None or host.broken or not seen:
        return None
    idle = host.values.get("idle_s", 0.0) + host.values.get("iowait_s", 0.0)
    busy = (sum(host.values.values()) - idle) / host.seconds
    driver = float(interval.of(load.user_sum("cpu_us")).mean()) / 1e6
    return busy, seen.get("cpu", 0.0) + driver


def _cpu(load: Load, io: Io, seen: Mapping[str, float], interval: Interval) -> Law | None:
    """Compare busy cores with sessions on CPU and executors. More sessions than that queue for a core; fewer leave
    room for other work. Neither is a failure, and neither accounts for the busy cores."""
    if (cores := cpu_cores(load, io, seen, interval)) is None:
        return None
    busy, known = cores
    if busy < LAW_FLOOR_USERS:
        return None
    closed = True if abs(known / busy - 1) <= CPU_ACCOUNTED else None
    return _law(LawKind.CPU, busy, known, CPU_ACCOUNTED, closed)


_COUNTED = ("read", "log", "lock")


def wait_laws(counted: Sequence[ServerWait], seen: Mapping[str, float]) -> list[Law]:
    """Compare the time waited per second for reads, log and locks by the server's counters (SQL Server's
    sys.dm_os_wait_stats) with the sessions seen waiting.

    Counters hold waits of the server's own tasks too, so they may be more; sessions seen waiting must be in them.
    """
    return [law for part in _COUNTED if (law := _waits(part, counted, seen.get(part, 0.0)))] if seen else []


def _waits(part: str, counted: Sequence[ServerWait], seen: float) -> Law | None:
    waits = [one for one in counted if part_of(one.wait_class, one.wait_type) == part]
    waited = sum(one.resource_ms / one.seconds / 1000 for one in waits)
    if not waits or max(waited, seen) < LAW_FLOOR_USERS:
        return None
    gap = seen / waited - 1 if waited else float("inf")
    few = _few(gap, max(one.uncertainty or 0.0 for one in waits))
    closed = True if abs(gap) <= LITTLE_READS else (None if few or gap < 0 else False)
    names = sorted(one.wait_type for one in waits)
    return _law(LawKind.WAITS, waited, seen, LITTLE_READS, closed, few=few, part=part, wait_types=names)


def _few(gap: float, uncertainty: float) -> float | None:
    """Return the share by which counters may be off, as their samples were few, if that may be all of the gap that is
    not tolerated; else None."""
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
