"""SQL Server 2017 and later, by URL, over pyodbc and Microsoft's ODBC driver."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from typing import Any

from stallmark.engines import sql_file
from stallmark.engines.base import Engine, ServerIdentity
from stallmark.engines.mssql import backup, caches, lock, may_place_files, memory, settings
from stallmark.engines.mssql.address import LOGIN_TIMEOUT_S, Address
from stallmark.engines.mssql.bulk import BulkCopyWriter, InsertWriter
from stallmark.engines.mssql.editions import AZURE, AZURE_DATABASE
from stallmark.engines.mssql.errors import failed
from stallmark.engines.mssql.examine import examine
from stallmark.engines.mssql.execute import execute, rows
from stallmark.engines.mssql.free_space import free_bytes
from stallmark.engines.mssql.odbc import api, find_driver
from stallmark.engines.mssql.queries import MssqlQueries
from stallmark.engines.mssql.session import MssqlSession
from stallmark.errors import CallFailed, ErrorClass, NoConnection, NotGivenBack, StallmarkError

OLDEST_MAJOR = 14  # SQL Server 2017

_WHY_NO_CONNECTION = {
    18456: "the login was refused: check user and password (SQLCMDPASSWORD)",
    4060: "the database cannot be opened: check its name and the user's right to it",
    18452: "Windows authentication is not possible from here: name a user in the URL",
}

_CLOSED = (4060, 927, 942, 924)  # cannot be opened; restoring, offline, single user

_IDENTITY = """\
SELECT CAST(SERVERPROPERTY('ProductVersion') AS nvarchar(128)),
       CAST(SERVERPROPERTY('ProductLevel') AS nvarchar(128)),
       CAST(SERVERPROPERTY('Edition') AS nvarchar(128)),
       CAST(SERVERPROPERTY('EngineEdition') AS int),
       @@VERSION
"""


class MssqlEngine(Engine):
    """A database on a server named by URL; see `address` for how it is written."""

    dialect = "mssql"
    smallest_pool_bytes = memory.SMALLEST_BYTES

    def __init__(self, url: str):
        self.address = Address.parse(url)
        self.driver = find_driver()
        self.capped: memory.Capped | None = None

    def on_database(self, name: str) -> "MssqlEngine":
        """The same server and login, in another database."""
        return MssqlEngine(replace(self.address, database=name).url())

    @property
    def where(self) -> str:
        return self.address.where

    def connect(self, application: str = "stallmark-collector", *, autocommit: bool = True) -> Any:
        text = self.address.connection_string(self.driver, application)
        try:
            return api().connect(text, autocommit=autocommit, timeout=LOGIN_TIMEOUT_S)
        except api().Error as error:
            raise NoConnection(f"No connection to {self.where}: {self._why(error)}.") from None

    @contextmanager
    def cursor(self) -> Iterator[Any]:
        try:
            with super().cursor() as cursor:
                yield cursor
        except api().Error as error:
            raise failed(error) from error

    def failure(self, error: Exception) -> CallFailed:
        return failed(error)

    def execute(self, sql: str) -> None:
        with self.cursor() as cursor:
            execute(cursor, sql)

    def query(self, sql: str, parameters: Any = None) -> list[tuple]:
        with self.cursor() as cursor:
            return rows(cursor.execute(sql, *(parameters or ())))

    def session(self, call_timeout_s: float) -> MssqlSession:
        try:
            connection = self.connect("stallmark-user")
        except StallmarkError as error:
            raise CallFailed(ErrorClass.CONNECTION_LOST, "08001", str(error)) from None
        connection.timeout = max(1, round(call_timeout_s))
        return MssqlSession(connection, calls_by_rpc=not self.driver.freetds and not self._is_babelfish)

    def queries(self, timeout_s: float, application: str = "stallmark-user") -> MssqlQueries:
        try:
            connection = self.connect(application)
        except StallmarkError as error:
            raise CallFailed(ErrorClass.CONNECTION_LOST, "08001", str(error)) from None
        return MssqlQueries(connection, timeout_s)

    @contextmanager
    def bulk_writer(self) -> Iterator[BulkCopyWriter | InsertWriter]:
        connection = self.connect("stallmark-loader", autocommit=False)
        # Babelfish's bulk copy fills one column and says nothing.
        copier = None if self._is_babelfish else self.copier()
        try:
            fast = not self.driver.freetds
            yield BulkCopyWriter(connection, copier) if copier else InsertWriter(connection, fast)
        finally:
            connection.close()
            if copier:
                copier.close()

    @contextmanager
    def transactional_writer(self) -> Iterator[InsertWriter]:
        connection = self.connect("stallmark-loader", autocommit=False)
        try:
            yield InsertWriter(connection, not self.driver.freetds)
        finally:
            connection.close()

    def copier(self) -> Any:
        """A connection of `mssql-python`, for its bulk copy; None where it is not installed."""
        try:
            import mssql_python
        except ImportError:
            return None
        try:
            return mssql_python.connect(self.address.connection_string(None, "stallmark-loader"))
        except Exception as error:  # it refuses what it does not know in the URL with errors of other kinds
            raise StallmarkError(f"No connection to {self.where} for bulk copy: {self._why(error)}.") from None

    def spec(self) -> str:
        return self.address.url()

    def identity(self) -> ServerIdentity:
        return self._identity[0]

    @property
    def is_azure_database(self) -> bool:
        return self.edition == AZURE_DATABASE

    @property
    def edition(self) -> int:
        return self._identity[1]

    @cached_property
    def _identity(self) -> tuple[ServerIdentity, int]:
        [(version, level, edition, engine_edition, banner)] = self.query(_IDENTITY)
        major, minor = (int(part) for part in version.split(".")[:2])
        if "Babelfish" in banner:
            return ServerIdentity("Babelfish", (major, minor), _babelfish_version(banner)), engine_edition
        if major < OLDEST_MAJOR and engine_edition not in AZURE:  # which call themselves version 12 for ever
            raise StallmarkError(f"{self.where} runs SQL Server {version}; Stallmark needs 2017 (14.0) or later.")
        return ServerIdentity("SQL Server", (major, minor), f"{version} {level} {edition}"), engine_edition

    @property
    def _is_babelfish(self) -> bool:
        return self.identity().product == "Babelfish"

    def settings(self) -> dict[str, str]:
        return settings.read(self) | memory.found(self)

    def settle(self, table: str) -> None:
        if not self._is_babelfish:  # which has no such statement, and gathers them by itself
            self.execute(f"UPDATE STATISTICS {table} WITH FULLSCAN")

    def schemas_in_use(self) -> dict[str, str]:
        return dict(self.query(sql_file.read(__package__, "schemas_in_use")))

    def bytes_used(self) -> int:
        """Allocated to tables and indexes; the files that hold them may be larger. 0 where it is not known."""
        if self._is_babelfish:
            return 0
        [(pages,)] = self.query("SELECT SUM(total_pages) FROM sys.allocation_units")
        return (pages or 0) * 8192

    def free_bytes(self) -> int | None:
        return free_bytes(self)

    def buffer_pool_bytes(self) -> int | None:
        return memory.target_bytes(self)

    def most_users(self) -> int | None:
        [(most,)] = self.query("SELECT @@MAX_CONNECTIONS")
        return most - 10

    def cores(self) -> int | None:
        """Schedulers that take work: less than its machine has where licence or affinity say so."""
        try:
            [(count,)] = self.query("SELECT COUNT(*) FROM sys.dm_os_schedulers WHERE status = 'VISIBLE ONLINE'")
        except CallFailed:  # needs VIEW SERVER STATE; Babelfish has no such view
            return None
        return count or None

    def checkpoint(self) -> None:
        if not self._is_babelfish:
            self.execute("CHECKPOINT")

    def examine(self) -> Iterator[tuple[str, str, str]]:
        return examine(self)

    @contextmanager
    def hold(self) -> Iterator[Callable[[], None]]:
        """Holds a lock on the server while a run lasts. What a killed run has left changed is given back first."""
        with lock.held(self) as look:
            memory.give_back(self)
            try:
                yield look
            except BaseException as reason:
                try:
                    memory.give_back_at_the_end(self, look)
                except NotGivenBack as left:  # beside the reason for which the run ends, not instead of it
                    reason.add_note(str(left))
                raise
            memory.give_back_at_the_end(self, look)

    def cap_memory(self, size_bytes: int) -> int:
        return memory.cap(self, size_bytes)

    def uncap_memory(self) -> None:
        memory.give_back(self)

    def drop_caches(self) -> list[str]:
        return caches.drop(self)

    def prefill(self, *schemas: str) -> int:
        return sum(caches.prefill(self, schema) for schema in schemas)

    def kept_for_restore(self) -> str | None:
        return backup.kept(self)

    def keep_for_restore(self, of: str) -> None:
        backup.keep(self, of)

    def drop_kept(self) -> None:
        """A backup file cannot be removed through a connection; the next one takes its place."""

    def restore(self) -> None:
        backup.restore(self)

    def finish_restore(self) -> None:
        backup.finish(self)

    def cannot(self, what: str) -> str | None:
        elsewhere = {
            "emulated_device": "an emulated device works under the embedded server only",
            "device_counters": "the devices of a server reached by URL cannot be seen from this machine",
        }
        if what in elsewhere:
            return elsewhere[what]
        if what == "prefill" and self._is_babelfish:
            return "Babelfish does not tell how large its indexes are"
        asked = {
            "cap_memory": memory.cannot,
            "cold_cache": caches.cannot,
            "restore": backup.cannot,
            "place_files": may_place_files.cannot,
        }
        return asked[what](self) if what in asked else None

    def _why(self, error: Exception) -> str:
        failure = failed(error)
        number = int(failure.code) if failure.code.isdigit() else 0
        if number in _CLOSED and self.address.database != "master" and (why := backup.why_closed(self)):
            return why
        if number in _WHY_NO_CONNECTION:
            return _WHY_NO_CONNECTION[number]
        if "certificate" in failure.message.lower():
            return f"{failure.message}. If you trust this network, add ?TrustServerCertificate=yes to the URL"
        if failure.code in ("HYT00", "08001"):
            return f"{failure.message}. Is the server running, and are host and port right?".rstrip("?")
        return failure.message


def _babelfish_version(banner: str) -> str:
    found = re.search(r"Babelfish (?:for PostgreSQL )?(?:with SQL Server Compatibility )?[-–]? ?([\d.]+)", banner)
    return found[1] if found else banner.splitlines()[0]
