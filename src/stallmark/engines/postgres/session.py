"""A virtual user's connection to PostgreSQL."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import psycopg
from psycopg import pq

from stallmark.engines import sql_file
from stallmark.engines.base import Isolation, OwnIO, Session
from stallmark.engines.postgres.errors import classify, first_line
from stallmark.errors import CallFailed, ErrorClass

TELLS_OWN_IO = 180_000  # pg_stat_get_backend_io came with 18

# By type identifier (pg_type.dat); everything else stays text.
_DECODERS: dict[int, Any] = {20: int, 21: int, 23: int, 700: float, 701: float, 16: b"t".__eq__}


_ROWS, _DONE = (int(pq.ExecStatus.TUPLES_OK), int(pq.ExecStatus.COMMAND_OK))  # their enumeration compares slowly
_BEGIN = {each: f"BEGIN ISOLATION LEVEL {each}".encode() for each in Isolation}

_MAKE_KNOWN, _OWN_IO = "stallmark_make_known", "stallmark_own_io"


class AnswerRows(Sequence[tuple]):
    """The rows of an answer, each decoded when it is read: most frames' rows are only counted."""

    def __init__(self, result: pq.abc.PGresult, decoders: Sequence[tuple[int, Any]]):
        """`decoders` are (column, from bytes)."""
        self._result = result
        self._decoders = decoders

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
    (0.67 of pgbench's rate against 0.93 and more)."""

    dialect = "postgresql"

    def __init__(self, conninfo: str):
        self._connection = pq.PGconn.connect(conninfo.encode())
        if self._connection.status != pq.ConnStatus.OK:
            message = first_line(self._connection.error_message.decode(errors="replace"))
            raise CallFailed(ErrorClass.CONNECTION_LOST, "08001", message)
        self._decoders: dict[str, list[tuple[int, Any]]] = {}
        self._in_transaction = False
        self._tells_own_io = self._connection.server_version >= TELLS_OWN_IO
        self._own_io_prepared = False
        self.server_pid = self._connection.backend_pid

    @property
    def is_lost(self) -> bool:  # type: ignore[override]
        return self._connection.status != pq.ConnStatus.OK

    def prepare(self, name: str, sql: str) -> None:
        try:
            result = self._connection.prepare(name.encode(), sql.encode())
        except psycopg.OperationalError as error:
            raise CallFailed(ErrorClass.CONNECTION_LOST, "08006", first_line(error)) from None
        if result.status != _DONE:
            raise self._failure(result, commits=False)

    def call(self, name: str, parameters: Sequence[Any], *, commits: bool = True) -> Sequence[tuple]:
        try:
            result = self._connection.exec_prepared(
                name.encode(),
                [None if p is None else str(p).encode() for p in parameters],  # type: ignore[misc]
            )
        except psycopg.OperationalError as error:  # nothing was sent on a connection known to be broken
            raise CallFailed(ErrorClass.CONNECTION_LOST, "08006", first_line(error)) from None
        if result.status == _ROWS:
            decoders = self._decoders.get(name)
            if decoders is None:
                decoders = [(c, _DECODERS.get(result.ftype(c), bytes.decode)) for c in range(result.nfields)]
                self._decoders[name] = decoders
            return AnswerRows(result, decoders)
        if result.status == _DONE:
            return []
        failure = self._failure(result, commits and not self._in_transaction)
        self.roll_back()
        raise failure

    def begin(self, isolation: Isolation) -> None:
        self._execute(_BEGIN[isolation], commits=False)
        self._in_transaction = True

    def commit(self) -> None:
        if self._in_transaction:
            self._in_transaction = False
            self._execute(b"COMMIT", commits=True)

    def roll_back(self) -> None:
        if self._in_transaction:
            self._in_transaction = False
            if self._connection.status == pq.ConnStatus.OK:
                self._execute(b"ROLLBACK", commits=False)

    def _execute(self, statement: bytes, *, commits: bool) -> None:
        try:
            result = self._connection.exec_(statement)
        except psycopg.OperationalError as error:
            raise CallFailed(ErrorClass.CONNECTION_LOST, "08006", first_line(error)) from None
        if result.status != _DONE:
            raise self._failure(result, commits)

    def own_io(self) -> OwnIO | None:
        """Return the session's own I/O. A session makes known what it counts when it becomes idle, at most once
        a second unless it is told to: what the first statement asks for happens at its end, and the second one
        sees it."""
        if not self._tells_own_io:
            return None
        if not self._own_io_prepared:
            self.prepare(_MAKE_KNOWN, "SELECT pg_stat_force_next_flush()")
            self.prepare(_OWN_IO, sql_file.read(__package__, "own_io"))
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
        self._connection.finish()

    def _failure(self, result: pq.abc.PGresult, commits: bool) -> CallFailed:
        code = (result.error_field(pq.DiagnosticField.SQLSTATE) or b"").decode()
        if code:
            message = first_line(result.error_message.decode(errors="replace"))
            # A cancelled call (57014) has not committed: once the commit is being written, a cancel is not heeded, and
            # where a commit waits for a standby it ends that wait with a warning, and the call as one that committed.
            kind = classify(code)
            if self._connection.status == pq.ConnStatus.BAD and not kind.fatal:
                # FATAL rolls back; in a PANIC or the crash of another session the commit may have reached the disk.
                severity = result.error_field(pq.DiagnosticField.SEVERITY_NONLOCALIZED)
                crashed = severity == b"PANIC" or code == "57P02"
                kind = ErrorClass.UNKNOWN_OUTCOME if crashed and commits else ErrorClass.CONNECTION_LOST
            return CallFailed(kind, code, message)
        # No code: libpq itself lost the server while the call was under way; the connection has its last word.
        kind = ErrorClass.UNKNOWN_OUTCOME if commits else ErrorClass.CONNECTION_LOST
        return CallFailed(kind, "08006", first_line(self._connection.error_message.decode(errors="replace")))
