"""The version of SQL Server that a database is compatible with, and the least that its procedures need."""

from stallmark.engines.mssql.server import Server
from stallmark.engines.mssql.sql import name

LEAST_LEVEL = 130
WHY_LEAST_LEVEL = (
    f"the procedures call STRING_SPLIT, which compatibility level {LEAST_LEVEL} brought; what is wanted of an older "
    "one is mostly its cardinality estimator, which every level has"
)
_LEVEL = "SELECT compatibility_level FROM sys.databases WHERE database_id = DB_ID()"


def too_low(server: Server) -> str | None:
    """Return that the database is compatible with too old a version, as a sentence; None where it is not."""
    if server.is_babelfish:
        return None
    [(level,)] = server.query(_LEVEL)
    if level >= LEAST_LEVEL:
        return None
    return (
        f"The database has compatibility level {level}, and {WHY_LEAST_LEVEL}: ALTER DATABASE "
        f"{name(server.address.database)} SET COMPATIBILITY_LEVEL = {LEAST_LEVEL}, and ALTER DATABASE SCOPED "
        "CONFIGURATION SET LEGACY_CARDINALITY_ESTIMATION = ON."
    )
