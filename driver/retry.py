"""The retry: a transaction that the server gave up is executed again, and a session that was lost is opened again."""

import random
import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from stallmark.engines.base import Session
from stallmark.errors import CallFailed, ErrorClass
from stallmark.transactions.workload import Outcome, Transaction

MOST_RETRIES = 10
RETRY_PAUSE_S = 0.002  # first pause; doubled each time, with jitter, so that rivals do not meet again
# A failover of an availability group or to another node takes 10 to 60 s: these pauses are a minute together.
MOST_RECONNECTS = 64
RECONNECT_PAUSE_S = 0.5  # on average half of it at first, four times that later
RECONNECT_WITHIN_S = 120  # limit if every attempt waits for a login in vain
LOGINS_AT_ONCE = 8  # per process: thousands at once would block each other and all other work
_logins = threading.Semaphore(LOGINS_AT_ONCE)


class Failure(NamedTuple):
    """A failed attempt. `given_up`: the transaction was not tried again."""

    transaction: str
    failed_ns: int
    error: CallFailed
    given_up: bool


class RetryingSession:
    """A session that tries deadlocked transactions again, and reconnects.

    `stopping` ends every pause. It is set here when the server was away for too long; `lost` is then the reason.
    """

    def __init__(
        self,
        connect: Callable[[], Session],
        prepare: Callable[[Session], None],
        rng: random.Random,
        stopping: threading.Event,
        report_failure: Callable[[Failure], None],
        most_reconnects: int,
    ):
        self.session: Session | None = None
        self.lost: CallFailed | None = None
        self._connect = connect
        self._prepare = prepare
        self._rng = rng
        self._stopping = stopping
        self._report_failure = report_failure
        self._most_reconnects = most_reconnects

    def open(self) -> None:
        """Log in, unless the client was stopped while it waited for its turn."""
        with _logins:
            if not self._stopping.is_set():
                self.session = self._connect()
                self._prepare(self.session)

    def close(self) -> None:
        if self.session:
            self.session.close()

    def execute(self, transaction: Transaction, inputs: tuple) -> tuple[Outcome | None, int]:
        """Return the outcome, None when the transaction was given up, and the number of retries."""
        for attempt in range(MOST_RETRIES + 1):
            try:
                assert self.session
                return transaction.execute(self.session, inputs), attempt
            except CallFailed as error:
                # No retry once the client is to stop: it would delay the end by all its pauses.
                again = error.kind.retryable and attempt < MOST_RETRIES and not self._stopping.is_set()
                self._report_failure(Failure(transaction.name, time.monotonic_ns(), error, given_up=not again))
                # An error of another class may have ended the session, too.
                if error.kind is ErrorClass.CONNECTION_LOST or (self.session and self.session.is_lost):
                    self._reconnect(error)
                if not again:
                    return None, attempt
            self._stopping.wait(RETRY_PAUSE_S * 2**attempt * self._rng.random())
        raise AssertionError("unreachable: the last attempt returns")

    def _reconnect(self, cause: CallFailed) -> None:
        deadline = time.monotonic() + RECONNECT_WITHIN_S
        for attempt in range(1, self._most_reconnects + 1):
            self.close()
            # Jitter, so that thousands of users do not log in at the same moment.
            if self._stopping.wait(RECONNECT_PAUSE_S * min(attempt, 4) * self._rng.random()):
                return
            try:
                return self.open()
            except CallFailed as error:
                cause = error
            if time.monotonic() > deadline:
                break
        self.lost = cause
        self._stopping.set()  # after the transaction that met it is reported
