"""The address of a SQL Server: a URL as SQLAlchemy writes it, turned into an ODBC connection string.

    mssql://user@host:1433/database                       password from SQLCMDPASSWORD
    mssql://host/database                                 Windows or Kerberos authentication
    mssql://user@host/database?Authentication=ActiveDirectoryPassword
    mssql://user@host/database?TrustServerCertificate=yes
    mssql://user@host/database?BulkCopy=no                INSERT rows instead of copying them in bulk

What else stands after `?` goes to the driver as it is. Encryption is on unless `Encrypt` says otherwise.
"""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from stallmark.engines import reach
from stallmark.engines.mssql.odbc import INSTALLED, Driver
from stallmark.errors import StallmarkError

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
    options: dict[str, str] = field(repr=False)  # of the driver
    bulk_copy: bool = True

    @classmethod
    def parse(cls, text: str) -> "Address":
        """Read a URL. Raise StallmarkError, which never repeats the text: it may hold a password."""
        try:
            url: URL = make_url(text)
        except (ArgumentError, ValueError):
            raise StallmarkError(
                "The server's URL cannot be read: write mssql://user@host:1433/database, and every "
                "@, /, :, % or space of a password as %40, %2F, %3A, %25 or %20."
            ) from None
        options = {
            _COPIER_TAKES.get(key.lower(), key): value if isinstance(value, str) else value[-1]
            for key, value in url.query.items()
        }
        if "odbc_connect" in options:
            raise StallmarkError(
                "odbc_connect= is not taken: write mssql://user@host:1433/database, with what the driver is to know "
                "after `?`, as in ?TrustServerCertificate=yes."
            )
        if any(key.lower() in _LOGIN for key in options):
            raise StallmarkError(
                "User and password are not taken after `?`: write mssql://user@host:1433/database, with the password "
                "in SQLCMDPASSWORD."
            )
        driver = next((options.pop(key) for key in list(options) if key.lower() == "driver"), INSTALLED[0])
        if driver not in INSTALLED:
            raise StallmarkError(
                f"?driver={driver} is not taken: Stallmark uses Microsoft's driver 18 or 17 alone, so leave it out."
            )
        switch = next((options.pop(key) for key in list(options) if key.lower() == "bulkcopy"), "yes").lower()
        if switch not in _SWITCH:
            raise StallmarkError(f"?BulkCopy={switch} is neither yes nor no: ?BulkCopy=no inserts rows instead.")
        host, _, instance = (url.host or "").partition("\\")
        if not host or not url.database:
            raise StallmarkError(
                "The server's URL names no host or no database: write mssql://user@host:1433/database."
            )
        password = url.password or (os.environ.get("SQLCMDPASSWORD") if url.username else None)
        return cls(host, url.port, instance or None, url.database, url.username, password, options, _SWITCH[switch])

    @property
    def where(self) -> str:
        """Return server and database for messages: never user or password."""
        instance = f"\\{self.instance}" if self.instance else ""
        return f"{self.host}{instance}{f':{self.port}' if self.port else ''}/{self.database}"

    @property
    def server(self) -> str:
        """Return the server whatever the database; two addresses of one server may differ in how they name it."""
        return self.where.rpartition("/")[0]

    def why_unreachable(self) -> str | None:
        """Return why a login would only time out, as a clause without a full stop; None if it may succeed."""
        elsewhere = any(key.lower() in _OTHER_WAYS for key in self.options)
        if elsewhere or sys.platform == "win32":  # whose driver also takes shared memory and named pipes
            return None
        if self.instance and not self.port:
            return reach.why_instance_unreachable(self.host, self.instance)
        return reach.why_unreachable(self.host, self.port or DEFAULT_PORT)

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
