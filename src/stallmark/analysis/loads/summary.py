"""The summary of an experiment of several loads: every load of users as its own experiment, and all together."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from stallmark.analysis.cautions import CautionKind, cautions
from stallmark.analysis.compare.settings import drifts
from stallmark.analysis.compare.sides import name_of
from stallmark.analysis.experiment import ExperimentSummary, calls_of, summarise
from stallmark.analysis.finding import Finding, invalid, mixed_versions
from stallmark.analysis.loads.findings import conclusions, load_finding, main_finding
from stallmark.analysis.loads.points import (
    CellsStep,
    LoadClaims,
    LoadPoint,
    Penalty,
    WholePoint,
    cells_steps,
    load_points,
    penalties,
    whole_points,
)
from stallmark.analysis.loads.step import measured_steps, steps_of_loads, whole_steps
from stallmark.analysis.points import group
from stallmark.analysis.run import Call, RunSummary, summarise_together
from stallmark.analysis.thresholds import Threshold
from stallmark.analysis.validity.invalid import ValidityKind
from stallmark.errors import StallmarkError
from stallmark.record.devices import is_emulated
from stallmark.record.reader import LoadRecord, Record

_OF_ONE_LOAD = {
    CautionKind.UNSTEADY,
    CautionKind.WARM_UP_MEASURED,
    CautionKind.TOO_SHORT,
    CautionKind.NOT_STEADY_IN_TIME,
    CautionKind.BESIDE,
}
"""Cautions on the throughput of one load. They are shown on its own page."""

_WHOLE = ""
"""The name of the view that covers all loads of a run."""


@dataclass(frozen=True)
class LoadsSummary:
    """The summary of an experiment of several loads."""

    whole: ExperimentSummary  # the runs, the server and its devices, the answer, the findings and the cautions
    loads: dict[str, ExperimentSummary]  # every load of users by its name
    points: list[LoadPoint]
    steps: list[WholePoint]
    penalties: list[Penalty] = field(default_factory=list)
    cells: list[CellsStep] = field(default_factory=list)

    @property
    def thresholds(self) -> list[Threshold]:
        return [threshold for load in self.loads.values() for threshold in load.thresholds]


def has_loads(records: Sequence[Record]) -> bool:
    """Return True if these are runs of several loads. Raise StallmarkError if only some are."""
    several = [record for record in records if record.loads]
    if 0 < len(several) < len(records):
        other = next(record for record in records if not record.loads)
        raise StallmarkError(
            f"{several[0].folder} has several loads and {other.folder} has one: make a report of each by itself."
        )
    return bool(several)


def views(records: Sequence[Record]) -> dict[str, list[Record]]:
    """Return the records of every load of users by its name, for the runs in which it ran."""
    names = dict.fromkeys(load.name for record in records for load in record.loads if load.kind == "users")
    return {
        name: [
            LoadRecord(record, name)
            for record in records
            if any(load.name == name and any(load.counts) for load in record.loads)
        ]
        for name in names
    }


def summarise_each_load(
    records: Sequence[Record], map_runs: Callable[..., Iterable[dict[str, RunSummary]]] = map
) -> dict[str, ExperimentSummary]:
    """Summarise every load of users of some runs as its own experiment, by name."""
    return _summarise_views(views(records), map_runs)[0]


def summarise_loads(
    records: Sequence[Record], map_runs: Callable[..., Iterable[dict[str, RunSummary]]] = map
) -> LoadsSummary:
    """Summarise runs of several loads; `map_runs` may be the `map` of a pool.

    Raise StallmarkError if the databases of the runs hold different workloads.
    """
    made, runs = _summarise_views({_WHOLE: records} | views(records), map_runs)
    scenario = records[0].manifest.scenario
    of_runs = {(name, name_of(run)): run for name, view in made.items() for run in view.runs}
    of_loads, step_summaries = [], []
    for record, run in zip(records, runs, strict=True):
        measured = measured_steps(record, run)
        own_views = {name: view for (name, folder), view in of_runs.items() if folder == name_of(run)}
        of_loads += steps_of_loads(record, measured, own_views)
        step_summaries += whole_steps(record, measured)
    points, steps = load_points(of_loads), whole_points(step_summaries)
    cost, cells = penalties(points), cells_steps(points, steps)
    claims, mixed = LoadClaims(runs, made), mixed_versions(run.manifest for run in runs)
    findings = list(conclusions(points, steps, cost, cells, made, claims, mixed))
    whole = ExperimentSummary(
        scenario=scenario.name,
        title=scenario.title or scenario.name,
        answers=scenario.answers,
        emulated=any(is_emulated(record.manifest) for record in records),
        axis="variant",
        runs=runs,
        answer=main_finding(findings),
        findings=findings,
        cautions=list(_cautions(runs, made)),
        drifts=[drift for same in group(runs, lambda run: run.manifest.variant.name) for drift in drifts(same)],
    )
    loads = {name: _as_own_experiment(view, name, whole, points, claims, cost, cells) for name, view in made.items()}
    return LoadsSummary(whole, loads, points, steps, cost, cells)


def _summarise_views(
    records: Mapping[str, Sequence[Record]], map_runs: Callable[..., Iterable[dict[str, RunSummary]]]
) -> tuple[dict[str, ExperimentSummary], list[RunSummary]]:
    """Summarise the records of every load, by its name, and those of complete runs. All views of a run are summarised
    together."""
    calls: dict[Path, dict[str, Call]] = {}
    for name, load_records in records.items():
        for call in calls_of(load_records):
            calls.setdefault(call.record.folder, {})[name] = call
    summaries = dict(zip(calls, map_runs(_summarise_run, calls.values()), strict=True))
    of_views = {
        name: [summaries[record.folder][name] for record in load_records]
        for name, load_records in records.items()
        if load_records
    }
    runs = of_views.pop(_WHOLE, [])
    return {
        name: summarise(records[name], lambda *_, summaries_of_load=summaries_of_load: summaries_of_load)
        for name, summaries_of_load in of_views.items()
    }, runs


def _summarise_run(calls: Mapping[str, Call]) -> dict[str, RunSummary]:
    """Return the summaries of the views of one run, by their names."""
    return dict(zip(calls, summarise_together(list(calls.values())), strict=True))


def _as_own_experiment(
    view: ExperimentSummary,
    name: str,
    whole: ExperimentSummary,
    points: Sequence[LoadPoint],
    claims: LoadClaims,
    cost: Sequence[Penalty],
    cells: Sequence[CellsStep],
) -> ExperimentSummary:
    """Return the experiment of one load under its name, with the answer for this load alone."""
    own = load_finding(name, points, claims, cost, cells)
    judged = view.comparison
    answer = view.answer if judged and len(judged.pairs) == 1 else own or view.answer
    findings = [*([own] if own and own is not answer else []), *view.findings]
    return replace(view, title=f"{whole.title}: {name}", answer=answer, findings=findings)


def _cautions(runs: Sequence[RunSummary], views_by_load: dict[str, ExperimentSummary]) -> Iterator[Finding]:
    for run in runs:
        if run.incomplete_because:
            yield invalid(ValidityKind.RUN_INCOMPLETE, said=run.incomplete_because)
    yield from (finding for finding in cautions(runs) if finding.kind not in _OF_ONE_LOAD)
    derived = [
        finding for view in views_by_load.values() for finding in view.cautions if finding.kind is CautionKind.DERIVED
    ]
    yield from (
        finding for number, finding in enumerate(derived) if finding.facts not in [o.facts for o in derived[:number]]
    )
