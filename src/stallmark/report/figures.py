"""Figures of the report: colours and marks, charts with their words and numbers, and lines over time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from stallmark import format
from stallmark.analysis.read.server_summary import WAIT_CLASSES
from stallmark.analysis.run import RunSummary
from stallmark.redact import visible
from stallmark.report.text.device import EMULATED

# The style of variants and charts: one colour, mark and dash per variant, and one template for all charts.
#
# All colours stand at least 3:1 against both the light and the dark page, so that drawn data need no theme. Text, grids
# and axes take theirs from the style sheet. Marks and dashes repeat what the colours say.

COLOURS = ("#0b6fb8", "#d2570a", "#3f8f3f", "#d94f8a", "#2f9bb3", "#7a6a5c", "#b0559b", "#7d8590")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "triangle-down", "star")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
NEUTRAL = "#7d8590"
FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Liberation Sans", Arial, sans-serif'


class WaitStyle(NamedTuple):
    """The name and the colour of a wait class."""

    name: str
    colour: str


WAITS = {
    "io": WaitStyle("I/O", "#b4452c"),
    "wal": WaitStyle("WAL", "#b0770f"),
    "replica": WaitStyle("replica", "#d3a544"),
    "lock": WaitStyle("lock", "#7a54a8"),
    "latch": WaitStyle("latch", "#a88bc9"),
    "memory": WaitStyle("memory", "#4c7a3d"),
    "parallel": WaitStyle("parallel", "#86a86f"),
    "worker": WaitStyle("worker", "#a34f78"),
    "cpu": WaitStyle("CPU", "#3a7d8c"),
    "client": WaitStyle("client", "#8b96a0"),
    "other": WaitStyle("other", "#6b6259"),
}
assert set(WAITS) == set(WAIT_CLASSES)


@dataclass(frozen=True)
class Look:
    colour: str
    symbol: str
    dash: str


@dataclass(frozen=True)
class KeyItem:
    """An entry of a chart's key."""

    text: str
    colour: str
    dash: str | None = None  # None if the chart draws no line
    symbol: str | None = None  # None if the chart draws no mark
    opacity: float = 1.0


def looks(names: Sequence[str]) -> dict[str, Look]:
    """Return a look for every name, in order; more than 48 names share some."""
    return {
        # Colours and symbols repeat together after eight names: from there on the dash distinguishes them.
        name: Look(COLOURS[i % len(COLOURS)], SYMBOLS[i % len(SYMBOLS)], DASHES[(i // len(COLOURS)) % len(DASHES)])
        for i, name in enumerate(dict.fromkeys(names))
    }


def key_of_variants(names: Sequence[str], dash: str | None = None) -> list[KeyItem]:
    """Return the key of variants by colour and mark; empty for a single variant."""
    seen = looks(names)
    return [KeyItem(name, look.colour, dash, look.symbol) for name, look in seen.items()] if len(seen) > 1 else []


def dash_of(repeat: int) -> str:
    """Return the dash of a repeat (from 1), different for each repeat of a variant."""
    return DASHES[(repeat - 1) % len(DASHES)]


def plain(text: object, limit: int | None = None) -> str:
    """Return text for inside a chart, where Plotly would read mark-up; cut to `limit` characters."""
    text = visible(str(text))
    if limit:
        text = format.shorten(text, limit)
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def chart_template() -> dict[str, Any]:
    """Return the common style of all charts: quiet x axes, y axes with a grid, notes anchored bottom left."""
    # Charts do not zoom: on a phone a drag must scroll the page.
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
    return {
        "layout": {
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
        "data": {
            "bar": [bars(hovertemplate="%{text}<extra></extra>", textposition="none")],
            "scatter": [scatter(hovertemplate="%{text}<extra></extra>")],
        },
    }


# Figures of the report: a chart with its words and numbers, and the layout of charts.


class Block:
    """A part of a document, which each renderer knows by its class."""


Trace = dict[str, Any]
"""Lines, marks or bars of one look, as Plotly's JSON."""


def scatter(**properties: Any) -> Trace:
    """Return lines or marks."""
    return {"type": "scatter", **properties}


def bars(**properties: Any) -> Trace:
    return {"type": "bar", **properties}


@dataclass
class Drawing:
    """A chart as Plotly's JSON.

    Plotly's Python objects would check each property, and take a sixth of a report's time. Only tests use them.
    """

    layout: dict[str, Any]
    traces: list[Trace] = field(default_factory=list)
    shapes: list[dict[str, Any]] = field(default_factory=list)
    notes: list[dict[str, Any]] = field(default_factory=list)

    def add(self, *traces: Trace) -> None:
        self.traces += traces

    def add_shapes(self, *shapes: dict[str, Any]) -> None:
        self.shapes += shapes

    def change(self, **parts: Any) -> None:
        """Set properties of the layout, and of its axes."""
        for name, part in parts.items():
            self.layout[name] = self.layout.get(name, {}) | part if isinstance(part, dict) else part

    def traces_on(self, place: str) -> list[Trace]:
        """Return the traces in a plot."""
        return [trace for trace in self.traces if trace.get("yaxis", "y") == f"y{place}"]


@dataclass(frozen=True)
class Figure(Block):
    """A chart with its words and numbers. No text in the chart is mark-up."""

    id: str
    title: str
    unit: str
    emulated: bool
    summary: str  # text for readers who cannot see the chart
    method: str
    chart: Drawing
    header: list[str]
    rows: list[list[str]]
    key: list[KeyItem] = field(default_factory=list)
    reading: str = ""  # a line under the title of a chart that needs no key
    wide: bool = False
    columns: list[str] = field(default_factory=list)
    """The plots of a chart over time, from the top. Its CSV holds what is drawn; others’ CSV holds the table."""

    @property
    def plotly(self) -> dict[str, Any]:
        """Return "data" and "layout" as Plotly's JSON. A chart of an emulated device carries a stamp."""
        notes = list(self.chart.notes)
        if self.emulated and not any(EMULATED in annotation["text"] for annotation in notes):
            notes.append({"text": f"<b>{EMULATED}</b>", **STAMP, "x": 1, "y": 1, "xanchor": "right", "yshift": 2})
        shapes = {"shapes": self.chart.shapes} if self.chart.shapes else {}
        return {"data": self.chart.traces, "layout": self.chart.layout | shapes | {"annotations": notes}}


def chart(height: int, **layout: Any) -> Drawing:
    """Return an empty chart of `height` px. Its style is `chart_template`, of which a page holds one for all charts."""
    return Drawing({"height": height, **layout})


def side_by_side(widths: Sequence[float], gap: float, height: int, **layout: Any) -> tuple[Drawing, list[float]]:
    """Return an empty chart with plots side by side, and where each begins; `gap` is a share of the width."""
    unit = (1 - gap * (len(widths) - 1)) / sum(widths)
    lefts = [sum(widths[:number]) * unit + gap * number for number in range(len(widths))]
    for place, left, width in zip(places(len(widths)), lefts, widths, strict=True):
        layout[f"xaxis{place}"] = {"domain": [left, min(left + width * unit, 1)], "anchor": f"y{place}"}
        layout[f"yaxis{place}"] = {"anchor": f"x{place}"}
    return chart(height, **layout), lefts


def stacked(
    plots: Sequence[tuple[int, int]], head: int, foot: int, left: int = 56, right: int = 14, **layout: Any
) -> tuple[Drawing, list[float]]:
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
    """Return the suffixes of Plotly's axes: none for the first, then 2, 3 and so on."""
    return ["", *map(str, range(2, count + 1))]


STAMP = {"bordercolor": "#b0770f", "borderwidth": 1, "borderpad": 2}
"""The frame of the word EMULATED in a chart."""


def note(made: Drawing, text: object, limit: int | None = None, *, bold: bool = False, **place: Any) -> None:
    """Write words on a chart, at the top left or at `place`; cut to `limit` characters."""
    words = plain(text, limit)
    stamped = STAMP if words == EMULATED else {}
    made.notes.append({"text": f"<b>{words}</b>" if bold else words, "x": 0, "y": 1} | stamped | place)


def from_zero(top: float) -> list[float]:
    """Return the range of an axis from zero to a little above `top`."""
    return [0, top * 1.08 if top > 0 else 1]


WIDE = 10
"""Ratio to the smallest value from which a linear axis would leave that next to no height."""


def rate_axis(values: Iterable[float]) -> dict[str, Any] | None:
    """Return a logarithmic axis for rates whose ratio reaches WIDE, else None; ticks at 1, 2 and 5 of each power of
    ten."""
    known = [value for value in values if value > 0]
    # A linear axis shows equal distances as equal; it is kept as long as all values are visible.
    if len(known) < 2 or max(known) < WIDE * min(known):
        return None
    low, high = math.log10(min(known) * 0.6), math.log10(max(known) * 1.3)
    powers = range(math.floor(low), math.ceil(high) + 1)
    steps = (1, 2, 5) if high - low < 2.5 else (1,)
    ticks = [step * 10.0**power for power in powers for step in steps]
    return {"type": "log", "range": [low, high], "tickvals": ticks, "tickformat": ",~g", "zeroline": False}


def values_axis(top: float, rates: Iterable[float]) -> tuple[dict[str, Any], str]:
    """Return an axis from zero to `top`, or a logarithmic one if the ratio of `rates` reaches WIDE; and a note on the
    scale."""
    wide = rate_axis(rates)
    return (wide, ", log scale") if wide else ({"range": from_zero(top)}, "")


def highest(made: Drawing, place: str = "") -> float:
    """Return the highest value drawn in a plot; 0 where it has none."""
    return max((value for trace in made.traces_on(place) for value in trace["y"] if value is not None), default=0.0)


def rounded(values: Iterable[float | None], digits: int = 4) -> list[float | None]:
    """Return values with `digits` significant digits, for JSON, which has no NaN: None if unknown."""
    return [float(f"{v:.{digits}g}") if v is not None and math.isfinite(v) else None for v in values]


# Lines over time: the series of a run as points of a chart, and the shading of its warm-up.

POINTS = 2000
"""Maximum number of extremes drawn of a line, and twice the maximum number of means."""
PALE = 0.4
"""The opacity of extremes behind their means."""
ROWS = 12  # rows of a run in the coarse table below a chart


def scale(runs: Sequence[RunSummary]) -> tuple[int, str]:
    """Return the length of a unit of the time axis in seconds, and the unit."""
    return format.time_unit(max(float(run.series.second[-1] - run.series.second[0]) for run in runs))


def bucket_width(samples: int, parts: int = 1) -> int:
    """Return the samples per bucket, so that `parts` segments together have at most POINTS extremes; 1 if they have no
    more samples than that."""
    # Each segment may end in a bucket that is not full, so that one more is needed for each.
    return 1 if samples <= POINTS else math.ceil(samples / max(POINTS // 2 - parts, 1))


def bucket_means(values: np.ndarray, width: int) -> np.ndarray:
    """Return means of `width` neighbours each, ignoring NaN, or NaN if a bucket holds nothing else."""
    values = np.asarray(values, dtype=float)
    if width == 1 or not len(values):
        return values
    buckets = _buckets(values, width)
    known = np.isfinite(buckets)
    counts = known.sum(axis=1)
    sums = np.where(known, buckets, 0.0).sum(axis=1)
    return np.divide(sums, counts, out=np.full(len(buckets), np.nan), where=counts > 0)


def _buckets(values: np.ndarray, width: int) -> np.ndarray:
    """Return rows of `width` neighbours, the last one filled up with NaN."""
    return np.pad(values.astype(float), (0, -len(values) % width), constant_values=np.nan).reshape(-1, width)


def extremes(x: np.ndarray, values: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the least and the greatest of `width` neighbours each, with their own x and in its order, or NaN if a
    bucket holds nothing else."""
    buckets = _buckets(values, width)
    known = np.isfinite(buckets)
    ends = [np.where(known, buckets, np.inf).argmin(axis=1), np.where(known, buckets, -np.inf).argmax(axis=1)]
    indices = (np.sort(ends, axis=0) + np.arange(len(buckets)) * width).T.ravel()
    return np.asarray(x)[indices], buckets.ravel()[indices]


def coarse(lines: Sequence[np.ndarray]) -> Iterator[tuple[float, ...]]:
    """Yield the rows of a coarse table of lines of equal length: means of at most about ROWS buckets."""
    width = math.ceil(len(lines[0]) / ROWS)
    return zip(*(bucket_means(line, width) for line in lines), strict=True)


def measuring_began(run: RunSummary) -> float:
    """Return the second at which the first measured interval began."""
    return min((step.measure_s for step in run.manifest.steps), default=0.0)


def line_with_extremes(name: str, x: np.ndarray, y: np.ndarray, width: int, **more: Any) -> Iterator[Trace]:
    """Yield a line of the means of `width` samples each, and behind it their extremes: no peak is lost in a mean."""
    if width > 1:
        pale = {"opacity": PALE * more.get("opacity", 1.0), "line": more.get("line", {}) | {"width": 1}}
        yield line(f"{name} (least and most)", *extremes(x, y, width), **more | pale)
    yield line(name, bucket_means(x, width), bucket_means(y, width), **more)


def line(name: str, x: np.ndarray, y: np.ndarray, digits: int = 6, **more: Any) -> Trace:
    """Return a line over time. `name` is plain text already; `digits` are the significant ones of x."""
    more = {"mode": "lines", "hovertemplate": "%{y:,.3~r}"} | more
    return scatter(name=name, x=rounded(x.tolist(), digits), y=rounded(y.tolist()), **more)


def level_line(height: float, **style: Any) -> dict[str, Any]:
    """Return the shape of a level line through the first plot."""
    ends = {"x0": 0, "x1": 1, "xref": "x domain", "y0": height, "y1": height, "yref": "y"}
    return {"type": "line", **ends, "line": {"color": NEUTRAL, **style}}


def limit_line(height: float, colour: str) -> dict[str, Any]:
    """Return the shape of a limit, across the whole chart."""
    style = {"color": colour, "width": 1.25, "dash": "dash"}
    return {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": height, "y1": height, "line": style}


def shade(begin: float, end: float, places: Sequence[str]) -> list[dict[str, Any]]:
    """Return shapes that shade a warm-up, on the axis of time, in the plots at `places`."""
    return [
        {
            **{"type": "rect", "yref": f"y{place} domain", "x0": begin, "x1": end, "y0": 0, "y1": 1},
            **{"line": {"width": 0}, "fillcolor": "#888", "opacity": 0.1, "layer": "below"},
        }
        for place in places
    ]
