"""The connection through which collectors ask the server."""

from typing import Any

import psycopg
from psycopg.rows import dict_row

from stallmark.collectors.base import Row
from stallmark.collectors.shared import SharedConnection
from stallmark.errors import StallmarkError


class CollectorConnection(SharedConnection):
    """Prepares every query, so that it is planned once."""

    _cursor: Any = None

    def rows(self, sql: str) -> list[Row]:
        try:
            if self._connection is None:
                self._connection = self._engine.connect()
                self._connection.prepare_threshold = 0
                self._cursor = self._connection.cursor(row_factory=dict_row)
            rows: list[Row] = self._cursor.execute(sql).fetchall()
            return rows
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
