"""Figures against the axis of the experiment, as Plotly JSON with the words and numbers that go with them."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from stallmark import format
from stallmark.analysis.summary import ExperimentSummary, StepSummary
from stallmark.format import plural, spoken
from stallmark.report.columns import doubtful, primary_of, rate
from stallmark.report.labels import EMULATED, Axis, Panel, panels, step_labels
from stallmark.report.style import NEUTRAL, KeyItem, Look, axis, layout, looks, note, plain, rate_axis, value_axis
from stallmark.report.text.charts import Metric, known, reading_of, summary_of

GAP = 0.1  # of a figure's width, between emulated and bare panels


@dataclass(frozen=True)
class Figure:
    """A chart and all that is said with it. `plotly` holds "data" and "layout"; no text in it is mark-up."""

    id: str
    title: str
    unit: str
    emulated: bool
    summary: str  # what a reader who cannot see it would want to know
    method: str
    plotly: dict[str, Any]
    header: list[str]
    rows: list[list[str]]
    key: list[KeyItem] = field(default_factory=list)
    reading: str = ""  # a line under the title of a chart that needs no key
    wide: bool = False


def axis_figures(experiment: ExperimentSummary) -> list[Figure]:
    """What the experiment asks: each quantity against the axis; none when no step was reached."""
    if not experiment.steps:
        return []
    primary = primary_of(experiment)
    return [
        *([_primary_figure(experiment, plural(primary))] if primary else []),
        axis_figure(
            experiment,
            "tps",
            "All transactions per second" if primary else "Transactions per second",
            "committed per second",
            [Metric("TPS", lambda s: s.tps, rate=True)],
            "Committed transactions of the measured interval divided by its seconds. Sample per point: one "
            f"measured interval ({_range([s.measured_s for s in experiment.steps], format.seconds)}, "
            f"{_range([s.committed for s in experiment.steps], format.number)} commits).",
        ),
        axis_figure(
            experiment,
            "latency",
            "Latency percentiles",
            "ms",
            percentiles(lambda s: s.latency_ms),
            "Scheduled to ended, retries included, from an HDR histogram with 3 significant digits over the "
            "whole measured interval. A percentile the sample is too small for is not drawn.",
        ),
        axis_figure(
            experiment,
            "reads",
            "Physical reads per transaction",
            "reads per commit",
            [Metric("reads per transaction", lambda s: s.reads_per_transaction)],
            "Reads of data files that left the server, over the measured interval, divided by its commits.",
        ),
        axis_figure(
            experiment,
            "read-ms",
            "Read time as the server saw it",
            "ms per read",
            [
                Metric("volume-weighted mean", _of_data_io("read_ms")),
                Metric("mean of intervals", _of_data_io("read_interval_mean_ms"), "dot", 0.55),
            ],
            "Volume-weighted: stall divided by reads of the measured interval. Mean of intervals: the mean of "
            "the per-second means, as monitoring tools draw it; quiet seconds count as much as busy ones.",
        ),
        axis_figure(
            experiment,
            "iops",
            "I/O operations per second",
            "per second, data files",
            [Metric("IOPS", lambda s: rate(s.data_io, "iops"))],
            "Reads and writes of data files as the server counts them, over the measured interval; the log is "
            "not in it.",
        ),
        axis_figure(
            experiment,
            "mb",
            "Bandwidth",
            "MB/s, data files",
            [Metric("MB/s", lambda s: rate(s.data_io, "mb_per_s"))],
            "Bytes read from and written to data files as the server counts them, over the measured interval.",
        ),
    ]


def _primary_figure(experiment: ExperimentSummary, name: str) -> Figure:
    """The result. What the database's size stands for is said and not drawn: it may lie far from what is reached."""
    nominal = {s.nominal_tps for s in experiment.steps if s.nominal_tps}
    size = (
        f" The size of the database stands for {' or '.join(format.number(n) for n in sorted(nominal))} per second."
        if nominal
        else ""
    )
    return axis_figure(
        experiment,
        "primary",
        f"{name} per second",
        "committed per second",
        [Metric(name, lambda s: s.result_tps, rate=True)],
        f"{name} committed within the measured interval divided by its seconds.{size}",
    )


def transaction_figures(experiment: ExperimentSummary) -> list[Figure]:
    """Latency of every transaction type; none when there is one type, whose latency is that of the step."""
    names = list(dict.fromkeys(t.name for s in experiment.steps for t in s.transactions))
    if len(names) < 2:
        return []

    def of(name: str) -> Callable[[StepSummary], dict[str, float | None]]:
        return lambda s: next((t.latency_ms for t in s.transactions if t.name == name), {})

    limits = {t.name: t.limit_s for s in experiment.steps for t in s.transactions}
    return [
        axis_figure(
            experiment,
            f"transaction-{number}",
            spoken(name) + (f", limit of p90 {limit:g} s" if (limit := limits[name]) else ""),
            "ms",
            percentiles(of(name), "p90" if limits[name] else "p95"),
            "Latency of this transaction type, scheduled to ended, retries included (HDR histogram).",
            height=250,
        )
        for number, name in enumerate(names)
    ]


def percentiles(of: Callable[[StepSummary], dict[str, float | None]], high: str = "p95") -> list[Metric]:
    return [
        Metric("p50", lambda s: of(s).get("p50"), "solid", 1.0),
        Metric(high, lambda s: of(s).get(high), "dash", 0.75),
        Metric("p99", lambda s: of(s).get("p99"), "dot", 0.5),
    ]


def axis_figure(
    experiment: ExperimentSummary,
    id: str,
    title: str,
    unit: str,
    metrics: Sequence[Metric],
    method: str,
    height: int = 290,
) -> Figure:
    """One chart: a line per emulated variant or device, real devices in a panel of their own."""
    at = Axis.of(experiment)
    seen = looks([s.variant for s in experiment.steps])
    hollow = doubtful(experiment)
    parts = panels(experiment.steps)
    tops = [max((v for s in p.steps for m in metrics if known(v := m.value(s))), default=0.0) for p in parts]
    own_scale = len(parts) == 2 and min(tops) > 0 and max(tops) > 3 * min(tops)
    wide = None
    if at.kind.startswith("pool") and len(parts) == 1 and all(m.rate for m in metrics):
        wide = rate_axis([m.value(s) or 0.0 for s in parts[0].steps for m in metrics], anchor="x")
    figure = layout(height, bargap=0.45 if len(metrics) == 1 else 0.25)
    if not any(p.title for p in parts):
        figure["margin"]["t"] = 24
    data: list[dict[str, Any]] = []
    for number, (panel, (left, right)) in enumerate(zip(parts, _domains(parts), strict=True)):
        suffix = str(number + 1) if number else ""
        places = {s.key: i for i, s in enumerate(panel.steps)}
        for metric in metrics:
            traces = _lines if at.numeric else _bars
            data += [
                trace | {"xaxis": f"x{suffix}", "yaxis": f"y{suffix}"}
                for trace in traces(at, panel, places, metric, seen, len(metrics) > 1, hollow)
            ]
        figure[f"xaxis{suffix}"] = _x_axis(at, panel, places) | {"domain": [left, right], "anchor": f"y{suffix}"}
        if at.title and number == 0:
            figure[f"xaxis{suffix}"]["title"] = {"text": at.title, "font": {"size": 11}, "standoff": 8}
        shown = own_scale or number == 0
        figure[f"yaxis{suffix}"] = wide or value_axis(tops[number] if own_scale else max(tops), anchor=f"x{suffix}") | (
            {} if shown else {"showticklabels": False}
        )
        side = {"x": right, "xanchor": "right"} if number else {"x": left}
        if panel.title:
            words = "bare device" if number else plain(panel.title, 30)
            figure["annotations"].append(note(f"<b>{words}</b>", y=1, yshift=20, **side))
        unit_words = (
            f"{unit}{', log scale' * bool(wide)}" if number == 0 else ("own scale" if own_scale else "same scale")
        )
        figure["annotations"].append(note(plain(unit_words), y=1, yshift=5, **side))
    labels = step_labels(experiment)
    return Figure(
        id=id,
        title=title,
        unit=unit,
        emulated=any(p.emulated for p in parts),
        summary=summary_of(parts, metrics, labels, own_scale),
        method=method,
        plotly={"data": data, "layout": figure},
        header=["step", *(m.name for m in metrics), "measured", "commits"],
        rows=[
            [
                emulated_label(s, labels),
                *(format.number(m.value(s)) for m in metrics),
                format.seconds(s.measured_s),
                format.count(s.committed),
            ]
            for s in experiment.steps
        ],
        key=metric_key(metrics, at.numeric),
        reading=reading_of(parts, metrics[0], labels) if len(metrics) == 1 else "",
    )


def _of_data_io(name: str) -> Callable[[StepSummary], float | None]:
    return lambda s: getattr(s.data_io, name) if s.data_io else None


def metric_key(metrics: Sequence[Metric], lines: bool) -> list[KeyItem]:
    if len(metrics) < 2:
        return []
    return [
        KeyItem(m.name, NEUTRAL, m.dash) if lines else KeyItem(m.name, NEUTRAL, None, "bar", opacity=m.opacity)
        for m in metrics
    ]


def emulated_label(step: StepSummary, labels: dict[str, str]) -> str:
    return f"{labels[step.key]} ({EMULATED})" if step.emulated else labels[step.key]


def _lines(
    at: Axis,
    panel: Panel,
    places: dict[str, int],
    metric: Metric,
    seen: dict[str, Look],
    several: bool,
    hollow: set[str],
) -> list[dict[str, Any]]:
    """Users: a line per variant and repeat. Buffer pool: a line per device and repeat through its variants."""
    by_users = at.kind == "users"
    groups: dict[tuple[str, int], list[StepSummary]] = {}
    for step in panel.steps:
        groups.setdefault((step.variant if by_users else step.device, step.repeat), []).append(step)
    traces = []
    for (name, _), steps in groups.items():
        steps = sorted(steps, key=lambda s: at.x(s, places[s.key]))
        words = [plain(at.labels[s.key]) + (f" · {metric.name}" if several else "") for s in steps]
        traces.append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "name": plain(metric.name if several else name),
                "x": [at.x(s, places[s.key]) for s in steps],
                "y": [_value(metric.value(s)) for s in steps],
                "text": [f"{format.number(metric.value(s))}  {w}" for s, w in zip(steps, words, strict=True)],
                "hovertemplate": "%{text}<extra></extra>",
                "cliponaxis": False,
                "line": {"color": seen[name].colour if by_users else NEUTRAL, "width": 1.75, "dash": metric.dash},
                "marker": {
                    "size": 8,
                    "color": [seen[s.variant].colour for s in steps],
                    "symbol": [seen[s.variant].symbol + ("-open" if s.key in hollow else "") for s in steps],
                },
            }
        )
    return traces


def _bars(
    at: Axis,
    panel: Panel,
    places: dict[str, int],
    metric: Metric,
    seen: dict[str, Look],
    several: bool,
    hollow: set[str],
) -> list[dict[str, Any]]:
    """None for one of several metrics of which nothing is known: it would take the room of a bar."""
    steps = panel.steps
    if several and not any(known(metric.value(step)) for step in steps):
        return []
    return [
        {
            "type": "bar",
            "name": plain(metric.name),
            "x": [places[s.key] for s in steps],
            "y": [_value(metric.value(s)) for s in steps],
            "text": [f"{format.number(metric.value(s))}{'  ' + metric.name if several else ''}" for s in steps],
            "textposition": "none",
            "hovertemplate": "%{text}<extra></extra>",
            "marker": {
                "color": [seen[s.variant].colour for s in steps],
                "opacity": metric.opacity,
                "pattern": {"shape": ["/" if s.key in hollow else "" for s in steps]},
            },
        }
    ]


def _x_axis(at: Axis, panel: Panel, places: dict[str, int]) -> dict[str, Any]:
    ticks = {at.x(s, places[s.key]): at.tick(s) for s in panel.steps}
    values = sorted(ticks)
    low, high = values[0], values[-1]
    result = axis(tickvals=values, ticktext=[ticks[v] for v in values], tickfont={"size": 11})
    if at.logarithmic:
        margin = max(0.12, (math.log10(high) - math.log10(low)) * 0.08)
        return result | {"type": "log", "range": [math.log10(low) - margin, math.log10(high) + margin]}
    margin = max((high - low) * 0.06, 0.6 if not at.numeric else high * 0.05)
    return result | {"range": [low - margin, high + margin]}


def _domains(parts: Sequence[Panel]) -> list[tuple[float, float]]:
    if len(parts) == 1:
        return [(0.0, 1.0)]
    first, second = (len({s.key for s in p.steps}) for p in parts)
    share = min(max(second / (first + second), 0.17), 0.5)
    return [(0.0, (1 - GAP) * (1 - share)), (1 - (1 - GAP) * share, 1.0)]


def _value(value: float | None) -> float | None:
    """A value for JSON: 6 significant digits, null when unknown."""
    return float(f"{value:.6g}") if value is not None and math.isfinite(value) else None


def _range(values: Sequence[float], write: Callable[[float], str]) -> str:
    low, high = write(min(values, default=0)), write(max(values, default=0))
    return low if low == high else f"{low} to {high}"
