"""Configuration that decides I/O, as the server reports it, and the right that each view wants of a login."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from stallmark.engines import sql_file
from stallmark.engines.base import ServerSettings
from stallmark.engines.mssql import variant_settings
from stallmark.engines.mssql.address import BOX
from stallmark.engines.mssql.odbc import one_row
from stallmark.engines.mssql.server import AZURE, SQL_SERVER_2022, Server
from stallmark.errors import CallFailed

# The right that each view wants of a login, by version.
#
# From the Permissions of each view's page in MicrosoftDocs/sql-docs, as of August 2026 (most of commit 2666006c). SQL
# Server 2022 split VIEW SERVER STATE and VIEW DATABASE STATE into performance and security. Whoever has the old right
# has the new ones. The general rule is that of "System dynamic management views and functions". Some pages of Query
# Store name the old right alone, and are here by the same rule.


@dataclass(frozen=True)
class Right:
    """A right by its name before 2022, and since."""

    old: str
    """Empty if every login saw the view."""
    new: str
    instead: tuple[str, ...] = ()
    """Other rights, each of which does as well as the new one."""

    def name(self, server: Server) -> str:
        if server.is_azure_database:  # no login has a right on the server there
            return "VIEW DATABASE STATE"
        return self.new if server.has_version(SQL_SERVER_2022) else self.old

    def names(self, server: Server) -> tuple[str, ...]:
        """Return the right's name, and those of the rights that do as well on this server."""
        name = self.name(server)
        return (name, *self.instead) if name == self.new else (name,)


PERFORMANCE = Right("VIEW SERVER STATE", "VIEW SERVER PERFORMANCE STATE")
ALL_STATE = Right(PERFORMANCE.old, PERFORMANCE.old)
"""The right that includes both which it was split into."""
PERFORMANCE_SINCE_2022 = Right("", PERFORMANCE.new)
SECURITY = Right("VIEW SERVER STATE", "VIEW SERVER SECURITY STATE")
IN_DATABASE = Right("VIEW DATABASE STATE", "VIEW DATABASE PERFORMANCE STATE")
ERROR_LOG = Right("VIEW SERVER STATE", "VIEW ANY ERROR LOG", instead=(PERFORMANCE.new,))
DEFINITION = Right("VIEW ANY DEFINITION", "VIEW ANY DEFINITION")
FILES = Right("VIEW ANY DEFINITION", "VIEW ANY DEFINITION", instead=("ALTER ANY DATABASE", "CREATE ANY DATABASE"))

_VIEWS = {
    PERFORMANCE: "fn_xe_file_target_read_file server_event_sessions",
    PERFORMANCE_SINCE_2022: "configurations dm_os_host_info",
    SECURITY: "dm_server_services",
    IN_DATABASE: (
        "database_automatic_tuning_options database_query_store_options dm_db_index_operational_stats dm_db_wait_stats "
        "query_store_plan query_store_query query_store_replicas query_store_runtime_stats "
        "query_store_runtime_stats_interval query_store_wait_stats"
    ),
    ERROR_LOG: "sp_readerrorlog",
    DEFINITION: (
        "availability_replicas resource_governor_configuration resource_governor_resource_pools "
        "resource_governor_workload_groups"
    ),
    FILES: "master_files",
}
EXCEPTIONS = {view: right for right, views in _VIEWS.items() for view in views.split()}
"""The rights of views that are not those of the general rule."""

_HIDING = (DEFINITION, FILES)
_VIEW = re.compile(r"\bsys\.(\w+)")
_STATE = re.compile(r"VIEW (?:SERVER|DATABASE) (?:PERFORMANCE|SECURITY) STATE")


def view_right(view: str) -> Right | None:
    """Return the right that a view wants of a login; None if every login sees its own, as its database and objects."""
    return EXCEPTIONS.get(view, PERFORMANCE if view.startswith("dm_") else None)


def required_right(sql: str, server: Server) -> str:
    """Return the right that the first view of a query wants on a server, of those views that refuse a login without.

    Views that want VIEW ANY DEFINITION show less instead.
    """
    rights = filter(None, map(view_right, views(sql)))
    names = (right.name(server) for right in rights if right not in _HIDING)
    return next(filter(None, names), PERFORMANCE.name(server))


def hiding_right(sql: str) -> str | None:
    """Return the right without which a view of a query shows less, or None if it has no such view."""
    rights = filter(None, map(view_right, views(sql)))
    return next((right.new for right in rights if right in _HIDING), None)


def views(sql: str) -> Iterator[str]:
    """Yield the names of views, functions and procedures in `sys` that a query names, without the schema."""
    yield from _VIEW.findall(re.sub(r"--.*", "", sql))


def refused_right(message: str) -> str | None:
    """Return the right that a refusal names in its text, or None if it names none of those since 2022.

    The server has the last word: of some views Microsoft's page changed from one version of it to the next.
    """
    right = _STATE.search(message)
    return right[0] if right else None


# The server's own sessions are always there. The view is asked, not the right: which one it wants changed with 2022.
_SEES_ALL = """\
SELECT CASE WHEN EXISTS (SELECT 1 FROM sys.dm_exec_sessions AS s WHERE s.is_user_process = 0) THEN 1 ELSE 0 END AS may
"""
_MAY_SEE_DATABASE = "SELECT HAS_PERMS_BY_NAME(QUOTENAME(DB_NAME()), 'DATABASE', 'VIEW DATABASE STATE') AS may"


def sees_all_sessions(server: Server) -> bool:
    """Return True if the login sees other sessions: without the right it sees its own, and gets no error."""
    [may] = one_row(server.query(_MAY_SEE_DATABASE if server.is_azure_database else _SEES_ALL), 1)
    return bool(may == 1)


# Configuration that decides I/O, as the server tells it; what it does not tell us is left out.

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
"""The parts that describe where data are stored."""

PARTS = (*NAMED, *ONE_ROW, *PLACEMENT)

MOMENTARY = ("server started", "database log reuse wait", "database log kept for backup")
"""Settings that describe the moment they were read, not the configuration."""

AS_A_USER = ("settings_governor", "settings_tempdb_limit.17")
"""Files whose answer is for a session as a virtual user's, by which the server may sort it."""

IN_NO_GROUP = {"availability group role": "none"}
"""The value for a missing row: a database without a group is a fact, in which two runs may differ."""

NOT_VISIBLE = "not visible to a client"
UNSEEN = ("sector size of the volumes",)
UNSEEN_ON_LINUX = ("mssql.conf control.writethrough", "mssql.conf control.alternatewritethrough")
"""Settings that decide I/O and that no statement shows: mssql.conf is a file beside the server, read at its start."""


def read(server: Server) -> ServerSettings:
    """Return names and values, and apart the parts that this login may not see, or this edition does not have."""
    configuration: dict[str, str] = {}
    placement: dict[str, str] = {}
    unreadable: dict[str, str] = {}
    for part in PARTS:
        if not is_known(server, part):
            continue
        try:
            values = read_part(server, part)
        except CallFailed as error:
            unreadable[part] = error.message
            continue
        if not values and (right := hiding_right(sql_file.statement(__name__, part))):
            unreadable[part] = f"it is hidden from this login, which needs {right}"
        (placement if part in PLACEMENT else configuration).update(values)
    if configuration.get("availability group commit mode") == "None":  # NULL, where the replicas are hidden
        for name in ("commit mode", "synchronous secondaries"):
            del configuration[f"availability group {name}"]
        unreadable["settings_replica"] = "the replicas are hidden from this login, which needs VIEW ANY DEFINITION"
    try:
        # Among them 3979 and 3982, by which forced flushes are done.
        flags = server.query("DBCC TRACESTATUS (-1) WITH NO_INFOMSGS")
        configuration["trace flags"] = ", ".join(str(row[0]) for row in flags) or "none"
    except CallFailed as error:
        unreadable["trace flags"] = error.message
    if server.service is not BOX:
        configuration["service"] = server.service.name
    if statements := variant_settings.noted_tempdb(server):
        configuration["tempdb, what gives back its files"] = "; ".join(statements)
    if server.identity().product == "SQL Server" and server.edition not in AZURE:
        unseen = UNSEEN if configuration.get("host platform") == "Windows" else UNSEEN + UNSEEN_ON_LINUX
        configuration |= dict.fromkeys(unseen, NOT_VISIBLE)
    momentary = {name: configuration.pop(name) for name in MOMENTARY if name in configuration}
    momentary["ODBC driver"] = server.loaded_driver
    return ServerSettings(configuration, placement, momentary, unreadable)


def is_known(server: Server, part: str) -> bool:
    """Return True if this version has the objects of a part."""
    since = part.partition(".")[2]
    return not since or server.has_version(int(since))


def read_part(server: Server, part: str) -> dict[str, str]:
    """Return the names and values of one part. Raise CallFailed."""
    application = "stallmark-user" if part in AS_A_USER else "stallmark-collector"
    with server.cursor(application) as cursor:
        rows = cursor.execute(sql_file.statement(__name__, part)).fetchall()
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
