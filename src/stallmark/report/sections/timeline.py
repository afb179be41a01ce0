"""Throughput and stall over time: one figure for emulated devices, one for real ones."""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from stallmark import format
from stallmark.analysis.summary import ExperimentSummary, RunSummary
from stallmark.format import plural
from stallmark.report.labels import EMULATED, Panel, panels
from stallmark.report.sections.axis import Figure
from stallmark.report.style import DASHES, KeyItem, axis, layout, looks, note, plain, rate_axis, value_axis

POINTS = 2000
ROWS = 12
RESPONSE = (
    ("read_ms", "read time", "read time, ms per read of a data file"),
    ("read_stall_ms_per_s", "read stall", "read stall, ms summed over all users per second"),
)


_RATES = ("primary_tps", "tps")

PLOT, GAP, HEAD, FOOT = 137, 31, 52, 46  # px: a plot, between two, above the first, and the axis below


def lines(runs: Sequence[RunSummary]) -> list[tuple[str, str, str]]:
    """What is drawn, from the top: its name in the series, in tables, and in words."""
    found = [("tps", "TPS", "committed transactions per second")]
    primary = {run.steps[0].primary for run in runs}
    if len(primary) == 1 and (name := primary.pop()):
        found = [
            ("primary_tps", plural(name), f"{plural(name)} per second"),
            ("tps", "all tx", "all committed transactions per second"),
        ]
    if any(run.series.flash_share is not None for run in runs):
        found.append(("flash_share", "from flash", "share of the reads that flash answered"))
    return [*found, *RESPONSE]


@dataclass(frozen=True)
class Stretch:
    """A part of a run's series: warm-up, or measured."""

    first: int
    last: int  # exclusive
    measured: bool


def time_figures(experiment: ExperimentSummary) -> list[Figure]:
    seen = looks([s.variant for s in experiment.steps])
    result = []
    for panel in panels(experiment.steps):
        folders = {s.run for s in panel.steps}
        runs = [run for run in experiment.runs if run.folder in folders and len(run.series.second)]
        if runs:
            result.append(_figure(panel, runs, seen))
    return result


def _figure(panel: Panel, runs: Sequence[RunSummary], seen: dict) -> Figure:
    divisor, unit = scale(runs)
    bare = panel.title and not panel.emulated
    widths = {run.folder: bucket_width(len(run.series.second), len(stretches(run))) for run in runs}
    drawn = lines(runs)
    inner = len(drawn) * PLOT + (len(drawn) - 1) * GAP
    figure = layout(HEAD + inner + FOOT, margin={"l": 56, "r": 14, "t": HEAD, "b": FOOT})
    figure["xaxis"] = axis(
        title={"text": f"{unit} since measuring began", "font": {"size": 11}, "standoff": 6},
        anchor=f"y{len(drawn)}",
        zeroline=False,
    )
    data = []
    tops = [0.0] * len(drawn)
    for run in runs:
        steps = [s for s in panel.steps if s.run == run.folder]
        look = seen[steps[0].variant]
        dash = DASHES[(steps[0].repeat - 1) % len(DASHES)]
        begin = measuring_began(run)
        for stretch in stretches(run):
            pick = slice(stretch.first, stretch.last)
            x = bucket_means(run.series.second[pick], widths[run.folder])
            for row, (name, _, _) in enumerate(drawn):
                y = bucket_means(run.series.line(name)[pick], widths[run.folder])
                known = y[np.isfinite(y)]
                tops[row] = max(tops[row], float(known.max()) if len(known) else 0.0)
                data.append(
                    {
                        "type": "scatter",
                        "mode": "lines",
                        "name": plain(run.title, 28) + ("" if stretch.measured else " (warm-up)"),
                        "x": known_or_none((x - begin) / divisor, 6),
                        "y": known_or_none(y),
                        "hovertemplate": "%{y:,.3~r}",
                        "line": {"color": look.colour, "width": 1.5 if stretch.measured else 1, "dash": dash},
                        "opacity": 1.0 if stretch.measured else 0.65,
                        "xaxis": "x",
                        "yaxis": f"y{row + 1}" if row else "y",
                    }
                )
    for row, (name, _, title) in enumerate(drawn):
        top = 1 - row * (PLOT + GAP) / inner
        place = {"domain": [max(top - PLOT / inner, 0), top], "anchor": "x"}
        most = [max(getattr(step, name) or 0.0 for step in run.steps) for run in runs if name in _RATES]
        wide = rate_axis(most, **place)
        figure[f"yaxis{row + 1}" if row else "yaxis"] = wide or value_axis(tops[row], nticks=5, **place)
        words = f"{title}, log scale" if wide else title
        figure["annotations"].append(note(words, x=0, y=top, yshift=4 if row else 18))
    if panel.title:
        figure["annotations"].append(note(f"<b>{plain(panel.title, 44)}</b>", x=0, y=1, yshift=34))
    _mark_warm_up(figure, runs, divisor, len(drawn))
    widest = max(widths.values())
    density = f"Drawn as means of {format.seconds(widest)} each." if widest > 1 else "Every second is drawn."
    return Figure(
        id="time-emulated" if panel.emulated else "time",
        title="Throughput and read stall over time" + (f", {panel.title}" if bare else ""),
        unit="",
        emulated=panel.emulated,
        summary=_summary(runs, panel),
        method="Per-second counters; all runs begin at the start of their first measured interval. Warm-up is "
        "shaded and drawn thin, and is in none of the figures above. " + density,
        plotly={"data": data, "layout": figure},
        header=["run", unit, "users", *(name for _, name, _ in drawn)],
        rows=list(_rows(panel, runs, divisor)),
        key=[
            KeyItem(run.title, seen[variant].colour, DASHES[(run.steps[0].repeat - 1) % len(DASHES)])
            for run in runs
            for variant in [run.steps[0].variant]
        ],
        wide=True,
    )


def scale(runs: Sequence[RunSummary]) -> tuple[int, str]:
    """Seconds in a unit of the axis of time, and the unit."""
    return format.of_time(max(float(run.series.second[-1] - run.series.second[0]) for run in runs))


def bucket_width(samples: int, parts: int) -> int:
    """Samples per drawn point, so that `parts` stretches together give at most POINTS points."""
    return max(1, math.ceil(samples / max(POINTS - parts, 1)))


def bucket_means(values: np.ndarray, width: int) -> np.ndarray:
    """Means of `width` neighbours each, ignoring NaN; NaN where a bucket holds nothing else."""
    values = np.asarray(values, dtype=float)
    if width == 1 or not len(values):
        return values
    padded = np.full(math.ceil(len(values) / width) * width, np.nan)
    padded[: len(values)] = values
    buckets = padded.reshape(-1, width)
    known = np.isfinite(buckets)
    counts = known.sum(axis=1)
    sums = np.where(known, buckets, 0.0).sum(axis=1)
    return np.divide(sums, counts, out=np.full(len(buckets), np.nan), where=counts > 0)


def measuring_began(run: RunSummary) -> float:
    return min((step.measure_s for step in run.manifest.steps), default=0.0)


def stretches(run: RunSummary) -> list[Stretch]:
    """The run's seconds cut at the borders of warm-up and measured intervals, each sharing its border point."""
    second = run.series.second
    measured = np.zeros(len(second), dtype=bool)
    steps = run.manifest.steps
    for step in steps:
        measured |= (second >= step.measure_s) & (second < step.end_s)
    if not steps:
        measured[:] = True
    borders = [0, *(np.flatnonzero(np.diff(measured)) + 1), len(second)]
    return [
        Stretch(int(first), int(last), bool(measured[first]))
        for first, last in itertools.pairwise(borders)
        if last > first
    ]


def _mark_warm_up(figure: dict[str, Any], runs: Sequence[RunSummary], divisor: int, plots: int) -> None:
    """Shade warm-ups where all runs share them, and name the steps; else only the thin lines tell."""
    plans = [[(s.begin_s, s.measure_s, s.end_s) for s in r.manifest.steps] for r in runs]
    shared = min(plans, key=len)
    if not all(np.allclose(plan[: len(shared)], shared, atol=2) for plan in plans if shared):
        return
    zero = measuring_began(runs[0])
    several = len(shared) > 1
    for number, ((begin, measure, end), step) in enumerate(zip(shared, runs[0].manifest.steps, strict=False)):
        if measure > begin:
            figure["shapes"] += [
                {
                    "type": "rect",
                    "xref": "x",
                    "yref": f"y{row + 1} domain" if row else "y domain",
                    "x0": (begin - zero) / divisor,
                    "x1": (measure - zero) / divisor,
                    "y0": 0,
                    "y1": 1,
                    "line": {"width": 0},
                    "fillcolor": "#888",
                    "opacity": 0.1,
                    "layer": "below",
                }
                for row in range(plots)
            ]
        if number == 0 and measure > begin:
            figure["annotations"].append(
                note("warm-up", x=(begin - zero) / divisor, y=1, xref="x", yshift=2, font={"size": 10})
            )
        if several:
            figure["annotations"].append(
                note(
                    f"{step.users}" if number else f"users: {step.users}",
                    x=((measure + end) / 2 - zero) / divisor,
                    y=1,
                    xref="x",
                    xanchor="center",
                    yshift=2,
                    font={"size": 10},
                )
            )


def _rows(panel: Panel, runs: Sequence[RunSummary], divisor: int) -> Iterator[list[str]]:
    """A coarse table of the lines: means of at most about ROWS buckets a run."""
    for run in runs:
        width = math.ceil(len(run.series.second) / ROWS)
        begin = measuring_began(run)
        name = f"{run.title} ({EMULATED})" if panel.emulated else run.title
        columns = [
            bucket_means(run.series.line(n), width) for n in ("second", "users", *(name for name, _, _ in lines(runs)))
        ]
        for second, users, *values in zip(*columns, strict=True):
            yield [
                name,
                format.number((second - begin) / divisor),
                format.number(users),
                *(format.number(v) for v in values),
            ]


def _summary(runs: Sequence[RunSummary], panel: Panel) -> str:
    where = f"{panel.title}: " if panel.title else ""
    parts = []
    for run in runs:
        steps = run.steps
        seconds = format.seconds(float(len(run.series.second)))
        measured = f"{len(steps)} steps"
        if len(steps) == 1:
            measured = f"{format.number(steps[0].result_tps)} {lines(runs)[0][1]} measured"
            measured += " per second" if steps[0].primary else ""
        parts.append(f"{run.title}, {seconds}, {measured}")
    return where + "; ".join(parts) + "."


def known_or_none(values: np.ndarray, digits: int = 4) -> list[float | None]:
    """For a chart's JSON, which has no NaN."""
    return [float(f"{v:.{digits}g}") if math.isfinite(v) else None for v in values.tolist()]
