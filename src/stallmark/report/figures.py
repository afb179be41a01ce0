"""Figures of the report: a chart with its words and numbers, and the layout of charts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import plotly.graph_objects as go

from stallmark.report.style import KeyItem, plain
from stallmark.report.text.device import EMULATED


class Block:
    """A part of a document, which each renderer knows by its class."""


@dataclass(frozen=True)
class Figure(Block):
    """A chart with its words and numbers. No text in the chart is mark-up."""

    id: str
    title: str
    unit: str
    emulated: bool
    summary: str  # for readers who cannot see the chart
    method: str
    chart: go.Figure
    header: list[str]
    rows: list[list[str]]
    key: list[KeyItem] = field(default_factory=list)
    reading: str = ""  # a line under the title of a chart that needs no key
    wide: bool = False
    columns: list[str] = field(default_factory=list)
    """The plots of a chart over time, from the top. Its CSV holds what is drawn; others’ CSV holds the table."""

    @property
    def plotly(self) -> dict[str, Any]:
        """Return "data" and "layout" as Plotly's JSON. Where the device is emulated the chart itself says so."""
        found = self.chart.to_plotly_json()
        del found["layout"]["template"]
        notes = list(found["layout"].get("annotations", ()))
        if self.emulated and not any(EMULATED in one["text"] for one in notes):
            notes.append({"text": f"<b>{EMULATED}</b>", **STAMP, "x": 1, "y": 1, "xanchor": "right", "yshift": 2})
        found["layout"]["annotations"] = notes
        return found


def chart(height: int, **layout: Any) -> go.Figure:
    """Return an empty chart of `height` px. Its style is `style.template`, of which a page holds one for all charts."""
    return go.Figure(layout={"template": {}, "height": height, **layout})


def side_by_side(widths: Sequence[float], gap: float, height: int, **layout: Any) -> tuple[go.Figure, list[float]]:
    """Return an empty chart with plots side by side, and where each begins; `gap` is a share of the width.

    Faster than make_subplots, which takes 20 ms, and a report has dozens of charts.
    """
    unit = (1 - gap * (len(widths) - 1)) / sum(widths)
    lefts = [sum(widths[:number]) * unit + gap * number for number in range(len(widths))]
    for place, left, width in zip(places(len(widths)), lefts, widths, strict=True):
        layout[f"xaxis{place}"] = {"domain": [left, min(left + width * unit, 1)], "anchor": f"y{place}"}
        layout[f"yaxis{place}"] = {"anchor": f"x{place}"}
    return chart(height, **layout), lefts


def stacked(
    plots: Sequence[tuple[int, int]], head: int, foot: int, left: int = 56, right: int = 14, **layout: Any
) -> tuple[go.Figure, list[float]]:
    """Return an empty chart of plots below each other on one x axis, and the top of each, as a share from below.

    `plots` are the px left free above each and its own height in px; the other numbers are the chart's margins in px.
    """
    ends = list(accumulate(above + height for above, height in plots))
    inner = ends[-1]
    tops = [1 - (end - height) / inner for end, (_, height) in zip(ends, plots, strict=True)]
    layout |= {"margin": {"l": left, "r": right, "t": head, "b": foot}}
    layout["xaxis"] = {"anchor": f"y{places(len(plots))[-1]}"}
    for place, end, top in zip(places(len(plots)), ends, tops, strict=True):
        layout[f"yaxis{place}"] = {"domain": [max(1 - end / inner, 0), top], "anchor": "x"}
    return chart(head + inner + foot, **layout), tops


def places(count: int) -> list[str]:
    """Return the suffixes by which Plotly tells axes apart: the first has none."""
    return ["", *map(str, range(2, count + 1))]


STAMP = {"bordercolor": "#b0770f", "borderwidth": 1, "borderpad": 2}
"""The frame of the word EMULATED in a chart."""


def note(made: go.Figure, text: object, limit: int | None = None, *, bold: bool = False, **place: Any) -> None:
    """Write words on a chart, top left unless `place` says where else; cut to `limit` characters."""
    words = plain(text, limit)
    stamped = STAMP if words == EMULATED else {}
    made.add_annotation({"text": f"<b>{words}</b>" if bold else words, "x": 0, "y": 1} | stamped | place)


def from_zero(top: float) -> list[float]:
    """Return the range of an axis from zero to a little above `top`."""
    return [0, top * 1.08 if top > 0 else 1]


WIDE = 10
"""Ratio to the smallest value from which a linear axis would leave that next to no height."""


def rate_axis(values: Iterable[float]) -> dict[str, Any] | None:
    """Return a logarithmic axis for rates that lie WIDE apart, else None; ticks at 1, 2 and 5 of each power of ten."""
    known = [value for value in values if value > 0]
    if len(known) < 2 or max(known) < WIDE * min(known):
        return None
    low, high = math.log10(min(known) * 0.6), math.log10(max(known) * 1.3)
    powers = range(math.floor(low), math.ceil(high) + 1)
    steps = (1, 2, 5) if high - low < 2.5 else (1,)
    ticks = [step * 10.0**power for power in powers for step in steps]
    return {"type": "log", "range": [low, high], "tickvals": ticks, "tickformat": ",~g", "zeroline": False}


def values_axis(top: float, rates: Iterable[float] = ()) -> tuple[dict[str, Any], str]:
    """Return an axis from zero to `top`, or a logarithmic one if `rates` lie WIDE apart; and the words that say so."""
    wide = rate_axis(rates)
    return (wide, ", log scale") if wide else ({"range": from_zero(top)}, "")


def highest(made: go.Figure, place: str = "") -> float:
    """Return the highest value drawn in a plot; 0 where it has none."""
    drawn = (trace.y for trace in made.data if (trace.yaxis or "y") == f"y{place}")
    return max((value for values in drawn for value in values if value is not None), default=0.0)


def rounded(values: Iterable[float | None], digits: int = 4) -> list[float | None]:
    """Return values with `digits` significant digits, for JSON, which has no NaN: None where unknown."""
    return [float(f"{v:.{digits}g}") if v is not None and math.isfinite(v) else None for v in values]
