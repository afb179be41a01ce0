"""SQL Server 2017 and later, by URL, over pyodbc and Microsoft's ODBC driver."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from stallmark.engines import sql_file
from stallmark.engines.abilities import (
    Examined,
    Maintenance,
    MaintenanceWork,
    NoDevices,
    Placement,
    ServerSession,
    VariantSetting,
)
from stallmark.engines.base import Engine, ServerSettings
from stallmark.engines.journal import give_back_each
from stallmark.engines.mssql import lock, server, settings
from stallmark.engines.mssql.backup import MssqlBackup, MssqlUserBackup
from stallmark.engines.mssql.bulk import INSERTED_INSTEAD, BulkCopyWriter, Copier, InsertWriter, NoBulkCopy
from stallmark.engines.mssql.chosen_settings import MssqlSettings
from stallmark.engines.mssql.examine import UPDATEABILITY, examine
from stallmark.engines.mssql.memory import MssqlCaches, MssqlMemory, MssqlPrefill, target_bytes
from stallmark.engines.mssql.odbc import api, failed, rows, text
from stallmark.engines.mssql.odbc import name as quoted
from stallmark.engines.mssql.server import AZURE, ENTERPRISE, SQL_SERVER_2019, Server
from stallmark.engines.mssql.session import MssqlQueries, MssqlSession, ParameterTypes
from stallmark.engines.mssql.variant_settings import ResourcePool, RowVersioning
from stallmark.engines.reachability import SLOW_START_S, find_server, is_here, shares_paths
from stallmark.errors import CallFailed, ErrorClass, NotGivenBack, StallmarkError
from stallmark.stopping import StopSignal, undisturbed

OWN_SESSIONS = 26  # each collector, the lock of the run, and what is asked in between
OF_EACH_DATABASE = 6  # sessions of collectors whose views show one database alone
SERVERS_OWN_WORKERS = 64  # left for the server's background work and our own sessions
# All other options that decide which plan is taken ODBC sets as SSMS does. Without it whoever tries a procedure there
# looks at a plan of his own.
AS_IN_SSMS = "SET ARITHABORT ON"
_MAY_SEE_THINGS = "SELECT HAS_PERMS_BY_NAME(QUOTENAME(DB_NAME()), 'DATABASE', 'VIEW DEFINITION') AS may"
_MAY_CREATE = "SELECT HAS_PERMS_BY_NAME(NULL, NULL, 'CREATE ANY DATABASE') AS may"  # ALTER ANY DATABASE implies it
_CLOSED = ("4060", "927", "942", "924")  # cannot be opened; restoring, offline, single user


class MssqlPlacement(Placement):
    def __init__(self, server: Server):
        self._server = server

    def refusal(self) -> str | None:
        server = self._server
        if reason := server.service.no_placement_reason:
            return reason
        if server.is_babelfish:
            return f"{server.identity().product} ignores where a database's files are to lie"
        [(may,)] = server.query(_MAY_CREATE)
        if may:
            return None
        role = ", or make it a member of dbcreator" if server.service.gives_roles else ""
        return (
            "this login may not create a database: in master, GRANT CREATE ANY DATABASE TO "
            f"it{server.service.grantor}{role}"
        )


# The work of an administrator beside users: a backup, a check of the database, a rebuild of indexes.

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
        if self._backs_up and (reason := self._server.service.no_backup_reason):
            return reason
        [(may_back_up, owner)] = self._server.query(_PERMITTED)
        if not (may_back_up if self._backs_up else owner):
            return f"this login may not: {'GRANT BACKUP DATABASE TO it' if self._backs_up else 'make it a db_owner'}"
        return None

    def open(self, name: str) -> "_Work":
        return _Work(self._server.connect("stallmark-maintenance"), self._statement(self._server, name))


class _Work(MaintenanceWork):
    def __init__(self, connection: Any, statement: str):
        self._connection, self._statement = connection, statement
        self._cursor = connection.cursor()

    def execute(self) -> None:
        try:
            rows(self._cursor.execute(self._statement))
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


def _backup(server: Server, file: str) -> str:
    return _BACKUP.format(name=quoted(server.address.database), disk=text(file))


def _rebuild(server: Server, table: str) -> str:
    """Return the statement; online where the edition can, else users wait for the table."""
    name = ".".join(map(quoted, table.split(".")))
    return _REBUILD.format(name=name, state="ON" if server.edition in (ENTERPRISE, *AZURE) else "OFF")


class MssqlEngine(Server, Engine):
    """A database on a server named by URL; see `address` for how it is written."""

    dialect = "mssql"
    devices = NoDevices("an emulated array works under the embedded server only")

    def __init__(self, url: str):
        super().__init__(url)
        self.memory: MssqlMemory = MssqlMemory(self, lambda: self.caches.allowed)
        self.caches: MssqlCaches = MssqlCaches(self)
        self.prefill: MssqlPrefill = MssqlPrefill(self)
        self.backup: MssqlBackup = MssqlBackup(self)
        self.user_backup = MssqlUserBackup(self)
        self.placement: MssqlPlacement = MssqlPlacement(self)
        self._settings: dict[str, VariantSetting] = {
            "row_versioning": RowVersioning(self),
            "resource_pool": ResourcePool(self),
            "settings": MssqlSettings(self),
        }
        self.variant_settings = self._settings
        self.maintenance = maintenance(self)
        self._types = ParameterTypes()

    def no_connection_reason(self, error: Exception) -> str:
        closed = failed(error).code in _CLOSED and self.address.database != "master"
        return (closed and self.backup.closed_database_reason()) or super().no_connection_reason(error)

    def failure(self, error: Exception) -> CallFailed:
        return failed(error)

    def session(self, call_timeout_s: float, application: str = "stallmark-user") -> MssqlSession:
        connection = self._connect_user(application)
        connection.timeout = max(1, round(call_timeout_s))
        return MssqlSession(connection, not self.is_babelfish, None if self.is_babelfish else self._types)

    def queries(self, timeout_s: float, application: str = "stallmark-user") -> MssqlQueries:
        return MssqlQueries(self._connect_user(application), timeout_s, self.connect, self.has_version(SQL_SERVER_2019))

    def _connect_user(self, application: str) -> Any:
        try:
            is_babelfish = self.is_babelfish  # the first session asks the server
            connection = self.connect(application)
        except StallmarkError as error:
            raise CallFailed(ErrorClass.CONNECTION_LOST, "08001", str(error)) from None
        if not is_babelfish:
            try:
                connection.execute(AS_IN_SSMS)
            except api().Error as error:
                raise failed(error) from None
        return connection

    @contextmanager
    def bulk_writer(self) -> Iterator[BulkCopyWriter | InsertWriter]:
        with closing(self.connect("stallmark-loader", autocommit=False)) as connection:
            try:
                copier = Copier(self)
            except NoBulkCopy as why:
                sentence = None if self.is_babelfish or not self.address.bulk_copy else f"{why}, so {INSERTED_INSTEAD}."
                yield InsertWriter(connection, sentence, transactional=self.is_babelfish)
                return
            with closing(copier):
                yield BulkCopyWriter(connection, copier)

    @contextmanager
    def transactional_writer(self) -> Iterator[InsertWriter]:
        with closing(self.connect("stallmark-loader", autocommit=False)) as connection:
            yield InsertWriter(connection)

    def settings(self) -> ServerSettings:
        read = settings.read(self)
        return replace(read, configuration=read.configuration | self.memory.original())

    def settle(self, table: str) -> None:
        """Make the statistics that the first queries would make, from as many rows as those would take."""
        if self.is_babelfish:  # Babelfish has no such statement and gathers them itself
            return
        for (column,) in self.query(sql_file.statement(__name__, "columns_without_statistics").format(table=table)):
            made = f"CREATE STATISTICS {quoted(f'stallmark_{column}')} ON {table} ({quoted(column)})"
            self.execute(made)

    def schemas_in_use(self) -> dict[str, list[str]]:
        schemas: dict[str, list[str]] = {}
        for schema, name in self.query(sql_file.statement(__name__, "schemas_in_use")):
            schemas.setdefault(schema, []).append(name)
        return schemas

    def hidden_objects_reason(self) -> str | None:
        if self.is_babelfish:  # whose catalogue shows everything to everybody
            return None
        try:
            [(may,)] = self.query(_MAY_SEE_THINGS)
        except CallFailed as failure:
            return failure.message
        return None if may else "this login has no VIEW DEFINITION there: GRANT VIEW DEFINITION TO it"

    def other_sessions(self) -> list[ServerSession]:
        return lock.sessions(self, "other_sessions")

    def hidden_sessions_reason(self) -> str | None:
        return lock.hidden_sessions_reason(self)

    def blockers(self) -> list[ServerSession]:
        return lock.sessions(self, "blockers")

    def not_writable_reason(self, schemas: Sequence[str]) -> str | None:
        return self._reads_only_message() or self._missing_right_message([*schemas, "stallmark"])

    def _reads_only_message(self) -> str | None:
        try:
            [(updateability,)] = self.query(UPDATEABILITY)
        except CallFailed:  # not known
            return None
        if updateability != "READ_ONLY":
            return None
        return (
            f"{self.location} is read-only, as a readable secondary is, or one that was set so: name the primary, or "
            "ALTER DATABASE … SET READ_WRITE."
        )

    def _missing_right_message(self, schemas: Sequence[str]) -> str | None:
        """Return the right that the login lacks in the database, as a sentence; None if it has all, or that is not
        known."""
        if self.is_babelfish:  # whose rights are those of PostgreSQL
            return None
        text = sql_file.statement(__name__, "writable").format(marks=f"({', '.join('?' * len(schemas))})")
        try:
            [(creates_tables, creates_schemas, is_built, only_read)] = self.query(text, schemas)
        except (CallFailed, ValueError):
            return None
        if only_read:
            return (
                f"This login may not read and change {only_read} on {self.location}: name the login that built the "
                "database, or make it a member of db_owner."
            )
        things = {"tables": creates_tables, "schemas": creates_schemas}
        if (lacking := [thing for thing, may in things.items() if may == 0]) and not is_built:
            return (
                f"This login may not create {' or '.join(lacking)} on {self.location}, so no database can be built: "
                "make it a member of db_owner."
            )
        return None

    def bytes_used(self) -> int:
        """Return the bytes allocated to tables and indexes; 0 where that is not known. The files may be larger."""
        if self.is_babelfish:
            return 0
        [(pages,)] = self.query("SELECT SUM(total_pages) FROM sys.allocation_units")
        return (pages or 0) * 8192

    def buffer_pool_bytes(self) -> int | None:
        return target_bytes(self)

    def most_users(self) -> int | None:
        """Return the number of sessions that can work at once: each needs a connection, and a worker during a call.

        Without a free worker the server refuses every login, even of our collectors.
        """
        [(connections,)] = self.query("SELECT @@MAX_CONNECTIONS")
        try:
            [(workers,)] = self.query("SELECT max_workers_count FROM sys.dm_os_sys_info")
        except CallFailed:  # needs VIEW SERVER STATE
            workers = 0
        most: int = connections - OWN_SESSIONS - OF_EACH_DATABASE * (len(self.databases()) - 1)
        return min(most, workers - SERVERS_OWN_WORKERS) if workers else most  # 0 on Babelfish: it has no workers

    def users_limited_by(self) -> str:
        return "its `user connections` or `max worker threads` (sp_configure)"

    def cores(self) -> int | None:
        """Return the schedulers that take work: fewer than the machine's if licence or affinity limit them."""
        try:
            [(count,)] = self.query("SELECT COUNT(*) FROM sys.dm_os_schedulers WHERE status = 'VISIBLE ONLINE'")
        except CallFailed:  # needs VIEW SERVER STATE; Babelfish has no such view
            return None
        return count or None

    def process(self) -> int | None:
        """Return the first process of a server at an address of this machine."""
        if self.is_babelfish or not is_here([self.address.host]):
            return None
        try:
            rows = self.query(
                "SELECT (ms_ticks - sqlserver_start_time_ms_ticks) / 1000 FROM sys.dm_os_sys_info AS process"
            )
        except CallFailed:  # needs VIEW SERVER STATE
            return None
        if not rows or rows[0][0] is None:  # a view that is filtered by rights is empty
            return None
        return find_server(("sqlservr", "sqlservr.exe"), time.time() - rows[0][0], apart_s=SLOW_START_S)

    def storage_here(self) -> Mapping[str, Path]:
        if (pid := self.process()) is None or not shares_paths(pid):
            return {}
        places: dict[str, set[Path]] = {"data": set(), "wal": set()}
        for kind, name in self.query("SELECT type, physical_name FROM sys.database_files WHERE type IN (0, 1)"):
            places["wal" if kind == 1 else "data"].add(Path(name).parent)
        return {role: folders.pop() for role, folders in places.items() if len(folders) == 1}

    def checkpoint(self) -> None:
        if not self.is_babelfish:
            self.execute("CHECKPOINT")

    def unfit(self) -> str | None:
        return server.compatibility_message(self)

    def examine(self) -> Iterator[Examined]:
        return examine(self)

    @contextmanager
    def hold(self) -> Iterator[Callable[[], None]]:
        """Hold a lock on the server while a run lasts. Changes that a killed run has left are undone first."""
        with lock.hold(self) as check:
            self.memory.give_back()
            for setting in self._settings.values():
                setting.give_back()
            try:
                yield check
            except BaseException as reason:
                try:
                    self._give_back(check)
                except NotGivenBack as left:  # beside the reason for which the run ends, not instead of it
                    reason.add_note(str(left))
                raise
            self._give_back(check)

    def _give_back(self, check: Callable[[], None]) -> None:
        left: list[str] = []
        stop = None
        try:
            # Ctrl-C while one setting is given back must not keep the others as they are.
            with undisturbed():
                left = give_back_each(self._settings)
        except StopSignal as stopped:
            stop = stopped
        try:
            self.memory.give_back_at_the_end(check)
        except NotGivenBack as error:
            left.insert(0, str(error))
        if stop:
            for sentence in left:
                stop.add_note(sentence)
            raise stop
        if left:
            raise NotGivenBack(" ".join(left))
