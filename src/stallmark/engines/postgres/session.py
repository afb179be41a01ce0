"""A virtual user's connection to PostgreSQL: statements in one round trip, errors as ours."""

import select
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import psycopg
from psycopg import pq

from stallmark.engines import sql_file
from stallmark.engines.base import READ_ONLY, ROWS_AT_ONCE, Head, Isolation, OwnIO, Session
from stallmark.errors import CallFailed, ErrorClass

# PostgreSQL's errors as ours.


REFUSE_WRITES = "SET default_transaction_read_only = on"

# Appendix A of the PostgreSQL manual; a two-character key is a whole class.
_ERROR_CLASSES = {
    "40P01": ErrorClass.DEADLOCK,
    "55P03": ErrorClass.LOCK_TIMEOUT,
    "40001": ErrorClass.SERIALIZATION,
    "57014": ErrorClass.TIMEOUT,
    "53100": ErrorClass.OUT_OF_SPACE,
    "53200": ErrorClass.OUT_OF_MEMORY,
    "53300": ErrorClass.RESOURCE_LIMIT,  # too many connections
    "53400": ErrorClass.RESOURCE_LIMIT,  # a limit that is configured
    "58030": ErrorClass.STORAGE,
    "XX001": ErrorClass.STORAGE,
    "XX002": ErrorClass.STORAGE,
    "57P01": ErrorClass.CONNECTION_LOST,
    "57P02": ErrorClass.CONNECTION_LOST,
    "57P03": ErrorClass.CONNECTION_LOST,
    READ_ONLY: ErrorClass.CONNECTION_LOST,  # read-only: it was the primary, or was set so
    "08": ErrorClass.CONNECTION_LOST,
}


def classify(code: str) -> ErrorClass:
    """Return the class of a five-character SQLSTATE."""
    return _ERROR_CLASSES.get(code) or _ERROR_CLASSES.get(code[:2]) or ErrorClass.OTHER


def call_failed(error: Exception) -> CallFailed:
    """Return an error of psycopg as ours."""
    code = getattr(error, "sqlstate", None)
    kind = classify(code) if code else ErrorClass.CONNECTION_LOST
    return CallFailed(kind, code or "08006", first_line(error))


@contextmanager
def as_call_failed() -> Iterator[None]:
    try:
        yield
    except psycopg.Error as error:
        raise call_failed(error) from None


def first_line(text: object) -> str:
    lines = str(text).strip().splitlines()
    return lines[0].rstrip(".") if lines else "no reason given"


# Several statements in one round trip.
#
# Each time that libpq is called without the interpreter's lock, or a trip is made, another user's thread may come
# between and wait for the lock in turn. So there is one text of all statements, where no answer but the last is needed
# and libpq itself can wait for it; the driver's pipeline mode gives up the lock for every statement.

Statement = tuple[bytes, Sequence[bytes | None]]
"""The name of a prepared statement, and its parameters."""

# As numbers, because the enumeration compares slowly.
SYNC = int(pq.ExecStatus.PIPELINE_SYNC)
_DONE = int(pq.ExecStatus.COMMAND_OK)
_GOOD = (int(pq.ExecStatus.TUPLES_OK), _DONE)
_HEAD = (int(pq.ExecStatus.TUPLES_CHUNK), *_GOOD)
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
        self.wait = _waiting_for(connection.socket)

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
        results = [self._results(SYNC) for _ in statements]
        if connection.status == _ALIVE:
            connection.exit_pipeline_mode()
        return results

    def _results(self, end: int | None) -> list[pq.abc.PGresult]:
        """Return the results up to one of status `end`; None: all of them."""
        connection, wait = self._connection, self.wait
        results: list[pq.abc.PGresult] = []
        try:
            while True:
                while connection.is_busy():
                    wait()
                    connection.consume_input()
                if result := connection.get_result():
                    results.append(result)
                    if result.status == end:
                        return results
                elif end is None or connection.status != _ALIVE:  # a pipeline sends it only at the end
                    return results
        except psycopg.OperationalError:
            while result := connection.get_result():
                results.append(result)
            return results


def _waiting_for(socket: int) -> Callable[[], object]:
    """Return a function that waits until the socket has something to read."""
    if not hasattr(select, "poll"):  # Windows
        return partial(select.select, [socket], [], [])
    poll = select.poll()
    poll.register(socket, select.POLLIN)
    return poll.poll


# A virtual user's connection to PostgreSQL.

TELLS_OWN_IO = 180_000  # pg_stat_get_backend_io came with 18

# By type identifier (pg_type.dat); everything else stays text.
_DECODERS: dict[int, Any] = {20: int, 21: int, 23: int, 700: float, 701: float, 16: b"t".__eq__}

_BEGIN = {level: f"BEGIN ISOLATION LEVEL {level}; " for level in Isolation}
_BEGIN_BY_DEFAULT = _BEGIN[Isolation.READ_COMMITTED]

_MAKE_KNOWN, _OWN_IO = "stallmark_make_known", "stallmark_own_io"


class AnswerRows(Sequence[tuple]):
    """The rows of an answer, each decoded when it is read: most frames' rows are only counted."""

    def __init__(self, result: pq.abc.PGresult, decoders: Sequence[tuple[int, Any]]):
        """A prepared call. `decoders` are pairs of a column and a function from bytes."""
        self._result = result
        self._decoders = decoders

    @property
    def names(self) -> list[str]:
        """Return the names of the columns."""
        return [(self._result.fname(column) or b"").decode() for column in range(self._result.nfields)]

    def __len__(self) -> int:
        return self._result.ntuples

    def __iter__(self) -> Iterator[tuple]:
        return map(self._row, range(self._result.ntuples))

    def __getitem__(self, index: Any) -> Any:
        places = range(self._result.ntuples)[index]
        return self._row(places) if isinstance(places, int) else [self._row(place) for place in places]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    def _row(self, row: int) -> tuple:
        value = self._result.get_value
        return tuple(
            [None if (raw := value(row, column)) is None else decode(raw) for column, decode in self._decoders]
        )


class PostgresSession(Session):
    """Straight libpq through `psycopg.pq`: a cursor costs twice the client CPU and convoys on the GIL
    (0.67 of pgbench's rate against 0.93 and more).

    A transaction begins in the trip of its first call, and is committed in that of its `last` one. Where it has only
    one, at the default isolation, that call is a transaction by itself.
    """

    dialect = "postgresql"

    def __init__(self, conninfo: str):
        try:  # libpq's own connect would hold the interpreter, and so all other users, until the server has answered
            self._opened = psycopg.connect(conninfo)
        except psycopg.Error as error:
            message = first_line(error).removeprefix("connection failed: ")
            raise CallFailed(ErrorClass.CONNECTION_LOST, "08001", message) from None
        self._connection = self._opened.pgconn
        self._connection.nonblocking = 0
        self._trips = Trips(self._connection)
        self._decoders: dict[str, list[tuple[int, Any]]] = {}
        # Statements without rows need no care for memory: one call of libpq gives up the interpreter's lock once.
        self._rowless: set[str] = set()
        self._in_transaction = False
        self._to_begin = ""  # sent with the next call
        self._tells_own_io = self._connection.server_version >= TELLS_OWN_IO
        self._own_io_prepared = False
        self._refuses_writes = False
        self.server_pid = self._connection.backend_pid

    @property
    def is_lost(self) -> bool:  # type: ignore[override]
        return self._connection.status != pq.ConnStatus.OK

    def prepare(self, name: str, sql: str) -> None:
        try:
            result = self._connection.prepare(name.encode(), sql.encode())
        except psycopg.OperationalError as error:
            raise call_failed(error) from None
        if result.status != _DONE:
            raise self._failure(result, commits=False)

    def call(
        self, name: str, parameters: Sequence[Any], *, commits: bool = True, last: bool = False
    ) -> Sequence[tuple]:
        try:
            if self._in_transaction and (last or self._to_begin):
                result = self._call_at_an_end(name, parameters, last)
            else:
                result = self._call_alone(name, parameters)
        except psycopg.OperationalError as error:  # nothing was sent on a connection known to be broken
            raise call_failed(error) from None
        if result.status in _GOOD:
            return self._rows(name, result)
        failure = self._failure(result, commits and (last or not self._in_transaction))
        self.roll_back()
        raise failure

    def _call_alone(self, name: str, parameters: Sequence[Any]) -> pq.abc.PGresult:
        return self._connection.exec_prepared(name.encode(), _as_text(parameters))  # type: ignore[arg-type]

    def _call_at_an_end(self, name: str, parameters: Sequence[Any], last: bool) -> pq.abc.PGresult:
        """Make the first call of a transaction, the last one or both; return its result, or that of what failed."""
        begin, self._to_begin = self._to_begin, ""
        if last and begin == _BEGIN_BY_DEFAULT:
            self._in_transaction = False
            return self._call_alone(name, parameters)
        text = begin + as_execute(name, parameters)
        if not last:
            return self._connection.exec_(text.encode())
        results = self._trips.query(f"{text}; COMMIT".encode())
        expected = 3 if begin else 2
        answers = results[:expected]
        failed = next((answer for answer in answers if answer.status not in _GOOD), None)
        if self.is_lost and (failed or len(answers) < expected):
            raise self._unanswered(failed, commits=True)
        self._in_transaction = self._connection.transaction_status != pq.TransactionStatus.IDLE
        return failed or answers[-2]

    def count(self, name: str, parameters: Sequence[Any], *, commits: bool = True) -> int:
        return self._head(name, parameters, commits)[0]

    def call_head(self, name: str, parameters: Sequence[Any], *, commits: bool = True) -> Head:
        count, result = self._head(name, parameters, commits)
        return count, self._rows(name, result)

    def _head(self, name: str, parameters: Sequence[Any], commits: bool) -> tuple[int, pq.abc.PGresult]:
        """Return the number of rows and the first result of a call. On the path of every statement of a user's own."""
        connection, wait = self._connection, self._trips.wait
        if self._to_begin:
            begin, self._to_begin = self._to_begin, ""
            self._execute(begin.encode(), commits=False)
        count, first, failed = 0, None, None
        try:
            if name in self._rowless:
                first = self._call_alone(name, parameters)
                failed = None if first.status == _DONE else first
            else:
                connection.send_query_prepared(name.encode(), _as_text(parameters))  # type: ignore[arg-type]
                connection.set_chunked_rows_mode(ROWS_AT_ONCE)
                wait()
                connection.consume_input()
                while True:
                    while connection.is_busy():
                        wait()
                        connection.consume_input()
                    if (result := connection.get_result()) is None:
                        break
                    count += result.ntuples
                    first = first or result
                    if result.status not in _HEAD:
                        failed = result
        except psycopg.OperationalError as error:
            if not self.is_lost:
                raise call_failed(error) from None
            first = None
        if failed:
            failure = self._failure(failed, commits and not self._in_transaction)
            self.roll_back()
            raise failure
        if first is None:
            raise self._unanswered(None, commits)
        if first.status == _DONE:
            self._rowless.add(name)
        return count or first.command_tuples or 0, first

    def finish(self, name: str, parameters: Sequence[Any]) -> None:
        begin, self._to_begin = self._to_begin, ""
        # libpq itself waits for all results and keeps the last one: so the interpreter's lock is given up only once.
        try:
            result = self._connection.exec_(f"{begin}{as_execute(name, parameters)}; COMMIT".encode())
        except psycopg.OperationalError as error:  # nothing was sent on a connection known to be broken
            raise call_failed(error) from None
        if result.status == _DONE:
            self._in_transaction = False
            return
        if self.is_lost:
            raise self._unanswered(None, commits=True)
        failure = self._failure(result, commits=True)
        self._in_transaction = self._connection.transaction_status != pq.TransactionStatus.IDLE
        self.roll_back()
        raise failure

    def call_each(self, name: str, several: Sequence[Sequence[Any]]) -> list[Sequence[tuple] | CallFailed]:
        try:
            parts = self._trips.each([(name.encode(), _as_text(parameters)) for parameters in several])
        except psycopg.OperationalError as error:
            return [call_failed(error)]
        return [self._answer(name, part) for part in parts]

    def _answer(self, name: str, part: Sequence[pq.abc.PGresult]) -> Sequence[tuple] | CallFailed:
        """Return the rows of a call that was a part of a trip, or why it failed, be it at its commit."""
        failed = next((answer for answer in part if answer.status not in (*_GOOD, SYNC)), None)
        if not part or part[-1].status != SYNC:
            return self._unanswered(failed, commits=True)
        return self._failure(failed, commits=True) if failed else self._rows(name, part[0])

    def _rows(self, name: str, result: pq.abc.PGresult) -> Sequence[tuple]:
        if result.status == _DONE:
            return []
        decoders = self._decoders.get(name)
        if decoders is None:
            decoders = [(c, _DECODERS.get(result.ftype(c), bytes.decode)) for c in range(result.nfields)]
            self._decoders[name] = decoders
        return AnswerRows(result, decoders)

    def refuse_writes(self) -> None:
        self._execute(REFUSE_WRITES.encode(), commits=False)
        self._refuses_writes = True

    def begin(self, isolation: Isolation) -> None:
        self._to_begin = _BEGIN[isolation]
        self._in_transaction = True

    def commit(self) -> None:
        if self._in_transaction:
            self._in_transaction = False
            if self._to_begin:
                self._to_begin = ""
            else:
                self._execute(b"COMMIT", commits=True)

    def roll_back(self) -> None:
        if self._in_transaction:
            self._in_transaction = False
            if self._to_begin:
                self._to_begin = ""
            elif self._connection.status == pq.ConnStatus.OK:
                self._execute(b"ROLLBACK", commits=False)

    def _execute(self, statement: bytes, *, commits: bool) -> None:
        try:
            result = self._connection.exec_(statement)
        except psycopg.OperationalError as error:
            raise call_failed(error) from None
        if result.status != _DONE:
            raise self._failure(result, commits)

    def own_io(self) -> OwnIO | None:
        """Return the session's own I/O.

        A session publishes its counts when it becomes idle, at most once a second unless it is asked to: the first
        statement asks, the counts are published at its end, and the second statement reads them.
        """
        if not self._tells_own_io:
            return None
        if not self._own_io_prepared:
            self.prepare(_MAKE_KNOWN, "SELECT pg_stat_force_next_flush()")
            self.prepare(_OWN_IO, sql_file.statement(__name__, "own_io"))
            self.call(_OWN_IO, (), commits=False)  # the first time it reads the catalogue
            self._own_io_prepared = True
        self.call(_MAKE_KNOWN, (), commits=False)
        [row] = self.call(_OWN_IO, (), commits=False)
        return OwnIO(*row)

    def cancel(self) -> None:
        """Ask the server to give up the call under way. May be called from another thread."""
        with suppress(psycopg.OperationalError):  # the connection has gone, and the call with it
            self._connection.get_cancel().cancel()

    def close(self) -> None:
        self._opened.close()

    def _failure(self, result: pq.abc.PGresult, commits: bool) -> CallFailed:
        code = (result.error_field(pq.DiagnosticField.SQLSTATE) or b"").decode()
        if code:
            # `error_message` begins with the severity, "ERROR:  ", which makes no part of a sentence.
            primary = result.error_field(pq.DiagnosticField.MESSAGE_PRIMARY) or b""
            message = first_line(primary.decode(errors="replace"))
            # A cancelled call (57014) has not committed: once the commit is being written, a cancel is not heeded,
            # and where a commit waits for a standby it ends that wait with a warning, and the call as one that
            # committed.
            # A session that refuses writes by our wish has lost no server.
            kind = ErrorClass.OTHER if code == READ_ONLY and self._refuses_writes else classify(code)
            if self._connection.status == pq.ConnStatus.BAD and not kind.fatal:
                # FATAL rolls back; in a PANIC or the crash of another session the commit may have reached the disk.
                severity = result.error_field(pq.DiagnosticField.SEVERITY_NONLOCALIZED)
                crashed = severity == b"PANIC" or code == "57P02"
                kind = ErrorClass.UNKNOWN_OUTCOME if crashed and commits else ErrorClass.CONNECTION_LOST
            return CallFailed(kind, code, message)
        # No code: libpq itself lost the server while the call was under way; the connection has its last word.
        return self._unanswered(None, commits)

    def _unanswered(self, result: pq.abc.PGresult | None, commits: bool) -> CallFailed:
        """Return the failure of a connection that was lost; `result` holds the server's last words, if it had any."""
        kind = ErrorClass.UNKNOWN_OUTCOME if commits else ErrorClass.CONNECTION_LOST
        words = (result or self._connection).error_message
        return CallFailed(kind, "08006", first_line(words.decode(errors="replace")))


def _as_text(parameters: Sequence[Any]) -> list[bytes | None]:
    return [None if value is None else str(value).encode() for value in parameters]
