"""The charts of how a load reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from stallmark import format
from stallmark.analysis.locality.summary import Locality, PoolReads, Quantity, reads_at
from stallmark.analysis.locality.traced import Traced
from stallmark.report.figures import Figure, chart, from_zero, note, rounded
from stallmark.report.locality import tables
from stallmark.report.style import COLOURS, NEUTRAL, KeyItem, plain
from stallmark.report.table import Cell, Table
from stallmark.report.text import locality as words

OURS, ESTIMATED, SQUARE_ROOT, DBT5 = COLOURS[0], COLOURS[4], COLOURS[1], COLOURS[3]
_HEIGHT = 330
_DOUBLED, _TENFOLD = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64), (0.001, 0.01, 0.1, 1.0)


def figures(found: Locality) -> Iterator[Figure]:
    """Yield a chart of everything that is known."""
    if sum(bool(pool.value) for pool in found.pools) > 1:
        yield _pools(found)
    if (traced := found.traced) and traced.pool_share is not None:
        if any(one.least is not None for one in traced.flash):
            yield _flash(found, traced)
        yield _footprint(found, traced)
        if traced.skew[0].curve:
            yield _skew(found, traced)
        if any(one.share is not None for one in traced.tables):
            yield _tables(found, traced)


def _figure(found: Locality, id: str, title: str, unit: str, made: go.Figure, table: Table, **more: Any) -> Figure:
    rows = [[str(cell) for cell in row] for row in table.rows]
    return Figure(
        id=id, title=title, unit=unit, emulated=found.experiment.emulated, chart=made, header=table.header, rows=rows,
        **more,
    )  # fmt: skip


def _pools(found: Locality) -> Figure:
    made = chart(_HEIGHT + 60)
    known = [one for one in found.pools if one.value]
    key: list[KeyItem] = []
    if band := [(one.share, one.least, one.most) for one in known if one.least and one.most]:
        key.append(KeyItem("estimated from the trace", ESTIMATED, "solid"))
        base = [(one.share, one.measured, one.measured) for one in known if one.measured][:1]
        made.add_traces(_band([*base, *band] if base and base[0][0] < band[0][0] else band, ESTIMATED, format.number))
    if measured := [one for one in known if one.measured]:
        key.append(KeyItem("measured", OURS, None, "circle"))
        made.add_trace(
            _marks([one.share for one in measured], [one.measured or 0.0 for one in measured], OURS, "circle", 9)
        )
    if slope := found.slope:
        ends = [slope.from_share, slope.to_share]
        made.add_trace(_line(ends, [slope.level * end**slope.slope for end in ends], NEUTRAL, "dash"))
        key.append(KeyItem(f"power {format.coefficient(slope.slope)}", NEUTRAL, "dash"))
    for one in found.published:
        if one.quantity is Quantity.SLOPE and (first := known[0]).value and one.low:
            ends = [first.share, max(known[-1].share, 0.32)]
            made.add_trace(
                _line(ends, [first.value * (end / first.share) ** one.low for end in ends], SQUARE_ROOT, "dot")
            )
            key.append(KeyItem(f"published: power {format.coefficient(one.low)}", SQUARE_ROOT, "dot"))
        if one.quantity is Quantity.MISSES and (scaled := _scaled(known, one.points)):
            made.add_trace(_marks([x for x, _ in scaled], [y for _, y in scaled], DBT5, "diamond", 7))
            key.append(KeyItem("published: DBT-5", DBT5, None, "diamond"))
    values = [one.value for one in known if one.value and one.value > 0.1 * (known[0].value or 0)]
    top, low = max(values), min(values)
    made.update_layout(
        xaxis=_shares("buffer pool, share of the data", min(one.share for one in known)),
        yaxis={
            "type": "log",
            "range": [np.log10(low * 0.5), np.log10(top * 1.4)],
            "tickformat": ",~g",
            "zeroline": False,
        },
    )
    note(made, "reads per transaction", yshift=6)
    return _figure(
        found, "pools", "Reads per transaction over pool sizes", "reads", made, tables.pools(found),
        summary=", ".join(f"{format.portion(round(one.share, 3))}: {format.number(one.value)}" for one in known),
        method=words.METHOD_POOLS, key=key, reading=words.POOLS, wide=True,
    )  # fmt: skip


def _scaled(known: Sequence[PoolReads], points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return published misses as reads of this load: its own at the smallest published pool, if it is known there."""
    here = reads_at(known, points[0][0])
    return [(pool, here * misses / points[0][1]) for pool, misses in points if misses > 0.01] if here else []


def _flash(found: Locality, traced: Traced) -> Figure:
    made = chart(_HEIGHT)
    band = [(one.share, one.least, one.most) for one in traced.flash if one.least is not None and one.most is not None]
    made.add_traces(_band(band, OURS, _whole, labelled=True))
    made.update_layout(xaxis=_shares("flash, share of the data", 0.0085), yaxis=_percent())
    note(made, words.ANSWERED, yshift=6)
    return _figure(
        found, "flash", "LRU flash behind the pool", "share", made, tables.flash(found),
        summary=", ".join(f"{format.portion(x)}: {words.share_band(low, high)}" for x, low, high in band),
        method=words.METHOD_FLASH, reading=words.FLASH,
    )  # fmt: skip


def _footprint(found: Locality, traced: Traced) -> Figure:
    made = chart(_HEIGHT)
    times, sizes = zip(*traced.footprint, strict=True)
    shares = [size / found.data_bytes for size in sizes]
    made.add_trace(_line(times, shares, OURS, texts=[format.share(one) for one in shares]))
    made.update_layout(
        xaxis={"title": {"text": "seconds measured"}}, yaxis={"range": from_zero(max(shares)), "tickformat": ".0%"}
    )
    note(made, words.READ_ONCE, yshift=6)
    rows: list[Sequence[str | Cell]] = [
        [format.number(at), format.size(size), format.share(part)]
        for at, size, part in list(zip(times, sizes, shares, strict=True))[::6]
    ]
    table = Table(["seconds", "read at least once", "of the data"], rows)
    return _figure(
        found, "footprint", "Footprint over time", "share", made, table,
        summary=f"{format.share(shares[-1])} of the data after {format.seconds(times[-1])}",
        method=words.METHOD_FOOTPRINT,
        reading=words.FOOTPRINT,
    )  # fmt: skip


def _skew(found: Locality, traced: Traced) -> Figure:
    made = chart(_HEIGHT)
    key = []
    for one, colour, name in zip(traced.skew, (OURS, SQUARE_ROOT), ("pages", "extents"), strict=True):
        x = [part for part, *_ in one.curve if part * one.units >= 1]
        for place, dash, when in ((1, "dash", "beforehand"), (2, "solid", "afterwards")):
            y = [row[place] for row in one.curve if row[0] * one.units >= 1]
            made.add_trace(_line(x, y, colour, dash, [f"{format.share(v)} {name}, {when}" for v in y]))
            key.append(KeyItem(f"{name}, {when}", colour, dash))
    even = np.geomspace(0.001, 1, 40).tolist()
    made.add_trace(_line(even, even, NEUTRAL, "dot"))
    key.append(KeyItem("all alike", NEUTRAL, "dot"))
    made.update_layout(xaxis=_shares("hottest part of the data", 0.001, _TENFOLD), yaxis=_percent())
    note(made, "share of the reads", yshift=6)
    return _figure(
        found, "skew", "Skew of pages and extents", "share", made, tables.skew(found),
        summary=", ".join(f"{part}: {words.share_band(*ends)}" for part, ends in traced.skew[0].hottest.items()),
        method=words.METHOD_SKEW, key=key, reading=words.SKEW,
    )  # fmt: skip


def _tables(found: Locality, traced: Traced) -> Figure:
    shown = [one for one in traced.tables if one.table and one.share is not None][:8][::-1]
    made = chart(_HEIGHT if len(shown) > 4 else 80 + 50 * len(shown))
    names = [plain(one.table, 32) for one in shown]
    for values, colour, name in (
        ([one.data_share for one in shown], NEUTRAL, "data"),
        ([one.share or 0.0 for one in shown], OURS, "reads"),
    ):
        made.add_trace(
            go.Bar(
                orientation="h", y=names, x=rounded(values), marker={"color": colour},
                text=[f"{format.share(one)} of the {name}" for one in values],
            )
        )  # fmt: skip
    made.update_layout(
        xaxis={"tickformat": ".0%", "range": from_zero(max(max(one.share or 0, one.data_share) for one in shown))},
        yaxis={"showgrid": False, "zeroline": False, "nticks": len(shown) + 1},
        barmode="group", bargap=0.3, hovermode="y unified", margin={"t": 14},
    )  # fmt: skip
    return _figure(
        found, "tables", "Reads and data by table", "share", made, tables.tables(found),
        summary=", ".join(f"{one.table}: {format.share(one.share)}" for one in reversed(shown)),
        method=words.METHOD_TABLES, reading=words.TABLES,
        key=[KeyItem("of the reads", OURS, None, "bar"), KeyItem("of the data", NEUTRAL, None, "bar")],
    )  # fmt: skip


def _band(
    rows: Sequence[tuple[float, float, float]], colour: str, write: Callable[[float], str], *, labelled: bool = False
) -> list[go.Scatter]:
    """Return the line in the middle between two ends, and the area between them if they differ."""
    x = rounded(one for one, _, _ in rows)
    texts = [write(low) if low == high else f"{write(low)}–{write(high)}" for _, low, high in rows]
    labels = {"textposition": ["top center"] * (len(rows) - 1) + ["top left"], "cliponaxis": False} if labelled else {}
    middle = go.Scatter(
        x=x, y=rounded((low + high) / 2 for _, low, high in rows), text=texts, marker={"size": 6},
        line={"color": colour, "width": 2}, mode="lines+markers+text" if labelled else "lines+markers", **labels,
    )  # fmt: skip
    if all(low == high for _, low, high in rows):
        return [middle]
    hidden: dict[str, Any] = {"mode": "lines", "line": {"width": 0}, "hoverinfo": "skip", "x": x}
    return [
        go.Scatter(y=rounded(low for _, low, _ in rows), **hidden),
        go.Scatter(y=rounded(high for _, _, high in rows), fill="tonexty", fillcolor=_pale(colour), **hidden),
        middle,
    ]


def _whole(share: float) -> str:
    return f"{share:.0%}"


def _pale(colour: str) -> str:
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.22)"


def _line(
    x: Sequence[float], y: Sequence[float], colour: str, dash: str = "solid", texts: Sequence[str] = ()
) -> go.Scatter:
    hover: dict[str, Any] = {"text": list(texts)} if texts else {"hoverinfo": "skip"}
    style = {"color": colour, "width": 1.75, "dash": dash}
    return go.Scatter(mode="lines", x=rounded(x), y=rounded(y), line=style, **hover)


def _marks(x: Sequence[float], y: Sequence[float], colour: str, symbol: str, size: int) -> go.Scatter:
    texts = [f"{format.number(value)} at {format.portion(round(share, 3))}" for share, value in zip(x, y, strict=True)]
    marker = {"size": size, "color": colour, "symbol": symbol}
    return go.Scatter(mode="markers", x=rounded(x), y=rounded(y), text=texts, marker=marker, cliponaxis=False)


def _shares(title: str, least: float, ticks: Sequence[float] = _DOUBLED) -> dict[str, Any]:
    """Return a logarithmic axis of shares of the data, from about `least` to the last of its ticks."""
    shown = [one for one in ticks if one >= least * 0.7]
    return {
        "type": "log", "range": [np.log10(min(least, shown[0]) * 0.9), np.log10(shown[-1] * 1.12)],
        "tickvals": shown, "ticktext": [format.portion(one) for one in shown], "tickangle": 0,
        "title": {"text": f"{title}, log scale"},
    }  # fmt: skip


def _percent() -> dict[str, Any]:
    return {"range": [0, 1.06], "tickformat": ".0%", "tickvals": [0, 0.2, 0.4, 0.6, 0.8, 1]}
