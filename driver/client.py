"""The base of every thread that executes transactions: a connection of its own, retries and reconnects.

Native threads, because the database drivers block in C and release the GIL; a gevent user would stop all others.
"""

import random
import threading
import time
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

from stallmark.driver.transaction_io import OwnIOSampler
from stallmark.engines.base import Engine, Session
from stallmark.errors import CallFailed, ErrorClass
from stallmark.transactions.workload import Outcome, Transaction, Workload

MOST_RETRIES = 10
RETRY_PAUSE_S = 0.002  # at the first retry; doubled, with jitter, so that rivals do not meet again
MOST_RECONNECTS = 20
RECONNECT_PAUSE_S = 0.5


COMMITTED, ROLLED_BACK, GIVEN_UP = range(3)
CODES = {Outcome.COMMITTED: COMMITTED, Outcome.ROLLED_BACK: ROLLED_BACK, None: GIVEN_UP}


class Failure(NamedTuple):
    """A failed attempt. `given_up`: the transaction was not tried again."""

    transaction: str
    at: int
    error: CallFailed
    given_up: bool


class Client(threading.Thread):
    """A thread that executes transactions until `stop`, or until the server was away for too long (`lost` then says
    why).

    `report_sample` gets a tuple for each transaction, retries included: the transaction's place in the workload, then
    monotonic ns when it was scheduled, started and ended and when the client was done with the one before, the outcome
    code and the number of retries. A plain tuple, because this is the hot path.
    """

    def __init__(
        self,
        name: str,
        engine: Engine,
        workload: Workload,
        shared: Any,
        call_timeout_s: float,
        rng: random.Random,
        report_sample: Callable[[tuple[int, ...]], None],
        report_failure: Callable[[Failure], None],
        report_own_io: Callable[[tuple], None],
    ):
        super().__init__(name=name, daemon=True)
        self.lost: CallFailed | None = None
        self._engine = engine
        self._workload = workload
        self._call_timeout_s = call_timeout_s
        self._rng = rng
        self._report_sample = report_sample
        self._report_failure = report_failure
        self._own_io_sampler = OwnIOSampler(len(workload.transactions), report_own_io)
        self._mine: dict[type[Transaction], tuple[int, Transaction]] = {
            kind: (workload.transactions.index(kind), kind(shared)) for kind in self._kinds()
        }
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
        except Exception as error:  # a fault of ours must not pass for a client that did less
            self.lost = CallFailed(ErrorClass.OTHER, type(error).__name__, str(error))
            raise
        finally:
            if self._session:
                self._session.close()

    @abstractmethod
    def _work(self) -> None:
        """Execute transactions until told to stop."""

    @abstractmethod
    def _kinds(self) -> list[type[Transaction]]:
        """Return the transaction types that this client executes."""

    def _execute(self, transaction: Transaction, inputs: tuple) -> tuple[Outcome | None, int]:
        for attempt in range(MOST_RETRIES + 1):
            try:
                assert self._session
                return transaction.execute(self._session, inputs), attempt
            except CallFailed as error:
                again = error.kind.retryable and attempt < MOST_RETRIES and not self._stopping.is_set()
                self._report_failure(Failure(transaction.name, time.monotonic_ns(), error, given_up=not again))
                if error.kind is ErrorClass.CONNECTION_LOST or (self._session and self._session.is_lost):
                    self._reconnect(error)
                if not again:
                    return None, attempt
            self._stopping.wait(RETRY_PAUSE_S * 2**attempt * self._rng.random())
        raise AssertionError("unreachable: the last attempt returns")

    def _sample_own_io(self, index: int, ended: int, outcome: Outcome | None) -> int:
        """Sample the session's own I/O after a transaction; return after how many more transactions to sample again."""
        assert self._session
        return self._own_io_sampler.sample(self._session, index, ended, done=outcome is not None)

    def _connect(self) -> None:
        self._session = self._engine.session(self._call_timeout_s)
        self._workload.prepare(self._session, self._mine)

    def _reconnect(self, cause: CallFailed) -> None:
        for _ in range(MOST_RECONNECTS):
            assert self._session
            self._session.close()
            if self._stopping.wait(RECONNECT_PAUSE_S * self._rng.random()):
                return
            try:
                return self._connect()
            except CallFailed as error:
                cause = error
        self.lost = cause
        self._stopping.set()  # after the transaction that met it is reported
