"""The right that each view wants of a login, by version.

From the Permissions of each view's page in MicrosoftDocs/sql-docs, as of August 2026 (most of commit 2666006c).
SQL Server 2022 split VIEW SERVER STATE and VIEW DATABASE STATE into performance and security. Whoever has the old right
has the new ones. One view has no page, dm_os_file_exists: it stands here by the general rule of "System dynamic
management views and functions". Some pages of Query Store name the old right alone, and are here by the same rule.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from stallmark.engines.mssql.odbc import one_row
from stallmark.engines.mssql.server import SQL_SERVER_2022, Server


@dataclass(frozen=True)
class Right:
    """A right by its name before 2022, and since."""

    old: str
    """Empty if every login saw the view."""
    new: str
    instead: tuple[str, ...] = ()
    """Other rights, each of which does as well as the new one."""

    def name(self, server: Server) -> str:
        if server.is_azure_database:  # where nobody has a right on the server
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
    PERFORMANCE: (
        "dm_db_file_space_usage dm_db_log_space_usage dm_exec_connections dm_exec_procedure_stats dm_exec_query_plan "
        "dm_exec_query_plan_stats dm_exec_query_stats dm_exec_requests dm_exec_session_wait_stats dm_exec_sessions "
        "dm_exec_sql_text dm_exec_text_query_plan dm_hadr_availability_replica_states dm_hadr_database_replica_states "
        "dm_io_pending_io_requests dm_io_virtual_file_stats dm_os_buffer_descriptors "
        "dm_os_buffer_pool_extension_configuration dm_os_enumerate_fixed_drives dm_os_file_exists "
        "dm_os_performance_counters dm_os_ring_buffers dm_os_schedulers dm_os_sys_info dm_os_volume_stats "
        "dm_os_wait_stats dm_resource_governor_configuration dm_resource_governor_resource_pools "
        "dm_resource_governor_workload_groups dm_tran_locks dm_xe_session_targets dm_xe_sessions "
        "fn_xe_file_target_read_file server_event_sessions"
    ),
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
BY_VIEW = {view: right for right, views in _VIEWS.items() for view in views.split()}
OPEN = frozenset(
    {
        *("allocation_units", "columns", "database_files", "database_mirroring", "database_recovery_status"),
        *("database_scoped_configurations", "databases", "extended_properties", "indexes", "objects", "parameters"),
        *("partitions", "schemas", "stats", "stats_columns", "syslanguages", "tables"),
    }
)
"""Views that show everybody what is his own, our database and its objects among it."""

_HIDING = (DEFINITION, FILES)
_VIEW = re.compile(r"\bsys\.(\w+)")
_STATE = re.compile(r"VIEW (?:SERVER|DATABASE) (?:PERFORMANCE|SECURITY) STATE")


def required_right(sql: str, server: Server) -> str:
    """Return the right that the first view of a query wants on a server, of those views that refuse a login without.

    Views that want VIEW ANY DEFINITION show less instead.
    """
    rights = (BY_VIEW[view] for view in views(sql) if view in BY_VIEW)
    names = (right.name(server) for right in rights if right not in _HIDING)
    return next(filter(None, names), PERFORMANCE.name(server))


def hiding_right(sql: str) -> str | None:
    """Return the right without which a view of a query shows less, or None if it has no such view."""
    rights = (BY_VIEW[view] for view in views(sql) if view in BY_VIEW)
    return next((right.new for right in rights if right in _HIDING), None)


def views(sql: str) -> Iterator[str]:
    """Yield the names of views, functions and procedures in `sys` that a query names, without the schema."""
    yield from _VIEW.findall(re.sub(r"--.*", "", sql))


def refused_right(message: str) -> str | None:
    """Return the right that a refusal names in its text, or None if it names none of those since 2022.

    The server has the last word: of some views Microsoft's page changed from one version of it to the next.
    """
    found = _STATE.search(message)
    return found[0] if found else None


# The server's own sessions are always there. The view is asked, not the right: which one it wants changed with 2022.
_SEES_ALL = """\
SELECT CASE WHEN EXISTS (SELECT 1 FROM sys.dm_exec_sessions AS s WHERE s.is_user_process = 0) THEN 1 ELSE 0 END AS may
"""
_MAY_SEE_DATABASE = "SELECT HAS_PERMS_BY_NAME(QUOTENAME(DB_NAME()), 'DATABASE', 'VIEW DATABASE STATE') AS may"


def sees_all_sessions(server: Server) -> bool:
    """Return whether the login sees the sessions of others: one without the right sees its own, and gets no error."""
    [may] = one_row(server.query(_MAY_SEE_DATABASE if server.is_azure_database else _SEES_ALL), 1)
    return bool(may == 1)
