"""The verdict on the device: is it the bottleneck? It follows from the users' waits and the load of device and host."""

from collections.abc import Mapping
from enum import StrEnum

from stallmark.analysis.attribution import IoTime
from stallmark.analysis.finding import Finding, Kind, info
from stallmark.stats.thresholds import (
    ABOVE,
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
) -> Finding | None:
    """Judge the device on which users waited most; return None if too little is known.

    `waits` are shares by wait class. Give a device's busy share only if 1 means that it is saturated. `wal_separate`:
    the log is on its own device. `divided`: the time in I/O of data files and of the log (`divide_io`). `cpu_own`: the
    share of the CPUs that sessions and executors, or the server's process, account for, or None if unknown.
    """
    if waits is None:
        return _judge_without_waits(data_busy, cpu_busy)
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
    if cpu_busy is not None and cpu_busy >= CPU_ALONE:
        return info(DeviceKind.CPUS_LIMIT, **facts)
    if share > DEVICE_FREE and cpu_busy is not None and cpu_busy >= CPU_LIMITS:
        return info(DeviceKind.WITH_CPUS, **facts)
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


def _judge_without_waits(busy: float | None, cpu_busy: float | None) -> Finding | None:
    if busy is None:
        return None
    facts = {"device": JudgedDevice.DATA, "busy_share": busy, "cpu_share": cpu_busy}
    if cpu_busy is not None and cpu_busy >= CPU_ALONE and busy >= DEVICE_BUSY:
        return info(DeviceKind.CPUS_LIMIT, **facts)
    if busy >= DEVICE_BUSY and cpu_busy is not None and cpu_busy >= CPU_LIMITS:
        return info(DeviceKind.WITH_CPUS, **facts)
    if busy >= DEVICE_BUSY:
        return info(DeviceKind.LIMITS, **facts)
    if busy < DEVICE_QUEUES and cpu_busy is not None and cpu_busy >= CPU_BUSY:
        return info(DeviceKind.NOT_LIMITING, **facts)
    return None
