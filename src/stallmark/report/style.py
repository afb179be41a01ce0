"""The style of variants and charts: one colour, mark and dash per variant, and one template for all charts.

All colours stand at least 3:1 against both the light and the dark page, so that drawn data need no theme. Text, grids
and axes take theirs from the style sheet. Marks and dashes repeat what the colours say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import plotly.graph_objects as go

from stallmark.escape import visible

COLOURS = ("#0b6fb8", "#d2570a", "#3f8f3f", "#d94f8a", "#2f9bb3", "#7a6a5c", "#b0559b", "#7d8590")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "triangle-down", "star")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
NEUTRAL = "#7d8590"
WAIT_COLOURS = {
    "io": "#b4452c",
    "wal": "#b0770f",
    "replica": "#d3a544",
    "lock": "#7a54a8",
    "latch": "#a88bc9",
    "memory": "#4c7a3d",
    "parallel": "#86a86f",
    "worker": "#a34f78",
    "cpu": "#3a7d8c",
    "client": "#8b96a0",
    "other": "#6b6259",
}
FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Liberation Sans", Arial, sans-serif'


@dataclass(frozen=True)
class Look:
    colour: str
    symbol: str
    dash: str


@dataclass(frozen=True)
class KeyItem:
    """One entry of a chart's key. `dash` and `symbol` are None where the chart draws no line or no mark."""

    text: str
    colour: str
    dash: str | None = None
    symbol: str | None = None
    opacity: float = 1.0


def looks(names: Sequence[str]) -> dict[str, Look]:
    """Return a look for every name, in order; more than 48 names share some."""
    return {
        name: Look(COLOURS[i % len(COLOURS)], SYMBOLS[i % len(SYMBOLS)], DASHES[(i // len(COLOURS)) % len(DASHES)])
        for i, name in enumerate(dict.fromkeys(names))
    }


def dash_of(repeat: int) -> str:
    """Return the dash that tells a repeat (from 1) of a variant from the others."""
    return DASHES[(repeat - 1) % len(DASHES)]


def plain(text: object, limit: int | None = None) -> str:
    """Return text for inside a chart, where Plotly would read mark-up; cut to `limit` characters."""
    text = visible(str(text))
    if limit and len(text) > limit:
        text = text[: limit - 1].rstrip() + "…"
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


@cache
def template() -> go.layout.Template:
    """Return the common style of all charts: quiet x axes, y axes with a grid, notes anchored bottom left."""
    axis = {
        "fixedrange": True,
        "automargin": True,
        "separatethousands": True,
        "linewidth": 1,
        "ticklen": 4,
        "title": {"font": {"size": 11}, "standoff": 8},
    }
    along = {"showgrid": False, "zeroline": False, "showline": True, "ticks": "outside", "autotickangles": [0, -90]}
    upward = {"showgrid": True, "zeroline": True, "showline": False, "ticks": "", "nticks": 6, "exponentformat": "none"}
    note = {"xref": "paper", "yref": "paper", "xanchor": "left", "yanchor": "bottom", "align": "left"}
    return go.layout.Template(
        layout={
            "autosize": True,
            "margin": {"l": 52, "r": 14, "t": 40, "b": 52},
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "font": {"family": FONT, "size": 12},
            "hovermode": "x unified",
            "hoverlabel": {"font": {"family": FONT, "size": 12}},
            "showlegend": False,
            "dragmode": False,
            "xaxis": axis | along,
            "yaxis": axis | upward,
            "annotationdefaults": note | {"showarrow": False, "font": {"size": 11}},
            "shapedefaults": {"line": {"color": NEUTRAL, "width": 1}},
        },
        data={
            "bar": [{"hovertemplate": "%{text}<extra></extra>", "textposition": "none"}],
            "scatter": [{"hovertemplate": "%{text}<extra></extra>"}],
        },
    )
