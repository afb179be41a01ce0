"""Charts of runs of queries: bars for all queries, variant beside variant, and a curve for each over parallelism."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from stallmark import format
from stallmark.analysis.queries.summary import PHASES, QueryCell, QueryComparison, QueryVariant
from stallmark.analysis.summary import ExperimentSummary
from stallmark.report.queries.tables import compared, dop, name_of, times
from stallmark.report.sections.axis import Figure
from stallmark.report.style import KeyItem, Look, axis, layout, looks, note, plain, value_axis

MEAN = "mean"
_TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)

Value = Callable[[QueryCell], float | None]


def bars(experiment: ExperimentSummary) -> list[Figure]:
    """Run time relative to the baseline where there are variants to hold against it, and what lies behind it."""
    found = compared(experiment)
    phase = PHASES[found.phase]
    figures = [_relative(found)] if len(found.variants) > 1 else []
    figures.append(
        _absolute(
            found,
            "seconds",
            "Run time",
            "seconds",
            lambda cell: cell.seconds,
            f"Seconds from sending a query to its whole answer, in the {phase}.",
        )
    )
    figures.append(
        _absolute(
            found,
            "reads",
            "Read from disk",
            "MB",
            lambda cell: None if cell.read_bytes is None else cell.read_bytes / 1e6,
            "Pages that were not in the pool, over all workers of a query, as the server counted them; temporary files "
            "are not among them.",
        )
    )
    figures.append(
        _absolute(
            found,
            "stalls",
            "Waiting for I/O",
            "seconds, summed over workers",
            lambda cell: None if cell.io_wait_ms is None else cell.io_wait_ms / 1000,
            "What the server says the query waited for reads and writes of data and temporary files. Several workers "
            "wait at once, so it may be longer than the run time.",
        )
    )
    return [figure for figure in figures if figure.plotly["data"]]


def curves(experiment: ExperimentSummary) -> list[Figure]:
    """A small chart per query: run time over the degree of parallelism; none where only one was tried."""
    found = compared(experiment)
    tried = [one for one in found.dops if one is not None]
    return [_curve(found, query, sorted(tried)) for query in found.queries] if len(tried) > 1 else []


def key(experiment: ExperimentSummary) -> list[KeyItem]:
    """For all charts; none for a single variant."""
    found = compared(experiment)
    seen = _looks(found)
    if len(found.variants) < 2:
        return []
    return [
        KeyItem(one.name, seen[one.name].colour, None, seen[one.name].symbol, one.emulated) for one in found.variants
    ]


def _looks(found: QueryComparison) -> dict[str, Look]:
    return looks([variant.name for variant in found.variants])


def _relative(found: QueryComparison) -> Figure:
    """Bars from 1, up or down on a logarithmic axis: half and double the time are equally far."""
    others = found.variants[1:]
    names = [*found.queries, MEAN]
    seen = _looks(found)
    low, high = 0.8, 1.25
    data = []
    for variant in others:
        values = [_cell_value(variant, found, query, lambda cell: cell.relative) for query in found.queries]
        values.append(variant.relative)
        changed = [bool((cell := _cell(variant, found, query)) and cell.plan_changed) for query in found.queries]
        known = [value for value in values if value]
        low, high = min([low, *known]), max([high, *known])
        data.append(
            _trace(variant, seen, names, [None if not v else v - 1 for v in values], [
                f"{times(v)}  {variant.name}{', another plan' if c else ''}"
                for v, c in zip(values, [*changed, False], strict=True)
            ])
            | {
                "base": 1,
                "marker": {
                    "color": seen[variant.name].colour,
                    "pattern": {"shape": ["/" if c else "" for c in [*changed, False]]},
                },
            }
        )  # fmt: skip
    if not any(value is not None for trace in data for value in trace["y"]):
        data = []
    margin = math.log10(high / low) * 0.06
    figure = _layout(names, 340) | {
        "yaxis": axis(
            type="log",
            range=[math.log10(low) - margin, math.log10(high) + margin],
            tickvals=[tick for tick in _TICKS if low * 0.9 <= tick <= high * 1.1],
            ticktext=[f"{tick:g}×" for tick in _TICKS if low * 0.9 <= tick <= high * 1.1],
            showgrid=True,
            showline=False,
            ticks="",
        ),
        "shapes": [{"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": 1, "y1": 1, "line": {"width": 1}}],
    }
    figure["annotations"].append(note(plain(f"run time, {found.baseline} = 1, log scale"), x=0, y=1, yshift=5))
    return Figure(
        id="query-relative",
        title=f"Run time relative to {found.baseline}",
        unit="ratio",
        emulated=any(variant.emulated for variant in found.variants),
        summary=" ".join(
            f"{variant.name}: geometric mean {times(variant.relative)} over {variant.compared} queries."
            for variant in others
        ),
        method=f"Run time of each query in the {PHASES[found.phase]} divided by its run time in {found.baseline}; "
        "below 1 is faster. Mean: geometric mean of all queries, refreshes left out. Hatched: its plan is another one.",
        plotly={"data": data, "layout": figure},
        header=["query", *(name_of(variant) for variant in others)],
        rows=[
            [query, *(times(_cell_value(variant, found, query, lambda cell: cell.relative)) for variant in others)]
            for query in found.queries
        ]
        + [["geometric mean", *(times(variant.relative) for variant in others)]],
        reading="Bars below the line are faster, above it slower; hatched ones have another plan.",
        wide=True,
    )


def _absolute(found: QueryComparison, id: str, title: str, unit: str, value: Value, method: str) -> Figure:
    seen = _looks(found)
    data, top = [], 0.0
    for variant in found.variants:
        values = [_cell_value(variant, found, query, value) for query in found.names]
        if any(one is not None for one in values):
            top = max([top, *(one for one in values if one is not None)])
            texts = [f"{format.number(one)}  {variant.name}" for one in values]
            data.append(_trace(variant, seen, found.names, values, texts))
    figure = _layout(found.names, 280) | {"yaxis": value_axis(top)}
    figure["annotations"].append(note(plain(unit), x=0, y=1, yshift=5))
    return Figure(
        id=f"query-{id}",
        title=f"{title} per query",
        unit=unit,
        emulated=any(variant.emulated for variant in found.variants),
        summary=" ".join(_largest(found, variant, value, unit) for variant in found.variants),
        method=method,
        plotly={"data": data, "layout": figure},
        header=["query", *(name_of(variant) for variant in found.variants)],
        rows=[
            [query, *(format.number(_cell_value(variant, found, query, value)) for variant in found.variants)]
            for query in found.names
        ],
        wide=True,
    )


def _curve(found: QueryComparison, query: str, tried: Sequence[int]) -> Figure:
    seen = _looks(found)
    data, top = [], 0.0
    for variant in found.variants:
        cells = [variant.cell(query, one) for one in tried]
        values = [cell.seconds if cell else None for cell in cells]
        actual = [format.number(cell.actual_dop if cell else None) for cell in cells]
        top = max([top, *(one for one in values if one is not None)])
        look = seen[variant.name]
        data.append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "name": plain(variant.name),
                "x": list(tried),
                "y": [_rounded(one) for one in values],
                "text": [
                    f"{format.number(one)} s  {plain(variant.name)}, {ran} worked"
                    for one, ran in zip(values, actual, strict=True)
                ],
                "hovertemplate": "%{text}<extra></extra>",
                "cliponaxis": False,
                "line": {"color": look.colour, "width": 1.75, "dash": look.dash},
                "marker": {"size": 7, "color": look.colour, "symbol": look.symbol},
            }
        )
    figure = layout(200) | {
        "xaxis": axis(
            type="log", tickvals=list(tried), ticktext=[str(one) for one in tried],
            range=[math.log10(tried[0]) - 0.06, math.log10(tried[-1]) + 0.06],
        ),
        "yaxis": value_axis(top, nticks=4),
    }  # fmt: skip
    figure["margin"] |= {"t": 22, "b": 30}
    figure["annotations"].append(note("seconds", x=0, y=1, yshift=4))
    return Figure(
        id=f"query-dop-{query.lower()}",
        title=query,
        unit="seconds",
        emulated=any(variant.emulated for variant in found.variants),
        summary=" ".join(
            f"{variant.name}: {format.number(one.seconds)} s at {tried[0]}, "
            f"{format.number(many.seconds)} s at {tried[-1]}."
            for variant in found.variants
            if (one := variant.cell(query, tried[0])) and (many := variant.cell(query, tried[-1]))
        ),
        method="Run time over how many processes or threads were allowed to work on the query, log scale; how many did "
        "is in the table of all figures.",
        plotly={"data": data, "layout": figure},
        header=["DOP", *(name_of(variant) for variant in found.variants)],
        rows=[
            [dop(one), *(format.number(_seconds(variant, query, one)) for variant in found.variants)]
            for one in tried
        ],
    )  # fmt: skip


def _seconds(variant: QueryVariant, query: str, at: int) -> float | None:
    cell = variant.cell(query, at)
    return cell.seconds if cell else None


def _layout(names: Sequence[str], height: int) -> dict[str, Any]:
    figure = layout(height, bargap=0.25, bargroupgap=0.05, barmode="group")
    figure["margin"] |= {"t": 24, "b": 30}
    figure["xaxis"] = axis(
        tickvals=list(range(len(names))), ticktext=list(names), range=[-0.6, len(names) - 0.4], ticks="",
        tickfont={"size": 11}, tickangle=0,
    )  # fmt: skip
    return figure


def _trace(
    variant: QueryVariant,
    seen: dict[str, Look],
    names: Sequence[str],
    values: Sequence[float | None],
    texts: Sequence[str],
) -> dict[str, Any]:
    return {
        "type": "bar",
        "name": plain(variant.name),
        "x": list(range(len(names))),
        "y": [_rounded(value) for value in values],
        "text": [plain(text) for text in texts],
        "textposition": "none",
        "hovertemplate": "%{text}<extra></extra>",
        "marker": {"color": seen[variant.name].colour},
    }


def _cell(variant: QueryVariant, found: QueryComparison, query: str) -> QueryCell | None:
    return variant.cell(query, found.dops[0]) or variant.cell(query, None)


def _cell_value(variant: QueryVariant, found: QueryComparison, query: str, value: Value) -> float | None:
    cell = _cell(variant, found, query)
    return value(cell) if cell else None


def _largest(found: QueryComparison, variant: QueryVariant, value: Value, unit: str) -> str:
    known = [(one, query) for query in found.names if (one := _cell_value(variant, found, query, value)) is not None]
    if not known:
        return f"{variant.name}: not measured."
    most, query = max(known)
    return f"{variant.name}: most in {query}, {format.number(most)} {unit.split(',')[0]}."


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")
