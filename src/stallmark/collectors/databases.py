"""Several databases of ours on one server, asked as one."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from stallmark.collectors.base import DATABASE, ServerConnection
from stallmark.engines.base import Engine
from stallmark.errors import StallmarkError
from stallmark.record.rows import Rows


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

    def rows(self, sql: str) -> Rows:
        found: list[tuple[Any, ...]] = []
        for engine, connection in self._connections:
            name = name_of(engine)
            try:
                rows = connection.rows(sql)
            except StallmarkError as error:
                raise StallmarkError(f"{name}: {error}") from error
            found += [(*row, name) for row in rows.values]
        if found and "server_time" in rows.names:
            at = rows.names.index("server_time")
            found = [(*row[:at], found[0][at], *row[at + 1 :]) for row in found]
        return Rows([*rows.names, DATABASE], found)

    def close(self) -> None:
        for _, connection in self._connections:
            connection.close()
