"""The runs of an experiment: their summaries, and what varies between them."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from stallmark.analysis.answer import answer
from stallmark.analysis.cause.step import with_cause
from stallmark.analysis.cautions import cautions
from stallmark.analysis.compare.storage import drifts
from stallmark.analysis.compare.verdicts import comparison_within
from stallmark.analysis.conclusions import conclusions
from stallmark.analysis.finding import Finding
from stallmark.analysis.points import group
from stallmark.analysis.queries.comparison import compare
from stallmark.analysis.queries.findings import query_cautions, query_findings
from stallmark.analysis.queries.runs import read_queries
from stallmark.analysis.read.active_set import active_over_time
from stallmark.analysis.read.blocking import BlockedPair, read_blocking, read_deadlocks
from stallmark.analysis.read.clocks import clock_findings
from stallmark.analysis.read.concurrent_streams import with_streams
from stallmark.analysis.read.deferred_queue import read_deferred_queue
from stallmark.analysis.read.errors import read_errors
from stallmark.analysis.read.external import read_external
from stallmark.analysis.read.gaps import gap_findings
from stallmark.analysis.read.interval import measured_intervals
from stallmark.analysis.read.io import read_io
from stallmark.analysis.read.maintenance import MaintenanceSummary, maintenance_within
from stallmark.analysis.read.run_notes import run_notes
from stallmark.analysis.read.sample_times import server_clock
from stallmark.analysis.read.series import make_series
from stallmark.analysis.read.server_views import read_server_views
from stallmark.analysis.read.throughput import read_load
from stallmark.analysis.read.wait_parts import read_wait_parts
from stallmark.analysis.read.waits import read_waits
from stallmark.analysis.read.workload import read_workload
from stallmark.analysis.steady.cycles import checkpoint_marks, over_whole_cycles
from stallmark.analysis.step import summarise_step
from stallmark.analysis.step_summary import StepSummary
from stallmark.analysis.summary import ExperimentSummary, Question, RunSummary
from stallmark.analysis.thresholds import judge
from stallmark.analysis.validity.judge import Validity
from stallmark.errors import StallmarkError
from stallmark.record.devices import is_emulated
from stallmark.record.reader import Record, recorded_seconds


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
    variants = Counter(_variant(record) for record in records)
    keys = [f"run{number}" for number in range(1, len(records) + 1)]
    runs = list(each(summarise_run, records, keys, [variants[_variant(record)] > 1 for record in records]))
    runs = _told_apart(runs)
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
    compared = compare(runs)
    questions = _questions(runs)
    judged = None if questions else comparison_within(runs)
    findings = list(query_findings(compared, runs)) if compared else conclusions(axis, runs, judged is not None)
    return ExperimentSummary(
        scenario=scenario.name,
        title=" and ".join(one.title for one in questions) if questions else scenario.title or scenario.name,
        answers="" if questions else scenario.answers,
        emulated=any(is_emulated(record.manifest) for record in records),
        axis=axis,
        runs=runs,
        answer=answer(findings, runs, judged),
        findings=findings,
        cautions=[*(query_cautions(compared) if compared else ()), *cautions(runs)],
        queries=compared,
        comparison=judged,
        drifts=[one for same in group(runs, _variant_of) for one in drifts(same)],
        thresholds=judge(runs),
        questions=questions,
    )


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


def summarise_run(record: Record, key: str, repeated: bool = False) -> RunSummary:
    """Return the summary of a run. `key` begins the keys of its steps; `repeated`: its variant ran more than once."""
    manifest = record.manifest
    seconds = recorded_seconds(record)
    measured = measured_intervals(manifest, seconds, cut=record.incomplete_because is not None)
    seconds = max([seconds, *(interval.end for interval in measured)])
    io, views = read_io(record), read_server_views(record)
    # A phase of queries is as long as its queries, whatever checkpoints fall into it.
    marks = None if manifest.queries else checkpoint_marks(io, views)
    intervals = [over_whole_cycles(interval, marks) for interval in measured]
    workload = read_workload(manifest)
    load = read_load(record, seconds, intervals, workload.attended)
    errors, queue = read_errors(record, seconds), read_deferred_queue(record, seconds)
    validity = Validity(workload, load, errors, queue, manifest.conditions)
    blocked = read_blocking(record, intervals)
    clocks, gaps = clock_findings(record, intervals), gap_findings(record, intervals)
    waits, wait_parts = read_waits(record, intervals), read_wait_parts(record, seconds)
    ends = max((interval.end for interval in measured), default=None)
    active = active_over_time(record, io, load.seconds)
    series = make_series(load, io, active, views.state, workload.primary, ends)
    title = _variant(record) or record.folder.name
    return RunSummary(
        folder=record.folder.name,
        title=f"{title}, repeat {manifest.repeat}" if repeated else title,
        started=manifest.started,
        manifest=manifest,
        incomplete_because=record.incomplete_because,
        steps=with_streams(
            record,
            [
                (
                    _read_so(
                        with_cause(
                            summarise_step(
                                record, f"{key}-step{i.index + 1}", i, io, waits.get(i.index), views, validity
                            ),
                            manifest,
                            load,
                            io,
                            wait_parts,
                            i,
                        ),
                        clocks.get(i.index),
                        gaps[i.index],
                        blocked[i.index],
                        maintenance_within(record, i),
                    ),
                    i,
                )
                for i in intervals
            ],
        ),
        series=series,
        collectors_off={
            collector.title: collector.unavailable
            for collector in manifest.collectors.values()
            if collector.unavailable
        },
        collector_cost_share=_collector_cost(record, seconds),
        growth_share=_growth(record),
        conditions=list(manifest.conditions),
        deadlocks=read_deadlocks(record),
        notes=run_notes(record),
        clock=server_clock(record),
        external=read_external(record, series.tps, intervals),
        queries=read_queries(record),
    )


def _read_so(
    step: StepSummary,
    clock: Finding | None,
    gaps: list[Finding],
    blocked: list[BlockedPair],
    maintenance: MaintenanceSummary | None,
) -> StepSummary:
    """Return the step with who blocked whom, the gaps in what was read of it, and what is wrong with the server's clock
    among its reasons not to be compared. Beside maintenance physical reads are not given per transaction, as they
    cannot be told from its own."""
    invalid = [*step.validity.invalid, *([clock] if clock else [])]
    validity = replace(step.validity, gaps=gaps, invalid=invalid)
    storage = replace(step.storage, reads_per_transaction=None) if maintenance else step.storage
    waits = replace(step.waits, blocked=blocked)
    return replace(step, validity=validity, waits=waits, storage=storage, maintenance=maintenance)


def find_axis(steps: Sequence[StepSummary]) -> str:
    """Return what varies between steps: "users", "buffer_pool", "device" or "variant", the first that applies.

    Users come first because a ramp is within a run. The buffer pool comes before the device because a sweep of pools
    usually ends with one variant on another device.
    """
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


def _collector_cost(record: Record, seconds: int) -> float | None:
    """Return the CPU time of the collectors as a share of one core; None where it was not sampled."""
    spent, sampled = 0.0, False
    for batch in record.batches("collector_cost", ["cpu_us"]):
        spent += batch.column(0).to_numpy().sum() / 1e6
        sampled = sampled or batch.num_rows > 0
    return spent / seconds if sampled and seconds else None


def _growth(record: Record) -> float | None:
    before, after = record.manifest.database.bytes_before, record.manifest.database.bytes_after
    return after / before - 1 if before and after is not None else None
