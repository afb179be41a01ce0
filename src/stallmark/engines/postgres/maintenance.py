"""The work of an administrator beside users, as far as PostgreSQL has a statement for it: a rebuild of indexes."""

from collections.abc import Callable, Mapping

import psycopg
from psycopg import sql

from stallmark.engines.abilities import Maintenance, MaintenanceWork, Missing
from stallmark.engines.postgres.errors import as_call_failed


class Rebuild(Maintenance):
    def __init__(self, connect: Callable[[str], psycopg.Connection]):
        self._connect = connect

    def open(self, what: str) -> "_Work":
        table = sql.Identifier(*what.split("."))
        statement = sql.SQL("REINDEX TABLE CONCURRENTLY {}").format(table)
        return _Work(self._connect("stallmark-maintenance"), statement)


class _Work(MaintenanceWork):
    def __init__(self, connection: psycopg.Connection, statement: sql.Composed):
        self._connection, self._statement = connection, statement

    def execute(self) -> None:
        with as_call_failed():
            self._connection.execute(self._statement)

    def cancel(self) -> None:
        self._connection.cancel()

    def close(self) -> None:
        self._connection.close()


def maintenance(connect: Callable[[str], psycopg.Connection]) -> Mapping[str, Maintenance | Missing]:
    return {
        "backup": Missing("PostgreSQL has no statement that backs a database up"),
        "check": Missing("PostgreSQL has no statement that checks a database"),
        "rebuild": Rebuild(connect),
    }
