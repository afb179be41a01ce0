"""One virtual user's connection to SQL Server: a prepared statement per frame, one round trip each."""

import re
from collections.abc import Sequence
from contextlib import suppress
from threading import Lock
from typing import Any

from stallmark.engines.base import Isolation, Session
from stallmark.engines.mssql.errors import failed
from stallmark.engines.mssql.odbc import api
from stallmark.engines.mssql.parameters import ParameterTypes
from stallmark.engines.mssql.sql import rows
from stallmark.errors import CallFailed, ErrorClass

_CALL = re.compile(r"\{\s*CALL\s+([\w.\[\]]+)\s*(?:\(([^)]*)\))?\s*\}", re.IGNORECASE)

# What has parameters runs as a procedure does: it must leave @@TRANCOUNT as it was (error 266), and an isolation level
# set in it holds until its end. So a transaction of several calls begins and ends with batches that have none, which
# pyodbc sends as they are. The level lasts, hence READ COMMITTED afterwards: it is what every other call starts from.
_BEGIN = "SET XACT_ABORT ON; SET TRANSACTION ISOLATION LEVEL {isolation}; BEGIN TRANSACTION"
_COMMIT = "COMMIT TRANSACTION; SET TRANSACTION ISOLATION LEVEL READ COMMITTED"
_ROLL_BACK = "IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION; SET TRANSACTION ISOLATION LEVEL READ COMMITTED"


class MssqlSession(Session):
    """Autocommit: where a transaction of one call begins and ends stands in the text of its statement.

    pyodbc keeps one prepared statement per cursor, so every statement has a cursor of its own. A transaction that an
    error left open is rolled back at once: its locks would hold up everybody else.
    """

    dialect = "mssql"

    def __init__(self, connection: Any, calls_by_rpc: bool, types: ParameterTypes | None = None):
        """`types` of parameters; None where pyodbc is to take them from the values."""
        self.is_lost = False
        self._types = types
        self._connection = connection
        self._error = api().Error
        self._by_rpc = calls_by_rpc
        self._statements: dict[str, tuple[Any, str]] = {}
        self._in_transaction = False
        self._under_way: Any = None
        self._cancelling = Lock()
        self._aside = self._cursor()
        [(self.server_pid,)] = self._run(self._aside, "SELECT @@SPID", commits=False)

    def prepare(self, name: str, sql: str) -> None:
        """Take a batch with `?` for parameters, or a call `{CALL procedure(?, ?)}`.

        Such a call goes to the server as a remote procedure call, which it need not parse; where there are none,
        as `EXEC procedure ?, ?`. The server sees the text when it is first executed. The isolation level that a batch
        sets ends with it if it has parameters, and not if it has none.
        """
        cursor = self._cursor()
        if self._types and (sizes := self._types.of(sql, self._aside)):
            cursor.setinputsizes(sizes)  # of every call from here on
        self._statements[name] = cursor, sql if self._by_rpc else as_exec(sql)

    def call(self, name: str, parameters: Sequence[Any], *, commits: bool = True, last: bool = False) -> list[tuple]:
        cursor, sql = self._statements[name]
        answer = self._run(cursor, sql, parameters, commits=commits and not self._in_transaction)
        if last:
            self.commit()
        return answer

    def begin(self, isolation: Isolation) -> None:
        self._run(self._aside, _BEGIN.format(isolation=isolation), commits=False)
        self._in_transaction = True

    def commit(self) -> None:
        if self._in_transaction:
            self._in_transaction = False
            self._run(self._aside, _COMMIT, commits=True)

    def roll_back(self) -> None:
        if self._in_transaction:
            self._end_what_is_open()

    def cancel(self) -> None:
        with self._cancelling, suppress(self._error):
            if self._under_way is not None:
                self._under_way.cancel()

    def close(self) -> None:
        with suppress(self._error):
            self._connection.close()

    def _run(self, cursor: Any, sql: str, parameters: Sequence[Any] = (), *, commits: bool) -> list[tuple]:
        self._under_way = cursor
        try:
            return rows(cursor.execute(sql, *parameters))
        except self._error as error:
            with self._cancelling:  # what ends the transaction must not be cancelled in place of the call
                self._under_way = None
            failure = failed(error, commits=commits)
            if failed(error).kind is ErrorClass.CONNECTION_LOST:
                self._in_transaction, self.is_lost = False, True
            else:
                with suppress(self._error):
                    rows(cursor)
                self._end_what_is_open(then=failure)
            raise failure from None

    def _end_what_is_open(self, then: CallFailed | None = None) -> None:
        """Roll back. Where that fails, the session is of no more use, and `then` is raised if it is given."""
        self._in_transaction = False
        try:
            rows(self._aside.execute(_ROLL_BACK))
        except self._error as error:
            self.is_lost = True
            raise then or failed(error) from None

    def _cursor(self) -> Any:
        try:
            return self._connection.cursor()
        except self._error as error:
            raise failed(error) from None


def as_exec(sql: str) -> str:
    """Return `{CALL procedure(?, ?)}` as `EXEC procedure ?, ?`; any other text as it is."""
    return _CALL.sub(lambda call: f"EXEC {call[1]} {call[2] or ''}".rstrip(), sql)
