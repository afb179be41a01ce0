"""Configuration that decides I/O, as the server tells it; what it does not tell us is left out."""

from stallmark.engines import sql_file
from stallmark.engines.base import ServerSettings
from stallmark.engines.mssql import variant_settings
from stallmark.engines.mssql.server import AZURE, Server
from stallmark.engines.mssql.service import BOX
from stallmark.engines.mssql.view_rights import hiding_right
from stallmark.errors import CallFailed

ONE_ROW = {
    "settings_database": "database",
    "settings_accelerated.15": "database",
    "settings_log": "database",
    "settings_server": "server",
    "settings_host": "host",
    "settings_service": "server",
    "settings_extension": "server",
    "settings_query_store": "query store",
    "settings_replica": "availability group",
    "settings_governor": "resource governor",
    "settings_tempdb.15": "tempdb",
    "settings_locking.17": "database",
    "settings_feeds.16": "database",
    "settings_tempdb_recovery.17": "tempdb",
    "settings_tempdb_limit.17": "resource governor",
}
"""Files of one row, and what their columns are called by in front. A number: from this major version on."""

NAMED = {"settings": "", "settings_scoped": "database scoped ", "settings_tuning": "automatic tuning "}
"""Files of names and values, and what the names have in front."""

PLACEMENT = ("settings_volumes", "settings_files")
"""Files of where data lie."""

PARTS = (*NAMED, *ONE_ROW, *PLACEMENT)

MOMENTARY = ("server started", "database log reuse wait", "database log kept for backup")
"""Settings that describe the moment they were read, not the configuration."""

AS_A_USER = ("settings_governor", "settings_tempdb_limit.17")
"""Files whose answer is for a session as a virtual user's, by which the server may sort it."""

IN_NO_GROUP = {"availability group role": "none"}
"""Stands for no row: that a database is in no group is a fact, and two runs may differ in it."""

NOT_VISIBLE = "not visible to a client"
UNSEEN = ("sector size of the volumes",)
UNSEEN_ON_LINUX = ("mssql.conf control.writethrough", "mssql.conf control.alternatewritethrough")
"""Settings that decide I/O and that no statement tells: mssql.conf is a file beside the server, read at its start."""


def read(server: Server) -> ServerSettings:
    """Return names and values, and apart the parts that this login may not see, or this edition does not have."""
    found: dict[str, str] = {}
    placement: dict[str, str] = {}
    unreadable: dict[str, str] = {}
    for part in PARTS:
        if not _is_known(server, part):
            continue
        try:
            values = _part(server, part)
        except CallFailed as error:
            unreadable[part] = error.message
            continue
        if not values and (right := hiding_right(sql_file.read(__package__, part))):
            unreadable[part] = f"it is hidden from this login, which needs {right}"
        (placement if part in PLACEMENT else found).update(values)
    if found.get("availability group commit mode") == "None":  # NULL, where the replicas are hidden
        for name in ("commit mode", "synchronous secondaries"):
            del found[f"availability group {name}"]
        unreadable["settings_replica"] = "the replicas are hidden from this login, which needs VIEW ANY DEFINITION"
    try:
        # Among them 3979 and 3982, by which forced flushes are done.
        flags = server.query("DBCC TRACESTATUS (-1) WITH NO_INFOMSGS")
        found["trace flags"] = ", ".join(str(row[0]) for row in flags) or "none"
    except CallFailed as error:
        unreadable["trace flags"] = error.message
    if server.service is not BOX:
        found["service"] = server.service.name
    if statements := variant_settings.noted_tempdb(server):
        found["tempdb, what gives back its files"] = "; ".join(statements)
    if server.identity().product == "SQL Server" and server.edition not in AZURE:
        unseen = UNSEEN if found.get("host platform") == "Windows" else UNSEEN + UNSEEN_ON_LINUX
        found |= dict.fromkeys(unseen, NOT_VISIBLE)
    momentary = {name: found.pop(name) for name in MOMENTARY if name in found}
    momentary["ODBC driver"] = server.loaded_driver
    return ServerSettings(found, placement, momentary, unreadable)


def _is_known(server: Server, part: str) -> bool:
    """Tell whether this version has what the part asks for."""
    since = part.partition(".")[2]
    return not since or server.has_version(int(since))


def _part(server: Server, part: str) -> dict[str, str]:
    application = "stallmark-user" if part in AS_A_USER else "stallmark-collector"
    with server.cursor(application) as cursor:
        rows = cursor.execute(sql_file.read(__package__, part)).fetchall()
        columns = [column[0].replace("_", " ") for column in cursor.description]
    if part in NAMED:
        return {NAMED[part] + name: str(value) for name, value in rows}
    if part == "settings_replica" and not rows:
        return IN_NO_GROUP
    if part == "settings_files":
        return {f"file {row[0]}.{row[1]}": _file(*row[2:]) for row in rows}
    if part == "settings_volumes":
        return {f"volume {row[0] or '-'}": _volume(*row[1:]) for row in rows}
    return {f"{ONE_ROW[part]} {name}": str(value) for row in rows for name, value in zip(columns, row, strict=True)}


def _file(kind: str, path: str, pages: int | None, growth: int, by_percent: bool) -> str:
    grows = f"{growth} %" if by_percent else f"{growth * 8 // 1024} MiB" if growth else "nothing"
    size = "size unknown" if pages is None else f"{pages * 8 // 1024} MiB"
    return f"{kind}, {path}, {size}, grows by {grows}"


def _volume(file_system: str | None, total_bytes: int | None, compressed: bool | None) -> str:
    """Describe a volume. Any of it may be NULL, as of a volume that Linux mounts in its own way, or of blob storage."""
    size = "unknown" if total_bytes is None else f"{total_bytes // 1024**2} MiB"
    return f"{file_system or 'unknown'}, {size}{', compressed' if compressed else ''}"
