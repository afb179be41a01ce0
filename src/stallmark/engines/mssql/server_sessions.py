"""The sessions of others: in a database, before ours at a lock, and with a lock of ours."""

from collections.abc import Sequence

from stallmark.engines import sql_file
from stallmark.engines.mssql.server import Server
from stallmark.engines.mssql.view_rights import ALL_STATE, sees_all_sessions
from stallmark.engines.server_session import ServerSession
from stallmark.errors import CallFailed


def other_sessions(server: Server) -> list[ServerSession]:
    return _read(server, "other_sessions")


def why_hidden(server: Server) -> str | None:
    """Return why the login does not see the sessions of others: without the right it sees its own, and no error."""
    try:
        server.query(sql_file.read(__package__, "other_sessions"))  # Babelfish may lack a view or column
        if server.is_babelfish or sees_all_sessions(server):
            return None
    except CallFailed as failure:
        return failure.message
    return f"this login sees its own alone, and needs {ALL_STATE.name(server)}"


def blockers(server: Server) -> list[ServerSession]:
    return _read(server, "blockers")


def lock_holders(server: Server, name: str) -> list[ServerSession]:
    return _read(server, "lock_holders", [name])


def _read(server: Server, name: str, parameters: Sequence[str] | None = None) -> list[ServerSession]:
    try:
        rows = server.query(sql_file.read(__package__, name), parameters)
    except CallFailed:  # needs VIEW SERVER STATE; Babelfish lacks a view or column
        return []
    return [ServerSession(number, *(text or "" for text in texts)) for number, *texts in rows]
