"""An address: that it leads to the server itself, and to a database that can be built and driven."""

import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, closing
from typing import Protocol

import psycopg
from psycopg.conninfo import make_conninfo

from stallmark.engines import sql_file
from stallmark.errors import CallFailed, StallmarkError


# A database on a server at an address, as the parts of the engine need it.
class PostgresServer(Protocol):
    @property
    def location(self) -> str: ...
    @property
    def user(self) -> str: ...
    def spec(self) -> str: ...
    def connect(self, application: str = "stallmark-collector") -> psycopg.Connection: ...
    def cursor(self) -> AbstractContextManager[psycopg.Cursor]: ...
    def query(self, sql: str, parameters: Sequence | Mapping | None = None) -> list[tuple]: ...
    def role_settings(self) -> list[tuple[str, str, str]]: ...


# The settings that every session of ours has, whatever the server, the database or the role gives to sessions.

ENDING = ("statement_timeout", "lock_timeout", "idle_session_timeout", "idle_in_transaction_session_timeout")
"""Settings that end a statement or a session, on every version. Our sessions wait without limit."""
SINCE_17 = "transaction_timeout"
"""One more. An older server refuses a session that asks for it."""

_OWN = {name: "0" for name in ENDING} | {"default_transaction_isolation": r"read\ committed"}
_USUAL = {
    "search_path": '"$user",public',  # another one may hide functions of pg_catalog, and takes schemas off names
    "DateStyle": "ISO",  # psycopg reads no other
    "IntervalStyle": "postgres",
}
"""The URL may set these otherwise."""
OWN_SETTINGS = frozenset((*_OWN, *_USUAL, SINCE_17))


def session_options(given: object, *, is_before_17: bool) -> str:
    """Return the start-up options of our sessions: with those that the URL, or PGOPTIONS, gives between."""
    own = _OWN if is_before_17 else _OWN | {SINCE_17: "0"}
    parts = _texts(_USUAL), str(given or os.environ.get("PGOPTIONS", "")), _texts(own)
    return " ".join(filter(None, parts))


def _texts(settings: Mapping[str, str]) -> str:
    return " ".join(f"-c {name}={value}" for name, value in settings.items())


# The proof that an address leads to the server itself, and that our sessions there are as we set them.
#
# A connection pooler gives a session of the server to whoever has a transaction: our locks and settings would stay with
# a session of somebody else's, or be lost. And it may drop the start-up parameter `options`, with which our sessions
# set their time limits.

_ROUNDS = 2
_ADDRESS = "SELECT host(inet_server_addr()), current_setting('port')"
_SHARED = "two connections had the same session of the server. Locks and settings of a session are not kept there"
_RDS_PROXY = "support command-line options"  # "RDS Proxy currently doesn't …", with either apostrophe


def refused_by_pooler(error: object) -> bool:
    """Return True if a connection was refused because of `options`, which every PostgreSQL server accepts."""
    text = str(error)
    return ("startup parameter" in text and "options" in text) or _RDS_PROXY in text


def refuse_indirect(engine: PostgresServer) -> None:
    """Raise StallmarkError if an address keeps no session, or does not let our sessions set their time limits."""
    with engine.cursor() as first:
        # If these differ, something between us and the server answered the login.
        if _pid(first) != first.connection.info.backend_pid:
            with engine.cursor() as other:
                if _share_sessions(first, other):
                    raise StallmarkError(_sentence(engine, _SHARED))
        _refuse_limits(engine, first)


def _share_sessions(first: psycopg.Cursor, other: psycopg.Cursor) -> bool:
    seen = {_pid(first)}
    for _ in range(_ROUNDS):
        if _pid(other) in seen:
            return True
        seen.add(_pid(first))
    return len(seen) > 1


def _pid(cursor: psycopg.Cursor) -> int:
    [(pid,)] = cursor.execute("SELECT pg_backend_pid()").fetchall()
    return pid


def _refuse_limits(engine: PostgresServer, cursor: psycopg.Cursor) -> None:
    limits = [*ENDING, SINCE_17]
    rows = cursor.execute(sql_file.statement(__name__, "session_settings"), [limits]).fetchall()
    for name, value, unit, _ in rows:
        if value != "0":
            given = {setting: statement for setting, _, statement in reversed(engine.role_settings())}
            whose = given.get(name, "ALTER SYSTEM")
            raise StallmarkError(
                f"{name} is {value}{unit} for {engine.user} on {engine.location}, and our sessions cannot set it to 0 "
                f"there, so it would end them: {whose} SET {name} = 0."
            )
    if not any(name == "statement_timeout" and source == "client" for name, _, _, source in rows):
        raise StallmarkError(without_options(engine, "it drops the start-up parameter `options`"))


def without_options(engine: PostgresServer, reason: str) -> str:
    """Return the sentence on a pooler that keeps `options` from the server, whatever else it does."""
    return _sentence(engine, f"{reason}. Our sessions set their time limits by `options`")


def _sentence(engine: PostgresServer, reason: str) -> str:
    return (
        f"{engine.location} is the address of a connection pooler, such as pgbouncer: {reason}, so name the server's "
        f"own address{_server_address(engine)}."
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


# The reasons why a database cannot be built or driven: the server, the settings of our sessions, the role's rights.

READ_ONLY = "default_transaction_read_only"
REPLICATION_ROLE = "session_replication_role"


def reads_only_message(engine: PostgresServer) -> str | None:
    """Return the reason why no session can write, as a sentence, or None."""
    is_standby, reads_only, _, login, *_ = _read(engine, ())
    if is_standby:
        return f"{engine.location} is a standby, which only reads: name its primary{_primary(engine)}."
    if reads_only:
        remedy = _remedy(engine, READ_ONLY, "off")
        return f"Sessions of {login} on {engine.location} only read ({READ_ONLY} is on): {remedy}."
    return None


def unchecked_keys_message(engine: PostgresServer) -> str | None:
    """Return the reason why the server checks no foreign key in our sessions, as a sentence, or None."""
    _, _, is_replica, login, *_ = _read(engine, ())
    if not is_replica:
        return None
    return (
        f"Sessions of {login} on {engine.location} check no foreign keys ({REPLICATION_ROLE} is replica), so a load "
        f"would do less there than elsewhere: {_remedy(engine, REPLICATION_ROLE, 'origin')}."
    )


def missing_right_message(engine: PostgresServer, schemas: Sequence[str]) -> str | None:
    """Return the right that the role lacks, as a sentence, or None. `schemas` are those that a workload's tables are
    in."""
    *_, role, database, creates, is_built, only_read = _read(engine, schemas)
    if only_read:
        return (
            f"{role} may not read and change {only_read} on {engine.location}: name the role that built the database, "
            f"or GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {only_read.partition('.')[0]} TO {role}."
        )
    if not (creates or is_built):
        return f"{role} may create nothing on {engine.location}: GRANT CREATE ON DATABASE {database} TO {role}."
    return None


def _remedy(engine: PostgresServer, setting: str, value: str) -> str:
    whose = next((statement for name, _, statement in engine.role_settings() if name == setting), None)
    return f"{f'{whose} SET {setting} =' if whose else 'set it to'} {value}, or name another role"


def _primary(engine: PostgresServer) -> str:
    """Return the address of the primary as a clause, or nothing if this role does not learn it."""
    try:
        rows = engine.query(sql_file.statement(__name__, "primary"))
    except CallFailed:
        return ""
    return "".join(f", {address}" for (address,) in rows if address)


def _read(engine: PostgresServer, schemas: Sequence[str]) -> tuple:
    [row] = engine.query(sql_file.statement(__name__, "writable"), [[*schemas, "stallmark"]])
    return row
