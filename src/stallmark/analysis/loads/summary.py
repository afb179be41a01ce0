"""The summary of an experiment of several loads: every load of users as an experiment of its own, and all of them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from stallmark.analysis.cautions import CautionKind, cautions
from stallmark.analysis.compare.settings import drifts
from stallmark.analysis.compare.sides import name_of
from stallmark.analysis.experiment import ExperimentSummary, calls_of, summarise
from stallmark.analysis.finding import Finding, invalid, mixed_versions
from stallmark.analysis.loads.findings import answer_of, conclusions, of_load
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
from stallmark.record.of_load import LoadRecord
from stallmark.record.reader import Record

_OF_ONE_LOAD = {
    CautionKind.UNSTEADY,
    CautionKind.WARM_UP_MEASURED,
    CautionKind.TOO_SHORT,
    CautionKind.NOT_STEADY_IN_TIME,
    CautionKind.BESIDE,
}
"""Cautions on the throughput of a load, which are on its own page."""

_WHOLE = ""
"""The name of the view that is of all loads of a run."""


@dataclass(frozen=True)
class LoadsSummary:
    """The summary of an experiment of several loads. `whole` has the runs, what the server and its devices did in them,
    the answer, the findings and the cautions; `loads` every load of users by its name."""

    whole: ExperimentSummary
    loads: dict[str, ExperimentSummary]
    points: list[LoadPoint]
    steps: list[WholePoint]
    penalties: list[Penalty] = field(default_factory=list)
    cells: list[CellsStep] = field(default_factory=list)

    @property
    def thresholds(self) -> list[Threshold]:
        return [one for load in self.loads.values() for one in load.thresholds]


def has_loads(records: Sequence[Record]) -> bool:
    """Tell whether these are runs of several loads. Raise StallmarkError where some are and some are not."""
    several = [record for record in records if record.loads]
    if 0 < len(several) < len(records):
        one = next(record for record in records if not record.loads)
        raise StallmarkError(
            f"{several[0].folder} has several loads and {one.folder} has one: make a report of each by itself."
        )
    return bool(several)


def views(records: Sequence[Record]) -> dict[str, list[Record]]:
    """Return the records of every load of users by its name, of those runs in which it ran."""
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
    records: Sequence[Record], each: Callable[..., Iterable[dict[str, RunSummary]]] = map
) -> dict[str, ExperimentSummary]:
    """Summarise every load of users of some runs as an experiment of its own, by name."""
    return _summarise_views(views(records), each)[0]


def summarise_loads(
    records: Sequence[Record], each: Callable[..., Iterable[dict[str, RunSummary]]] = map
) -> LoadsSummary:
    """Summarise runs of several loads; `each` may be the `map` of a pool. Raise StallmarkError where the databases they
    ran on hold other workloads."""
    made, runs = _summarise_views({_WHOLE: records} | views(records), each)
    scenario = records[0].manifest.scenario
    of_runs = {(name, name_of(run)): run for name, view in made.items() for run in view.runs}
    of_loads, of_all = [], []
    for record, run in zip(records, runs, strict=True):
        measured = measured_steps(record, run)
        of_loads += steps_of_loads(record, measured, _of_run(of_runs, name_of(run)))
        of_all += whole_steps(record, measured)
    points, steps = load_points(of_loads), whole_points(of_all)
    cost, cells = penalties(points), cells_steps(points, steps)
    claims, mixed = LoadClaims(runs, made), mixed_versions(run.manifest for run in runs)
    found = list(conclusions(points, steps, cost, cells, made, claims, mixed))
    whole = ExperimentSummary(
        scenario=scenario.name,
        title=scenario.title or scenario.name,
        answers=scenario.answers,
        emulated=any(is_emulated(record.manifest) for record in records),
        axis="variant",
        runs=runs,
        answer=answer_of(found),
        findings=found,
        cautions=list(_cautions(runs, made)),
        drifts=[one for same in group(runs, _variant) for one in drifts(same)],
    )
    loads = {name: _titled(view, name, whole, points, claims, cost, cells) for name, view in made.items()}
    return LoadsSummary(whole, loads, points, steps, cost, cells)


def _summarise_views(
    records: Mapping[str, Sequence[Record]], each: Callable[..., Iterable[dict[str, RunSummary]]]
) -> tuple[dict[str, ExperimentSummary], list[RunSummary]]:
    """Summarise the records of every load, by its name, and those of whole runs. The views of a run are summarised
    together."""
    calls: dict[Path, dict[str, Call]] = {}
    for name, some in records.items():
        for call in calls_of(some):
            calls.setdefault(call.record.folder, {})[name] = call
    summaries = dict(zip(calls, each(_summarise_run, calls.values()), strict=True))
    of_views = {name: [summaries[one.folder][name] for one in some] for name, some in records.items() if some}
    runs = of_views.pop(_WHOLE, [])
    return {name: summarise(records[name], lambda *_, some=some: some) for name, some in of_views.items()}, runs


def _summarise_run(calls: Mapping[str, Call]) -> dict[str, RunSummary]:
    """Return the summaries of the views of one run, by their names."""
    return dict(zip(calls, summarise_together(list(calls.values())), strict=True))


def _titled(
    view: ExperimentSummary,
    name: str,
    whole: ExperimentSummary,
    points: Sequence[LoadPoint],
    claims: LoadClaims,
    cost: Sequence[Penalty],
    cells: Sequence[CellsStep],
) -> ExperimentSummary:
    """Return the experiment of one load under its name, with the answer of what belongs to it alone."""
    own = of_load(name, points, claims, cost, cells)
    judged = view.comparison
    answer = view.answer if judged and len(judged.pairs) == 1 else own or view.answer
    findings = [*([own] if own and own is not answer else []), *view.findings]
    return replace(view, title=f"{whole.title}: {name}", answer=answer, findings=findings)


def _cautions(runs: Sequence[RunSummary], made: dict[str, ExperimentSummary]) -> Iterator[Finding]:
    for run in runs:
        if run.incomplete_because:
            yield invalid(ValidityKind.RUN_INCOMPLETE, said=run.incomplete_because)
    yield from (one for one in cautions(runs) if one.kind not in _OF_ONE_LOAD)
    derived = [one for view in made.values() for one in view.cautions if one.kind is CautionKind.DERIVED]
    yield from (one for number, one in enumerate(derived) if one.facts not in [o.facts for o in derived[:number]])


def _of_run(of_runs: dict[tuple[str, str], RunSummary], named: str) -> dict[str, RunSummary]:
    return {name: run for (name, of), run in of_runs.items() if of == named}


def _variant(run: RunSummary) -> str:
    return run.manifest.variant.name
