"""The time of an I/O on its way to the array and back: the array waits that much less.

On the way, block layer, loop device, FUSE, nbdfuse, socket and nbdkit wake one another up. That takes a good part of
the time of a flash read, and depends on the machine, so it is measured there.
"""

from __future__ import annotations

import mmap
import os
import random
import time
from statistics import median

from stallmark.storage.array_facts import ReadTimes
from stallmark.storage.block_devices import described, read_counters
from stallmark.storage.emulator import ArrayModel, layout
from stallmark.storage.emulator.arrays import empty_flash, engage

_BLOCK = 8192
_READS = 200
_SERVICE_MS = 1.0
"""Service time while measuring. Above zero, so that sleeping parts of the way must be woken up, as with a real model.
"""
_STILL = ArrayModel(layout.MAX_SPINDLES, read_ms=_SERVICE_MS, write_ms=_SERVICE_MS, sync_ms=0, mb_per_s=100_000)


def read_times(block_device: str) -> ReadTimes:
    """Return the kernel's counts of a block device."""
    counted = read_counters(described(os.stat(block_device).st_rdev))
    return ReadTimes(counted.reads, counted.read_ms)


def measure_path(device: layout.EmulatedDevice, block_device: str, size: int) -> None:
    """Read at random, one by one, and store in `device` the median time beyond the service time. The counts of these
    reads are reset."""
    device.path_ns = 0
    engage(device, _STILL)
    took = _times(block_device, size)
    device.path_ns = max(0, round(median(took) - _SERVICE_MS * 1e6))
    for operation in ("reads", "writes", "syncs"):
        setattr(device, operation, layout.Tally())
    device.busy_ns = device.late = device.spindle_reads = device.spindle_writes = 0
    empty_flash(device)


def _times(block_device: str, size: int) -> list[int]:
    """Return the nanoseconds of each read."""
    block, chance, took = mmap.mmap(-1, _BLOCK), random.Random(1), []
    file = os.open(block_device, os.O_RDONLY | os.O_DIRECT)
    try:
        for _ in range(_READS):
            offset = chance.randrange(size // _BLOCK) * _BLOCK
            begin = time.monotonic_ns()
            os.preadv(file, [block], offset)
            took.append(time.monotonic_ns() - begin)
    finally:
        os.close(file)
    return took
