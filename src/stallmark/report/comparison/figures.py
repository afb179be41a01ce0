"""Figures of a comparison: the bars of every side, its runs over time side by side, and every figure as a ratio."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from stallmark import format
from stallmark.analysis.compare.metrics import mean_of_runs
from stallmark.analysis.compare.sides import name_of
from stallmark.analysis.compare.summary import ComparisonSummary, PairComparison, Ratio
from stallmark.analysis.step_summary import StepSummary
from stallmark.analysis.summary import ExperimentSummary, RunSummary
from stallmark.format import percent, spoken
from stallmark.report.figures import Figure, chart, from_zero, note, places, side_by_side
from stallmark.report.over_time import bucket_means, bucket_width, line, measuring_began
from stallmark.report.style import NEUTRAL, KeyItem, Look, looks, plain
from stallmark.report.text import comparison as words
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
        Bar("mean latency", "ms, scheduled to ended", lambda s: s.latency.mean_ms),
    ),
    (
        "io",
        "IOPS and bandwidth of data files",
        Bar("IOPS", "reads and writes per second", lambda s: s.storage.data.iops if s.storage.data else None),
        Bar("bandwidth", "MB/s (10⁶ bytes)", lambda s: s.storage.data.mb_per_s if s.storage.data else None),
    ),
)


@dataclass(frozen=True)
class Group:
    """The steps behind one bar: all runs of a side with the same number of users."""

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


def _bars(id: str, title: str, bars: tuple[Bar, Bar], sides: Sequence[Group], seen: dict[str, Look]) -> Figure:
    """Return two charts side by side: the height is the geometric mean of runs, a point is a run."""
    made, lefts = side_by_side([1, 1], GAP, 300, bargap=0.4, hovermode="closest")
    at = list(range(len(sides)))
    for place, left, bar in zip(places(len(bars)), lefts, bars, strict=True):
        values = [_values(bar, one) for one in sides]
        points = [
            (x + _beside(index, len(one.steps)), value, run)
            for x, (one, known) in enumerate(zip(sides, values, strict=True))
            for index, (value, run) in enumerate(_with(known, one))
        ]
        made.add_bar(
            x=at,
            y=[mean_of_runs(one) for one in values],
            marker={"color": [seen[one.side].colour for one in sides], "opacity": 0.75},
            text=[f"{format.number(mean_of_runs(v))}  {plain(g.label)}" for v, g in zip(values, sides, strict=True)],
            **{"xaxis": f"x{place}", "yaxis": f"y{place}"},
        )
        made.add_scatter(
            mode="markers",
            x=[x for x, _, _ in points],
            y=[value for _, value, _ in points],
            text=[f"{format.number(value)}  {plain(run)}" for _, value, run in points],
            marker={"color": NEUTRAL, "size": 6, "symbol": "line-ew-open", "line": {"width": 2}},
            cliponaxis=False,
            **{"xaxis": f"x{place}", "yaxis": f"y{place}"},
        )
        ticks = {"tickvals": at, "ticktext": [plain(one.label, 16) for one in sides], "tickfont": {"size": 11}}
        top = max((value for _, value, _ in points), default=0.0)
        x = {"range": [-0.6, len(sides) - 0.4]} | ticks
        made.update_layout({f"xaxis{place}": x, f"yaxis{place}": {"range": from_zero(top)}})
        note(made, bar.title, bold=True, x=left, yshift=20)
        note(made, bar.unit, x=left, yshift=5)
    return Figure(
        id=f"compare-{id}",
        title=title,
        unit="",
        emulated=any(one.emulated for one in sides),
        summary=" ".join(
            f"{bar.title}: "
            + "; ".join(f"{b.label} {format.number(mean_of_runs(_values(bar, b)))}" for b in sides)
            + "."
            for bar in bars
        ),
        method=words.BARS,
        chart=made,
        header=["side", "runs", *(f"{bar.title}, {bar.unit}" for bar in bars)],
        rows=[
            [
                one.label,
                str(len(one.steps)),
                *(format.number(mean_of_runs(_values(bar, one))) for bar in bars),
            ]
            for one in sides
        ],
        wide=True,
    )  # fmt: skip


def _with(known: Sequence[float | None], one: Group) -> list[tuple[float, str]]:
    return [(value, step.run) for value, step in zip(known, one.steps, strict=True) if value is not None]


def _beside(number: int, runs: int) -> float:
    """Return the offset of a run's mark from the middle of its bar, so that equal marks do not hide each other."""
    return 0.0 if runs < 2 else (number / (runs - 1) - 0.5) * 0.4


LINES = (("tps", "transactions per second"), ("read_ms", "read time, ms per read"))


def time_figure(experiment: ExperimentSummary, found: ComparisonSummary) -> Figure | None:
    """Return a chart with a column for each side, its runs drawn over one another, on common scales; None without
    series."""
    runs = {name_of(run): run for run in experiment.runs if len(run.series.second)}
    shown = [(side.name, [runs[f] for f in side.runs if f in runs]) for side in found.sides]
    shown = [(name, some) for name, some in shown if some]
    if not shown:
        return None
    seen = looks([side.name for side in found.sides])
    columns = min(COLUMNS, len(shown))
    bands = math.ceil(len(shown) / columns) * len(LINES)
    inner = bands * PLOT + (bands - 1) * BETWEEN
    divisor, unit = format.of_time(max(_seconds(run) for _, some in shown for run in some))
    tops = [_top([run for _, some in shown for run in some], name) for name, _ in LINES]
    drawn = sum(len(some) for _, some in shown)
    made = make_subplots(
        figure=chart(HEAD + inner + FOOT, margin={"t": HEAD, "b": FOOT}),
        **{"rows": bands, "cols": columns},
        horizontal_spacing=0.06 / (columns + 0.06 * (columns - 1)),
        vertical_spacing=BETWEEN / inner,
    )
    made.update_xaxes(visible=False).update_yaxes(visible=False)  # for places that no side takes
    for number, (name, some) in enumerate(shown):
        for row, (series, title) in enumerate(LINES):
            place = {"row": number // columns * len(LINES) + row + 1, "col": number % columns + 1}
            for index, run in enumerate(some):
                made.add_trace(_line(run, series, divisor, drawn, seen[name].colour, index), **place)
            made.update_xaxes(visible=True, showticklabels=row == len(LINES) - 1, **place)
            value = {
                "range": [-0.03 * tops[row], from_zero(tops[row])[1]],
                "nticks": 5,
                "showticklabels": number % columns == 0,
            }
            made.update_yaxes(visible=True, **value, **place)
            subplot = made.get_subplot(**place)
            top = {"x": subplot.xaxis.domain[0], "y": subplot.yaxis.domain[1]}
            note(made, title, 40, **top, yshift=3)
            if row == 0:
                note(made, name, 30, bold=True, **top, yshift=19)
    return Figure(
        id="compare-time",
        title="Over time, side by side",
        unit="",
        emulated=any(side.emulated for side in found.sides),
        summary=words.over_time(drawn, len(shown)),
        method=words.over_time_method(unit),
        chart=made,
        header=["side", "run", "seconds", "mean TPS"],
        rows=[
            [name, name_of(run), format.count(round(_seconds(run))), format.number(_mean_of(run))]
            for name, some in shown
            for run in some
        ],
        reading=f"{unit} since measuring began",
        wide=True,
    )


def _line(run: RunSummary, name: str, divisor: int, drawn: int, colour: str, index: int) -> go.Scatter:
    began = measuring_began(run)
    pick = run.series.second >= began
    width = bucket_width(int(pick.sum()) * drawn)
    return line(
        plain(name_of(run), 60),
        (bucket_means(run.series.second[pick], width) - began) / divisor,
        bucket_means(run.series.line(name)[pick], width),
        digits=5,
        line={"color": colour, "width": 1.3},
        opacity=max(0.35, 1 - 0.2 * index),
    )


def ratio_figure(pair: PairComparison, number: int, emulated: bool) -> Figure:
    """Return a chart of every figure and every type of transaction as B ÷ A, with its interval."""
    lines = [(one.name, one) for one in (pair.primary, *pair.others)]
    lines += [
        (f"{spoken(types.transaction)}, {what}", one)
        for types in pair.transactions
        for what, one in (("rate", types.rate), ("latency", types.latency))
    ]
    lines = [(name, one) for name, one in lines if one.ratio is not None]
    ends = [end for _, one in lines for end in (one.ratio, one.low, one.high) if end]
    low, high = min([*ends, 0.95]), max([*ends, 1.05])
    at = list(range(len(lines)))[::-1]
    made = chart(
        HEAD + ROW * max(len(lines), 1) + FOOT, margin={"l": 180, "r": 18, "t": 34, "b": FOOT}, hovermode="closest"
    )
    made.update_xaxes(
        type="log",
        range=[math.log10(max(low, 0.02)) - 0.02, math.log10(min(high, 50)) + 0.02],
        tickvals=_ticks(max(low, 0.02), min(high, 50)),
        tickformat=".3~r",
        showgrid=True,
        title={"text": f"{plain(pair.b, 30)} ÷ {plain(pair.a, 30)}, log scale"},
    )
    names = [plain(name, 36) for name, _ in lines]
    made.update_yaxes(
        tickvals=at, ticktext=names, range=[-0.7, len(lines) - 0.3], showgrid=False, zeroline=False, showline=True
    )
    made.add_vline(1, line={"color": NEUTRAL, "width": 1})
    made.add_scatter(
        mode="markers",
        x=[one.ratio for _, one in lines],
        y=at,
        text=[f"{name}: {words.change(one)} ({words.reach(one)})" for name, one in lines],
        error_x={
            "symmetric": False,
            "array": [(one.high or one.ratio) - one.ratio for _, one in lines if one.ratio],
            "arrayminus": [one.ratio - (one.low or one.ratio) for _, one in lines if one.ratio],
            "thickness": 1.5,
            "width": 4,
            "color": NEUTRAL,
        },
        marker={"size": 9, "color": NEUTRAL, "symbol": ["circle" if one.shown else "circle-open" for _, one in lines]},
    )
    return Figure(
        id=f"compare-ratio-{number}",
        title=f"{pair.b} against {pair.a}, every figure as a ratio",
        unit="",
        emulated=emulated,
        summary="; ".join(f"{name} {words.change(one)}" for name, one in lines) + ".",
        method=words.ratios_method(pair),
        chart=made,
        header=["figure", "unit", "A", "B", "B to A", f"{percent(CONFIDENCE)} interval", "p adjusted", "runs"],
        rows=[_ratio_row(name, one) for name, one in lines],
        key=[
            KeyItem("difference shown", NEUTRAL, None, "circle"),
            KeyItem(words.HOLLOW, NEUTRAL, None, "circle", opacity=0.35),
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
    """Return round ratios within the range; closer together where the range is small."""
    fine = [0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1, 1.05, 1.1, 1.2, 1.4, 1.6, 2]
    coarse = [0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50]
    chosen = fine if low > 0.45 and high < 2.2 else coarse
    if low > 0.85 and high < 1.18:
        chosen = [0.85, 0.9, 0.95, 0.98, 1, 1.02, 1.05, 1.1, 1.15]
    return [tick for tick in chosen if low * 0.9 <= tick <= high * 1.1]


def _values(bar: Bar, of: Group) -> list[float | None]:
    found = [bar.value(step) for step in of.steps]
    return [value if value is not None and math.isfinite(value) else None for value in found]


def _mean_of(run: RunSummary) -> float:
    return sum(step.throughput.tps for step in run.steps) / len(run.steps) if run.steps else math.nan


def _seconds(run: RunSummary) -> float:
    return float(run.series.second[-1]) - measuring_began(run)


def _top(runs: Sequence[RunSummary], line: str) -> float:
    """Return the top of the axis, without single outlying seconds, which would press everything else flat."""
    tops = []
    for run in runs:
        values = run.series.line(line)[run.series.second >= measuring_began(run)]
        values = values[np.isfinite(values)]
        if len(values):
            tops.append(float(np.quantile(values, 0.995)))
    return max(tops, default=0.0) * 1.1
