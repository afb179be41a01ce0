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


COMMITTED, ROLLED_BACK, GIVEN_UP = range(3)
_CODES = {Outcome.COMMITTED: COMMITTED, Outcome.ROLLED_BACK: ROLLED_BACK, None: GIVEN_UP}


class Failure(NamedTuple):
    """One failed attempt. `given_up`: the transaction was not tried again."""

    transaction: str
    at: int
    error: CallFailed
    given_up: bool


class VirtualUser(threading.Thread):
    """Runs until `stop` is called, or until the server has been away for too long (`lost` then says why).

    `report_sample` gets a tuple for each transaction, retries included: the transaction's place in the deck, then
    monotonic ns when it was scheduled, started and ended and when the user was done with the one before, the outcome
    code and the number of retries. A plain tuple, because this is the hot path.
    """

    def __init__(
        self,
        number: int,
        engine: Engine,
        workload: Workload,
        scale: dict,
        call_timeout_s: float,
        pacing: Pacing,
        transactions: Iterator[type[Transaction]],
        rng: random.Random,
        report_sample: Callable[[tuple[int, ...]], None],
        report_failure: Callable[[Failure], None],
    ):
        super().__init__(name=f"user-{number}", daemon=True)
        self.number = number
        self.lost: CallFailed | None = None
        self._engine = engine
        self._workload = workload
        self._call_timeout_s = call_timeout_s
        self._pacing = pacing
        self._rng = rng
        self._report_sample = report_sample
        self._report_failure = report_failure
        self._deal = transactions
        self._mine = {kind: (index, kind(scale)) for index, kind in enumerate(workload.deck)}
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
        except Exception as error:  # a fault of ours must not look like a user who did less
            self.lost = CallFailed(ErrorClass.OTHER, type(error).__name__, str(error))
            raise
        finally:
            if self._session:
                self._session.close()

    def _work(self) -> None:
        now = time.monotonic_ns
        pacing, stopping, report = self._pacing, self._stopping, self._report_sample
        free_since = now()
        while not stopping.is_set():
            index, transaction = self._mine[next(self._deal)]
            inputs = transaction.inputs(self._rng)
            scheduled = pacing.next_start(free_since)
            if scheduled is None:
                return
            started = now()
            if started < scheduled:
                if stopping.wait((scheduled - started) / 1e9):
                    pacing.give_back(scheduled)
                    return
                started = now()
            outcome, retries = self._execute(transaction, inputs)
            ended = now()
            report((index, scheduled, started, ended, free_since, _CODES[outcome], retries))
            free_since = ended

    def _execute(self, transaction: Transaction, inputs: tuple) -> tuple[Outcome | None, int]:
        for attempt in range(MOST_RETRIES + 1):
            try:
                assert self._session
                return transaction.execute(self._session, inputs), attempt
            except CallFailed as error:
                again = error.kind.retryable and attempt < MOST_RETRIES and not self._stopping.is_set()
                self._report_failure(
                    Failure(transaction.name, time.monotonic_ns(), error, given_up=not again)
                )
                if error.kind is ErrorClass.CONNECTION_LOST or (self._session and self._session.is_lost):
                    self._reconnect(error)
                if not again:
                    return None, attempt
            self._stopping.wait(RETRY_PAUSE_S * 2**attempt * self._rng.random())
        raise AssertionError("unreachable: the last attempt returns")

    def _connect(self) -> None:
        self._session = self._engine.session(self._call_timeout_s)
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
        self.lost = cause
        self._stopping.set()  # after the transaction that met it is reported
