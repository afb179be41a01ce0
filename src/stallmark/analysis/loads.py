"""The summary of an experiment of several loads: every load of users as its own experiment, and all together."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from stallmark.analysis.cautions import CautionKind, cautions
from stallmark.analysis.ceiling import CeilingKind, MailIoKind
from stallmark.analysis.compare.settings import drifts
from stallmark.analysis.compare.sides import name_of
from stallmark.analysis.compare.summary import PairKind
from stallmark.analysis.experiment import ExperimentSummary, calls_of, common_kind, summarise
from stallmark.analysis.finding import ExperimentKind, Finding, Severity, caution, info, invalid, mixed_versions
from stallmark.analysis.load_points import (
    CellsStep,
    LoadClaims,
    LoadPoint,
    Penalty,
    WholePoint,
    cells_findings,
    cells_steps,
    load_points,
    penalties,
    penalty_findings,
    whole_points,
)
from stallmark.analysis.load_steps import LoadsKind, measured_steps, steps_of_loads, whole_steps
from stallmark.analysis.metrics import group
from stallmark.analysis.rules import Threshold
from stallmark.analysis.run import Call, RunSummary, summarise_together
from stallmark.analysis.service_level import LevelOutcome
from stallmark.analysis.validity import ValidityKind
from stallmark.record.devices import is_emulated
from stallmark.record.reader import LoadRecord, Record
from stallmark.stats.thresholds import HOST_FREE, LOADS_READ, SAME

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
    records: Sequence[Record], map_runs: Callable[..., Iterable[Any]] = map
) -> dict[str, ExperimentSummary]:
    """Summarise every load of users of some runs as its own experiment, by name; runs of one load under no name."""
    if common_kind(records) != "loads":
        return {"": summarise(records, map_runs)}
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
    yield from (same[0] for same in group(derived, lambda finding: finding.facts["workload"]))


def conclusions(
    points: Sequence[LoadPoint],
    steps: Sequence[WholePoint],
    cost: Sequence[Penalty],
    cells: Sequence[CellsStep],
    views: Mapping[str, ExperimentSummary],
    claims: LoadClaims,
    mixed: Finding | None = None,
) -> Iterator[Finding]:
    """Yield the conclusions from the loads of an experiment. `mixed`: the reason not to compare the runs at all."""
    # Wrong data make all other findings worthless.
    worthless = (ExperimentKind.DATA_WRONG, ExperimentKind.NOTHING_MEASURED)
    yield from [finding for view in views.values() for finding in view.findings if finding.kind in worthless][:1]
    if not points:
        yield invalid(ExperimentKind.NOTHING_MEASURED)
        return
    if mixed:
        yield mixed
        return
    yield from _ceilings(views)
    yield from penalty_findings(cost)
    yield from cells_findings(cells)
    yield from _verdicts(points, views)
    if not any(view.comparison for view in views.values()):
        yield from _variants(points, claims, bool(cost))
    yield from _incomparable_variants(views)
    if not cost and not cells and not all(point.first.alone for point in points):
        yield from _rates_together(points, views)
    yield from (finding for view in views.values() for finding in view.findings if isinstance(finding.kind, MailIoKind))
    yield from _levels(points)
    yield from _host(cells)
    yield from _reads(steps)
    yield from _waiting_queries(points)
    yield from _ended_raw_loads(points)


def main_finding(findings: Sequence[Finding]) -> Finding | None:
    """Return the finding to show above all others: one that makes the figures worthless, else the first."""
    return next(
        (finding for finding in findings if finding.severity is Severity.INVALID), findings[0] if findings else None
    )


def load_finding(
    name: str, points: Sequence[LoadPoint], claims: LoadClaims, cost: Sequence[Penalty], cells: Sequence[CellsStep]
) -> Finding | None:
    """Return the finding on one load that its own page begins with, or None if every finding covers several loads."""
    own = [point for point in points if point.first.load == name]
    findings = [
        *penalty_findings([penalty for penalty in cost if penalty.load == name]),
        *cells_findings([replace(step, loads=[x for x in step.loads if x.load == name]) for step in cells]),
        *_variants(own, claims, bool(cost)),
    ]
    return findings[0] if findings else None


def _verdicts(points: Sequence[LoadPoint], views: Mapping[str, ExperimentSummary]) -> Iterator[Finding]:
    """Yield the loads in which one variant is better than another, in steps of several loads that were repeated."""
    shared = {same[0].first.step for same in group(points, lambda point: point.first.step) if not same[0].first.alone}
    pairs = [(name, pair) for name, view in views.items() if view.comparison for pair in view.comparison.pairs]
    for same in group(
        [named for named in pairs if named[1].step in shared], lambda named: (named[1].a, named[1].b, named[1].step)
    ):
        pair = same[0][1]
        yield info(
            LoadsKind.VERDICTS,
            a=pair.a,
            b=pair.b,
            step=pair.step,
            loads=[[name, pair.claim.verdict, pair.claim.ratio, pair.primary.name] for name, pair in same],
        )


def _incomparable_variants(views: Mapping[str, ExperimentSummary]) -> Iterator[Finding]:
    """Yield each pair of variants that must not be compared, once for all loads."""
    incomparable = [
        finding for view in views.values() for finding in view.findings if finding.kind is PairKind.NOT_COMPARABLE
    ]
    yield from (same[0] for same in group(incomparable, lambda finding: (finding.facts["a"], finding.facts["b"])))


def _variants(points: Sequence[LoadPoint], claims: LoadClaims, alone: bool) -> Iterator[Finding]:
    """Compare variants in the last step that they share, load by load, as far as they may be compared with each
    other."""
    loads = []
    for same in group(points, lambda point: point.first.load):
        shown = [point for point in same if point.rate and not point.doubts and not (alone and point.first.alone)]
        by_step = [same_step for same_step in group(shown, lambda point: point.first.step) if len(same_step) > 1]
        if not by_step or len({point.first.emulated for point in by_step[-1]}) > 1 or by_step[-1][0].first.open_loop:
            continue
        alike = claims.comparable_points(by_step[-1])
        # Among equal rates the best is the first and the worst the last: two different variants.
        best = max(alike, key=lambda point: point.rate or 0.0)
        worst = min(reversed(alike), key=lambda point: point.rate or 0.0)
        claim, first = claims.claim(worst, best), best.first
        if len(alike) < 2 or claim.ratio is None:
            continue
        differ = claim.ratio > 1 + SAME
        names = first.variant, worst.first.variant
        loads.append([first.load, first.kind, first.count, *names, claim.ratio, claim.verdict, differ])
    if loads:
        yield info(LoadsKind.VARIANTS, loads=loads, fewest_runs=min(len(point.runs) for point in points))


def _ceilings(views: Mapping[str, ExperimentSummary]) -> Iterator[Finding]:
    """Yield the outcome of searches. One that varied several loads together is in the view of each, with its rate."""
    named = [
        (name, finding)
        for name, view in views.items()
        for finding in view.findings
        if isinstance(finding.kind, CeilingKind)
    ]
    if len({name for name, _ in named}) == 1:
        yield from (finding for _, finding in named)
        return
    for same in group(named, lambda pair: (pair[1].kind, *(str(pair[1].facts.get(name)) for name in _OF_A_SEARCH))):
        if same[0][1].kind in (CeilingKind.LIMIT, CeilingKind.DRIVER):
            yield from (info(LoadsKind.OF_LOAD, load=name, ceiling=finding) for name, finding in same)
        else:
            yield _without_load([finding for _, finding in same])


_OF_A_SEARCH = ("variants", "variant", "repeat", "breaks")


def _without_load(findings: Sequence[Finding]) -> Finding:
    """Return the finding of several loads on one search without what differs between them."""
    first = findings[0]
    facts = dict(first.facts) | dict.fromkeys({"per_s", "primary"} & first.facts.keys())
    if len({limit.kind if (limit := finding.facts.get("limit")) else None for finding in findings}) > 1:
        facts["limit"] = None
    return replace(first, facts=facts)


def _rates_together(points: Sequence[LoadPoint], views: Mapping[str, ExperimentSummary]) -> Iterator[Finding]:
    """Yield the rate of every load in the first variant: of its last step, or of a search the highest level that
    held."""
    variant = points[0].first.variant
    several = len({point.first.variant for point in points}) > 1
    steps = list(dict.fromkeys(point.first.step for point in points if point.first.variant == variant))
    searches = [ceiling for view in views.values() for ceiling in view.ceilings if ceiling.variant == variant]
    holding = {step.step for ceiling in searches for step in ceiling.steps_at(ceiling.holds)}
    chosen = [step for step in steps if step in holding or not searches]
    here = [
        point
        for point in points
        if (point.first.variant, point.first.step) == (variant, *chosen[-1:]) and point.rate is not None
    ]
    if here:
        yield info(
            LoadsKind.AT_ONCE,
            variant=variant if several else None,
            step=chosen[-1] if len(steps) > 1 else None,
            loads=[
                [
                    point.first.load,
                    point.first.kind,
                    point.first.primary,
                    point.rate,
                    point.mean(lambda run: run.mb_per_s),
                ]
                for point in here
            ],
        )


def _levels(points: Sequence[LoadPoint]) -> Iterator[Finding]:
    """Yield the loads that kept their service level, and the steps where they did not."""
    judged = [(point, level) for point in points if (level := point.level)]
    several = len({point.first.variant for point, _ in judged}) > 1
    loads = []
    for same in group(judged, lambda judgement: judgement[0].first.load):
        known = [(point, level) for point, level in same if level.outcome is not LevelOutcome.NOT_KNOWN]
        broken = [point.first for point, level in known if level.outcome is LevelOutcome.NOT_MET]
        by_mean = any(level.outcome is LevelOutcome.MEAN_ONLY for _, level in known)
        names = [f"{step.variant}, {step.step}" if several else step.step for step in broken]
        if known:
            unknown = len(same) - len(known)
            loads.append([same[0][0].first.load, same[0][1].limit_ms, len(known), names, by_mean, unknown])
    if loads:
        some_broken = any(names for _, _, _, names, *_ in loads)
        yield (caution if some_broken else info)(LoadsKind.LEVELS, loads=loads)


def _host(cells: Sequence[CellsStep]) -> Iterator[Finding]:
    """Yield the CPU and memory use of the host: the limit of a storage test must not be its CPUs or its memory."""
    runs = [run for step in cells for run in step.whole.runs]
    cpu = max((run.cpu_busy_share for run in runs if run.cpu_busy_share is not None), default=None)
    memory = max((run.memory_share for run in runs if run.memory_share is not None), default=None)
    if cpu is None:
        return
    over = cpu > HOST_FREE or (memory or 0.0) > HOST_FREE
    unknown = sum(run.cpu_busy_share is None or run.memory_share is None for run in runs)
    facts = {"limit_share": HOST_FREE, "unknown": unknown, "runs": len(runs)}
    yield (caution if over else info)(LoadsKind.HOST, cpu_share=cpu, memory_share=memory, **facts)


def _reads(steps: Sequence[WholePoint]) -> Iterator[Finding]:
    """Yield a caution on steps whose server reads are not explained by the loads' sessions."""
    unlike = [
        (run, io)
        for point in steps
        for run in point.runs
        if (io := run.io) and io.loads_share is not None and abs(io.loads_share - 1) > LOADS_READ
    ]
    if not unlike:
        return
    worst, io = max(unlike, key=lambda pair: abs((pair[1].loads_share or 1.0) - 1))
    total = io.server.reads if io.server else 1.0
    others = sorted(((io.others or {}).items()), key=lambda entry: -entry[1])
    yield caution(
        LoadsKind.READS_UNLIKE,
        steps=list(dict.fromkeys(step.step for step, _ in unlike)),
        share=io.loads_share,
        step=worst.step,
        others=[[process, reads / total] for process, reads in others if reads / total > LOADS_READ / 2],
    )


def _waiting_queries(points: Sequence[LoadPoint]) -> Iterator[Finding]:
    """Yield, for each load of queries at a rate, whether they waited for a stream, and the step in which most did."""
    waiting = [(run, run.late) for point in points for run in point.runs if run.late]
    several = len({step.variant for step, _ in waiting}) > 1
    for same in group(waiting, lambda pair: pair[0].load):
        worst, late = max(same, key=lambda pair: pair[1].waited / pair[1].due)
        yield (caution if late.waited else info)(
            LoadsKind.QUERIES_WAITED,
            load=worst.load,
            steps=len(same),
            step=f"{worst.variant}, {worst.step}" if several else worst.step,
            due=late.due,
            waited=late.waited,
            mean_s=late.mean_s,
            worst_s=late.worst_s,
        )


def _ended_raw_loads(points: Sequence[LoadPoint]) -> Iterator[Finding]:
    ended = [doubt for point in points for doubt in point.doubts if doubt.kind is LoadsKind.RAW_ENDED]
    yield from (caution(LoadsKind.RAW_ENDED, **doubt.facts) for doubt in ended)
