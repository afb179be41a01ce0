"""The managed services that run SQL Server, and what each keeps to itself.

A service is recognised by the server's own answers. What it cannot do, and what to do there instead, comes from its
documentation alone: `docs/sql-server.md` has the source of each.
"""

from collections.abc import Callable
from dataclasses import dataclass

from stallmark.errors import CallFailed, ErrorClass

AZURE_DATABASE, MANAGED_INSTANCE = 5, 8  # SERVERPROPERTY('EngineEdition')

_READ_NOT_SET = (
    "leave out `buffer_pool` (`--set buffer_pool=null`), and let each variant's `before` apply another size; the "
    "record has the size that the server says it has"
)
_RESTORED_BY_HAND = "use `reset: continue` (`--set reset=continue`), or restore between experiments"

# Both are NULL on a server that has no such thing. Cloud SQL's role is a member's to see. A login without VIEW ANY
# DATABASE does not see RDS's database, and still the procedures that are there for it.
_SIGNS = """\
SELECT COALESCE(DB_ID('rdsadmin'), OBJECT_ID('msdb.dbo.rds_task_status')) AS rds,
       IS_SRVROLEMEMBER('CustomerDbRootRole') AS cloud_sql
"""


@dataclass(frozen=True)
class Service:
    """A managed service. Each reason is a clause without a full stop, or None if the service has the feature."""

    name: str
    why_no_cap: str | None = None
    """The reason why nobody caps the memory by `max server memory`."""
    why_no_restore: str | None = None
    why_no_backup: str | None = None
    """The reason why nobody has a backup beside the users."""
    why_no_placement: str | None = None
    why_no_tempdb: str | None = None
    """The reason why nobody places the files of tempdb."""
    why_no_pool: str | None = None
    """The reason why nobody makes a pool of Resource Governor."""
    gives_roles: bool = True
    """Somebody may be a member of sysadmin and dbcreator."""
    event_memory_kib: int = 8192
    """The memory of an event session of ours."""
    error_log: str = "sys.sp_readerrorlog"
    """The procedure that reads the server's error log."""
    grantor: str = ""
    """The end of a GRANT of a right on the server."""

    @property
    def refused_keys(self) -> list[str]:
        """Return the keys of a scenario that are refused here."""
        keys = {
            "buffer_pool": self.why_no_cap,
            "reset: restore": self.why_no_restore,
            "during: {backup: …}": self.why_no_backup,
            "database": self.why_no_placement,
            "database.tempdb": self.why_no_tempdb,
            "resource_pool": self.why_no_pool,
        }
        return [key for key, why in keys.items() if why]


BOX = Service("SQL Server")
"""The server of whoever runs it, on hardware or in a machine of a cloud."""

RDS = Service(
    "Amazon RDS",
    why_no_cap=f"Amazon RDS sets `max server memory` by a DB parameter group alone: {_READ_NOT_SET}",
    why_no_restore=(
        "Amazon RDS backs up and restores by msdb.dbo.rds_backup_database and msdb.dbo.rds_restore_database alone: "
        f"{_RESTORED_BY_HAND}"
    ),
    why_no_backup="Amazon RDS gives nobody the right BACKUP DATABASE",
    why_no_tempdb="Amazon RDS puts tempdb's files where it wants them",
    why_no_pool="Amazon RDS makes a pool by msdb.dbo.rds_create_resource_pool alone",
    gives_roles=False,
    event_memory_kib=4096,
    error_log="rdsadmin.dbo.rds_read_error_log",
)
CLOUD_SQL = Service(
    "Cloud SQL",
    why_no_cap=f"Cloud SQL sets `max server memory` by a flag of the instance alone: {_READ_NOT_SET}",
    gives_roles=False,
    grantor=" AS CustomerDbRootRole",
)
_AZURE_PLACES = "Azure SQL puts a database's files where it wants them"
MANAGED = Service(
    "Azure SQL Managed Instance",
    why_no_restore=(f"Azure SQL Managed Instance backs up to a URL and restores from one alone: {_RESTORED_BY_HAND}"),
    why_no_backup="Azure SQL makes its backups itself",
    why_no_placement=_AZURE_PLACES,
    why_no_tempdb=_AZURE_PLACES,
)
DATABASE = Service(
    "Azure SQL Database",
    why_no_cap=(
        "Azure SQL Database has no `max server memory`: choose a service tier for every size instead, and leave out "
        "`buffer_pool` (`--set buffer_pool=null`)"
    ),
    why_no_restore=f"Azure SQL Database has no BACKUP and no RESTORE: {_RESTORED_BY_HAND}",
    why_no_backup="Azure SQL makes its backups itself",
    why_no_placement=_AZURE_PLACES,
    why_no_tempdb=_AZURE_PLACES,
    why_no_pool="Azure SQL Database has no Resource Governor",
)
SERVICES = (RDS, CLOUD_SQL, MANAGED, DATABASE)


def recognise(edition: int, query: Callable[[str], list[tuple]]) -> Service:
    """Return the service of a server of this EngineEdition that answers `query`; BOX if it is not a managed one.

    Raise CallFailed if the question was lost or given up: what the server is stays unknown.
    """
    if edition in (azure := {AZURE_DATABASE: DATABASE, MANAGED_INSTANCE: MANAGED}):
        return azure[edition]
    try:
        [(rds, cloud_sql)] = query(_SIGNS)
    except CallFailed as error:
        if error.kind is not ErrorClass.OTHER or not error.code.isdigit():
            raise
        return BOX  # the server refused it, which none of these does
    except ValueError:
        return BOX
    return RDS if rds is not None else CLOUD_SQL if cloud_sql is not None else BOX
