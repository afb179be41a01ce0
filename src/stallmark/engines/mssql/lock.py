"""The lock that only one run holds at a time, and the sessions of others."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any, NamedTuple

from stallmark.engines import sql_file
from stallmark.engines.abilities import ServerSession
from stallmark.engines.mssql.odbc import api, failed, rows
from stallmark.engines.mssql.server import Server
from stallmark.engines.mssql.settings import ALL_STATE, sees_all_sessions
from stallmark.errors import CallFailed, ErrorClass, NoConnection, RunLockTaken, ServerLost, StallmarkError

# The sessions of others: in a database, before ours at a lock, and with a lock of ours.


def hidden_sessions_reason(server: Server) -> str | None:
    """Return the reason why the login does not see the sessions of others: without the right it sees its own, and no
    error.
    """
    try:
        server.query(sql_file.statement(__name__, "other_sessions"))  # Babelfish may lack a view or column
        if server.is_babelfish or sees_all_sessions(server):
            return None
    except CallFailed as failure:
        return failure.message
    return f"this login sees its own alone, and needs {ALL_STATE.name(server)}"


def sessions(server: Server, name: str, parameters: Sequence[str] | None = None) -> list[ServerSession]:
    """Return the sessions of a statement, by its name; none if this login may not see them."""
    try:
        rows = server.query(sql_file.statement(__name__, name), parameters)
    except CallFailed:  # needs VIEW SERVER STATE; Babelfish lacks a view or column
        return []
    return [ServerSession(number, *(text or "" for text in texts)) for number, *texts in rows]


# The lock on a server that only one run holds at a time.


# In `master`, where everybody may be: application locks belong to a database, settings to the server. It waits for a
# moment because Babelfish calls it an error (-999) when a lock is not to be had at once.
_TAKE = """\
DECLARE @taken integer;
EXEC @taken = sp_getapplock
    @Resource = 'stallmark.run', @LockMode = 'Exclusive', @LockOwner = 'Session', @LockTimeout = 100;
SELECT @taken AS taken;
"""
# Whether the session is there would not do: the driver replaces a lost one without a word.
_CHECK = "SELECT APPLOCK_MODE('public', 'stallmark.run', 'Session') AS mode"
CHECK_WITHIN_S = 5
_STARTED = "SELECT i.sqlserver_start_time FROM sys.dm_os_sys_info AS i"

# What sp_getapplock returns below -1, and what it means for us.
_NOT_TAKEN = {
    -2: "The lock on {server} that every run takes was asked for and cancelled: run again.",
    -3: "The lock on {server} that every run takes was refused as the victim of a deadlock: run again.",
}
_FAILED = (
    "The lock on {server} that every run takes cannot be asked for (sp_getapplock returns {taken}): see whether this "
    "login may execute sp_getapplock in master."
)


class _Identity(NamedTuple):
    name: str
    started: datetime | None  # None without VIEW SERVER STATE


@contextmanager
def hold(server: Server) -> Iterator[Callable[[], None]]:
    """Hold the run lock by a session. The lock ends with the session, however this process or the server ends.

    Yield a check that it is still held, which raises ServerLost when it is gone.
    """
    place = server if server.is_azure_database else server.on_database("master")
    connection = place.connect("stallmark-run")
    try:
        try:
            [(taken,)] = rows(connection.execute(_TAKE))
        except api().Error as error:
            raise failed(error) from None
        if taken == -1:
            raise RunLockTaken(_taken_message(place))
        if taken < 0:
            raise StallmarkError(_NOT_TAKEN.get(taken, _FAILED).format(server=server.address.server, taken=taken))
        connection.timeout = CHECK_WITHIN_S
        before = _identify_server(place)
        yield lambda: _check(connection, place, before)
    finally:
        with suppress(api().Error):  # the server may have ended it
            connection.close()


def _taken_message(server: Server) -> str:
    where = server.address.server
    holder = next(iter(sessions(server, "lock_holders", ["stallmark.run"])), None)
    if holder and not holder.is_ours:
        return (
            f"The lock on {where} that every run takes is held by {holder}, which is not Stallmark's: end it (KILL "
            f"{holder.number}), and run again."
        )
    return (
        f"Another Stallmark drives {where}{f' by {holder}' if holder else ''}: two runs would disturb each other, and "
        "restore each other's settings. Wait for it, or stop it."
    )


def _check(connection: Any, server: Server, before: _Identity) -> None:
    """Check the lock, which was taken on the server `before`."""
    try:
        [(mode,)] = rows(connection.execute(_CHECK))
        reason = "" if mode == "Exclusive" else "its session was replaced"
    except api().Error as error:
        failure = failed(error)
        if failure.kind is ErrorClass.TIMEOUT:  # busy, not gone
            return
        reason = failure.message
    if reason:
        raise ServerLost(
            f"The lock on {server.address.server} that every run takes is gone ({reason}): "
            f"{_explain_loss(server, before)}. Another run may have begun, so this one ends: run again."
        )


def _identify_server(server: Server) -> _Identity:
    name = server.name()
    try:
        [(started,)] = server.query(_STARTED)
    except (CallFailed, ValueError):
        started = None
    return _Identity(name, started)


def _explain_loss(server: Server, before: _Identity) -> str:
    """Return the state of the server after the loss, as a clause."""
    server.close_idle()  # those may be of a server that the address leads to no more
    try:
        now = _identify_server(server)
    except NoConnection:
        return "the server is away"
    except CallFailed:
        now = before._replace(started=None)
    if now.name != before.name:
        return f"its address led to {before.name} and leads to {now.name} since, as after a failover"
    if now.started is None or before.started is None:
        return "the server was restarted, or somebody ended our session"
    if now.started != before.started:
        return "the server was restarted"
    return "somebody ended our session, or the network was interrupted"
