"""Columns of tables, declared with the fields of their rows, as units are with the columns of a record."""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple, get_type_hints

from stallmark import format


class Shown(NamedTuple):
    """The column of a field: its title, how a value is written, and the title above it and its neighbours. Columns of
    high `importance` leave a narrow terminal first; 0 never leaves."""

    title: str
    write: Callable[[Any], str] = format.number
    group: str = ""
    is_word: bool = False
    importance: int = 0


def words(title: str, write: Callable[[Any], str] = str) -> Shown:
    return Shown(title, write, is_word=True)


def in_lower_case(name: str | None) -> str:
    """Write a name as the server has it, in capitals and underscores, as words."""
    return (name or format.NONE).replace("_", " ").lower()


@cache
def shown_fields(row: type) -> list[tuple[str, Shown]]:
    """Return the fields that are columns, in the order of the class."""
    hints = get_type_hints(row, include_extras=True)
    marks = ((name, mark) for name, hint in hints.items() for mark in getattr(hint, "__metadata__", ()))
    return [(name, mark) for name, mark in marks if isinstance(mark, Shown)]
