"""The chart of a sizing: the time of reads over the load, with the need."""

from __future__ import annotations

import plotly.graph_objects as go

from stallmark import format
from stallmark.analysis.points import group
from stallmark.analysis.sizing.candidate import CandidateAnswer
from stallmark.analysis.sizing.reach import Method, Point, Reach
from stallmark.analysis.sizing.summary import SizingSummary
from stallmark.report.figures import Figure, from_zero, note, rounded, side_by_side, values_axis
from stallmark.report.style import COLOURS, NEUTRAL, KeyItem, Look, looks
from stallmark.report.text import ceiling
from stallmark.report.text import sizing as words

_DASHES: dict[Method, str] = {"replay": "solid", "stand_in": "dot"}
_LIMIT = COLOURS[1]


def latency_figure(found: SizingSummary) -> Figure | None:
    """Return the mean time of reads at every level of every candidate; None where none is known."""
    made, _ = side_by_side([1.0], 0.0, 380, margin={"t": 28})
    shown = [*found.candidates, *([found.today] if found.today else [])]
    drawn: list[tuple[str, Method, Point]] = []
    key = []
    for one, look in zip(shown, looks([one.name for one in shown]).values(), strict=True):
        for reach in filter(None, (one.replay, one.stand_in)):
            points = sorted((point for point in reach.points if point.read_ms is not None), key=lambda p: p.level)
            if points:
                drawn += [(one.name, reach.method, point) for point in points]
                made.add_traces(_traces(one, reach, points, look, found.need.multiple))
                label = f"{one.name}, {words.METHODS[reach.method]}"
                key.append(KeyItem(label, look.colour, _DASHES[reach.method], look.symbol))
    if not drawn:
        return None
    if (today_ms := found.demand.read_ms) is not None:
        made.add_trace(_in_production(today_ms, found.need.multiple))
        key.append(KeyItem(words.IN_PRODUCTION, NEUTRAL, None, "star"))
    limit = found.service_level.read_ms
    times = [ms for ms in (found.demand.read_ms, *(point.read_ms for *_, point in drawn)) if ms is not None]
    axis, scale = values_axis(max([*times, limit or 0.0]), times)
    if limit is not None:
        made.add_shape(type="line", xref="paper", x0=0, x1=1, y0=limit, y1=limit,
                       line={"color": _LIMIT, "width": 1.25, "dash": "dash"})  # fmt: skip
        key.append(KeyItem(f"limit, {limit:g} ms", _LIMIT, "dash"))
    made.add_shape(type="line", yref="paper", y0=0, y1=1, x0=1, x1=1, line={"color": NEUTRAL, "width": 1.5})
    note(made, words.NEED_MARK, x=1, xref="x", yshift=-4, xshift=3, yanchor="top")
    furthest = max([1.0, *(point.level for *_, point in drawn)]) / found.need.multiple
    made.update_layout(
        xaxis={"range": from_zero(max(furthest, 1.0)), "title": {"text": "load, as a multiple of the need"}}, yaxis=axis
    )
    note(made, f"mean read time, ms{scale}", yshift=8)
    return Figure(
        id="latency",
        title="Read time over the load",
        unit="ms",
        emulated=found.emulated,
        summary="; ".join(f"{one.name}: {words.STANDINGS[one.standing]}" for one in found.candidates),
        method=words.CHART,
        chart=made,
        header=["candidate", "by", "× the need", "read ms", "verdict"],
        rows=[
            [name, words.METHODS[method], format.short(point.level / found.need.multiple), format.number(point.read_ms),
             ceiling.level_verdict(point.verdict)]
            for name, method, point in drawn
        ],
        key=key,
        wide=True,
    )  # fmt: skip


def _in_production(read_ms: float, need: float) -> go.Scatter:
    """Return the time of reads in the profile's busiest window, on the hardware of then."""
    return go.Scatter(
        mode="markers",
        name=words.IN_PRODUCTION,
        x=rounded([1 / need]),
        y=rounded([read_ms]),
        marker={"size": 11, "color": NEUTRAL, "symbol": "star"},
    )


def _traces(one: CandidateAnswer, reach: Reach, points: list[Point], look: Look, need: float) -> list[go.Scatter]:
    """Return the line of a candidate by one method, through the means of its levels, and a mark for each time that a
    level was tried: an empty one where it did not hold."""
    of_level = [[point.read_ms or 0.0 for point in same] for same in group(points, lambda point: point.level)]
    line = go.Scatter(
        mode="lines",
        x=rounded(level / need for level in dict.fromkeys(point.level for point in points)),
        y=rounded(sum(times) / len(times) for times in of_level),
        line={"color": look.colour, "width": 1.5, "dash": _DASHES[reach.method]},
        hoverinfo="skip",
    )
    marks = go.Scatter(
        mode="markers",
        name=f"{one.name}, {words.METHODS[reach.method]}",
        x=rounded(point.level / need for point in points),
        y=rounded(point.read_ms for point in points),
        marker={
            "size": 9,
            "color": look.colour,
            "symbol": [look.symbol if point.verdict == "held" else f"{look.symbol}-open" for point in points],
        },
        cliponaxis=False,
    )
    return [line, marks]
