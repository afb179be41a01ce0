"""The rule by which two answers to a query are the same: TPC-H 2.1.3.5, which leaves room for how engines round."""

from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

Rows = Sequence[Sequence[Any]]

# The kind of each column of an answer: x for what must be the same (columns, counts, and sums of quantities), s for a
# sum of money, a for an average or a ratio.
COLUMNS: Mapping[int, str] = {
    1: "xxxsssaaax",
    2: "xxxxxxxx",
    3: "xsxx",
    4: "xx",
    5: "xs",
    6: "s",
    7: "xxxs",
    8: "xa",
    9: "xxs",
    10: "xxsxxxxx",
    11: "xs",
    12: "xxx",
    13: "xx",
    14: "a",
    15: "xxxxs",
    16: "xxxx",
    17: "a",
    18: "xxxxxx",
    19: "s",
    20: "xx",
    21: "xx",
    22: "xxs",
}

# The column, from 0, by which a query orders its answer first.
ORDERED_BY: Mapping[int, int] = {
    1: 0, 2: 0, 3: 1, 4: 0, 5: 1, 7: 0, 8: 0, 9: 0, 10: 2, 11: 1, 12: 0, 13: 1, 15: 0, 16: 3, 18: 4, 20: 0, 21: 1,
    22: 0,
}  # fmt: skip

VALIDATION_ROWS: Mapping[int, int] = {
    1: 4, 2: 100, 3: 10, 4: 5, 5: 5, 6: 1, 7: 4, 8: 2, 9: 175, 10: 20, 11: 1048, 12: 2, 13: 42, 14: 1, 15: 1,
    16: 18314, 17: 1, 18: 57, 19: 1, 20: 186, 21: 100, 22: 7,
}  # fmt: skip
"""The number of rows that answer each query at scale factor 1, as loaded, with the validation parameters."""

MONEY = Decimal(100)
SHOWN = 3


def differences(query: int, ours: Rows, theirs: Rows) -> list[str]:
    """Return the differences as sentences without their full stop, `ours` first; an empty list where the answers are
    the same.

    Rows are matched by the values that must be exactly equal, then compared value by value. Only the first column of
    the order counts: behind that it depends on a server's collation.
    """
    columns = COLUMNS[query]
    if wide := {len(row) for rows in (ours, theirs) for row in rows} - {len(columns)}:
        return [f"rows have {wide.pop()} columns, and not {len(columns)}"]
    mine, other = ([tuple(map(_plain, row)) for row in rows] for rows in (ours, theirs))
    found = [] if len(mine) == len(other) else [f"there are {len(mine)} rows, and not {len(other)}"]
    keys, others = Counter(_key(columns, row) for row in mine), Counter(_key(columns, row) for row in other)
    found += [f"{_shown(key)} is too much" for key in list(keys - others)[:SHOWN]]
    found += [f"{_shown(key)} is missing" for key in list(others - keys)[:SHOWN]]
    if found:
        return found
    by_key = {_key(columns, row): row for row in other}
    for row in mine:
        expected = by_key[_key(columns, row)]
        found += [
            f"column {number} of {_shown(row)} is {value}, and not {wanted}"
            for number, (kind, value, wanted) in enumerate(zip(columns, row, expected, strict=True), 1)
            if not _same(kind, value, wanted)
        ]
    if (first := ORDERED_BY.get(query)) is not None:
        pairs = zip(mine, other, strict=True)
        if any(not _same(columns[first], row[first], expected[first]) for row, expected in pairs):
            found.append(f"the rows are in another order, which is first by column {first + 1}")
    return found


def _key(columns: str, row: tuple) -> tuple:
    return tuple(value for kind, value in zip(columns, row, strict=True) if kind == "x")


def _plain(value: Any) -> Any:
    """Return a value without the blanks that fill a `char`; a binary fraction as the decimal that it is shown as."""
    if isinstance(value, str):
        return value.rstrip()
    return Decimal(repr(value)) if isinstance(value, float) else value


def _same(kind: str, value: Any, wanted: Any) -> bool:
    if kind == "x" or value is None or wanted is None:
        return value == wanted
    if kind == "s":
        return abs(value - wanted) <= MONEY
    # The rule compares two decimals; on the edge between two of them the values themselves are as near.
    return _within_a_percent(_cents(value), _cents(wanted)) or _within_a_percent(value, wanted)


def _within_a_percent(value: Decimal, wanted: Decimal) -> bool:
    return abs(value - wanted) * 100 <= abs(wanted)


def _cents(value: Any) -> Decimal:
    return Decimal(value).quantize(Decimal("0.01"), ROUND_HALF_UP)


def _shown(row: Sequence[Any]) -> str:
    return "(" + ", ".join(map(str, row)) + ")"
