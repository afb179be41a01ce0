"""Is the device the bottleneck? Derived from where users spent their time, and the device's and host's
load."""

from collections.abc import Mapping
from dataclasses import dataclass

from stallmark.format import listed, percent
from stallmark.stats.thresholds import (
    CPU_BUSY,
    CPU_LIMITS,
    DEVICE_BUSY,
    DEVICE_FREE,
    DEVICE_LIMITS,
    DEVICE_OWN,
    DEVICE_QUEUES,
    PROGRESS_FLOOR,
)


@dataclass(frozen=True)
class Verdict:
    """`limits`: True, False, or None where the device is one limit among others or the load shows none."""

    limits: bool | None
    sentence: str


def device_verdict(
    waits: Mapping[str, float] | None,
    data_busy: float | None,
    wal_busy: float | None,
    cpu_busy: float | None,
    wal_apart: bool,
    device_share: tuple[float, float] = (1.0, 1.0),
) -> Verdict | None:
    """Judge the device on which users waited most.

    `waits` are shares by wait class. Give a device's busy share only where 1 means that it is saturated.
    `wal_apart`: the log lies on a device of its own. `device_share`: how much of the users' waits for data
    files and for the log was the device (`device_share_of_stall`). None where too little is known to say
    anything.
    """
    if waits is None:
        return _without_waits(data_busy, cpu_busy)
    of_log = wal_apart and waits["wal"] > waits["io"]
    device, busy = ("log's device", wal_busy) if of_log else ("device", data_busy)
    progressing = 1 - waits["client"] - waits["lock"]
    if progressing < PROGRESS_FLOOR:
        idle = "in the client" if waits["client"] >= waits["lock"] else "waiting for each other's locks"
        share = percent(max(waits["client"], waits["lock"]))
        return Verdict(None, f"The load says nothing about the device: users spent {share} of their time {idle}.")
    waited = waits["io"] + waits["wal"]
    in_device = waits["io"] * device_share[0] + waits["wal"] * device_share[1]
    own = in_device / waited if waited >= PROGRESS_FLOOR else 1.0
    facts = _times(waits, own)
    if loads := _loads(device, busy, cpu_busy):
        facts += f" while {loads}"
    share_of_device = in_device / progressing
    if share_of_device > DEVICE_FREE and cpu_busy is not None and cpu_busy >= CPU_LIMITS:
        return _with_cpus(device, facts, cpu_busy)
    if share_of_device >= DEVICE_LIMITS:
        if busy is not None and busy < DEVICE_QUEUES:
            return Verdict(True, f"The latency of the {device} itself is the bottleneck, more than its queue: {facts}.")
        return Verdict(True, f"The {device} is the bottleneck: {facts}.")
    if share_of_device <= DEVICE_FREE:
        return Verdict(False, f"The {device} is not the bottleneck: {facts}.")
    return Verdict(None, f"The {device} is one limit among others: {facts}.")


def _without_waits(busy: float | None, cpu_busy: float | None) -> Verdict | None:
    loads = _loads("device", busy, cpu_busy)
    if busy is None:
        return None
    if busy >= DEVICE_BUSY and cpu_busy is not None and cpu_busy >= CPU_LIMITS:
        return _with_cpus("device", loads, cpu_busy)
    if busy >= DEVICE_BUSY:
        return Verdict(True, f"The device is the bottleneck: {loads}.")
    if busy < DEVICE_QUEUES and cpu_busy is not None and cpu_busy >= CPU_BUSY:
        return Verdict(False, f"The device is not the bottleneck: {loads}.")
    return None


def _with_cpus(device: str, facts: str, cpu_busy: float) -> Verdict:
    more = percent(1 / min(cpu_busy, 1.0) - 1)
    limit = f"could give {more} more at most" if cpu_busy < 1 else "could give no more"
    return Verdict(
        None, f"The {device} and the CPUs are limits together: {facts}, so that faster storage alone {limit}."
    )


def _times(waits: Mapping[str, float], own: float) -> str:
    said = [f"{percent(waits['io'])} of their time in I/O of data files"]
    if waits["wal"] >= 0.01:
        said.append(f"{percent(waits['wal'])} in writing the log")
    if own < DEVICE_OWN:
        said[-1] += f" ({percent(own)} of that was the device itself)"
    if waits["lock"] >= 0.05:
        said.append(f"{percent(waits['lock'])} waiting for locks")
    return f"users spent {listed(said)}"


def _loads(device: str, busy: float | None, cpu_busy: float | None) -> str:
    said = []
    if busy is not None:
        said.append(f"the {device} was {percent(busy)} busy")
    if cpu_busy is not None:
        said.append(f"the host's CPUs were {percent(cpu_busy)} busy")
    return listed(said)
