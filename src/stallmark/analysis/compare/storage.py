"""May two sides be compared, as far as the storage itself tells? Emulated or real, and whether it drifted meanwhile."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from stallmark.analysis.compare.sides import Side, experiment, name_of
from stallmark.analysis.compare.summary import Check
from stallmark.analysis.probe.drift import DRIFTED, SAME, UNKNOWN, Drift, drift
from stallmark.analysis.summary import RunSummary, StepSummary
from stallmark.format import listed
from stallmark.record.devices import dram_of, is_data_emulated
from stallmark.record.probe import ProbeResult

MOST_SAID = 2
"""Drifts in the sentence of a verdict: all are in the report's table."""


def storage_checks(a: Side, b: Side, steps: Sequence[StepSummary]) -> list[Check]:
    """`steps`: of both sides."""
    return [_one_kind(steps), *_undrifted([a, b])]


def _one_kind(steps: Sequence[StepSummary]) -> Check:
    """An emulated device was slowed down on purpose: that a real one does better or worse says nothing."""
    on = {role: [step for step in steps if role in step.emulated_roles] for role in ("data", "wal")}
    mixed = [role for role, some in on.items() if 0 < len(some) < len(steps)]
    said = {
        "data": "one side ran on an emulated device and the other on a real one",
        "wal": "the log of one side was on an emulated device and that of the other on a real one",
    }
    return Check(
        "devices",
        "data and log of all runs are each on emulated devices, or each on real ones",
        not mixed,
        f"{len(on['data'])} of {len(steps)} runs with data on an emulated device, {len(on['wal'])} with their log"
        if any(on.values())
        else "all on real ones",
        said[mixed[0]] if mixed else "",
    )


def _undrifted(sides: Sequence[Side]) -> Iterator[Check]:
    """Nothing where no run was probed."""
    if any(probes_of(run) for side in sides for run in side.runs):
        wrong = [said for side in sides for run in side.runs if (said := mixed_up(run))]
        found = [one for side in sides for one in drifts(side.runs)]
        off = [f"the storage itself changed {what}: {_clause(one)}" for what, one in found if one.verdict == DRIFTED]
        unknown = [one for _, one in found if one.verdict == UNKNOWN]
        others = [f"{what}: {one.verdict}" for what, one in found if one.verdict != SAME]
        alike = f"the same in {len(found)} comparison{'s' * (len(found) != 1)} of probes"
        yield Check(
            "raw storage",
            "the storage itself does the same before and after every run, and whenever a variant comes again",
            False if off or wrong else None if unknown or not found else True,
            listed([*wrong, *others]) or (alike if found else "probed once, with nothing to compare"),
            "; ".join([*wrong, *off][:MOST_SAID]),
        )


def drifts(runs: Sequence[RunSummary]) -> list[tuple[str, Drift]]:
    """Of one variant's runs, before against after and each run's beginning against that of the one before it: what was
    compared, as the end of a sentence, and what came out."""
    probed = [(run, probes) for run in runs if (probes := probes_of(run))]
    named = name_of if len(set(map(experiment, runs))) > 1 else lambda run: run.folder
    within = [
        (f"during {named(run)}", drift(probes["before"], probes["after"], _most_dram(run)))
        for run, probes in probed
        if {"before", "after"} <= probes.keys()
    ]
    between = [
        (f"from {named(run)} to {named(later)}", drift(probes["before"], again["before"], _most_dram(run, later)))
        for (run, probes), (later, again) in pairwise(probed)
        if "before" in probes and "before" in again
    ]
    return [*within, *between]


def _most_dram(*runs: RunSummary) -> int | None:
    return max((size for run in runs if (size := dram_of(run.manifest))), default=None)


def warming_up(runs: Sequence[RunSummary]) -> bool:
    """Whether flash answered ever more of the reads in one of them."""
    return any(step.flash_warming for run in runs for step in run.steps)


def probes_of(run: RunSummary) -> dict[str, ProbeResult]:
    """Those made around a run, by "before" and "after"."""
    made = run.manifest.probes
    return {when: one for when, one in (("before", made.before), ("after", made.after)) if one}


def mixed_up(run: RunSummary) -> str | None:
    """Why its probes say nothing of it."""
    if all(one.emulated == is_data_emulated(run.manifest) for one in probes_of(run).values()):
        return None
    ran, other = ("an emulated", "a real") if is_data_emulated(run.manifest) else ("a real", "an emulated")
    return f"{name_of(run)} ran on {ran} device and its probe is of {other} one"


def _clause(found: Drift) -> str:
    return (found.sentence[0].lower() + found.sentence[1:]).rstrip(".")
