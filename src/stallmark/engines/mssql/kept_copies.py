"""The backup files that Stallmark has left on a server, and their removal."""

from datetime import datetime
from typing import NamedTuple

from stallmark.engines import sql_file
from stallmark.engines.mssql import sql
from stallmark.engines.mssql.backup import NOT_THERE
from stallmark.engines.mssql.server import Server
from stallmark.errors import CallFailed, StallmarkError

# What maintenance plans remove backups by: of files that are none it does nothing.
_DELETE = "EXEC master.dbo.xp_delete_file 0, {path}"


class KeptCopy(NamedTuple):
    """A file of a backup, by its path on the server. msdb may lack what is None; `database` is empty then."""

    database: str
    path: str
    finished: datetime | None
    bytes: int | None


def kept(server: Server) -> list[KeptCopy]:
    """Return the files that are still there, of all databases of the server. Raise CallFailed without the right to
    read msdb."""
    found = [KeptCopy(*row) for row in server.query(sql_file.read(__package__, "kept_copies"))]
    return [copy for copy in found if _is_there(server, copy.path)]


def remove(server: Server, copy: KeptCopy) -> None:
    """Remove the file. Raise StallmarkError where it is still there."""
    try:
        server.execute(_DELETE.format(path=sql.text(copy.path)))
        why = "the server did nothing"
    except CallFailed as error:
        why = error.message
    if _is_there(server, copy.path):
        login = "use a login that is sysadmin, or " if server.service.gives_roles else ""
        raise StallmarkError(f"{copy.path} is still there ({why}): {login}remove the file on the server.")


def _is_there(server: Server, path: str) -> bool:
    try:
        server.query(f"RESTORE LABELONLY FROM DISK = {sql.text(path)}")
    except CallFailed as error:
        return error.code != NOT_THERE
    return True
