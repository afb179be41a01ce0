"""The report on the reads of a load: its sections, tables and charts, the parts that a terminal shows, and its JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from stallmark import format
from stallmark.analysis.locality import Locality, PoolReads, Published, Quantity, reads_at
from stallmark.analysis.locality_trace import Traced
from stallmark.report import sections
from stallmark.report.document import (
    Block,
    Codes,
    Document,
    Facts,
    Grid,
    Section,
    Shown,
    Title,
    Words,
    bullets,
    table_blocks,
)
from stallmark.report.figures import (
    COLOURS,
    NEUTRAL,
    Drawing,
    Figure,
    KeyItem,
    Trace,
    bars,
    chart,
    from_zero,
    note,
    plain,
    rounded,
    scatter,
)
from stallmark.report.renderers import in_json
from stallmark.report.sections import banner, environment
from stallmark.report.table import Cell, Rows, Table, number, word
from stallmark.report.text import locality as words
from stallmark.report.text import sentence
from stallmark.report.text.device import EMULATED


def locality_document(locality: Locality) -> Document:
    manifest, step = locality.manifest, locality.experiment.steps[0]
    title = f"How {locality.workload} reads"
    headline = [
        f"{manifest.server.product} {manifest.server.version}".strip(),
        ", ".join(f"{name} {format.exact(value)}" for name, value in manifest.workload.scale.items()),
        format.users(step.users),
        f"{format.size(locality.data_bytes)} of data",
        format.moment(manifest.started),
    ]
    charts = {chart.id: chart for chart in figures(locality)}
    # The main chart leads the page, the others are evidence.
    pools = charts.pop("pools", None)
    emulated = [Words(EMULATED, "emulated")] if locality.experiment.emulated else []
    return Document(
        title=title,
        kind="characterise",
        question=words.QUESTION,
        headline=headline,
        banner=banner(locality.experiment),
        answer=sentence(locality.findings[0]) if locality.findings else words.NO_FINDING,
        lead=[pools] if pools else [],
        cautions=locality.cautions,
        sections=[
            sections.findings_section(locality.findings[1:]),
            *_sections(locality, list(charts.values())),
            _environment(locality),
        ],
        brief=[
            [Words(title, "main"), Words(", ".join(headline), "quiet"), *emulated],
            bullets(locality.findings),
            *_brief_tables(locality),
            [Shown(published_table(locality))] if locality.published else [],
            bullets(locality.cautions, "apart"),
        ],
    )


def _sections(locality: Locality, charts: list[Figure]) -> Iterator[Section]:
    if locality.pools:
        yield Section("pool", "Over the size of the pool", [Shown(pools_table(locality), "Sizes of the pool")])
    if locality.published:
        published = Shown(published_table(locality), "Published figures")
        yield Section("published", "Compared with published figures", [Words(words.PUBLISHED, "lead"), published])
    if locality.traced:
        yield Section("traced", "Behind the traced pool", [Words(words.traced(locality.traced), "lead"), Grid(charts)])
    if locality.by_transaction:
        transactions = table_blocks(transactions_table(locality), "Transactions")
        yield Section("transactions", "By transaction", [Words(words.TRANSACTIONS, "lead"), *transactions])
    if locality.traced or locality.io:
        yield Section("io", "I/Os", [Words(words.SIZES, "lead"), *table_blocks(io_table(locality), "I/O")])


def _environment(locality: Locality) -> Section:
    runs = locality.experiment.runs
    blocks: list[Block] = [
        Facts([*environment.facts(locality.experiment), *environment.devices(locality.experiment)]),
        Codes("Records", [run.folder for run in runs]),
    ]
    return Section("environment", "Environment", [*blocks, *environment.ends(locality.experiment)], "server and runs")


def _brief_tables(locality: Locality) -> Iterator[list[Block]]:
    if locality.pools:
        yield [Title("Reads per transaction"), Shown(pools_table(locality))]
    if locality.traced:
        yield [Title("LRU flash behind the pool"), Shown(flash_table(locality))]
        yield [Title("Skew"), Shown(skew_table(locality))]
        yield [Title("Tables"), Shown(reads_by_table(locality))]
    if locality.by_transaction:
        yield [Title("Transactions"), Shown(transactions_table(locality))]
    if locality.traced or locality.io:
        yield [Title("I/O"), Shown(io_table(locality))]


def locality_in_json(locality: Locality) -> dict[str, Any]:
    """Return all values of the page."""
    return {
        "kind": "locality",
        "workload": locality.workload,
        "scale": in_json(locality.manifest.workload.scale),
        "runs": [run.folder for run in locality.experiment.runs],
        "emulated": locality.experiment.emulated,
        "data_bytes": locality.data_bytes,
        "pools": [in_json(pool) | {"estimated": pool.estimated, "error": pool.error} for pool in locality.pools],
        "slope": in_json(locality.slope),
        "trace": in_json(locality.traced),
        "server_io": in_json(locality.io),
        "transactions": in_json(locality.by_transaction),
        "published": [asdict(published) for published in locality.published],
        "findings": in_json(locality.findings),
        "cautions": in_json(locality.cautions),
    }


# The tables of how a load reads.

_MOST_TABLES = 12


def pools_table(locality: Locality) -> Table:
    """Return the buffer-pool sizes, with their reads."""
    return Rows(locality.pools).table(
        word("pool, of the data", lambda pool: format.portion(round(pool.share, 4))),
        number("size", lambda pool: pool.size_bytes, format.size, importance=2),
        number("transactions", lambda pool: pool.transactions or None, format.count, importance=1),
        number("reads per tx", lambda pool: pool.measured),
        number("estimated", lambda pool: _numbers(pool.least, pool.most)),
        number("off by", lambda pool: pool.error, format.signed),
    )


def flash_table(locality: Locality) -> Table:
    """Return the sizes of LRU flash, of the traced step."""
    assert locality.traced
    return Rows(locality.traced.flash).table(
        word("flash, of the data", lambda size: format.portion(size.share)),
        number("size", lambda size: size.size_bytes, format.size),
        number("reads answered", lambda size: words.share_band(size.least, size.most)),
    )


def skew_table(locality: Locality) -> Table:
    """Return the hottest parts of the data."""
    assert locality.traced
    pages, extents = locality.traced.skew
    rows: list[Sequence[str | Cell]] = [
        [f"hottest {format.portion(float(part))}", *map(format.share, (*pages.hottest[part], *extents.hottest[part]))]
        for part in pages.hottest
    ]
    groups = [("", 1), ("pages of 8 KiB", 2), ("extents of 1 MiB", 2)]
    return Table(["of the data", *("beforehand", "afterwards") * 2], rows, groups=groups)


def reads_by_table(locality: Locality) -> Table:
    """Return the most read tables, and the others together."""
    assert locality.traced
    named = [table for table in locality.traced.tables if table.table]
    rows: list[Sequence[str | Cell]] = [
        [str(table.table), *map(format.share, (table.share, table.index_share, table.data_share))]
        for table in named[:_MOST_TABLES]
    ]
    known = [table.share for table in locality.traced.tables if table not in named[:_MOST_TABLES]]
    # A sum over unknown shares would be too small.
    if known and None not in known:
        rows.append([f"{len(known)} others", format.share(sum(filter(None, known))), format.NONE, format.NONE])
    return Table(["table", "of the reads", "of these in indexes", "of the data"], rows, importance={2: 1})


def transactions_table(locality: Locality) -> Table:
    """Return the reads by type of transaction."""
    counted = "sampled" if any(reads.sampled for reads in locality.by_transaction) else "ended"
    return Rows(locality.by_transaction).table(
        word("transaction", lambda reads: format.display_name(reads.transaction)),
        number(counted, lambda reads: reads.counted, format.count),
        number("reads per tx", lambda reads: None if reads.too_few else reads.reads),
        number("of the reads", lambda reads: reads.share, format.share),
    )


def io_table(locality: Locality) -> Table:
    """Return the read:write ratio and bytes per I/O and, from a trace, I/O sizes and sequential reads."""
    traced = locality.traced
    rows: list[Sequence[str | Cell]] = []
    if measured := traced or locality.io:
        ratio = measured.reads / measured.writes if measured.writes else None
        rows += [
            ["reads", format.count(measured.reads)],
            ["writes", format.count(measured.writes)],
            ["reads per write", format.number(ratio)],
            ["KB per read", format.number(_kb_per_io(measured.read_bytes, measured.reads))],
            ["KB per write", format.number(_kb_per_io(measured.write_bytes, measured.writes))],
        ]
    if traced:
        rows += [
            [f"reads of {format.size(size.size_bytes)}", format.share(size.share)]
            for size in traced.sizes
            if size.share is not None and size.share >= 0.001
        ]
        rows.append(["sequential reads", format.share(traced.sequential_share)])
    return Table(["I/O of data files", ""], rows)


def published_table(locality: Locality) -> Table:
    """Return published values next to those of this load."""
    rows: list[Sequence[str | Cell]] = [
        [*_comparison_cells(locality, figure), figure.of, figure.source] for figure in locality.published
    ]
    return Table(
        ["figure", "here", "published", "measured on", "source"], rows, frozenset({0, 3, 4}), importance={3: 1, 4: 2}
    )


def _comparison_cells(locality: Locality, published: Published) -> tuple[str, str, str]:
    """Return the name of a published value, the value of this load, and the published one."""
    measured = locality.traced or locality.io
    match published.quantity:
        case Quantity.SLOPE:
            here = format.coefficient(locality.slope.slope) if locality.slope else format.NONE
            return words.SLOPE, here, format.coefficient(published.low or 0.0)
        case Quantity.MISSES:
            # The largest is above all that were slowed by reads.
            (small, before), *_, (large, after), _ = published.points
            mine = [reads_at(locality.pools, end) for end in (small, large)]
            here = format.share(mine[1] / mine[0]) if mine[0] and mine[1] else format.NONE
            return words.left_between(small=small, large=large), here, format.share(after / before)
        case Quantity.READ_WRITE:
            ratio = measured.reads / measured.writes if measured and measured.writes else None
            return words.READS_PER_WRITE, format.number(ratio), format.number(published.low)
        case Quantity.READ_BYTES:
            kb_per_io = None
            if measured:
                kb_per_io = _kb_per_io(measured.read_bytes + measured.write_bytes, measured.reads + measured.writes)
            low, high = (published.low or 0.0) / 1000, (published.high or 0.0) / 1000
            return words.KB_PER_IO, format.number(kb_per_io), _numbers(low, high)


def _kb_per_io(total_bytes: int, count: int) -> float | None:
    return total_bytes / count / 1000 if count else None


def _numbers(least: float | None, most: float | None) -> str:
    return " to ".join(dict.fromkeys((format.number(least), format.number(most))))


# The charts of how a load reads.

OURS, ESTIMATED, SQUARE_ROOT, DBT5 = COLOURS[0], COLOURS[4], COLOURS[1], COLOURS[3]
_HEIGHT = 330
_DOUBLED, _TENFOLD = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64), (0.001, 0.01, 0.1, 1.0)


def figures(locality: Locality) -> Iterator[Figure]:
    """Yield a chart of each known property."""
    if sum(bool(pool.value) for pool in locality.pools) > 1:
        yield _pools(locality)
    if (traced := locality.traced) and traced.pool_share is not None:
        if any(size.least is not None for size in traced.flash):
            yield _flash(locality, traced)
        yield _footprint(locality, traced)
        if traced.skew[0].curve:
            yield _skew(locality, traced)
        if any(table.share is not None for table in traced.tables):
            yield _tables(locality, traced)


def _figure(locality: Locality, id: str, title: str, unit: str, made: Drawing, table: Table, **more: Any) -> Figure:
    rows = [[str(cell) for cell in row] for row in table.rows]
    return Figure(
        id=id, title=title, unit=unit, emulated=locality.experiment.emulated, chart=made, rows=rows,
        header=table.header_below(", "),
        **more,
    )  # fmt: skip


def _pools(locality: Locality) -> Figure:
    made = chart(_HEIGHT + 60)
    known = [pool for pool in locality.pools if pool.value]
    key: list[KeyItem] = []
    if band := [(pool.share, pool.least, pool.most) for pool in known if pool.least and pool.most]:
        key.append(KeyItem("estimated from the trace", ESTIMATED, "solid"))
        base = [(pool.share, pool.measured, pool.measured) for pool in known if pool.measured][:1]
        made.add(*_band([*base, *band] if base and base[0][0] < band[0][0] else band, ESTIMATED, format.number))
    if measured := [pool for pool in known if pool.measured]:
        key.append(KeyItem("measured", OURS, None, "circle"))
        made.add(
            _marks([pool.share for pool in measured], [pool.measured or 0.0 for pool in measured], OURS, "circle", 9)
        )
    if slope := locality.slope:
        ends = [slope.from_share, slope.to_share]
        made.add(_line(ends, [slope.level * end**slope.slope for end in ends], NEUTRAL, "dash"))
        key.append(KeyItem(f"power {format.coefficient(slope.slope)}", NEUTRAL, "dash"))
    for figure in locality.published:
        if figure.quantity is Quantity.SLOPE and (first := known[0]).value and figure.low:
            ends = [first.share, max(known[-1].share, 0.32)]
            made.add(_line(ends, [first.value * (end / first.share) ** figure.low for end in ends], SQUARE_ROOT, "dot"))
            key.append(KeyItem(f"published: power {format.coefficient(figure.low)}", SQUARE_ROOT, "dot"))
        if figure.quantity is Quantity.MISSES and (scaled := _scaled(known, figure.points)):
            made.add(_marks([x for x, _ in scaled], [y for _, y in scaled], DBT5, "diamond", 7))
            key.append(KeyItem("published: DBT-5", DBT5, None, "diamond"))
    values = [pool.value for pool in known if pool.value and pool.value > 0.1 * (known[0].value or 0)]
    ends = [np.log10(min(values) * 0.5), np.log10(max(values) * 1.4)]
    made.change(
        xaxis=_share_axis("buffer pool, share of the data", min(pool.share for pool in known)),
        yaxis={"type": "log", "range": ends, "tickformat": ",~g", "zeroline": False},
    )
    note(made, "reads per transaction", yshift=6)
    return _figure(
        locality, "pools", "Reads per transaction over pool sizes", "reads", made, pools_table(locality),
        summary=", ".join(f"{format.portion(round(pool.share, 3))}: {format.number(pool.value)}" for pool in known),
        method=words.METHOD_POOLS, key=key, reading=words.POOLS, wide=True,
    )  # fmt: skip


def _scaled(known: Sequence[PoolReads], points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return published misses as reads of this load, scaled at the smallest published pool; empty if unknown there."""
    here = reads_at(known, points[0][0])
    return [(pool, here * misses / points[0][1]) for pool, misses in points if misses > 0.01] if here else []


def _flash(locality: Locality, traced: Traced) -> Figure:
    made = chart(_HEIGHT)
    band = [
        (size.share, size.least, size.most) for size in traced.flash if size.least is not None and size.most is not None
    ]
    made.add(*_band(band, OURS, "{:.0%}".format, labelled=True))
    made.change(xaxis=_share_axis("flash, share of the data", 0.0085), yaxis=_percent_axis())
    note(made, words.ANSWERED, yshift=6)
    return _figure(
        locality, "flash", "LRU flash behind the pool", "share", made, flash_table(locality),
        summary=", ".join(f"{format.portion(x)}: {words.share_band(low, high)}" for x, low, high in band),
        method=words.METHOD_FLASH, reading=words.FLASH,
    )  # fmt: skip


def _footprint(locality: Locality, traced: Traced) -> Figure:
    made = chart(_HEIGHT)
    times, sizes = zip(*traced.footprint, strict=True)
    shares = [size / locality.data_bytes for size in sizes]
    made.add(_line(times, shares, OURS, texts=[format.share(share) for share in shares]))
    made.change(
        xaxis={"title": {"text": "seconds measured"}}, yaxis={"range": from_zero(max(shares)), "tickformat": ".0%"}
    )
    note(made, words.READ_ONCE, yshift=6)
    rows: list[Sequence[str | Cell]] = [
        [format.number(second), format.size(size), format.share(part)]
        for second, size, part in list(zip(times, sizes, shares, strict=True))[::6]
    ]
    table = Table(["seconds", "read at least once", "of the data"], rows)
    return _figure(
        locality, "footprint", "Footprint over time", "share", made, table,
        summary=f"{format.share(shares[-1])} of the data after {format.seconds(times[-1])}",
        method=words.METHOD_FOOTPRINT,
        reading=words.FOOTPRINT,
    )  # fmt: skip


def _skew(locality: Locality, traced: Traced) -> Figure:
    made = chart(_HEIGHT)
    key = []
    for parts, colour, name in zip(traced.skew, (OURS, SQUARE_ROOT), ("pages", "extents"), strict=True):
        x = [part for part, *_ in parts.curve if part * parts.units >= 1]
        for place, dash, when in ((1, "dash", "beforehand"), (2, "solid", "afterwards")):
            y = [row[place] for row in parts.curve if row[0] * parts.units >= 1]
            made.add(_line(x, y, colour, dash, [f"{format.share(v)} {name}, {when}" for v in y]))
            key.append(KeyItem(f"{name}, {when}", colour, dash))
    even = np.geomspace(0.001, 1, 40).tolist()
    made.add(_line(even, even, NEUTRAL, "dot"))
    key.append(KeyItem("all equally hot", NEUTRAL, "dot"))
    made.change(xaxis=_share_axis("hottest part of the data", 0.001, _TENFOLD), yaxis=_percent_axis())
    note(made, "share of the reads", yshift=6)
    return _figure(
        locality, "skew", "Skew of pages and extents", "share", made, skew_table(locality),
        summary=", ".join(f"{part}: {words.share_band(*ends)}" for part, ends in traced.skew[0].hottest.items()),
        method=words.METHOD_SKEW, key=key, reading=words.SKEW,
    )  # fmt: skip


def _tables(locality: Locality, traced: Traced) -> Figure:
    shown = [table for table in traced.tables if table.table and table.share is not None][:8][::-1]
    made = chart(_HEIGHT if len(shown) > 4 else 80 + 50 * len(shown))
    names = [plain(table.table, 32) for table in shown]
    for values, colour, name in (
        ([table.data_share for table in shown], NEUTRAL, "data"),
        ([table.share or 0.0 for table in shown], OURS, "reads"),
    ):
        made.add(
            bars(
                orientation="h", y=names, x=rounded(values), marker={"color": colour},
                text=[f"{format.share(value)} of the {name}" for value in values],
            )
        )  # fmt: skip
    largest = max(max(table.share or 0, table.data_share) for table in shown)
    made.change(
        xaxis={"tickformat": ".0%", "range": from_zero(largest)},
        yaxis={"showgrid": False, "zeroline": False, "nticks": len(shown) + 1},
        barmode="group", bargap=0.3, hovermode="y unified", margin={"t": 14},
    )  # fmt: skip
    return _figure(
        locality, "tables", "Reads and data by table", "share", made, reads_by_table(locality),
        summary=", ".join(f"{table.table}: {format.share(table.share)}" for table in reversed(shown)),
        method=words.METHOD_TABLES, reading=words.TABLES,
        key=[KeyItem("of the reads", OURS, None, "bar"), KeyItem("of the data", NEUTRAL, None, "bar")],
    )  # fmt: skip


def _band(
    rows: Sequence[tuple[float, float, float]], colour: str, write: Callable[[float], str], *, labelled: bool = False
) -> list[Trace]:
    """Return the middle line between two bounds, and the area between them if they differ."""
    x = rounded(position for position, _, _ in rows)
    bounds = [(write(low), write(high)) for _, low, high in rows]
    texts = [low if low == high else f"{low}–{high}" for low, high in bounds]
    # On a phone two bounds have no room between points: the area shows them.
    labels = {
        "text": [low if low == high else "" for low, high in bounds],
        "textposition": ["top center"] * (len(rows) - 1) + ["top left"],
        "cliponaxis": False,
    }
    middle = scatter(
        x=x, y=rounded((low + high) / 2 for _, low, high in rows), hovertext=texts, marker={"size": 6},
        hovertemplate="%{hovertext}<extra></extra>", line={"color": colour, "width": 2},
        mode="lines+markers+text" if labelled else "lines+markers", **(labels if labelled else {}),
    )  # fmt: skip
    if all(low == high for _, low, high in rows):
        return [middle]
    hidden: dict[str, Any] = {"mode": "lines", "line": {"width": 0}, "hoverinfo": "skip", "x": x}
    return [
        scatter(y=rounded(low for _, low, _ in rows), **hidden),
        scatter(y=rounded(high for _, _, high in rows), fill="tonexty", fillcolor=_light(colour), **hidden),
        middle,
    ]


def _light(colour: str) -> str:
    red, green, blue = (int(colour[start : start + 2], 16) for start in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.22)"


def _line(x: Sequence[float], y: Sequence[float], colour: str, dash: str = "solid", texts: Sequence[str] = ()) -> Trace:
    hover: dict[str, Any] = {"text": list(texts)} if texts else {"hoverinfo": "skip"}
    style = {"color": colour, "width": 1.75, "dash": dash}
    return scatter(mode="lines", x=rounded(x), y=rounded(y), line=style, **hover)


def _marks(x: Sequence[float], y: Sequence[float], colour: str, symbol: str, size: int) -> Trace:
    texts = [f"{format.number(value)} at {format.portion(round(share, 3))}" for share, value in zip(x, y, strict=True)]
    marker = {"size": size, "color": colour, "symbol": symbol}
    return scatter(mode="markers", x=rounded(x), y=rounded(y), text=texts, marker=marker, cliponaxis=False)


def _share_axis(title: str, least: float, ticks: Sequence[float] = _DOUBLED) -> dict[str, Any]:
    """Return a logarithmic axis of shares of the data, from about `least` to the last of its ticks."""
    shown = [tick for tick in ticks if tick >= least * 0.7]
    return {
        "type": "log", "range": [np.log10(min(least, shown[0]) * 0.9), np.log10(shown[-1] * 1.12)],
        "tickvals": shown, "ticktext": [format.portion(tick) for tick in shown], "tickangle": 0,
        "title": {"text": f"{title}, log scale"},
    }  # fmt: skip


def _percent_axis() -> dict[str, Any]:
    return {"range": [0, 1.06], "tickformat": ".0%", "tickvals": [0, 0.2, 0.4, 0.6, 0.8, 1]}
