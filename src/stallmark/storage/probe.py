"""Measure raw I/O on a file in steps, and make sure that it reaches the intended storage."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from stallmark.errors import StallmarkError
from stallmark.record.devices import array_name
from stallmark.record.manifest.storage import Asked, EmulatedArray, ProbeResult, ProbeStep
from stallmark.storage.block_devices import InMemory, NoBlockDevice, device_behind, emulated_array_of, read_counters
from stallmark.storage.direct_io import direct_io, refuse_cached
from stallmark.storage.probe_file import ProbeFile, make_probe_file
from stallmark.storage.programs import find_tool

_SEEN = 0.9
"""Share of the probe's I/Os that an emulated array must have counted, or they went elsewhere."""

_MOST_STEPS = 10_000

Progress = Callable[[int, ProbeStep], None]
"""A function called after each step with its number, from 1, and its result."""


class ProbedArrays(Protocol):
    """The emulated arrays under a probe, such as `EmulatedArrays`."""

    def environment(self) -> dict[str, str]: ...

    def counters(self) -> Mapping[str, Any]: ...

    def model(self, name: str) -> Any: ...


def measure(
    file: ProbeFile,
    steps: Sequence[Asked],
    seconds: float,
    devices: ProbedArrays | None = None,
    progress: Progress = lambda number, step: None,
    *,
    seed: int = 1,
) -> tuple[ProbeStep, ...]:
    """Measure the steps for `seconds` each, at random places of their own, the same in every probe of one `seed`.

    With `devices` the file must be on an emulated array that is engaged, without them on real storage. Raise
    StallmarkError when it does not, or when the steps cannot be measured.
    """
    if not file.ours and any(not asked.pattern.reads for asked in steps):
        raise StallmarkError(
            f"{file.path} is not a file of this probe, and nothing is ever written to it: only read it."
        )
    tool = find_tool(emulated=devices is not None)
    refuse_bare(devices)
    results = []
    for number, asked in enumerate(steps, 1):
        before = _counts(devices)
        # Other places for each step: those of the step before would be in the array's cache.
        places = seed * _MOST_STEPS + number
        counted = _device_bytes(file, asked, devices)
        step = tool.measure(file, asked, seconds, places, devices.environment() if devices else None)
        if counted is not None and (now_counted := _device_bytes(file, asked, devices)) is not None:
            # A device that has counted nothing counts elsewhere, as one of several paths to the same disk does.
            step = replace(step, device_bytes=now_counted - counted if now_counted > counted else None)
        _refuse_elsewhere(devices, before, step, file)
        results.append(step)
        progress(number, step)
    return tuple(results)


def refuse_bare(devices: ProbedArrays | None) -> None:
    """Raise StallmarkError if no array is emulated at the moment."""
    if devices is not None and all(devices.model(name) is None for name in devices.counters()):
        raise StallmarkError(
            "The emulated array is not slow at the moment, and its probe would be one of the real one."
        )


def _counts(devices: ProbedArrays | None) -> dict[str, int]:
    return {name: c.reads + c.writes for name, c in devices.counters().items()} if devices else {}


def _device_bytes(file: ProbeFile, asked: Asked, devices: ProbedArrays | None) -> int | None:
    """Return the bytes that the block device under the file has counted in the step's direction, or None if unknown."""
    if devices is not None or not sys.platform.startswith("linux") or not file.path.is_file():
        return None
    try:
        counted = read_counters(device_behind(file.path.parent))
    except NoBlockDevice:
        return None
    return counted.read_bytes if asked.pattern.reads else counted.write_bytes


def _refuse_elsewhere(devices: ProbedArrays | None, before: dict[str, int], step: ProbeStep, file: ProbeFile) -> None:
    if devices is None:
        return
    after = _counts(devices)
    seen = sum(after[name] - before[name] for name in after if devices.model(name) is not None)
    if seen < _SEEN * step.ios:
        raise StallmarkError(
            f"The emulated array saw {seen:,} of the {step.ios:,} I/Os of its probe, so that this was a probe of the "
            f"real one: the two must not be mixed up; {file.place} is not on the emulated array: name one that is."
        )


def refuse_memory(folder: Path) -> None:
    """Raise StallmarkError if a file in `folder` (which need not exist yet) would be in the machine's memory, or its
    I/O would go through the page cache."""
    if not sys.platform.startswith("linux"):
        return
    try:
        device_behind(next(place for place in (folder.absolute(), *folder.absolute().parents) if place.is_dir()))
    except InMemory as why:
        raise StallmarkError(
            f"{str(why).rstrip('.')}, and a probe would measure that: name a folder on the storage that is meant."
        ) from None
    except NoBlockDevice:
        # A network share, for example, is measured without device counters.
        pass
    refuse_cached(folder)


def result(file: ProbeFile, steps: tuple[ProbeStep, ...], started: str, devices: ProbedArrays | None) -> ProbeResult:
    """Return the result of a probe: its steps, with tool, file and device."""
    tool = find_tool(emulated=devices is not None)
    device, emulated = describe_device(file.path) if devices is None else (_in_words(devices), True)
    tried = direct_io(Path(file.place)) if devices is None else None
    return ProbeResult(tool.version, tool.how, emulated, device, file.place, file.bytes, started, steps, tried)


def describe_device(path: Path) -> tuple[str | None, bool]:
    """Return the device under a file of this machine in words, None if unknown, and whether it is emulated."""
    device = block_device_of(path)
    array = emulated_array_of(device) if device else None
    return (f"{device}, {array_name(array)}", True) if array else (device, False)


def _in_words(devices: ProbedArrays) -> str:
    models = (devices.model(name) for name in devices.counters())
    return "; ".join(array_name(EmulatedArray(**asdict(model))) for model in models if model is not None)


def block_device_of(path: Path) -> str | None:
    """Return the name of the block device under a file of this machine, or of the device itself; None if unknown."""
    if path.is_block_device():
        return path.resolve().name
    if not sys.platform.startswith("linux"):
        return None
    try:
        return device_behind(path if path.is_dir() else path.parent).name
    except NoBlockDevice:
        return None


def in_steps(
    folder: Path, steps: Sequence[Asked], devices: ProbedArrays | None = None, *, seconds: float, size_bytes: int
) -> ProbeResult:
    """Probe storage in steps of `seconds` each, on a new file in `folder`.

    `devices`: the server's arrays, when emulated. Raise StallmarkError if it cannot be probed.
    """
    started = now()
    # Checked before gigabytes are written in vain.
    find_tool(emulated=devices is not None)
    if devices is None:
        refuse_memory(folder)
    with make_probe_file(folder, size_bytes) as file:
        measured = measure(file, steps, seconds, devices)
        return result(file, measured, started, devices)


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
