"""How much more the database can hold."""

from typing import TYPE_CHECKING

from stallmark.engines import sql_file
from stallmark.errors import CallFailed

if TYPE_CHECKING:
    from stallmark.engines.mssql.engine import MssqlEngine


def free_bytes(engine: "MssqlEngine") -> int | None:
    """Inside the data files, and on the fullest volume that holds one; None where the server does not tell."""
    try:
        [(free,)] = engine.query(sql_file.read(__package__, "free_space"))
    except CallFailed:
        return None
    return free
