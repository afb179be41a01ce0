"""A database on a SQL Server: the way to it, its statements, product, edition and compatibility."""

import re
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

from stallmark.engines import did_you_mean, sql_file
from stallmark.engines.base import Login, ServerIdentity
from stallmark.engines.mssql.address import (
    AZURE_DATABASE,
    BOX,
    LOGIN_TIMEOUT_S,
    MANAGED_INSTANCE,
    Address,
    Service,
    recognise,
)
from stallmark.engines.mssql.odbc import (
    api,
    execute,
    failed,
    fetch_every_type,
    find_driver,
    handshake_remedy,
    loaded_driver,
    lost_connections,
    one_row,
    rows,
    stay_open,
)
from stallmark.engines.mssql.odbc import name as quoted
from stallmark.errors import CallFailed, NoConnection, StallmarkError
from stallmark.stopping import hearing

# A database on a SQL Server: the way to it, its statements, and which product and edition it is.


OLDEST_MAJOR = 14  # SQL Server 2017
SQL_SERVER_2019, SQL_SERVER_2022, SQL_SERVER_2025 = 15, 16, 17

# Editions by their number (SERVERPROPERTY('EngineEdition')).
STANDARD, ENTERPRISE, EXPRESS = 2, 3, 4
AZURE = (AZURE_DATABASE, MANAGED_INSTANCE)

_CHECK = "Check host and port, and that the server is running and takes TCP/IP"
_WHY_NO_CONNECTION = {
    18456: "the login was refused: check user and password (SQLCMDPASSWORD)",
    4060: "the database cannot be opened: check its name and the user's right to it",
    18452: "Windows authentication is not possible from here: name a user in the URL",
}

_IDENTITY = """\
SELECT CAST(SERVERPROPERTY('ProductVersion') AS nvarchar(128)),
       CAST(SERVERPROPERTY('ProductLevel') AS nvarchar(128)),
       CAST(SERVERPROPERTY('Edition') AS nvarchar(128)),
       CAST(SERVERPROPERTY('EngineEdition') AS int),
       @@VERSION
"""
_NAME = "SELECT CAST(SERVERPROPERTY('ServerName') AS nvarchar(128)) AS name"
_IS_THERE = "1801"  # CREATE DATABASE: DB_ID is NULL for a login without VIEW ANY DATABASE, whatever is there

_OWN = "stallmark-collector"
# Undoes what a statement can leave behind, and asks for what it can have set otherwise.
_AS_NEW = """\
IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION;
SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
SELECT DB_ID() AS database_id, @@OPTIONS AS options, @@LOCK_TIMEOUT AS lock_timeout_ms
"""


@dataclass
class _Logins:
    """The logins to all databases of a server."""

    lost: int | None = None
    """The number of connections that this process had lost before the last login; None if that one failed."""

    idle: dict[str, list[Any]] | None = None
    """Connections that are not in use, by database; None outside of `few_logins`."""

    def succeed(self) -> bool:
        """Return True if the last login succeeded, and no connection was lost since. Otherwise a TCP connect is tried
        before a login, as a login at a missing server would take the driver's whole timeout."""
        return self.lost == lost_connections()


class Server:
    """A database on a server named by URL; see `address` for how it is written.

    Each statement logs in by itself, except within `few_logins`.
    """

    def __init__(self, url: str):
        self.address = Address.parse(url)
        self.driver = find_driver()
        self.loaded_driver = ""  # file and version, from the first connection on
        self._logins = _Logins()

    def on_database(self, name: str) -> Self:
        """Return the same server and login, in another database."""
        other = type(self)(replace(self.address, database=name).url())
        other._logins = self._logins
        return other

    def database_name(self) -> str:
        """Return the name as the database was made; a URL may write it in other capitals."""
        [(name,)] = self.query("SELECT DB_NAME()")
        return name

    def has_database(self, name: str) -> bool:
        [(number,)] = self.on_database("master").query("SELECT DB_ID(?)", [name])
        return number is not None

    def make_database(self, name: str) -> None:
        try:
            master = self.on_database("master")
            master.execute(f"CREATE DATABASE {quoted(name)}")
            if not (self.is_babelfish or self.edition in AZURE):  # these have no AUTO_CLOSE
                master.execute(stay_open(name))
        except CallFailed as error:
            if error.code == _IS_THERE:
                raise StallmarkError(
                    f"The database {name} is on {self.address.server}, and hidden from this login: GRANT VIEW ANY "
                    f"DATABASE TO it{self.service.grantor}, or name another."
                ) from None
            raise StallmarkError(
                f"The database {name} is not on {self.address.server} and could not be made ({error.message}): create "
                f"it, or GRANT CREATE ANY DATABASE TO this login{self.service.grantor}."
            ) from None

    @property
    def location(self) -> str:
        return self.address.location

    def spec(self) -> str:
        return self.address.url()

    def login(self) -> Login:
        return Login(self.address.host, self.address.user or "", self.address.password or "")

    def connect(self, application: str = _OWN, *, autocommit: bool = True) -> Any:
        lost, was_reached = lost_connections(), self._logins.succeed()
        if not was_reached and (reason := hearing(self._unreachable_reason)):
            raise NoConnection(f"No connection to {self.location}: {reason}.")
        text = self.address.connection_string(self.driver, application)
        try:
            connection = hearing(lambda: api().connect(text, autocommit=autocommit, timeout=LOGIN_TIMEOUT_S))
            try:
                self.loaded_driver = loaded_driver(connection)
            except StallmarkError:
                _close(connection)
                raise
            fetch_every_type(connection)
        except api().Error as error:
            self._logins.lost = None
            # In this thread, which may have the lock of a cached property that the reason asks for.
            reason = (was_reached and hearing(self._unreachable_reason)) or self.no_connection_reason(error)
            raise NoConnection(f"No connection to {self.location}: {reason}. The driver was {self.driver}.") from None
        self._logins.lost = lost
        return connection

    def _unreachable_reason(self) -> str | None:
        if reason := self.address.unreachable_reason():
            return f"{reason}. {did_you_mean('mssql', self.address.port) or _CHECK}"
        return None

    @contextmanager
    def few_logins(self) -> Iterator[None]:
        if self._logins.idle is not None:
            yield
            return
        self._logins.idle = defaultdict(list)
        try:
            yield
        finally:
            self.close_idle()
            self._logins.idle = None

    def close_idle(self) -> None:
        """Close idle connections to the server's databases; the next query logs in again. This is for statements that
        need a database alone, and to find the server behind the address."""
        for connections in list((self._logins.idle or {}).values()):
            for connection in _emptied(connections):
                _close(connection)

    @contextmanager
    def cursor(self, application: str = _OWN) -> Iterator[Any]:
        """Yield a cursor. Within `few_logins` its session is used again: it may leave no lock and no temporary table.

        A session under another name than our own is always new, as the server sorts sessions when they log in.
        """
        try:
            connection, state = self._checkout() if application == _OWN else (self.connect(application), None)
            cursor, is_whole = connection.cursor(), True
            try:
                yield cursor
            except BaseException as error:
                is_whole = isinstance(error, api().Error)  # else it was broken off, nobody knows where
                raise
            finally:
                if not (is_whole and state and self._keep(connection, cursor, state)):
                    _close(connection)
        except api().Error as error:
            raise failed(error) from error

    def _checkout(self) -> tuple[Any, tuple | None]:
        """Return a connection with the state of its session: an idle one that answers, or a new one. No state outside
        of `few_logins`."""
        idle = self._logins.idle
        if idle is None:
            return self.connect(), None
        if not self._logins.succeed():  # others may have been cut with the one that was lost, or lead to a lost server
            self.close_idle()
        for connection in _emptied(idle[self.address.database]):
            if state := _state(connection):
                return connection, state
            _close(connection)
            self.close_idle()  # each would be waited for as long
        connection = self.connect()
        return connection, _state(connection)

    def _keep(self, connection: Any, cursor: Any, state: tuple) -> bool:
        """Put a connection back among the idle ones, if its session has the state of before; return True if so."""
        try:
            # Rows that nothing fetched would keep the connection busy.
            cursor.close()
            connection.clear_output_converters()  # SQLAlchemy sets them
            fetch_every_type(connection)
        except api().Error:
            return False
        idle = self._logins.idle
        if idle is None or _state(connection) != state:
            return False
        idle[self.address.database].append(connection)
        return True

    def execute(self, sql: str) -> None:
        with self.cursor() as cursor:
            execute(cursor, sql)

    def query(self, sql: str, parameters: Any = None) -> list[tuple]:
        with self.cursor() as cursor:
            return rows(cursor.execute(sql, *(parameters or ())))

    def no_connection_reason(self, error: Exception) -> str:
        """Return the reason why the driver could not connect and what to do, as a clause without a full stop."""
        failure = failed(error)
        number = int(failure.code) if failure.code.isdigit() else 0
        if number in _WHY_NO_CONNECTION:
            return _WHY_NO_CONNECTION[number]
        if remedy := handshake_remedy(error):
            return f"{failure.message}. {remedy}"
        if hint := did_you_mean("mssql", self.address.port):
            return f"{failure.message}. {hint}"
        if failure.code in ("HYT00", "08001"):
            return f"{failure.message}. {_CHECK}"
        return failure.message

    def name(self) -> str:
        """Return the name the server has for itself: a URL may name it in several ways, and a listener may lead to
        another server than before."""
        [(name,)] = self.query(_NAME)
        return name

    def identity(self) -> ServerIdentity:
        return self._identity[0]

    @property
    def edition(self) -> int:
        return self._identity[1]

    @cached_property
    def service(self) -> Service:
        """Return the managed service that runs the server, or BOX without one."""
        return BOX if self.is_babelfish else recognise(self.edition, self.query)

    @property
    def is_azure_database(self) -> bool:
        return self.edition == AZURE_DATABASE

    @property
    def is_babelfish(self) -> bool:
        return self.identity().product == "Babelfish"

    def has_version(self, major: int) -> bool:
        """Return True if this is at least that major version; the cloud is ahead of every version."""
        return self.edition in AZURE or self.identity().version[0] >= major

    @cached_property
    def _identity(self) -> tuple[ServerIdentity, int]:
        version, level, edition, engine_edition, banner = one_row(self.query(_IDENTITY), 5)
        major, minor = (int(part) for part in version.split(".")[:2])
        if "Babelfish" in banner:
            return ServerIdentity("Babelfish", (major, minor), _babelfish_version(banner)), engine_edition
        # Cloud servers call themselves version 12 for ever.
        if major < OLDEST_MAJOR and engine_edition not in AZURE:
            raise StallmarkError(f"{self.location} runs SQL Server {version}; Stallmark needs 2017 (14.0) or later.")
        return ServerIdentity("SQL Server", (major, minor), f"{version} {level} {edition}"), engine_edition

    def free_bytes(self) -> int | None:
        """Return the free bytes in the data files and on the fullest volume with a data file; None if they are not
        reported.
        """
        try:
            [(free,)] = self.query(sql_file.statement(__name__, "free_space"))
        except CallFailed:
            return None
        return free


def _state(connection: Any) -> tuple | None:
    """Roll back an open transaction, and return other state left in a session; None if it does not answer."""
    try:
        connection.timeout = LOGIN_TIMEOUT_S  # applies to cursors made from now on
        state = rows(connection.execute(_AS_NEW))
        connection.timeout = 0
    except api().Error as error:
        failed(error)  # counts the connection, if it is lost
        return None
    return state[0] if state else None


def _emptied(connections: list[Any]) -> Iterator[Any]:
    """Yield the items of the list and remove them. Other threads may do so too."""
    with suppress(IndexError):
        while True:
            yield connections.pop()


def _close(connection: Any) -> None:
    with suppress(api().Error):  # it may have been cut meanwhile
        connection.close()


def _babelfish_version(banner: str) -> str:
    """Return the version of Babelfish itself, or of SQL Server without Babelfish. Babelfish's follows that of the SQL
    Server it emulates."""
    version = re.search(r"\(Babelfish ([\d.]+)\)", banner) or re.search(r"Compatibility - ([\d.]+)", banner)
    return version[1] if version else banner.splitlines()[0]


# The version of SQL Server that a database is compatible with, and the least that its procedures need.

LEAST_LEVEL = 130
WHY_LEAST_LEVEL = (
    f"the procedures call STRING_SPLIT, which compatibility level {LEAST_LEVEL} brought; what is wanted of an older "
    "one is mostly its cardinality estimator, which every level has"
)
_LEVEL = "SELECT compatibility_level FROM sys.databases WHERE database_id = DB_ID()"


def compatibility_message(server: Server) -> str | None:
    """Return a sentence if the database is compatible with too old a version, else None."""
    if server.is_babelfish:
        return None
    [(level,)] = server.query(_LEVEL)
    if level >= LEAST_LEVEL:
        return None
    return (
        f"The database has compatibility level {level}, and {WHY_LEAST_LEVEL}: ALTER DATABASE "
        f"{quoted(server.address.database)} SET COMPATIBILITY_LEVEL = {LEAST_LEVEL}, and ALTER DATABASE SCOPED "
        "CONFIGURATION SET LEGACY_CARDINALITY_ESTIMATION = ON."
    )


# AUTO_CLOSE: a database that has it closes once no session is in it, and its pages leave the buffer pool.
#
# Databases made on Express have it, and a restore brings back what the copy had.

_IS_ON = "SELECT is_auto_close_on FROM sys.databases WHERE database_id = DB_ID()"


def auto_close_advice(server: Server) -> str | None:
    """Return the losses of a database that closes, with the remedy, as a clause; None if it stays open."""
    if server.identity().product != "SQL Server":
        return None
    if not any(is_on for (is_on,) in server.query(_IS_ON)):
        return None
    return (
        "the database closes once no session is in it (AUTO_CLOSE), and all that was in memory is lost: run "
        f"{stay_open(server.address.database)}"
    )
