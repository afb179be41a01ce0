"""The named arrays under one server, the file that shares them, and the C parts compiled for other processes."""

from __future__ import annotations

import hashlib
import mmap
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from ctypes import sizeof
from importlib import resources
from pathlib import Path
from types import TracebackType
from typing import Self

from stallmark.processes import temporary_name
from stallmark.record.files import replacing
from stallmark.redact import environment as environment_without_secrets
from stallmark.storage.emulator import (
    ArrayModel,
    EmulatedArrayError,
    NoCompiler,
    UnsupportedSystem,
    layout,
    write_model,
)
from stallmark.storage.emulator.layout import ActiveExtents, ArrayCounters, counters_of, next_interval, restart_run

# The file through which all processes on emulated arrays share them.


@contextmanager
def new_shared_file(file: Path, size: int) -> Iterator[mmap.mmap]:
    """Yield a new file as memory. It has its name when it is complete: a running server never sees half of it."""
    descriptor, scratch = tempfile.mkstemp(dir=file.parent, prefix=f"{file.name}.")
    try:
        os.ftruncate(descriptor, size)
        yield mmap.mmap(descriptor, size)
        os.replace(scratch, file)
    except BaseException:
        os.unlink(scratch)
        raise
    finally:
        os.close(descriptor)


class SharedState:
    """A state file, mapped into memory."""

    def __init__(self, shared: mmap.mmap) -> None:
        """Take the mapping that `create` or `open` has made; call those instead."""
        self._shared = shared
        self._head = layout.SharedState.from_buffer(shared)

    @classmethod
    def create(cls, file: Path, places: Sequence[tuple[int, bytes]], devices: int) -> Self:
        """Create a state file.

        Each of the `places` is the number of an array and a path below which files are on it.
        """
        size = layout.size_of(devices)
        with new_shared_file(file, size) as shared:
            state = cls(shared)
            head = state._head
            head.magic, head.size, head.places, head.devices = layout.MAGIC, size, len(places), devices
            for index, (device, path) in enumerate(places):
                head.place[index].device, head.place[index].path = device, path
            for number in range(devices):
                state.device(number).flash.generation = 1
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


# The C parts that go into other processes, compiled once for each source and compiler.

_COMPILERS = ("cc", "gcc", "clang")
_FLAGS = ("-std=gnu11", "-O2", "-Wall", "-Wextra", "-shared", "-fPIC", "-fvisibility=hidden")
_LIBRARIES = ("-ldl", "-lm")
MODEL = ("model.c", "spindles.c", "flash.c", "cache.c", "tier.c", "active_set.c")
_HEADERS = ("state.h", "model.h", "files.h", "clock.h", "hold.h")


def interposer(build_dir: Path) -> Path:
    """Return the compiled interposer in `build_dir`, built if missing; raise EmulatedArrayError where it cannot be."""
    return preloadable("emulated_array", {}, ("interposer.c", "files.c", *MODEL), build_dir)


def preloadable(name: str, sources: dict[str, bytes], ours: Sequence[str], build_dir: Path) -> Path:
    """Return a `library` for LD_PRELOAD; raise EmulatedArrayError if that cannot name it or it cannot be built."""
    build_dir = build_dir.resolve()
    if set(" :") & set(str(build_dir)):
        raise EmulatedArrayError(
            f"The build directory {build_dir} has a space or a colon in its path, which LD_PRELOAD cannot "
            "name; choose another one."
        )
    return library(name, sources, ours, build_dir)


def library(name: str, sources: dict[str, bytes], ours: Sequence[str], build_dir: Path) -> Path:
    """Return a shared library of C `sources` and of `ours` in this folder, which may include our headers."""
    here = resources.files(__package__)
    everything = {file: (here / file).read_bytes() for file in (*_HEADERS, *ours)} | sources
    using = compiler()
    parts = [part for file, text in sorted(everything.items()) for part in (file.encode(), text)]
    parts += [_version(using), " ".join(_FLAGS).encode()]
    key = hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]
    built = build_dir / f"{name}-{key}.so"
    if not built.exists():
        _compile(using, everything, built)
    return built


def compiler() -> str:
    """Return the path of the C compiler; raise NoCompiler if it is missing."""
    for name in _COMPILERS:
        if path := shutil.which(name):
            return path
    raise NoCompiler(
        f"Emulated arrays and traces of I/O need a C compiler and none of {', '.join(_COMPILERS)} is on the PATH; "
        "install one (Debian and Ubuntu: apt install gcc libc6-dev)."
    )


def _version(compiler: str) -> bytes:
    return subprocess.run([compiler, "--version"], capture_output=True, check=False).stdout


def _compile(compiler: str, sources: dict[str, bytes], target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    # A compiler that is interrupted leaves its files, and its parts may write a moment longer: the next command
    # removes a folder of this name.
    with tempfile.TemporaryDirectory(prefix=temporary_name("compile"), ignore_cleanup_errors=True) as scratch:
        for name, text in sources.items():
            (Path(scratch) / name).write_bytes(text)
        files = [name for name in sources if name.endswith(".c")]
        command = [compiler, *_FLAGS, "-o", target.name, *files, *_LIBRARIES]
        environment = environment_without_secrets() | {"TMPDIR": scratch}
        done = subprocess.run(command, cwd=scratch, env=environment, capture_output=True, check=False)
        if done.returncode != 0:
            raise NoCompiler(
                f"The library for an emulated array or a trace could not be compiled with {compiler} "
                f"({_first_error(done.stderr)}); install a working C compiler (Debian and Ubuntu: apt install gcc "
                "libc6-dev)."
            )
        # Another process may be building, or already running, the same library.
        with (Path(scratch) / target.name).open("rb") as built, replacing(target) as file:
            shutil.copyfileobj(built, file)
            os.fchmod(file.fileno(), 0o755)


def _first_error(output: bytes) -> str:
    lines = output.decode(errors="replace").splitlines() or ["it said nothing"]
    return next((line for line in lines if "error" in line), lines[0]).strip()
