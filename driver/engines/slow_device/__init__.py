"""A device of known slowness for the embedded PostgreSQL, without root (Linux only).

The server process is started with an interposer (slow_device.c, whose header says exactly what is slowed
and counted) that gives the I/O of chosen directories a service time and a queue. Everything measured on such
a device is EMULATED, and is to be labelled so.

    with SlowDevices.create(Path("/dev/shm/slow.state"), {"data": data, "wal": data / "pg_wal"},
                            {"data": DeviceModel(1, 8, 8, 8, 100), "wal": None}, build_dir=cache) as devices:
        server = subprocess.Popen([...], env=os.environ | devices.environment())
        devices.set_model("data", None)      # while it runs
        devices.counters()["data"].reads
"""

from __future__ import annotations

import mmap
import os
import sys
import tempfile
from collections.abc import Mapping
from ctypes import sizeof
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from stallmark.driver.engines.slow_device import layout
from stallmark.driver.engines.slow_device.build import interposer
from stallmark.driver.engines.slow_device.errors import NoCompiler, SlowDeviceError, UnsupportedSystem

__all__ = [
    "DeviceCounters",
    "DeviceModel",
    "NoCompiler",
    "SlowDeviceError",
    "SlowDevices",
    "UnsupportedSystem",
]

CLUSTER = "data"
"""The device that stands for a cluster's data directory; these parts of it are slowed and counted:"""
_CLUSTER_PARTS = ("base", "global", "pg_tblspc")

_LONGEST_MS = 60_000


@dataclass(frozen=True)
class DeviceModel:
    """How slow a device is.

    A spindle is one server with a queue, first in, first out; I/O is striped over the spindles by 1 MiB.
    The three times are milliseconds for each I/O; `mb_per_s` is 10^6 bytes per second of one spindle.
    An I/O costs its positioning time plus its bytes / bandwidth; one that continues where its spindle
    stopped costs only the latter.
    """

    spindles: int
    read_ms: float
    write_ms: float
    sync_ms: float
    mb_per_s: float

    def __post_init__(self) -> None:
        if type(self.spindles) is not int or not 1 <= self.spindles <= layout.MAX_SPINDLES:
            raise ValueError(
                f"spindles must be a whole number from 1 to {layout.MAX_SPINDLES}, not {self.spindles!r}."
            )
        for name in ("read_ms", "write_ms", "sync_ms"):
            _require_number(name, getattr(self, name), 0, _LONGEST_MS)
        _require_number("mb_per_s", self.mb_per_s, 0.001, 100_000)


def _require_number(name: str, value: object, low: float, high: float) -> None:
    # NaN fails the comparison, too.
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise ValueError(f"{name} must be a number from {low:,} to {high:,}, not {value!r}.")


@dataclass(frozen=True)
class DeviceCounters:
    """What a device has done since it was created; all values only grow.

    Dirty bytes of the page cache count as one write when a sync flushes them. The `_ns` of an operation are
    the nanoseconds its callers waited, queue included (for a sync, also the flushed bytes); the sum of all
    three is the integral of the queue depth over time. `busy_ns` is the modelled service alone, summed over
    the spindles. `late` counts the I/Os for which the real device took longer than the modelled one: if they
    are many, it was not the model that was measured.
    """

    reads: int
    read_bytes: int
    read_ns: int
    writes: int
    write_bytes: int
    write_ns: int
    syncs: int
    sync_ns: int
    busy_ns: int
    late: int


class SlowDevices:
    """Named devices of known slowness, shared with the server through a state file.

    The name "data" stands for a cluster's data directory, of which base/, global/ and pg_tblspc/ are slowed;
    any other name ("wal", or one for a tablespace elsewhere) for everything in its directory. Of nested
    directories the inner one counts.
    """

    def __init__(self, state_file: Path, library: Path, names: tuple[str, ...], state: mmap.mmap) -> None:
        """Use `create`."""
        self._state_file = state_file
        self._library = library
        self._names = names
        self._state: layout.State | None = layout.State.from_buffer(state)

    @classmethod
    def create(
        cls,
        state_file: Path,
        directories: Mapping[str, Path],
        models: Mapping[str, DeviceModel | None],
        *,
        build_dir: Path,
    ) -> Self:
        """Build the interposer if need be and write a new state file (best below /dev/shm, mode 0600).

        A state file already there is replaced; a server still using it goes on with the old one.
        """
        if not sys.platform.startswith("linux"):
            raise UnsupportedSystem(
                f"A slow device can be emulated on Linux only, and this is {sys.platform}."
            )
        if directories.keys() != models.keys():
            raise ValueError(
                f"Each device needs a directory and a model, but there are directories for "
                f"{sorted(directories)} and models for {sorted(models)}."
            )
        if not 1 <= len(directories) <= layout.MAX_DEVICES:
            raise ValueError(f"From 1 to {layout.MAX_DEVICES} devices are possible, not {len(directories)}.")
        places = [
            (number, place)
            for number, (name, directory) in enumerate(directories.items())
            for place in _places(name, directory)
        ]
        state_file = state_file.resolve()
        devices = cls(state_file, interposer(build_dir), tuple(directories), _new_state(state_file, places))
        for name, model in models.items():
            devices.set_model(name, model)
        return devices

    def environment(self) -> dict[str, str]:
        """What the server process needs in its environment, and nothing else should have."""
        already = os.environ.get("LD_PRELOAD")
        return {
            "LD_PRELOAD": f"{self._library}:{already}" if already else str(self._library),
            "STALLMARK_SLOW_DEVICES": str(self._state_file),
        }

    def set_model(self, name: str, model: DeviceModel | None) -> None:
        """Change a device while it runs; None is the bare device, still counted.

        I/O already queued keeps its time, and later I/O queues behind it.
        """
        target = self._device(name).model
        if model is None:
            target.spindles = 0
            return
        target.read_ns = round(model.read_ms * 1e6)
        target.write_ns = round(model.write_ms * 1e6)
        target.sync_ns = round(model.sync_ms * 1e6)
        target.ps_per_byte = round(1e6 / model.mb_per_s)
        target.spindles = model.spindles

    def counters(self) -> dict[str, DeviceCounters]:
        """The cumulative counters of each device."""
        return {name: _counters(self._device(name)) for name in self._names}

    def close(self) -> None:
        """Remove the state file; stop the server first, for no process can be started with it any more."""
        if self._state is not None:
            self._state = None
            self._state_file.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _device(self, name: str) -> layout.Device:
        if self._state is None:
            raise SlowDeviceError("The slow devices have been closed.")
        if name not in self._names:
            raise ValueError(f"There is no slow device {name!r}, only {', '.join(self._names)}.")
        device: layout.Device = self._state.device[self._names.index(name)]
        return device


def _places(name: str, directory: Path) -> list[bytes]:
    """The resolved paths, as the kernel will name them, below which files are on the device."""
    if not directory.is_dir():
        raise ValueError(f"The directory of the slow device {name!r} does not exist: {directory}.")
    parts = [directory / part for part in _CLUSTER_PARTS] if name == CLUSTER else [directory]
    places = [os.fsencode(part.resolve()) for part in parts]
    for place in places:
        if len(place) >= layout.PATH_MAX:
            raise ValueError(
                f"The path of the slow device {name!r} is longer than {layout.PATH_MAX - 1} bytes."
            )
    return places


def _new_state(state_file: Path, places: list[tuple[int, bytes]]) -> mmap.mmap:
    """A new state file, complete before it has its name: a running server never sees half of it."""
    size = sizeof(layout.State)
    descriptor, scratch = tempfile.mkstemp(dir=state_file.parent, prefix=f"{state_file.name}.")
    try:
        os.ftruncate(descriptor, size)
        shared = mmap.mmap(descriptor, size)
        state = layout.State.from_buffer(shared)
        state.magic, state.size, state.places = layout.MAGIC, size, len(places)
        for index, (device, path) in enumerate(places):
            state.place[index].device, state.place[index].path = device, path
        os.replace(scratch, state_file)
    except BaseException:
        os.unlink(scratch)
        raise
    finally:
        os.close(descriptor)
    return shared


def _counters(device: layout.Device) -> DeviceCounters:
    reads, writes, syncs = device.reads, device.writes, device.syncs
    return DeviceCounters(
        reads=reads.count,
        read_bytes=reads.bytes,
        read_ns=reads.ns,
        writes=writes.count,
        write_bytes=writes.bytes,
        write_ns=writes.ns,
        syncs=syncs.count,
        sync_ns=syncs.ns,
        busy_ns=device.busy_ns,
        late=device.late,
    )
