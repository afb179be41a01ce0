"""What two runs were made with: what differs by intent, and what must not differ if their figures are to be compared.

By intent differs what a variant declares (its buffer pool, its devices), and where the data lie: storage is what is
compared. Everything else that decides a figure must be the same.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from stallmark.format import number, size
from stallmark.record.devices import array_in_words, data_device_name
from stallmark.record.manifest import Device, Manifest, Step
from stallmark.stats.thresholds import POOL_REACHED

PLACEMENT = ("file ", "volume ", "tablespace ")
"""Settings that begin so say where data lie and how large the files are."""

MOMENTARY = ("server started", "database log reuse wait")
"""Settings that say how the server stood when it was asked, and nothing of its configuration."""

WITH_THE_POOL = ("shared_buffers", "wal_buffers", "max server memory")
"""Settings by which the buffer pool is capped, and what PostgreSQL derives from it."""

Difference = tuple[str, Any, Any]  # what, of A, of B; None where it is not said


def by_intent(manifest: Manifest) -> list[str]:
    """What may tell this run's variant from others, in words: its buffer pool, its array, the devices of data
    and log."""
    reached, devices = manifest.memory.reached_bytes, manifest.devices
    said = [f"buffer pool {size(reached)}"] if reached else []
    if devices.data:
        said.append(f"data on {data_device_name(manifest)}")
    said += [f"array: {one}" for one in array_in_words(manifest)]
    if devices.wal and devices.wal != devices.data:
        said.append(f"log on {_device(devices.wal)}")
    return said


def one_pool(a: Manifest, b: Manifest) -> bool:
    """Whether the two were to have the same buffer pool: declared alike, or not at all."""
    return bool(_declared_pool(a) == _declared_pool(b))


def differences(a: Manifest, b: Manifest) -> list[Difference]:
    """What differs though neither variant declares it, in the order of importance."""
    return list(_differences(a, b))


def in_words(difference: Difference) -> str:
    what, left, right = difference
    return f"{what} {_said(left)} against {_said(right)}"


def _differences(a: Manifest, b: Manifest) -> Iterator[Difference]:
    for what, of in _SAME.items():
        left, right = of(a), of(b)
        # What a record does not say, nobody can hold against it.
        if left != right and left is not None and right is not None:
            yield what, left, right
    yield from _steps(a.steps, b.steps)
    pool = one_pool(a, b)
    yield from _settings(a.server.settings, b.server.settings, pool)
    left, right = a.memory.reached_bytes, b.memory.reached_bytes
    if pool and left and right and abs(right / left - 1) > POOL_REACHED:
        yield "buffer pool", size(left), size(right)


_SAME: dict[str, Callable[[Manifest], Any]] = {
    "workload": lambda one: one.workload.name or None,
    "version of the workload": lambda one: one.workload.version,
    "scale": lambda one: one.workload.scale or None,
    "seed": lambda one: one.workload.seed,
    "mix": lambda one: one.workload.mix,
    "locality": lambda one: one.workload.locality,
    "server": lambda one: one.server.product or None,
    "version of the server": lambda one: one.server.version or None,
    "physical design": lambda one: one.scenario.database,
    "load machines": lambda one: len(one.load_machines) or 1,
    "cache at the start": lambda one: one.cache_start,
    "reset": lambda one: one.reset,
    "observation": lambda one: one.scenario.observe,
    "CPU of the driver’s machine": lambda one: one.machine.cpu,
    "cores of the driver’s machine": lambda one: one.machine.cores,
    "memory of the driver’s machine": lambda one: one.machine.memory_bytes,
}


def _steps(a: Sequence[Step], b: Sequence[Step]) -> Iterator[Difference]:
    """How users arrive, and how long they are measured; which steps there are is for who pairs them to see."""
    for left in a:
        for right in b:
            if (left.name, left.users) != (right.name, right.users):
                continue
            for what, one, other in (
                ("arrivals", left.arrivals, right.arrivals),
                ("rate of arrivals", left.rate, right.rate),
                ("think time, ms", left.think_ms, right.think_ms),
                ("seconds measured", _measured_s(left), _measured_s(right)),
            ):
                if one != other:
                    yield what, one, other


def _measured_s(step: Step) -> float:
    """As planned, to the millisecond: a run that waited for a steady state is measured later, and for as long."""
    return round(step.end_s - step.measure_s, 3)


def _settings(a: Mapping[str, str], b: Mapping[str, str], pool: bool) -> Iterator[Difference]:
    for name in sorted({*a, *b}):
        if name.startswith((*PLACEMENT, *MOMENTARY, "not readable")):
            continue
        if not pool and name.startswith(WITH_THE_POOL):
            continue
        if a.get(name) != b.get(name):
            yield f"setting {name}", a.get(name), b.get(name)


def _declared_pool(manifest: Manifest) -> Any:
    return manifest.variant.buffer_pool or manifest.scenario.buffer_pool


def _device(device: Device) -> str:
    if array := device.emulated_in_process:
        time = f"{array.rpm:,.0f} rpm" if array.rpm else f"{number(array.write_ms or 0)} ms"
        return f"{array.spindles} emulated spindles, {time}"
    return " ".join(part for part in (device.name, device.model) if part) or "unknown"


def _said(value: Any) -> str:
    if value is None:
        return "not set"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {inner}" for key, inner in value.items()) or "none"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return f"{value}"
