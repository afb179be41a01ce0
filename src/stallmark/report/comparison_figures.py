"""Figures of a comparison: the bars of every side, its runs over time, and every figure as a ratio."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stallmark import format
from stallmark.analysis.compare.sides import mean_of_runs, name_of
from stallmark.analysis.compare.summary import ComparisonSummary, PairComparison, Ratio
from stallmark.analysis.experiment import ExperimentSummary
from stallmark.analysis.metrics import METRICS, Metric
from stallmark.analysis.run import RunSummary
from stallmark.analysis.step_summary import StepSummary
from stallmark.format import display_name, percent
from stallmark.report.figures import (
    NEUTRAL,
    Figure,
    KeyItem,
    Trace,
    bars,
    bucket_means,
    bucket_width,
    chart,
    from_zero,
    line,
    looks,
    measuring_began,
    note,
    places,
    plain,
    scatter,
    side_by_side,
    stacked,
)
from stallmark.report.text import comparison as words
from stallmark.report.text.device import EMULATED
from stallmark.stats.thresholds import CONFIDENCE

GAP = 0.12  # the gap between two charts side by side, as a share of the figure's width
PLOT, BETWEEN, HEAD, FOOT = 150, 32, 36, 46  # px
ROW = 26  # px per ratio


BARS = ((METRICS["iops"], "reads and writes per second"), (METRICS["mb"], "MB/s (10⁶ bytes)"))
"""The bars that the picture above the verdict lacks."""


@dataclass(frozen=True)
class BarGroup:
    """The steps behind one bar: all runs of one step of a side."""

    side: str
    label: str
    steps: list[StepSummary]
    emulated: bool


def groups(experiment: ExperimentSummary, comparison: ComparisonSummary) -> list[BarGroup]:
    runs = {name_of(run): run for run in experiment.runs}
    several = len({(s.step, s.users) for s in experiment.steps}) > 1
    several_users = len({s.users for s in experiment.steps}) > 1
    result = []
    for side in comparison.sides:
        steps = [step for folder in side.runs for step in runs[folder].steps]
        for step in dict.fromkeys((s.step, s.users) for s in steps):
            name = words.step_name(*step) if several_users else step[0]
            label = f"{side.name} · {name}" if several else side.name
            same = [s for s in steps if (s.step, s.users) == step]
            result.append(BarGroup(side.name, label, same, side.emulated))
    return result


def bar_figure(experiment: ExperimentSummary, comparison: ComparisonSummary) -> Figure:
    """Return two charts side by side: the height is the geometric mean of runs, a dash is a run."""
    sides, seen = groups(experiment, comparison), looks([side.name for side in comparison.sides])
    emulated = any(side.emulated for side in sides)
    made, lefts = side_by_side([1, 1], GAP, 300, bargap=0.4, hovermode="closest")
    positions = list(range(len(sides)))
    of_bars = [[_values(bar, side) for side in sides] for bar, _ in BARS]
    means = [[mean_of_runs(known) for known in values] for values in of_bars]
    written = [list(map(format.number, of_bar)) for of_bar in means]
    for place, left, (bar, unit), values, heights, texts in zip(
        places(len(BARS)), lefts, BARS, of_bars, means, written, strict=True
    ):
        points = [
            (x + _mark_offset(index, len(side.steps)), value, run)
            for x, (side, known) in enumerate(zip(sides, values, strict=True))
            for index, (value, run) in enumerate(_known_values(known, side))
        ]
        made.add(
            bars(
                x=positions,
                y=heights,
                marker={"color": [seen[side.side].colour for side in sides], "opacity": 0.75},
                text=[f"{text}  {plain(side.label)}" for text, side in zip(texts, sides, strict=True)],
                **{"xaxis": f"x{place}", "yaxis": f"y{place}"},
            )
        )
        made.add(
            scatter(
                mode="markers",
                x=[x for x, _, _ in points],
                y=[value for _, value, _ in points],
                text=[f"{format.number(value)}  {plain(run)}" for _, value, run in points],
                marker={"color": NEUTRAL, "size": 6, "symbol": "line-ew-open", "line": {"width": 2}},
                cliponaxis=False,
                **{"xaxis": f"x{place}", "yaxis": f"y{place}"},
            )
        )
        ticks = {
            "tickvals": positions,
            "ticktext": [plain(side.label, 16) for side in sides],
            "tickfont": {"size": 11},
            "autotickangles": [0, -90],
        }
        top = max((value for _, value, _ in points), default=0.0)
        ticks["range"] = [-0.6, len(sides) - 0.4]
        made.change(**{f"xaxis{place}": ticks, f"yaxis{place}": {"range": from_zero(top)}})
        note(made, bar.title, bold=True, x=left, yshift=20)
        note(made, unit, x=left, yshift=5)
        for x, (mean, text, known) in enumerate(zip(heights, texts, values, strict=True)):
            if mean is not None and math.isfinite(mean):
                top = max([mean, *filter(None, known)])
                x_axis, y_axis = f"x{place}", f"y{place}"
                note(made, text, x=x, y=top, xref=x_axis, yref=y_axis, xanchor="center", yshift=3)
    if emulated:
        note(made, EMULATED, bold=True, x=1, xanchor="right", yshift=20)
    return Figure(
        id="compare-io",
        title="IOPS and bandwidth of data files",
        unit="",
        emulated=emulated,
        summary=" ".join(
            f"{bar.title}: " + "; ".join(f"{side.label} {text}" for side, text in zip(sides, texts, strict=True)) + "."
            for (bar, _), texts in zip(BARS, written, strict=True)
        ),
        method=words.BARS,
        chart=made,
        header=["side", "runs", *(f"{bar.title}, {unit}" for bar, unit in BARS)],
        rows=[
            [side.label, str(len(side.steps)), *texts]
            for side, *texts in zip(sides, *written, strict=True)
        ],
        wide=True,
    )  # fmt: skip


def _known_values(known: Sequence[float | None], group: BarGroup) -> list[tuple[float, str]]:
    return [(value, step.run) for value, step in zip(known, group.steps, strict=True) if value is not None]


def _mark_offset(number: int, runs: int) -> float:
    """Return the offset of a run's mark from the middle of its bar, so that equal marks do not hide each other."""
    return 0.0 if runs < 2 else (number / (runs - 1) - 0.5) * 0.4


LINES = (("tps", "transactions per second"), ("read_ms", "read time, ms per read"))


def time_figure(experiment: ExperimentSummary, comparison: ComparisonSummary) -> Figure | None:
    """Return the runs of all sides over one another, from the second at which each began to measure, or None without
    series."""
    runs = {name_of(run): run for run in experiment.runs if len(run.series.second)}
    shown = [(side.name, [runs[f] for f in side.runs if f in runs]) for side in comparison.sides]
    shown = [(name, side_runs) for name, side_runs in shown if side_runs]
    if not shown:
        return None
    seen = looks([side.name for side in comparison.sides])
    every = [run for _, side_runs in shown for run in side_runs]
    divisor, unit = format.time_unit(max(map(_seconds, every)))
    made, tops = stacked([(BETWEEN if row else 0, PLOT) for row in range(len(LINES))], HEAD, FOOT)
    made.change(xaxis={"title": {"text": f"{unit} since measuring began"}})
    for place, top, (series, title) in zip(places(len(LINES)), tops, LINES, strict=True):
        for name, side_runs in shown:
            for index, run in enumerate(side_runs):
                made.add(_line(run, series, divisor, len(every), seen[name].colour, index, f"y{place}"))
        # One scale for all sides, from their common maximum.
        highest = _top(every, series)
        # The axis begins a little below zero, so that a line at zero is seen.
        made.change(**{f"yaxis{place}": {"range": [-0.03 * highest, from_zero(highest)[1]], "nticks": 5}})
        note(made, title, y=top, yshift=4)
    return Figure(
        id="compare-time",
        title="Over time",
        unit="",
        emulated=any(side.emulated for side in comparison.sides),
        summary=words.time_chart_summary(runs=len(every), sides=len(shown)),
        method=words.time_chart_method(unit=unit),
        chart=made,
        header=["side", "run", "seconds", "mean TPS"],
        rows=[
            [name, name_of(run), format.count(round(_seconds(run))), format.number(_mean_tps(run))]
            for name, side_runs in shown
            for run in side_runs
        ],
        wide=True,
    )


def _line(run: RunSummary, name: str, divisor: int, drawn: int, colour: str, index: int, yaxis: str) -> Trace:
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
        yaxis=yaxis,
    )


def ratio_figure(pair: PairComparison, number: int, emulated: bool) -> Figure:
    """Return a chart of every figure and every type of transaction as B ÷ A, with its interval."""
    lines = [(ratio.name, ratio) for ratio in (pair.primary, *pair.others)]
    lines += [
        (f"{display_name(types.transaction)}, {quantity}", ratio)
        for types in pair.transactions
        for quantity, ratio in (("rate", types.rate), ("latency", types.latency))
    ]
    # A ratio is unknown if a side lacks the value, or has zero: nothing to draw on a logarithmic axis.
    lines = [(name, ratio) for name, ratio in lines if ratio.ratio is not None]
    low, high = _axis_ends([ratio for _, ratio in lines])
    # Plotly counts from below, and the first line belongs on top.
    positions = list(range(len(lines)))[::-1]
    made = chart(
        HEAD + ROW * max(len(lines), 1) + FOOT, margin={"l": 180, "r": 18, "t": 34, "b": FOOT}, hovermode="closest"
    )
    made.layout["xaxis"] = {
        "type": "log",
        "range": [math.log10(low), math.log10(high)],
        "tickvals": _ticks(low, high),
        "tickformat": ".3~r",
        "tickangle": 0,
        "showgrid": True,
        "title": {"text": "ratio, log scale"},
    }
    made.layout["yaxis"] = {
        "tickvals": positions,
        "ticktext": [plain(name, 36) for name, _ in lines],
        "range": [-0.7, len(lines) - 0.3],
        "showgrid": False,
        "zeroline": False,
        "showline": True,
    }
    ends = {"x0": 1, "x1": 1, "xref": "x", "y0": 0, "y1": 1, "yref": "y domain"}
    made.add_shapes({"type": "line", "line": {"color": NEUTRAL, "width": 1}, **ends})
    made.add(
        scatter(
            mode="markers",
            x=[ratio.ratio for _, ratio in lines],
            y=positions,
            text=[f"{name}: {words.change(ratio)} ({words.reach(ratio)})" for name, ratio in lines],
            error_x={
                "symmetric": False,
                # A ratio without an interval has bars of length 0, because Plotly wants one for each point.
                "array": [(ratio.high or ratio.ratio) - ratio.ratio for _, ratio in lines if ratio.ratio],
                "arrayminus": [ratio.ratio - (ratio.low or ratio.ratio) for _, ratio in lines if ratio.ratio],
                "thickness": 1.5,
                "width": 4,
                "color": NEUTRAL,
            },
            cliponaxis=False,
            marker={
                "size": 9,
                "color": NEUTRAL,
                "symbol": ["circle" if ratio.is_shown else "circle-open" for _, ratio in lines],
            },
        )
    )
    return Figure(
        id=f"compare-ratio-{number}",
        title=f"{pair.b} against {pair.a}, every figure as a ratio",
        unit="",
        emulated=emulated,
        summary="; ".join(f"{name} {words.change(ratio)}" for name, ratio in lines) + ".",
        method=words.ratios_method(pair),
        chart=made,
        header=["figure", "unit", "A", "B", "B to A", f"{percent(CONFIDENCE)} interval", "p adjusted", "runs"],
        rows=[_ratio_row(name, ratio) for name, ratio in lines],
        key=[
            KeyItem("difference shown", NEUTRAL, None, "circle"),
            KeyItem(words.HOLLOW, NEUTRAL, None, "circle", opacity=0.35),
        ],
        wide=True,
    )


def _ratio_row(name: str, ratio: Ratio) -> list[str]:
    return [
        name,
        ratio.unit,
        words.value(ratio, ratio.a),
        words.value(ratio, ratio.b),
        words.change(ratio),
        words.reach(ratio),
        words.p_value(ratio.p_adjusted),
        f"{ratio.runs_a} + {ratio.runs_b}",
    ]


def _axis_ends(lines: Sequence[Ratio]) -> tuple[float, float]:
    """Return the ends of the axis: every ratio is within, and intervals are cut off beyond 0.02 and 50."""
    ratios = [ratio.ratio for ratio in lines if ratio.ratio]
    ends = [min(max(end, 0.02), 50) for ratio in lines for end in (ratio.low, ratio.high) if end]
    low, high = min([*ratios, *ends, 0.95]), max([*ratios, *ends, 1.05])
    margin = (high / low) ** 0.05
    return low / margin, high * margin


def _ticks(low: float, high: float) -> list[float]:
    """Return round ratios within the range, denser in a small range."""
    if low > 0.79 and high < 1.21:
        chosen = [0.8, 0.85, 0.9, 0.95, 1, 1.05, 1.1, 1.15, 1.2]
    elif low > 0.45 and high < 2.2:
        chosen = [0.5, 0.6, 0.8, 1, 1.2, 1.5, 2]
    else:
        # Below two decades there may be one power of ten only.
        steps = (1, 2, 5) if high / low < 100 else (1,)
        powers = range(math.floor(math.log10(low)), math.floor(math.log10(high)) + 1)
        chosen = [step * 10.0**power for power in powers for step in steps]
    return [tick for tick in chosen if low <= tick <= high]


def _values(bar: Metric, group: BarGroup) -> list[float | None]:
    values = [bar.value(step) for step in group.steps]
    return [value if value is not None and math.isfinite(value) else None for value in values]


def _mean_tps(run: RunSummary) -> float:
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
