"""The life of an emulated array that is a block device (Linux, root): create, change, read out, destroy; also after a
crash.

nbdkit serves a backing file through a plugin of ours (block_device_plugin.c), which delays each I/O as the emulated
array would (storage/emulator/model.h). nbdfuse shows that as a file, and a loop device with direct I/O as a block
device:

    backing file <- nbdkit + plugin <- nbdfuse, 64 connections <- /dev/loopN

Everything measured on it is EMULATED, and is to be labelled so.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from stallmark.errors import StallmarkError
from stallmark.lab import block_device_parts
from stallmark.lab.block_device_parts import Places, measure_path, read_times
from stallmark.storage.block_devices import ArrayFacts, BlockDeviceError
from stallmark.storage.emulator import ArrayModel, layout
from stallmark.storage.emulator.arrays import SharedState, engage, exchange
from stallmark.storage.emulator.layout import ArrayCounters, all_counters_of, counters_of, since

SMALLEST = 64 << 20
_CUT = 0.02
"""Share by which the array's reads may exceed the block device's; beyond it, large reads are split on their way."""
_KEEP_FREE = 0.05
"""Share of the backing file's file system that stays free."""


class ArrayWork(NamedTuple):
    """The work of an array since it was created or last changed."""

    counters: ArrayCounters
    path_ms: float
    """Time of an I/O on its way there and back, measured at creation: the array waits that much less."""
    waited_ms: float | None
    """Mean time of a read at the block device, its way to the array and back included. None without reads, and where
    large reads are split on their way, because the array counts the pieces."""


class BlockDeviceArray:
    """The emulated array of that name below `home`, whether it exists or not."""

    def __init__(self, home: Path, name: str):
        self.name = name
        self._places = Places(home, name)

    @property
    def facts(self) -> ArrayFacts:
        facts = self._places.read()
        if facts is None:
            raise self._absent()
        return facts

    def broken(self) -> str | None:
        """Return the missing part of the array, in words; None if it works."""
        loop = self.facts.loop
        if loop is None:
            return "it was never completed"
        for name in ("nbdkit", "nbdfuse"):
            if not block_device_parts.processes(self._places, name):
                return f"its {name} is gone"
        return None if loop in block_device_parts.loops(self._places) else f"its {loop} is gone"

    def create(self, size: int, model: ArrayModel) -> ArrayFacts:
        """Create the array, of `size` bytes. The remains of a crashed attempt are removed first.

        Raise BlockDeviceError if it exists already, or if anything that it needs is missing.
        """
        block_device_parts.check_needs()
        if size < SMALLEST:
            raise BlockDeviceError(f"An emulated array of {size:,} bytes is too small: take 64MiB or more.")
        self._places.folder.mkdir(parents=True, exist_ok=True)
        with self._locked():
            facts = self._places.read()
            if facts is not None and facts.loop is not None:
                reason = self.broken()
                state = f"is broken ({reason})" if reason else f"exists ({facts.loop})"
                raise BlockDeviceError(
                    f"The emulated array {self.name} {state}: `stallmark array destroy {self.name}` removes it."
                )
            self._clear()
            facts = ArrayFacts(name=self.name, size=size, model=model)
            try:
                self._places.write(facts)
                return self._start(facts)
            except BaseException as error:
                self._undo(error)
                raise

    def change(self, model: ArrayModel) -> ArrayFacts:
        """Give the array another model from now on, with empty flash; the data on it stay."""
        with self._locked():
            self._check_whole()
            device = SharedState.open(self._places.state).device(0)
            facts = _from_now(self.facts.model_copy(update={"model": model}), device)
            # Written first, because this can fail and the next step cannot.
            self._places.write(facts)
            exchange(device, model)
            return facts

    def work_done(self) -> ArrayWork:
        """Return the work of the array, all counts of one moment; raise BlockDeviceError if it is broken."""
        self._check_whole()
        facts, device = self.facts, SharedState.open(self._places.state).device(0)
        assert facts.loop and facts.counters_before
        counters = since(facts.counters_before, counters_of(device))
        reads, ms = (now - then for now, then in zip(read_times(facts.loop), facts.reads_before, strict=True))
        # The kernel may split a read in two: then its times are not those of the array's reads.
        whole = reads and counters.reads and counters.reads <= reads * (1 + _CUT)
        return ArrayWork(counters, device.path_ns / 1e6, ms / reads if whole else None)

    def destroy(self) -> None:
        """Remove the array and all that is on it, or the remains of a crash.

        Raise BlockDeviceError while the block device is mounted or in use.
        """
        with self._locked():
            self._clear()
            self._forget()

    def _absent(self) -> BlockDeviceError:
        return BlockDeviceError(
            f"There is no emulated array {self.name}: `stallmark array list` shows those that are there."
        )

    def _check_whole(self) -> None:
        if reason := self.broken():
            raise BlockDeviceError(
                f"The emulated array {self.name} is broken ({reason}): destroy it and create it again; "
                "its data are lost."
            )

    def _start(self, facts: ArrayFacts) -> ArrayFacts:
        places = self._places
        _allocate(places.disk, facts.size)
        places.runtime.mkdir()
        places.runtime.chmod(0o755)
        device = SharedState.create(places.state, [], 1).device(0)
        block_device_parts.start_nbdkit(places)
        block_device_parts.start_nbdfuse(places)
        loop = block_device_parts.attach_loop(places)
        measure_path(device, loop, facts.size)
        engage(device, facts.model)
        complete = _from_now(facts.model_copy(update={"loop": loop}), device)
        places.write(complete)
        return complete

    def _clear(self) -> None:
        """Remove everything that runs, mounts or fills space, in the reverse order of creation."""
        places = self._places
        for loop in block_device_parts.loops(places):
            if users := block_device_parts.users_of(loop):
                raise BlockDeviceError(
                    f"{loop} is in use ({', '.join(users)}): unmount it, end what uses it, and do the same again."
                )
            block_device_parts.detach(loop, places)
        block_device_parts.unmount(places)
        block_device_parts.end(block_device_parts.processes(places, "nbdfuse", "nbdkit"))
        if block_device_parts.is_mounted(places):
            raise BlockDeviceError(f"{places.mount} cannot be unmounted: end what uses it, and do the same again.")
        shutil.rmtree(places.runtime, ignore_errors=True)
        places.disk.unlink(missing_ok=True)

    def _undo(self, error: BaseException) -> None:
        """Remove everything of a failed attempt; where that fails too, raise BlockDeviceError with both reasons."""
        try:
            self._clear()
            self._forget()
        except (StallmarkError, OSError) as left:
            first, second = (str(failure).rstrip(".") for failure in (error, left))
            raise BlockDeviceError(
                f"{first or 'It was interrupted'}; what had been made of the emulated array is still there ({second}): "
                f"`stallmark array destroy {self.name}` removes it."
            ) from error

    def _forget(self) -> None:
        shutil.rmtree(self._places.folder)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Admit one command at a time, by a lock of the kernel's, which ends with its holder. Raise
        BlockDeviceError otherwise."""
        if not self._places.folder.is_dir():
            raise self._absent()
        # Imported here, because Windows lacks it (and has no such arrays).
        import fcntl

        with self._places.lock.open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise BlockDeviceError(
                    f"Another command is at work on the emulated array {self.name}: wait for its end."
                ) from None
            if not os.path.samestat(os.fstat(lock.fileno()), self._stat_lock()):
                # The array was destroyed between our open and our lock.
                raise self._absent()
            yield

    def _stat_lock(self) -> os.stat_result:
        try:
            return os.stat(self._places.lock)
        except FileNotFoundError:
            raise self._absent() from None


def _from_now(facts: ArrayFacts, device: layout.EmulatedDevice) -> ArrayFacts:
    """Return the facts with all counts so far as those before the present model."""
    assert facts.loop
    return facts.model_copy(update={"counters_before": all_counters_of(device), "reads_before": read_times(facts.loop)})


def arrays(home: Path) -> list[BlockDeviceArray]:
    """Return the arrays below `home`, including the remains of some."""
    if not home.is_dir():
        return []
    return [
        BlockDeviceArray(home, folder.name) for folder in sorted(home.iterdir()) if (folder / "array.json").exists()
    ]


def _allocate(file: Path, size: int) -> None:
    disk = shutil.disk_usage(file.parent)
    if disk.free - size < _KEEP_FREE * disk.total:
        raise BlockDeviceError(
            f"{file.parent} has {disk.free / 2**30:.1f} GiB free, too little for {size / 2**30:.1f} GiB and "
            f"the {_KEEP_FREE:.0%} of the disk that are left free: make room, or make it smaller."
        )
    with file.open("xb") as stream:
        try:
            os.posix_fallocate(stream.fileno(), 0, size)
        except OSError as error:
            raise BlockDeviceError(
                f"{size / 2**30:.1f} GiB cannot be taken from the disk below {file.parent} ({error.strerror}), and "
                "might be missing later: set STALLMARK_HOME to a file system that can, such as ext4 or xfs."
            ) from None
