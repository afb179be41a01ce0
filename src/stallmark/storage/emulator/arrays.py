"""The named arrays under one server, and the file through which all processes on them share them."""

from __future__ import annotations

import mmap
import os
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from ctypes import sizeof
from pathlib import Path
from types import TracebackType
from typing import Self

from stallmark.storage.emulator import layout
from stallmark.storage.emulator.build import interposer
from stallmark.storage.emulator.layout import ActiveExtents, ArrayCounters, counters_of, next_interval, restart_run
from stallmark.storage.emulator.models import ArrayModel, EmulatedArrayError, UnsupportedSystem, write_model

# The file through which all processes on emulated arrays share them.


class SharedState:
    """A state file, mapped into memory."""

    def __init__(self, shared: mmap.mmap) -> None:
        """Take the mapping that `create` or `open` has made; call those instead."""
        self._shared = shared
        self._head = layout.SharedState.from_buffer(shared)

    @classmethod
    def create(cls, file: Path, places: Sequence[tuple[int, bytes]], devices: int) -> Self:
        """Create a state file, complete before it has its name: a running server never sees half of it.

        Each of the `places` is the number of an array and a path below which files are on it.
        """
        size = layout.size_of(devices)
        descriptor, scratch = tempfile.mkstemp(dir=file.parent, prefix=f"{file.name}.")
        try:
            os.ftruncate(descriptor, size)
            state = cls(mmap.mmap(descriptor, size))
            head = state._head
            head.magic, head.size, head.places, head.devices = layout.MAGIC, size, len(places), devices
            for index, (device, path) in enumerate(places):
                head.place[index].device, head.place[index].path = device, path
            for number in range(devices):
                state.device(number).flash.generation = 1
            os.replace(scratch, file)
        except BaseException:
            os.unlink(scratch)
            raise
        finally:
            os.close(descriptor)
        return state

    @classmethod
    def open(cls, file: Path) -> Self:
        """Open a state file of another process; raise EmulatedArrayError if it cannot be used."""
        try:
            with file.open("r+b") as stream:
                state = cls(mmap.mmap(stream.fileno(), 0))
        except (OSError, ValueError) as error:
            raise EmulatedArrayError(f"The state file {file} cannot be used ({error}).") from None
        if state._head.magic != layout.MAGIC or state._head.size != len(state._shared):
            raise EmulatedArrayError(f"{file} is not a state file of this version: make the array again.")
        return state

    def device(self, number: int) -> layout.EmulatedDevice:
        return layout.EmulatedDevice.from_buffer(
            self._shared, sizeof(layout.SharedState) + number * sizeof(layout.EmulatedDevice)
        )


def engage(device: layout.EmulatedDevice, model: ArrayModel | None) -> None:
    """Give an array a model while it runs; None is the bare device, still counted.

    I/O already queued keeps its time, and later I/O queues behind it. Flash keeps its content.
    """
    write_model(device.model, model)
    if model is not None:
        restart_run(device.active, time.monotonic())


def exchange(device: layout.EmulatedDevice, model: ArrayModel) -> None:
    """Give a running array another model with empty flash; its old content is never seen under the new sizes."""
    engage(device, None)
    empty_flash(device)
    engage(device, model)


def empty_flash(device: layout.EmulatedDevice) -> None:
    """Empty the flash, and make all extents cold."""
    device.flash.generation = device.flash.generation % 0x7FFE + 1
    device.flash.next_cycle = 0
    restart_run(device.active, time.monotonic())


# The named arrays under one server, and the file that shares them with it.

CLUSTER = "data"
"""The array under a cluster's data directory, of which the parts in _CLUSTER_PARTS are slowed and counted."""
PROBE_FOLDER = "stallmark_probe"
"""A folder in a cluster's data directory, on its array too, for files with which the array itself is probed."""
_CLUSTER_PARTS = ("base", "global", "pg_tblspc", PROBE_FOLDER)


class EmulatedArrays:
    """Named arrays of known slowness, shared with the server through a state file.

    The name "data" means a cluster's data directory, of which base/, global/, pg_tblspc/ and stallmark_probe/ are
    slowed. Any other name ("wal", or one for a tablespace elsewhere) means everything in its directory. The inner one
    of nested directories counts.
    """

    def __init__(self, state_file: Path, library: Path, names: tuple[str, ...], state: SharedState) -> None:
        """Take what `create` has made; call that instead."""
        self._state_file = state_file
        self._library = library
        self._names = names
        self._state: SharedState | None = state
        self._models: dict[str, ArrayModel | None] = dict.fromkeys(names)
        self._last: dict[str, ArrayModel] = {}

    @staticmethod
    def prepare(build_dir: Path) -> Path:
        """Return the interposer, built if need be. Raise UnsupportedSystem outside Linux, EmulatedArrayError if it
        cannot be built."""
        if not sys.platform.startswith("linux"):
            raise UnsupportedSystem(f"An array can be emulated on Linux only, and this is {sys.platform}.")
        return interposer(build_dir)

    @classmethod
    def create(
        cls,
        state_file: Path,
        directories: Mapping[str, Path],
        models: Mapping[str, ArrayModel | None],
        *,
        build_dir: Path,
    ) -> Self:
        """Build the interposer if need be and write a new state file (best below /dev/shm, mode 0600).

        A state file already there is replaced; a server still using it keeps the old one. Raise UnsupportedSystem
        outside Linux, ValueError for impossible arrays, EmulatedArrayError where the interposer cannot be built.
        """
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
        library = cls.prepare(build_dir)
        state = SharedState.create(state_file, places, len(directories))
        devices = cls(state_file, library, tuple(directories), state)
        for name, model in models.items():
            devices.set_model(name, model)
        return devices

    def environment(self, *, of_raw_load: bool = False) -> dict[str, str]:
        """Return the variables that the server process needs in its environment, or a raw load beside it; no other
        process should have them."""
        already = os.environ.get("LD_PRELOAD")
        return {
            "LD_PRELOAD": f"{self._library}:{already}" if already else str(self._library),
            "STALLMARK_EMULATED_ARRAYS": str(self._state_file),
            **({"STALLMARK_RAW_LOAD": "1"} if of_raw_load else {}),
        }

    def set_model(self, name: str, model: ArrayModel | None) -> None:
        """Change an array while it runs; None is the bare device, still counted.

        I/O already queued keeps its time, and later I/O queues behind it. Flash keeps its content while the array is
        bare and when it gets the same model again; any other model finds it empty.
        """
        device = self._device(name)
        if model is not None and self._last.setdefault(name, model) != model:
            exchange(device, model)
            self._last[name] = model
        else:
            engage(device, model)
        self._models[name] = model

    def model(self, name: str) -> ArrayModel | None:
        """Return the present model of an array; None is the bare device."""
        self._device(name)
        return self._models[name]

    def empty_flash(self, name: str) -> None:
        """Empty an array's cache or tier."""
        empty_flash(self._device(name))

    def counters(self) -> dict[str, ArrayCounters]:
        """Return the cumulative counters of each array."""
        return {name: counters_of(self._device(name)) for name in self._names}

    def next_interval(self) -> dict[str, ActiveExtents]:
        """Return the active set of each array since this was last called."""
        now = time.monotonic()
        return {name: next_interval(self._device(name).active, now) for name in self._names}

    def close(self) -> None:
        """Remove the state file. Stop the server first: no process can be started with the file any more."""
        if self._state is not None:
            self._state = None
            self._state_file.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _device(self, name: str) -> layout.EmulatedDevice:
        if self._state is None:
            raise EmulatedArrayError("The emulated arrays have been closed.")
        if name not in self._names:
            raise ValueError(f"Unknown emulated array {name!r}: choose one of {', '.join(self._names)}.")
        return self._state.device(self._names.index(name))


def _places(name: str, directory: Path) -> list[bytes]:
    """Return the resolved paths, as the kernel will name them, below which files are on the array.

    Raise ValueError for a missing directory or a path that is too long.
    """
    if not directory.is_dir():
        raise ValueError(f"The directory of the emulated array {name!r} does not exist: {directory}.")
    parts = [directory / part for part in _CLUSTER_PARTS] if name == CLUSTER else [directory]
    places = [os.fsencode(part.resolve()) for part in parts]
    for place in places:
        if len(place) >= layout.PATH_MAX:
            raise ValueError(f"The path of the emulated array {name!r} is longer than {layout.PATH_MAX - 1} bytes.")
    return places
