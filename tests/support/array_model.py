"""The emulated array's model in C, called with arrival times of our own: a virtual clock, no I/O, no sleep."""

from __future__ import annotations

import ctypes
import heapq
import mmap
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import numpy as np

from stallmark.storage.emulator import ArrayModel, arrays, layout
from stallmark.storage.emulator.arrays import empty_flash, engage
from stallmark.storage.emulator.layout import ArrayCounters, counters_of

READ, WRITE, SYNC = range(3)
NS = 1e9
_FEW_SLOTS = 1 << 15

_EXPORTS = b"""
#include <sched.h>
#include "model.h"
__attribute__((visibility("default")))
uint64_t serve(struct device *device, int operation, uint64_t identity, uint64_t offset, uint64_t bytes,
               uint64_t arrival, int *by_flash)
{
    struct request request = {(enum operation)operation, false, identity, offset, bytes};
    struct completion completion = device_serve(device, &request, arrival);
    device_count(device, &request, completion.by_flash, completion.time - arrival);
    *by_flash = completion.by_flash;
    return completion.time;
}
__attribute__((visibility("default"))) void stream(struct device *device, uint64_t ios)
{
    int by_flash;
    for (uint64_t io = 0; io < ios; io++)
        serve(device, (int)(io % 3), 1, io % 4096 * 8192, 8192, io * 10000, &by_flash);
}
/* Reads the same blocks at the same time as another thread that has been given the same `met`, 0 at first. */
__attribute__((visibility("default"))) void pair(struct device *device, uint64_t ios, shared_u64 *met)
{
    int by_flash;
    for (uint64_t io = 0; io < ios; io++) {
        ++*met;
        while (*met < 2 * (io + 1))
            sched_yield();
        serve(device, READ, 1, io * 8192, 8192, io * 10000, &by_flash);
    }
}
__attribute__((visibility("default"))) uint64_t device_bytes(void) { return sizeof(struct device); }
"""


@lru_cache
def library(folder: Path) -> ctypes.CDLL:
    loaded = ctypes.CDLL(str(arrays.library("model", {"exports.c": _EXPORTS}, arrays.MODEL, folder)))
    loaded.serve.restype = loaded.device_bytes.restype = ctypes.c_uint64
    loaded.serve.argtypes = [ctypes.c_void_p, ctypes.c_int, *[ctypes.c_uint64] * 4, ctypes.POINTER(ctypes.c_int)]
    loaded.stream.argtypes = [ctypes.c_void_p, ctypes.c_uint64]
    loaded.pair.argtypes = [ctypes.c_void_p, ctypes.c_uint64, ctypes.POINTER(ctypes.c_uint64)]
    return loaded


@dataclass(frozen=True)
class Served:
    """One I/O: when it came and when it was done, in seconds, and by what."""

    arrived: float
    done: float
    by_flash: bool

    @property
    def latency(self) -> float:
        return self.done - self.arrived


@dataclass
class Array:
    """A device of that model, of which nobody else knows."""

    model: ArrayModel
    folder: Path
    device: layout.EmulatedDevice = field(init=False)

    def __post_init__(self) -> None:
        self.device = layout.EmulatedDevice.from_buffer(mmap.mmap(-1, ctypes.sizeof(layout.EmulatedDevice)))
        self._serve = library(self.folder).serve
        self._address = ctypes.addressof(self.device)
        empty_flash(self.device)
        engage(self.device, self.model)

    @property
    def counters(self) -> ArrayCounters:
        return counters_of(self.device)

    def io(self, operation: int, offset: int, size: int = 8192, at: float = 0, file: int = 1) -> Served:
        by_flash = ctypes.c_int()
        arrival = round(at * NS)
        done = self._serve(self._address, operation, file, offset, size, arrival, ctypes.byref(by_flash))
        return Served(at, done / NS, bool(by_flash.value))

    def stream(self, ios: int) -> None:
        """So many of all kinds, without the interpreter's lock: the device may be changed meanwhile."""
        library(self.folder).stream(self._address, ios)

    def streams(self, ios: int) -> list[threading.Thread]:
        """Two of them, begun."""
        return _two(self.stream, ios)

    def pair(self, ios: int) -> None:
        """Two readers, each block at the same time."""
        met = ctypes.c_uint64()
        for thread in _two(library(self.folder).pair, self._address, ios, ctypes.byref(met)):
            thread.join()

    def cached_blocks(self) -> list[tuple[int, int]]:
        """Bucket and tag of every slot that is filled, of the first few."""
        slots = np.frombuffer(self.device._block, np.uint64, _FEW_SLOTS)
        filled = np.flatnonzero((slots & np.uint64(0xFFFE)) == self.device.flash.generation << 1)
        return [(int(slot) // layout.WAYS, int(slots[slot]) >> 1) for slot in filled]

    def closed(self, outstanding: int, requests: int, draw: Callable[[], tuple[int, int, int]]) -> list[Served]:
        """So many clients, each of which asks again as soon as it is served; `draw` gives operation, offset, bytes."""
        clients = [0.0] * outstanding
        served = []
        for _ in range(requests):
            served.append(self.io(*draw(), at=clients[0]))
            heapq.heapreplace(clients, served[-1].done)
        return served


def _two(target: Callable[..., None], *args: object) -> list[threading.Thread]:
    threads = [threading.Thread(target=target, args=args) for _ in range(2)]
    for thread in threads:
        thread.start()
    return threads
