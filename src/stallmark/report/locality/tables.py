"""The tables of how a load reads."""

from collections.abc import Sequence

from stallmark import format
from stallmark.analysis.locality.summary import Locality, Published, Quantity, reads_at
from stallmark.report.table import Cell, Rows, Table, number, word
from stallmark.report.text import locality as words
from stallmark.report.text.locality import share_band

_MOST_TABLES = 12


def pools(found: Locality) -> Table:
    """Return the sizes of the pool."""
    return Rows(found.pools).table(
        word("pool, of the data", lambda pool: format.portion(round(pool.share, 4))),
        number("size", lambda pool: pool.size_bytes, format.size, importance=2),
        number("transactions", lambda pool: pool.transactions or None, format.count, importance=1),
        number("reads per tx", lambda pool: pool.measured),
        number("estimated", lambda pool: _numbers(pool.least, pool.most)),
        number("off by", lambda pool: pool.error, format.signed),
    )


def flash(found: Locality) -> Table:
    """Return the sizes of LRU flash, of the traced step."""
    assert found.traced
    return Rows(found.traced.flash).table(
        word("flash, of the data", lambda size: format.portion(size.share)),
        number("size", lambda size: size.size_bytes, format.size),
        number("answers of the reads", lambda size: share_band(size.least, size.most)),
    )


def skew(found: Locality) -> Table:
    """Return the hottest parts of the data."""
    assert found.traced
    pages, extents = found.traced.skew
    rows: list[Sequence[str | Cell]] = [
        [f"hottest {format.portion(float(part))}", *map(format.share, (*pages.hottest[part], *extents.hottest[part]))]
        for part in pages.hottest
    ]
    groups = [("", 1), ("pages of 8 KiB", 2), ("extents of 1 MiB", 2)]
    return Table(["of the data", *("beforehand", "afterwards") * 2], rows, groups=groups)


def tables(found: Locality) -> Table:
    """Return the tables that are read most, and the others together."""
    assert found.traced
    named = [one for one in found.traced.tables if one.table]
    rows: list[Sequence[str | Cell]] = [
        [str(one.table), *map(format.share, (one.share, one.index_share, one.data_share))]
        for one in named[:_MOST_TABLES]
    ]
    known = [one.share for one in found.traced.tables if one not in named[:_MOST_TABLES]]
    if known and None not in known:
        rows.append([f"{len(known)} others", format.share(sum(filter(None, known))), format.NONE, format.NONE])
    return Table(["table", "of the reads", "of these in indexes", "of the data"], rows, importance={2: 1})


def transactions(found: Locality) -> Table:
    """Return the reads by type of transaction."""
    counted = "sampled" if any(one.sampled for one in found.by_transaction) else "ended"
    return Rows(found.by_transaction).table(
        word("transaction", lambda reads: format.spoken(reads.transaction)),
        number(counted, lambda reads: reads.counted, format.count),
        number("reads per tx", lambda reads: None if reads.too_few else reads.reads),
        number("of the reads", lambda reads: reads.share, format.share),
    )


def io(found: Locality) -> Table:
    """Return read:write, bytes per I/O, and of a trace single sizes and sequential reads."""
    traced = found.traced
    rows: list[Sequence[str | Cell]] = []
    if measured := traced or found.io:
        ratio = measured.reads / measured.writes if measured.writes else None
        rows += [
            ["reads", format.count(measured.reads)],
            ["writes", format.count(measured.writes)],
            ["reads per write", format.number(ratio)],
            ["KB per read", format.number(_each(measured.read_bytes, measured.reads))],
            ["KB per write", format.number(_each(measured.write_bytes, measured.writes))],
        ]
    if traced:
        rows += [
            [f"reads of {format.size(one.size_bytes)}", format.share(one.share)]
            for one in traced.sizes
            if one.share is not None and one.share >= 0.001
        ]
        rows.append(["sequential reads", format.share(traced.sequential_share)])
    return Table(["I/O of data files", ""], rows)


def published(found: Locality) -> Table:
    """Return published figures beside those of this load."""
    rows: list[Sequence[str | Cell]] = [[*_beside(found, one), one.of, one.source] for one in found.published]
    return Table(["figure", "here", "published", "of", "source"], rows, frozenset({0, 3, 4}), importance={3: 1, 4: 2})


def _beside(found: Locality, one: Published) -> tuple[str, str, str]:
    """Return the name of a published figure, that of this load, and its own."""
    measured = found.traced or found.io
    match one.quantity:
        case Quantity.SLOPE:
            here = format.coefficient(found.slope.slope) if found.slope else format.NONE
            return words.SLOPE, here, format.coefficient(one.low or 0.0)
        case Quantity.MISSES:
            (small, before), *_, (large, after), _ = one.points  # the largest is above all that were slowed by reads
            mine = [reads_at(found.pools, end) for end in (small, large)]
            here = format.share(mine[1] / mine[0]) if mine[0] and mine[1] else format.NONE
            return words.left_between(small, large), here, format.share(after / before)
        case Quantity.READ_WRITE:
            ratio = measured.reads / measured.writes if measured and measured.writes else None
            return words.READS_PER_WRITE, format.number(ratio), format.number(one.low)
        case Quantity.READ_BYTES:
            each = None
            if measured:
                each = _each(measured.read_bytes + measured.write_bytes, measured.reads + measured.writes)
            ends = dict.fromkeys(format.number((end or 0.0) / 1000) for end in (one.low, one.high))
            return words.KB_PER_IO, format.number(each), " to ".join(ends)


def _each(total_bytes: int, count: int) -> float | None:
    return total_bytes / count / 1000 if count else None


def _numbers(least: float | None, most: float | None) -> str:
    both = dict.fromkeys((format.number(least), format.number(most)))
    return " to ".join(both)
