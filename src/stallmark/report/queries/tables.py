"""Tables of runs of queries: the figures of each variant, every query against the baseline, and all known figures."""

from collections.abc import Iterator, Sequence

from stallmark import format
from stallmark.analysis.experiment import ExperimentSummary
from stallmark.analysis.queries.summary import QueryCell, QueryComparison, QueryVariant
from stallmark.analysis.read.queries import PHASES
from stallmark.analysis.step_summary import StepSummary
from stallmark.report.table import Cell, Table
from stallmark.report.text import queries as words
from stallmark.report.text.device import labelled

WAITS_SHOWN = 3


def compared(experiment: ExperimentSummary) -> QueryComparison:
    assert experiment.queries
    return experiment.queries


def dop(value: int | None) -> str:
    return "as set" if value is None else str(value)


def times(value: float | None) -> str:
    """Return a ratio of run times: 0.45×."""
    return format.NONE if value is None else f"{format.number(value)}×"


def variants(experiment: ExperimentSummary) -> Table:
    """Return a row for each variant: figures, geometric mean, and the I/O of data files in the compared phase."""
    found = compared(experiment)
    rows: list[Sequence[str | Cell]] = []
    for variant in found.variants:
        step = _step(experiment, variant.name, found.phase)
        io = step.storage.data if step else None
        rows.append(
            [
                variant.name,
                labelled(variant.device),
                format.size(variant.buffer_pool_bytes),
                format.number(variant.power),
                format.number(variant.throughput),
                format.number(variant.composite),
                format.seconds(_elapsed(experiment, variant.name, found.phase)),
                "baseline" if variant.name == found.baseline else times(variant.relative),
                format.number(io.mb_per_s if io and io.seconds else None),
                format.number(io.read_ms if io else None),
                format.share(step.server.hit_share if step else None),
                format.share(step.server.cpu_busy_share if step else None),
                format.share(step.storage.busy_share if step else None),
            ]
        )
    header = [
        *("variant", "device", "pool", "power", "throughput", "composite", "run time", "relative"),
        *("MB/s", "read ms", "hits", "CPU", "device"),
    ]
    notes = [words.figures_note(PHASES[found.phase], found.baseline)]
    return Table(
        header,
        rows,
        frozenset({0, 1}),
        notes,
        [("", 3), ("Derived figures", 3), ("", 2), ("Data files", 3), ("Busy", 2)],
    )


def by_query(experiment: ExperimentSummary) -> Table:
    """Return a row for each query at the first degree of parallelism: seconds, relative time and plan by variant."""
    found = compared(experiment)
    first, *others = found.variants
    header, groups = ["query", "s", "MiB read"], [("", 1), (first.name, 2)]
    for variant in others:
        header += ["s", "relative", "MiB read", "plan"]
        groups.append((variant.name, 4))
    rows: list[Sequence[str | Cell]] = []
    for query in found.names:
        row: list[str | Cell] = [query]
        for variant in found.variants:
            cell = variant.cell(query, _dop_of(variant, query, found))
            row += _short(cell, is_baseline=variant is first)
        rows.append(row)
    mean: list[str | Cell] = ["geometric mean", "", ""]
    for variant in others:
        mean += ["", times(variant.relative), "", ""]
    if others:
        rows.append(mean)
    words = frozenset({0, *(3 + 4 * number + 3 for number in range(len(others)))})
    return Table(header, rows, words, list(_notes(found)), groups)


def _short(cell: QueryCell | None, *, is_baseline: bool) -> list[str | Cell]:
    seconds: str | Cell = format.number(cell.seconds if cell else None)
    if cell and cell.failed:
        seconds = Cell("failed", "bad")
    read = format.number(cell.read_bytes / 2**20 if cell and cell.read_bytes is not None else None)
    if is_baseline:
        return [seconds, read]
    changed = (
        Cell("changed", "apart") if cell and cell.plan_changed else ("same" if cell and cell.plans else format.NONE)
    )
    return [seconds, times(cell.relative if cell else None), read, changed]


def _notes(found: QueryComparison) -> Iterator[str]:
    yield (words.run_times_note(found.baseline))
    if len(found.dops) > 1:
        yield words.at_parallelism(dop(found.dops[0]))


def everything(experiment: ExperimentSummary) -> list[tuple[str, Table]]:
    """Return for each variant all known figures of its queries."""
    header = [
        *(
            "query",
            "asked",
            "actual",
            "s",
            "rows",
            "logical",
            "physical",
            "MiB read",
            "MiB spilt",
            "MiB grant",
            "CPU s",
        ),
        *("longest waits, s", "plan"),
    ]
    found = []
    for variant in compared(experiment).variants:
        rows: list[Sequence[str | Cell]] = [_row(cell) for cell in variant.cells]
        notes = [words.EXECUTIONS]
        found.append(
            (
                variant.name,
                Table(
                    header, rows, frozenset({0, 11, 12}), notes, [("", 1), ("DOP", 2), ("", 2), ("Pages", 2), ("", 6)]
                ),
            )
        )
    return found


def _row(cell: QueryCell) -> list[str | Cell]:
    waits = ", ".join(f"{kind} {format.number(ms / 1000)}" for kind, ms in cell.waits[:WAITS_SHOWN])
    return [
        cell.query,
        dop(cell.dop),
        format.number(cell.actual_dop),
        Cell("failed", "bad") if cell.failed else format.number(cell.seconds),
        _whole(cell.rows),
        _whole(cell.logical_reads),
        _whole(cell.physical_reads),
        _mega(cell.read_bytes),
        _mega(cell.spill_bytes),
        format.number(None if cell.grant_kib is None else cell.grant_kib / 1024),
        format.number(None if cell.cpu_ms is None else cell.cpu_ms / 1000),
        waits or ("none" if cell.waits_known else format.NONE),
        Cell(", ".join(cell.plans) or format.NONE, "apart" if cell.plan_changed else ""),
    ]


def streams(experiment: ExperimentSummary) -> Table | None:
    """Return the figures of each stream of the throughput runs; None where there was none."""
    rows: list[Sequence[str | Cell]] = []
    for run in experiment.runs:
        by_stream: dict[int, list] = {}
        for one in run.queries.executions if run.queries else ():
            if one.phase == "throughput":
                by_stream.setdefault(one.stream, []).append(one)
        for stream, done in sorted(by_stream.items()):
            ended = max(one.started_s + one.seconds for one in done)
            refreshes = all(one.query.startswith("RF") for one in done)
            failed = sum(one.failed for one in done)
            rows.append(
                [
                    run.title,
                    "refresh" if refreshes else str(stream),
                    format.count(len(done)),
                    format.number(ended - min(one.started_s for one in done)),
                    format.number(sum(one.seconds for one in done) / len(done)),
                    Cell(str(failed), "bad") if failed else "0",
                ]
            )
    return Table(["run", "stream", "statements", "s", "mean s", "failed"], rows, frozenset({0, 1})) if rows else None


def failures(experiment: ExperimentSummary) -> Table | None:
    rows: list[Sequence[str | Cell]] = [
        [run.title, PHASES[one.phase], str(one.stream), one.query, format.number(one.seconds), one.error_class or "",
         one.error or ""]
        for run in experiment.runs
        for one in (run.queries.executions if run.queries else ())
        if one.failed
    ]  # fmt: skip
    header = ["run", "phase", "stream", "query", "after s", "class", "message"]
    return Table(header, rows, frozenset({0, 1, 3, 5, 6})) if rows else None


def driver(experiment: ExperimentSummary) -> str | None:
    """Return the driver's time between two queries, as a sentence; None where it is not known."""
    runs = [run.queries for run in experiment.runs if run.queries and run.queries.driver_gap_ms is not None]
    if not runs:
        return None
    mean = sum(run.driver_gap_ms or 0 for run in runs) / len(runs)
    most = max(run.driver_gap_most_ms or 0 for run in runs)
    return words.driver_gap(mean, most)


def _dop_of(variant: QueryVariant, query: str, found: QueryComparison) -> int | None:
    """Return the degree of parallelism to show for a query; None for refresh functions, which have none."""
    return found.dops[0] if variant.cell(query, found.dops[0]) else None


def _step(experiment: ExperimentSummary, variant: str, phase: str) -> StepSummary | None:
    """Return the first run's step of the phase; None where the phase was over within a second."""
    for run in experiment.runs:
        for step in run.steps:
            described = {one.name: one.phase for one in run.manifest.steps}
            if step.variant == variant and described.get(step.step) == phase:
                return step
    return None


def _elapsed(experiment: ExperimentSummary, variant: str, phase: str) -> float | None:
    for run in experiment.runs:
        if run.manifest.variant.name == variant and run.queries:
            return run.queries.phases.get(phase)
    return None


def _whole(value: float | None) -> str:
    return format.NONE if value is None else f"{value:,.0f}"


def _mega(value: float | None) -> str:
    return format.number(None if value is None else value / 2**20)
