"""AUTO_CLOSE: a database that has it closes once no session is in it, and its pages leave the buffer pool.

Databases made on Express have it, and a restore brings back what the copy had.
"""

from stallmark.engines.mssql.server import Server
from stallmark.engines.mssql.sql import stay_open

_IS_ON = "SELECT is_auto_close_on FROM sys.databases WHERE database_id = DB_ID()"


def advice(server: Server) -> str | None:
    """Return what a database that closes loses, with the remedy, as a clause, or None if it stays open."""
    if server.identity().product != "SQL Server":
        return None
    if not any(is_on for (is_on,) in server.query(_IS_ON)):
        return None
    return (
        "the database closes once no session is in it (AUTO_CLOSE), and all that was in memory is lost: run "
        f"{stay_open(server.address.database)}"
    )
