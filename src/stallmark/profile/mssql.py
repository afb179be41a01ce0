"""SQL Server as the source of a profile: one batch for every sample, always of the same text."""

from contextlib import suppress
from typing import Any

from stallmark.collectors.mssql import FORBIDDEN, NO_SUCH_VIEW
from stallmark.collectors.mssql.counters import name_instance
from stallmark.collectors.mssql.waits import class_of, is_benign
from stallmark.engines import sql_file
from stallmark.engines.mssql.engine import MssqlEngine
from stallmark.engines.mssql.odbc import api, failed, one_row
from stallmark.engines.mssql.settings import refused_right
from stallmark.errors import StallmarkError, as_reason
from stallmark.profile.collection import ANSWER_WITHIN_S, APPLICATION, LOCK_TIMEOUT_MS, Opened, Reading, Source
from stallmark.record.profile import STATES, ProfiledServer

# A catalogue that somebody's RESTORE has locked is waited for only so long, and we are the one to give way.
_MANNERS = (
    f"SET LOCK_TIMEOUT {LOCK_TIMEOUT_MS}; SET DEADLOCK_PRIORITY LOW; SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED"
)
_PARTS = ("moment", "files", "counters", "waits")
_NO_COUNTERS = (
    "the server's performance counters are disabled (sys.dm_os_performance_counters has no rows); its error log says "
    "why at its start"
)
_NOT_OUR_COUNTERS = "sys.dm_os_performance_counters has no counters of this database (object Databases)"
_NO_AZURE = (
    "Azure SQL Database shows a login its own database alone, and most of what a profile is made of not at all: "
    "profile SQL Server or Azure SQL Managed Instance."
)
_NO_BABELFISH = (
    "Babelfish has none of SQL Server's management views: profile the PostgreSQL that it is, at the port it has for "
    "PostgreSQL's own clients (--server postgresql://…)."
)


class MssqlSource(Source):
    """A SQL Server, by its engine. Rows are read by position, in the order of the queries' columns."""

    engine = "mssql"

    def __init__(self, engine: MssqlEngine, *, anonymous: bool):
        super().__init__(engine.login(), engine.address.database, anonymous=anonymous)
        self._spec = engine.spec()
        self.address = engine.location
        self._connection: Any = None
        self._cursor: Any = None
        self._batch = ""

    def open(self) -> Opened:
        # A new engine, because another server may be behind the address now.
        engine = MssqlEngine(self._spec)
        if engine.is_azure_database:
            raise StallmarkError(_NO_AZURE)
        if engine.is_babelfish:
            raise StallmarkError(_NO_BABELFISH)
        parts = {name: sql_file.statement(__name__, name).rstrip() for name in _PARTS}
        parts["counters"] = name_instance(parts["counters"], engine)
        self._batch = ";\n".join(parts.values())
        self._connection = engine.connect(APPLICATION)
        self._connection.timeout = ANSWER_WITHIN_S
        try:
            self._cursor = self._connection.execute(_MANNERS)
            facts = self._cursor.execute(sql_file.statement(__name__, "facts")).fetchall()
            name, version, edition, cores, memory_bytes, pool_bytes = one_row(facts, 6)
            reading = self._read()
        except api().Error as error:
            self.close()
            raise StallmarkError(_refused(error, engine.service.grantor)) from None
        except StallmarkError as error:
            self.close()
            raise StallmarkError(f"The server's facts could not be read ({as_reason(error)}).") from None
        server = ProfiledServer(
            engine="mssql",
            product=engine.identity().product,
            version=f"{version} {edition}",
            name=None if self._anonymous else name,
            cores=cores,
            memory_bytes=memory_bytes,
            pool_bytes=pool_bytes,
            database_bytes=sum(row[10] or 0 for row in reading.tables["file_counters"]),
        )
        counters = {counter for counter, *_ in reading.tables["server_counters"]}
        # One counter comes from another view, so a single one means that performance counters are disabled.
        missing = {} if len(counters) > 1 else {"server": _NO_COUNTERS}
        if not missing and "transactions" not in counters:
            missing = {"transactions": _NOT_OUR_COUNTERS}
        return Opened(server, name, missing)

    def read(self) -> Reading:
        try:
            return self._read()
        except api().Error as error:
            raise StallmarkError(failed(error).message) from None

    def close(self) -> None:
        connection, self._connection, self._cursor = self._connection, None, None
        if connection is not None:
            with suppress(api().Error):  # it may be closed already
                connection.close()

    def _read(self) -> Reading:
        cursor = self._cursor.execute(self._batch)
        server_clock, start, own_cpu_ms = one_row(cursor.fetchall(), 3)
        cursor.nextset()
        files = [self._file(start, row) for row in cursor.fetchall()]
        cursor.nextset()
        counters = [
            (name, "" if name in STATES else f"{start} {sources}", value) for name, sources, value in cursor.fetchall()
        ]
        cursor.nextset()
        waits = [
            (name, class_of(name), start, waits, wait_ms, signal_ms)
            for name, waits, wait_ms, signal_ms in cursor.fetchall()
            if name and not is_benign(name)
        ]
        tables = {"file_counters": files, "server_counters": counters, "wait_counters": waits}
        return Reading(server_clock, start or "", own_cpu_ms, tables)

    def _file(self, start: str, row: tuple) -> tuple:
        numbers, database_id, database, file, file_class, epoch, *counts = row
        database = f"database {database_id}" if self._anonymous or not database else database
        entity = numbers if self._anonymous or not file else f"{database}/{file}"
        return entity, database, file_class, f"{start} {epoch}", *counts


def _refused(error: Exception, grantor: str) -> str:
    failure = failed(error)
    if failure.code in FORBIDDEN:
        return (
            f"This login may not see what a profile is made of ({failure.message}): run USE master; GRANT "
            f"{refused_right(failure.message) or 'VIEW SERVER STATE'} TO it{grantor}. It needs no other right."
        )
    if failure.code == NO_SUCH_VIEW:
        return f"This server does not have a view that a profile needs ({failure.message})."
    return f"The server refused a query of the profile ({failure.message}, error {failure.code})."
