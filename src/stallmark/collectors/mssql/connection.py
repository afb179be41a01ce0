"""The connection through which collectors ask SQL Server."""

from typing import Any

from stallmark.collectors.base import Row
from stallmark.collectors.shared import SharedConnection
from stallmark.engines.mssql.errors import failed
from stallmark.engines.mssql.odbc import api
from stallmark.errors import ErrorClass, StallmarkError

ANSWER_WITHIN_S = 30

# A catalogue that somebody's RESTORE has locked is waited for only so long, and we are the one to give way.
_MANNERS = "SET LOCK_TIMEOUT 5000; SET DEADLOCK_PRIORITY LOW;"


class CollectorConnection(SharedConnection):
    """Gives way to everybody else, and waits for no answer longer than ANSWER_WITHIN_S."""

    _cursor: Any = None  # one for all queries: making it costs as much as asking

    def rows(self, sql: str) -> list[Row]:
        if self._connection is None:
            self._connection = self._engine.connect()
        try:
            if self._cursor is None:
                self._connection.timeout = ANSWER_WITHIN_S
                self._cursor = self._connection.execute(_MANNERS)
            self._cursor.execute(sql)
            names = [column[0] for column in self._cursor.description]
            return [dict(zip(names, row, strict=True)) for row in self._cursor.fetchall()]
        except api().Error as error:
            failure = failed(error)
            if failure.kind is ErrorClass.CONNECTION_LOST:
                self._drop()
                raise StallmarkError(f"the connection to the server was lost ({failure.message})") from error
            raise StallmarkError(f"the server refused the query ({failure.message})") from error

    def _drop(self) -> None:
        connection, self._connection, self._cursor = self._connection, None, None
        if connection is not None:
            try:
                connection.close()
            except api().Error:
                pass  # it had gone already
