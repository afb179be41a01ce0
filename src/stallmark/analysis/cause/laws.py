"""Laws that a step's figures must obey, each with its sides measured in different ways.

Operational analysis (P. J. Denning and J. P. Buzen, ACM Computing Surveys 10, 1978): Little's law, N = X · R, and the
utilisation law, U = X · S, hold of any system in any interval, whatever its distributions. Where their sides differ,
something was measured wrongly, or something took part that nobody measured.
"""

from collections.abc import Iterator, Mapping

from stallmark.analysis.cause.summary import Law
from stallmark.analysis.read.counters import Delta
from stallmark.analysis.read.interval import Interval
from stallmark.analysis.read.io import SERVER, Io, over
from stallmark.analysis.read.load import Load
from stallmark.analysis.read.wait_parts import WaitParts
from stallmark.format import number, percent
from stallmark.record.manifest import EmulatedArray, Manifest
from stallmark.stats.thresholds import CPU_ACCOUNTED, LAW_FLOOR_USERS, LITTLE, LITTLE_READS, SERVICE_ACCOUNTED


def laws(
    manifest: Manifest, load: Load, io: Io, waits: WaitParts | None, interval: Interval, arrivals: str
) -> list[Law]:
    """Those whose sides are both known."""
    beside = manifest.concurrent_streams
    seen, _ = waits.over(interval) if waits else ({}, 0)
    found = [_users(load, interval)] if arrivals == "closed" else []
    return [
        law
        for law in (
            *found,
            _readers(io, seen, interval, streams=bool(beside and beside.streams)),
            *_devices(manifest, io, interval),
            _cpu(load, io, seen, interval),
        )
        if law
    ]


def _users(load: Load, interval: Interval) -> Law | None:
    users = float(interval.of(load.user_sum("running")).mean())
    accounted = float(interval.of(load.of_users("latency_us") + load.user_sum("think_us")).mean()) / 1e6
    if not users:
        return None
    closed = abs(accounted / users - 1) <= LITTLE
    return Law(
        "Little’s law of the users",
        "users that were running",
        "transactions per second × (latency + think time)",
        "users",
        users,
        accounted,
        LITTLE,
        closed,
        _said(closed, "What transactions took and the time between them account for all users", users, accounted),
    )


def _readers(io: Io, seen: Mapping[str, float], interval: Interval, streams: bool) -> Law | None:
    """With `streams` of queries beside the users the counters hold their reads too, and sessions seen are users'."""
    server = over(io.data, interval)
    if server is None or server.broken or not seen or "read_stall_ms" not in server.values:
        return None
    stalled = sum(server.values.get(name, 0.0) for name in SERVER.read_ms) / server.seconds / 1000
    waiting = seen.get("read", 0.0)
    if max(stalled, waiting) < LAW_FLOOR_USERS:
        return None
    closed: bool | None = abs(waiting / stalled - 1) <= LITTLE_READS if stalled else False
    sentence = _said(bool(closed), "Sessions were seen reading for as long as the server counted", stalled, waiting)
    if streams and stalled > waiting and not closed:
        closed = None
        sentence = f"Users were {number(waiting)} of the {number(stalled)} that read by the counters: queries read too."
    return Law(
        "Little’s law of the reads",
        "reads per second × time of a read, by the server’s counters",
        "sessions seen waiting for a read",
        "sessions",
        stalled,
        waiting,
        LITTLE_READS,
        closed,
        sentence,
    )


def _devices(manifest: Manifest, io: Io, interval: Interval) -> Iterator[Law]:
    """Of emulated devices, whose service times are known."""
    devices = manifest.devices
    for device, title, counters in (
        (devices.of("data"), "data device", io.data_device),
        (devices.of("wal"), "log’s device", io.wal_device),
    ):
        model, delta = device.emulated_in_process, over(counters, interval)
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
        what = f"I/Os times their service times account for the {title}’s busy time"
        sentence = (
            f"{what} less well: sequential I/O is served faster than the model’s read and write times say."
            if closed is None
            else _said(closed, what, busy, asked)
        )
        yield Law(
            f"Utilisation law of the {title}",
            "busy share of its spindles, as it counted",
            "I/Os per second × service time ÷ spindles",
            "share of the time",
            busy,
            asked,
            SERVICE_ACCOUNTED,
            closed,
            sentence,
        )


def _asked(delta: Delta, model: EmulatedArray) -> float:
    """Busy share of the spindles that the I/Os' number and size ask for."""
    positioning = sum(
        delta.values.get(count, 0.0) * (each_ms or 0.0)
        for count, each_ms in (("reads", model.read_ms), ("writes", model.write_ms), ("syncs", model.sync_ms))
    )
    moved = delta.values.get("read_bytes", 0.0) + delta.values.get("write_bytes", 0.0)
    transfer_ms = moved / model.mb_per_s / 1000 if model.mb_per_s else 0.0
    return float((positioning + transfer_ms) / 1000 / delta.seconds / model.spindles)


def cpu_cores(load: Load, io: Io, seen: Mapping[str, float], interval: Interval) -> tuple[float, float] | None:
    """Cores busy on the server's machine, and how many of them sessions and executors account for; None where the
    machine's are not known or nobody looked at sessions."""
    host = over(io.host, interval)
    if host is None or host.broken or not seen:
        return None
    idle = host.values.get("idle_s", 0.0) + host.values.get("iowait_s", 0.0)
    busy = (sum(host.values.values()) - idle) / host.seconds
    driver = float(interval.of(load.user_sum("cpu_us")).mean()) / 1e6
    return busy, seen.get("cpu", 0.0) + driver


def _cpu(load: Load, io: Io, seen: Mapping[str, float], interval: Interval) -> Law | None:
    """Busy cores are sessions on CPU and executors; more sessions than that queue for a core, and fewer leave
    room for work that is nobody's fault: neither is a failure, and neither accounts for the busy cores."""
    if (cores := cpu_cores(load, io, seen, interval)) is None:
        return None
    busy, known = cores
    if busy < LAW_FLOOR_USERS:
        return None
    closed = True if abs(known / busy - 1) <= CPU_ACCOUNTED else None
    if closed:
        sentence = f"Sessions on a CPU and the driver account for the machine’s {number(busy)} busy cores."
    elif known > busy:
        sentence = (
            f"Sessions on a CPU or waiting for one, and the driver, would fill {number(known)} cores, of which "
            f"{number(busy)} were busy: the others queued for a core, or did not run all the time that they were seen "
            "running."
        )
    else:
        sentence = (
            f"{percent(1 - known / busy)} of {number(busy)} busy cores were neither sessions seen on a CPU nor the "
            "driver: the kernel’s work for I/O, the server’s own processes, or other programs."
        )
    return Law(
        "Utilisation law of the CPU",
        "cores busy, by the machine’s counters",
        "sessions seen running or waiting for a CPU, and the driver’s CPU time",
        "cores",
        busy,
        known,
        CPU_ACCOUNTED,
        closed,
        sentence,
    )


def _said(closed: bool, what: str, left: float, right: float) -> str:
    return f"{what}." if closed else f"Does not close: {number(left)} on one side, {number(right)} on the other."
