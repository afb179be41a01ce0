"""The sessions of a run: a virtual user's with its prepared statements, and a query stream's."""

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from threading import Lock
from typing import Any, ClassVar
from xml.etree import ElementTree

from stallmark.engines import sql_file
from stallmark.engines.abilities import PAGE_BYTES, Answer, Measures
from stallmark.engines.base import ROWS_AT_ONCE, Head, Isolation, Session
from stallmark.engines.mssql.odbc import api, failed, rows
from stallmark.engines.mssql.odbc import text as constant
from stallmark.errors import CallFailed, ErrorClass, StallmarkError

# The types that parameters are sent as: those that the procedure declares, the same at every call.
#
# pyodbc takes them from each value: 5 is an integer and 5,000,000,000 a bigint, a text is an nvarchar of its own length
# (pyodbc #213). Then the driver prepares a call anew, and of a batch the plan cache keeps a plan for every combination.
# A varchar key that is compared with an nvarchar is not sought in its index: the server reads all of it (pyodbc #376).


Size = tuple[int, int, int]
# Arguments in their order alone: `EXEC p @b = ?, @a = ?` has them in another one than the procedure declares.
_CALLED = re.compile(r"[^?]*(?:\{\s*CALL|\bEXEC(?:UTE)?)\s+([\w.\[\]]+)\s*\(?\s*\?(?:\s*,\s*\?)*[^?]*", re.IGNORECASE)
_MOMENT = 27  # letters of the longest time; it goes as text, which no setting of a session reads in another way


# Its fourth column is the type's name: "varchar(30)".
_DESCRIBE = "EXEC sys.sp_describe_undeclared_parameters @tsql = {batch}"
_TEXT_TYPE = re.compile(r"(n?)(?:var)?char\(\d+\)")
_MOST_BYTES = 8000  # the length of the longest text that is not of a `max` type
# Not the lexer of own SQL, which is above this room: here the only question is which `?` is a place.
_PLACE = re.compile(r"""'(?:[^']|'')*' | "(?:[^"]|"")*" | \[(?:[^\]]|\]\])*\] | --[^\n]* | /\*.*?\*/ | (\?)""",
                    re.VERBOSE | re.DOTALL)  # fmt: skip


def as_sent(sql: str) -> str:
    """Return the text of a batch as the ODBC driver sends it: numbered parameters in place of each `?`."""
    number = 0

    def numbered(match: re.Match[str]) -> str:
        nonlocal number
        if not match[1]:
            return match[0]
        number += 1
        return f"@P{number}"

    return _PLACE.sub(numbered, sql)


class ParameterTypes:
    """Types for `Cursor.setinputsizes`, by procedure or text; each is asked for once for all sessions."""

    def __init__(self) -> None:
        self._known: dict[str, list[Size | None]] = {}

    def lookup(self, statement: str, cursor: Any) -> list[Size | None] | None:
        """Return the types of a statement's parameters, or None if the server does not report them.

        They are those of the one procedure that it calls; otherwise those of its texts alone.
        """
        count = sum(bool(place[1]) for place in _PLACE.finditer(statement))
        if not count:
            return None
        called = _CALLED.fullmatch(statement)
        key = called[1] if called else statement
        if key not in self._known:
            try:
                if called:
                    asked = sql_file.statement(__name__, "parameters").format(procedure=key)
                    sizes = [_size(*row) for row in rows(cursor.execute(asked))]
                else:
                    described = rows(cursor.execute(_DESCRIBE.format(batch=constant(as_sent(statement)))))
                    sizes = [_text_size(row[3]) for row in described]
                self._known[key] = sizes
            except api().Error:  # then pyodbc takes them from the values
                return None
        sizes = self._known[key]
        return sizes if any(sizes) and len(sizes) == count else None


def _text_size(kind: str) -> Size | None:
    """Return the longest text of a kind, as a longer value than its column has is the server's to refuse."""
    if not (text := _TEXT_TYPE.fullmatch(kind)):
        return None
    return (api().SQL_WVARCHAR, _MOST_BYTES // 2, 0) if text[1] else (api().SQL_VARCHAR, _MOST_BYTES, 0)


def _size(kind: str, length: int, digits: int, decimals: int) -> Size | None:
    odbc = api()
    match kind:
        case "bigint" | "smallint" | "tinyint" | "bit":
            return getattr(odbc, f"SQL_{kind.upper()}"), 0, 0
        case "int":
            return odbc.SQL_INTEGER, 0, 0
        case "decimal" | "numeric":
            return odbc.SQL_DECIMAL, digits, decimals
        case "float":
            return odbc.SQL_DOUBLE, 0, 0
        case "varchar" if length < 0:
            return odbc.SQL_VARCHAR, 0, 0  # the driver's size for varchar(max)
        case "varchar" | "char" if length > 0:
            return getattr(odbc, f"SQL_{kind.upper()}"), length, 0
        case "nvarchar" | "nchar" if length > 0:
            return (odbc.SQL_WVARCHAR if kind == "nvarchar" else odbc.SQL_WCHAR), length // 2, 0
        case "date" | "datetime2":
            return odbc.SQL_VARCHAR, _MOMENT, 0
    return None


# One virtual user's connection to SQL Server: a prepared statement per frame, one round trip each.

_CALL = re.compile(r"\{\s*CALL\s+([\w.\[\]]+)\s*(?:\(([^)]*)\))?\s*\}", re.IGNORECASE)

# What has parameters runs as a procedure does: it must leave @@TRANCOUNT as it was (error 266), and an isolation level
# set in it holds until its end. So a transaction of several calls begins and ends with batches that have none, which
# pyodbc sends as they are. The level lasts, hence READ COMMITTED afterwards: it is what every other call starts from.
_BEGIN = "SET XACT_ABORT ON; SET TRANSACTION ISOLATION LEVEL {isolation}; BEGIN TRANSACTION"
_COMMIT = "COMMIT TRANSACTION; SET TRANSACTION ISOLATION LEVEL READ COMMITTED"
_ROLL_BACK = ("IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION", "SET TRANSACTION ISOLATION LEVEL READ COMMITTED")


class MssqlSession(Session):
    """Autocommit: where a transaction of one call begins and ends is in the text of its statement.

    pyodbc keeps one prepared statement per cursor, so every statement has a cursor of its own. A transaction that an
    error left open is rolled back at once: its locks would hold up everybody else.
    """

    dialect = "mssql"

    def __init__(self, connection: Any, calls_by_rpc: bool, types: ParameterTypes | None = None):
        """A prepared call. `types` are those of parameters, or None if pyodbc takes them from the values."""
        self.is_lost = False
        self._types = types
        self._connection = connection
        self._error = api().Error
        self._by_rpc = calls_by_rpc
        # Babelfish refuses another level in a batch that has read @@TRANCOUNT.
        self._roll_back = ("; ".join(_ROLL_BACK),) if calls_by_rpc else _ROLL_BACK
        self._statements: dict[str, tuple[Any, str]] = {}
        self._in_transaction = False
        self._under_way: Any = None
        self._cancelling = Lock()
        self._aside = self._cursor()
        [(self.server_pid,)] = self._run(self._aside, "SELECT @@SPID", commits=False)

    def prepare(self, name: str, sql: str) -> None:
        """Take a batch with `?` for parameters, or a call `{CALL procedure(?, ?)}`.

        Such a call goes to the server as a remote procedure call, which it need not parse; without such calls, as `EXEC
        procedure ?, ?`. The server sees the text when it is first executed. The isolation level that a batch sets ends
        with it if it has parameters, and not if it has none.
        """
        cursor = self._cursor()
        if self._types and (sizes := self._types.lookup(sql, self._aside)):
            cursor.setinputsizes(sizes)  # applies to every later call
        self._statements[name] = cursor, sql if self._by_rpc else as_exec(sql)

    def call(self, name: str, parameters: Sequence[Any], *, commits: bool = True, last: bool = False) -> list[tuple]:
        cursor, sql = self._statements[name]
        answer = self._run(cursor, sql, parameters, commits=commits and not self._in_transaction)
        if last:
            self.commit()
        return answer

    def call_head(self, name: str, parameters: Sequence[Any], *, commits: bool = True) -> Head:
        cursor, sql = self._statements[name]
        commits = commits and not self._in_transaction
        head: Head = self._run(cursor, sql, parameters, commits=commits, take=fetch_head)
        return head

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

    def _run(
        self, cursor: Any, sql: str, parameters: Sequence[Any] = (), *, commits: bool, take: Callable[[Any], Any] = rows
    ) -> Any:
        self._under_way = cursor
        try:
            return take(cursor.execute(sql, *parameters))
        except self._error as error:
            # A cancel that is meant for the call must not hit the end of the transaction.
            with self._cancelling:
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
            for batch in self._roll_back:
                rows(self._aside.execute(batch))
        except self._error as error:
            self.is_lost = True
            raise then or failed(error) from None

    def _cursor(self) -> Any:
        try:
            return self._connection.cursor()
        except self._error as error:
            raise failed(error) from None


def fetch_head(cursor: Any) -> Head:
    """Return the head of all results of what was executed: their rows are fetched a few at a time."""
    count, changed, more = 0, 0, True
    first: list[tuple] = []
    while more:
        if cursor.description:
            block = cursor.fetchmany(ROWS_AT_ONCE)
            first = first or [tuple(row) for row in block]
            count += len(block)
            while len(block) == ROWS_AT_ONCE:
                block = cursor.fetchmany(ROWS_AT_ONCE)
                count += len(block)
        elif cursor.rowcount > 0:
            changed += cursor.rowcount
        more = cursor.nextset()
    return count or changed, first


def as_exec(sql: str) -> str:
    """Return `{CALL procedure(?, ?)}` as `EXEC procedure ?, ?`; any other text as it is."""
    return _CALL.sub(lambda call: f"EXEC {call[1]} {call[2] or ''}".rstrip(), sql)


# Queries on SQL Server. What is timed is the query alone; what it did the server's own notes tell afterwards.
#
# SET STATISTICS XML, which would send the plan behind the answer, makes the server time every row in every operator: a
# query that it doubles is no measure of storage ("Query profiling infrastructure", Microsoft).

MOST_WAITS = 10

_ONLY_TIME = "Of queries only time and rows are known: {why}."
_FORGOTTEN = (
    "the server keeps no plan of them (`optimize for ad hoc workloads` is on, or its plan cache has too little memory)"
)
_ROWS, _LOGICAL, _PHYSICAL, _CPU_US, _DOP, _GRANT_KIB, _SPILLS, _PLAN = range(8)

_PLAN_NAMESPACE = "{http://schemas.microsoft.com/sqlserver/2004/07/showplan}"  # Microsoft, showplanxml.xsd


class MssqlQueries:
    """A session for queries, and one beside it that asks what the server noted of each, between two of them. Their
    degree of parallelism is in their text: OPTION (MAXDOP n).
    """

    plan_suffix: ClassVar[str] = "sqlplan"

    def __init__(self, connection: Any, timeout_s: float, beside: Callable[[], Any], keeps_actual_plans: bool):
        """A session for queries. `keeps_actual_plans` is True for SQL Server 2019 and later."""
        self.limited: str | None = None
        self._connection = connection
        self._connection.timeout = max(1, round(timeout_s))  # applies to every later statement
        self._error = api().Error
        self._aside: Any = None
        self._waited: Mapping[str, int] = {}
        try:
            self._cursor = connection.cursor()
            [(session,)] = rows(self._cursor.execute("SELECT @@SPID"))
        except self._error as error:
            raise failed(error) from None
        self._waits = sql_file.statement(__name__, "query_waits").format(session=session)
        noted = "query_noted.15" if keeps_actual_plans else "query_noted"
        self._noted = sql_file.statement(__name__, noted).format(session=session)
        try:
            self._aside = beside()
            self._waited = self._wait_ms()
        except (StallmarkError, self._error) as error:
            self._give_up_notes(error)

    def set_dop(self, dop: int | None) -> None: ...

    def execute(self, text: str) -> Answer:
        try:
            count = fetch_head(self._cursor.execute(text))[0]
        except self._error as error:
            failure = failed(error)
            if failure.kind is not ErrorClass.CONNECTION_LOST:
                with suppress(self._error):
                    rows(self._cursor)
            raise failure from None
        return Answer(count, None)

    def with_notes(self, answer: Answer) -> Answer:
        if self._aside is None:
            return answer
        try:
            statements = rows(self._aside.execute(self._noted))
            before, self._waited = self._waited, self._wait_ms()
        except self._error as error:
            self._give_up_notes(error)
            return answer
        if not statements:
            self.limited = _ONLY_TIME.format(why=_FORGOTTEN)
            return answer
        waits = {kind: float(ms - before.get(kind, 0)) for kind, ms in self._waited.items()}
        most = sorted(((ms, kind) for kind, ms in waits.items() if ms > 0), reverse=True)[:MOST_WAITS]
        noted = _measures(statements[0], {kind: ms for ms, kind in most})
        return Answer(answer.rows, statements[0][_PLAN], noted)

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
        reason = str(error) if isinstance(error, StallmarkError) else failed(error).message
        self.limited = _ONLY_TIME.format(why=f"the server does not show what it noted of them ({reason.rstrip('.')})")
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
    """Return a hash of operators, tables and indexes alone: the same on every version and for all parameters.

    Raise ValueError if the text is not a plan.
    """
    try:
        plan = ElementTree.fromstring(xml)
    except ElementTree.ParseError as error:
        raise ValueError(f"not a plan: {error}") from None
    return hashlib.sha256(json.dumps(_shape(plan)).encode()).hexdigest()[:12]


def _shape(element: ElementTree.Element) -> list[Any]:
    """Return the plan's shape: operators are within others at any depth, and an operator's tables above those of the
    next one.
    """
    shapes: list[Any] = []
    for child in element:
        name = child.tag.removeprefix(_PLAN_NAMESPACE)
        if name == "RelOp":
            own = [child.get(part) for part in ("PhysicalOp", "LogicalOp", "Parallel")]
            shapes.append([own, _shape(child)])
        elif name == "Object":
            shapes.append([child.get(part) for part in ("Table", "Index", "Alias")])
        else:
            shapes += _shape(child)
    return shapes
