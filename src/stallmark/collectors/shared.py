"""A connection that several collectors of one thread use."""

from abc import ABC, abstractmethod
from typing import Any

from stallmark.collectors.base import Row
from stallmark.engines.base import Engine


class SharedConnection(ABC):
    """Made when it is needed and again after it broke; closed when as many `close` as `open` have been called."""

    def __init__(self, engine: Engine):
        self._engine = engine
        self._connection: Any = None
        self._users = 0

    def open(self) -> None:
        self._users += 1

    def close(self) -> None:
        self._users -= 1
        if self._users <= 0:
            self._drop()

    @abstractmethod
    def rows(self, sql: str) -> list[Row]:
        """The rows of a query by column name.

        Raises StallmarkError when there is no connection, the server refuses, or does not answer.
        """

    @abstractmethod
    def _drop(self) -> None:
        """Close the connection, if there is one, and forget it."""
