"""How much of the data was active over a run, beside the DRAM and the flash that could hold it."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from stallmark import format
from stallmark.analysis.summary import ExperimentSummary, RunSummary
from stallmark.record.devices import dram_of, flash_of, is_data_emulated
from stallmark.report.labels import EMULATED, Panel, panels
from stallmark.report.sections.axis import Figure
from stallmark.report.sections.timeline import ROWS, bucket_means, bucket_width, known_or_none, measuring_began, scale
from stallmark.report.style import (
    DASHES,
    NEUTRAL,
    KeyItem,
    Look,
    axis,
    layout,
    looks,
    note,
    plain,
    rate_axis,
    value_axis,
)

HEIGHT = 300
MIB, GIB = 1 << 20, 1 << 30


def active_figures(experiment: ExperimentSummary) -> list[Figure]:
    """One for emulated devices, one for real ones; none where nothing is known, or there is nothing to set beside."""
    seen = looks([step.variant for step in experiment.steps])
    result = []
    for panel in panels(experiment.steps):
        folders = {step.run for step in panel.steps}
        runs = [run for run in experiment.runs if run.folder in folders and _is_drawn(run)]
        if runs:
            result.append(_figure(panel, runs, seen))
    return result


def _is_drawn(run: RunSummary) -> bool:
    """What was counted always; a bound only where there is something that it could fit into."""
    line = run.series.active_bytes
    if line is None or not np.isfinite(line).any():
        return False
    if _is_counted(run):
        return True
    return not is_data_emulated(run.manifest) and bool(dram_of(run.manifest) or flash_of(run.manifest))


def _is_counted(run: RunSummary) -> bool:
    found = [step.active for step in run.steps if step.active]
    return bool(found) and all(one.counted_bytes is not None for one in found)


def _figure(panel: Panel, runs: Sequence[RunSummary], seen: dict[str, Look]) -> Figure:
    divisor, unit = scale(runs)
    sizes = _sizes(runs)
    top = max([*(float(np.nanmax(run.series.line("active_bytes"))) for run in runs), *sizes])
    per, name = (GIB, "GiB") if top >= GIB else (MIB, "MiB")
    figure = layout(HEIGHT, margin={"l": 56, "r": 14, "t": 40, "b": 46})
    figure["xaxis"] = axis(
        title={"text": f"{unit} since measuring began", "font": {"size": 11}, "standoff": 6}, zeroline=False
    )
    wide = rate_axis([*(_last(run) / per for run in runs), *(size / per for size in sizes)])
    figure["yaxis"] = wide or value_axis(top / per)
    counted = any(map(_is_counted, runs))
    what = f"{name} active since the run began{'' if counted else ', at most'}{', log scale' * bool(wide)}"
    figure["annotations"].append(note(plain(what), x=0, y=1, yshift=5))
    data: list[dict[str, Any]] = []
    for run in runs:
        variant, repeat = run.steps[0].variant, run.steps[0].repeat
        width = bucket_width(len(run.series.second), 1)
        x = (bucket_means(run.series.second + 1, width) - measuring_began(run)) / divisor
        for line, opacity in (("active_bytes", 1.0), ("active_minute_bytes", 0.55)):
            y = bucket_means(run.series.line(line) / per, width)
            if np.isfinite(y).any():
                data.append(
                    {
                        "type": "scatter",
                        "mode": "lines",
                        "name": plain(run.title, 28) + (" (in a minute)" if opacity < 1 else ""),
                        "x": known_or_none(x, 6),
                        "y": known_or_none(y),
                        "hovertemplate": "%{y:,.3~r}",
                        "opacity": opacity,
                        "line": {
                            "color": seen[variant].colour,
                            "width": 1.75 if opacity == 1 else 1,
                            "dash": DASHES[(repeat - 1) % len(DASHES)],
                        },
                    }
                )
    for size, words in sizes.items():
        figure["shapes"].append(
            {
                "type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": size / per, "y1": size / per,
                "line": {"color": NEUTRAL, "width": 1.25, "dash": "dot"},
            }
        )  # fmt: skip
        height = math.log10(size / per) if wide else size / per  # Plotly takes logarithms of notes, not of lines
        figure["annotations"].append(
            note(plain(f"{words}, {format.size(size)}"), x=1, y=height, yref="y", xanchor="right", yshift=1)
        )
    return Figure(
        id="active-emulated" if panel.emulated else "active",
        title="Active set over time",
        unit=name,
        emulated=panel.emulated,
        summary=_summary(runs, counted),
        method=_method(runs, counted),
        plotly={"data": data, "layout": figure},
        header=["run", unit, f"active, {name}", f"in a minute, {name}"],
        rows=[row for run in runs for row in _rows(run, panel, divisor, per)],
        key=[
            KeyItem(run.title, seen[run.steps[0].variant].colour, DASHES[(run.steps[0].repeat - 1) % len(DASHES)])
            for run in runs
        ],
        wide=True,
    )


def _sizes(runs: Sequence[RunSummary]) -> dict[int, str]:
    """What could hold it, in bytes, with its name: of several variants alike once."""
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
    return f"Active by the end of the run: {'; '.join(ends)}."


def _last(run: RunSummary) -> int:
    line = run.series.line("active_bytes")
    return int(line[np.isfinite(line)][-1])


def _method(runs: Sequence[RunSummary], counted: bool) -> str:
    if not counted:
        return (
            "Nobody counts what is active on a real array. The line is a bound: all that the server read from its data "
            "files and wrote to them since the run began, and no more than the database; what was touched twice is in "
            "it twice."
        )
    extents = sorted(
        {step.active.extent_bytes for run in runs for step in run.steps if step.active and step.active.extent_bytes}
    )
    of = f" of {' or '.join(format.size(one) for one in extents)}" if extents else ""
    return (
        f"Different extents{of} that were read or written since the run began, by the device’s own count, warm-up "
        "included; thin: in the last full minute. What lies below a dotted line fits into it."
    )


def _rows(run: RunSummary, panel: Panel, divisor: float, per: int) -> list[list[str]]:
    width = math.ceil(len(run.series.second) / ROWS)
    name = f"{run.title} ({EMULATED})" if panel.emulated else run.title
    columns = [
        bucket_means(line, width)
        for line in (
            (run.series.second + 1 - measuring_began(run)) / divisor,
            run.series.line("active_bytes") / per,
            run.series.line("active_minute_bytes") / per,
        )
    ]
    return [[name, *(format.number(value) for value in row)] for row in zip(*columns, strict=True)]
