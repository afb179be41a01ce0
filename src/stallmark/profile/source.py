"""The interface to a server that is profiled: open, read all counters at once, close."""

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from stallmark.engines.base import Login
from stallmark.record.profile.manifest import ProfiledServer
from stallmark.redact import Redactor

LOCK_TIMEOUT_MS = 5_000
ANSWER_WITHIN_S = 10
APPLICATION = "stallmark-profile"
_ADDRESS = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}|(?<![\w:])[0-9a-f]{0,4}(?::[0-9a-f]{0,4}){3,7}(?![\w:])", re.IGNORECASE)


@dataclass(frozen=True)
class Reading:
    """The counters of one moment. `tables`: rows of the raw tables without the sample's number, as tuples."""

    server_clock: float
    start: str
    own_cpu_ms: int | None
    tables: Mapping[str, Sequence[tuple]]

    def io(self) -> tuple[int, int]:
        """Return the reads and the writes of all files so far."""
        files = self.tables["file_counters"]
        return sum(row[4] or 0 for row in files), sum(row[7] or 0 for row in files)


@dataclass(frozen=True)
class Opened:
    """A server that answered. `mark` tells it from others at the same address; `missing`: what it does not tell, by
    table or column, each with the reason."""

    server: ProfiledServer
    mark: str
    missing: Mapping[str, str] = field(default_factory=dict)


class Source(ABC):
    """A server that is read over one connection. It changes nothing, takes no lock that others wait for, and gives up
    a query after ANSWER_WITHIN_S."""

    engine: Literal["mssql", "postgresql"]
    address: str
    """Host, port and database, for messages: never user or password."""

    def __init__(self, login: Login, database: str, *, anonymous: bool):
        names = {login.host: "<server>", database: "<database>"} if anonymous else {}
        self._anonymous = anonymous
        self._redact = Redactor(names, [login.user] if anonymous else [], login.password or None)

    def cleaned(self, text: str) -> str:
        """Return a text without passwords; of an anonymous profile without names and addresses as well."""
        text = self._redact(text)
        return _ADDRESS.sub("<address>", text) if self._anonymous else text

    @abstractmethod
    def open(self) -> Opened:
        """Connect. Raise StallmarkError where there is no connection, or the server refuses what a profile needs."""

    @abstractmethod
    def read(self) -> Reading:
        """Read all counters. Raise StallmarkError; the connection may then be of no more use."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the connection, whatever state it is in."""
