"""The division of the users' time by wait class, and the correlation of throughput with the stall: one row per step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from stallmark import format
from stallmark.analysis.experiment import ExperimentSummary
from stallmark.analysis.read.server_summary import WAIT_CLASSES
from stallmark.analysis.step_summary import StepSummary
from stallmark.format import coefficient
from stallmark.report.columns import panels, step_labels
from stallmark.report.document import Grid, Section, Words
from stallmark.report.figures import (
    NEUTRAL,
    WAIT_COLOURS,
    Figure,
    KeyItem,
    looks,
    note,
    places,
    plain,
    rounded,
    stacked,
)
from stallmark.report.text import reading
from stallmark.report.text.reading import Panel
from stallmark.stats.dependence import Correlation

WAIT_NAMES = {
    "io": "I/O",
    "wal": "WAL",
    "replica": "replica",
    "lock": "lock",
    "latch": "latch",
    "memory": "memory",
    "parallel": "parallel",
    "worker": "worker",
    "cpu": "CPU",
    "client": "client",
    "other": "other",
}
assert set(WAIT_NAMES) == set(WAIT_CLASSES)
ROW, HEAD, FOOT = 26, 30, 42  # px: a row, a panel's title, the axis below


def wait_figure(experiment: ExperimentSummary) -> Figure | None:
    """Return stacked shares of the users' sampled time; None when no step was sampled."""
    steps = [s for s in experiment.steps if s.waits.share]
    if not steps:
        return None
    labels = step_labels(experiment)
    parts = panels(steps)
    seen = {name for s in steps for name, share in (s.waits.share or {}).items() if share}
    # Rare classes are omitted unless observed, so that the key stays short.
    order = [name for name in WAIT_NAMES if name not in reading.WAITS_EXPLAINED or name in seen]
    made = _rows_chart(parts, labels, barmode="stack", bargap=0.24, hovermode="y unified")
    made.update_xaxes(range=[0, 100], tickvals=[0, 25, 50, 75, 100], ticktext=["0", "25", "50", "75", "100 %"])
    for place, panel in zip(places(len(parts)), parts, strict=True):
        for name in order:
            values = [100 * (s.waits.share or {}).get(name, 0.0) for s in panel.steps]
            made.add_bar(
                orientation="h",
                name=WAIT_NAMES[name],
                x=rounded(values),
                y=list(range(len(panel.steps))),
                text=[f"{v:.0f}" if v >= 5 else "" for v in values],
                textposition="inside",
                insidetextanchor="middle",
                textangle=0,
                constraintext="none",
                hovertemplate="%{x:.1f} %",
                marker={"color": WAIT_COLOURS[name]},
                yaxis=f"y{place}",
            )
    return Figure(
        id="waits",
        title="Where the users’ time went",
        unit="share of the users’ sampled time",
        emulated=any(p.emulated for p in parts),
        summary=_wait_summary(steps, labels),
        method=reading.WAITS
        + "".join(f"{text} " for name, text in reading.WAITS_EXPLAINED.items() if name in order)
        + reading.WAITS_ARE_NO_CAUSE,
        chart=made,
        header=["step", *(WAIT_NAMES[n] for n in order), "most frequent waits"],
        rows=[
            [
                labels[s.key],
                *(format.share((s.waits.share or {}).get(n, 0.0)) for n in order),
                ", ".join(f"{event} {format.share(part)}" for event, part in s.waits.top[:4]) or format.NONE,
            ]
            for s in steps
        ],
        key=[KeyItem(WAIT_NAMES[n], WAIT_COLOURS[n], None, "bar") for n in order],
        wide=True,
    )


def correlation_figures(experiment: ExperimentSummary) -> list[Figure]:
    """Return one figure per pair of series, a row per step with its 95 % interval."""
    pairs = dict.fromkeys((c.left, c.right, c.right_unit) for s in experiment.steps for c in s.bottleneck.correlations)
    return [_correlation(experiment, pair, number) for number, pair in enumerate(pairs)]


def _correlation(experiment: ExperimentSummary, pair: tuple[str, str, str], number: int) -> Figure:
    labels = step_labels(experiment)
    seen = looks([s.variant for s in experiment.steps])
    by_step: dict[str, Correlation] = {
        s.key: c for s in experiment.steps for c in s.bottleneck.correlations if (c.left, c.right, c.right_unit) == pair
    }
    # Steps that are too short have no correlation.
    steps = [s for s in experiment.steps if s.key in by_step]
    parts = panels(steps)
    made = _rows_chart(parts, labels, hovermode="closest")
    ticks = {"tickvals": [-1, -0.5, 0, 0.5, 1], "ticktext": ["−1", "−0.5", "0", "0.5", "1"]}
    made.update_xaxes(range=[-1.05, 1.05], zeroline=True, **ticks)
    for place, panel in zip(places(len(parts)), parts, strict=True):
        values = [by_step[s.key] for s in panel.steps]
        made.add_scatter(
            mode="markers",
            name="r",
            x=[round(c.r, 3) for c in values],
            y=list(range(len(values))),
            error_x={
                "symmetric": False,
                "array": [round(c.high - c.r, 3) for c in values],
                "arrayminus": [round(c.r - c.low, 3) for c in values],
                "color": NEUTRAL,
                "thickness": 2,
                "width": 0,
            },
            marker={
                "size": 9,
                "color": [seen[s.variant].colour for s in panel.steps],
                "symbol": [seen[s.variant].symbol for s in panel.steps],
            },
            text=[f"r {coefficient(c.r)} [{coefficient(c.low)}, {coefficient(c.high)}], n {c.n:,}" for c in values],
            yaxis=f"y{place}",
        )
    left, right, unit = pair
    return Figure(
        id=f"correlation-{number}",
        title=f"{left[:1].upper()}{left[1:]} against {right}, {unit}",
        unit=reading.CORRELATION_UNIT,
        emulated=any(p.emulated for p in parts),
        summary=" ".join(
            reading.correlation(labels[s.key], c.r, c.low, c.high) for s in steps for c in [by_step[s.key]]
        ),
        method=reading.correlation_method(unit),
        chart=made,
        header=["step", "r", "95 % low", "95 % high", "n", "unit"],
        rows=[
            [labels[s.key], coefficient(c.r), coefficient(c.low), coefficient(c.high), format.count(c.n), unit]
            for s in steps
            for c in [by_step[s.key]]
        ],
    )


def _rows_chart(parts: Sequence[Panel], labels: dict[str, str], **layout: Any) -> go.Figure:
    """Return an empty chart with panels below each other, a row of equal height per step, first step uppermost."""
    plots = [(HEAD if panel.title else 8, len(panel.steps) * ROW) for panel in parts]
    made, tops = stacked(plots, 0, FOOT, left=10, right=30, **layout)
    for place, top, panel in zip(places(len(parts)), tops, parts, strict=True):
        count = len(panel.steps)
        rows = {"range": [count - 0.5, -0.5], "tickvals": list(range(count)), "showgrid": False, "zeroline": False}
        names = [plain(labels[step.key], 24) for step in panel.steps]
        made.update_layout({f"yaxis{place}": rows | {"ticktext": names}})
        if panel.title:
            note(made, panel.title, 40, bold=True, y=top, yshift=3)
    return made


def _wait_summary(steps: Sequence[StepSummary], labels: dict[str, str]) -> str:
    parts = []
    for step in steps:
        share = step.waits.share or {}
        first, second = sorted(share, key=lambda n: -share[n])[:2]
        parts.append(
            f"{labels[step.key]}: {WAIT_NAMES[first]} {format.share(share[first])}, "
            f"{WAIT_NAMES[second]} {format.share(share[second])}"
        )
    return "; ".join(parts) + "."


def waits_section(experiment: ExperimentSummary) -> Section:
    waits, moved = wait_figure(experiment), correlation_figures(experiment)
    correlations = [Words(reading.CORRELATION, "lead"), Grid(moved)] if moved else []
    blocks = [*([waits] if waits else []), *correlations]
    return Section("waiting", "Waits of the users", blocks)


def streams_section(experiment: ExperimentSummary) -> Section:
    waits = wait_figure(experiment)
    blocks = [Words(reading.STREAM_WAITS, "lead"), waits] if waits else []
    return Section("waiting", "Waits of the streams", blocks)
