"""Values of sources that a server does not take as parameters, looked for before the load.

PostgreSQL reports the types of parameters, by which it judges all values of a source at once. SQL Server converts each
value as it executes a statement: so a transaction is tried with rows of each form that its sources have.
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from operator import itemgetter
from typing import Any

from stallmark.engines.base import Session
from stallmark.errors import CallFailed, ErrorClass, StallmarkError
from stallmark.own_sql.sources import OpenedSource, Row
from stallmark.redact import HIDDEN, without_values

_CAST = "SELECT count(value::{type}) FROM json_array_elements_text($1::json) AS value"


class Misfits:
    """The search for misfits by the types that a server reports. A column is judged once for each type."""

    def __init__(self, session: Session):
        self._session = session
        self._judged: set[tuple[int, int, str]] = set()

    def refuse(
        self,
        place: str,
        types: Mapping[str, str],
        sources: Sequence[tuple[Sequence[str], OpenedSource]],
        secrets: Collection[str],
    ) -> None:
        """Raise StallmarkError for the first value of a source that is not of its parameter's type. `types` are those
        of the statement in `place`, by parameter; the message has no value of `secrets`."""
        for names, source in sources:
            for column, name in enumerate(names):
                if name in types and (key := (id(source), column, types[name])) not in self._judged:
                    self._judged.add(key)
                    self._refuse_column(place, name, types[name], source, column, is_secret=name in secrets)

    def _refuse_column(
        self, place: str, name: str, type_name: str, source: OpenedSource, column: int, *, is_secret: bool
    ) -> None:
        texts = [None if row[column] is None else str(row[column]) for row in source.rows]
        if misfit := self._find(type_name, list(dict.fromkeys(texts))):
            value, error = misfit
            row = _row_in_words(source.given, texts.index(value) + 1)
            shown = HIDDEN if is_secret else repr(value)
            reason = without_values(error.message, [value] if is_secret else ())
            raise StallmarkError(
                f"{place}: :{name} is of type {type_name}, which does not take {shown} {row}: "
                f"{reason.rstrip('.')} ({error.code})."
            )

    def _find(self, type_name: str, values: list[str | None]) -> tuple[str | None, CallFailed] | None:
        """Return the first value that a type does not take, with the server's error, or None if it takes all."""
        # Without a name, because a statement of that name may be prepared already.
        self._session.prepare("", _CAST.format(type=type_name))
        if (error := self._error(values)) is None:
            return None
        while len(values) > 1:
            half = len(values) // 2
            first_error = self._error(values[:half])
            values = values[:half] if first_error else values[half:]
        return values[0], self._error(values) or error

    def _error(self, values: Sequence[str | None]) -> CallFailed | None:
        try:
            self._session.call("", (json.dumps(values),))
        except CallFailed as error:
            # Types have codes of their own for a wrong value: a syntax error of tsquery, no such table of regclass.
            if error.kind is ErrorClass.OTHER:
                return error
            raise
        return None


def _row_in_words(source: Mapping[str, Any], number: int) -> str:
    if "file" in source:
        return f"in row {number:,} of {source['file']}"
    if "values" in source:
        return f"in place {number:,} of its values"
    return "of its query" if "query" in source else "of its source"


def rows_of_each_form(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield the rows with the longest, smallest and largest value of a column, and those in which it has a form of
    value for the first time."""
    for column in range(len(rows[0]) if rows else 0):
        yield max(rows, key=lambda row, column=column: len(str(row[column])))  # type: ignore[misc]
        if numbers := list(_numbers(rows, column)):
            yield min(numbers, key=itemgetter(0))[1]
            yield max(numbers, key=itemgetter(0))[1]
    seen: set[Any] = set()
    for row in rows:
        forms = {(column, _form(value)) for column, value in enumerate(row)}
        if not forms <= seen:
            seen |= forms
            yield row


def _numbers(rows: Sequence[Row], column: int) -> Iterator[tuple[float, Row]]:
    for row in rows:
        with suppress(TypeError, ValueError):
            yield float(row[column]), row


def _form(value: Any) -> tuple[str, str]:
    """Return the type of a value, and of a text its characters by kind: digits as 9, letters as a."""
    if not isinstance(value, str):
        return type(value).__name__, ""
    return "str", re.sub(r"[^\W\d_]+", "a", re.sub(r"\d+", "9", value))
