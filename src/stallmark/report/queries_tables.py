"""Tables of runs of queries: the figures of each variant, every query against the baseline, and all known figures."""

from collections.abc import Iterator, Sequence

from stallmark import format
from stallmark.analysis.experiment import ExperimentSummary
from stallmark.analysis.queries import QueryCell, QueryComparison, QueryVariant
from stallmark.analysis.read.queries import Execution
from stallmark.analysis.step_summary import StepSummary
from stallmark.record.manifest.workload import PHASES
from stallmark.report.columns import metric_columns
from stallmark.report.table import Cell, Rows, Table, fields, group, named_rows, number, word
from stallmark.report.text import queries as words
from stallmark.report.text.device import labelled

WAITS_SHOWN = 3


def compared(experiment: ExperimentSummary) -> QueryComparison:
    assert experiment.queries
    return experiment.queries


def compared_cell(variant: QueryVariant, comparison: QueryComparison, query: str) -> QueryCell | None:
    """Return a query of a variant at the first degree of parallelism."""
    # Refresh functions have no degree of parallelism.
    return variant.cell(query, comparison.dops[0]) or variant.cell(query, None)


def dop(value: int | None) -> str:
    return "as set" if value is None else str(value)


def times(value: float | None) -> str:
    """Return a ratio of run times: 0.45×."""
    return format.NONE if value is None else f"{format.number(value)}×"


def variants(experiment: ExperimentSummary) -> Table:
    """Return a row for each variant: figures, geometric mean, and the I/O of data files in the compared phase."""
    comparison = compared(experiment)
    rows = [(variant, _step(experiment, variant.name, comparison.phase)) for variant in comparison.variants]
    return Rows(rows).table(
        word("variant", lambda row: row[0].name),
        word("device", lambda row: labelled(row[0].device)),
        fields(QueryVariant, lambda row: row[0]),
        number("run time", lambda row: _elapsed(experiment, row[0].name, comparison.phase), format.seconds),
        number("relative", lambda row: "baseline" if row[0].name == comparison.baseline else times(row[0].relative)),
        group("Data files", metric_columns(["mb", "read_ms", "hits"], lambda row: row[1])),
        group("Busy", metric_columns(["cpu", "device"], lambda row: row[1])),
        notes=[words.figures_note(phase=PHASES[comparison.phase], baseline=comparison.baseline)],
    )


def by_query(experiment: ExperimentSummary) -> Table:
    """Return a row for each query at the first degree of parallelism: seconds, relative time and plan by variant."""
    comparison = compared(experiment)
    first, *others = comparison.variants
    header, groups = ["query", "s", "MiB read"], [("", 1), (first.name, 2)]
    for variant in others:
        header += ["s", "relative", "MiB read", "plan"]
        groups.append((variant.name, 4))
    rows: list[Sequence[str | Cell]] = []
    for query in comparison.names:
        row: list[str | Cell] = [query]
        for variant in comparison.variants:
            row += _short(compared_cell(variant, comparison, query), is_baseline=variant is first)
        rows.append(row)
    mean: list[str | Cell] = ["geometric mean", "", ""]
    for variant in others:
        mean += ["", times(variant.relative), "", ""]
    if others:
        rows.append(mean)
    words = frozenset({0, *(3 + 4 * number + 3 for number in range(len(others)))})
    return Table(header, rows, words, list(_notes(comparison)), groups)


def _short(cell: QueryCell | None, *, is_baseline: bool) -> list[str | Cell]:
    seconds: str | Cell = format.number(cell.seconds if cell else None)
    if cell and cell.failed:
        seconds = Cell("failed", "bad")
    read = format.mib(cell.read_bytes if cell else None)
    if is_baseline:
        return [seconds, read]
    changed = (
        Cell("changed", "apart") if cell and cell.plan_changed else ("same" if cell and cell.plans else format.NONE)
    )
    return [seconds, times(cell.relative if cell else None), read, changed]


def _notes(comparison: QueryComparison) -> Iterator[str]:
    yield words.run_times_note(baseline=comparison.baseline)
    if len(comparison.dops) > 1:
        yield words.parallelism_note(degree=dop(comparison.dops[0]))


def everything(experiment: ExperimentSummary) -> list[tuple[str, Table]]:
    """Return all known values of the queries of each variant."""
    return [(variant.name, _every_figure(variant)) for variant in compared(experiment).variants]


def _every_figure(variant: QueryVariant) -> Table:
    return Rows(variant.cells).table(
        word("query", lambda cell: cell.query),
        group("DOP", number("requested", lambda cell: dop(cell.dop)), number("actual", lambda cell: cell.actual_dop)),
        number("s", lambda cell: Cell("failed", "bad") if cell.failed else format.number(cell.seconds)),
        fields(QueryCell),
        word("longest waits, s", _longest_waits),
        word("plan", lambda cell: Cell(", ".join(cell.plans) or format.NONE, "apart" if cell.plan_changed else "")),
        notes=[words.EXECUTIONS],
    )


def _longest_waits(cell: QueryCell) -> str:
    waits = ", ".join(f"{kind} {format.number(ms / 1000)}" for kind, ms in cell.waits[:WAITS_SHOWN])
    return waits or ("none" if cell.waits_known else format.NONE)


def streams(experiment: ExperimentSummary) -> Table | None:
    """Return the results of each stream of the throughput runs, or None without such runs."""
    rows = [(run.title, done) for run in experiment.runs if run.queries for done in _by_stream(run.queries.executions)]
    return named_rows("run", rows).table_if_any(
        word("stream", lambda done: "refresh" if all(e.query.startswith("RF") for e in done) else str(done[0].stream)),
        number("statements", len, format.count),
        number("s", lambda done: max(e.started_s + e.seconds for e in done) - min(e.started_s for e in done)),
        number("mean s", lambda done: sum(e.seconds for e in done) / len(done)),
        number("failed", lambda done: _failed(sum(e.failed for e in done))),
    )


def _by_stream(executions: Sequence[Execution]) -> list[list[Execution]]:
    known = [execution for execution in executions if execution.phase == "throughput"]
    return [
        [execution for execution in known if execution.stream == stream]
        for stream in sorted({execution.stream for execution in known})
    ]


def _failed(count: int) -> Cell | str:
    return Cell(str(count), "bad") if count else "0"


def failures(experiment: ExperimentSummary) -> Table | None:
    rows = ((run.title, query) for run in experiment.runs if run.queries for query in run.queries.executions)
    return named_rows("run", (row for row in rows if row[1].failed)).table_if_any(fields(Execution))


def driver(experiment: ExperimentSummary) -> str | None:
    """Return the driver's time between two queries, as a sentence, or None if unknown."""
    runs = [run.queries for run in experiment.runs if run.queries and run.queries.driver_gap_ms is not None]
    if not runs:
        return None
    mean = sum(run.driver_gap_ms or 0 for run in runs) / len(runs)
    most = max(run.driver_gap_most_ms or 0 for run in runs)
    return words.driver_gap(mean_ms=mean, most_ms=most)


def _step(experiment: ExperimentSummary, variant: str, phase: str) -> StepSummary | None:
    """Return the first run's step of the phase, or None if the phase lasted less than a second."""
    for run in experiment.runs:
        for step in run.steps:
            described = {step.name: step.phase for step in run.manifest.steps}
            if step.variant == variant and described.get(step.step) == phase:
                return step
    return None


def _elapsed(experiment: ExperimentSummary, variant: str, phase: str) -> float | None:
    for run in experiment.runs:
        if run.manifest.variant.name == variant and run.queries:
            return run.queries.phases.get(phase)
    return None
