"""The machines of a record: the one the driver ran on, and the devices under the server."""

import os
import platform
import socket
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import psutil

from stallmark.format import size
from stallmark.record.manifest import Manifest
from stallmark.record.manifest.course import Machine
from stallmark.record.manifest.storage import EmulatedArray, Role

# Facts about the machine that the driver runs on, for the manifest.


def machine_facts() -> Machine:
    """Return the facts that decide what a run can reach; none names a person."""
    return Machine(
        system=f"{platform.system()} {platform.release()}",
        distribution=_distribution(),
        cpu=_cpu(),
        cores=os.cpu_count() or 0,
        memory_bytes=psutil.virtual_memory().total,
        python=sys.version.split()[0],
    )


def has_address(host: str) -> bool | None:
    """Return True if a host's name or address belongs to this machine, or None if the name cannot be resolved."""
    if not host or host.startswith("/"):  # a socket in the file system
        return True
    try:
        resolved = {str(address[0]) for *_, address in socket.getaddrinfo(host, None)}
    except OSError:
        return None
    own = {
        own_address.address.partition("%")[0]
        for interface_addresses in psutil.net_if_addrs().values()
        for own_address in interface_addresses
    }
    return any(address.startswith("127.") or address.partition("%")[0] in own for address in resolved)


def _distribution() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return platform.platform()


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    names = [line for line in info.read_text().splitlines() if line.startswith("model name")] if info.exists() else []
    return names[0].split(":", 1)[1].strip() if names else platform.processor() or platform.machine()


# Facts of a record about the storage under its server: names of devices, emulation, sizes of DRAM and flash.

Kind = Literal["cache", "tier"]


class FlashSize(NamedTuple):
    kind: Kind
    size_bytes: int

    def __str__(self) -> str:
        return f"{size(self.size_bytes)} flash {self.kind}"


@dataclass(frozen=True)
class DeviceLabel:
    """The name of a device, or the description of an emulated array. `report/text/device.py` words it."""

    name: str
    emulated: bool


def storage_label(manifest: Manifest) -> DeviceLabel:
    """Return the label of the data device, as `data_device_label` does. If only the log's device is emulated, name
    both, marked as emulated: "log on 1 spindle, 2 ms; data on vda"."""
    data, log = manifest.devices.for_role("data"), manifest.devices.for_role("wal").emulated_array
    if log and not data.emulated_array:
        return DeviceLabel(f"log on {_spindles(log)}; data on {data_device_label(manifest).name}", emulated=True)
    return data_device_label(manifest)


def data_device_label(manifest: Manifest) -> DeviceLabel:
    """Return "12 spindles, 4 ms + 64 MiB flash cache" of an emulated array, or the block device's name and model."""
    device = manifest.devices.for_role("data")
    if device.emulated_array:
        return DeviceLabel(array_name(device.emulated_array), emulated=True)
    name = " ".join(part for part in (device.name, device.model) if part)
    return DeviceLabel(name or "unknown device", emulated=False)


def array_name(array: EmulatedArray) -> str:
    return f"{_spindles(array)}{''.join(f' + {layer}' for layer in _flash(array))}"


def flash_of(manifest: Manifest) -> list[FlashSize]:
    """Return the flash of the data's array: as emulated, or as the scenario's `array` describes a real one."""
    if emulated := manifest.devices.for_role("data").emulated_array:
        return _flash(emulated)
    array = manifest.array
    sizes = {"cache": array.flash_cache_bytes, "tier": array.flash_tier_bytes} if array else {}
    return [FlashSize(kind, size) for kind in _KINDS if (size := sizes.get(kind))]


def dram_of(manifest: Manifest) -> int | None:
    """Return the bytes of DRAM in the array's controllers, or None if the scenario does not give them."""
    return manifest.array.dram_bytes if manifest.array else None


def emulated_roles(manifest: Manifest) -> tuple[Role, ...]:
    """Return the roles, "data" and "wal", that were on an emulated array, in the server's process or as a block
    device."""
    roles: tuple[Role, ...] = ("data", "wal")
    return tuple(role for role in roles if manifest.devices.for_role(role).emulated_array)


def is_emulated(manifest: Manifest) -> bool:
    """Return True if the data or the log of a run was emulated, which decides its figures."""
    return bool(emulated_roles(manifest))


def is_data_emulated(manifest: Manifest) -> bool:
    """Return True if the data files were on an emulated array: statements about their device depend only on that."""
    return manifest.devices.for_role("data").emulated_array is not None


def _flash(array: EmulatedArray) -> list[FlashSize]:
    parts = {"cache": array.cache, "tier": array.tier}
    return [FlashSize(kind, part.size) for kind in _KINDS if (part := parts[kind])]


def _spindles(array: EmulatedArray) -> str:
    time = f"{array.rpm:,.0f} rpm" if array.rpm else f"{array.read_ms or 0:g} ms"
    return f"{array.spindles} spindle{'s' if array.spindles != 1 else ''}, {time}"


_KINDS: tuple[Kind, ...] = ("cache", "tier")
