"""The database engines: one interface, PostgreSQL by URL, the embedded PostgreSQL, and SQL Server by URL. Here: the
engine of a URL, and questions to all databases of ours on its server.
"""

import difflib
from collections.abc import Container, Iterable, Iterator
from dataclasses import replace

from stallmark.engines.abilities import required
from stallmark.engines.base import Engine, ServerSettings
from stallmark.errors import WrongOption

_PORTS = {1433: ("mssql", "SQL Server"), 5432: ("postgresql", "PostgreSQL")}


def did_you_mean(scheme: str, port: int | None) -> str | None:
    """Return a clause where a port is the usual one of the other engine; it goes behind a failure to connect."""
    usual, product = _PORTS.get(port or 0, (scheme, ""))
    return None if usual == scheme else f"{port} is the usual port of {product}: if it is one, write {usual}://"


def open_engine(url: str) -> Engine:
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
        raise WrongOption(f"The server's URL begins with {scheme}: did you mean {meant}://?")
    raise WrongOption(
        "The server's URL begins with neither postgresql:// nor mssql://: write mssql://user@host:1433/database."
    )


# Questions to all databases of ours on a server together: those of workloads that have one each, or the one.


def with_databases(engine: Engine, workloads: Iterable[str], users_own: Container[str] = ()) -> list[str]:
    """Give the engine a database for each workload, and return their names: its own followed by the workload's. On an
    embedded server, which no one else uses, the workload's name alone. On other servers, a user's own SQL stays in the
    engine's own database."""
    own = engine.database_name()
    prefix = "" if engine.is_local else f"{own}_"
    names = {
        workload: own if workload in users_own and not engine.is_local else f"{prefix}{workload}"
        for workload in workloads
    }
    databases = {name: engine.on_database(name) for name in names.values()}
    engine.by_workload = {workload: databases[name] for workload, name in names.items()}
    return list(databases)


def make_databases(engine: Engine, names: Iterable[str]) -> None:
    """Create the databases that are not there. Raise StallmarkError if this login may not."""
    for name in names:
        if not engine.has_database(name):
            engine.make_database(name)


def bytes_used(engine: Engine) -> int:
    """Return the bytes in all its databases."""
    return sum(database.bytes_used() for database in engine.databases())


def checkpoint(engine: Engine) -> None:
    """Write out what is dirty in all its databases."""
    for database in engine.databases():
        database.checkpoint()


def copied(engine: Engine) -> tuple[Engine, ...]:
    """Return the engines of which each keeps and restores a copy: a copy may hold every database of the server."""
    return (engine,) if required(engine.backup).of_server else engine.databases()


def settings(engine: Engine) -> ServerSettings:
    """Return the settings of the server with those of all its databases, and those that variants have chosen: of a
    second database, what differs from the first one, behind its name."""
    first, *others = engine.databases()
    settings = first.settings()
    for other in others:
        own, name = other.settings(), other.database_name()
        settings = replace(
            settings,
            configuration=settings.configuration | dict(_differing(name, own.configuration, settings.configuration)),
            placement=settings.placement | dict(_differing(name, own.placement, settings.placement)),
            momentary=settings.momentary | dict(_differing(name, own.momentary, settings.momentary)),
            unreadable=settings.unreadable | dict(_differing(name, own.unreadable, settings.unreadable)),
        )
    chosen = [setting.recorded() for setting in engine.variant_settings.values() if setting]
    for recorded in chosen:
        settings.configuration.update(recorded.values)
        settings.names.update(recorded.names)
    return settings


def _differing(database: str, own: dict[str, str], of_first: dict[str, str]) -> Iterator[tuple[str, str]]:
    for name, value in own.items():
        if of_first.get(name) != value:
            yield f"{database}: {name}", value
