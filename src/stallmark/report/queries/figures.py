"""Charts of runs of queries: bars by query and variant, and a curve over parallelism for each query."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import plotly.graph_objects as go

from stallmark import format
from stallmark.analysis.experiment import ExperimentSummary
from stallmark.analysis.queries import QueryCell, QueryComparison, QueryVariant
from stallmark.analysis.read.queries import PHASES
from stallmark.report.figures import Figure, chart, from_zero, highest, note, rounded
from stallmark.report.queries.tables import compared, dop, times
from stallmark.report.style import NEUTRAL, KeyItem, Look, looks, plain
from stallmark.report.text import queries as words

MEAN = "mean"
_TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)

Value = Callable[[QueryCell], float | None]


def bars(experiment: ExperimentSummary) -> list[Figure]:
    """Return bars of run time relative to the baseline, if there are other variants; then run time, reads and
    I/O waits."""
    found = compared(experiment)
    phase = PHASES[found.phase]
    figures = [_relative(found)] if len(found.variants) > 1 else []
    figures.append(
        _absolute(found, "seconds", "Run time", "seconds", lambda cell: cell.seconds, words.run_time_method(phase))
    )
    figures.append(
        _absolute(
            found,
            "reads",
            "Read from disk",
            "MiB",
            lambda cell: None if cell.read_bytes is None else cell.read_bytes / 2**20,
            words.READS,
        )
    )
    figures.append(
        _absolute(
            found,
            "stalls",
            "Waiting for I/O",
            "seconds, summed over workers",
            lambda cell: None if cell.io_wait_ms is None else cell.io_wait_ms / 1000,
            words.IO_WAITS,
        )
    )
    return [figure for figure in figures if figure.chart.data]


def curves(experiment: ExperimentSummary) -> list[Figure]:
    """Return a chart per query of run time over the degree of parallelism; none where only one was tried."""
    found = compared(experiment)
    tried = [one for one in found.dops if one is not None]
    return [_curve(found, query, sorted(tried)) for query in found.queries] if len(tried) > 1 else []


def key(experiment: ExperimentSummary) -> list[KeyItem]:
    """Return the key for all charts; empty for a single variant."""
    found = compared(experiment)
    seen = _looks(found)
    if len(found.variants) < 2:
        return []
    return [KeyItem(one.name, seen[one.name].colour, None, seen[one.name].symbol) for one in found.variants]


def _looks(found: QueryComparison) -> dict[str, Look]:
    return looks([variant.name for variant in found.variants])


def _relative(found: QueryComparison) -> Figure:
    """Return bars from 1, up or down on a logarithmic axis: half and double the time are equally far."""
    others = found.variants[1:]
    names = [*found.queries, MEAN]
    seen = _looks(found)
    low, high = 0.8, 1.25
    made = _chart(names, 340)
    for variant in others:
        values = [_cell_value(variant, found, query, lambda cell: cell.relative) for query in found.queries]
        values.append(variant.relative)
        changed = [bool((cell := _cell(variant, found, query)) and cell.plan_changed) for query in found.queries]
        known = [value for value in values if value]
        low, high = min([low, *known]), max([high, *known])
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
        made.add_trace(bar.update(base=1, marker={"pattern": {"shape": ["/" * c for c in [*changed, False]]}}))
    margin = math.log10(high / low) * 0.06
    ticks = [tick for tick in _TICKS if low * 0.9 <= tick <= high * 1.1]
    made.update_yaxes(
        type="log",
        range=[math.log10(low) - margin, math.log10(high) + margin],
        tickvals=ticks,
        ticktext=[f"{tick:g}×" for tick in ticks],
        zeroline=False,
    )
    made.add_hline(1, line={"color": NEUTRAL, "width": 1})
    note(made, "ratio, log scale", yshift=5)
    return Figure(
        id="query-relative",
        title=f"Run time relative to {found.baseline}",
        unit="ratio",
        emulated=any(variant.emulated for variant in found.variants),
        summary=" ".join(
            words.relative_mean(variant.name, times(variant.relative), variant.compared) for variant in others
        ),
        method=words.relative_method(PHASES[found.phase], found.baseline),
        chart=made,
        header=["query", *(variant.name for variant in others)],
        rows=[
            [query, *(times(_cell_value(variant, found, query, lambda cell: cell.relative)) for variant in others)]
            for query in found.queries
        ]
        + [["geometric mean", *(times(variant.relative) for variant in others)]],
        reading=words.RELATIVE_READING,
        wide=True,
    )


def _absolute(found: QueryComparison, id: str, title: str, unit: str, value: Value, method: str) -> Figure:
    seen = _looks(found)
    made = _chart(found.names, 280)
    for variant in found.variants:
        values = [_cell_value(variant, found, query, value) for query in found.names]
        if any(one is not None for one in values):
            made.add_trace(_bar(variant, seen, values, [f"{format.number(one)}  {variant.name}" for one in values]))
    made.update_yaxes(range=from_zero(highest(made)))
    note(made, unit, yshift=5)
    return Figure(
        id=f"query-{id}",
        title=f"{title} per query",
        unit=unit,
        emulated=any(variant.emulated for variant in found.variants),
        summary=" ".join(_largest(found, variant, value, unit) for variant in found.variants),
        method=method,
        chart=made,
        header=["query", *(variant.name for variant in found.variants)],
        rows=[
            [query, *(format.number(_cell_value(variant, found, query, value)) for variant in found.variants)]
            for query in found.names
        ],
        wide=True,
    )


def _curve(found: QueryComparison, query: str, tried: Sequence[int]) -> Figure:
    seen = _looks(found)
    ends = [math.log10(tried[0]) - 0.06, math.log10(tried[-1]) + 0.06]
    made = chart(200, margin={"t": 22, "b": 30}).update_xaxes(
        type="log", tickvals=list(tried), ticktext=[str(one) for one in tried], range=ends
    )
    for variant in found.variants:
        cells = [variant.cell(query, one) for one in tried]
        values = [cell.seconds if cell else None for cell in cells]
        actual = [format.number(cell.actual_dop if cell else None) for cell in cells]
        look = seen[variant.name]
        made.add_scatter(
            mode="lines+markers",
            name=plain(variant.name),
            x=list(tried),
            y=rounded(values),
            text=[
                f"{format.number(one)} s  {plain(variant.name)}, {ran} worked"
                for one, ran in zip(values, actual, strict=True)
            ],
            cliponaxis=False,
            line={"color": look.colour, "width": 1.75, "dash": look.dash},
            marker={"size": 7, "color": look.colour, "symbol": look.symbol},
        )
    made.update_yaxes(range=from_zero(highest(made)), nticks=4)
    note(made, "seconds", yshift=4)
    return Figure(
        id=f"query-dop-{query.lower()}",
        title=query,
        unit="seconds",
        emulated=any(variant.emulated for variant in found.variants),
        summary=" ".join(
            words.by_parallelism(variant.name, [(tried[0], one.seconds), (tried[-1], many.seconds)])
            for variant in found.variants
            if (one := variant.cell(query, tried[0])) and (many := variant.cell(query, tried[-1]))
        ),
        method=words.PARALLELISM,
        chart=made,
        header=["DOP", *(variant.name for variant in found.variants)],
        rows=[
            [dop(one), *(format.number(_seconds(variant, query, one)) for variant in found.variants)]
            for one in tried
        ],
    )  # fmt: skip


def _seconds(variant: QueryVariant, query: str, at: int) -> float | None:
    cell = variant.cell(query, at)
    return cell.seconds if cell else None


def _chart(names: Sequence[str], height: int) -> go.Figure:
    """Return an empty chart of bars, a place for each name."""
    made = chart(height, bargap=0.25, bargroupgap=0.05, barmode="group", margin={"t": 24, "b": 30})
    ticks = {
        "tickvals": list(range(len(names))),
        "ticktext": list(names),
        "tickfont": {"size": 11},
        "autotickangles": [0, -90],
    }
    return made.update_xaxes(range=[-0.6, len(names) - 0.4], ticks="", **ticks)


def _bar(variant: QueryVariant, seen: dict[str, Look], values: Sequence[float | None], texts: Sequence[str]) -> go.Bar:
    return go.Bar(
        name=plain(variant.name),
        x=list(range(len(values))),
        y=rounded(values),
        text=[plain(text) for text in texts],
        marker={"color": seen[variant.name].colour},
    )


def _cell(variant: QueryVariant, found: QueryComparison, query: str) -> QueryCell | None:
    return variant.cell(query, found.dops[0]) or variant.cell(query, None)


def _cell_value(variant: QueryVariant, found: QueryComparison, query: str, value: Value) -> float | None:
    cell = _cell(variant, found, query)
    return value(cell) if cell else None


def _largest(found: QueryComparison, variant: QueryVariant, value: Value, unit: str) -> str:
    known = [(one, query) for query in found.names if (one := _cell_value(variant, found, query, value)) is not None]
    if not known:
        return words.not_measured(variant.name)
    most, query = max(known)
    return words.most_in(variant.name, query, most, unit.split(",")[0])
