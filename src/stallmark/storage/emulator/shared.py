"""The file through which all processes on emulated arrays share them."""

from __future__ import annotations

import mmap
import os
import tempfile
import time
from collections.abc import Sequence
from ctypes import sizeof
from pathlib import Path
from typing import Self

from stallmark.storage.emulator import layout
from stallmark.storage.emulator.counters import restart_run
from stallmark.storage.emulator.models import ArrayModel, EmulatedArrayError, write_model


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
