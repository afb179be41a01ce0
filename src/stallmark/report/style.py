"""How variants and charts look: one colour, mark and dash per variant, and the common layout of figures.

All colours stand at least 3:1 against both the light and the dark page, so that drawn data need no theme; text,
grids and axes take theirs from the style sheet. Marks and dashes repeat what the colours say.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

COLOURS = ("#0b6fb8", "#d2570a", "#3f8f3f", "#d94f8a", "#2f9bb3", "#7a6a5c", "#b0559b", "#7d8590")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "triangle-down", "star")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
NEUTRAL = "#7d8590"
WAIT_COLOURS = {
    "io": "#b4452c",
    "wal": "#b0770f",
    "lock": "#7a54a8",
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
    emulated: bool = False
    opacity: float = 1.0


def looks(names: Sequence[str]) -> dict[str, Look]:
    """A look for every name, in order; more than 48 names share some."""
    return {
        name: Look(COLOURS[i % len(COLOURS)], SYMBOLS[i % len(SYMBOLS)], DASHES[(i // len(COLOURS)) % len(DASHES)])
        for i, name in enumerate(dict.fromkeys(names))
    }


def plain(text: object, limit: int | None = None) -> str:
    """Text for inside a figure, where Plotly would read mark-up; cut to `limit` characters."""
    text = str(text)
    if limit and len(text) > limit:
        text = text[: limit - 1].rstrip() + "…"
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def layout(height: int, **more: Any) -> dict[str, Any]:
    return {
        "height": height,
        "autosize": True,
        "margin": {"l": 52, "r": 14, "t": 40, "b": 52},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": FONT, "size": 12},
        "hovermode": "x unified",
        "hoverlabel": {"font": {"family": FONT, "size": 12}},
        "showlegend": False,
        "dragmode": False,
        "annotations": [],
        "shapes": [],
    } | more


def axis(**more: Any) -> dict[str, Any]:
    """A quiet axis; colours come from the style sheet."""
    return {
        "showgrid": False,
        "zeroline": False,
        "showline": True,
        "linewidth": 1,
        "ticks": "outside",
        "ticklen": 4,
        "fixedrange": True,
        "automargin": True,
        "separatethousands": True,
    } | more


def value_axis(top: float, **more: Any) -> dict[str, Any]:
    """An axis of values: from zero, with a grid, at most a handful of ticks."""
    return (
        axis(
            range=[0, top * 1.08 if top > 0 else 1],
            showgrid=True,
            showline=False,
            ticks="",
            nticks=6,
            exponentformat="none",
            zeroline=True,
        )
        | more
    )


WIDE = 10
"""Times the smallest value from which on a linear axis would leave it next to nothing of the height."""


def rate_axis(values: Sequence[float], **more: Any) -> dict[str, Any] | None:
    """A logarithmic axis for rates that lie WIDE apart, else None; ticks at 1, 2 and 5 of each power of ten."""
    known = [value for value in values if value > 0]
    if len(known) < 2 or max(known) < WIDE * min(known):
        return None
    low, high = math.log10(min(known) * 0.6), math.log10(max(known) * 1.3)
    powers = range(math.floor(low), math.ceil(high) + 1)
    steps = (1, 2, 5) if high - low < 2.5 else (1,)
    ticks = [step * 10.0**power for power in powers for step in steps]
    return (
        value_axis(0)
        | {"type": "log", "range": [low, high], "tickvals": ticks, "tickformat": ",~g", "zeroline": False}
        | more
    )


def note(text: str, *, x: float, y: float, **more: Any) -> dict[str, Any]:
    """Words on the figure's paper, anchored bottom left. `text` must be plain already."""
    return {
        "text": text,
        "x": x,
        "y": y,
        "xref": "paper",
        "yref": "paper",
        "xanchor": "left",
        "yanchor": "bottom",
        "showarrow": False,
        "align": "left",
        "font": {"size": 11},
    } | more
