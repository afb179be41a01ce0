"""Checks whether two sides may be compared, as far as storage tells: emulated or real, and whether it drifted."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from stallmark.analysis.compare.sides import Side, experiment, name_of
from stallmark.analysis.compare.summary import Check, CheckKind, ReasonKind, check
from stallmark.analysis.finding import Finding, Kind, caution, invalid
from stallmark.analysis.points import group
from stallmark.analysis.probe.drift import DRIFTED, SAME, UNKNOWN, Drift, drift
from stallmark.analysis.run import RunSummary
from stallmark.analysis.step_summary import StepSummary
from stallmark.record.devices import dram_of, is_data_emulated
from stallmark.record.manifest.storage import Role
from stallmark.record.probe import ProbeResult

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
