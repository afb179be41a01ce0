"""Queries on SQL Server. What is timed is the query alone; what it did the server's own notes tell afterwards.

SET STATISTICS XML, which would send the plan behind the answer, makes the server time every row in every operator: a
query that it doubles is no measure of storage ("Query profiling infrastructure", Microsoft).
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, ClassVar
from xml.etree import ElementTree

from stallmark.engines import sql_file
from stallmark.engines.mssql.errors import failed
from stallmark.engines.mssql.odbc import api
from stallmark.engines.mssql.sql import rows
from stallmark.engines.queries import PAGE_BYTES, Answer, Measures
from stallmark.errors import ErrorClass, StallmarkError

ROWS_AT_ONCE = 1000
MOST_WAITS = 10

_ONLY_TIME = "Of queries only time and rows are known: {why}."
_FORGOTTEN = (
    "the server keeps no plan of them (`optimize for ad hoc workloads` is on, or its plan cache has too little memory)"
)
_ROWS, _LOGICAL, _PHYSICAL, _CPU_US, _DOP, _GRANT_KIB, _SPILLS, _PLAN = range(8)

_PLAN_NAMESPACE = "{http://schemas.microsoft.com/sqlserver/2004/07/showplan}"  # Microsoft, showplanxml.xsd


class MssqlQueries:
    """A session for queries, and one beside it that asks what the server noted of each, between two of them. Their
    degree of parallelism stands in their text: OPTION (MAXDOP n)."""

    plan_suffix: ClassVar[str] = "sqlplan"

    def __init__(self, connection: Any, timeout_s: float, beside: Callable[[], Any], keeps_actual_plans: bool):
        """`keeps_actual_plans`: the server is 2019 or later."""
        self.limited: str | None = None
        self._connection = connection
        self._connection.timeout = max(1, round(timeout_s))  # of every statement from here on
        self._error = api().Error
        self._aside: Any = None
        self._waited: Mapping[str, int] = {}
        try:
            self._cursor = connection.cursor()
            [(session,)] = rows(self._cursor.execute("SELECT @@SPID"))
        except self._error as error:
            raise failed(error) from None
        self._waits = sql_file.read(__package__, "query_waits").format(session=session)
        noted = "query_noted.15" if keeps_actual_plans else "query_noted"
        self._noted = sql_file.read(__package__, noted).format(session=session)
        try:
            self._aside = beside()
            self._waited = self._wait_ms()
        except (StallmarkError, self._error) as error:
            self._give_up_notes(error)

    def set_dop(self, dop: int | None) -> None: ...

    def execute(self, text: str) -> Answer:
        found = 0
        try:
            self._cursor.execute(text)
            more = True
            while more:
                if self._cursor.description:
                    while block := self._cursor.fetchmany(ROWS_AT_ONCE):
                        found += len(block)
                more = self._cursor.nextset()
        except self._error as error:
            failure = failed(error)
            if failure.kind is not ErrorClass.CONNECTION_LOST:
                with suppress(self._error):
                    rows(self._cursor)
            raise failure from None
        return Answer(found, None)

    def with_notes(self, answer: Answer) -> Answer:
        if self._aside is None:
            return answer
        try:
            found = rows(self._aside.execute(self._noted))
            before, self._waited = self._waited, self._wait_ms()
        except self._error as error:
            self._give_up_notes(error)
            return answer
        if not found:
            self.limited = _ONLY_TIME.format(why=_FORGOTTEN)
            return answer
        waits = {kind: float(ms - before.get(kind, 0)) for kind, ms in self._waited.items()}
        most = sorted(((ms, kind) for kind, ms in waits.items() if ms > 0), reverse=True)[:MOST_WAITS]
        noted = _measures(found[0], {kind: ms for ms, kind in most})
        return Answer(answer.rows, found[0][_PLAN], noted)

    def measures(self, answer: Answer) -> Measures:
        noted = answer.noted or Measures()
        shape = plan_hash(answer.plan) if answer.plan else None
        return replace(noted, rows=answer.rows, plan_hash=shape)

    def cancel(self) -> None:
        with suppress(self._error):
            self._cursor.cancel()

    def close(self) -> None:
        for connection in filter(None, (self._connection, self._aside)):
            with suppress(self._error):
                connection.close()

    def _wait_ms(self) -> dict[str, int]:
        return dict(rows(self._aside.execute(self._waits)))

    def _give_up_notes(self, error: Exception) -> None:
        why = str(error) if isinstance(error, StallmarkError) else failed(error).message
        self.limited = _ONLY_TIME.format(why=f"the server does not show what it noted of them ({why.rstrip('.')})")
        if self._aside is not None:
            with suppress(self._error):
                self._aside.close()
        self._aside = None


def _measures(row: tuple, wait_ms: Mapping[str, float]) -> Measures:
    """Return the measures in a row of dm_exec_query_stats; None stays None. Its times are µs, its spills pages."""
    physical, spills, cpu_us = row[_PHYSICAL], row[_SPILLS], row[_CPU_US]
    return Measures(
        logical_reads=row[_LOGICAL],
        physical_reads=physical,
        read_bytes=None if physical is None else physical * PAGE_BYTES,
        spill_bytes=None if spills is None else spills * PAGE_BYTES,
        grant_kib=row[_GRANT_KIB],
        cpu_ms=None if cpu_us is None else cpu_us / 1000,
        actual_dop=None if row[_DOP] is None else max(1, row[_DOP]),
        wait_ms=wait_ms,
    )


def plan_hash(xml: str) -> str:
    """Return a hash of operators, tables and indexes alone: the same on every version and for all parameters. Raise
    ValueError for what is no plan."""
    try:
        plan = ElementTree.fromstring(xml)
    except ElementTree.ParseError as error:
        raise ValueError(f"not a plan: {error}") from None
    return hashlib.sha256(json.dumps(_shape(plan)).encode()).hexdigest()[:12]


def _shape(element: ElementTree.Element) -> list[Any]:
    """Return the plan's shape: operators lie within others at any depth, and an operator's tables above those of the
    next one."""
    found: list[Any] = []
    for child in element:
        name = child.tag.removeprefix(_PLAN_NAMESPACE)
        if name == "RelOp":
            own = [child.get(part) for part in ("PhysicalOp", "LogicalOp", "Parallel")]
            found.append([own, _shape(child)])
        elif name == "Object":
            found.append([child.get(part) for part in ("Table", "Index", "Alias")])
        else:
            found += _shape(child)
    return found
