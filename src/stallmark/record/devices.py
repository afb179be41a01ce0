"""What a record says of the storage under its server: which devices, whether emulated, how much DRAM and flash."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from stallmark.format import size

Kind = Literal["cache", "tier"]


class Flash(NamedTuple):
    kind: Kind
    size_bytes: int

    def __str__(self) -> str:
        return f"{size(self.size_bytes)} flash {self.kind}"


def device_name(manifest: Mapping[str, Any]) -> str:
    """As `data_device_name`; where the log alone is emulated: "EMULATED log on 1 spindle, 2 ms; data on vda"."""
    data = data_device_name(manifest)
    if is_emulated(manifest) and not is_data_emulated(manifest):
        return f"EMULATED log on {_spindles(_model(manifest, 'wal'))}; data on {data}"
    return data


def data_device_name(manifest: Mapping[str, Any]) -> str:
    """ "EMULATED 12 spindles, 4 ms + 64 MiB flash cache", or the block device's name and model."""
    if is_data_emulated(manifest):
        return f"EMULATED {_spindles(_model(manifest))}{''.join(f' + {one}' for one in flash_of(manifest))}"
    device = device_of(manifest, "data")
    return " ".join(str(device[part]) for part in ("name", "model") if device.get(part)) or "unknown device"


def flash_of(manifest: Mapping[str, Any]) -> list[Flash]:
    """Of an emulated device as it was; of a real array as the scenario's `array` says."""
    if is_data_emulated(manifest):
        device = _model(manifest)
        return [Flash(kind, int(device[kind]["size"])) for kind in _KINDS if device.get(kind)]
    array = manifest.get("array") or {}
    return [Flash(kind, int(found)) for kind in _KINDS if (found := array.get(f"flash_{kind}_bytes"))]


def array_in_words(manifest: Mapping[str, Any]) -> list[str]:
    """What the scenario says of a real array: "raid RAID 10", "flash cache 745.1 GiB"."""
    said = []
    for key, value in (manifest.get("array") or {}).items():
        text = size(value) if key.endswith("_bytes") else value
        said.append(f"{key.removesuffix('_bytes').replace('_', ' ')} {text}")
    return said


def dram_of(manifest: Mapping[str, Any]) -> int | None:
    """Of the array's controllers, in bytes; None where nobody said."""
    return (manifest.get("array") or {}).get("dram_bytes")


def _model(manifest: Mapping[str, Any], role: str = "data") -> Mapping[str, Any]:
    """Of an emulated device, wherever it is emulated."""
    device = device_of(manifest, role)
    return device.get("lab") or device


def _spindles(model: Mapping[str, Any]) -> str:
    count = model["spindles"]
    time = f"{model['rpm']:,.0f} rpm" if model.get("rpm") else f"{model.get('read_ms') or 0:g} ms"
    return f"{count} spindle{'s' if count != 1 else ''}, {time}"


def emulated_roles(manifest: Mapping[str, Any]) -> tuple[str, ...]:
    """Those of "data" and "wal" whose device was emulated: in the server's process, or as a block device of a lab."""
    devices = {role: device_of(manifest, role) for role in ("data", "wal")}
    return tuple(role for role, device in devices.items() if "spindles" in device or "lab" in device)


def is_emulated(manifest: Mapping[str, Any]) -> bool:
    """Whether anything that decides the run's figures was emulated, its data or its log: so the run is labelled."""
    return bool(emulated_roles(manifest))


def is_data_emulated(manifest: Mapping[str, Any]) -> bool:
    """Whether the data files lay on an emulated device: what is said of their device depends on that alone."""
    return "data" in emulated_roles(manifest)


def device_of(manifest: Mapping[str, Any], role: str) -> Mapping[str, Any]:
    """The device of the `role` ("data", "wal") as the manifest describes it; empty when it does not."""
    return (manifest.get("device") or {}).get(role) or {}


_KINDS: tuple[Kind, ...] = ("cache", "tier")
