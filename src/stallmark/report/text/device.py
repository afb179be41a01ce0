"""The wording of the verdict on a step's device: is it the bottleneck?"""

from typing import Any

from stallmark.analysis.cause.device_verdict import Device, DeviceKind
from stallmark.analysis.finding import Finding
from stallmark.format import listed, percent
from stallmark.report.text import says
from stallmark.stats.thresholds import DEVICE_OWN

_NAMES = {Device.DATA: "device", Device.LOG: "log’s device"}


def mark(finding: Finding) -> str:
    """Return a verdict in a few words, for a table."""
    return {
        DeviceKind.LIMITS: "device-bound",
        DeviceKind.LATENCY_LIMITS: "device-bound",
        DeviceKind.NOT_LIMITING: "device not the bottleneck",
        DeviceKind.ONE_OF_SEVERAL: "device one limit of several",
        DeviceKind.WITH_CPUS: "device and CPUs limit together",
        DeviceKind.NOT_TOLD: "load says nothing about the device",
    }[DeviceKind(finding.kind)]


@says(DeviceKind.NOT_TOLD)
def _(spent_in: str, share: float) -> str:
    idle = {"client": "in the client", "lock": "waiting for each other’s locks"}[spent_in]
    return f"The load says nothing about the device: users spent {percent(share)} of their time {idle}."


@says(DeviceKind.LIMITS)
def _(device: Device, **facts: Any) -> str:
    return f"The {_NAMES[device]} is the bottleneck: {_rests_on(device, **facts)}."


@says(DeviceKind.LATENCY_LIMITS)
def _(device: Device, **facts: Any) -> str:
    name = _NAMES[device]
    return f"The latency of the {name}, rather than its queue, is the bottleneck: {_rests_on(device, **facts)}."


@says(DeviceKind.NOT_LIMITING)
def _(device: Device, **facts: Any) -> str:
    return f"The {_NAMES[device]} is not the bottleneck: {_rests_on(device, **facts)}."


@says(DeviceKind.ONE_OF_SEVERAL)
def _(device: Device, **facts: Any) -> str:
    return f"The {_NAMES[device]} is one limit among several: {_rests_on(device, **facts)}."


@says(DeviceKind.WITH_CPUS)
def _(device: Device, cpu_share: float, **facts: Any) -> str:
    more = f"{percent(1 / cpu_share - 1)} more at most" if cpu_share < 1 else "no more"
    return (
        f"The {_NAMES[device]} and the CPUs are limits together: {_rests_on(device, cpu_share=cpu_share, **facts)}. "
        f"Faster storage alone could give {more}."
    )


def _rests_on(
    device: Device,
    io_share: float | None = None,
    log_share: float = 0.0,
    lock_share: float = 0.0,
    device_share: float = 1.0,
    busy_share: float | None = None,
    cpu_share: float | None = None,
) -> str:
    loads = [f"the {_NAMES[device]} was {percent(busy_share)} busy"] if busy_share is not None else []
    loads += [f"the host’s CPUs were {percent(cpu_share)} busy"] if cpu_share is not None else []
    if io_share is None:
        return listed(loads)
    spent = [f"{percent(io_share)} of their time in I/O of data files"]
    if log_share >= 0.01:
        spent.append(f"{percent(log_share)} writing the log")
    if device_share < DEVICE_OWN:
        spent[-1] += f" ({percent(device_share)} of that in the device itself)"
    if lock_share >= 0.05:
        spent.append(f"{percent(lock_share)} waiting for locks")
    return f"users spent {listed(spent)}" + (f" while {listed(loads)}" if loads else "")
