"""One virtual user's connection to SQL Server: a prepared statement per frame, one round trip each."""

import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from stallmark.driver.engines.errors import ErrorClass
from stallmark.driver.engines.mssql.errors import failed
from stallmark.driver.engines.mssql.odbc import api

_CALL = re.compile(r"\{\s*CALL\s+([\w.\[\]]+)\s*(?:\(([^)]*)\))?\s*\}", re.IGNORECASE)


class MssqlSession:
    """Autocommit: where a transaction begins and ends stands in the text of the statements.

    pyodbc keeps one prepared statement per cursor, so every statement has a cursor of its own. A transaction that an
    error left open is rolled back at once: its locks would hold up everybody else.
    """

    def __init__(self, connection: Any, calls_by_rpc: bool):
        self._connection = connection
        self._error = api().Error
        self._by_rpc = calls_by_rpc
        self._statements: dict[str, tuple[Any, str]] = {}
        self._under_way: Any = None
        self._aside = self._cursor()
        self._aside.execute("SELECT @@SPID")
        [(self.server_pid,)] = self._aside.fetchall()  # to the end: FreeTDS has one result at a time

    def prepare(self, name: str, sql: str) -> None:
        """Takes a batch with `?` for parameters, or a call `{CALL procedure(?, ?)}`.

        Such a call goes to the server as a remote procedure call, which it need not parse; where there are none,
        as `EXEC procedure ?, ?`. The server sees the text when it is first executed.
        """
        self._statements[name] = self._cursor(), sql if self._by_rpc else as_exec(sql)

    def call(self, name: str, parameters: Sequence[Any], *, commits: bool = True) -> list[tuple]:
        cursor, sql = self._statements[name]
        self._under_way = cursor
        try:
            rows = _rows(cursor.execute(sql, *parameters))
            # To the end: the error of a later statement, the COMMIT, comes with its result.
            while cursor.nextset():
                rows = rows or _rows(cursor)
            return rows
        except self._error as error:
            failure = failed(error, commits=commits)
            if failure.kind not in (ErrorClass.CONNECTION_LOST, ErrorClass.UNKNOWN_OUTCOME):
                with suppress(self._error):  # what is unread would keep the connection busy
                    while cursor.nextset():
                        pass
                self._roll_back()
            raise failure from None

    def cancel(self) -> None:
        if self._under_way is not None:
            with suppress(self._error):
                self._under_way.cancel()

    def close(self) -> None:
        with suppress(self._error):
            self._connection.close()

    def _roll_back(self) -> None:
        try:
            self._aside.execute("IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION")
        except self._error as error:
            raise failed(error) from None

    def _cursor(self) -> Any:
        try:
            return self._connection.cursor()
        except self._error as error:
            raise failed(error) from None


def _rows(cursor: Any) -> list[tuple]:
    return [tuple(row) for row in cursor.fetchall()] if cursor.description else []


def as_exec(sql: str) -> str:
    """`{CALL procedure(?, ?)}` as `EXEC procedure ?, ?`; any other text as it is."""
    return _CALL.sub(lambda call: f"EXEC {call[1]} {call[2] or ''}".rstrip(), sql)
