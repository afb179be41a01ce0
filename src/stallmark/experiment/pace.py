"""How fast this machine is, from the experiments that it has made: by that an estimate is corrected."""

from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

from stallmark.errors import StallmarkError
from stallmark.experiment.estimate import Estimate, estimate
from stallmark.experiment.resume import scenario_of
from stallmark.record.devices import machine_facts
from stallmark.record.manifest import FILE, Manifest, read_manifest
from stallmark.record.manifest.course import Machine
from stallmark.scenarios.model import AnyScenario

NEWEST = 3
"""Experiments that are looked at, the newest: a machine changes."""


def estimate_for(scenario: AnyScenario, out: Path, made: Manifest) -> Estimate:
    """Estimate the runs of an experiment whose database is there, of which one was `made` on a machine that may have
    made others in `out`."""
    by = pace(out, made.machine) if made.devices.built_in else 1.0
    return estimate(scenario, to_build=0.0, to_copy=False, pace=by)


def pace(out: Path, machine: Machine | None = None) -> float:
    """Return how many times as long as by the rates everything took that is not planned by time, in the newest
    experiments that a machine (by default this one) has made in `out`; 1.0 where there are none."""
    found = islice(_experiments(out, machine or machine_facts()), NEWEST)
    took_s, expected_s = (sum(one) for one in zip((0.0, 0.0), *found, strict=True))
    return took_s / expected_s if expected_s else 1.0


def _experiments(out: Path, machine: Machine) -> Iterator[tuple[float, float]]:
    """Yield by experiment, the newest first, the seconds beside the planned load that its runs took, and those that
    were expected."""
    folders = {path.parent.parent for path in out.glob(f"*/*/{FILE}") if path.parent.parent != out}
    for folder in sorted(folders, key=lambda one: one.name, reverse=True):
        with suppress(StallmarkError):  # of another version, or no scenario that could be run
            made = [
                one
                for one in map(read_manifest, sorted(path.parent for path in folder.glob(f"*/{FILE}")))
                if _tells(one, machine)
            ]
            if not made:
                continue
            of_runs = estimate(scenario_of(folder, made[0]), to_build=0.0)
            yield (
                sum(((one.took and one.took.seconds) or 0.0) - of_runs.load_s for one in made),
                sum(of_runs.runs_s[(one.sequence or 1) - 1] - of_runs.load_s for one in made),
            )


def _tells(made: Manifest, machine: Machine) -> bool:
    """Tell whether a run is of that machine and its embedded server, and nothing but these and its users decided how
    long it took."""
    same = (made.machine.cpu, made.machine.cores) == (machine.cpu, machine.cores) and bool(made.devices.built_in)
    whole = made.kind == "transactions" and made.took is not None and made.took.seconds is not None
    waited = any(step.waited for step in made.steps) or made.load_machines
    return same and whole and not (waited or made.hook or made.precondition)
