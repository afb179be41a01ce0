"""The settings that two runs were made with: those that differ by intent, and those that must not differ in a
comparison.

By intent differs what a variant declares (its buffer pool, its devices), and where the data lie: storage is what is
compared. Everything else that decides a figure must be the same.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from stallmark.analysis.finding import Finding, Kind, info, invalid
from stallmark.record.devices import data_device_label
from stallmark.record.manifest import Manifest
from stallmark.record.manifest.course import Scenario
from stallmark.record.manifest.storage import Role
from stallmark.record.manifest.workload import Step, Workload
from stallmark.stats.thresholds import POOL_REACHED

WITH_THE_POOL = ("shared_buffers", "wal_buffers", "max server memory (MB)")
"""Settings by which the buffer pool is capped, and what PostgreSQL derives from it."""

_GOVERNOR = (
    "enabled", "workload group", "pool", "max cpu percent", "cap cpu percent", "max memory percent",
    "max iops per volume", "request max memory grant percent", "max dop",
)  # fmt: skip

OF_A_VARIANT = {
    "row_versioning": ("database read committed snapshot",),
    "resource_pool": tuple(f"resource governor {name}" for name in _GOVERNOR),
}
"""The settings that a variant makes its own, by the key with which it asks for them."""


class IntentKind(Kind):
    """Properties that may tell the sides of a comparison from one another."""

    POOL = "made_with_buffer_pool"
    DATA_DEVICE = "made_with_data_device"
    ARRAY = "made_with_array"
    LOG_DEVICE = "made_with_log_device"
    ROW_VERSIONING = "made_with_row_versioning"
    RESOURCE_POOL = "made_with_resource_pool"
    DURING = "made_with_maintenance"


class DifferenceKind(Kind):
    """Differences between runs that must be alike. Facts: `a` and `b`, None where a record does not say; of a version
    of the data also the workload."""

    WORKLOAD = "other_workload"
    WORKLOAD_VERSION = "other_workload_version"
    SCALE = "other_scale"
    SEED = "other_seed"
    MIX = "other_mix"
    LOCALITY = "other_locality"
    SERVER = "other_server"
    SERVER_VERSION = "other_server_version"
    DESIGN = "other_physical_design"
    LOAD_MACHINES = "other_load_machines"
    CACHE_START = "other_cache_start"
    RESET = "other_reset"
    OBSERVATION = "other_observation"
    CPU = "other_cpu"
    CORES = "other_cores"
    MEMORY = "other_memory"
    ARRIVALS = "other_arrivals"
    RATE = "other_rate"
    THINK_TIME = "other_think_time"
    MEASURED = "other_measured_time"
    SETTING = "other_setting"
    POOL = "other_buffer_pool"


OF_STEPS = (DifferenceKind.ARRIVALS, DifferenceKind.RATE, DifferenceKind.THINK_TIME, DifferenceKind.MEASURED)
"""The differences between steps of one name, which the levels of two searches need not share."""


def by_intent(manifest: Manifest) -> Iterator[Finding]:
    """Yield what may tell this run's variant from others: its buffer pool, its array, the devices of data and log."""
    data, log = manifest.devices.data, manifest.devices.wal
    if reached := manifest.memory.reached_bytes:
        yield info(IntentKind.POOL, reached_bytes=reached)
    if data:
        yield info(IntentKind.DATA_DEVICE, device=data_device_label(manifest), folder=_folder(manifest, "data"))
    if manifest.variant.row_versioning is not None:
        yield info(IntentKind.ROW_VERSIONING, on=manifest.variant.row_versioning)
    if pool := manifest.variant.resource_pool:
        yield info(IntentKind.RESOURCE_POOL, limits=pool.facts())
    if during := manifest.variant.during:
        yield info(IntentKind.DURING, maintenance=during.kind)
    for part, value in (manifest.array.facts() if manifest.array else {}).items():
        yield info(IntentKind.ARRAY, part=part, value=value)
    if log:
        array = log.emulated_in_process
        yield info(
            IntentKind.LOG_DEVICE,
            device=" ".join(part for part in (log.name, log.model) if part) or None,
            emulated=array and {"spindles": array.spindles, "rpm": array.rpm, "write_ms": array.write_ms},
            folder=_folder(manifest, "wal"),
            with_data=log.name is not None and log == data,
        )


def _folder(manifest: Manifest, role: Role) -> str | None:
    """Return the folder of data or log; None on an emulated array of the server's processes, whatever lies below."""
    return None if manifest.devices.of(role).emulated_in_process else manifest.devices.folders.get(role)


def one_pool(a: Manifest, b: Manifest) -> bool:
    """Tell whether the two were to have the same buffer pool: declared alike, or not at all."""
    return bool(_declared_pool(a) == _declared_pool(b))


def differences(a: Manifest, b: Manifest) -> Iterator[Finding]:
    """Yield what differs though neither variant declares it, the most important first."""
    for kind, of in _SAME.items():
        left, right = of(a), of(b)
        # What a record does not say is not held against it.
        if left != right and left is not None and right is not None:
            yield invalid(kind, a=left, b=right)
    yield from _versions(a.workload, b.workload)
    yield from _steps(a.steps, b.steps)
    pool = one_pool(a, b)
    declared = set() if pool else set(WITH_THE_POOL)
    for key, names in OF_A_VARIANT.items():
        if getattr(a.variant, key) != getattr(b.variant, key):
            declared.update(names)
    yield from _settings(a.server.settings, b.server.settings, declared)
    left, right = a.memory.reached_bytes, b.memory.reached_bytes
    if pool and left and right and abs(right / left - 1) > POOL_REACHED:
        yield invalid(DifferenceKind.POOL, a=left, b=right)


_SAME: dict[DifferenceKind, Callable[[Manifest], Any]] = {
    DifferenceKind.WORKLOAD: lambda one: one.workload.name or None,
    DifferenceKind.SCALE: lambda one: one.workload.scale or None,
    DifferenceKind.SEED: lambda one: one.workload.seed,
    DifferenceKind.MIX: lambda one: one.workload.mix,
    DifferenceKind.LOCALITY: lambda one: one.workload.locality,
    DifferenceKind.SERVER: lambda one: one.server.product or None,
    DifferenceKind.SERVER_VERSION: lambda one: one.server.version or None,
    DifferenceKind.DESIGN: lambda one: one.scenario.database,
    DifferenceKind.LOAD_MACHINES: lambda one: len(one.load_machines) or 1,
    DifferenceKind.CACHE_START: lambda one: one.cache_start,
    DifferenceKind.RESET: lambda one: one.reset,
    DifferenceKind.OBSERVATION: lambda one: one.scenario.observe,
    DifferenceKind.CPU: lambda one: one.machine.cpu,
    DifferenceKind.CORES: lambda one: one.machine.cores,
    DifferenceKind.MEMORY: lambda one: one.machine.memory_bytes,
}


def _versions(a: Workload, b: Workload) -> Iterator[Finding]:
    if a.name == b.name and a.version != b.version and a.version is not None and b.version is not None:
        yield invalid(DifferenceKind.WORKLOAD_VERSION, workload=a.name, a=a.version, b=b.version)


def _steps(a: Sequence[Step], b: Sequence[Step]) -> Iterator[Finding]:
    """Yield how arrivals and measured time of the same step differ; which steps there are is judged by who
    pairs them."""
    for left in a:
        for right in b:
            if (left.name, left.users) != (right.name, right.users):
                continue
            for kind, one, other in (
                (DifferenceKind.ARRIVALS, left.arrivals, right.arrivals),
                (DifferenceKind.RATE, left.rate, right.rate),
                (DifferenceKind.THINK_TIME, left.think_ms, right.think_ms),
                (DifferenceKind.MEASURED, _measured_s(left), _measured_s(right)),
            ):
                if one != other:
                    yield invalid(kind, a=one, b=other)


def _measured_s(step: Step) -> float:
    """Return the planned time to the millisecond: a run that waited for a steady state is measured later, as long."""
    return round(step.end_s - step.measure_s, 3)


def _settings(a: Mapping[str, str], b: Mapping[str, str], declared: Collection[str]) -> Iterator[Finding]:
    for name in sorted({*a, *b} - set(declared)):
        left, right = a.get(name), b.get(name)
        if left != right and left is not None and right is not None:
            yield invalid(DifferenceKind.SETTING, name=name, a=left, b=right)


def _declared_pool(manifest: Manifest) -> Any:
    return manifest.variant.buffer_pool or manifest.scenario.buffer_pool


SETTINGS_OF_LOAD = ("workload", "users", "measure", "arrivals", "think_time", "start_cache", "reset", "emulated_array")
"""Parts of a scenario that must be the same for the figures of two experiments to stand in one column."""


def same_load(one: Scenario, other: Scenario) -> bool:
    """Tell whether two experiments of a scenario were made with the same load on the same kind of device."""
    a, b = one.facts(), other.facts()
    return all(a.get(key) == b.get(key) for key in SETTINGS_OF_LOAD)
