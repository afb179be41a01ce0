"""The buffer pool, emptied or filled before a run."""

from typing import Any

from stallmark.engines import sql_file
from stallmark.engines.abilities import Caches, Prefill
from stallmark.engines.mssql.odbc import api, failed, is_gone, rows
from stallmark.engines.mssql.odbc import name as quoted
from stallmark.engines.mssql.server import SQL_SERVER_2022, Server, auto_close_advice
from stallmark.errors import StallmarkError

# The buffer pool, emptied or filled before a run.


# What makes the server read every page of rows, and every segment of a columnstore, whose rows it counts without.
_ROWS = "COUNT_BIG(*)"
_SEGMENTS = "CHECKSUM_AGG(BINARY_CHECKSUM(*))"
_OTHERS = """\
SELECT name, HAS_DBACCESS(name) AS may
  FROM sys.databases
 WHERE state = 0 AND is_read_only = 0 AND database_id <> DB_ID()
"""
_MAY_DROP = "SELECT IS_SRVROLEMEMBER('sysadmin') AS may"
# Whoever made the server has the right without the role.
_MAY_DROP_ON_AZURE = """\
SELECT CASE WHEN IS_SRVROLEMEMBER('##MS_ServerStateManager##') = 1
              OR HAS_PERMS_BY_NAME(NULL, NULL, 'ALTER SERVER STATE') = 1 THEN 1 ELSE 0 END AS may
"""
_SYSADMIN = "the role sysadmin"
_MAY_DROP_SINCE_2022 = "SELECT HAS_PERMS_BY_NAME(NULL, NULL, 'ALTER SERVER STATE') AS may"


class MssqlCaches(Caches):
    def __init__(self, server: Server):
        self._server = server

    def refusal(self) -> str | None:
        server = self._server
        if server.is_babelfish:
            return f"{server.identity().product} has no DBCC DROPCLEANBUFFERS"
        question, needed = self._right()
        [(may,)] = server.query(question)
        if not may:
            nobody = needed == _SYSADMIN and not server.service.gives_roles
            whom = f"{server.service.name} gives to nobody" if nobody else "this login does not have"
            return f"emptying the caches needs {needed}, which {whom}"
        if not self.allowed:
            whose = (
                "of every database of the same elastic pool, and may empty those of others with the service objectives "
                "Basic, S0 and S1"
                if server.is_azure_database
                else "of everybody on the server"
            )
            return f"that empties the caches {whose}: add --drop-caches if nobody else needs them"
        return None

    def _right(self) -> tuple[str, str]:
        """Return the query that shows whether this login may, and what it needs."""
        if self._server.is_azure_database:
            return _MAY_DROP_ON_AZURE, "the server role ##MS_ServerStateManager##"
        if self._server.has_version(SQL_SERVER_2022):
            return _MAY_DROP_SINCE_2022, "the right ALTER SERVER STATE"
        return _MAY_DROP, _SYSADMIN

    def empty(self) -> list[str]:
        """Write out dirty pages, database by database, and empty the buffer pool; return the databases that were
        skipped.
        """
        dirty = []
        with self._server.cursor() as cursor:
            rows(cursor.execute("CHECKPOINT"))
            if not self._server.is_azure_database:  # other databases are not on this server
                dirty = _write_out_others(cursor)
            try:
                rows(cursor.execute("DBCC DROPCLEANBUFFERS WITH NO_INFOMSGS"))
            except api().Error as error:
                raise StallmarkError(
                    f"The server refused to empty its caches, which a cold start needs ({failed(error).message}): use "
                    "a login that may, or leave out `start_cache: cold`."
                ) from None
        if not dirty:
            return []
        return [
            "The cache was not emptied of the changed pages of other databases, in which CHECKPOINT failed: "
            f"{', '.join(dirty)}."
        ]


def _write_out_others(cursor: Any) -> list[str]:
    """Return the databases in which it failed, with the reasons. A closed database of others, or a replica, does not
    count.
    """
    dirty = []
    for name, may_enter in rows(cursor.execute(_OTHERS)):
        if not may_enter:
            dirty.append(f"{name} (this login may not enter it)")
            continue
        try:
            rows(cursor.execute(f"USE {quoted(name)}; CHECKPOINT"))
        except api().Error as error:
            failure = failed(error)
            if is_gone(failure):
                raise
            dirty.append(f"{name} ({failure.message})")
    return dirty


class MssqlPrefill(Prefill):
    def __init__(self, server: Server):
        self._server = server

    def refusal(self) -> str | None:
        if self._server.is_babelfish:
            return "Babelfish does not tell how large its indexes are"
        return auto_close_advice(self._server)

    def fill(self, *schemas: str) -> int:
        """Scan every index, schema by schema, the smallest first; return the bytes that were read or found."""
        total = 0
        for schema in schemas:
            with self._server.cursor() as cursor:
                indexes = cursor.execute(sql_file.statement(__name__, "indexes"), schema).fetchall()
                for table, index, pages, is_columnstore, long_texts in indexes:
                    read = [_SEGMENTS if is_columnstore else _ROWS]
                    read += [f"SUM(CAST({long_texts} AS bigint))"] * bool(long_texts)
                    cursor.execute(f"SELECT {', '.join(read)} FROM {table} WITH (INDEX({index}), TABLOCK)").fetchall()
                    total += pages * 8192
        return total
