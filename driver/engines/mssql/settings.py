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


ONE_ROW = {
    "settings_database": "database",
    "settings_accelerated.15": "database",
    "settings_server": "server",
    "settings_host": "host",
    "settings_service": "server",
    "settings_extension": "server",
}
"""Files of one row, and what their columns are called by in front."""


def read(engine: "MssqlEngine") -> dict[str, str]:
    """Name and value. A part that this login may not see, or this version or edition does not have, says so."""
    found: dict[str, str] = {}
    for part in ("settings", *ONE_ROW, "settings_files"):
        try:
            found |= _part(engine, part)
        except CallFailed as error:
            found[f"not readable: {part}"] = error.message
    try:
        flags = engine.query("DBCC TRACESTATUS (-1) WITH NO_INFOMSGS")
    except CallFailed:
        flags = []
    if flags:
        found["trace flags"] = ", ".join(str(row[0]) for row in flags)
    return found


def _part(engine: "MssqlEngine", part: str) -> dict[str, str]:
    with engine.cursor() as cursor:
        rows = cursor.execute(statement(part)).fetchall()
        columns = [column[0].replace("_", " ") for column in cursor.description]
    if part == "settings":
        return {name: str(value) for name, value in rows}
    if part == "settings_files":
        return {f"file {row[0]}.{row[1]}": _file(*row[2:]) for row in rows}
    return {
        f"{ONE_ROW[part]} {name}": str(value)
        for row in rows
        for name, value in zip(columns, row, strict=True)
    }


def _file(kind: str, path: str, pages: int, growth: int, by_percent: bool) -> str:
    grows = f"{growth} %" if by_percent else f"{growth * 8 // 1024} MiB" if growth else "nothing"
    return f"{kind}, {path}, {pages * 8 // 1024} MiB, grows by {grows}"


def free_bytes(engine: "MssqlEngine") -> int | None:
    """Inside the data files, and on the fullest volume that holds one; None where the server does not tell."""
    try:
        [(free,)] = engine.query(_FREE)
    except CallFailed:
        return None
    return free
