"""The address of a SQL Server, as a URL or an ODBC connection string, and the managed services that run one."""

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from stallmark.engines import reachability
from stallmark.engines.mssql.odbc import INSTALLED, Driver
from stallmark.errors import CallFailed, ErrorClass, WrongOption

# The address of a SQL Server: a URL as SQLAlchemy writes it, turned into an ODBC connection string.
#
#     mssql://user@host:1433/database                       password from SQLCMDPASSWORD
#     mssql://host/database                                 Windows or Kerberos authentication
#     mssql://user@host/database?Authentication=ActiveDirectoryPassword
#     mssql://user@host/database?TrustServerCertificate=yes
#     mssql://user@host/database?BulkCopy=no                INSERT rows instead of copying them in bulk
#
# What else stands after `?` goes to the driver as it is. Encryption is on unless `Encrypt` says otherwise.

DEFAULT_PORT = 1433
LOGIN_TIMEOUT_S = 15

_ENTRA_WITHOUT_PASSWORD = ("activedirectoryintegrated", "activedirectorymsi", "activedirectoryinteractive")


_LOGIN = ("uid", "user", "user id", "pwd", "password")
_OTHER_WAYS = ("failover_partner", "failoverpartner")  # options by which another host may answer

# What mssql-python takes of the ODBC driver's keywords that may stand in a URL; it refuses a string with any other.
_COPIER_TAKES = {
    keyword.lower(): keyword
    for keyword in (
        "ApplicationIntent", "Authentication", "ConnectRetryCount", "ConnectRetryInterval", "Encrypt",
        "HostnameInCertificate", "IpAddressPreference", "KeepAlive", "KeepAliveInterval", "MultiSubnetFailover",
        "PacketSize", "ServerCertificate", "ServerSPN", "TrustServerCertificate",
    )
}  # fmt: skip
_SWITCH = {"yes": True, "no": False}


@dataclass(frozen=True)
class Address:
    host: str
    port: int | None
    instance: str | None
    database: str
    user: str | None
    password: str | None = field(repr=False)
    options: dict[str, str] = field(repr=False)  # the ODBC driver's options
    bulk_copy: bool = True

    @classmethod
    def parse(cls, text: str) -> "Address":
        """Read a URL. Raise StallmarkError, which never repeats the text: it may hold a password."""
        from sqlalchemy.engine import make_url  # reading a scenario imports this module, and needs no SQLAlchemy
        from sqlalchemy.exc import ArgumentError

        try:
            url = make_url(text)
        except (ArgumentError, ValueError):
            raise WrongOption(
                "The server's URL cannot be read: write mssql://user@host:1433/database, and every "
                "@, /, :, % or space of a password as %40, %2F, %3A, %25 or %20."
            ) from None
        options = {
            _COPIER_TAKES.get(key.lower(), key): value if isinstance(value, str) else value[-1]
            for key, value in url.query.items()
        }
        if "odbc_connect" in options:
            raise WrongOption(
                "odbc_connect= is not taken: write mssql://user@host:1433/database, with what the driver is to know "
                "after `?`, as in ?TrustServerCertificate=yes."
            )
        if any(key.lower() in _LOGIN for key in options):
            raise WrongOption(
                "User and password are not taken after `?`: write mssql://user@host:1433/database, with the password "
                "in SQLCMDPASSWORD."
            )
        driver = next((options.pop(key) for key in list(options) if key.lower() == "driver"), INSTALLED[0])
        if driver not in INSTALLED:
            raise WrongOption(
                f"?driver={driver} is not taken: Stallmark uses Microsoft's driver 18 or 17 alone, so leave it out."
            )
        switch = next((options.pop(key) for key in list(options) if key.lower() == "bulkcopy"), "yes").lower()
        if switch not in _SWITCH:
            raise WrongOption(f"?BulkCopy={switch} is neither yes nor no: ?BulkCopy=no inserts rows instead.")
        host, _, instance = (url.host or "").partition("\\")
        if not host or not url.database:
            raise WrongOption("The server's URL names no host or no database: write mssql://user@host:1433/database.")
        password = url.password or (os.environ.get("SQLCMDPASSWORD") if url.username else None)
        return cls(host, url.port, instance or None, url.database, url.username, password, options, _SWITCH[switch])

    @property
    def location(self) -> str:
        """Return server and database for messages: never user or password."""
        instance = f"\\{self.instance}" if self.instance else ""
        return f"{self.host}{instance}{f':{self.port}' if self.port else ''}/{self.database}"

    @property
    def server(self) -> str:
        """Return the server whatever the database; two addresses of one server may differ in how they name it."""
        return self.location.rpartition("/")[0]

    def unreachable_reason(self) -> str | None:
        """Return the reason why a login would only time out, as a clause without a full stop; None if it may
        succeed."""
        elsewhere = any(key.lower() in _OTHER_WAYS for key in self.options)
        if elsewhere or sys.platform == "win32":  # whose driver also takes shared memory and named pipes
            return None
        if self.instance and not self.port:
            return reachability.instance_unreachable_reason(self.host, self.instance)
        return reachability.unreachable_reason(self.host, self.port or DEFAULT_PORT)

    def connection_string(self, driver: Driver, application: str) -> str:
        """Return the connection string. It holds the password: give it to the driver alone."""
        parts = {"Driver": driver.name} | self._login() | {"Encrypt": "yes"} | self.options
        return _joined(parts | {"APP": application, "ConnectRetryCount": "0"})

    def copier_string(self) -> str:
        """Return the connection string for mssql-python, which brings a driver of its own, names the application
        itself, and takes fewer options. It holds the password."""
        known = {key: value for key, value in self.options.items() if key.lower() in _COPIER_TAKES}
        return _joined(self._login() | {"Encrypt": "yes"} | known)

    def url(self) -> str:
        """Return the URL with the password: through a pipe only."""
        from sqlalchemy.engine import URL

        return URL.create(
            "mssql",
            self.user,
            self.password,
            f"{self.host}\\{self.instance}" if self.instance else self.host,
            self.port,
            self.database,
            self.options | ({} if self.bulk_copy else {"BulkCopy": "no"}),
        ).render_as_string(hide_password=False)

    def _login(self) -> dict[str, str]:
        host = f"{self.host}\\{self.instance}" if self.instance else self.host
        parts = {"Server": f"{host},{self.port}" if self.port else host, "Database": self.database}
        entra = self.options.get("Authentication", "").lower()
        if self.user:
            parts["UID"] = self.user
            if entra not in _ENTRA_WITHOUT_PASSWORD:
                parts["PWD"] = self.password or ""
        elif not entra:
            parts["Trusted_Connection"] = "yes"
        return parts


def _joined(parts: Mapping[str, str]) -> str:
    return ";".join(f"{key}={_quoted(value)}" for key, value in parts.items())


def _quoted(value: str) -> str:
    """Return a value, in braces where it is empty or holds a character that would end it (ODBC Programmer's
    Reference, SQLDriverConnect)."""
    if value and not set(value) & set(";{}[](),?*=!@ "):
        return value
    return "{" + value.replace("}", "}}") + "}"


# The managed services that run SQL Server, and what each keeps to itself.
#
# A service is recognised by the server's own answers. What it cannot do, and what to do there instead, comes from its
# documentation alone: `docs/sql-server.md` has the source of each.

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
    no_cap_reason: str | None = None
    """The reason why `max server memory` cannot cap the memory."""
    no_restore_reason: str | None = None
    no_backup_reason: str | None = None
    """The reason why a backup next to the users is not possible."""
    no_placement_reason: str | None = None
    no_tempdb_reason: str | None = None
    """The reason why the files of tempdb cannot be placed."""
    no_pool_reason: str | None = None
    """The reason why a pool of Resource Governor cannot be made."""
    gives_roles: bool = True
    """Someone may be a member of sysadmin and dbcreator."""
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
            "buffer_pool": self.no_cap_reason,
            "reset: restore": self.no_restore_reason,
            "during: {backup: …}": self.no_backup_reason,
            "database": self.no_placement_reason,
            "database.tempdb": self.no_tempdb_reason,
            "resource_pool": self.no_pool_reason,
        }
        return [key for key, reason in keys.items() if reason]


BOX = Service("SQL Server")
"""The server of whoever runs it, on hardware or in a machine of a cloud."""

RDS = Service(
    "Amazon RDS",
    no_cap_reason=f"Amazon RDS sets `max server memory` by a DB parameter group alone: {_READ_NOT_SET}",
    no_restore_reason=(
        "Amazon RDS backs up and restores by msdb.dbo.rds_backup_database and msdb.dbo.rds_restore_database alone: "
        f"{_RESTORED_BY_HAND}"
    ),
    no_backup_reason="Amazon RDS gives nobody the right BACKUP DATABASE",
    no_tempdb_reason="Amazon RDS puts tempdb's files where it wants them",
    no_pool_reason="Amazon RDS makes a pool by msdb.dbo.rds_create_resource_pool alone",
    gives_roles=False,
    event_memory_kib=4096,
    error_log="rdsadmin.dbo.rds_read_error_log",
)
CLOUD_SQL = Service(
    "Cloud SQL",
    no_cap_reason=f"Cloud SQL sets `max server memory` by a flag of the instance alone: {_READ_NOT_SET}",
    gives_roles=False,
    grantor=" AS CustomerDbRootRole",
)
_AZURE_PLACES = "Azure SQL puts a database's files where it wants them"
MANAGED = Service(
    "Azure SQL Managed Instance",
    no_restore_reason=(
        f"Azure SQL Managed Instance backs up to a URL and restores from one alone: {_RESTORED_BY_HAND}"
    ),
    no_backup_reason="Azure SQL makes its backups itself",
    no_placement_reason=_AZURE_PLACES,
    no_tempdb_reason=_AZURE_PLACES,
)
DATABASE = Service(
    "Azure SQL Database",
    no_cap_reason=(
        "Azure SQL Database has no `max server memory`: choose a service tier for every size instead, and leave out "
        "`buffer_pool` (`--set buffer_pool=null`)"
    ),
    no_restore_reason=f"Azure SQL Database has no BACKUP and no RESTORE: {_RESTORED_BY_HAND}",
    no_backup_reason="Azure SQL makes its backups itself",
    no_placement_reason=_AZURE_PLACES,
    no_tempdb_reason=_AZURE_PLACES,
    no_pool_reason="Azure SQL Database has no Resource Governor",
)


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
