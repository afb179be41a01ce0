"""Figures against the axis of the experiment."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import cycle
from typing import Any

from stallmark import format
from stallmark.analysis.experiment import ExperimentSummary, doubtful
from stallmark.analysis.metrics import METRICS, THROUGHPUT, Chart, Value
from stallmark.analysis.step_summary import StepSummary
from stallmark.format import display_name, plural
from stallmark.report.columns import Axis, panels, primary_of, step_labels, variant_key
from stallmark.report.document import Grid, Key, Section, Words
from stallmark.report.figures import (
    NEUTRAL,
    Figure,
    KeyItem,
    Look,
    Trace,
    bars,
    from_zero,
    looks,
    note,
    places,
    plain,
    rate_axis,
    rounded,
    scatter,
    side_by_side,
)
from stallmark.report.text import reading
from stallmark.report.text.device import labelled
from stallmark.report.text.reading import ChartLine, Panel, is_finite, reading_of, summary_of

_LEFT: dict[str, Any] = {"x": 0}
_RIGHT: dict[str, Any] = {"x": 1, "xanchor": "right"}
GAP = 0.1  # gap between emulated and bare panels, as a share of the figure's width


def axis_figures(experiment: ExperimentSummary) -> list[Figure]:
    """Return throughput and every chart of metrics against the axis; empty if no step was reached."""
    if not experiment.steps:
        return []
    rate = "committed per second"
    all_transactions = axis_figure(
        experiment,
        Chart("tps", f"{'All transactions' if primary_of(experiment) else 'Transactions'} per second", rate),
        [ChartLine("TPS", METRICS["all_tps"].value, rate=True)],
        reading.throughput_method(
            measured=_range([s.interval.measured_s for s in experiment.steps], format.seconds),
            commits=_range([s.throughput.committed for s in experiment.steps], format.number),
        ),
    )
    figures = [all_transactions]
    if primary := primary_of(experiment):
        # The nominal rate is said and not drawn: it may lie far from the measured one.
        nominal = {s.throughput.nominal_tps for s in experiment.steps if s.throughput.nominal_tps}
        name = plural(primary)
        line = ChartLine(name, THROUGHPUT.value, rate=True)
        method = reading.primary_method(name, sorted(nominal))
        figures.insert(0, axis_figure(experiment, Chart("primary", f"{name} per second", rate), [line], method))
    for chart in dict.fromkeys(metric.chart for metric in METRICS.values() if metric.chart):
        lines = {metric.line or metric.title: metric.value for metric in METRICS.values() if metric.chart == chart}
        figures.append(axis_figure(experiment, chart, _styled(lines), reading.METHODS[chart.id]))
    return figures


def transaction_figures(experiment: ExperimentSummary) -> list[Figure]:
    """Return the latency of every transaction type; empty for a single type, whose latency is that of the step."""
    names = list(dict.fromkeys(t.name for s in experiment.steps for t in s.transactions))
    if len(names) < 2:
        return []

    def percentile(name: str, key: str) -> Value:
        return lambda s: next((t.latency_ms.get(key) for t in s.transactions if t.name == name), None)

    limits = {t.name: t.limit_s for s in experiment.steps for t in s.transactions}
    figures = [
        axis_figure(
            experiment,
            Chart(f"transaction-{number}", f"{display_name(name)}{_p90_limit(limits[name])}", "ms"),
            _styled({key: percentile(name, key) for key in ("p50", "p90" if limits[name] else "p95", "p99")}),
            reading.TRANSACTION_LATENCY,
            height=250,
        )
        for number, name in enumerate(names)
    ]
    return [
        figure for figure in figures if any(value is not None for trace in figure.chart.traces for value in trace["y"])
    ]


def _p90_limit(limit_s: float | None) -> str:
    return f", p90 limit {limit_s:g} s" if limit_s else ""


_STYLES = {2: (("solid", 1.0), ("dot", 0.55)), 3: (("solid", 1.0), ("dash", 0.75), ("dot", 0.5))}
"""Dash and opacity of the lines of a chart, by their number."""


def _styled(lines: Mapping[str, Value]) -> list[ChartLine]:
    """Return the lines of a chart, the first one emphasised."""
    styles = _STYLES[2 if len(lines) < 3 else 3]
    return [ChartLine(name, value, *style) for (name, value), style in zip(lines.items(), cycle(styles), strict=False)]


def axis_figure(
    experiment: ExperimentSummary, chart: Chart, metrics: Sequence[ChartLine], method: str, height: int = 290
) -> Figure:
    """Return one chart: a line per emulated variant or device, real devices in a panel of their own."""
    axis = Axis.from_experiment(experiment)
    parts = panels(experiment.steps)
    tops = [max((v for s in p.steps for m in metrics if is_finite(v := m.value(s))), default=0.0) for p in parts]
    # On a common scale the slower panel would be flat if the other is several times as high.
    own_scale = len(parts) == 2 and min(tops) > 0 and max(tops) > 3 * min(tops)
    wide = None
    # Rates over memory are compared by their ratios; times and counts keep a scale from zero.
    if axis.kind.startswith("pool") and len(parts) == 1 and all(m.rate for m in metrics):
        wide = rate_axis([m.value(s) or 0.0 for s in parts[0].steps for m in metrics])
    margin = {} if any(p.title for p in parts) else {"margin": {"t": 24}}
    made, _ = side_by_side(_widths(parts), GAP, height, bargap=0.45 if len(metrics) == 1 else 0.25, **margin)
    for place, panel, top in zip(places(len(parts)), parts, tops, strict=True):
        x, y = _x_axis(axis, panel), wide or {"range": from_zero(top if own_scale else max(tops))}
        above, side = f"{chart.unit}{', log scale' * bool(wide)}", _LEFT
        if place:
            # On a common scale the labels of the left panel are enough.
            y["showticklabels"] = own_scale
            above, side = "own scale" if own_scale else "same scale", _RIGHT
        elif axis.title:
            x["title"] = {"text": axis.title}
        made.add(*_traces(experiment, axis, panel, metrics, place))
        made.change(**{f"xaxis{place}": x, f"yaxis{place}": y})
        if panel.title:
            note(made, "bare device" if place else panel.title, 30, bold=True, yshift=20, **side)
        note(made, above, yshift=5, **side)
    labels = step_labels(experiment)
    return Figure(
        id=chart.id,
        title=chart.title,
        unit=chart.unit,
        emulated=any(p.emulated for p in parts),
        summary=summary_of(parts, metrics, labels, own_scale),
        method=method,
        chart=made,
        header=["step", *(m.name for m in metrics), "measured", "commits"],
        rows=[
            [
                labels[s.key],
                *(format.number(m.value(s)) for m in metrics),
                format.seconds(s.interval.measured_s),
                format.count(s.throughput.committed),
            ]
            for s in experiment.steps
        ],
        key=metric_key(metrics, axis.numeric),
        reading=reading_of(parts, metrics[0], labels) if len(metrics) == 1 else "",
    )


def metric_key(metrics: Sequence[ChartLine], lines: bool) -> list[KeyItem]:
    if len(metrics) < 2:
        return []
    return [
        KeyItem(m.name, NEUTRAL, m.dash) if lines else KeyItem(m.name, NEUTRAL, None, "bar", opacity=m.opacity)
        for m in metrics
    ]


def _traces(
    experiment: ExperimentSummary, axis: Axis, panel: Panel, metrics: Sequence[ChartLine], place: str
) -> list[Trace]:
    """Return lines on an axis of numbers, bars where each step has a place of its own."""
    seen, hollow = looks([s.variant for s in experiment.steps]), doubtful(experiment)
    draw = _lines if axis.numeric else _bars
    axes = {"xaxis": f"x{place}", "yaxis": f"y{place}"}
    return [trace for metric in metrics for trace in draw(axis, panel, metric, seen, hollow, len(metrics) > 1, axes)]


def _lines(
    axis: Axis, panel: Panel, metric: ChartLine, seen: dict[str, Look], hollow: set[str], several: bool, axes: dict
) -> list[Trace]:
    """Return lines. Users: one per variant and repeat. Buffer pool: one per device and repeat through its variants."""
    # Variants are lines over the users. Over memory each variant is one point of the line.
    by_users = axis.kind == "users"
    groups: dict[tuple[str, int], list[StepSummary]] = {}
    for step in panel.steps:
        groups.setdefault((step.variant if by_users else labelled(step.device), step.repeat), []).append(step)
    return [
        scatter(
            mode="lines+markers",
            name=plain(metric.name if several else name),
            x=[axis.x(s) for s in steps],
            y=rounded(map(metric.value, steps), 6),
            text=[
                f"{format.number(metric.value(s))}  {plain(axis.labels[s.key])}{f' · {metric.name}' * several}"
                for s in steps
            ],
            cliponaxis=False,
            # Over memory a line passes through several variants, so that only its marks have their colours.
            line={"color": seen[name].colour if by_users else NEUTRAL, "width": 1.75, "dash": metric.dash},
            marker={
                "size": 8,
                "color": [seen[s.variant].colour for s in steps],
                "symbol": [seen[s.variant].symbol + "-open" * (s.key in hollow) for s in steps],
            },
            **axes,
        )
        for (name, _), unsorted in groups.items()
        for steps in [sorted(unsorted, key=axis.x)]
    ]


def _bars(
    axis: Axis, panel: Panel, metric: ChartLine, seen: dict[str, Look], hollow: set[str], several: bool, axes: dict
) -> list[Trace]:
    """Return bars; none for one of several metrics without values, which would take the room of a bar."""
    steps = panel.steps
    if several and not any(is_finite(metric.value(step)) for step in steps):
        return []
    return [
        bars(
            name=plain(metric.name),
            x=list(range(len(steps))),
            y=rounded(map(metric.value, steps), 6),
            text=[f"{format.number(metric.value(s))}{f'  {metric.name}' * several}" for s in steps],
            marker={
                "color": [seen[s.variant].colour for s in steps],
                "opacity": metric.opacity,
                "pattern": {"shape": ["/" * (s.key in hollow) for s in steps]},
            },
            **axes,
        )
    ]


def _x_axis(axis: Axis, panel: Panel) -> dict[str, Any]:
    if axis.numeric:
        ticks = {axis.x(s): axis.tick(s) for s in panel.steps}
    else:
        ticks = {place: axis.tick(s) for place, s in enumerate(panel.steps)}
    values = sorted(ticks)
    low, high = values[0], values[-1]
    result = {"tickvals": values, "ticktext": [ticks[v] for v in values], "tickfont": {"size": 11}}
    if axis.logarithmic:
        margin = max(0.12, (math.log10(high) - math.log10(low)) * 0.08)
        return result | {"type": "log", "range": [math.log10(low) - margin, math.log10(high) + margin]}
    margin = max((high - low) * 0.06, 0.6 if not axis.numeric else high * 0.05)
    return result | {"range": [low - margin, high + margin]}


def _widths(parts: Sequence[Panel]) -> list[float]:
    """Return the share of a chart's width for each panel."""
    if len(parts) == 1:
        return [1.0]
    first, second = (len({s.key for s in p.steps}) for p in parts)
    share = min(max(second / (first + second), 0.17), 0.5)
    return [1 - share, share]


def _range(values: Sequence[float], write: Callable[[float], str]) -> str:
    low, high = write(min(values, default=0)), write(max(values, default=0))
    return low if low == high else f"{low} to {high}"


def section(experiment: ExperimentSummary) -> Section:
    titles = {"buffer_pool": "By size of the buffer pool", "users": "By number of users", "device": "By device"}
    footnote = [Words(reading.DOUBTFUL, "footnote")] if doubtful(experiment) else []
    blocks = [Key(variant_key(experiment)), *footnote, Grid(axis_figures(experiment))]
    return Section("axis", titles.get(experiment.axis, "By variant"), blocks)
