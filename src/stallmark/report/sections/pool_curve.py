"""The curve of memory: its chart, and its sizes as a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import plotly.graph_objects as go

from stallmark import format
from stallmark.analysis.experiment import ExperimentSummary
from stallmark.analysis.finding import Finding
from stallmark.analysis.pool_curve.curve import CurveSize, Fit, Mean, PoolCurve
from stallmark.analysis.pool_curve.findings import FlashKind
from stallmark.format import plural
from stallmark.report.document import Block, Section, Shown, Title, Words
from stallmark.report.figures import Figure, note, places, rounded, side_by_side, values_axis
from stallmark.report.style import COLOURS, NEUTRAL, KeyItem, plain
from stallmark.report.table import Rows, Table, number, word
from stallmark.report.text import pool_curve as words
from stallmark.report.text import reading
from stallmark.report.text.device import labelled

POINT, LEFT_OUT, FLASH = COLOURS[:3]


def curve_figures(experiment: ExperimentSummary) -> list[Figure]:
    """Return a chart for each curve: throughput and reads per transaction over memory."""
    flash = [one for one in experiment.findings if isinstance(one.kind, FlashKind) and "variant" in one.facts]
    return [_figure(curve, number, flash) for number, curve in enumerate(experiment.curves)]


def curve_tables(experiment: ExperimentSummary) -> list[tuple[str, Table]]:
    """Return the sizes of each curve, with the device it is of."""
    return [(labelled(curve.device), _table(curve)) for curve in experiment.curves]


def _figure(curve: PoolCurve, number: int, flash: Sequence[Finding]) -> Figure:
    rate = f"{plural(curve.primary) if curve.primary else 'Transactions'} per second"
    plots: list[tuple[str, Fit, Callable[[CurveSize], Mean | None]]] = [(rate, curve.throughput, lambda s: s.rate)]
    if curve.reads:
        plots.append(("Physical reads per transaction", curve.reads, lambda s: s.reads))
    made, lefts = side_by_side([1.0] * len(plots), 0.09, 330, margin={"t": 28})
    for place, left, (title, fit, value) in zip(places(len(plots)), lefts, plots, strict=True):
        axes = {"xaxis": f"x{place}", "yaxis": f"y{place}"}
        made.add_traces(_traces(curve, fit, value, axes))
        wide = [one.value for size in curve.sizes if (one := value(size))] if fit is curve.throughput else []
        if fit is curve.throughput and flash:
            made.add_trace(_flash(flash, axes))
            wide += [one.facts["per_s"][1] for one in flash]
        top = max([one.high or one.value for size in curve.sizes if (one := value(size))] + wide)
        axis, scale = values_axis(top, wide)
        made.update_layout({f"xaxis{place}": _memory_axis(curve), f"yaxis{place}": axis})
        note(made, title + scale, xref="paper", yref="paper", x=left, xanchor="left", yshift=8)
    sizes = [(size.pool_bytes, size.rate.value, size.reads.value if size.reads else None) for size in curve.sizes]
    table = _table(curve)
    return Figure(
        id="memory-curve" + f"-{number + 1}" * (number > 0),
        title="Throughput and reads over memory",
        unit=rate,
        emulated=curve.emulated,
        summary=words.summary(sizes),
        method=words.METHOD,
        chart=made,
        header=table.header,
        rows=[[str(cell) for cell in row] for row in table.rows],
        key=[
            KeyItem("a size", POINT, None, "circle"),
            KeyItem("fitted curve", NEUTRAL, "solid"),
            KeyItem("a size left out", LEFT_OUT, None, "x"),
            *([KeyItem("with flash", FLASH, None, "star")] if flash else []),
        ],
        wide=True,
    )


def _flash(found: Sequence[Finding], axes: dict[str, str]) -> go.Scatter:
    """Return the variants with flash, each at its own memory."""
    rates = [one.facts["per_s"][1] for one in found]
    return go.Scatter(
        mode="markers",
        name="with flash",
        x=[one.facts["pool_bytes"] for one in found],
        y=rounded(rates, 5),
        text=[f"{format.number(rate)}  {plain(one.facts['variant'])}" for rate, one in zip(rates, found, strict=True)],
        marker={"size": 11, "color": FLASH, "symbol": "star"},
        **axes,
    )


def _traces(
    curve: PoolCurve, fit: Fit, value: Callable[[CurveSize], Mean | None], axes: dict[str, str]
) -> list[go.Scatter]:
    known = [(size, one) for size in curve.sizes if (one := value(size))]
    bars = {
        "type": "data",
        "symmetric": False,
        "array": rounded(one.high - one.value if one.high is not None else None for _, one in known),
        "arrayminus": rounded(one.value - one.low if one.low is not None else None for _, one in known),
    }
    repeated = any(one.high is not None for _, one in known)
    return [
        go.Scatter(
            mode="lines",
            name="fitted curve",
            x=[round(at) for at, _ in fit.line],
            y=rounded((one for _, one in fit.line), 5),
            line={"color": NEUTRAL, "width": 1.75},
            hoverinfo="skip",
            **axes,
        ),
        go.Scatter(
            mode="markers",
            name="a size",
            x=[size.pool_bytes for size, _ in known],
            y=rounded((one.value for _, one in known), 5),
            text=[f"{format.number(one.value)}  {format.size(size.pool_bytes)}" for size, one in known],
            marker={"size": 9, "color": POINT},
            cliponaxis=False,
            **({"error_y": bars} if repeated else {}),
            **axes,
        ),
        go.Scatter(
            mode="markers",
            name="left out",
            x=[one.size for one in fit.left_out],
            y=rounded((one.predicted for one in fit.left_out), 5),
            text=[f"{format.number(one.predicted)} with {format.size(one.size)} left out" for one in fit.left_out],
            marker={"size": 7, "color": LEFT_OUT, "symbol": "x"},
            **axes,
        ),
    ]


def _memory_axis(curve: PoolCurve) -> dict[str, object]:
    """Return a logarithmic axis of sizes, with those measured that stand apart as its ticks."""
    sizes = [size.pool_bytes for size in curve.sizes]
    ticks = [sizes[-1]]
    for size in reversed(sizes[:-1]):
        if ticks[-1] / size >= (sizes[-1] / sizes[0]) ** 0.11:
            ticks.append(size)
    texts = [format.size(size) for size in ticks]
    return {"type": "log", "tickvals": ticks, "ticktext": texts, "tickfont": {"size": 11}, "tickangle": 0}


def _table(curve: PoolCurve) -> Table:
    tps, reads = _left_out(curve.throughput), _left_out(curve.reads)
    return Rows(curve.sizes).table(
        word("memory", lambda size: format.size(size.pool_bytes)),
        number("of the data", lambda size: size.pool_share, format.portion),
        word("chosen as", lambda size: words.why(size.chosen)),
        number("runs", lambda size: len(size.tps), format.count),
        number(f"{plural(curve.primary) if curve.primary else 'transactions'}/s", lambda size: size.rate, _mean),
        number("left out", lambda size: tps.get(size.pool_bytes)),
        number("reads, per tx", lambda size: size.reads, _mean),
        number("left out", lambda size: reads.get(size.pool_bytes), when=curve.reads is not None),
    )


def _left_out(fit: Fit | None) -> dict[int, float]:
    """Return the predicted value of each size that was left out, by its bytes."""
    return {size.size: size.predicted for size in fit.left_out} if fit else {}


def _mean(found: Mean | None) -> str:
    if found is None:
        return format.NONE
    if found.low is None or found.high is None:
        return format.number(found.value)
    return f"{format.number(found.value)} ({format.number(found.low)} to {format.number(found.high)})"


def section(experiment: ExperimentSummary) -> Section:
    charts = curve_figures(experiment)
    blocks: list[Block] = [Words(reading.MEMORY_CURVE, "lead")]
    for chart, (device, table) in zip(charts, curve_tables(experiment), strict=True):
        blocks += [*([Title(device)] if len(charts) > 1 else []), chart, Shown(table, "Sizes of the curve of memory")]
    return Section("memory-curve", "The curve of memory", blocks if charts else [])
