"""A virtual user: a native thread with a connection of its own that executes transactions one after the other.

Native threads, because the database drivers block in C and release the GIL; a gevent user would stop all others.
"""

import random
import threading
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

from stallmark.driver.engines.base import Engine, Session
from stallmark.driver.engines.errors import CallFailed, ErrorClass
from stallmark.driver.pacing import Pacing
from stallmark.transactions.workload import Outcome, Transaction, Workload

MOST_RETRIES = 10
RETRY_PAUSE_S = 0.002  # at the first retry; doubled, with jitter, so that rivals do not meet again
MOST_RECONNECTS = 20
RECONNECT_PAUSE_S = 0.5


class Sample(NamedTuple):
    """One transaction, retries included. Times are monotonic ns; `outcome` is None when it was given up."""

    transaction: str
    scheduled: int
    started: int
    ended: int
    free_since: int  # when the user was done with the one before
    outcome: Outcome | None
    retries: int
    closed: bool


class Failure(NamedTuple):
    """One failed attempt. `given_up`: the transaction was not tried again."""

    transaction: str
    at: int
    error: CallFailed
    given_up: bool


Report = Callable[[Sample | Failure], None]


class VirtualUser(threading.Thread):
    """Runs until `stop` is called, or until the server has been away for too long (`lost` then says why)."""

    def __init__(
        self, number: int, engine: Engine, workload: Workload, scale: dict, pacing: Pacing,
        transactions: Iterator[type[Transaction]], rng: random.Random, report: Report,
    ):  # fmt: skip
        super().__init__(name=f"user-{number}", daemon=True)
        self.number = number
        self.lost: CallFailed | None = None
        self._engine = engine
        self._workload = workload
        self._pacing = pacing
        self._rng = rng
        self._report = report
        self._deal = transactions
        self._mine = {kind: kind(scale) for kind in workload.deck}
        self._session: Session | None = None
        self._stopping = threading.Event()

    def stop(self) -> None:
        """Finish the transaction under way, then end."""
        self._stopping.set()

    def cancel(self) -> None:
        """Ask the server to give up the call under way."""
        if self.is_alive() and self._session:
            self._session.cancel()

    def run(self) -> None:
        try:
            self._connect()
            self._work()
        except CallFailed as error:
            self.lost = error
        finally:
            if self._session:
                self._session.close()

    def _work(self) -> None:
        now = time.monotonic_ns
        pacing, stopping, closed = self._pacing, self._stopping, self._pacing.closed
        free_since = now()
        while not stopping.is_set():
            transaction = self._mine[next(self._deal)]
            inputs = transaction.inputs(self._rng)
            scheduled = pacing.next_start(free_since)
            started = now()
            if started < scheduled:
                if stopping.wait((scheduled - started) / 1e9):
                    return
                started = now()
            outcome, retries = self._execute(transaction, inputs)
            ended = now()
            self._report(
                Sample(transaction.name, scheduled, started, ended, free_since, outcome, retries, closed)
            )
            free_since = ended

    def _execute(self, transaction: Transaction, inputs: tuple) -> tuple[Outcome | None, int]:
        for attempt in range(MOST_RETRIES + 1):
            try:
                assert self._session
                return transaction.execute(self._session, inputs), attempt
            except CallFailed as error:
                again = error.kind.retryable and attempt < MOST_RETRIES and not self._stopping.is_set()
                self._report(Failure(transaction.name, time.monotonic_ns(), error, given_up=not again))
                if error.kind in (ErrorClass.CONNECTION_LOST, ErrorClass.UNKNOWN_OUTCOME):
                    self._reconnect(error)
                if not again:
                    return None, attempt
            self._stopping.wait(RETRY_PAUSE_S * 2**attempt * self._rng.random())
        raise AssertionError("unreachable: the last attempt returns")

    def _connect(self) -> None:
        self._session = self._engine.session()
        for kind in self._workload.deck:
            for frame in kind.frames:
                self._session.prepare(frame, self._workload.sql(frame, self._engine.dialect))

    def _reconnect(self, cause: CallFailed) -> None:
        assert self._session
        self._session.close()
        for _ in range(MOST_RECONNECTS):
            if self._stopping.wait(RECONNECT_PAUSE_S * self._rng.random()):
                return
            try:
                return self._connect()
            except CallFailed as error:
                cause = error
        raise cause
