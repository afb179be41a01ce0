"""Parts shared by the collectors of PostgreSQL 16 and later: their queries, their connection, and refusals.

A query named `<collector>.<major>.sql` serves that major version and all later ones up to the next file.
"""

from functools import cached_property
from typing import Any, ClassVar

import psycopg
from psycopg.rows import dict_row

from stallmark.collectors.base import Collector, Row, ServerConnection
from stallmark.engines import sql_file
from stallmark.engines.base import Engine
from stallmark.errors import StallmarkError

_TIMING = (
    "{setting} is off on the server: {what} are counted, but how long they took is not known. To know it, "
    "run ALTER SYSTEM SET {setting} = on; SELECT pg_reload_conf();"
)


def statement(name: str, major: int) -> str | None:
    """Return the newest query of this name that a server of this major version understands."""
    fitting = [version for version in sql_file.versions(__package__, name) if version <= major]
    return sql_file.read(__package__, f"{name}.{max(fitting)}") if fitting else None


def oldest(name: str) -> int:
    """Return the oldest major version that a query of this name exists for."""
    return min(sql_file.versions(__package__, name))


class CollectorConnection(ServerConnection):
    """A connection that prepares every query, so that it is planned once."""

    _cursor: Any = None

    def open(self) -> None:
        if self._connection is None:
            self._connection = self._engine.connect()
            self._connection.prepare_threshold = 0
            self._cursor = self._connection.cursor(row_factory=dict_row)

    def rows(self, sql: str) -> list[Row]:
        self.open()
        try:
            rows: list[Row] = self._cursor.execute(sql).fetchall()
            return rows
        except psycopg.Error as error:
            sentence = str(error).strip().splitlines()[0]
            if self._connection.closed:
                self.close()
                raise StallmarkError(f"the connection to the server was lost ({sentence})") from error
            raise StallmarkError(f"the server refused the query ({sentence})") from error

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = self._cursor = None


class PostgresCollector(Collector):
    """A collector that stores the rows of its query as they come."""

    needs: ClassVar[str] = "does not count this"
    """The fact that an older server lacks, as the end of a sentence that begins with "PostgreSQL 16"."""

    def __init__(self, engine: Engine):
        super().__init__(engine)
        self.connection = CollectorConnection(engine)

    @property
    def major(self) -> int:
        return self.engine.identity().version[0]

    @cached_property
    def sql(self) -> str:
        sql = statement(self.name, self.major)
        assert sql is not None, f"{self.name} was sampled on a version it does not know"
        return sql

    def unavailable(self) -> str | None:
        if statement(self.name, self.major) is None:
            return f"PostgreSQL {self.major} {self.needs}: that needs PostgreSQL {oldest(self.name)}."
        with self.engine.cursor() as cursor:
            try:
                cursor.execute(self.sql)
            except psycopg.errors.InsufficientPrivilege as error:
                return no_privilege(cursor, str(error).strip().splitlines()[0])
        return None

    def limited(self) -> str | None:
        with self.engine.cursor() as cursor:
            off = [
                _TIMING.format(setting=setting, what=what)
                for setting, what in self.timed().items()
                if cursor.execute("SELECT current_setting(%s)", [setting]).fetchone() == ("off",)
            ]
        return " ".join(off) or None

    def timed(self) -> dict[str, str]:
        """Return the settings without which times stay empty on this version, and what they time."""
        return {}

    def open(self) -> None:
        self.connection.open()

    def sample(self, now: float) -> list[Row]:
        return self.connection.rows(self.sql)

    def close(self) -> None:
        self.connection.close()


def no_privilege(cursor: psycopg.Cursor, reason: str) -> str:
    """Return the sentence for a role that may not see what a collector reads."""
    row = cursor.execute("SELECT quote_ident(current_user)").fetchone()
    role = row[0] if row else "this role"
    return f"The role {role} may not see this ({reason}): as a superuser, run GRANT pg_monitor TO {role};"
