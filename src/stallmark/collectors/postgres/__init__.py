"""Parts shared by the collectors of PostgreSQL 16 and later: their queries, their connection, and refusals.

A query named `<collector>.<major>.sql` serves that major version and all later ones up to the next file.

A query of all sessions or databases of the server has `current_database()` in lists: if several databases are ours, the
lists are extended with their names.
"""

from collections.abc import Iterable
from functools import cached_property
from typing import ClassVar

import psycopg
from psycopg import pq, sql
from psycopg.adapt import Transformer

from stallmark.collectors.sampler import ServerCollector, ServerConnection, name_of
from stallmark.engines import sql_file
from stallmark.errors import StallmarkError
from stallmark.record.writer import Rows

_TIMING = (
    "{setting} is off on the server: {what} are counted, but how long they took is not known. To know it, "
    "run ALTER SYSTEM SET {setting} = on; SELECT pg_reload_conf()"
)


def statement(name: str, major: int) -> str | None:
    """Return the newest query of this name that a server of this major version understands."""
    return sql_file.newest(__package__, name, major)


def with_databases(text: str, names: Iterable[str]) -> str:
    """Return a query that has these databases where it lists the one of the connection."""
    return text.replace("current_database()", ", ".join(sql.Literal(name).as_string() for name in names))


class CollectorConnection(ServerConnection):
    """A connection that prepares every query, so that it is planned once.

    It asks with calls of libpq that wait inside it: of a query that is asked five times a second psycopg's own waiting
    is the larger half of the CPU time.
    """

    _prepared: dict[str, bytes]

    def open(self) -> None:
        if self._connection is None:
            self._connection = self._engine.connect()
            self._prepared = {}

    def rows(self, sql: str) -> Rows:
        self.open()
        try:
            result = self._answer(sql)
        except psycopg.Error as error:
            sentence = str(error).strip().splitlines()[0]
            if self._connection.closed:
                self.close()
                raise StallmarkError(f"the connection to the server was lost ({sentence})") from error
            raise StallmarkError(f"the server refused the query ({sentence})") from error
        names = [(result.fname(index) or b"").decode() for index in range(result.nfields)]
        types = Transformer(self._connection)
        types.set_pgresult(result)
        return Rows(names, types.load_rows(0, result.ntuples, tuple))

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def _answer(self, sql: str) -> pq.abc.PGresult:
        libpq = self._connection.pgconn
        if sql not in self._prepared:
            name = f"stallmark_{len(self._prepared)}".encode()
            _refuse_failed(libpq.prepare(name, sql.encode()))
            self._prepared[sql] = name
        result = libpq.exec_prepared(self._prepared[sql], None)
        _refuse_failed(result)
        return result


def _refuse_failed(result: pq.abc.PGresult) -> None:
    if result.status not in (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK):
        raise psycopg.errors.error_from_result(result)


class PostgresCollector(ServerCollector):
    connection_type = CollectorConnection

    needs: ClassVar[str] = "does not count this"
    """The fact that an older server lacks, as the end of a sentence that begins with "PostgreSQL 16"."""

    @property
    def major(self) -> int:
        return self.engine.identity().version[0]

    @cached_property
    def sql(self) -> str:
        text = statement(self.name, self.major)
        assert text is not None, f"{self.name} was sampled on a version it does not know"
        if self.several and not self.of_each_database:
            return with_databases(text, [name_of(database) for database in self.databases])
        return text

    def unavailable(self) -> str | None:
        if statement(self.name, self.major) is None:
            oldest = min(sql_file.versions(__package__, self.name))
            return f"PostgreSQL {self.major} {self.needs}: that needs PostgreSQL {oldest}."
        for engine in self.databases if self.of_each_database else [self.engine]:
            with engine.cursor() as cursor:
                try:
                    cursor.execute(self.sql)
                except psycopg.errors.InsufficientPrivilege as error:
                    reason = missing_privilege_sentence(cursor, str(error).strip().splitlines()[0])
                    return f"In {name_of(engine)}: {reason}" if self.several else reason
        return None

    def limitation(self) -> str | None:
        # Most are not timed, and a connection is a process of the server.
        if not (timed := self.timed()):
            return None
        with self.engine.cursor() as cursor:
            off = [
                _TIMING.format(setting=setting, what=columns)
                for setting, columns in timed.items()
                if cursor.execute("SELECT current_setting(%s)", [setting]).fetchone() == ("off",)
            ]
        return " ".join(off) or None

    def timed(self) -> dict[str, str]:
        """Return the settings without which times stay empty on this version, and what they time."""
        return {}


def missing_privilege_sentence(cursor: psycopg.Cursor, reason: str) -> str:
    """Return the sentence for a role that may not see what a collector reads."""
    row = cursor.execute("SELECT quote_ident(current_user)").fetchone()
    role = row[0] if row else "this role"
    return f"The role {role} may not see this ({reason}): as a superuser, run GRANT pg_monitor TO {role};"
