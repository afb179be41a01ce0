"""The lock in a database that only one run holds at a time."""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from select import select
from typing import NamedTuple

import psycopg
from psycopg import pq

from stallmark.engines import sql_file
from stallmark.engines.abilities import ServerSession
from stallmark.engines.postgres.address import PostgresServer
from stallmark.engines.postgres.session import as_call_failed, first_line
from stallmark.errors import RunLockTaken, ServerLost, StallmarkError

RUN_LOCK = "stallmark.run"
_BACK_WITHIN_S, _ASK_EVERY_S = 4.0, 0.5  # longest wait for a server that starts again
ANSWERS_WITHIN_S = 5.0


class _Server(NamedTuple):
    started: float
    is_standby: bool
    address: str
    timeline: str | None = None  # not known of a standby, nor of Aurora


class HeldLock:
    """A lock that a session holds. A call checks that it is still held, and raises ServerLost when it is gone."""

    def __init__(self, engine: PostgresServer, name: str):
        """Take it. Raise RunLockTaken."""
        self._engine, self._name = engine, name
        self._acquire()

    def __call__(self) -> None:
        _check(self._engine, self._connection, self._server)

    def retake(self) -> None:
        """Take it again, after a restart of the server that we had asked for. Raise RunLockTaken."""
        self.close()
        self._acquire()

    def unlock(self) -> str | None:
        """Release it; return a sentence if this session had lost it."""
        return _unlock(self._engine, self._connection, self._name)

    def close(self) -> None:
        self._connection.close()

    def _acquire(self) -> None:
        self._connection = self._engine.connect("stallmark-run")
        try:
            with as_call_failed():
                is_ours = _answer(self._connection, "pg_try_advisory_lock", self._name)
                self._server = _identify_server(self._connection)
            if not is_ours:
                raise RunLockTaken(_taken_message(self._engine, self._name))
        except BaseException:
            self.close()
            raise


@contextmanager
def hold(engine: PostgresServer, name: str = RUN_LOCK) -> Iterator[HeldLock]:
    """Hold a lock by a session: it ends with it, whatever happens to this process."""
    held = HeldLock(engine, name)
    try:
        try:
            yield held
        except BaseException as reason:
            if lost := held.unlock():
                reason.add_note(lost)
            raise
        if lost := held.unlock():
            raise StallmarkError(lost)
    finally:
        held.close()


def _answer(connection: psycopg.Connection, function: str, name: str) -> bool:
    row = connection.execute(f"SELECT {function}(hashtext('{name}'))").fetchone()
    return row == (True,)


def _identify_server(connection: psycopg.Connection) -> _Server:
    [row] = connection.execute(sql_file.statement(__name__, "which_server")).fetchall()
    server = _Server(*row)
    with suppress(psycopg.Error):
        [(timeline,)] = connection.execute(sql_file.statement(__name__, "timeline")).fetchall()
        server = server._replace(timeline=timeline)
    return server


def holders(engine: PostgresServer, name: str = RUN_LOCK) -> list[ServerSession]:
    """Return the sessions that have the lock."""
    return [ServerSession(*row) for row in engine.query(sql_file.statement(__name__, "lock_holders"), [name])]


def _taken_message(engine: PostgresServer, name: str) -> str:
    holder = next(iter(holders(engine, name)), None)
    if holder is None:  # it has ended meanwhile
        return f"Another Stallmark drives {engine.location}: two runs would disturb each other: wait for it."
    end = f"SELECT pg_terminate_backend({holder.number})"
    if not holder.is_ours:
        return (
            f"The lock on {engine.location} that every run takes is held by {holder}, which is not Stallmark's: end it "
            f"({end}), and run again."
        )
    return (
        f"Another Stallmark drives {engine.location} by {holder}: two runs would disturb each other: wait for it, or, "
        f"if none is under way, end that session ({end})."
    )


def _unlock(engine: PostgresServer, connection: psycopg.Connection, name: str) -> str | None:
    """Release the lock; return a sentence if this session had lost it. A closed session releases the lock when its
    process ends: too late for a command that asks at once.
    """
    if connection.pgconn.transaction_status == pq.TransactionStatus.ACTIVE:  # the server hangs
        return None
    with suppress(psycopg.OperationalError):  # then it went with its session
        if not _answer(connection, "pg_advisory_unlock", name):
            return (
                f"The lock on {engine.location} that every run takes was lost before the end: another run may have "
                "begun meanwhile, so do not rely on these figures: run again."
            )
    return None


def _check(engine: PostgresServer, connection: psycopg.Connection, server: _Server) -> None:
    try:
        reads_only = _ask_for_sign_of_life(connection)
    except psycopg.OperationalError as error:
        raise ServerLost(
            f"The lock on {engine.location} that every run takes is gone ({first_line(error)}): "
            f"{_explain_loss(engine, server)}, and another run may have begun, so this one ends: run again."
        ) from None
    if reads_only:
        raise ServerLost(
            f"{engine.location} has become read-only ({reads_only}), so this run ends: run again when it can "
            "be written."
        )


def _ask_for_sign_of_life(connection: psycopg.Connection) -> str:
    """Ask for an answer, and return why the server only reads since, as a clause; "" if it does not. Raise
    psycopg.OperationalError if the session is gone. A server that hangs is waited for ANSWERS_WITHIN_S, and its answer
    is read by the next call."""
    session, reads_only = connection.pgconn, ""
    if session.transaction_status != pq.TransactionStatus.ACTIVE:
        session.send_query(sql_file.statement(__name__, "reads_only").encode())
    until = time.monotonic() + ANSWERS_WITHIN_S
    while session.is_busy():
        if not select([session.socket], [], [], max(0.0, until - time.monotonic()))[0]:
            return ""
        session.consume_input()
    while result := session.get_result():
        if result.status == pq.ExecStatus.FATAL_ERROR:
            raise psycopg.OperationalError(result.error_message.decode(errors="replace"))
        reads_only = (result.get_value(0, 0) or b"").decode()
    return reads_only


def _explain_loss(engine: PostgresServer, before: _Server) -> str:
    """Return the state of the server after the loss, as a clause. A server that is away may be starting again."""
    until = time.monotonic() + _BACK_WITHIN_S
    while True:
        try:
            connection = engine.connect()
        except StallmarkError:
            if time.monotonic() > until:
                return "the server is away"
            time.sleep(_ASK_EVERY_S)
            continue
        try:
            now = _identify_server(connection)
        except psycopg.Error:
            return "the server is away"
        finally:
            connection.close()
        return _difference(before, now)


def _difference(before: _Server, now: _Server) -> str:
    if now.address != before.address:
        return f"the address led to {before.address} and leads to {now.address} since, as after a failover"
    if now.is_standby:
        return "the address leads to a standby since, as after a failover"
    if now.timeline and before.timeline and now.timeline != before.timeline:
        return "the address leads to a server that was a standby until then, as after a failover"
    if now.started != before.started:
        return "the server was restarted"
    return "somebody ended our session, a process of the server crashed, or the network was interrupted"
