"""The machine the server runs on: its CPU, the server's own processes, and the devices under the data."""

import os
import sys
import time
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path

import psutil
import pyarrow as pa

from stallmark.collectors.columns import EPOCH
from stallmark.collectors.sampler import Collector, Row
from stallmark.engines.base import Engine
from stallmark.errors import StallmarkError
from stallmark.processes import ProcessTree, read_stat
from stallmark.record.schema import column
from stallmark.storage.block_devices import (
    BlockDevice,
    NoBlockDevice,
    device_behind,
    emulated_array_under,
    read_counters,
)
from stallmark.storage.emulator import layout
from stallmark.storage.emulator.arrays import EmulatedArrays, SharedState
from stallmark.storage.emulator.layout import (
    EXTENT_BYTES,
    ActiveExtents,
    ArrayCounters,
    FlashCounters,
    counters_of,
    next_interval,
    restart_run,
)

# The machine the server runs on.


class Host(Collector):
    name = "host"
    title = "Host"
    help = (
        "CPU time of all cores since the machine started, and available memory. System includes interrupts; "
        "time waiting for I/O and stolen time are known on Linux only. In a container this is still the "
        "whole machine. Stalled: the time in which any task waited for a CPU or for I/O (/proc/pressure)."
    )
    columns = pa.schema(
        [
            column("user_s", pa.float64(), "CPU time of programs since the start of the machine"),
            column("system_s", pa.float64(), "CPU time of the kernel, interrupts included"),
            column("iowait_s", pa.float64(), "idle while a task waited for I/O, but by libaio; Linux only"),
            column("idle_s", pa.float64(), "idle time"),
            column("steal_s", pa.float64(), "taken by the hypervisor; Linux only"),
            column("cores", pa.int32(), "of the machine", "cores"),
            column("available_bytes", pa.int64(), "memory available now"),
            column("cpu_stalled_s", pa.float64(), "any task was waiting for a CPU; null where it is not counted"),
            column("io_stalled_s", pa.float64(), "any task waited for I/O, but by libaio; null if it is not counted"),
        ]
    )

    def unavailable(self) -> str | None:
        if self.engine.process() is None:
            return "The server's processes are not seen on this machine, so its CPUs and memory are not read."
        return None

    def sample(self, now: float) -> list[Row]:
        cpu = psutil.cpu_times()._asdict()
        return [
            {
                "user_s": cpu["user"] + cpu.get("nice", 0.0),
                "system_s": cpu["system"] + cpu.get("irq", 0.0) + cpu.get("softirq", 0.0),
                "iowait_s": cpu.get("iowait"),
                "idle_s": cpu["idle"],
                "steal_s": cpu.get("steal"),
                "cores": psutil.cpu_count(),
                "available_bytes": psutil.virtual_memory().available,
                "cpu_stalled_s": _stalled_s("cpu"),
                "io_stalled_s": _stalled_s("io"),
            }
        ]


def _stalled_s(resource: str) -> float | None:
    """Return the time that any task has waited for a resource, or None if the kernel does not count it."""
    try:
        [line, *_] = Path("/proc/pressure", resource).read_text().splitlines()
    except (OSError, ValueError):
        return None
    return int(line.rpartition("total=")[2]) / 1e6


# CPU time of the server's own processes, if they run on this machine, and of the kernel's threads beside them.

CPU_TIMES = (
    column("user_s", pa.float64(), "CPU time of the server's programs, ended processes included"),
    column("system_s", pa.float64(), "CPU time of the kernel in the server's processes, ended ones included"),
)


KTHREADD = 2
"""The process that all threads of the kernel descend from."""


class ServerCpu(Collector):
    name = "server_cpu"
    title = "CPU of the server"
    help = (
        "CPU time of the server's processes, ended ones included, and how long they were runnable and waited for a "
        "CPU (/proc). The delay of a process that ended is kept as it was last seen."
    )
    columns = pa.schema(
        [
            EPOCH,
            *CPU_TIMES,
            column("run_delay_s", pa.float64(), "runnable and waiting for a CPU, summed over threads; null: not known"),
            column("processes", pa.int32(), "of the server now", "processes"),
        ]
    )

    _pid: int | None = None
    _tree: ProcessTree | None = None

    def unavailable(self) -> str | None:
        if not sys.platform.startswith("linux"):
            return f"CPU time of the server's processes is read from Linux' /proc, and this is {sys.platform}."
        if self.engine.process() is None:
            return "The server's processes are not seen on this machine, so their CPU time is not known."
        return None

    def open(self) -> None:
        pid = self.engine.process()
        if pid is None:
            raise StallmarkError("the server's processes are not seen any more")
        # After a restart the server has another first process: its tree is another, and so is the epoch.
        if pid != self._pid:
            self._pid, self._tree = pid, ProcessTree(pid)

    def sample(self, now: float) -> list[Row]:
        assert self._tree
        times = self._tree.read()
        if times is None:
            raise StallmarkError("the server's first process has ended")
        return [{"epoch": f"process {self._pid}", **vars(times)}]


class KernelCpu(Collector):
    name = "kernel_cpu"
    title = "CPU of the kernel's threads"
    help = (
        "CPU time of the kernel's own threads (/proc): they write caches out, encrypt, and serve stacked devices and "
        "networks, for all processes. Interrupts are not included."
    )
    # The kernel may have a thousand threads, each with a file in /proc.
    interval_s = 5.0
    columns = pa.schema([column("system_s", pa.float64(), "CPU time of the kernel's threads so far")])

    def unavailable(self) -> str | None:
        if self.engine.process() is None:
            return "The server's processes are not seen on this machine, so its kernel's CPU time is not read."
        threads = read_stat(KTHREADD)
        if threads is None or threads.name != "kthreadd":
            return "The kernel's threads are not seen here, as in a container: their CPU time is not known."
        return None

    def open(self) -> None:
        self._tree = ProcessTree(KTHREADD)

    def sample(self, now: float) -> list[Row]:
        times = self._tree.read()
        return [{"system_s": times.user_s + times.system_s}] if times else []


# The devices under the data and the WAL directory: real, emulated, or both.

NS_PER_MS = 1e6


class DeviceIO(Collector):
    name = "device"
    title = "Devices"
    help = (
        "The devices' own counters, for all their users (/proc/diskstats). An emulated device counts the server's "
        "I/O, and the real device under it is then called underlying; the block device of an emulated array is an "
        "emulated one. busy_ms is the time with any I/O under way; of an emulated device it is service summed over "
        "its spindles. queue_ms is the integral of all I/Os under way over time. `late`: I/Os for which the real "
        "device was slower than the emulated one. The remaining columns apply to emulated devices only. "
        "spindle_reads and spindle_writes: I/Os that reached the spindles, migration included. raw_reads, "
        "raw_writes and similar columns: I/Os of raw loads. They are not in reads and writes, but in the counters "
        "of all I/O: busy_ms, queue_ms, late, evictions, migration. flash_reads: the server's reads served by "
        "flash, flash_raw_reads those of raw loads; flash_writes: fills of a cache, or writes to a tier. cache_hits "
        "and cache_misses are reads, cache_evictions blocks of 8 KiB. active_extents: the different extents of "
        "extent_bytes that the server read or wrote since the last sample, active_extents_60s in the last full "
        "minute, active_extents_run since the load began."
    )
    columns = pa.schema(
        [
            column("entity", pa.string(), '"data: vda"; "data" when emulated'),
            column("role", pa.string(), "data, wal, data+wal or underlying"),
            column("emulated", pa.bool_(), "true: an emulated array"),
            EPOCH,
            column("reads", pa.int64(), "reads so far", "I/Os"),
            column("read_bytes", pa.int64(), "bytes read so far"),
            column("read_ms", pa.float64(), "what these reads took, summed"),
            column("writes", pa.int64(), "writes so far", "I/Os"),
            column("write_bytes", pa.int64(), "bytes written so far"),
            column("write_ms", pa.float64(), "what these writes took, summed"),
            column("syncs", pa.int64(), "flushes so far; null where the kernel does not count them", "syncs"),
            column("sync_ms", pa.float64(), "what these flushes took, summed"),
            column("busy_ms", pa.float64(), "time with any I/O under way; emulated: service summed over spindles"),
            column("queue_ms", pa.float64(), "I/Os under way, integrated over time", "ms × I/Os"),
            column("late", pa.int64(), "emulated: for which the real device was slower", "I/Os"),
            column("spindle_reads", pa.int64(), "emulated: that reached the spindles, migration included", "I/Os"),
            column("spindle_writes", pa.int64(), "emulated: that reached the spindles, migration included", "I/Os"),
            column("raw_reads", pa.int64(), "emulated: reads of raw loads, beside those of the server", "I/Os"),
            column("raw_read_bytes", pa.int64(), "emulated: their bytes"),
            column("raw_read_ms", pa.float64(), "emulated: what they took, summed"),
            column("raw_writes", pa.int64(), "emulated: writes of raw loads, beside those of the server", "I/Os"),
            column("raw_write_bytes", pa.int64(), "emulated: their bytes"),
            column("raw_write_ms", pa.float64(), "emulated: what they took, summed"),
            column("flash_reads", pa.int64(), "emulated: callers' reads served by flash", "I/Os"),
            column("flash_raw_reads", pa.int64(), "emulated: reads of raw loads served by flash", "I/Os"),
            column("flash_read_ms", pa.float64(), "emulated: what these reads took, summed"),
            column("flash_writes", pa.int64(), "emulated: what a cache was filled with, or a tier got", "I/Os"),
            column("flash_busy_ms", pa.float64(), "emulated: time that flash was busy"),
            column("flash_used_bytes", pa.int64(), "emulated: flash in use now"),
            column("cache_hits", pa.int64(), "emulated: found in the flash cache", "reads"),
            column("cache_misses", pa.int64(), "emulated: not found in the flash cache", "reads"),
            column("cache_evictions", pa.int64(), "emulated: evicted, of 8 KiB each", "blocks"),
            column("tier_bytes_up", pa.int64(), "emulated: moved to flash so far", "bytes"),
            column("tier_bytes_down", pa.int64(), "emulated: moved to disks so far", "bytes"),
            column("active_extents", pa.int64(), "emulated: different ones in use since the last sample", "extents"),
            column("active_extents_60s", pa.int64(), "emulated: in the last full minute", "extents"),
            column("active_extents_run", pa.int64(), "emulated: since the load began", "extents"),
            column("extent_bytes", pa.int64(), "emulated: size of an extent"),
        ]
    )

    def __init__(self, engine: Engine):
        super().__init__(engine)
        self._roles: dict[BlockDevice, str] = {}
        self._emulation: EmulatedArrays | None = None
        self._emulations = 0
        # None: an array of another process, whose state is not readable.
        self._emulated: dict[BlockDevice, layout.EmulatedDevice | None] = {}
        self._has_begun = False

    def unavailable(self) -> str | None:
        if not self._storage:
            return "Where the server's files lie on this machine is not known, so their devices are not read."
        if not sys.platform.startswith("linux"):
            return f"Devices are read from Linux' /proc/diskstats, and this is {sys.platform}."
        roles, reasons = self._resolve()
        return None if roles or self.engine.devices.array else " ".join(reasons)

    def limitation(self) -> str | None:
        roles, reasons = self._resolve()
        unsynced = [device.name for device in roles if not device.counts_syncs]
        if unsynced:
            reasons.append(f"The kernel counts syncs of whole disks only, not of {', '.join(unsynced)}.")
        if closed := [device.name for device, state in _emulated_arrays(roles).items() if state is None]:
            reasons.append(
                f"Of {', '.join(closed)}, an emulated array, only what the kernel counts is known: its own counters "
                "are for root, and of its whole block device."
            )
        return " ".join(reasons) or None

    def open(self) -> None:
        self._roles, _ = self._resolve()
        self._emulated = _emulated_arrays(self._roles)
        # This is a reconnection after a failure, under the same load.
        if self._has_begun:
            return
        self._has_begun = True
        # An array that is a block device was slow all the time; the embedded server's is when the load begins.
        for state in self._emulated.values():
            if state is not None:
                restart_run(state.active, time.monotonic())

    def sample(self, now: float) -> list[Row]:
        rows: list[Row] = []
        if (devices := self.engine.devices.array) is not None:
            if devices is not self._emulation:
                self._emulation, self._emulations = devices, self._emulations + 1
            epoch = f"emulation {self._emulations}"
            active = devices.next_interval()
            for name, counters in devices.counters().items():
                rows.append(_emulated(name, epoch, counters) | _flash(counters.flash) | _active(active[name]))
        for device, role in self._roles.items():
            state = self._emulated.get(device)
            rows.append(
                _real(device, role) | {"emulated": device in self._emulated}
                if state is None
                else _block_device(device, role, state)
            )
        return rows

    @cached_property
    def _storage(self) -> Mapping[str, Path]:
        return self.engine.storage_here()

    def _resolve(self) -> tuple[dict[BlockDevice, str], list[str]]:
        """Return the block devices with their roles, and sentences on the directories that have none."""
        purposes: dict[BlockDevice, list[str]] = {}
        reasons: list[str] = []
        for role, directory in sorted(self._storage.items()):
            try:
                purposes.setdefault(device_behind(directory), []).append(role)
            except NoBlockDevice as reason:
                reasons.append(str(reason))
            except OSError as error:
                reasons.append(f"{directory} is not for us to see ({error.strerror}).")
        if self.engine.devices.array is not None:
            return dict.fromkeys(purposes, "underlying"), reasons
        return {device: "+".join(roles) for device, roles in purposes.items()}, reasons


def _emulated_arrays(devices: Iterable[BlockDevice]) -> dict[BlockDevice, layout.EmulatedDevice | None]:
    """Return the devices of emulated arrays, with the array's state; None if that may not be opened."""
    arrays = {device: emulated_array_under(device.name) for device in devices}
    return {device: _state(array[1]) for device, array in arrays.items() if array is not None}


def _state(file: Path | None) -> layout.EmulatedDevice | None:
    return SharedState.open(file).device(0) if file and os.access(file, os.R_OK | os.W_OK) else None


def _real(device: BlockDevice, role: str) -> Row:
    counters = vars(read_counters(device))
    if not device.counts_syncs:
        counters |= {"syncs": None, "sync_ms": None}
    return {
        "entity": f"{role}: {device.name}",
        "role": role,
        "emulated": False,
        "epoch": device.epoch,
        **counters,
        **dict.fromkeys(EMULATED_ONLY),
    }


def _block_device(device: BlockDevice, role: str, state: layout.EmulatedDevice) -> Row:
    """Return a row as the emulated array counts: the kernel's figures would include the way to it."""
    counters = counters_of(state)
    row = _emulated(role, device.epoch, counters) | {"entity": f"{role}: {device.name}"}
    return row | _flash(counters.flash) | _active(next_interval(state.active, time.monotonic()))


def _emulated(name: str, epoch: str, counters: ArrayCounters) -> Row:
    return {
        "entity": name,
        "role": name,
        "emulated": True,
        "epoch": epoch,
        # Raw loads have their own columns: these are the server's I/Os.
        "reads": counters.reads - counters.raw_reads,
        "read_bytes": counters.read_bytes - counters.raw_read_bytes,
        "read_ms": (counters.read_ns - counters.raw_read_ns) / NS_PER_MS,
        "writes": counters.writes - counters.raw_writes,
        "write_bytes": counters.write_bytes - counters.raw_write_bytes,
        "write_ms": (counters.write_ns - counters.raw_write_ns) / NS_PER_MS,
        "syncs": counters.syncs,
        "sync_ms": counters.sync_ns / NS_PER_MS,
        "busy_ms": counters.busy_ns / NS_PER_MS,
        # The device itself queues all I/O, raw loads included.
        "queue_ms": (counters.read_ns + counters.write_ns + counters.sync_ns) / NS_PER_MS,
        "late": counters.late,
        "spindle_reads": counters.spindle_reads,
        "spindle_writes": counters.spindle_writes,
        "raw_reads": counters.raw_reads,
        "raw_read_bytes": counters.raw_read_bytes,
        "raw_read_ms": counters.raw_read_ns / NS_PER_MS,
        "raw_writes": counters.raw_writes,
        "raw_write_bytes": counters.raw_write_bytes,
        "raw_write_ms": counters.raw_write_ns / NS_PER_MS,
    }


def _flash(counters: FlashCounters | None) -> Row:
    if counters is None:
        return dict.fromkeys(_FLASH)
    return {
        "flash_reads": counters.reads - counters.raw_reads,
        "flash_raw_reads": counters.raw_reads,
        "flash_read_ms": (counters.read_ns - counters.raw_read_ns) / NS_PER_MS,
        "flash_writes": counters.writes,
        "flash_busy_ms": counters.busy_ns / NS_PER_MS,
        "flash_used_bytes": counters.used_bytes,
        "cache_hits": counters.hits,
        "cache_misses": counters.misses,
        "cache_evictions": counters.evictions,
        "tier_bytes_up": counters.bytes_up,
        "tier_bytes_down": counters.bytes_down,
    }


def _active(active: ActiveExtents) -> Row:
    return {
        "active_extents": active.interval,
        "active_extents_60s": active.window,
        "active_extents_run": active.run,
        "extent_bytes": EXTENT_BYTES,
    }


_NAMES = DeviceIO.columns.names
EMULATED_ONLY = _NAMES[_NAMES.index("late") :]
_FLASH = [name for name in _NAMES if name.startswith(("flash_", "cache_", "tier_"))]
