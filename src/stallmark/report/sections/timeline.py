"""Charts over time: throughput and stall, and the active set against what could hold it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from stallmark import format
from stallmark.analysis.experiment import ExperimentSummary
from stallmark.analysis.run import RunSummary
from stallmark.format import plural
from stallmark.record.devices import dram_of, flash_of, is_data_emulated
from stallmark.report.columns import panels
from stallmark.report.document import Section
from stallmark.report.figures import (
    NEUTRAL,
    Drawing,
    Figure,
    KeyItem,
    Look,
    Trace,
    bucket_means,
    bucket_width,
    chart,
    coarse,
    dash_of,
    highest,
    level_line,
    line,
    line_with_extremes,
    looks,
    measuring_began,
    note,
    places,
    plain,
    scale,
    shade,
    stacked,
    values_axis,
)
from stallmark.report.text import device as device_words
from stallmark.report.text import reading as chart_words
from stallmark.report.text.reading import Panel

# Throughput and stall over time: one figure for emulated arrays, one for real devices.

RESPONSE = (
    ("read_ms", "read time", chart_words.LINE_READ_TIME),
    ("read_stall_ms_per_s", "read stall", chart_words.LINE_READ_STALL),
)
WRITTEN = (
    ("checkpoint_pages", "checkpoints", chart_words.LINE_CHECKPOINTS),
    ("background_pages", "background writer", chart_words.LINE_BACKGROUND_WRITER),
)
_RATES = ("primary_tps", "tps")
PLOT, GAP, HEAD, FOOT = 137, 31, 44, 46  # px: a plot, between two, above the first, and the axis below

Drawn = tuple[str, str, str]
"""A drawn line: its name in the series, in tables, and in words."""


def lines(runs: Sequence[RunSummary]) -> list[Drawn]:
    """Return the lines to draw, from the top."""
    shown = [("tps", "TPS", "committed transactions per second")]
    primary = {run.steps[0].throughput.primary for run in runs}
    if len(primary) == 1 and (name := primary.pop()):
        shown = [
            ("primary_tps", plural(name), f"{plural(name)} per second"),
            ("tps", "all tx", "all committed transactions per second"),
        ]
    if any(run.series.flash_share is not None for run in runs):
        shown.append(("flash_share", "from flash", chart_words.LINE_FLASH_SHARE))
    written = [drawn for drawn in WRITTEN if any(np.nansum(run.series.line(drawn[0])) > 0 for run in runs)]
    return [*shown, *RESPONSE, *written]


@dataclass(frozen=True)
class Stretch:
    """A segment of a run's series: warm-up, or measured."""

    first: int
    last: int  # exclusive
    measured: bool


def figures_by_panel(
    experiment: ExperimentSummary,
    is_drawn: Callable[[RunSummary], bool],
    draw: Callable[[Panel, Sequence[RunSummary], dict[str, Look]], Figure],
) -> list[Figure]:
    """Return a chart of the runs on emulated arrays and one of those on real devices, as far as runs are drawn."""
    seen = looks([s.variant for s in experiment.steps])
    figures = []
    for panel in panels(experiment.steps):
        keys = {step.key for step in panel.steps}
        shown = [run for run in experiment.runs if any(step.key in keys for step in run.steps)]
        if runs := list(filter(is_drawn, shown)):
            figures.append(draw(panel, runs, seen))
    return figures


def time_figures(experiment: ExperimentSummary) -> list[Figure]:
    return figures_by_panel(experiment, lambda run: bool(len(run.series.second)), _figure)


def _figure(panel: Panel, runs: Sequence[RunSummary], seen: dict[str, Look]) -> Figure:
    divisor, unit = scale(runs)
    bare = panel.title and not panel.emulated
    widths = [bucket_width(len(run.series.second), len(stretches(run))) for run in runs]
    shown = lines(runs)
    several_steps = any(len(run.manifest.steps) > 1 for run in runs)
    made, tops = stacked([(GAP if row else 0, PLOT) for row in range(len(shown))], HEAD, FOOT)
    made.change(xaxis={"title": {"text": f"{unit} since measuring began"}})
    for run, width in zip(runs, widths, strict=True):
        made.add(*_traces(run, shown, divisor, width, seen))
    for place, top, (name, _, title) in zip(places(len(shown)), tops, shown, strict=True):
        # Runs whose rates differ by an order of magnitude share a logarithmic axis, so that the slow ones stay visible.
        rates = [max(getattr(step.throughput, name) or 0.0 for step in run.steps) for run in runs if name in _RATES]
        axis, log_scale = values_axis(highest(made, place), rates)
        made.change(**{f"yaxis{place}": {"nticks": 5} | _standstill_seen(made, place, axis)})
        made.change(**({f"yaxis{place}": {"tickformat": ".0%"}} if name == "flash_share" else {}))
        note(made, title + log_scale, y=top, yshift=4 if place or not several_steps else 18)
    if panel.title:
        note(made, panel.title, 44, bold=True, x=1, xanchor="right", yshift=20)
    shaded = _mark_warm_up(made, runs, divisor, places(len(shown)))
    widest = max(widths)
    return Figure(
        id="time-emulated" if panel.emulated else "time",
        title="Throughput and read stall over time" + (f", {panel.title}" if bare else ""),
        unit="",
        emulated=panel.emulated,
        summary=_summary(runs, panel),
        method=chart_words.timeline_method(widest),
        chart=made,
        header=["run", unit, "users", *(name for _, name, _ in shown)],
        rows=list(_rows(runs, divisor)),
        key=[
            *(KeyItem(run.title, seen[run.steps[0].variant].colour, dash_of(run.steps[0].repeat)) for run in runs),
            *([KeyItem("warm-up", NEUTRAL, None, "bar", opacity=0.25)] if shaded else []),
        ],
        wide=True,
        columns=[title for _, _, title in shown],
    )


def _standstill_seen(made: Drawing, place: str, axis: dict[str, Any]) -> dict[str, Any]:
    """Return the axis of a plot on which a line at zero is visible. A linear axis begins a little below zero. The
    lowest tick of a logarithmic axis is 0, and all smaller values are drawn there."""
    low, high = axis["range"]
    if "type" not in axis:
        return axis | {"range": [-0.03 * high, high]}
    # A logarithmic axis has no zero: smaller values are drawn on its lower end, which is labelled 0.
    ground = 10**low
    for trace in made.traces_on(place):
        if any(v is not None and v < ground for v in trace["y"]):
            above = [v if v is None else max(v, ground) for v in trace["y"]]
            trace |= {"customdata": trace["y"], "hovertemplate": "%{customdata:,.3~r}", "y": above}
    ticks = [value for value in axis["tickvals"] if value > ground * 1.3]
    written = {"tickvals": [ground, *ticks], "ticktext": ["0", *(format.exact(value) for value in ticks)]}
    return axis | written | {"range": [low - 0.04 * (high - low), high]}


def _traces(
    run: RunSummary, shown: Sequence[Drawn], divisor: int, width: int, seen: dict[str, Look]
) -> Iterator[Trace]:
    """Yield a line for every segment of a run in every plot, thin and pale during warm-up."""
    look, dash = seen[run.steps[0].variant], dash_of(run.steps[0].repeat)
    begin = measuring_began(run)
    for stretch in stretches(run):
        pick = slice(stretch.first, stretch.last)
        x = (run.series.second[pick] - begin) / divisor
        for place, (name, _, _) in zip(places(len(shown)), shown, strict=True):
            yield from line_with_extremes(
                plain(run.title, 28) + ("" if stretch.measured else " (warm-up)"),
                x,
                run.series.line(name)[pick],
                width,
                line={"color": look.colour, "width": 1.5 if stretch.measured else 1, "dash": dash},
                opacity=1.0 if stretch.measured else 0.65,
                yaxis=f"y{place}",
            )


def stretches(run: RunSummary) -> list[Stretch]:
    """Return the segments of a run, cut at the borders of warm-up and measured intervals. Neighbours share the border
    point."""
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


def _mark_warm_up(made: Drawing, runs: Sequence[RunSummary], divisor: int, plots: Sequence[str]) -> bool:
    """Shade the warm-ups and name the steps if all runs share them; otherwise only the thin lines show them. Return
    True if any was shaded."""
    plans = [[(s.begin_s, s.measure_s, s.end_s) for s in r.manifest.steps] for r in runs]
    shared = min(plans, key=len)
    # Runs with different timelines have no common warm-up to shade.
    if not all(np.allclose(plan[: len(shared)], shared, atol=2) for plan in plans if shared):
        return False
    zero = measuring_began(runs[0])
    shapes = []
    # Not strict, since the first run may have more steps than the shortest.
    for number, ((begin, measure, end), step) in enumerate(zip(shared, runs[0].manifest.steps, strict=False)):
        if measure > begin:
            shapes += shade((begin - zero) / divisor, (measure - zero) / divisor, plots)
        small: dict[str, Any] = {"xref": "x", "yshift": 2, "font": {"size": 10}}
        if len(shared) > 1:
            label = f"{step.users}" if number else f"users: {step.users}"
            note(made, label, x=((measure + end) / 2 - zero) / divisor, xanchor="center", **small)
    made.add_shapes(*shapes)
    return bool(shapes)


def _rows(runs: Sequence[RunSummary], divisor: int) -> Iterator[list[str]]:
    names = [name for name, _, _ in lines(runs)]
    for run in runs:
        since = (run.series.second - measuring_began(run)) / divisor
        written = [format.share if name == "flash_share" else format.number for name in names]
        for time, users, *values in coarse([since, run.series.line("users"), *map(run.series.line, names)]):
            cells = (write(value) for write, value in zip(written, values, strict=True))
            yield [run.title, format.number(time), format.number(users), *cells]


def _summary(runs: Sequence[RunSummary], panel: Panel) -> str:
    where = f"{panel.title}: " if panel.title and not panel.emulated else ""
    parts = []
    for run in runs:
        steps = run.steps
        seconds = format.seconds(float(len(run.series.second)))
        measured = f"{len(steps)} steps"
        if len(steps) == 1:
            measured = f"{format.number(steps[0].result_tps)} {lines(runs)[0][1]} measured"
            measured += " per second" if steps[0].throughput.primary else ""
        parts.append(f"{run.title}, {seconds}, {measured}")
    return where + "; ".join(parts) + "."


def section(experiment: ExperimentSummary) -> Section:
    return Section("time", "Over time", time_figures(experiment))


# The active set over a run, compared with the DRAM and the flash that could hold it.

HEIGHT = 300
MIB, GIB = 1 << 20, 1 << 30


def active_figures(experiment: ExperimentSummary) -> list[Figure]:
    """Return a chart for emulated arrays and one for real devices; empty if no run has an active set worth drawing."""
    return figures_by_panel(experiment, _is_drawn, _active_set_figure)


def _is_drawn(run: RunSummary) -> bool:
    """Return True if a run is drawn: if its active set was counted, or is bounded and DRAM or flash could hold it."""
    line = run.series.active_bytes
    if line is None or not np.isfinite(line).any():
        return False
    if _is_counted(run):
        return True
    return not is_data_emulated(run.manifest) and bool(dram_of(run.manifest) or flash_of(run.manifest))


def _is_counted(run: RunSummary) -> bool:
    active_sets = [step.storage.active for step in run.steps if step.storage.active]
    return bool(active_sets) and all(active_set.counted_bytes is not None for active_set in active_sets)


def _active_set_figure(panel: Panel, runs: Sequence[RunSummary], seen: dict[str, Look]) -> Figure:
    divisor, unit = scale(runs)
    sizes = _sizes(runs)
    top = max([*(float(np.nanmax(run.series.line("active_bytes"))) for run in runs), *sizes])
    per, name = (GIB, "GiB") if top >= GIB else (MIB, "MiB")
    axis, log_scale = values_axis(top / per, [amount / per for amount in (*map(_last, runs), *sizes)])
    made = chart(HEIGHT, margin={"l": 56, "b": 46}, yaxis=axis)
    made.change(xaxis={"title": {"text": f"{unit} since measuring began"}})
    counted = any(map(_is_counted, runs))
    note(made, f"{name} active since the run began{'' if counted else ', at most'}{log_scale}", yshift=5)
    for run in runs:
        made.add(*_active_set_traces(run, divisor, per, seen[run.steps[0].variant].colour))
    for size, words in sizes.items():
        made.add_shapes(level_line(size / per, width=1.25, dash="dot"))
        # Plotly wants logarithms for notes, but not for lines.
        height = math.log10(size / per) if log_scale else size / per
        note(made, f"{words}, {format.size(size)}", x=1, y=height, yref="y", xanchor="right", yshift=1)
    return Figure(
        id="active-emulated" if panel.emulated else "active",
        title="Active set over time",
        unit=name,
        emulated=panel.emulated,
        summary=_active_set_summary(runs, counted),
        method=_method(runs, counted),
        chart=made,
        header=["run", unit, f"active, {name}", f"in a minute, {name}"],
        rows=[row for run in runs for row in _active_set_rows(run, divisor, per)],
        key=[KeyItem(run.title, seen[run.steps[0].variant].colour, dash_of(run.steps[0].repeat)) for run in runs],
        wide=True,
    )


def _active_set_traces(run: RunSummary, divisor: int, per: int, colour: str) -> Iterator[Trace]:
    """Yield the active set since the run began, and, thin and pale, that of the last minute."""
    width = bucket_width(len(run.series.second))
    x = (bucket_means(run.series.second + 1, width) - measuring_began(run)) / divisor
    for name, words, thick, opacity in (
        ("active_bytes", "", 1.75, 1.0),
        ("active_minute_bytes", " (in a minute)", 1, 0.55),
    ):
        y = bucket_means(run.series.line(name) / per, width)
        if np.isfinite(y).any():
            style = {"color": colour, "width": thick, "dash": dash_of(run.steps[0].repeat)}
            yield line(plain(run.title, 28) + words, x, y, line=style, opacity=opacity)


def _sizes(runs: Sequence[RunSummary]) -> dict[int, str]:
    """Return the sizes of DRAM and flash in bytes, with their names; equal sizes of several variants once."""
    names_by_size: dict[int, list[str]] = {}
    for run in runs:
        named_sizes = [(flash.size_bytes, f"flash {flash.kind}") for flash in flash_of(run.manifest)]
        if dram := dram_of(run.manifest):
            named_sizes.append((dram, "array’s DRAM"))
        for size, words in named_sizes:
            names_by_size.setdefault(size, []).append(words)
    return {size: " and ".join(dict.fromkeys(words)) for size, words in names_by_size.items()}


def _active_set_summary(runs: Sequence[RunSummary], counted: bool) -> str:
    most = "" if counted else "at most "
    ends = [f"{run.title}, {most}{format.size(_last(run))}" for run in runs]
    return device_words.active_in_the_end(ends)


def _last(run: RunSummary) -> int:
    line = run.series.line("active_bytes")
    return int(line[np.isfinite(line)][-1])


def _method(runs: Sequence[RunSummary], counted: bool) -> str:
    if not counted:
        return device_words.ACTIVE_AT_MOST
    extents = sorted(
        {
            step.storage.active.extent_bytes
            for run in runs
            for step in run.steps
            if step.storage.active and step.storage.active.extent_bytes
        }
    )
    extent_text = f" of {' or '.join(format.size(extent) for extent in extents)}" if extents else ""
    return device_words.active_over_time(of=extent_text)


def _active_set_rows(run: RunSummary, divisor: float, per: int) -> list[list[str]]:
    lines = (
        (run.series.second + 1 - measuring_began(run)) / divisor,
        run.series.line("active_bytes") / per,
        run.series.line("active_minute_bytes") / per,
    )
    return [[run.title, *map(format.number, row)] for row in coarse(lines)]
