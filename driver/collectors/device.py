"""The devices under the data and the WAL directory: real, emulated, or both."""

import sys

import pyarrow as pa

from stallmark.driver.collectors.base import Collector, Row
from stallmark.driver.collectors.block_devices import BlockDevice, NoBlockDevice, device_behind, read_counters
from stallmark.driver.engines.base import Engine
from stallmark.driver.engines.slow_device import DeviceCounters, SlowDevices

NS_PER_MS = 1e6


class Device(Collector):
    name = "device"
    title = "Devices"
    help = (
        "What the devices themselves count, for everybody who uses them (/proc/diskstats). An emulated "
        "device counts what the server did on it, and the real one under it is then called underlying. "
        "busy_ms is the time with any I/O under way; of an emulated device it is service summed over its "
        "spindles. queue_ms is the integral of the I/Os under way over time. `late`: I/Os for which the real "
        "device was slower than the emulated one."
    )
    columns = pa.schema(
        [
            ("entity", pa.string()),  # "data: vda"; "data" when emulated
            ("role", pa.string()),  # data, wal, data+wal, underlying
            ("emulated", pa.bool_()),
            ("epoch", pa.string()),
            ("reads", pa.int64()),
            ("read_bytes", pa.int64()),
            ("read_ms", pa.float64()),
            ("writes", pa.int64()),
            ("write_bytes", pa.int64()),
            ("write_ms", pa.float64()),
            ("syncs", pa.int64()),
            ("sync_ms", pa.float64()),
            ("busy_ms", pa.float64()),
            ("queue_ms", pa.float64()),
            ("late", pa.int64()),
        ]
    )

    def __init__(self, engine: Engine):
        super().__init__(engine)
        self._roles: dict[BlockDevice, str] = {}
        self._emulation: SlowDevices | None = None
        self._emulations = 0

    def unavailable(self) -> str | None:
        if not self.engine.is_local:
            return "The server runs on another machine, whose devices cannot be seen from this one."
        if not sys.platform.startswith("linux"):
            return f"Devices are read from Linux' /proc/diskstats, and this is {sys.platform}."
        roles, reasons = self._resolve()
        return None if roles or self.engine.devices else " ".join(reasons)

    def limited(self) -> str | None:
        roles, reasons = self._resolve()
        unsynced = [device.name for device in roles if not device.counts_syncs]
        if unsynced:
            reasons.append(f"The kernel counts syncs of whole disks only, not of {', '.join(unsynced)}.")
        return " ".join(reasons) or None

    def open(self) -> None:
        self._roles, _ = self._resolve()

    def sample(self, now: float) -> list[Row]:
        rows: list[Row] = []
        if (devices := self.engine.devices) is not None:
            if devices is not self._emulation:
                self._emulation, self._emulations = devices, self._emulations + 1
            epoch = f"emulation {self._emulations}"
            rows += [_emulated(name, epoch, counters) for name, counters in devices.counters().items()]
        return rows + [_real(device, role) for device, role in self._roles.items()]

    def _resolve(self) -> tuple[dict[BlockDevice, str], list[str]]:
        """The block devices with their roles, and sentences on the directories that have none."""
        found: dict[BlockDevice, list[str]] = {}
        reasons: list[str] = []
        for role, directory in sorted(self.engine.directories().items()):
            try:
                found.setdefault(device_behind(directory), []).append(role)
            except NoBlockDevice as reason:
                reasons.append(str(reason))
        if self.engine.devices is not None:
            return dict.fromkeys(found, "underlying"), reasons
        return {device: "+".join(roles) for device, roles in found.items()}, reasons


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
        "late": None,
    }


def _emulated(name: str, epoch: str, counters: DeviceCounters) -> Row:
    return {
        "entity": name,
        "role": name,
        "emulated": True,
        "epoch": epoch,
        "reads": counters.reads,
        "read_bytes": counters.read_bytes,
        "read_ms": counters.read_ns / NS_PER_MS,
        "writes": counters.writes,
        "write_bytes": counters.write_bytes,
        "write_ms": counters.write_ns / NS_PER_MS,
        "syncs": counters.syncs,
        "sync_ms": counters.sync_ns / NS_PER_MS,
        "busy_ms": counters.busy_ns / NS_PER_MS,
        "queue_ms": (counters.read_ns + counters.write_ns + counters.sync_ns) / NS_PER_MS,
        "late": counters.late,
    }
