"""The summary of an experiment: its runs, its conclusions, its answer, and marks of its steps."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from stallmark.analysis.cautions import cautions
from stallmark.analysis.ceiling import ANSWERS as OF_CEILINGS
from stallmark.analysis.ceiling import Ceiling, ceilings
from stallmark.analysis.compare.claims import Claims
from stallmark.analysis.compare.settings import drifts
from stallmark.analysis.compare.summary import ComparisonSummary, PairKind
from stallmark.analysis.compare.verdicts import comparison_within
from stallmark.analysis.conclusions import conclusions
from stallmark.analysis.finding import ExperimentKind, Finding, Severity, info, invalid, mixed_versions
from stallmark.analysis.metrics import group, points
from stallmark.analysis.pool_curve import ANSWERS, PoolCurve, pool_curves
from stallmark.analysis.probe_comparison import Drift
from stallmark.analysis.queries import QueryComparison, compare, query_cautions, query_findings
from stallmark.analysis.rules import Threshold, judge
from stallmark.analysis.run import Call, RunSummary, summarise_run
from stallmark.analysis.steady import Judgement
from stallmark.analysis.step_summary import StepSummary
from stallmark.analysis.validity import ValidityKind
from stallmark.analysis.validity_gates import Gate
from stallmark.errors import StallmarkError
from stallmark.record.devices import is_emulated
from stallmark.record.reader import Record

# The answer of an experiment: the one finding that stands above all others.

MOST = 6
"""Variants that one sentence can name; of more it names the best and the worst."""


def answer(
    findings: Sequence[Finding],
    runs: Sequence[RunSummary],
    judged: ComparisonSummary | None,
    claims: Claims | None = None,
) -> Finding | None:
    """Return the finding that answers the experiment's question, or None without one.

    A finding that makes all figures worthless comes first. Then the ceiling, or how much memory is enough, the verdict
    on two variants, or every variant relative to the first.
    """
    if findings and findings[0].severity is Severity.INVALID:
        return findings[0]
    if curve := next((finding for finding in findings if finding.kind in (*ANSWERS, *OF_CEILINGS)), None):
        return curve
    # Several pairs have several verdicts, and no single answer.
    if judged and len(judged.pairs) == 1:
        return judged.pairs[0].finding
    if not any(run.queries for run in runs) and (against := _rates_against_first(runs, claims or Claims(runs, judged))):
        return against
    apart = next((finding for finding in findings if finding.kind is PairKind.NOT_COMPARABLE), None)
    # With two variants, the reason not to compare them is the answer.
    if apart and len({step.variant for run in runs for step in run.steps}) == 2:
        return apart
    return next(
        (finding for finding in findings if finding.severity is Severity.INFO), findings[0] if findings else None
    )


def _rates_against_first(runs: Sequence[RunSummary], claims: Claims) -> Finding | None:
    """Return every variant's rate relative to the first one's, or None if variants have several steps, or are fewer
    than three."""
    rated = points([step for run in runs for step in run.steps if not step.validity.invalid and step.result_tps > 0])
    names = [point.first.variant for point in rated]
    if len(set(names)) < len(names) or len(names) < 3:
        return None
    first, *others = rated
    if len({point.first.emulated for point in rated}) > 1:  # an emulated device says nothing about a real one
        return None
    claimed = [(point, claims.claim(first, point)) for point in others]
    alike = [(point, claim) for point, claim in claimed if claim.comparable and claim.ratio is not None]
    named = claimed
    if len(others) >= MOST and alike:
        best, worst = (choose(alike, key=lambda pair: pair[1].ratio or 0.0) for choose in (max, min))
        named = [best] if best is worst else [best, worst]
    every = [first, *(point for point, _ in alike)]
    return info(
        ExperimentKind.AGAINST_FIRST,
        first=first.first.variant,
        per_s=first.tps,
        primary=first.first.throughput.primary,
        others=[[point.first.variant, claim.ratio, claim.verdict] for point, claim in named],
        left_out=len(alike) - len(named) if named is not claimed else 0,
        ranked=len(claims.comparable_points(every)) == len(every),
        not_comparable=len(others) - len(alike) if named is not claimed else 0,
        one_run_each=all(len(point.steps) == 1 for point in rated),
    )


# The summary of an experiment: its runs, what varies between them, and what follows from them.
#
# The report, the terminal table and `--json` all show these values and compute none of their own.


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
    axis: str  # varies between the steps: "buffer_pool", "users", "device" or "variant"
    runs: list[RunSummary]
    answer: Finding | None = None  # the one finding above all others
    findings: list[Finding] = field(default_factory=list)  # most important first
    cautions: list[Finding] = field(default_factory=list)  # conclusions that the reader must not draw
    queries: QueryComparison | None = None  # runs of queries
    comparison: ComparisonSummary | None = None  # repeated variants
    not_comparable: list[list[str]] = field(default_factory=list)  # pairs of variants, in any step
    drifts: list[tuple[tuple[str, ...], Drift]] = field(default_factory=list)  # raw storage, during or between runs
    thresholds: list[Threshold] = field(default_factory=list)
    curves: list[PoolCurve] = field(default_factory=list)  # memory curves, one for each kind of storage
    ceilings: list[Ceiling] = field(default_factory=list)  # one for every run that searched
    questions: list[Question] = field(default_factory=list)  # one for each of several experiments

    @property
    def steps(self) -> list[StepSummary]:
        return [step for run in self.runs for step in run.steps]


SUMMARISED = ("transactions", "queries")
"""The kinds of records that `summarise` takes."""


def common_kind(records: Sequence[Record]) -> str:
    """Return the kind of some records. Raise StallmarkError if they are of several kinds."""
    kinds: dict[str, Record] = {}
    for record in records:
        kinds.setdefault(record.kind, record)
    if len(kinds) > 1:
        several = " and ".join(f"{record.folder} ({kind})" for kind, record in kinds.items())
        raise StallmarkError(f"{several} are records of different kinds: name those of one kind.")
    return next(iter(kinds))


def calls_of(records: Sequence[Record]) -> list[Call]:
    """Return the arguments of `summarise_run` for each run of an experiment."""
    variants = Counter(_variant(record) for record in records)
    return [Call(record, f"run{number}", variants[_variant(record)] > 1) for number, record in enumerate(records, 1)]


def summarise(records: Sequence[Record], map_runs: Callable[..., Iterable[RunSummary]] = map) -> ExperimentSummary:
    """Summarise the runs in the given order; `map_runs` may be the `map` of a pool. Raise StallmarkError without
    runs."""
    if not records:
        raise StallmarkError("No run record was given.")
    if (kind := common_kind(records)) not in SUMMARISED:
        raise StallmarkError(
            f"{records[0].folder} ({kind}) is no record of transactions or queries alone: `stallmark report` shows it."
        )
    runs = _make_names_unique(list(map_runs(summarise_run, *zip(*calls_of(records), strict=True))))
    steps = [step for run in runs for step in run.steps]
    scenario = records[0].manifest.scenario
    axis = find_axis(steps)
    # Rates of different transactions cannot be on one axis.
    if len(results := dict.fromkeys(step.throughput.primary for step in steps)) > 1:
        named = " and ".join(f"{name or 'all transactions'} per second" for name in results)
        raise StallmarkError(f"These runs have different results ({named}): name only runs that have the same result.")
    questions = _questions(runs)
    # Runs of several scenarios answer several questions: no variant is compared across them.
    judged = None if questions else comparison_within(runs)
    claims, levels = Claims(runs, judged), ceilings(runs)
    compared = compare(runs, claims)
    mixed = mixed_versions(run.manifest for run in runs)
    # A curve needs runs that differ in memory only.
    curves = [] if compared or questions or mixed else pool_curves(runs, claims)
    if mixed:
        findings = [mixed]
    elif compared:
        findings = list(query_findings(compared, runs, claims))
    else:
        findings = list(conclusions(axis, runs, claims, curves, levels))
    return ExperimentSummary(
        scenario=scenario.name,
        title=" and ".join(question.title for question in questions) if questions else scenario.title or scenario.name,
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
        drifts=[drift for same in group(runs, lambda run: run.manifest.variant.name) for drift in drifts(same)],
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
        given = [variant["name"] for variant in run.manifest.scenario.facts().get("variants", ())]
        return run.manifest.repeat, run.manifest.variant.name in given, run.manifest.memory.configured_bytes or 0

    return sorted(runs, key=place)


def _make_names_unique(runs: Sequence[RunSummary]) -> list[RunSummary]:
    """Return runs in which variants of one name, but of different scenarios, have the scenario's name too."""
    scenarios: dict[str, set[str]] = {}
    for run in runs:
        scenarios.setdefault(run.manifest.variant.name, set()).add(run.manifest.scenario.name)

    def with_scenario(run: RunSummary) -> RunSummary:
        variant, scenario = run.manifest.variant.name, run.manifest.scenario.name
        if len(scenarios[variant]) < 2:
            return run
        name = f"{variant} ({scenario})"
        steps = [replace(step, variant=name) for step in run.steps]
        return replace(run, title=run.title.replace(variant, name, 1), steps=steps)

    return [with_scenario(run) for run in runs]


def _questions(runs: Sequence[RunSummary]) -> list[Question]:
    """Return the question of each scenario; empty for a single scenario."""
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
    """Return the property that varies between steps: "users", "buffer_pool", "device" or "variant", the first that
    applies.

    Users come first because a ramp is within a run. The buffer pool comes before the device because a sweep of pools
    usually ends with one variant on another device. Steps next to unlike loads have no common axis.
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


def _variant(record: Record) -> str:
    return record.manifest.variant.name


# The findings that a reader must know before believing figures: the marks of a step, and each gate over all steps.


def marks(run: RunSummary, step: StepSummary) -> list[Finding]:
    """Return the marks of a step of `run`. Their severity shows which of them forbid a comparison."""
    judged = step.validity
    marked = []
    if run.incomplete_because:
        marked.append(invalid(ValidityKind.RUN_INCOMPLETE, said=run.incomplete_because))
    if judged.steadiness and judged.steadiness.verdict in (Judgement.NEVER, Judgement.LATE):
        marked.append(judged.steadiness.finding)
    marked += judged.invalid
    marked += [gate.failure for gate in judged.gates if gate.failure and not gate.voids]
    marked += [*judged.bursts, *judged.gaps, *judged.driver_bound]
    if step.storage.writes_partial:
        marked.append(step.storage.writes_partial)
    if step.bottleneck.device_verdict:
        marked.append(step.bottleneck.device_verdict)
    return marked


def doubtful(experiment: ExperimentSummary) -> set[str]:
    """Return the keys of the steps with a mark that forbids a comparison."""
    return {
        step.key
        for run in experiment.runs
        for step in run.steps
        if any(mark.severity is Severity.INVALID for mark in marks(run, step))
    }


@dataclass(frozen=True)
class GateVerdict:
    """One gate over all steps: the steps in which it failed, and the gate of the step nearest to failing, or
    furthest beyond."""

    gate: Gate
    failed: list[StepSummary]
    passed: bool | None  # true if passed in every step; None if it failed in none and was not judged in some


def gate_verdicts(steps: Sequence[StepSummary]) -> list[GateVerdict]:
    """Return verdicts in the order of the gates; empty if the record lacks the requirements of its workload."""
    verdicts = []
    for kind in dict.fromkeys(gate.kind for step in steps for gate in step.validity.gates):
        held = [(step, gate) for step in steps for gate in step.validity.gates if gate.kind == kind]
        worst = max((gate for _, gate in held), key=_nearness)
        failed = [step for step, gate in held if gate.passed is False]
        known = all(gate.passed is not None for _, gate in held)
        verdicts.append(GateVerdict(worst, failed, False if failed else True if known else None))
    return verdicts


def _nearness(gate: Gate) -> tuple[bool, float]:
    if gate.value is None or gate.limit is None:
        return gate.passed is False, -1.0
    return gate.passed is False, abs(gate.value) / gate.limit if gate.limit else abs(gate.value)
