"""Queries on SQL Server: the answer, and behind it the plan with what its execution did (SET STATISTICS XML)."""

from contextlib import suppress
from typing import Any, ClassVar

from stallmark.engines.mssql import showplan
from stallmark.engines.mssql.errors import failed
from stallmark.engines.mssql.odbc import api
from stallmark.engines.mssql.sql import rows
from stallmark.engines.queries import Answer, Measures
from stallmark.errors import ErrorClass

ROWS_AT_ONCE = 1000

_PLAN_COLUMN = "XML Showplan"  # behind "Microsoft SQL Server 2005 "
_NO_PLANS = "The server sends no plan with a query's answer ({reason}): of a query only its time and rows are known."


class MssqlQueries:
    """A session for queries. Their degree of parallelism stands in their text: OPTION (MAXDOP n)."""

    plan_suffix: ClassVar[str] = "sqlplan"

    def __init__(self, connection: Any, timeout_s: float):
        self.limited: str | None = None
        self._connection = connection
        self._connection.timeout = max(1, round(timeout_s))  # of every statement from here on
        self._error = api().Error
        self._cursor: Any = None
        try:
            self._cursor = connection.cursor()
        except self._error as error:
            raise failed(error) from None
        self._ask_for_plans()

    def set_dop(self, dop: int | None) -> None: ...

    def execute(self, text: str) -> Answer:
        found, plan = 0, None
        try:
            self._cursor.execute(text)
            more = True
            while more:
                if self._cursor.description and self._cursor.description[0][0].endswith(_PLAN_COLUMN):
                    [(plan,)] = self._cursor.fetchall()
                elif self._cursor.description:
                    while block := self._cursor.fetchmany(ROWS_AT_ONCE):
                        found += len(block)
                more = self._cursor.nextset()
        except self._error as error:
            failure = failed(error)
            if failure.kind is not ErrorClass.CONNECTION_LOST:
                with suppress(self._error):
                    rows(self._cursor)
            raise failure from None
        if plan is None and self.limited is None:
            self.limited = _NO_PLANS.format(reason="it takes SET STATISTICS XML and does nothing")
        return Answer(found, plan)

    def measures(self, answer: Answer) -> Measures:
        if answer.plan is None:
            return Measures(rows=answer.rows)
        return showplan.measures(answer.plan, answer.rows)

    def cancel(self) -> None:
        with suppress(self._error):
            self._cursor.cancel()

    def close(self) -> None:
        with suppress(self._error):
            self._connection.close()

    def _ask_for_plans(self) -> None:
        """Babelfish refuses it, or does as if it knew it. A login needs the right SHOWPLAN, else queries themselves
        would be refused."""
        try:
            self._cursor.execute("SET STATISTICS XML ON")
        except self._error as error:
            self.limited = _NO_PLANS.format(reason=failed(error).message)
