"""The settings and the storage of two runs: what differs by intent, and what must not."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from stallmark.analysis.compare.sides import Side, experiment, name_of
from stallmark.analysis.compare.summary import Check, CheckKind, ReasonKind, check
from stallmark.analysis.finding import Finding, Kind, caution, info, invalid
from stallmark.analysis.points import group
from stallmark.analysis.probe.drift import DRIFTED, SAME, UNKNOWN, Drift, drift
from stallmark.analysis.run import RunSummary
from stallmark.analysis.step_summary import StepSummary
from stallmark.record.devices import data_device_label, dram_of, is_data_emulated
from stallmark.record.manifest import Manifest
from stallmark.record.manifest.course import Scenario
from stallmark.record.manifest.storage import Role
from stallmark.record.manifest.workload import Step, Workload
from stallmark.record.probe import ProbeResult
from stallmark.stats.thresholds import POOL_REACHED

# The settings that two runs were made with: those that differ by intent, and those that must not differ in a
# comparison.
#
# By intent differs what a variant declares (its buffer pool, its devices), and where the data lie: storage is what is
# compared. Everything else that decides a figure must be the same.

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


# Checks whether two sides may be compared, as far as storage tells: emulated or real, and whether it drifted.

ROLES: tuple[Role, ...] = ("data", "wal")


class StorageKind(Kind):
    ONE_DISK = "folders_on_one_disk"


def storage_checks(a: Side, b: Side, steps: Sequence[StepSummary]) -> list[Check]:
    """Return the checks; `steps` are those of both sides."""
    return [_one_kind(steps), *_undrifted([a, b])]


def _one_kind(steps: Sequence[StepSummary]) -> Check:
    """Check that all devices are emulated, or none: that an emulated array does better or worse says nothing."""
    on = {role: sum(role in step.emulated_roles for step in steps) for role in ("data", "wal")}
    mixed = next((role for role, some in on.items() if 0 < some < len(steps)), None)
    reason = invalid(ReasonKind.DEVICES_DIFFER, role=mixed) if mixed else None
    return check(
        CheckKind.DEVICES, not mixed, reason, data_emulated=on["data"], log_emulated=on["wal"], runs=len(steps)
    )


def _undrifted(sides: Sequence[Side]) -> Iterator[Check]:
    """Check the probes around runs; nothing where no run was probed."""
    if any(probes_of(run) for side in sides for run in side.runs):
        wrong = [mixed for side in sides for run in side.runs if (mixed := mixed_up(run))]
        found = [one for side in sides for one in drifts(side.runs)]
        off = [{"between": list(between), "how": one.finding} for between, one in found if one.verdict == DRIFTED]
        unknown = [one for _, one in found if one.verdict == UNKNOWN]
        reasons = [*wrong, *([invalid(ReasonKind.STORAGE_CHANGED, changes=off)] if off else [])]
        yield check(
            CheckKind.STORAGE,
            False if reasons else None if unknown or not found else True,
            reasons[0] if reasons else None,
            compared=len(found),
            mixed_up=wrong,
            others=[
                {"between": list(between), "verdict": one.verdict} for between, one in found if one.verdict != SAME
            ],
        )


def drifts(runs: Sequence[RunSummary]) -> list[tuple[tuple[str, ...], Drift]]:
    """Compare probes of one variant's runs: before with after, and each run's beginning with that of the one before.

    Return the run that lies between two probes, or the two runs whose beginnings were compared, with the drift.
    """
    probed = [(run, probes) for run in runs if (probes := probes_of(run))]
    named = name_of if len(set(map(experiment, runs))) > 1 else lambda run: run.folder
    within = [
        ((named(run),), drift(probes["before"], probes["after"], _most_dram(run)))
        for run, probes in probed
        if {"before", "after"} <= probes.keys()
    ]
    between = [
        ((named(run), named(later)), drift(probes["before"], again["before"], _most_dram(run, later)))
        for (run, probes), (later, again) in pairwise(probed)
        if "before" in probes and "before" in again
    ]
    return [*within, *between]


def on_one_disk(runs: Sequence[RunSummary]) -> Iterator[Finding]:
    """Warn where runs on the same database lay in different folders of one disk: they compare no two devices."""
    for same in group(runs, _database):
        for role in ROLES:
            folders: dict[str, set[str]] = {}
            for run in same:
                devices = run.manifest.devices
                disk = devices.of(role).disk
                if disk and (folder := devices.folders.get(role)):
                    folders.setdefault(disk, set()).add(folder)
            found = [(disk, sorted(some)) for disk, some in folders.items() if len(some) > 1]
            for disk, some in found:
                yield caution(StorageKind.ONE_DISK, role=role, disk=disk, folders=some)
            if found:  # the log lies beside the data, and is as far apart
                break


def _database(run: RunSummary) -> str:
    workload = run.manifest.workload
    return f"{workload.name} {sorted(workload.scale.items())} {workload.seed}"


def _most_dram(*runs: RunSummary) -> int | None:
    return max((size for run in runs if (size := dram_of(run.manifest))), default=None)


def warming_up(runs: Sequence[RunSummary]) -> bool:
    """Tell whether the share of reads that flash answered was still rising in one of the runs."""
    return any(step.flash_warming for run in runs for step in run.steps)


def probes_of(run: RunSummary) -> dict[str, ProbeResult]:
    """Return the probes made around a run, by "before" and "after"."""
    made = run.manifest.probes
    return {when: one for when, one in (("before", made.before), ("after", made.after)) if one}


def mixed_up(run: RunSummary) -> Finding | None:
    """Return a finding where a run's probes say nothing about it: one of the two was on an emulated array."""
    emulated = is_data_emulated(run.manifest)
    if all(one.emulated == emulated for one in probes_of(run).values()):
        return None
    return invalid(ReasonKind.PROBE_OF_OTHER_DEVICE, run=name_of(run), run_emulated=emulated)
