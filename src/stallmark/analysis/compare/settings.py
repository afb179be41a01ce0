"""The settings and the storage of two runs: intended differences, and differences that forbid a comparison."""

import difflib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from stallmark.analysis.compare.sides import Side, experiment, name_of
from stallmark.analysis.compare.summary import Check, CheckKind, ReasonKind, check
from stallmark.analysis.finding import Finding, Kind, caution, info, invalid
from stallmark.analysis.metrics import group
from stallmark.analysis.probe_comparison import DRIFTED, SAME, UNKNOWN, Drift, drift
from stallmark.analysis.run import RunSummary
from stallmark.analysis.step_summary import StepSummary
from stallmark.errors import WrongOption
from stallmark.record.devices import data_device_label, dram_of, is_data_emulated
from stallmark.record.manifest import Manifest
from stallmark.record.manifest.course import Scenario
from stallmark.record.manifest.storage import ProbeResult, Role
from stallmark.record.manifest.workload import Step, Workload
from stallmark.stats.thresholds import POOL_REACHED

# The settings that two runs were made with: those that differ by intent, and those that must not differ in a
# comparison.
#
# By intent differs what a variant declares (its buffer pool, its devices), and where the data lie: storage is what is
# compared. Everything else that decides a figure must be the same.

WITH_THE_POOL = ("shared_buffers", "wal_buffers", "max server memory (MB)")
"""Settings that cap the buffer pool, and those that PostgreSQL derives from its size."""

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
    """Properties that may distinguish the sides of a comparison."""

    POOL = "made_with_buffer_pool"
    DATA_DEVICE = "made_with_data_device"
    ARRAY = "made_with_array"
    LOG_DEVICE = "made_with_log_device"
    ROW_VERSIONING = "made_with_row_versioning"
    RESOURCE_POOL = "made_with_resource_pool"
    SETTING = "made_with_setting"
    DURING = "made_with_maintenance"


class DifferenceKind(Kind):
    """Differences between runs that must be equal. Facts: `a` and `b`, None if a record lacks the value; for a version
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


def intended_differences(manifest: Manifest) -> Iterator[Finding]:
    """Yield the properties that may distinguish this run's variant: its buffer pool, its array, the devices of data and
    log."""
    data, log = manifest.devices.data, manifest.devices.wal
    if reached := manifest.memory.reached_bytes:
        yield info(IntentKind.POOL, reached_bytes=reached)
    if data:
        yield info(IntentKind.DATA_DEVICE, device=data_device_label(manifest), folder=_folder(manifest, "data"))
    if manifest.variant.row_versioning is not None:
        yield info(IntentKind.ROW_VERSIONING, on=manifest.variant.row_versioning)
    if pool := manifest.variant.resource_pool:
        yield info(IntentKind.RESOURCE_POOL, limits=pool.facts())
    for name, value in settings_in_effect(manifest).items():
        yield info(IntentKind.SETTING, name=name, value=value)
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


def settings_in_effect(manifest: Manifest) -> dict[str, str]:
    """Return the settings that the scenario chose for this run, with the values that the server had."""
    known = manifest.server.settings
    return {name: known.get(recorded_name(manifest, name), value) for name, value in _chosen(manifest).items()}


def recorded_name(manifest: Manifest, name: str) -> str:
    """Return the name in a record of a setting that a scenario may call by another one."""
    return manifest.server.names.get(name, name)


def _chosen(manifest: Manifest) -> dict[str, str]:
    return {**(manifest.scenario.settings or {}), **(manifest.variant.settings or {})}


def _folder(manifest: Manifest, role: Role) -> str | None:
    """Return the folder of data or log, or None on an emulated array in the server's processes, whatever is below
    it."""
    return None if manifest.devices.for_role(role).emulated_in_process else manifest.devices.folders.get(role)


def one_pool(a: Manifest, b: Manifest) -> bool:
    """Return True if both variants request the same buffer pool, or neither requests one."""
    return bool(_declared_pool(a) == _declared_pool(b))


def differences_from_first(runs: Sequence[RunSummary]) -> list[Finding]:
    """Compare each run with the first; return the differences that no variant declares, each once."""
    first, *others = (run.manifest for run in runs)
    return list(dict.fromkeys(difference for other in others for difference in undeclared_differences(first, other)))


def undeclared_differences(a: Manifest, b: Manifest) -> Iterator[Finding]:
    """Yield the differences that neither variant declares, the most important first."""
    for kind, value in _SAME.items():
        left, right = value(a), value(b)
        # A missing value is not a difference.
        if left != right and left is not None and right is not None:
            yield invalid(kind, a=left, b=right)
    yield from _versions(a.workload, b.workload)
    yield from _steps(a.steps, b.steps)
    # Settings that follow from a declared difference are declared with it.
    pool = one_pool(a, b)
    declared = set() if pool else set(WITH_THE_POOL)
    for key, names in OF_A_VARIANT.items():
        if getattr(a.variant, key) != getattr(b.variant, key):
            declared.update(names)
    left, right = _chosen(a), _chosen(b)
    for name in left.keys() | right.keys():
        if left.get(name) != right.get(name):
            declared |= {recorded_name(a, name), recorded_name(b, name)}
    yield from _settings(a.server.settings, b.server.settings, declared)
    reached_a, reached_b = a.memory.reached_bytes, b.memory.reached_bytes
    if pool and reached_a and reached_b and abs(reached_b / reached_a - 1) > POOL_REACHED:
        yield invalid(DifferenceKind.POOL, a=reached_a, b=reached_b)


_SAME: dict[DifferenceKind, Callable[[Manifest], Any]] = {
    DifferenceKind.WORKLOAD: lambda manifest: manifest.workload.name or None,
    DifferenceKind.SCALE: lambda manifest: manifest.workload.scale or None,
    DifferenceKind.SEED: lambda manifest: manifest.workload.seed,
    DifferenceKind.MIX: lambda manifest: manifest.workload.mix,
    DifferenceKind.LOCALITY: lambda manifest: manifest.workload.locality,
    DifferenceKind.SERVER: lambda manifest: manifest.server.product or None,
    DifferenceKind.SERVER_VERSION: lambda manifest: manifest.server.version or None,
    DifferenceKind.DESIGN: lambda manifest: manifest.scenario.database,
    DifferenceKind.LOAD_MACHINES: lambda manifest: len(manifest.load_machines) or 1,
    DifferenceKind.CACHE_START: lambda manifest: manifest.cache_start,
    DifferenceKind.RESET: lambda manifest: manifest.reset,
    DifferenceKind.OBSERVATION: lambda manifest: manifest.scenario.observe,
    DifferenceKind.CPU: lambda manifest: manifest.machine.cpu,
    DifferenceKind.CORES: lambda manifest: manifest.machine.cores,
    DifferenceKind.MEMORY: lambda manifest: manifest.machine.memory_bytes,
}


def _versions(a: Workload, b: Workload) -> Iterator[Finding]:
    if a.name == b.name and a.version != b.version and a.version is not None and b.version is not None:
        yield invalid(DifferenceKind.WORKLOAD_VERSION, workload=a.name, a=a.version, b=b.version)


def _steps(a: Sequence[Step], b: Sequence[Step]) -> Iterator[Finding]:
    """Yield the differences in arrivals and measured time between equal steps. The pairing judges which steps exist."""
    for left in a:
        for right in b:
            if (left.name, left.users) != (right.name, right.users):
                continue
            for kind, value_a, value_b in (
                (DifferenceKind.ARRIVALS, left.arrivals, right.arrivals),
                (DifferenceKind.RATE, left.rate, right.rate),
                (DifferenceKind.THINK_TIME, left.think_ms, right.think_ms),
                (DifferenceKind.MEASURED, _measured_s(left), _measured_s(right)),
            ):
                if value_a != value_b:
                    yield invalid(kind, a=value_a, b=value_b)


def _measured_s(step: Step) -> float:
    """Return the planned time to the millisecond: a run that waited for a steady state is measured later, as long."""
    return round(step.end_s - step.measure_s, 3)


def _settings(a: Mapping[str, str], b: Mapping[str, str], declared: Collection[str]) -> Iterator[Finding]:
    for name in sorted({*a, *b} - set(declared)):
        left, right = a.get(name), b.get(name)
        if left != right and left is not None and right is not None:
            yield invalid(DifferenceKind.SETTING, name=name, a=left, b=right)


def with_varied(runs: Sequence[RunSummary], names: Collection[str]) -> list[RunSummary]:
    """Return the runs as if their scenarios had chosen these settings, which somebody changed by hand between them.

    Raise StallmarkError for a setting that no run has, or that is the same in all of them.
    """
    chosen = list(runs)
    for name in names:
        values = [run.manifest.server.settings.get(recorded_name(run.manifest, name)) for run in runs]
        known_values = {value for value in values if value is not None}
        if not known_values:
            known = {known for run in runs for known in (*run.manifest.server.settings, *run.manifest.server.names)}
            near = difflib.get_close_matches(name, known, 1)
            hint = f": did you mean {near[0]}?" if near else ""
            raise WrongOption(f"--varied {name}: no report of these runs lists a setting of that name{hint or '.'}")
        if len(known_values) == 1:
            raise WrongOption(f"--varied {name}: it is {known_values.pop()} in every run that has it: leave it out.")
        pairs = zip(chosen, values, strict=True)
        chosen = [run if value is None else _choosing(run, name, value) for run, value in pairs]
    return chosen


def _choosing(run: RunSummary, name: str, value: str) -> RunSummary:
    variant = run.manifest.variant
    changed = variant.changed(settings={**(variant.settings or {}), name: value})
    return replace(run, manifest=run.manifest.changed(variant=changed))


def _declared_pool(manifest: Manifest) -> Any:
    return manifest.variant.buffer_pool or manifest.scenario.buffer_pool


SETTINGS_OF_LOAD = ("workload", "users", "measure", "arrivals", "think_time", "start_cache", "reset", "emulated_array")
"""Parts of a scenario that must be the same for the figures of two experiments to stand in one column."""


def same_load(scenario: Scenario, other: Scenario) -> bool:
    """Return True if two experiments of a scenario used the same load on the same kind of device."""
    a, b = scenario.facts(), other.facts()
    return all(a.get(key) == b.get(key) for key in SETTINGS_OF_LOAD)


# Checks whether two sides may be compared, as far as storage tells: emulated or real, and whether it drifted.

ROLES: tuple[Role, ...] = ("data", "wal")


class StorageKind(Kind):
    ONE_DISK = "folders_on_one_disk"


def check_devices(steps: Sequence[StepSummary]) -> Check:
    """Check that all devices are emulated, or none: an emulated array next to a real one shows nothing."""
    emulated = [step.emulated_roles for step in steps]
    mixed = mixed_role(emulated)
    reason = invalid(ReasonKind.DEVICES_DIFFER, role=mixed) if mixed else None
    data, log = (sum(role in roles for roles in emulated) for role in ROLES)
    return check(CheckKind.DEVICES, not mixed, reason, data_emulated=data, log_emulated=log, runs=len(steps))


def mixed_role(emulated: Sequence[Collection[str]]) -> Role | None:
    """Return the role whose device is in some of these sets of emulated roles, and not in all."""
    return next((role for role in ROLES if 0 < sum(role in roles for roles in emulated) < len(emulated)), None)


def check_probes(sides: Sequence[Side]) -> Iterator[Check]:
    """Check the probes around runs; empty if no run was probed."""
    if any(probes_of(run) for side in sides for run in side.runs):
        wrong = [mixed for side in sides for run in side.runs if (mixed := probe_on_other_device(run))]
        compared = [pair for side in sides for pair in drifts(side.runs)]
        off = [
            {"between": list(between), "how": change.finding}
            for between, change in compared
            if change.verdict == DRIFTED
        ]
        unknown = [change for _, change in compared if change.verdict == UNKNOWN]
        reasons = [*wrong, *([invalid(ReasonKind.STORAGE_CHANGED, changes=off)] if off else [])]
        yield check(
            CheckKind.STORAGE,
            False if reasons else None if unknown or not compared else True,
            reasons[0] if reasons else None,
            compared=len(compared),
            mixed_up=wrong,
            others=[
                {"between": list(between), "verdict": change.verdict}
                for between, change in compared
                if change.verdict != SAME
            ],
        )


def drifts(runs: Sequence[RunSummary]) -> list[tuple[tuple[str, ...], Drift]]:
    """Compare probes of one variant's runs: before with after, and the beginning of each run with that of the run
    before.

    Return the run between two probes, or the two runs whose beginnings were compared, with the drift.
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


def folders_on_one_disk(runs: Sequence[RunSummary]) -> Iterator[Finding]:
    """Warn if runs on the same database used different folders of one disk: such runs do not compare two devices."""
    for same in group(runs, _database):
        for role in ROLES:
            folders: dict[str, set[str]] = {}
            for run in same:
                devices = run.manifest.devices
                disk = devices.for_role(role).disk
                if disk and (folder := devices.folders.get(role)):
                    folders.setdefault(disk, set()).add(folder)
            shared = [(disk, sorted(names)) for disk, names in folders.items() if len(names) > 1]
            for disk, names in shared:
                yield caution(StorageKind.ONE_DISK, role=role, disk=disk, folders=names)
            if shared:  # the log lies beside the data, and is as far apart
                break


def _database(run: RunSummary) -> str:
    workload = run.manifest.workload
    return f"{workload.name} {sorted(workload.scale.items())} {workload.seed}"


def _most_dram(*runs: RunSummary) -> int | None:
    return max((size for run in runs if (size := dram_of(run.manifest))), default=None)


def probes_of(run: RunSummary) -> dict[str, ProbeResult]:
    """Return the probes made around a run, by "before" and "after"."""
    made = run.manifest.probes
    return {when: probe for when, probe in (("before", made.before), ("after", made.after)) if probe}


def probe_on_other_device(run: RunSummary) -> Finding | None:
    """Return a finding if a run's probes do not describe its device: one of the two was on an emulated array."""
    emulated = is_data_emulated(run.manifest)
    if all(probe.emulated == emulated for probe in probes_of(run).values()):
        return None
    return invalid(ReasonKind.PROBE_OF_OTHER_DEVICE, run=name_of(run), run_emulated=emulated)
