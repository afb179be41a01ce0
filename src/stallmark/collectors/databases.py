"""Several databases of ours on one server, asked as one."""

from collections.abc import Callable, Sequence
from functools import lru_cache

from stallmark.collectors.base import DATABASE, Row, ServerConnection
from stallmark.engines.base import Engine
from stallmark.errors import StallmarkError


@lru_cache(maxsize=64)
def name_of(engine: Engine) -> str:
    """Return the name of an engine's database, for which its server is asked once."""
    return engine.database_name()


class EachDatabase(ServerConnection):
    """A connection to each of several databases, which are asked one after the other. Their rows are one sample, at the
    time of the first."""

    def __init__(self, engines: Sequence[Engine], connected: Callable[[Engine], ServerConnection]):
        super().__init__(engines[0])
        self._connections = [(engine, connected(engine)) for engine in engines]

    def open(self) -> None:
        for _, connection in self._connections:
            connection.open()

    def rows(self, sql: str) -> list[Row]:
        found: list[Row] = []
        for engine, connection in self._connections:
            name = name_of(engine)
            try:
                found += [row | {DATABASE: name} for row in connection.rows(sql)]
            except StallmarkError as error:
                raise StallmarkError(f"{name}: {error}") from error
        for row in found:
            if "server_time" in row:
                row["server_time"] = found[0]["server_time"]
        return found

    def close(self) -> None:
        for _, connection in self._connections:
            connection.close()
