"""The interface to a profiled server: open, read all counters at once, close."""

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from stallmark.engines.base import Login
from stallmark.record.profile import ProfiledServer
from stallmark.redact import Redactor

LOCK_TIMEOUT_MS = 5_000
ANSWER_WITHIN_S = 10
APPLICATION = "stallmark-profile"
_ADDRESS = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}|(?<![\w:])[0-9a-f]{0,4}(?::[0-9a-f]{0,4}){3,7}(?![\w:])", re.IGNORECASE)


@dataclass(frozen=True)
class Reading:
    """The counters of one moment."""

    server_clock: float
    start: str
    own_cpu_ms: int | None
    tables: Mapping[str, Sequence[tuple]]
    """The rows of the raw tables as tuples, without the sample's number."""

    def io(self) -> tuple[int, int]:
        """Return the number of reads and of writes of all files so far."""
        files = self.tables["file_counters"]
        return sum(row[4] or 0 for row in files), sum(row[7] or 0 for row in files)


@dataclass(frozen=True)
class Opened:
    """A server that answered."""

    server: ProfiledServer
    mark: str
    """Text that distinguishes the server from others at the same address."""
    missing: Mapping[str, str] = field(default_factory=dict)
    """The values that the server does not report, by table or column, each with the reason."""


class Source(ABC):
    """A server that is read over one connection.

    It changes nothing, takes no lock that others wait for, and cancels a query after ANSWER_WITHIN_S.
    """

    engine: Literal["mssql", "postgresql"]
    address: str
    """Host, port and database, for messages: never user or password."""

    def __init__(self, login: Login, database: str, *, anonymous: bool):
        names = {login.host: "<server>", database: "<database>"} if anonymous else {}
        self._anonymous = anonymous
        self._redact = Redactor(names, [login.user] if anonymous else [], login.password or None)

    def cleaned(self, text: str) -> str:
        """Return a text without passwords and, for an anonymous profile, without names and addresses."""
        text = self._redact(text)
        return _ADDRESS.sub("<address>", text) if self._anonymous else text

    @abstractmethod
    def open(self) -> Opened:
        """Connect. Raise StallmarkError if the server cannot be reached, or refuses what a profile requires."""

    @abstractmethod
    def read(self) -> Reading:
        """Read all counters. Raise StallmarkError, after which the connection may be unusable."""

    @abstractmethod
    def close(self) -> None:
        """Close the connection, whatever its state."""
