"""Answers of a session, as texts that are the same on every engine.

PostgreSQL says numbers with decimals and times as text, and rows of its own in arrays; ODBC has Python's types for the
former and results of their own for the latter. Here all values come one after the other, as PostgreSQL writes them.
"""

import csv
import re
from collections.abc import Iterable, Iterator
from datetime import date, datetime
from decimal import Decimal
from typing import Any


def values(rows: Iterable[Iterable[Any]]) -> list[str | None]:
    return [text for row in rows for value in row for text in _texts(value)]


def _texts(value: Any) -> Iterator[str | None]:
    match value:
        case None:
            yield None
        case bool():
            yield "t" if value else "f"
        case datetime():
            yield re.sub(r"\.?0*$", "", value.isoformat(" ", "microseconds"))
        case date():
            yield value.isoformat()
        case Decimal():
            yield f"{value:f}"  # a small zero of ODBC's would be 0E-8
        case str() if value.startswith("{"):
            yield from _of_array(value)
        case _:
            yield str(value)


_ELEMENT = re.compile(r'[{},]*(?:"((?:[^"\\]|\\.)*)"|([^{},"]+))')


def _of_array(text: str) -> Iterator[str | None]:
    """Of an array literal: its elements, of however many dimensions, and the columns of those that are rows."""
    for quoted, bare in _ELEMENT.findall(text):
        element = re.sub(r"\\(.)", r"\1", quoted) if not bare else None if bare == "NULL" else bare
        if element and element.startswith("("):
            [columns] = csv.reader([element[1:-1]])
            yield from (column or None for column in columns)
        else:
            yield element
