"""The active set over a run, compared with the DRAM and the flash that could hold it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import plotly.graph_objects as go

from stallmark import format
from stallmark.analysis.experiment import ExperimentSummary
from stallmark.analysis.run import RunSummary
from stallmark.record.devices import dram_of, flash_of, is_data_emulated
from stallmark.report.figures import Figure, chart, note, values_axis
from stallmark.report.labels import panels
from stallmark.report.over_time import bucket_means, bucket_width, coarse, line, measuring_began, scale
from stallmark.report.style import NEUTRAL, KeyItem, Look, dash_of, looks, plain
from stallmark.report.text import device as device_words
from stallmark.report.text.charts import Panel

HEIGHT = 300
MIB, GIB = 1 << 20, 1 << 30


def active_figures(experiment: ExperimentSummary) -> list[Figure]:
    """Return a chart for emulated arrays and one for real devices; none where nothing is known or worth comparing."""
    seen = looks([step.variant for step in experiment.steps])
    result = []
    for panel in panels(experiment.steps):
        keys = {step.key for step in panel.steps}
        shown = (run for run in experiment.runs if any(step.key in keys for step in run.steps))
        runs = [run for run in shown if _is_drawn(run)]
        if runs:
            result.append(_figure(panel, runs, seen))
    return result


def _is_drawn(run: RunSummary) -> bool:
    """Tell whether a run is drawn: always if counted; a mere bound only where DRAM or flash could hold it."""
    line = run.series.active_bytes
    if line is None or not np.isfinite(line).any():
        return False
    if _is_counted(run):
        return True
    return not is_data_emulated(run.manifest) and bool(dram_of(run.manifest) or flash_of(run.manifest))


def _is_counted(run: RunSummary) -> bool:
    found = [step.storage.active for step in run.steps if step.storage.active]
    return bool(found) and all(one.counted_bytes is not None for one in found)


def _figure(panel: Panel, runs: Sequence[RunSummary], seen: dict[str, Look]) -> Figure:
    divisor, unit = scale(runs)
    sizes = _sizes(runs)
    top = max([*(float(np.nanmax(run.series.line("active_bytes"))) for run in runs), *sizes])
    per, name = (GIB, "GiB") if top >= GIB else (MIB, "MiB")
    axis, log_scale = values_axis(top / per, [amount / per for amount in (*map(_last, runs), *sizes)])
    made = chart(HEIGHT, margin={"l": 56, "b": 46}, yaxis=axis)
    made.update_xaxes(title={"text": f"{unit} since measuring began"})
    counted = any(map(_is_counted, runs))
    note(made, f"{name} active since the run began{'' if counted else ', at most'}{log_scale}", yshift=5)
    for run in runs:
        made.add_traces(list(_traces(run, divisor, per, seen[run.steps[0].variant].colour)))
    for size, words in sizes.items():
        made.add_hline(size / per, line={"color": NEUTRAL, "width": 1.25, "dash": "dot"})
        height = math.log10(size / per) if log_scale else size / per  # Plotly wants logarithms for notes, not for lines
        note(made, f"{words}, {format.size(size)}", x=1, y=height, yref="y", xanchor="right", yshift=1)
    return Figure(
        id="active-emulated" if panel.emulated else "active",
        title="Active set over time",
        unit=name,
        emulated=panel.emulated,
        summary=_summary(runs, counted),
        method=_method(runs, counted),
        chart=made,
        header=["run", unit, f"active, {name}", f"in a minute, {name}"],
        rows=[row for run in runs for row in _rows(run, divisor, per)],
        key=[KeyItem(run.title, seen[run.steps[0].variant].colour, dash_of(run.steps[0].repeat)) for run in runs],
        wide=True,
    )


def _traces(run: RunSummary, divisor: int, per: int, colour: str) -> Iterator[go.Scatter]:
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
    found: dict[int, list[str]] = {}
    for run in runs:
        held = [(one.size_bytes, f"flash {one.kind}") for one in flash_of(run.manifest)]
        if dram := dram_of(run.manifest):
            held.append((dram, "array’s DRAM"))
        for size, words in held:
            found.setdefault(size, []).append(words)
    return {size: " and ".join(dict.fromkeys(words)) for size, words in found.items()}


def _summary(runs: Sequence[RunSummary], counted: bool) -> str:
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
    of = f" of {' or '.join(format.size(one) for one in extents)}" if extents else ""
    return device_words.active_over_time(of)


def _rows(run: RunSummary, divisor: float, per: int) -> list[list[str]]:
    lines = (
        (run.series.second + 1 - measuring_began(run)) / divisor,
        run.series.line("active_bytes") / per,
        run.series.line("active_minute_bytes") / per,
    )
    return [[run.title, *map(format.number, row)] for row in coarse(lines)]
