"""The buffer pool, emptied or filled before a run."""

from typing import TYPE_CHECKING, Any

from stallmark.driver.engines import sql_file
from stallmark.driver.engines.errors import StallmarkError
from stallmark.driver.engines.mssql.editions import AZURE, SQL_SERVER_2022
from stallmark.driver.engines.mssql.errors import failed
from stallmark.driver.engines.mssql.execute import rows
from stallmark.driver.engines.mssql.odbc import api
from stallmark.driver.engines.mssql.sql import name as quoted

if TYPE_CHECKING:
    from stallmark.driver.engines.mssql.engine import MssqlEngine

_DATABASES = "SELECT name, HAS_DBACCESS(name) AS may FROM sys.databases WHERE state = 0 AND is_read_only = 0"
_NOT_PERMITTED = ("262", "916")  # CHECKPOINT in a database; to be in it at all
_MAY_DROP = "SELECT IS_SRVROLEMEMBER('sysadmin') AS may"
_MAY_DROP_SINCE_2022 = "SELECT HAS_PERMS_BY_NAME(NULL, NULL, 'ALTER SERVER STATE') AS may"


def cannot(engine: "MssqlEngine") -> str | None:
    """Why the caches are not to be emptied here, as a sentence; None when they may."""
    if engine.identity().product != "SQL Server":
        return f"{engine.identity().product} has no DBCC DROPCLEANBUFFERS"
    finer = engine.edition in AZURE or engine.identity().version[0] >= SQL_SERVER_2022
    [(may,)] = engine.query(_MAY_DROP_SINCE_2022 if finer else _MAY_DROP)
    if not may:
        needed = "the right ALTER SERVER STATE" if finer else "the role sysadmin"
        return f"emptying the caches needs {needed}, which this login does not have"
    if not engine.may_drop_caches:
        return "that empties the caches of everybody on the server: add --drop-caches if nobody else needs it"
    return None


def drop(engine: "MssqlEngine") -> list[str]:
    """Write out what is dirty, database by database, and empty the buffer pool; says which databases were left out."""
    dirty = []
    with engine.cursor() as cursor:
        for name, may_enter in rows(cursor.execute(_DATABASES)):
            if not (may_enter and _write_out(cursor, name)):
                dirty.append(name)
        try:
            rows(cursor.execute("DBCC DROPCLEANBUFFERS WITH NO_INFOMSGS"))
        except api().Error as error:
            raise StallmarkError(
                f"The server refused to empty its caches, which a cold start needs ({failed(error).message}): use a "
                "login that may, or leave out `start_cache: cold`."
            ) from None
    if not dirty:
        return []
    return [
        "The cache was not emptied of the changed pages of other databases, in which this login may not CHECKPOINT: "
        f"{', '.join(dirty)}."
    ]


def _write_out(cursor: Any, database: str) -> bool:
    """False where this login may not."""
    try:
        rows(cursor.execute(f"USE {quoted(database)}; CHECKPOINT"))
    except api().Error as error:
        if failed(error).code not in _NOT_PERMITTED:
            raise
        return False
    return True


def prefill(engine: "MssqlEngine", schema: str) -> int:
    """Scan every index of `schema`, the smallest first; returns the bytes that were read or found."""
    total = 0
    with engine.cursor() as cursor:
        for table, index, pages in cursor.execute(sql_file.read(__package__, "indexes"), schema).fetchall():
            cursor.execute(f"SELECT COUNT_BIG(*) FROM {table} WITH (INDEX({index}), TABLOCK)").fetchall()
            total += pages * 8192
    return total
