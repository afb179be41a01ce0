"""The database engines: one interface, PostgreSQL by URL, the embedded PostgreSQL, and SQL Server by URL."""

import difflib
from typing import TYPE_CHECKING

from stallmark.errors import StallmarkError

if TYPE_CHECKING:
    from stallmark.engines.base import Engine


_PORTS = {1433: ("mssql", "SQL Server"), 5432: ("postgresql", "PostgreSQL")}


def did_you_mean(scheme: str, port: int | None) -> str | None:
    """Return a clause where a port is the usual one of the other engine; it goes behind a failure to connect."""
    usual, product = _PORTS.get(port or 0, (scheme, ""))
    return None if usual == scheme else f"{port} is the usual port of {product}: if it is one, write {usual}://"


def open_engine(url: str) -> "Engine":
    """Return the engine for a server by its URL, whose scheme names the engine. No connection is made yet."""
    scheme = url.partition(":")[0].partition("+")[0].lower()
    if scheme == "mssql":
        from stallmark.engines.mssql.engine import MssqlEngine

        return MssqlEngine(url)
    if scheme in ("postgresql", "postgres") or "=" in url:  # libpq takes `host=… dbname=…` too
        from stallmark.engines.postgres.engine import PostgresEngine

        return PostgresEngine(url)
    if near := difflib.get_close_matches(scheme, ("mssql", "sqlserver", "postgresql"), 1):
        meant = "mssql" if near[0] == "sqlserver" else near[0]
        raise StallmarkError(f"The server's URL begins with {scheme}: did you mean {meant}://?")
    raise StallmarkError(
        "The server's URL begins with neither postgresql:// nor mssql://: write mssql://user@host:1433/database."
    )
