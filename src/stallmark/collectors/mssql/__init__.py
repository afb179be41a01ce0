"""Parts shared by the collectors of SQL Server 2017 and later, Azure SQL Managed Instance and Azure SQL Database.

A query named `<collector>.<major>.sql` serves that major version (14 is 2017, 15 is 2019, 16 is 2022) and all later
ones up to the next file. `<collector>.azure.sql` serves Azure SQL Database, which has other views. Other statements are
in `<collector>.<what>.sql`.

A query of all sessions or databases of the server has `DB_ID()` and `DB_NAME()` in lists: if several databases are
ours, the lists are extended with theirs.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from functools import cached_property
from typing import Any, ClassVar, cast

from stallmark.collectors.sampler import Row, ServerCollector, ServerConnection, name_of
from stallmark.engines import sql_file
from stallmark.engines.base import Engine
from stallmark.engines.mssql.engine import MssqlEngine
from stallmark.engines.mssql.odbc import api, failed, one_row, rows
from stallmark.engines.mssql.odbc import name as quoted
from stallmark.engines.mssql.odbc import text as constant
from stallmark.engines.mssql.server import AZURE
from stallmark.engines.mssql.settings import ALL_STATE, refused_right, required_right, sees_all_sessions
from stallmark.errors import CallFailed, ErrorClass, NoConnection, StallmarkError, as_reason
from stallmark.record.writer import Rows

FORBIDDEN = {"229", "262", "297", "300", "371", "27219"}
"""EXECUTE or SELECT denied, a database's state denied, "no permission to perform this action", a server's state
denied by its old and by its new (2022) name, the error log denied."""
NO_SUCH_VIEW = "208"
_HIDDEN_USERS = "the sessions of the virtual users are hidden from it"

ANSWER_WITHIN_S = 30

# A catalogue that somebody's RESTORE has locked is waited for only so long, and we are the one to give way.
_MANNERS = "SET LOCK_TIMEOUT 5000; SET DEADLOCK_PRIORITY LOW;"

_OURS = re.compile(
    r"(DB_ID|DB_NAME)\(\)( COLLATE \w+)?|SELECT DB_ID\(\) AS database_id,[^()]* FROM sys\.database_files AS here"
)

# The cloud calls itself version 12 and is ahead of every version there is.
_EVERGREEN = 1000


def statement(name: str, major: int) -> str:
    """Return the newest query of this name that a server of this major version understands."""
    text = sql_file.newest(__package__, name, major)
    assert text is not None, name
    return text


def with_databases(text: str, names: Sequence[str]) -> str:
    """Return a query that has these databases where it lists the one of the connection, and the files of each."""

    def ours(match: re.Match[str]) -> str:
        if match[1] is None:
            here, files = match[0].split("FROM sys.")
            parts = (
                here.replace("DB_ID()", f"DB_ID({constant(name)})") + f"FROM {quoted(name)}.sys.{files}"
                for name in names
            )
            return " UNION ALL ".join(parts)
        parts = (f"DB_ID({constant(name)})" if match[1] == "DB_ID" else constant(name) for name in names)
        return ", ".join(part + (match[2] or "") for part in parts)

    return _OURS.sub(ours, text)


def azure_statement(name: str) -> str | None:
    """Return the query for Azure SQL Database, where it has one of its own."""
    own = f"{name}.azure"
    return sql_file.read(__package__, own) if sql_file.exists(__package__, own) else None


def known_as(major: int, edition: int) -> int:
    """Return the major version whose views this server has."""
    return _EVERGREEN if edition in AZURE else major


def ask(engine: MssqlEngine, sql: str, within_s: int | None = None) -> list[tuple]:
    """Return the rows of a statement of its own login. Raise CallFailed, also if it takes longer than `within_s`."""
    with engine.cursor() as cursor:
        connection = cursor.connection
        # pyodbc applies this to cursors made from now on.
        connection.timeout = within_s or ANSWER_WITHIN_S
        try:
            with closing(connection.cursor()) as limited:
                return rows(limited.execute(sql))
        finally:
            # Another session may continue to use it.
            connection.timeout = 0


class CollectorConnection(ServerConnection):
    """A connection that gives way to all others, and waits for no answer longer than ANSWER_WITHIN_S."""

    # One cursor for all queries, because making one costs as much as asking.
    _cursor: Any = None

    def open(self) -> None:
        if self._connection is not None:
            return
        self._connection = self._engine.connect()
        with self._asking():
            self._connection.timeout = ANSWER_WITHIN_S
            self._cursor = self._connection.execute(_MANNERS)

    def rows(self, sql: str) -> Rows:
        self.open()
        with self._asking():
            self._cursor.execute(sql)
            # Skip counts and messages that precede the rows.
            while not self._cursor.description:
                if not self._cursor.nextset():
                    raise StallmarkError("the server answered the query without a table")
            rows = Rows([column[0] for column in self._cursor.description], self._cursor.fetchall())
            # An error after the rows means that they are incomplete, so read to the end.
            while self._cursor.nextset():
                pass
            return rows

    def close(self) -> None:
        connection, self._connection, self._cursor = self._connection, None, None
        if connection is not None:
            with suppress(api().Error):  # it may have gone already
                connection.close()

    @contextmanager
    def _asking(self) -> Iterator[None]:
        try:
            yield
        except api().Error as error:
            failure = failed(error)
            if failure.kind is ErrorClass.CONNECTION_LOST or self._cursor is None:
                self.close()
                raise StallmarkError(f"the connection to the server was lost ({failure.message})") from error
            raise StallmarkError(f"the server refused the query ({failure.message})") from error


class MssqlCollector(ServerCollector):
    connection_type = CollectorConnection

    on_azure: ClassVar[bool] = False
    """Azure SQL Database has the views as well, though it has no query of its own."""

    of_users: ClassVar[bool] = False
    """It reads the users' sessions, which a login may not see."""

    engine: MssqlEngine
    databases: tuple[MssqlEngine, ...]

    def __init__(self, engine: Engine):
        super().__init__(engine)
        self.engine = cast(MssqlEngine, engine)

    @property
    def major(self) -> int:
        return known_as(self.engine.identity().version[0], self.engine.edition)

    @property
    def is_azure(self) -> bool:
        return self.engine.is_azure_database

    @cached_property
    def sql(self) -> str:
        own = azure_statement(self.name) if self.is_azure else None
        text = own or statement(self.name, self.major)
        if self.several and not self.of_each_database:
            return with_databases(text, [name_of(database) for database in self.databases])
        return text

    @property
    def engines_by_prefix(self) -> Mapping[str, MssqlEngine]:
        """Return whom it asks, by what a sentence on one of several databases begins with."""
        if not self.of_each_database or not self.several:
            return {"": self.engine}
        return {f"In {name_of(database)}: ": database for database in self.databases}

    @property
    def permission(self) -> str:
        """The permission that a login needs for it."""
        return required_right(self.sql, self.engine)

    def unavailable(self) -> str | None:
        if reason := self.not_here():
            return reason
        try:
            return self.refusal()
        except NoConnection:
            raise
        except CallFailed as failure:
            return self._refused(failure, self.engine)
        except StallmarkError as error:
            return f"Whether it can be measured is not known ({as_reason(error)})."

    def refusal(self) -> str | None:
        """Return the reason why this server refuses it to this login; None if it does not. Its errors, and
        StallmarkError, are reasons too.
        """
        for where, engine in self.engines_by_prefix.items():
            try:
                ask(engine, self.sql)
            except CallFailed as failure:
                return where + self._refused(failure, engine)
        if self.of_users and not sees_all_sessions(self.engine):
            return self.forbidden(_HIDDEN_USERS, ALL_STATE.name(self.engine))
        return None

    def limitation(self) -> str | None:
        try:
            return self.limits()
        except NoConnection:
            raise
        except (CallFailed, StallmarkError) as error:
            reason = error.message if isinstance(error, CallFailed) else as_reason(error)
            return f"Whether all of it can be measured is not known ({reason})."

    def limits(self) -> str | None:
        """Return the same as `limitation`. An error is a reason too."""
        return None

    def not_here(self) -> str | None:
        """Return the reason why such a server has nothing of the kind, whatever the login."""
        product = self.engine.identity().product
        if product != "SQL Server":
            return f"{product} has none of SQL Server's management views."
        if self.is_azure and self.several:
            return (
                "Each database of Azure SQL Database has a server of its own: this is shown of one database at a time."
            )
        if self.is_azure and not self.on_azure and azure_statement(self.name) is None:
            return "Azure SQL Database does not show this; SQL Server and Azure SQL Managed Instance do."
        return None

    def sample_alone(self) -> Sequence[Row]:
        """Take a sample beside the sampler's, whether the connection is open or not."""
        with closing(self.connection):
            self.connection.open()
            return self.sample(0.0)

    def forbidden(self, reason: str, permission: str | None = None, engine: MssqlEngine | None = None) -> str:
        """Return the sentence for a login that may not see what a collector reads; `permission` where not its own,
        `engine` of the database where it is not the first."""
        permission = permission or self.permission
        # Elastic pools, Basic, S0 and S1 need a role.
        is_role = self.is_azure and "SERVER" in permission
        of_database = "DATABASE" in permission or self.is_azure
        who, name = ("user", "USER_NAME()") if of_database else ("login", "SUSER_SNAME()")
        login = self._login(engine or self.engine, name)
        whose, to = (f"The {who} {login}", login) if login else (f"This {who}", "it")
        if is_role:
            return (
                f"{whose} may not see this ({reason}): have the server's administrator run, in master, ALTER "
                "SERVER ROLE ##MS_ServerStateReader## ADD MEMBER its login."
            )
        # Rights on the server are granted in master only.
        place = "" if of_database else "USE master; "
        group = " (or TO the Windows group that lets it in)" if "\\" in to else ""
        grantor = "" if of_database else self.engine.service.grantor
        return f"{whose} may not see this ({reason}): run {place}GRANT {permission} TO {to}{grantor};{group}"

    def _login(self, engine: MssqlEngine, name: str) -> str | None:
        """Return the quoted name of the login, or None if the server does not report it."""
        try:
            [login] = one_row(ask(engine, f"SELECT QUOTENAME({name})"), 1)
        except (CallFailed, StallmarkError):  # no reason to keep the rest of a sentence back
            return None
        return cast(str | None, login)

    def _refused(self, failure: CallFailed, engine: MssqlEngine) -> str:
        if failure.code in FORBIDDEN:
            return self.forbidden(failure.message, refused_right(failure.message), engine)
        if failure.kind is ErrorClass.TIMEOUT:
            return f"The server did not answer its query within {ANSWER_WITHIN_S} s."
        if failure.code == NO_SUCH_VIEW:
            return f"This server does not have the view it needs ({failure.message})."
        return f"The server refused its query ({failure.message}, error {failure.code})."
