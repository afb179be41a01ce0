"""A server that answers calls as it is told, for the threads that execute transactions; and no pauses between them."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from stallmark.driver import retry
from stallmark.driver.client import Client
from stallmark.engines.base import OwnIO
from stallmark.errors import CallFailed, ErrorClass
from stallmark.transactions.workload import Outcome

CALL_TIMEOUT_S = 12.5


@dataclass
class Server:
    """Answers each call with the next of `answers`: an outcome, an error class, or something to do first.

    Once they are used up it tells the user to stop, and commits the calls that still come.
    """

    answers: list[Outcome | ErrorClass | Callable[[], Outcome | None] | Exception] = field(default_factory=list)
    refuses: int = 0  # how many times it takes no new session
    dialect = "spoken"
    calls: list[tuple[str, tuple]] = field(default_factory=list)
    sessions: int = 0
    closed: int = 0
    prepared: list[tuple[str, str]] = field(default_factory=list)
    user: Client | None = None
    is_lost = False
    loses: tuple[ErrorClass, ...] = (ErrorClass.CONNECTION_LOST, ErrorClass.UNKNOWN_OUTCOME)
    """With which errors the session is lost."""
    tells_own_io: bool = True
    refuses_own_io: bool = False
    looks: list[tuple[int, int]] = field(default_factory=list)
    own_ios: list[tuple] = field(default_factory=list)
    """The rows that were reported."""

    def session(self, call_timeout_s: float, application: str = "stallmark-user") -> "Server":
        assert call_timeout_s == CALL_TIMEOUT_S
        self.sessions += 1
        if self.sessions > 1 and self.refuses:
            self.refuses -= 1
            raise CallFailed(ErrorClass.CONNECTION_LOST, "08001", "refused")
        self.is_lost = False
        return self

    def prepare(self, name: str, sql: str) -> None:
        self.prepared.append((name, sql))

    def call(self, name: str, inputs: tuple) -> Any:
        self.calls.append((name, inputs))
        answer = self.answers.pop(0) if self.answers else Outcome.COMMITTED
        if not self.answers and self.user:
            self.user.stop()
        if isinstance(answer, ErrorClass):
            self.is_lost = answer in self.loses
            raise CallFailed(answer, "XXXXX", str(answer))
        if isinstance(answer, Exception):
            raise answer
        return (answer() or Outcome.COMMITTED) if callable(answer) else answer

    def own_io(self) -> OwnIO | None:
        begin = time.monotonic_ns()
        if self.refuses_own_io:
            raise CallFailed(ErrorClass.OTHER, "42501", "refused")
        self.looks.append((begin, time.monotonic_ns()))
        done = len(self.calls)
        return OwnIO(done, 8192 * done, 3, None, 0) if self.tells_own_io else None

    def close(self) -> None:
        self.closed += 1


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    monkeypatch.setattr(retry, "RETRY_PAUSE_S", 1e-6)
    monkeypatch.setattr(retry, "RECONNECT_PAUSE_S", 1e-6)
