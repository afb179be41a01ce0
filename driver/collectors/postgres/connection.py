"""The connection through which collectors ask the server."""

from typing import Any

import psycopg
from psycopg.rows import dict_row

from stallmark.driver.collectors.base import Row
from stallmark.driver.engines.base import Engine
from stallmark.driver.engines.errors import StallmarkError


class CollectorConnection:
    """One connection for several collectors of one thread, made when it is needed and again after it broke.

    It is closed when as many `close` as `open` have been called.
    """

    def __init__(self, engine: Engine):
        self._engine = engine
        self._connection: psycopg.Connection | None = None
        self._cursor: Any = None
        self._users = 0

    def open(self) -> None:
        self._users += 1

    def close(self) -> None:
        self._users -= 1
        if self._users <= 0:
            self._drop()

    def rows(self, sql: str) -> list[Row]:
        """The rows of a query by column name; prepared, and planned once.

        Raises StallmarkError when there is no connection, or the server refuses.
        """
        try:
            if self._connection is None:
                self._connection = self._engine.connect()
                self._connection.prepare_threshold = 0
                self._cursor = self._connection.cursor(row_factory=dict_row)
            return self._cursor.execute(sql).fetchall()
        except psycopg.Error as error:
            sentence = str(error).strip().splitlines()[0]
            if self._connection is None or self._connection.closed:
                self._drop()
                raise StallmarkError(f"the connection to the server was lost ({sentence})") from error
            raise StallmarkError(f"the server refused the query ({sentence})") from error

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = self._cursor = None
