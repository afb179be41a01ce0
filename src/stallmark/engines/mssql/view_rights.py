"""The right that each view wants of a login, by version.

Most views stand here by Microsoft's general rule: performance for what shows load, security for what shows logins.
SQL Server 2022 split VIEW SERVER STATE and VIEW DATABASE STATE so. Whoever has the old right has the new ones.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from stallmark.engines.mssql.server import SQL_SERVER_2022, Server
from stallmark.engines.mssql.sql import one_row


@dataclass(frozen=True)
class Right:
    """A right by its name before 2022, and since."""

    old: str
    new: str

    def name(self, server: Server) -> str:
        if server.is_azure_database:  # where nobody has a right on the server
            return "VIEW DATABASE STATE"
        return self.new if server.has_version(SQL_SERVER_2022) else self.old


PERFORMANCE = Right("VIEW SERVER STATE", "VIEW SERVER PERFORMANCE STATE")
SECURITY = Right("VIEW SERVER STATE", "VIEW SERVER SECURITY STATE")
IN_DATABASE = Right("VIEW DATABASE STATE", "VIEW DATABASE PERFORMANCE STATE")
ERROR_LOG = Right("VIEW SERVER STATE", "VIEW ANY ERROR LOG")
DEFINITION = Right("VIEW ANY DEFINITION", "VIEW ANY DEFINITION")

_VIEWS = {
    PERFORMANCE: (
        "configurations dm_db_file_space_usage dm_db_log_space_usage dm_db_wait_stats dm_exec_connections "
        "dm_exec_procedure_stats dm_exec_query_plan dm_exec_query_plan_stats dm_exec_query_stats dm_exec_requests "
        "dm_exec_session_wait_stats dm_exec_sessions dm_exec_sql_text dm_exec_text_query_plan "
        "dm_hadr_availability_replica_states dm_hadr_database_replica_states dm_io_pending_io_requests "
        "dm_io_virtual_file_stats dm_os_buffer_descriptors dm_os_buffer_pool_extension_configuration "
        "dm_os_enumerate_fixed_drives dm_os_file_exists dm_os_host_info dm_os_performance_counters dm_os_ring_buffers "
        "dm_os_schedulers dm_os_sys_info dm_os_volume_stats dm_os_wait_stats dm_resource_governor_configuration "
        "dm_resource_governor_resource_pools dm_resource_governor_workload_groups dm_tran_locks dm_xe_session_targets "
        "dm_xe_sessions fn_xe_file_target_read_file server_event_sessions"
    ),
    SECURITY: "dm_server_services",
    IN_DATABASE: (
        "database_automatic_tuning_options database_query_store_options dm_db_index_operational_stats "
        "query_store_plan query_store_query query_store_replicas query_store_runtime_stats "
        "query_store_runtime_stats_interval query_store_wait_stats"
    ),
    ERROR_LOG: "sp_readerrorlog",
    DEFINITION: (
        "availability_replicas master_files resource_governor_configuration resource_governor_resource_pools "
        "resource_governor_workload_groups"
    ),
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

_VIEW = re.compile(r"\bsys\.(\w+)")
_STATE = re.compile(r"VIEW (?:SERVER|DATABASE) (?:PERFORMANCE|SECURITY) STATE")


def rights_for(sql: str) -> list[Right]:
    """Return the rights that the views of a query want, each once."""
    return list(dict.fromkeys(BY_VIEW[view] for view in views(sql) if view in BY_VIEW))


def views(sql: str) -> Iterator[str]:
    """Yield the names of views, functions and procedures in `sys` that a query names, without the schema."""
    yield from _VIEW.findall(re.sub(r"--.*", "", sql))


def refused_right(message: str) -> str | None:
    """Return the right that a refusal names in its text, or None if it names none of those since 2022.

    The server has the last word: of some views Microsoft's page changed from one version of it to the next.
    """
    found = _STATE.search(message)
    return found[0] if found else None


# Before 2022 the finer permission is not known and asking for it gives NULL.
_MAY_SEE_ALL = """\
SELECT COALESCE(HAS_PERMS_BY_NAME(NULL, NULL, 'VIEW SERVER PERFORMANCE STATE'),
                HAS_PERMS_BY_NAME(NULL, NULL, 'VIEW SERVER STATE'))
"""
_MAY_SEE_DATABASE = "SELECT HAS_PERMS_BY_NAME(QUOTENAME(DB_NAME()), 'DATABASE', 'VIEW DATABASE STATE')"


def sees_all_sessions(server: Server) -> bool:
    """Return whether the login sees the sessions of others: one without the right sees its own, and gets no error."""
    [may] = one_row(server.query(_MAY_SEE_DATABASE if server.is_azure_database else _MAY_SEE_ALL), 1)
    return bool(may == 1)
