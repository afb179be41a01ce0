"""The work of an administrator beside users: a backup, a check of the database, a rebuild of indexes."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from stallmark.engines.abilities import Maintenance, MaintenanceWork
from stallmark.engines.mssql import sql
from stallmark.engines.mssql.errors import failed
from stallmark.engines.mssql.odbc import api
from stallmark.engines.mssql.server import AZURE, ENTERPRISE, Server

# A copy only: the owner's chain of backups goes on as it was.
_BACKUP = "BACKUP DATABASE {name} TO DISK = {disk} WITH COPY_ONLY, INIT"
_CHECK = "DBCC CHECKDB WITH NO_INFOMSGS"
_REBUILD = "ALTER INDEX ALL ON {name} REBUILD WITH (ONLINE = {state})"
_PERMITTED = (
    "SELECT HAS_PERMS_BY_NAME(QUOTENAME(DB_NAME()), N'DATABASE', N'BACKUP DATABASE'), IS_ROLEMEMBER(N'db_owner')"
)


class MssqlMaintenance(Maintenance):
    def __init__(self, server: Server, statement: Callable[[Server, str], str], *, backs_up: bool = False):
        self._server = server
        self._statement = statement
        self._backs_up = backs_up

    def refusal(self) -> str | None:
        if self._server.is_babelfish:
            return f"{self._server.identity().product} has no such statement"
        if self._backs_up and (why := self._server.service.why_no_backup):
            return why
        [(may_back_up, owner)] = self._server.query(_PERMITTED)
        if not (may_back_up if self._backs_up else owner):
            return f"this login may not: {'GRANT BACKUP DATABASE TO it' if self._backs_up else 'make it a db_owner'}"
        return None

    def open(self, what: str) -> "_Work":
        return _Work(self._server.connect("stallmark-maintenance"), self._statement(self._server, what))


class _Work(MaintenanceWork):
    def __init__(self, connection: Any, statement: str):
        self._connection, self._statement = connection, statement
        self._cursor = connection.cursor()

    def execute(self) -> None:
        try:
            sql.rows(self._cursor.execute(self._statement))
        except api().Error as error:
            raise failed(error) from None

    def cancel(self) -> None:
        with suppress(api().Error):
            self._cursor.cancel()

    def close(self) -> None:
        with suppress(api().Error):
            self._connection.close()


def maintenance(server: Server) -> Mapping[str, MssqlMaintenance]:
    return {
        "backup": MssqlMaintenance(server, _backup, backs_up=True),
        "check": MssqlMaintenance(server, lambda *_: _CHECK),
        "rebuild": MssqlMaintenance(server, _rebuild),
    }


def _backup(server: Server, what: str) -> str:
    return _BACKUP.format(name=sql.name(server.address.database), disk=sql.text(what))


def _rebuild(server: Server, what: str) -> str:
    """Return the statement; online where the edition can, else users wait for the table."""
    name = ".".join(map(sql.name, what.split(".")))
    return _REBUILD.format(name=name, state="ON" if server.edition in (ENTERPRISE, *AZURE) else "OFF")
