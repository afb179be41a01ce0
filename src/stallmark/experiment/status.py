"""The time that an experiment will take, the pace of this machine at earlier ones, and the state of one that runs."""

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from itertools import islice
from pathlib import Path

import numpy as np

from stallmark import capabilities
from stallmark.analysis.run import summarise_run
from stallmark.errors import StallmarkError
from stallmark.experiment.remaining_runs import command, order_of, refuse_run, scenario_of, with_records
from stallmark.loaders import loader_for
from stallmark.record.manifest import FILE, Manifest, machine_facts, read_manifest
from stallmark.record.manifest.course import Machine
from stallmark.record.reader import Record, find_records, other_kind
from stallmark.scenarios.base import PlannedRun
from stallmark.scenarios.load import RawLoad
from stallmark.scenarios.model import AnyScenario, ProbeScenario, QueryScenario, TimedScenario, Variant
from stallmark.transactions import find_workload

# The rates by which an experiment's time is estimated before its first run; how fast the data of a workload are built
# and checked is the workload's own fact.
#
# Measured with the embedded PostgreSQL 18.4 on two cores of a virtual machine (x86-64, Debian 12, a disk that reads 390
# and writes 740 MB/s) which others used as well. So builds and copies are by their CPU time, spread over two cores,
# and what belongs to a run is half of what it took at a load of 13. Bytes are those of the tables with their keys
# (`loaders.load.expected_bytes`). What this machine's earlier experiments took corrects all of them (status.py).

MIB = 1024**2

BEGIN_S = 3.0
"""A server is made and started before a load."""
COPY_BYTES_PER_S = 200 * MIB
"""A database is copied, with the log that belongs to it, or brought back from the copy."""
PREFILL_BYTES_PER_S = 400 * MIB
RUN_S = 7.0
"""A server starts with its cap, users begin and end, and the record is closed."""
REPORT_S = 5.0
"""The report is written when all runs are made."""
WRITE_BYTES_PER_S = 300 * MIB
"""The file of a probe is written."""
STEP_S = 1.0
"""A step of a probe begins."""
QUERY_BYTES_PER_S = 400 * MIB
"""A query of the warehouse, as if it went once over all its data, in memory."""
QUERY_READ_BYTES_PER_S = 100 * MIB
"""Added for the data that the buffer pool does not hold, on a real disk."""
QUERY_EMULATED_BYTES_PER_S = 14 * MIB
"""The rate on emulated arrays, fast or slow, as measured with power-memory-storage."""


@dataclass(frozen=True)
class Estimate:
    """The time of an experiment."""

    build_s: float
    """The time for the database and the copy from which runs start."""
    runs_s: tuple[float, ...]
    """The time of each run with preparation and follow-up, in run order."""
    load_s: float = 0.0
    """The time of the load in each run, or 0 if the load is not planned by time."""
    at_most: bool = False
    """True if runs wait until they are steady, and may end sooner."""
    asks: bool = False
    """True if an operator is asked, which takes an unknown time."""
    chooses: bool = False
    """True if there may be fewer runs, as the sizes of a curve are chosen."""
    longest_s: float | None = None
    """The maximum for all runs if they search for a ceiling, which usually ends long before."""

    @property
    def ends_sooner(self) -> bool:
        """Return True if `total_s` is a maximum."""
        return self.longest_s is None and (self.at_most or self.chooses)

    @property
    def total_s(self) -> float:
        return self.build_s + sum(self.runs_s) + REPORT_S

    def left_s(
        self, took_s: Mapping[int, float], to_make: Collection[int], *, spent_s: float = 0.0, load_spent_s: float = 0.0
    ) -> float:
        """Return the time left for the runs `to_make`, from the times of complete runs, `took_s`, by number.

        The part of a run that is not planned by time is scaled by the ratio of measured to estimated time so far. With
        60 s of load planned in each run and 20 s estimated for the rest, complete runs of 100 s give a factor of 2 (40
        s ÷ 20 s), and 100 s for each run left. `spent_s` of the run under way is subtracted, but at least the remaining
        load is left; `load_spent_s` is the part spent on its load.
        """
        # A load that may end early is not a planned time, so it is scaled like the rest of the run.
        planned_s = 0.0 if self.at_most or self.longest_s else self.load_s
        seen_s = sum(took_s.values()) - planned_s * len(took_s)
        expected_s = sum(self.runs_s[number - 1] - planned_s for number in took_s)
        by = max(0.0, seen_s / expected_s) if expected_s > 0 else 1.0
        in_all_s = sum(planned_s + by * (self.runs_s[number - 1] - planned_s) for number in to_make)
        return max(0.0, planned_s * len(to_make) - load_spent_s, in_all_s - spent_s)


def estimate(
    scenario: AnyScenario | ProbeScenario,
    dialect: str = "postgresql",
    *,
    to_build: float = 1.0,
    to_copy: bool = True,
    pace: float = 1.0,
) -> Estimate:
    """Estimate an experiment. `to_build` is the share of the database that is missing, `to_copy` is True if a copy is
    missing, and `pace` is the ratio of real to estimated time on this machine, for everything not planned by time."""
    if isinstance(scenario, ProbeScenario):
        return _estimate_probe(scenario, pace)
    for estimate_own in capabilities.parts("estimate"):
        if expected := estimate_own(scenario, dialect, to_build=to_build, to_copy=to_copy, pace=pace):
            return expected
    from stallmark.loaders.load import expected_bytes  # imports SQLAlchemy, which reading records does not need

    contents = scenario.contents
    sizes = [
        (part, expected_bytes(dialect, part, loader_for(part.name).select_scale(contents.scale)))
        for part in find_workload(contents.name).parts
    ]
    data_bytes = sum(size for _, size in sizes)
    check_s = sum(size / (part.check_mib_per_s * MIB) for part, size in sizes)
    build_s = to_build * (BEGIN_S + sum(size / (part.build_mib_per_s * MIB) for part, size in sizes))
    if to_copy and scenario.reset == "restore":
        build_s += data_bytes / COPY_BYTES_PER_S
    order = scenario.run_order()
    timelines = (
        [scenario.timeline(variant) for variant in scenario.variants] if isinstance(scenario, TimedScenario) else []
    )
    load_s, longest_s = max((timeline.end_s for timeline in timelines), default=0.0), None
    if isinstance(scenario, TimedScenario) and any(map(scenario.searched_of, scenario.variants)):
        usual_s = max(map(scenario.usual_s, scenario.variants))
        load_s, longest_s = usual_s, len(order) * (load_s - usual_s)
    estimate = Estimate(
        build_s=pace * build_s,
        runs_s=tuple(
            load_s
            + pace * (check_s + _overhead_s(scenario, planned.variant, data_bytes))
            # Preconditioning is repeated only if the storage changes.
            + _writes_s(scenario, data_bytes)
            * (not scenario.same_storage(planned.variant, before.variant if before else None))
            for before, planned in zip([None, *order], order, strict=False)
        ),
        load_s=load_s,
        at_most=any(timeline.warm_up_limits for timeline in timelines),
        asks=any(variant.before and variant.before.ask for variant in scenario.variants),
        chooses=scenario.curve is not None,
    )
    return estimate if longest_s is None else replace(estimate, longest_s=estimate.total_s + longest_s)


def _overhead_s(scenario: AnyScenario, variant: Variant, data_bytes: int) -> float:
    """Return the seconds of a run outside its planned load, without the check of its data."""
    seconds = RUN_S
    if scenario.reset == "restore":
        seconds += data_bytes / COPY_BYTES_PER_S
    if scenario.start_cache == "prefilled":
        pool = scenario.pool_of(variant)
        seconds += min(data_bytes, pool.resolve(data_bytes) if pool else data_bytes) / PREFILL_BYTES_PER_S
    if probe := scenario.probe:
        steps_s = len(probe.steps()) * (probe.seconds + STEP_S)
        # One probe before the load, and one after it.
        seconds += 2 * (probe.size.resolve(data_bytes) / WRITE_BYTES_PER_S + steps_s)
    if isinstance(scenario, TimedScenario):
        raw = [load for load in scenario.loads_of(variant).values() if isinstance(load, RawLoad)]
        seconds += scenario.most_cells * sum(load.size for load in raw) / WRITE_BYTES_PER_S
    if isinstance(scenario, QueryScenario):
        seconds += _queries_s(scenario, variant, data_bytes)
    return seconds


def _writes_s(scenario: AnyScenario, data_bytes: int) -> float:
    """Return the longest time for preconditioning, which every change of variant needs."""
    if (choice := scenario.precondition) is None:
        return 0.0
    return choice.size.resolve(data_bytes) / WRITE_BYTES_PER_S + choice.rounds * (choice.round + STEP_S)


def _queries_s(scenario: QueryScenario, variant: Variant, data_bytes: int) -> float:
    """Return the time of the queries, none of them longer than its limit."""
    asked, known = scenario.queries, len(scenario.query_streams.queries)
    bytes_per_s = QUERY_EMULATED_BYTES_PER_S if scenario.emulates(variant) else QUERY_READ_BYTES_PER_S
    pool = scenario.pool_of(variant)
    read_bytes = max(0, data_bytes - (pool.resolve(data_bytes) if pool else 0))
    query_s = data_bytes / QUERY_BYTES_PER_S + read_bytes / bytes_per_s
    query_count = len(asked.only or scenario.query_streams.queries) * len(asked.dop or [None])
    queries = {"power": known, "throughput": known * scenario.streams, "each": query_count}
    return min(asked.timeout, query_s) * sum(queries[phase] for phase in asked.phases)


def _estimate_probe(scenario: ProbeScenario, pace: float) -> Estimate:
    asked = scenario.probe
    load_s = len(asked.steps()) * asked.seconds
    beside_s = asked.size_bytes / WRITE_BYTES_PER_S + len(asked.steps()) * STEP_S
    return Estimate(0.0, (load_s + pace * beside_s,) * len(scenario.variants), load_s)


# The state of an experiment, read from its records while it runs, and the pace of this machine at earlier ones.

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
    """The run that is being made. `tps` and `read_ms` are means of the last LATELY_S whole seconds, None if nothing
    was measured."""

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
    now = _now(last, lately) if last.manifest.status == "running" else None
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


def _now(record: Record, lately: Lately) -> Now:
    made = record.manifest
    elapsed_s = (datetime.now(UTC) - datetime.fromisoformat(made.started)).total_seconds()
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
