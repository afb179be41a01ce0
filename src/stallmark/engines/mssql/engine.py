"""SQL Server 2017 and later, by URL, over pyodbc and Microsoft's ODBC driver."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from stallmark.engines import sql_file
from stallmark.engines.abilities import NoDevices, Placement
from stallmark.engines.base import Engine
from stallmark.engines.mssql import lock, settings
from stallmark.engines.mssql.backup import MssqlBackup
from stallmark.engines.mssql.bulk import BulkCopyWriter, InsertWriter
from stallmark.engines.mssql.caches import MssqlCaches, MssqlPrefill
from stallmark.engines.mssql.errors import failed
from stallmark.engines.mssql.examine import examine
from stallmark.engines.mssql.memory import MssqlMemory, target_bytes
from stallmark.engines.mssql.queries import MssqlQueries
from stallmark.engines.mssql.server import Server
from stallmark.engines.mssql.session import MssqlSession
from stallmark.errors import CallFailed, ErrorClass, NotGivenBack, StallmarkError

_CLOSED = ("4060", "927", "942", "924")  # cannot be opened; restoring, offline, single user


class MssqlPlacement(Placement):
    def __init__(self, server: Server):
        self._server = server

    def refusal(self) -> str | None:
        return self._server.why_no_placement()


class MssqlEngine(Server, Engine):
    """A database on a server named by URL; see `address` for how it is written."""

    dialect = "mssql"
    devices = NoDevices("an emulated array works under the embedded server only")

    def __init__(self, url: str):
        super().__init__(url)
        self.memory: MssqlMemory = MssqlMemory(self)
        self.caches: MssqlCaches = MssqlCaches(self)
        self.prefill: MssqlPrefill = MssqlPrefill(self)
        self.backup: MssqlBackup = MssqlBackup(self)
        self.placement: MssqlPlacement = MssqlPlacement(self)

    def why_no_connection(self, error: Exception) -> str:
        closed = failed(error).code in _CLOSED and self.address.database != "master"
        return (closed and self.backup.why_closed()) or super().why_no_connection(error)

    def failure(self, error: Exception) -> CallFailed:
        return failed(error)

    def session(self, call_timeout_s: float) -> MssqlSession:
        connection = self._connect_user()
        connection.timeout = max(1, round(call_timeout_s))
        return MssqlSession(connection, calls_by_rpc=not self.driver.freetds and not self.is_babelfish)

    def queries(self, timeout_s: float, application: str = "stallmark-user") -> MssqlQueries:
        return MssqlQueries(self._connect_user(application), timeout_s)

    def _connect_user(self, application: str = "stallmark-user") -> Any:
        try:
            return self.connect(application)
        except StallmarkError as error:
            raise CallFailed(ErrorClass.CONNECTION_LOST, "08001", str(error)) from None

    @contextmanager
    def bulk_writer(self) -> Iterator[BulkCopyWriter | InsertWriter]:
        connection = self.connect("stallmark-loader", autocommit=False)
        # Babelfish's bulk copy fills one column and says nothing.
        copier = None if self.is_babelfish else self.copier()
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
        """Open a connection of `mssql-python`, for its bulk copy; return None where it is not installed."""
        try:
            import mssql_python
        except ImportError:
            return None
        try:
            return mssql_python.connect(self.address.connection_string(None, "stallmark-loader"))
        except Exception as error:  # it refuses what it does not know in the URL with errors of other kinds
            why = self.why_no_connection(error)
            raise StallmarkError(f"No connection to {self.where} for bulk copy: {why}.") from None

    def settings(self) -> dict[str, str]:
        return settings.read(self) | self.memory.original()

    def settle(self, table: str) -> None:
        if not self.is_babelfish:  # which has no such statement, and gathers them by itself
            self.execute(f"UPDATE STATISTICS {table} WITH FULLSCAN")

    def schemas_in_use(self) -> dict[str, str]:
        return dict(self.query(sql_file.read(__package__, "schemas_in_use")))

    def bytes_used(self) -> int:
        """Return the bytes allocated to tables and indexes; 0 where that is not known. The files may be larger."""
        if self.is_babelfish:
            return 0
        [(pages,)] = self.query("SELECT SUM(total_pages) FROM sys.allocation_units")
        return (pages or 0) * 8192

    def buffer_pool_bytes(self) -> int | None:
        return target_bytes(self)

    def most_users(self) -> int | None:
        [(most,)] = self.query("SELECT @@MAX_CONNECTIONS")
        return most - 10

    def cores(self) -> int | None:
        """Return the schedulers that take work: fewer than the machine's where licence or affinity say so."""
        try:
            [(count,)] = self.query("SELECT COUNT(*) FROM sys.dm_os_schedulers WHERE status = 'VISIBLE ONLINE'")
        except CallFailed:  # needs VIEW SERVER STATE; Babelfish has no such view
            return None
        return count or None

    def checkpoint(self) -> None:
        if not self.is_babelfish:
            self.execute("CHECKPOINT")

    def examine(self) -> Iterator[tuple[str, str, str]]:
        return examine(self)

    @contextmanager
    def hold(self) -> Iterator[Callable[[], None]]:
        """Hold a lock on the server while a run lasts. What a killed run has left changed is given back first."""
        with lock.held(self) as check:
            self.memory.give_back()
            try:
                yield check
            except BaseException as reason:
                try:
                    self.memory.give_back_at_the_end(check)
                except NotGivenBack as left:  # beside the reason for which the run ends, not instead of it
                    reason.add_note(str(left))
                raise
            self.memory.give_back_at_the_end(check)
