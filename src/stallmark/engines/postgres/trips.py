"""Several statements in one round trip.

Each time that libpq is called without the interpreter's lock, or a trip is made, another user's thread may come between
and wait for the lock in turn. So there is one text of all statements, where no answer but the last is needed and libpq
itself can wait for it; the driver's pipeline mode gives up the lock for every statement.
"""

import select
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import psycopg
from psycopg import pq

Statement = tuple[bytes, Sequence[bytes | None]]
"""The name of a prepared statement, and its parameters."""

SYNC = int(pq.ExecStatus.PIPELINE_SYNC)  # the enumeration compares slowly
_ALIVE = pq.ConnStatus.OK


def as_execute(name: str, parameters: Sequence[Any]) -> str:
    """Return the execution of a prepared statement as SQL."""
    if not parameters:
        return f'EXECUTE "{name}"'
    return f'EXECUTE "{name}"({", ".join([_literal(value) for value in parameters])})'


def _literal(value: Any) -> str:
    """Return a parameter as SQL, whatever standard_conforming_strings is."""
    if value is None:
        return "NULL"
    text = str(value).replace("'", "''")
    if "\\" in text:
        text = text.replace("\\", "\\\\")
        return f"E'{text}'"
    return f"'{text}'"


class Trips:
    """The round trips of a connection. The interpreter's lock is released while an answer is waited for."""

    def __init__(self, connection: pq.abc.PGconn):
        self._connection = connection
        self._wait = _waiting_for(connection.socket)

    def query(self, text: bytes) -> list[pq.abc.PGresult]:
        """Send the statements of a text; return their results, up to one that failed.

        Where the connection is lost some are missing. Raise psycopg.OperationalError where nothing was sent.
        """
        self._connection.send_query(text)
        return self._results(None)

    def each(self, statements: Sequence[Statement]) -> list[list[pq.abc.PGresult]]:
        """Send statements, each a transaction by itself. Return the results of each: its own, and SYNC, with which it
        has been committed unless it failed.

        Where the connection is lost some are missing. Raise psycopg.OperationalError where nothing was sent.
        """
        connection = self._connection
        connection.enter_pipeline_mode()
        for name, parameters in statements:
            connection.send_query_prepared(name, parameters)  # type: ignore[arg-type]
            connection.pipeline_sync()
        found = [self._results(SYNC) for _ in statements]
        if connection.status == _ALIVE:
            connection.exit_pipeline_mode()
        return found

    def _results(self, end: int | None) -> list[pq.abc.PGresult]:
        """Return the results up to one of status `end`; None: all of them."""
        connection, wait = self._connection, self._wait
        found: list[pq.abc.PGresult] = []
        try:
            while True:
                while connection.is_busy():
                    wait()
                    connection.consume_input()
                if result := connection.get_result():
                    found.append(result)
                    if result.status == end:
                        return found
                elif end is None or connection.status != _ALIVE:  # in a pipeline there is none after each statement
                    return found
        except psycopg.OperationalError:
            while result := connection.get_result():
                found.append(result)
            return found


def _waiting_for(socket: int) -> Callable[[], object]:
    """Return a function that waits until the socket has something to read."""
    if not hasattr(select, "poll"):  # Windows
        return partial(select.select, [socket], [], [])
    poll = select.poll()
    poll.register(socket, select.POLLIN)
    return poll.poll
