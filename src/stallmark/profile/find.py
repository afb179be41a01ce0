"""Find the source for a server by its URL."""

from typing import Any

from stallmark.engines import open_engine
from stallmark.profile.source import Source


def source_for(url: str, *, anonymous: bool) -> Source:
    """Return the source for a server by its URL. No connection is made yet."""
    engine: Any = open_engine(url)
    if engine.dialect == "mssql":
        from stallmark.profile.mssql.source import MssqlSource

        return MssqlSource(engine, anonymous=anonymous)
    from stallmark.profile.postgres.source import PostgresSource

    return PostgresSource(engine, anonymous=anonymous)
