"""Configuration that decides I/O, as the server tells it; what it does not tell us is left out."""

from typing import TYPE_CHECKING

from stallmark.driver.engines.errors import CallFailed
from stallmark.driver.engines.mssql.sql import statement

if TYPE_CHECKING:
    from stallmark.driver.engines.mssql.engine import MssqlEngine

# Files are made larger than what is in them: that space is free as well.
_FREE = """\
SELECT (SELECT MIN(v.available_bytes)
          FROM sys.database_files AS f
         CROSS APPLY sys.dm_os_volume_stats(DB_ID(), f.file_id) AS v)
     + 8192 * ((SELECT SUM(CAST(size AS bigint)) FROM sys.database_files WHERE type_desc = 'ROWS')
             - (SELECT SUM(total_pages) FROM sys.allocation_units)) AS free_bytes
"""


def read(engine: "MssqlEngine") -> dict[str, str]:
    """Name and value; a part that this login may not see, or this edition does not have, is missing."""
    found: dict[str, str] = {}
    for part in ("settings", "settings_server", "settings_files"):
        try:
            found |= dict(engine.query(statement(part)))
        except CallFailed as error:
            found[f"not readable: {part.replace('_', ' ')}"] = error.message
    try:
        flags = engine.query("DBCC TRACESTATUS (-1) WITH NO_INFOMSGS")
    except CallFailed:
        flags = []
    if flags:
        found["trace flags"] = ", ".join(str(row[0]) for row in flags)
    return found


def free_bytes(engine: "MssqlEngine") -> int | None:
    """Inside the data files, and on the fullest volume that holds one; None where the server does not tell."""
    try:
        [(free,)] = engine.query(_FREE)
    except CallFailed:
        return None
    return free
