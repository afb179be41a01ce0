"""Figures of a comparison: the bars of every side, its runs over time side by side, and every figure as a ratio."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from stallmark import format
from stallmark.analysis.compare.sides import name_of
from stallmark.analysis.compare.summary import ComparisonSummary, PairComparison, Ratio
from stallmark.analysis.summary import ExperimentSummary, RunSummary, StepSummary
from stallmark.format import percent, spoken
from stallmark.report.labels import EMULATED
from stallmark.report.sections.axis import Figure
from stallmark.report.sections.timeline import bucket_means, bucket_width, measuring_began
from stallmark.report.style import NEUTRAL, KeyItem, Look, axis, layout, looks, note, plain, value_axis
from stallmark.report.text import comparison as words
from stallmark.report.text import sentence
from stallmark.stats.thresholds import CONFIDENCE

GAP = 0.12  # of a figure's width, between two charts side by side
COLUMNS = 3  # of sides, over time
PLOT, BETWEEN, HEAD, FOOT = 130, 46, 56, 46  # px
ROW = 26  # px, of a ratio


@dataclass(frozen=True)
class Bar:
    """One quantity of a step, in a chart of bars."""

    title: str
    unit: str
    value: Callable[[StepSummary], float | None]


BARS = (
    (
        "throughput",
        "Throughput and response time",
        Bar("throughput", "committed transactions per second", lambda s: s.result_tps),
        Bar("mean latency", "ms, scheduled to ended", lambda s: s.latency_mean_ms),
    ),
    (
        "io",
        "IOPS and bandwidth of data files",
        Bar("IOPS", "reads and writes per second", lambda s: s.data_io.iops if s.data_io else None),
        Bar("bandwidth", "MB/s (10⁶ bytes)", lambda s: s.data_io.mb_per_s if s.data_io else None),
    ),
)


@dataclass(frozen=True)
class Group:
    """The steps that make one bar: all runs of a side with the same number of users."""

    side: str
    label: str
    steps: list[StepSummary]
    emulated: bool


def groups(experiment: ExperimentSummary, found: ComparisonSummary) -> list[Group]:
    runs = {name_of(run): run for run in experiment.runs}
    several = len({(s.step, s.users) for s in experiment.steps}) > 1
    result = []
    for side in found.sides:
        steps = [step for folder in side.runs for step in runs[folder].steps]
        for users in dict.fromkeys((s.step, s.users) for s in steps):
            label = f"{side.name} · {users[1]} users" if several else side.name
            same = [s for s in steps if (s.step, s.users) == users]
            result.append(Group(side.name, label, same, side.emulated))
    return result


def bar_figures(experiment: ExperimentSummary, found: ComparisonSummary) -> list[Figure]:
    made, seen = groups(experiment, found), looks([side.name for side in found.sides])
    return [_bars(id, title, (left, right), made, seen) for id, title, left, right in BARS]


def _bars(id: str, title: str, bars: tuple[Bar, Bar], made: Sequence[Group], seen: dict[str, Look]) -> Figure:
    """Two charts side by side: the height is the geometric mean of runs, a point is a run."""
    figure = layout(300, bargap=0.4, hovermode="closest")
    data: list[dict[str, Any]] = []
    half = (1 - GAP) / 2
    for number, bar in enumerate(bars):
        suffix, left = ("", 0.0) if not number else ("2", half + GAP)
        axes = {"xaxis": f"x{suffix}", "yaxis": f"y{suffix}"}
        values = [[_known(bar.value(step)) for step in one.steps] for one in made]
        data.append(
            axes
            | {
                "type": "bar",
                "x": list(range(len(made))),
                "y": [_mean(one) for one in values],
                "marker": {"color": [seen[one.side].colour for one in made], "opacity": 0.75},
                "text": [f"{format.number(_mean(v))}  {plain(g.label)}" for v, g in zip(values, made, strict=True)],
                "textposition": "none",
                "hovertemplate": "%{text}<extra></extra>",
            }
        )
        points = [(x, value, one) for x, known in enumerate(values) for value, one in _with(known, made[x])]
        data.append(
            axes
            | {
                "type": "scatter",
                "mode": "markers",
                "x": [x + _beside(i, len(made[x].steps)) for x, _, i in _numbered(points)],
                "y": [value for _, value, _ in points],
                "text": [f"{format.number(value)}  {plain(run)}" for _, value, run in points],
                "hovertemplate": "%{text}<extra></extra>",
                "marker": {"color": NEUTRAL, "size": 6, "symbol": "line-ew-open", "line": {"width": 2}},
                "cliponaxis": False,
            }
        )
        top = max((value for _, value, _ in points), default=0.0)
        ticks = [plain(one.label, 16) for one in made]
        figure[f"xaxis{suffix}"] = axis(tickvals=list(range(len(made))), ticktext=ticks, tickfont={"size": 11}) | {
            "domain": [left, left + half],
            "anchor": f"y{suffix}",
            "range": [-0.6, len(made) - 0.4],
        }
        figure[f"yaxis{suffix}"] = value_axis(top, anchor=f"x{suffix}")
        figure["annotations"] += [
            note(f"<b>{bar.title}</b>", x=left, y=1, yshift=20),
            note(bar.unit, x=left, y=1, yshift=5),
        ]
    return Figure(
        id=f"compare-{id}",
        title=title,
        unit="",
        emulated=any(one.emulated for one in made),
        summary=" ".join(
            f"{bar.title}: "
            + "; ".join(f"{b.label} {format.number(_mean([_known(bar.value(s)) for s in b.steps]))}" for b in made)
            + "."
            for bar in bars
        ),
        method="A bar is the geometric mean over runs, each over its measured interval; a dash beside its middle is "
        "a run. Intervals of the difference are in the table of ratios.",
        plotly={"data": data, "layout": figure},
        header=["side", "runs", *(f"{bar.title}, {bar.unit}" for bar in bars)],
        rows=[
            [
                f"{one.label} ({EMULATED})" if one.emulated else one.label,
                str(len(one.steps)),
                *(format.number(_mean([_known(bar.value(step)) for step in one.steps])) for bar in bars),
            ]
            for one in made
        ],
        wide=True,
    )  # fmt: skip


def _numbered(points: Sequence[tuple[int, float, str]]) -> list[tuple[int, float, int]]:
    """Every point with its number among those of its bar."""
    counts: dict[int, int] = {}
    result = []
    for x, value, _ in points:
        counts[x] = counts.get(x, -1) + 1
        result.append((x, value, counts[x]))
    return result


def _with(known: Sequence[float | None], one: Group) -> list[tuple[float, str]]:
    return [(value, step.run) for value, step in zip(known, one.steps, strict=True) if value is not None]


def _beside(number: int, runs: int) -> float:
    """Where a run's mark stands in its bar, so that equal ones do not hide each other."""
    return 0.0 if runs < 2 else (number / (runs - 1) - 0.5) * 0.4


LINES = (("tps", "transactions per second"), ("read_ms", "read time, ms per read"))


def time_figure(experiment: ExperimentSummary, found: ComparisonSummary) -> Figure | None:
    """Every side in a column of its own, all of its runs over one another, on common scales."""
    runs = {name_of(run): run for run in experiment.runs if len(run.series.second)}
    shown = [(side.name, [runs[f] for f in side.runs if f in runs]) for side in found.sides]
    shown = [(name, some) for name, some in shown if some]
    if not shown:
        return None
    seen = looks([side.name for side in found.sides])
    columns = min(COLUMNS, len(shown))
    bands = math.ceil(len(shown) / columns)
    inner = bands * len(LINES) * PLOT + (bands * len(LINES) - 1) * BETWEEN
    figure = layout(HEAD + inner + FOOT, margin={"l": 52, "r": 14, "t": HEAD, "b": FOOT})
    divisor, unit = format.of_time(max(_seconds(run) for _, some in shown for run in some))
    tops = [_top([run for _, some in shown for run in some], name) for name, _ in LINES]
    data: list[dict[str, Any]] = []
    drawn = sum(len(some) for _, some in shown)
    for place, (name, some) in enumerate(shown):
        left = (place % columns) * (1 + 0.06) / (columns + 0.06 * (columns - 1))
        width = 1 / (columns + 0.06 * (columns - 1))
        for row, (line, title) in enumerate(LINES):
            band = (place // columns) * len(LINES) + row
            top = 1 - band * (PLOT + BETWEEN) / inner
            suffix = str(number) if (number := place * len(LINES) + row + 1) > 1 else ""
            for index, run in enumerate(some):
                data.append(
                    _line(run, line, divisor, drawn, seen[name].colour, index)
                    | {"xaxis": f"x{suffix}", "yaxis": f"y{suffix}"}
                )
            last = row == len(LINES) - 1
            figure[f"xaxis{suffix}"] = axis(
                domain=[left, left + width], anchor=f"y{suffix}", zeroline=False, showticklabels=last
            )
            figure[f"yaxis{suffix}"] = value_axis(
                tops[row],
                domain=[max(top - PLOT / inner, 0), top],
                anchor=f"x{suffix}",
                nticks=5,
                showticklabels=place % columns == 0,
            )
            figure["annotations"].append(note(plain(title, 40), x=left, y=top, yshift=3))
            if row == 0:
                figure["annotations"].append(note(f"<b>{plain(name, 30)}</b>", x=left, y=top, yshift=19))
    return Figure(
        id="compare-time",
        title="Over time, side by side",
        unit="",
        emulated=any(side.emulated for side in found.sides),
        summary=f"Throughput and read time of {drawn} runs in {len(shown)} sides, on common scales.",
        method=f"Per-second counts since measuring began, in {unit}, warm-up left out; at most some hundred points for "
        "a run, each the mean of its seconds. Runs of a side lie over one another, later ones paler.",
        plotly={"data": data, "layout": figure},
        header=["side", "run", "seconds", "mean TPS"],
        rows=[
            [name, name_of(run), format.count(round(_seconds(run))), format.number(_mean_of(run))]
            for name, some in shown
            for run in some
        ],
        reading=f"{unit} since measuring began",
        wide=True,
    )


def _line(run: RunSummary, line: str, divisor: int, drawn: int, colour: str, index: int) -> dict[str, Any]:
    began = measuring_began(run)
    pick = run.series.second >= began
    width = bucket_width(int(pick.sum()) * drawn, 1)
    x = bucket_means(run.series.second[pick], width)
    y = bucket_means(run.series.line(line)[pick], width)
    return {
        "type": "scatter",
        "mode": "lines",
        "name": plain(name_of(run), 60),
        "x": [float(f"{(value - began) / divisor:.5g}") for value in x],
        "y": [float(f"{value:.4g}") if math.isfinite(value) else None for value in y],
        "hovertemplate": "%{y:,.3~r}",
        "line": {"color": colour, "width": 1.3},
        "opacity": max(0.35, 1 - 0.2 * index),
    }


def ratio_figure(pair: PairComparison, number: int, emulated: bool) -> Figure:
    """Every figure and every type of transaction as B ÷ A, with its interval."""
    lines = [(one.name, one) for one in (pair.primary, *pair.others)]
    lines += [
        (f"{spoken(types.transaction)}, {what}", one)
        for types in pair.transactions
        for what, one in (("rate", types.rate), ("latency", types.latency))
    ]
    lines = [(name, one) for name, one in lines if one.ratio is not None]
    figure = layout(HEAD + ROW * max(len(lines), 1) + FOOT, margin={"l": 180, "r": 18, "t": 34, "b": FOOT})
    figure["hovermode"] = "closest"
    ends = [end for _, one in lines for end in (one.ratio, one.low, one.high) if end]
    low, high = min([*ends, 0.95]), max([*ends, 1.05])
    places = list(range(len(lines)))[::-1]
    figure["xaxis"] = axis(
        type="log",
        range=[math.log10(max(low, 0.02)) - 0.02, math.log10(min(high, 50)) + 0.02],
        tickvals=_ticks(max(low, 0.02), min(high, 50)),
        tickformat=".3~r",
        showgrid=True,
        title={"text": f"{plain(pair.b, 30)} ÷ {plain(pair.a, 30)}, log scale", "font": {"size": 11}},
    )
    figure["yaxis"] = axis(
        tickvals=places, ticktext=[plain(name, 36) for name, _ in lines], range=[-0.7, len(lines) - 0.3], ticks=""
    )  # fmt: skip
    figure["shapes"].append(
        {"type": "line", "x0": 1, "x1": 1, "yref": "paper", "y0": 0, "y1": 1, "line": {"color": NEUTRAL, "width": 1}}
    )  # fmt: skip
    data = [
        {
            "type": "scatter",
            "mode": "markers",
            "x": [one.ratio for _, one in lines],
            "y": places,
            "text": [f"{name}: {words.change(one)} ({words.reach(one)})" for name, one in lines],
            "hovertemplate": "%{text}<extra></extra>",
            "error_x": {
                "type": "data",
                "symmetric": False,
                "array": [(one.high or one.ratio) - one.ratio for _, one in lines if one.ratio],
                "arrayminus": [one.ratio - (one.low or one.ratio) for _, one in lines if one.ratio],
                "thickness": 1.5,
                "width": 4,
                "color": NEUTRAL,
            },
            "marker": {
                "size": 9,
                "color": NEUTRAL,
                "symbol": ["circle" if one.shown else "circle-open" for _, one in lines],
            },
        }
    ]
    return Figure(
        id=f"compare-ratio-{number}",
        title=f"{pair.b} against {pair.a}, every figure as a ratio",
        unit="",
        emulated=emulated,
        summary="; ".join(f"{name} {words.change(one)}" for name, one in lines) + ".",
        method=f"{sentence(pair.method)} {words.adjustment(pair)} Types of transactions are adjusted among themselves.",
        plotly={"data": data, "layout": figure},
        header=["figure", "unit", "A", "B", "B to A", f"{percent(CONFIDENCE)} interval", "p adjusted", "runs"],
        rows=[_ratio_row(name, one) for name, one in lines],
        key=[
            KeyItem("difference shown", NEUTRAL, None, "circle"),
            KeyItem("not shown, or too few runs: hollow", NEUTRAL, None, "circle", opacity=0.35),
        ],
        wide=True,
    )


def _ratio_row(name: str, one: Ratio) -> list[str]:
    return [
        name,
        one.unit,
        words.value(one, one.a),
        words.value(one, one.b),
        words.change(one),
        words.reach(one),
        words.p_value(one.p_adjusted),
        f"{one.runs_a} + {one.runs_b}",
    ]


def _ticks(low: float, high: float) -> list[float]:
    """Round ratios in reach; closer together where the reach is small."""
    fine = [0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1, 1.05, 1.1, 1.2, 1.4, 1.6, 2]
    coarse = [0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50]
    chosen = fine if low > 0.45 and high < 2.2 else coarse
    if low > 0.85 and high < 1.18:
        chosen = [0.85, 0.9, 0.95, 0.98, 1, 1.02, 1.05, 1.1, 1.15]
    return [tick for tick in chosen if low * 0.9 <= tick <= high * 1.1]


def _known(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _mean(values: Sequence[float | None]) -> float | None:
    """Geometric; arithmetic where one is 0; None where nothing is known."""
    known = [value for value in values if value is not None]
    if not known:
        return None
    return float(np.exp(np.mean(np.log(known)))) if min(known) > 0 else float(np.mean(known))


def _mean_of(run: RunSummary) -> float:
    return sum(step.tps for step in run.steps) / len(run.steps) if run.steps else math.nan


def _seconds(run: RunSummary) -> float:
    return float(run.series.second[-1]) - measuring_began(run)


def _top(runs: Sequence[RunSummary], line: str) -> float:
    """The highest point drawn, outliers of single seconds left out: they would press everything else flat."""
    tops = []
    for run in runs:
        values = run.series.line(line)[run.series.second >= measuring_began(run)]
        values = values[np.isfinite(values)]
        if len(values):
            tops.append(float(np.quantile(values, 0.995)))
    return max(tops, default=0.0) * 1.1
