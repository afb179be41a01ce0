"""T-SQL: names and texts quoted, statements run to their end."""

import time
from typing import Any

from stallmark.engines.mssql.errors import failed
from stallmark.engines.mssql.odbc import api

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
