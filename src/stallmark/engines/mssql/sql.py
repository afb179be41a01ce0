"""T-SQL: names and texts quoted, statements run to their end, their one row taken."""

import time
from collections.abc import Sequence, Sized
from typing import Any, TypeVar

from stallmark.engines.mssql.errors import failed
from stallmark.engines.mssql.odbc import api
from stallmark.errors import StallmarkError

_Row = TypeVar("_Row", bound=Sized)

MODEL_IN_USE = "1807"
MODEL_IS_FREE_WITHIN_S = 30


def name(text: str) -> str:
    """Return a delimited identifier."""
    return f"[{text.replace(']', ']]')}]"


def text(value: str) -> str:
    """Return a Unicode constant."""
    return "N'" + value.replace("'", "''") + "'"


def stay_open(database: str) -> str:
    """Return the statement by which a database no longer closes, and loses its pages, once no session is in it."""
    return f"ALTER DATABASE {name(database)} SET AUTO_CLOSE OFF"


def execute(connection: Any, statement: str) -> None:
    """Run a statement. Raise the driver's errors.

    CREATE DATABASE copies `model`, which another session may be in, as just after a start: then it is tried again for
    a while.
    """
    deadline = time.monotonic() + MODEL_IS_FREE_WITHIN_S
    while True:
        try:
            rows(connection.execute(statement))
            return
        except api().Error as error:
            if failed(error).code != MODEL_IN_USE or time.monotonic() > deadline:
                raise
        time.sleep(1)


def rows(cursor: Any) -> list[tuple]:
    """Return the rows of all results of what was executed, one result after the other.

    All results are read: the error of a later statement comes with its own, a backup whose messages are not read is
    broken off, and what is unread keeps the connection busy.
    """
    found: list[tuple] = []
    more = True
    while more:
        if cursor.description:
            found += map(tuple, cursor.fetchall())
        more = cursor.nextset()
    return found


def one_row(answer: Sequence[_Row], columns: int) -> _Row:
    """Return the row of a statement that must answer one. Raise StallmarkError if the server answered otherwise."""
    if len(answer) != 1 or len(answer[0]) != columns:
        raise StallmarkError("the server did not answer with the one row that was asked for")
    return answer[0]
