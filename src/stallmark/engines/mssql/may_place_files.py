"""Whether it can be said on this server where the files of a database are to lie."""

from typing import TYPE_CHECKING

from stallmark.engines.mssql.editions import AZURE

if TYPE_CHECKING:
    from stallmark.engines.mssql.engine import MssqlEngine

_MAY = "SELECT HAS_PERMS_BY_NAME(NULL, NULL, 'CREATE ANY DATABASE') AS may"  # ALTER ANY DATABASE implies it


def cannot(engine: "MssqlEngine") -> str | None:
    """Why a database cannot be placed here, as a sentence; None when it can."""
    if engine.edition in AZURE:
        return "Azure SQL puts a database's files where it wants them"
    if engine.identity().product != "SQL Server":
        return f"{engine.identity().product} ignores where a database's files are to lie"
    [(may,)] = engine.query(_MAY)
    if not may:
        return (
            "this login may not create a database: in master, GRANT CREATE ANY DATABASE TO it, or make it a member of "
            "dbcreator"
        )
    return None
