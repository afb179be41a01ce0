"""The database engines: one interface, PostgreSQL by URL, and the embedded PostgreSQL."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stallmark.driver.engines.base import Engine


def open_engine(spec: dict) -> "Engine":
    """Open in this process the engine another process described with `Engine.spec`."""
    from stallmark.driver.engines.postgres import PostgresEngine

    engines = {"postgresql": PostgresEngine}
    return engines[spec["engine"]](spec["url"])
