"""The manifest of a run record: everything that decides its figures, and no secret.

One model for runs of transactions, runs of queries and probes of storage; what a kind of run lacks is
None or empty. Its parts are in the modules beside. `manifest.json` is replaced whole with every change, and nothing
else reads or writes it.
"""

import os
import platform
import socket
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple, Self

import psutil
from pydantic import Field, model_validator

from stallmark.errors import with_path
from stallmark.format import size
from stallmark.record.files import as_text, read_model, write_whole
from stallmark.record.manifest.course import (
    Collector,
    Condition,
    Database,
    Ended,
    ExpectedMachines,
    External,
    LeftWaiting,
    LoadMachine,
    Machine,
    ManifestPart,
    Memory,
    Moment,
    Scenario,
    Server,
    TableFile,
    TableName,
    Took,
    Unheard,
    Variant,
)
from stallmark.record.manifest.storage import (
    Array,
    Devices,
    EmulatedArray,
    HookResult,
    Precondition,
    ProbePlan,
    ProbeResult,
    Probes,
    Role,
    ServiceLevelObjective,
)
from stallmark.record.manifest.workload import Load, Queries, Search, Step, Workload

FORMAT: Final = 2
FILLED_BY = {"external": "attach"}
"""The fields of the manifest that a capability fills and shows, each with its name."""


class Manifest(ManifestPart):
    """The manifest.

    Attributes:
        sequence: the run's number in its experiment.
        again: True for the first variant, repeated at the end.
        external: attached measurements, by the suffix of their tables' names.
        tables: the tables that were completely written.
    """

    format: Literal[2] = FORMAT
    kind: Literal["transactions", "queries", "probe"] = "transactions"
    status: Literal["running", "complete", "incomplete"] = "running"
    incomplete_because: str | None = None
    stallmark: str = ""
    experiment: str = ""
    sequence: int | None = None
    repeat: int = 1
    block: int = 1
    again: bool = False
    resumed_after_s: Annotated[float, Field(ge=0, lt=1e10)] | None = None
    """Seconds between the last whole run of the experiment and its resumption with this one."""
    started: Moment
    scenario: Scenario = Scenario()
    variant: Variant = Variant()
    steps: tuple[Step, ...] = ()
    search: Search | None = None
    workload: Workload = Workload()
    loads: tuple[Load, ...] = ()
    """The loads of a run that has several; its `workload` then names those of the whole database."""
    queries: Queries | None = None
    server: Server = Server()
    memory: Memory = Memory()
    database: Database = Database()
    cache_start: str | None = None
    reset: str | None = None
    service_level: ServiceLevelObjective | None = None
    devices: Devices = Devices()
    array: Array | None = None
    hook: HookResult | None = None
    precondition: Precondition | None = None
    probes: Probes = Probes()
    probe: ProbeResult | None = None
    """The tool, device and file of a probe; its steps are in the tables."""
    probe_plan: ProbePlan | None = None
    collectors: dict[str, Collector] = {}
    conditions: tuple[Condition, ...] = ()
    machine: Machine = Machine()
    expected_machines: ExpectedMachines | None = None
    load_machines: tuple[LoadMachine, ...] = ()
    unheard: Unheard = Unheard()
    left_waiting: LeftWaiting = LeftWaiting()
    external: dict[TableName, External] = {}
    tables: dict[TableName, TableFile] = {}
    took: Took | None = None
    notes: tuple[str, ...] = ()
    ended: Ended | None = None

    @model_validator(mode="before")
    @classmethod
    def _streams_of_steps(cls, given: Any) -> Any:
        """Read a record that names the streams beside its users once for all steps, as older versions wrote it."""
        if not isinstance(given, dict) or "concurrent_streams" not in given:
            return given
        streams = (given["concurrent_streams"] or {}).get("streams", 0)
        rest = {key: value for key, value in given.items() if key != "concurrent_streams"}
        return rest | {"steps": [dict(step) | {"streams": streams} for step in given.get("steps", ())]}

    @model_validator(mode="after")
    def _has_what_its_kind_needs(self) -> Self:
        if (self.kind == "probe") != (self.probe is not None) or (self.kind == "queries") != (self.queries is not None):
            raise ValueError(f"kind {self.kind} does not fit the rest")
        if any(len(load.counts) != len(self.steps) for load in self.loads):
            raise ValueError("a load lacks its size in a step")
        return self


# Read and write `manifest.json`, the one file that holds the manifest of a record.

FILE = "manifest.json"
_REMEDY = "restore it, or leave this record out"


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of a record's folder; raise StallmarkError, which names the file and the key at fault."""
    return read_model(Manifest, folder, FILE, "run record", FORMAT, _REMEDY)


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Replace the manifest whole or not at all: it may be read at any moment. In a folder that takes no new file any
    more, its file is written over.

    Raise OSError, which names the file.
    """
    path = folder / FILE
    try:
        try:
            write_whole(path, manifest)
        except PermissionError:
            with path.open("r+") as file:
                file.write(as_text(manifest))
                file.truncate()
    except OSError as error:
        raise with_path(error, path) from None


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
