"""The proof that an address leads to the server itself, and that our sessions there are as we set them.

A connection pooler gives a session of the server to whoever has a transaction: our locks and settings would stay with
a session of somebody else's, or be lost. And it may drop the start-up parameter `options`, with which our sessions set
their time limits.
"""

from contextlib import closing

import psycopg
from psycopg.conninfo import make_conninfo

from stallmark.engines import sql_file
from stallmark.engines.postgres import own_settings
from stallmark.engines.postgres.server import PostgresServer
from stallmark.errors import StallmarkError

_ROUNDS = 2
_ADDRESS = "SELECT host(inet_server_addr()), current_setting('port')"
_SHARED = "two connections had the same session of the server. Locks and settings of a session are not kept there"
_RDS_PROXY = "support command-line options"  # "RDS Proxy currently doesn't …", with either apostrophe


def refused_by_pooler(error: object) -> bool:
    """Return whether a connection was refused for its `options`, which every PostgreSQL server takes."""
    text = str(error)
    return ("startup parameter" in text and "options" in text) or _RDS_PROXY in text


def refuse_indirect(engine: PostgresServer) -> None:
    """Raise StallmarkError if an address keeps no session, or does not let our sessions set their time limits."""
    with engine.cursor() as one:
        if _pid(one) != one.connection.info.backend_pid:  # something between us and the server answered the login
            with engine.cursor() as other:
                if _share_sessions(one, other):
                    raise StallmarkError(_sentence(engine, _SHARED))
        _refuse_limits(engine, one)


def _share_sessions(one: psycopg.Cursor, other: psycopg.Cursor) -> bool:
    seen = {_pid(one)}
    for _ in range(_ROUNDS):
        if _pid(other) in seen:
            return True
        seen.add(_pid(one))
    return len(seen) > 1


def _pid(cursor: psycopg.Cursor) -> int:
    [(pid,)] = cursor.execute("SELECT pg_backend_pid()").fetchall()
    return pid


def _refuse_limits(engine: PostgresServer, cursor: psycopg.Cursor) -> None:
    limits = [*own_settings.ENDING, own_settings.SINCE_17]
    rows = cursor.execute(sql_file.read(__package__, "session_settings"), [limits]).fetchall()
    for name, value, unit, _ in rows:
        if value != "0":
            given = {setting: statement for setting, _, statement in reversed(engine.role_settings())}
            whose = given.get(name, "ALTER SYSTEM")
            raise StallmarkError(
                f"{name} is {value}{unit} for {engine.user} on {engine.where}, and our sessions cannot set it to 0 "
                f"there, so it would end them: {whose} SET {name} = 0."
            )
    if not any(name == "statement_timeout" and source == "client" for name, _, _, source in rows):
        raise StallmarkError(without_options(engine, "it drops the start-up parameter `options`"))


def without_options(engine: PostgresServer, why: str) -> str:
    """Return the sentence on a pooler that keeps `options` from the server, whatever else it does."""
    return _sentence(engine, f"{why}. Our sessions set their time limits by `options`")


def _sentence(engine: PostgresServer, why: str) -> str:
    return (
        f"{engine.where} is the address of a connection pooler, such as pgbouncer: {why}, so name the server's own "
        f"address{_server_address(engine)}."
    )


def _server_address(engine: PostgresServer) -> str:
    """Return the address that the server itself gives, as a clause, or nothing if it does not answer. In a container it
    may be one that leads nowhere from here."""
    # The pooler keeps the session, and its name: without one it would be taken for somebody else's.
    plain = make_conninfo(engine.spec(), options="", connect_timeout=10, application_name="stallmark-collector")
    try:
        with closing(psycopg.connect(plain, autocommit=True)) as connection:
            [(host, port)] = connection.execute(_ADDRESS).fetchall()
    except psycopg.Error:
        return ""
    return f", {host}:{port} as the server calls it" if host else f", on the pooler's machine at port {port}"
