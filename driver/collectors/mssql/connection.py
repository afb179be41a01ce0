"""The connection through which collectors ask SQL Server."""

from typing import Any

from stallmark.driver.collectors.base import Row
from stallmark.driver.engines.base import Engine
from stallmark.driver.engines.errors import ErrorClass, StallmarkError
from stallmark.driver.engines.mssql.errors import failed
from stallmark.driver.engines.mssql.odbc import api

ANSWER_WITHIN_S = 30

# A catalogue that somebody's RESTORE has locked is waited for only so long, and we are the one to give way.
_MANNERS = "SET LOCK_TIMEOUT 5000; SET DEADLOCK_PRIORITY LOW;"


class CollectorConnection:
    """One connection for several collectors of one thread, made when it is needed and again after it broke.

    It is closed when as many `close` as `open` have been called.
    """

    def __init__(self, engine: Engine):
        self._engine = engine
        self._connection: Any = None
        self._users = 0

    def open(self) -> None:
        self._users += 1

    def close(self) -> None:
        self._users -= 1
        if self._users <= 0:
            self._drop()

    def rows(self, sql: str) -> list[Row]:
        """The rows of a query by column name.

        Raises StallmarkError when there is no connection, the server refuses, or does not answer.
        """
        if self._connection is None:
            self._connection = self._engine.connect()
        try:
            if self._connection.timeout != ANSWER_WITHIN_S:  # a new one
                self._connection.timeout = ANSWER_WITHIN_S
                self._connection.execute(_MANNERS).close()
            cursor = self._connection.execute(sql)
            try:
                names = [column[0] for column in cursor.description]
                return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
            finally:
                cursor.close()
        except api().Error as error:
            failure = failed(error)
            if failure.kind is ErrorClass.CONNECTION_LOST:
                self._drop()
                raise StallmarkError(f"the connection to the server was lost ({failure.message})") from error
            raise StallmarkError(f"the server refused the query ({failure.message})") from error

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                connection.close()
            except api().Error:
                pass  # it had gone already
