"""The summary of an experiment: its runs, what varies between them, and what follows from them.

The report, the terminal table and `--json` all show these values and compute none of their own.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from stallmark.analysis.answer import answer
from stallmark.analysis.cautions import cautions
from stallmark.analysis.ceiling.summary import Ceiling, ceilings
from stallmark.analysis.compare.claims import Claims
from stallmark.analysis.compare.storage import drifts
from stallmark.analysis.compare.summary import ComparisonSummary
from stallmark.analysis.compare.verdicts import comparison_within
from stallmark.analysis.conclusions import conclusions
from stallmark.analysis.data_versions import mixed_versions
from stallmark.analysis.finding import Finding
from stallmark.analysis.points import group, points
from stallmark.analysis.pool_curve.curve import pool_curves
from stallmark.analysis.pool_curve.summary import PoolCurve
from stallmark.analysis.probe.drift import Drift
from stallmark.analysis.queries.comparison import compare
from stallmark.analysis.queries.findings import query_cautions, query_findings
from stallmark.analysis.queries.summary import QueryComparison
from stallmark.analysis.run import Call, RunSummary, summarise_run
from stallmark.analysis.step_summary import StepSummary
from stallmark.analysis.thresholds import Threshold, judge
from stallmark.errors import StallmarkError
from stallmark.record.devices import is_emulated
from stallmark.record.reader import Record


@dataclass(frozen=True)
class Question:
    """The question of one of several experiments, and its variants."""

    title: str
    answers: str
    variants: list[str]


@dataclass(frozen=True)
class ExperimentSummary:
    """The summary of an experiment, or of several together, with everything that the report shows."""

    scenario: str
    title: str
    answers: str
    emulated: bool  # any run on an emulated array
    axis: str  # what varies between the steps: "buffer_pool", "users", "device" or "variant"
    runs: list[RunSummary]
    answer: Finding | None = None  # the one finding above all others
    findings: list[Finding] = field(default_factory=list)  # most important first
    cautions: list[Finding] = field(default_factory=list)  # what the reader must not conclude
    queries: QueryComparison | None = None  # of runs of queries
    comparison: ComparisonSummary | None = None  # of variants that were repeated
    not_comparable: list[list[str]] = field(default_factory=list)  # pairs of variants, in any step
    drifts: list[tuple[tuple[str, ...], Drift]] = field(default_factory=list)  # of raw storage, during or between runs
    thresholds: list[Threshold] = field(default_factory=list)
    curves: list[PoolCurve] = field(default_factory=list)  # of memory, one for each kind of storage
    ceilings: list[Ceiling] = field(default_factory=list)  # of every run that searched for one
    questions: list[Question] = field(default_factory=list)  # of each, where there are several experiments

    @property
    def steps(self) -> list[StepSummary]:
        return [step for run in self.runs for step in run.steps]


def calls_of(records: Sequence[Record]) -> list[Call]:
    """Return what `summarise_run` is to be called with for each run of an experiment."""
    variants = Counter(_variant(record) for record in records)
    return [Call(record, f"run{number}", variants[_variant(record)] > 1) for number, record in enumerate(records, 1)]


def summarise(records: Sequence[Record], each: Callable[..., Iterable[RunSummary]] = map) -> ExperimentSummary:
    """Summarise the runs in the order given; `each` may be the `map` of a pool.

    Raise StallmarkError when there is none.
    """
    if not records:
        raise StallmarkError("There is no run record to summarise.")
    if probes := [record for record in records if record.is_probe]:
        raise StallmarkError(
            f"{probes[0].folder} is a probe of raw storage, which has no transactions: `stallmark report` shows probes "
            "by themselves."
        )
    if several := [record for record in records if record.manifest.loads]:
        raise StallmarkError(
            f"{several[0].folder} is a run of several loads: `stallmark report` and `stallmark compare` show each."
        )
    runs = _told_apart(list(each(summarise_run, *zip(*calls_of(records), strict=True))))
    steps = [step for run in runs for step in run.steps]
    scenario = records[0].manifest.scenario
    axis = find_axis(steps)
    if 0 < sum(run.queries is not None for run in runs) < len(runs):
        raise StallmarkError(
            "Runs of queries and runs of transactions do not compare: make a report of each by itself."
        )
    if len(results := dict.fromkeys(step.throughput.primary for step in steps)) > 1:
        named = " and ".join(f"{name or 'all transactions'} per second" for name in results)
        raise StallmarkError(f"The results of these runs are different things ({named}): make a report of each.")
    questions = _questions(runs)
    judged = None if questions else comparison_within(runs)
    claims, levels = Claims(runs, judged), ceilings(runs)
    compared = compare(runs, claims)
    mixed = mixed_versions(run.manifest for run in runs)
    curves = [] if compared or questions or mixed else pool_curves(runs, claims)
    if mixed:
        findings = [mixed]
    elif compared:
        findings = list(query_findings(compared, runs, claims))
    else:
        findings = conclusions(axis, runs, claims, curves, levels)
    return ExperimentSummary(
        scenario=scenario.name,
        title=" and ".join(one.title for one in questions) if questions else scenario.title or scenario.name,
        answers="" if questions else scenario.answers,
        emulated=any(is_emulated(record.manifest) for record in records),
        axis=axis,
        runs=_by_size(runs),
        answer=answer(findings, runs, judged, claims),
        findings=findings,
        cautions=[*(query_cautions(compared) if compared else ()), *cautions(runs)],
        queries=compared,
        comparison=judged,
        not_comparable=[] if compared or levels else claims.incomparable_pairs(points(steps)),
        drifts=[one for same in group(runs, _variant_of) for one in drifts(same)],
        thresholds=judge(runs),
        curves=curves,
        ceilings=levels,
        questions=questions,
    )


def _by_size(runs: Sequence[RunSummary]) -> list[RunSummary]:
    """Return runs in their order; where sizes were chosen, those of the curve by size, before the other variants."""
    if not any(isinstance(run.manifest.scenario.buffer_pool, dict) for run in runs):
        return list(runs)

    def place(run: RunSummary) -> tuple[int, bool, int]:
        given = [one["name"] for one in run.manifest.scenario.facts().get("variants", ())]
        return run.manifest.repeat, run.manifest.variant.name in given, run.manifest.memory.configured_bytes or 0

    return sorted(runs, key=place)


def _told_apart(runs: Sequence[RunSummary]) -> list[RunSummary]:
    """Return runs whose variants of one name, but of different scenarios, have the scenario's name as well."""
    scenarios: dict[str, set[str]] = {}
    for run in runs:
        scenarios.setdefault(run.manifest.variant.name, set()).add(run.manifest.scenario.name)

    def named(run: RunSummary) -> RunSummary:
        variant, scenario = run.manifest.variant.name, run.manifest.scenario.name
        if len(scenarios[variant]) < 2:
            return run
        name = f"{variant} ({scenario})"
        steps = [replace(step, variant=name) for step in run.steps]
        return replace(run, title=run.title.replace(variant, name, 1), steps=steps)

    return [named(run) for run in runs]


def _questions(runs: Sequence[RunSummary]) -> list[Question]:
    """Return what each scenario asked; none where there is only one."""
    asked = group(runs, lambda run: run.manifest.scenario.name)
    return [
        Question(
            title=(scenario := same[0].manifest.scenario).title or scenario.name,
            answers=scenario.answers,
            variants=list(dict.fromkeys(step.variant for run in same for step in run.steps)),
        )
        for same in asked
        if len(asked) > 1
    ]


def find_axis(steps: Sequence[StepSummary]) -> str:
    """Return what varies between steps: "users", "buffer_pool", "device" or "variant", the first that applies.

    Users come first because a ramp is within a run. The buffer pool comes before the device because a sweep of pools
    usually ends with one variant on another device. Steps beside unlike loads have no common axis.
    """
    if len({step.beside for step in steps}) > 1:
        return "variant"
    for axis, values in (
        ("users", {step.users for step in steps}),
        ("buffer_pool", {step.buffer_pool_bytes for step in steps}),
        ("device", {step.device for step in steps}),
    ):
        if len(values) > 1:
            return axis
    return "variant"


def _variant_of(run: RunSummary) -> str | None:
    return run.manifest.variant.name


def _variant(record: Record) -> str:
    return record.manifest.variant.name
