"""The buffer pool, emptied or filled before a run."""

from typing import TYPE_CHECKING

from stallmark.driver.engines.mssql.sql import name as quoted
from stallmark.driver.engines.mssql.sql import statement

if TYPE_CHECKING:
    from stallmark.driver.engines.mssql.engine import MssqlEngine

_DATABASES = "SELECT name FROM sys.databases WHERE state = 0 AND is_read_only = 0 AND HAS_DBACCESS(name) = 1"
_MAY_DROP = "SELECT IS_SRVROLEMEMBER('sysadmin') | IS_SRVROLEMEMBER('serveradmin')"


def cannot(engine: "MssqlEngine") -> str | None:
    """Why the caches are not to be emptied here, as a sentence; None when they may."""
    if not engine.may_drop_caches:
        return "that empties the caches of everybody on the server: add --drop-caches if nobody else needs it"
    [(may,)] = engine.query(_MAY_DROP)
    return None if may else "DBCC DROPCLEANBUFFERS needs sysadmin or serveradmin, which this login is not"


def drop(engine: "MssqlEngine") -> None:
    """Write out what is dirty, database by database, and empty the buffer pool."""
    with engine.cursor() as cursor:
        for (name,) in cursor.execute(_DATABASES).fetchall():
            cursor.execute(f"USE {quoted(name)}; CHECKPOINT")
        cursor.execute("DBCC DROPCLEANBUFFERS WITH NO_INFOMSGS")


def prefill(engine: "MssqlEngine", schema: str) -> int:
    """Scan every index of `schema`, the smallest first; returns the bytes that were read or found."""
    total = 0
    with engine.cursor() as cursor:
        for table, index, pages in cursor.execute(statement("indexes"), schema).fetchall():
            cursor.execute(f"SELECT COUNT_BIG(*) FROM {table} WITH (INDEX({index}), TABLOCK)").fetchall()
            total += pages * 8192
    return total
