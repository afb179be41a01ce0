"""The state of an experiment, read from its records while it runs, and the pace of this machine at earlier ones."""

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from itertools import islice
from pathlib import Path

import numpy as np

from stallmark import capabilities
from stallmark.analysis.run import summarise_run
from stallmark.errors import StallmarkError
from stallmark.experiment.estimate import Estimate, estimate
from stallmark.experiment.remaining_runs import command, order_of, refuse_run, scenario_of, with_records
from stallmark.record.devices import machine_facts
from stallmark.record.manifest import FILE, Manifest, read_manifest
from stallmark.record.manifest.course import Machine
from stallmark.record.reader import Record, find_records, other_kind
from stallmark.scenarios.model import AnyScenario, Variant
from stallmark.scenarios.run_order import PlannedRun

# How fast this machine is, from the experiments that it has made: by that an estimate is corrected.

NEWEST = 3
"""Experiments that are looked at, the newest: a machine changes."""


def estimate_for(scenario: AnyScenario, out: Path, made: Manifest) -> Estimate:
    """Estimate the runs of an experiment whose database is there, of which one was `made` on a machine that may have
    made others in `out`."""
    by = pace(out, made.machine) if made.devices.built_in else 1.0
    return estimate(scenario, to_build=0.0, to_copy=False, pace=by)


def pace(out: Path, machine: Machine | None = None) -> float:
    """Return the ratio of measured to expected times, without planned loads, of the newest experiments in `out`.

    Those of a machine count, by default of this one; 1.0 without any.
    """
    experiments = islice(_experiments(out, machine or machine_facts()), NEWEST)
    took_s, expected_s = (sum(column) for column in zip((0.0, 0.0), *experiments, strict=True))
    return took_s / expected_s if expected_s else 1.0


def _experiments(out: Path, machine: Machine) -> Iterator[tuple[float, float]]:
    """Yield the measured and the expected seconds outside planned loads for each experiment, the newest first."""
    folders = {path.parent.parent for path in out.glob(f"*/*/{FILE}") if path.parent.parent != out}
    for folder in sorted(folders, key=lambda folder_path: folder_path.name, reverse=True):
        # Records of another version, or of a scenario that cannot be run, do not count.
        with suppress(StallmarkError):
            made = [
                manifest
                for manifest in map(read_manifest, sorted(path.parent for path in folder.glob(f"*/{FILE}")))
                if _is_representative(manifest, machine)
            ]
            if not made:
                continue
            of_runs = estimate(scenario_of(folder, made[0]), to_build=0.0)
            yield (
                sum(((manifest.took and manifest.took.seconds) or 0.0) - of_runs.load_s for manifest in made),
                sum(of_runs.runs_s[(manifest.sequence or 1) - 1] - of_runs.load_s for manifest in made),
            )


def _is_representative(made: Manifest, machine: Machine) -> bool:
    """Return True if a run's duration depended only on this machine, its embedded server and the run's users."""
    same = (made.machine.cpu, made.machine.cores) == (machine.cpu, machine.cores) and bool(made.devices.built_in)
    whole = made.kind == "transactions" and made.took is not None and made.took.seconds is not None
    waited = any(step.waited for step in made.steps) or made.load_machines
    return same and whole and not (waited or made.hook or made.precondition)


# How far an experiment is, read from its records alone: on any machine that sees their folder, while it runs.

SILENT_S = 60
"""A run that lives writes its record every second; longer pauses are a busy disk's, or a slow network folder's."""
LATELY_S = 10
"""The seconds over which "now" is taken."""


class State(StrEnum):
    RUNNING = "running"
    BETWEEN = "between runs"  # the next one is being prepared, or nobody is there to make it
    SILENT = "silent"  # the run's record has not grown for SILENT_S
    COMPLETE = "complete"
    ENDED = "ended early"


@dataclass(frozen=True)
class Now:
    """The run that is being made; a silent one as it last wrote. `tps` and `read_ms` are means of the last
    LATELY_S whole seconds, None if nothing was measured."""

    number: int
    variant: str
    phase: str
    users: int | None
    elapsed_s: float
    ends_s: float | None
    tps: float | None = None
    read_ms: float | None = None


Lately = Callable[[Record], dict[str, float | None]]


@dataclass(frozen=True)
class Status:
    """The progress of an experiment."""

    folder: Path
    title: str
    started: str
    planned: int
    whole: int
    state: State
    because: str | None = None
    silent_s: float | None = None
    now: Now | None = None
    left_s: float | None = None
    """The time left, or None if unknown."""
    refined: bool = False
    """True if `left_s` comes from complete runs, False if it is the first estimate."""
    resume: str | None = None
    """The command for the missing runs; None if no run is missing, or nothing is recorded."""
    asks: tuple[str, str] | None = None
    """The variant that comes next, and what the operator is asked before it."""


def newest(out: Path) -> Path:
    """Return the folder of the experiment begun last in `out`, or the folder of several that a capability keeps
    together. Raise StallmarkError for an empty `out`.
    """
    folders = {path.parent.parent for path in out.glob("*/*/manifest.json") if path.parent.parent != out}
    folders |= {folder for folder in out.glob("*/") if _holds_experiments(folder)}
    if not folders:
        raise StallmarkError(f"{out} holds no experiment: name the folder of one, or of all with --out.")
    return max(folders, key=lambda folder: folder.name)


def experiment_of(folder: Path) -> Path | None:
    """Return the folder of an experiment itself; of one that a capability makes of several, that begun last, or None
    before there is one."""
    if not _holds_experiments(folder):
        return folder
    return newest(folder) if any(folder.glob("*/*/manifest.json")) else None


def _holds_experiments(folder: Path) -> bool:
    return capabilities.part(other_kind(folder) or "", "progress") is not None


def status(folder: Path) -> Status:
    """Return the progress of the experiment in `folder`."""
    records = find_records(with_records(folder)[:1] or [folder])
    scenario = scenario_of(folder, records[-1].manifest)
    refuse_run(folder)
    expected = estimate_for(scenario, folder.parent, records[0].manifest)
    return status_of(folder, scenario, expected, records, _lately)


def status_of(
    folder: Path,
    scenario: AnyScenario,
    expected: Estimate,
    records: Sequence[Record],
    lately: Lately = lambda record: {},
) -> Status:
    """Return the progress of an experiment from its records and its `expected` duration; `lately` returns the metrics
    of the present run.
    """
    last, made = records[-1], [record.manifest for record in records]
    order = order_of(scenario, made)
    planned = len(order)
    whole = [record.manifest for record in records if record.incomplete_because is None]
    state, because, silent_s = _state(records, planned, len(whole))
    quiet_s = silent_s if state is State.SILENT and silent_s else 0.0
    now = _now(last, lately, quiet_s) if last.manifest.status == "running" else None
    # An ended or silent experiment has no time left: nothing is going to happen.
    live = state in (State.RUNNING, State.BETWEEN)
    to_make = set(range(1, planned + 1)) - {manifest.sequence or 1 for manifest in whole}
    return Status(
        folder=folder,
        title=last.manifest.scenario.title or last.manifest.scenario.name,
        started=records[0].manifest.started,
        planned=planned,
        whole=len(whole),
        state=state,
        because=because,
        silent_s=silent_s,
        now=now,
        left_s=_left_s(expected, made, to_make, now, silent_s or 0.0) if live else None,
        refined=bool(_took_s(made)),
        resume=command(folder, scenario.contents, made) if len(whole) < planned else None,
        asks=_asks(scenario, order, {manifest.sequence for manifest in whole}) if state is State.BETWEEN else None,
    )


def _asks(
    scenario: AnyScenario, order: Sequence[PlannedRun[Variant]], whole: set[int | None]
) -> tuple[str, str] | None:
    number, variant = next((n, run.variant) for n, run in enumerate(order, 1) if n not in whole)
    same = number > 1 and scenario.same_storage(order[number - 2].variant, variant)
    return (variant.name, variant.before.ask) if variant.before and variant.before.ask and not same else None


def _state(records: Sequence[Record], planned: int, whole: int) -> tuple[State, str | None, float | None]:
    last = records[-1]
    if last.manifest.status == "running":
        # A live run writes every second, so its newest file shows if the process still works.
        silent_s = max(0.0, time.time() - max(path.stat().st_mtime for path in last.folder.iterdir()))
        return State.SILENT if silent_s > SILENT_S else State.RUNNING, None, silent_s
    if whole == planned:
        return State.COMPLETE, None, None
    if (ended := last.manifest.ended) and ended.because:
        return State.ENDED, ended.because, None
    if last.incomplete_because:
        return State.ENDED, last.incomplete_because, None
    return State.BETWEEN, None, max(0.0, time.time() - (last.folder / "manifest.json").stat().st_mtime)


def _now(record: Record, lately: Lately, silent_s: float) -> Now:
    """Return the state of the run; of a silent one when it last wrote."""
    made = record.manifest
    elapsed_s = (datetime.now(UTC) - datetime.fromisoformat(made.started)).total_seconds() - silent_s
    step = next((step for step in made.steps if elapsed_s < step.end_s), made.steps[-1] if made.steps else None)
    if step is None:
        phase = "queries"
    elif elapsed_s >= step.end_s:
        phase = "ending"
    else:
        phase = "measuring" if elapsed_s >= step.measure_s else "warming up"
    return Now(
        number=made.sequence or 1,
        variant=made.variant.name,
        phase=phase,
        users=step.users if step else None,
        elapsed_s=elapsed_s,
        ends_s=made.steps[-1].end_s if made.steps else None,
        **lately(record),
    )


def _lately(record: Record) -> dict[str, float | None]:
    try:
        series = summarise_run(record, "now").series
    except ValueError:
        # The record grew between the reading of two columns.
        return {}
    return {"tps": _mean_lately(series.tps), "read_ms": _mean_lately(series.read_ms)}


def _mean_lately(line: np.ndarray) -> float | None:
    recent = line[-LATELY_S - 1 : -1]  # the last second may not be whole
    return float(np.nanmean(recent, dtype=float)) if recent.size and not np.isnan(recent).all() else None


def _left_s(
    expected: Estimate, made: Sequence[Manifest], to_make: Collection[int], now: Now | None, silent_s: float
) -> float:
    """Return the time left. Between runs the next one is being prepared."""
    spent_s, load_spent_s = silent_s, 0.0
    if now:
        spent_s = now.elapsed_s + (made[-1].took.prepare_s if made[-1].took else 0.0)
        load_spent_s = min(now.elapsed_s, expected.load_s)
    return expected.left_s(_took_s(made), to_make, spent_s=spent_s, load_spent_s=load_spent_s)


def _took_s(made: Sequence[Manifest]) -> dict[int, float]:
    return {
        manifest.sequence or 1: manifest.took.seconds
        for manifest in made
        if manifest.took and manifest.took.seconds is not None
    }
