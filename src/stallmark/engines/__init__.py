"""The database engines: one interface, PostgreSQL by URL, the embedded PostgreSQL, and SQL Server by URL."""

from typing import TYPE_CHECKING

from stallmark.errors import StallmarkError

if TYPE_CHECKING:
    from stallmark.engines.base import Engine


def open_engine(url: str) -> "Engine":
    """Return the engine for a server by its URL, whose scheme says which. No connection is made yet."""
    scheme = url.partition(":")[0].partition("+")[0].lower()
    if scheme == "mssql":
        from stallmark.engines.mssql.engine import MssqlEngine

        return MssqlEngine(url)
    if scheme in ("postgresql", "postgres") or "=" in url:  # libpq takes `host=… dbname=…` too
        from stallmark.engines.postgres.engine import PostgresEngine

        return PostgresEngine(url)
    raise StallmarkError(
        "The server's URL begins with neither postgresql:// nor mssql://: write mssql://user@host:1433/database."
    )
