"""The report of runs of queries: its sections with their charts, and the parts that a terminal shows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from stallmark import format
from stallmark.analysis.experiment import ExperimentSummary, marks
from stallmark.analysis.queries import QueryCell, QueryComparison, QueryVariant
from stallmark.record.manifest.workload import PHASES
from stallmark.report import queries_tables as tables
from stallmark.report import sections
from stallmark.report.columns import step_labels
from stallmark.report.document import (
    Block,
    Document,
    Grid,
    Key,
    Note,
    Notes,
    Section,
    Shown,
    Words,
    bullets,
    folds,
    non_empty,
    table_blocks,
)
from stallmark.report.figures import (
    Drawing,
    Figure,
    KeyItem,
    Look,
    Trace,
    bars,
    chart,
    from_zero,
    highest,
    key_of_variants,
    level_line,
    looks,
    note,
    plain,
    rounded,
    scatter,
)
from stallmark.report.queries_tables import compared, compared_cell, dop, times
from stallmark.report.sections import cause, emulated_devices, environment, server, transactions, validity
from stallmark.report.table import Cell, Rows, Table, fields, group, number, word
from stallmark.report.text import mark_word, reading, sentence
from stallmark.report.text import queries as words
from stallmark.report.text.device import EMULATED

# Charts of runs of queries: bars by query and variant, and a curve over parallelism for each query.

MEAN = "mean"
_TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)

Value = Callable[[QueryCell], float | None]


def bar_figures(experiment: ExperimentSummary) -> list[Figure]:
    """Return bars of run time relative to the baseline, if there are other variants; then run time, reads and
    I/O waits."""
    comparison = compared(experiment)
    method = words.run_time_method(phase=PHASES[comparison.phase])
    figures = [_relative(comparison)] if len(comparison.variants) > 1 else []
    by_query: Sequence[tuple[str, str, str, Value, str]] = (
        ("seconds", "Run time", "seconds", lambda cell: cell.seconds, method),
        ("reads", "Read from disk", "MiB", lambda cell: _divided(cell.read_bytes, 2**20), words.READS),
        (
            "stalls",
            "Waiting for I/O",
            "seconds, summed over workers",
            lambda cell: _divided(cell.io_wait_ms, 1000),
            words.IO_WAITS,
        ),
    )
    figures += [_absolute(comparison, *bars) for bars in by_query]
    # Reads and waits are missing on servers that do not count them by query.
    return [figure for figure in figures if figure.chart.traces]


def _divided(value: float | None, unit: int) -> float | None:
    return None if value is None else value / unit


def curve_figures(experiment: ExperimentSummary) -> list[Figure]:
    """Return a chart per query of run time over the degree of parallelism; empty if only one degree was tried."""
    comparison = compared(experiment)
    tried = [degree for degree in comparison.dops if degree is not None]
    return [_curve(comparison, query, sorted(tried)) for query in comparison.queries] if len(tried) > 1 else []


def _looks(comparison: QueryComparison) -> dict[str, Look]:
    return looks([variant.name for variant in comparison.variants])


def _relative(comparison: QueryComparison) -> Figure:
    """Return bars from 1, up or down on a logarithmic axis: half and double the time are equally far."""
    others = comparison.variants[1:]
    names = [*comparison.queries, MEAN]
    seen = _looks(comparison)
    low, high = 0.8, 1.25
    made = _chart(names, 340)
    for variant in others:
        values = [_cell_value(variant, comparison, query, lambda cell: cell.relative) for query in comparison.queries]
        values.append(variant.relative)
        changed = [
            bool((cell := compared_cell(variant, comparison, query)) and cell.plan_changed)
            for query in comparison.queries
        ]
        known = [value for value in values if value]
        low, high = min([low, *known]), max([high, *known])
        # A variant without measured times has no bars, but keeps its column in the table.
        if not known:
            continue
        bar = _bar(
            variant,
            seen,
            [v - 1 if v else None for v in values],
            [
                f"{times(v)}  {variant.name}{', another plan' * c}"
                for v, c in zip(values, [*changed, False], strict=True)
            ],
        )
        pattern = {"shape": ["/" * c for c in [*changed, False]]}
        made.add(bar | {"base": 1, "marker": bar["marker"] | {"pattern": pattern}})
    margin = math.log10(high / low) * 0.06
    ticks = [tick for tick in _TICKS if low * 0.9 <= tick <= high * 1.1]
    axis = {
        "type": "log",
        "range": [math.log10(low) - margin, math.log10(high) + margin],
        "tickvals": ticks,
        "ticktext": [f"{tick:g}×" for tick in ticks],
        "zeroline": False,
    }
    made.change(yaxis=axis)
    made.add_shapes(level_line(1, width=1))
    note(made, "ratio, log scale", yshift=5)
    return Figure(
        id="query-relative",
        title=f"Run time relative to {comparison.baseline}",
        unit="ratio",
        emulated=any(variant.emulated for variant in comparison.variants),
        summary=" ".join(
            words.relative_mean(variant=variant.name, ratio=times(variant.relative), queries=variant.compared)
            for variant in others
        ),
        method=words.relative_method(phase=PHASES[comparison.phase], baseline=comparison.baseline),
        chart=made,
        header=["query", *(variant.name for variant in others)],
        rows=[
            [query, *(times(_cell_value(variant, comparison, query, lambda cell: cell.relative)) for variant in others)]
            for query in comparison.queries
        ]
        + [["geometric mean", *(times(variant.relative) for variant in others)]],
        reading=words.RELATIVE_READING,
        wide=True,
    )


def _absolute(comparison: QueryComparison, id: str, title: str, unit: str, value: Value, method: str) -> Figure:
    seen = _looks(comparison)
    made = _chart(comparison.names, 280)
    for variant in comparison.variants:
        values = [_cell_value(variant, comparison, query, value) for query in comparison.names]
        # A trace without values would still take the room of a bar in each group.
        if any(measured is not None for measured in values):
            made.add(_bar(variant, seen, values, [f"{format.number(measured)}  {variant.name}" for measured in values]))
    made.change(yaxis={"range": from_zero(highest(made))})
    note(made, unit, yshift=5)
    return Figure(
        id=f"query-{id}",
        title=f"{title} per query",
        unit=unit,
        emulated=any(variant.emulated for variant in comparison.variants),
        summary=" ".join(_largest(comparison, variant, value, unit) for variant in comparison.variants),
        method=method,
        chart=made,
        header=["query", *(variant.name for variant in comparison.variants)],
        rows=[
            [query, *(format.number(_cell_value(variant, comparison, query, value)) for variant in comparison.variants)]
            for query in comparison.names
        ],
        wide=True,
    )


def _curve(comparison: QueryComparison, query: str, tried: Sequence[int]) -> Figure:
    seen = _looks(comparison)
    ends = [math.log10(tried[0]) - 0.06, math.log10(tried[-1]) + 0.06]
    ticks = {"tickvals": list(tried), "ticktext": [str(degree) for degree in tried]}
    made = chart(200, margin={"t": 22, "b": 30}, xaxis={"type": "log", "range": ends} | ticks)
    for variant in comparison.variants:
        cells = [variant.cell(query, degree) for degree in tried]
        values = [cell.seconds if cell else None for cell in cells]
        actual = [format.number(cell.actual_dop if cell else None) for cell in cells]
        look = seen[variant.name]
        made.add(
            scatter(
                mode="lines+markers",
                name=plain(variant.name),
                x=list(tried),
                y=rounded(values),
                text=[
                    f"{format.number(seconds)} s  {plain(variant.name)}, {ran} worked"
                    for seconds, ran in zip(values, actual, strict=True)
                ],
                cliponaxis=False,
                line={"color": look.colour, "width": 1.75, "dash": look.dash},
                marker={"size": 7, "color": look.colour, "symbol": look.symbol},
            )
        )
    made.change(yaxis={"range": from_zero(highest(made)), "nticks": 4})
    note(made, "seconds", yshift=4)
    return Figure(
        id=f"query-dop-{query.lower()}",
        title=query,
        unit="seconds",
        emulated=any(variant.emulated for variant in comparison.variants),
        summary=" ".join(
            words.by_parallelism(variant.name, [(tried[0], fewest.seconds), (tried[-1], many.seconds)])
            for variant in comparison.variants
            if (fewest := variant.cell(query, tried[0])) and (many := variant.cell(query, tried[-1]))
        ),
        method=words.PARALLELISM,
        chart=made,
        header=["DOP", *(variant.name for variant in comparison.variants)],
        rows=[
            [dop(degree), *(format.number(_run_seconds(variant, query, degree)) for variant in comparison.variants)]
            for degree in tried
        ],
    )  # fmt: skip


def _run_seconds(variant: QueryVariant, query: str, degree: int) -> float | None:
    cell = variant.cell(query, degree)
    return cell.seconds if cell else None


def _chart(names: Sequence[str], height: int) -> Drawing:
    """Return an empty chart of bars, a place for each name."""
    axis = {
        "range": [-0.6, len(names) - 0.4],
        "ticks": "",
        "tickvals": list(range(len(names))),
        "ticktext": list(names),
        "tickfont": {"size": 11},
        "autotickangles": [0, -90],
    }
    return chart(height, bargap=0.25, bargroupgap=0.05, barmode="group", margin={"t": 24, "b": 30}, xaxis=axis)


def _bar(variant: QueryVariant, seen: dict[str, Look], values: Sequence[float | None], texts: Sequence[str]) -> Trace:
    return bars(
        name=plain(variant.name),
        x=list(range(len(values))),
        y=rounded(values),
        text=[plain(text) for text in texts],
        marker={"color": seen[variant.name].colour},
    )


def _cell_value(variant: QueryVariant, comparison: QueryComparison, query: str, value: Value) -> float | None:
    cell = compared_cell(variant, comparison, query)
    return value(cell) if cell else None


def _largest(comparison: QueryComparison, variant: QueryVariant, value: Value, unit: str) -> str:
    known = [
        (measured, query)
        for query in comparison.names
        if (measured := _cell_value(variant, comparison, query, value)) is not None
    ]
    if not known:
        return words.not_measured(variant=variant.name)
    most, query = max(known)
    return words.most_in(variant=variant.name, query=query, most=most, unit=unit.split(",")[0])


# The report of runs of queries: its sections, and the parts that a terminal shows.


def query_document(experiment: ExperimentSummary) -> Document:
    comparison = compared(experiment)
    key = key_of_variants([variant.name for variant in comparison.variants])
    bars = bar_figures(experiment)
    title = f"Compared with {comparison.baseline}" if len(comparison.variants) > 1 else "Run times"
    failures = table_blocks(tables.failures(experiment), "Queries that failed") or [Words(reading.NO_QUERY_FAILED)]
    return replace(
        sections.head_of(experiment),
        # The first chart leads the page, the others follow in their section.
        lead=[Key(key), bars[0]] if bars else [],
        key=key,
        sections=non_empty(
            _summary(experiment),
            Section("relative", title, [Key(key), *bars[1:]]),
            sections.findings_section(experiment.findings),
            _parallelism(experiment, key),
            environment.array_section(experiment),
            _queries(experiment),
            validity.service_level_section(experiment, reading.SERVICE_LEVEL_BY_PHASE),
            cause.streams_section(experiment),
            server.reads_section(experiment),
            server.server_section(experiment),
            transactions.errors_section(experiment, failures),
            environment.environment_section(experiment),
        ),
        brief=list(_brief(experiment, comparison)),
    )


def _summary(experiment: ExperimentSummary) -> Section:
    figures_of_each = Shown(tables.variants(experiment), "Figures of each variant")
    return Section("summary", "Summary", [figures_of_each, *sections.explained(sections.steps_table(experiment).rows)])


def _parallelism(experiment: ExperimentSummary, key: Sequence[KeyItem]) -> Section:
    curves = curve_figures(experiment)
    blocks = [Words(reading.PARALLEL, "lead"), Key(key), Grid(curves, small=True)]
    return Section("dop", "By degree of parallelism", blocks if curves else [])


def _queries(experiment: ExperimentSummary) -> Section:
    footnote = " ".join(filter(None, [reading.PLANS, tables.driver(experiment)]))
    parts = [
        Shown(tables.by_query(experiment), "Run time of every query, by variant"),
        *folds(tables.everything(experiment), "All figures", "Queries of", most_open=2),
        Words(footnote, "footnote"),
        *table_blocks(tables.streams(experiment), "Streams", "Streams of the throughput runs"),
    ]
    return Section("queries", "Queries", parts)


def _brief(experiment: ExperimentSummary, comparison: QueryComparison) -> Iterator[Sequence[Block]]:
    yield [Words(experiment.title, "main"), Words(experiment.answers, "quiet")]
    yield [
        Shown(_variants_in_brief(comparison)),
        Words(words.figures_in_brief(phase=PHASES[comparison.phase], baseline=comparison.baseline), "quiet"),
    ]
    footnotes = []
    if len(comparison.variants) > 1:
        names = [f"{chr(ord('A') + number)}: {variant.name}" for number, variant in enumerate(comparison.variants)]
        footnotes.append(Words(words.letters(names), "quiet"))
    if any(cell.plan_changed for variant in comparison.variants for cell in variant.cells):
        footnotes.append(Words(words.OTHER_PLAN, "quiet"))
    yield [Shown(_run_times(comparison)), *footnotes]
    yield validity.outcomes(experiment)
    yield bullets(experiment.findings)
    yield _doubt_notes(experiment)
    yield emulated_devices(variant.device for variant in comparison.variants if variant.emulated)


def _variants_in_brief(comparison: QueryComparison) -> Table:
    return Rows(comparison.variants).table(
        word("variant", lambda variant: f"{variant.name} {EMULATED}" if variant.emulated else variant.name),
        group("", fields(QueryVariant)),
        number(
            "relative",
            lambda variant: "baseline" if variant is comparison.baseline_variant else times(variant.relative),
        ),
    )


def _run_times(comparison: QueryComparison) -> Table:
    """Return the run times, with a letter for each variant, because their names are too long for columns."""
    letters = [chr(ord("A") + number) for number in range(len(comparison.variants))]
    rows: list[Sequence[str | Cell]] = []
    for query in comparison.names:
        asked = dict.fromkeys(
            cell.dop for variant in comparison.variants for cell in variant.cells if cell.query == query
        )
        for degree in asked:
            cells = [
                _seconds(variant.cell(query, degree), number) for number, variant in enumerate(comparison.variants)
            ]
            rows.append([query if degree is None else f"{query}, DOP {degree}", *cells])
    return Table(["query", *([f"{letter}\ns" for letter in letters] if len(letters) > 1 else ["s"])], rows)


def _seconds(cell: QueryCell | None, number: int) -> str | Cell:
    if cell is None:
        return format.NONE
    if cell.failed:
        return Cell("failed", "bad")
    relative = f" {times(cell.relative)}" if number and cell.relative else ""
    return f"{format.number(cell.seconds)}{relative}{'*' * cell.plan_changed}"


def _doubt_notes(experiment: ExperimentSummary) -> list[Block]:
    """Return the notes that limit the trust in a phase's results, each with its phase."""
    names = step_labels(experiment)
    notes = [
        Note(names[step.key], sentence(mark), mark_word(mark))
        for run in experiment.runs
        for step in run.steps
        for mark in marks(run, step)
    ]
    return [Notes(notes)] if notes else []
