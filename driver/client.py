"""The base of every thread that executes transactions, with a connection of its own.

Native threads, because the database drivers block in C and release the GIL; a gevent user would stop all others.
"""

import random
import threading
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

from stallmark.driver.retry import MOST_RECONNECTS, Failure, RetryingSession
from stallmark.driver.transaction_io import OwnIOSampler
from stallmark.engines.base import Engine
from stallmark.errors import CallFailed, ErrorClass
from stallmark.transactions.workload import Outcome, Transaction, Workload

COMMITTED, ROLLED_BACK, GIVEN_UP = range(3)
CODES = {Outcome.COMMITTED: COMMITTED, Outcome.ROLLED_BACK: ROLLED_BACK, None: GIVEN_UP}


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
        report_lost: Callable[["Client"], None],
        most_reconnects: int = MOST_RECONNECTS,
        application: str = "stallmark-user",
    ):
        super().__init__(name=name, daemon=True)
        self._fault: CallFailed | None = None
        self.is_connected = False
        """It has begun to work; until then its time is the login's, and not the driver's."""
        self._workload = workload
        self._rng = rng
        self._report_sample = report_sample
        self._report_lost = report_lost
        self._own_io_sampler = OwnIOSampler(len(workload.transactions), report_own_io)
        self._mine: dict[type[Transaction], tuple[int, Transaction]] = {
            kind: (workload.transactions.index(kind), kind(shared)) for kind in self._kinds()
        }
        self._stopping = threading.Event()
        self._retrying = RetryingSession(
            lambda: engine.session(call_timeout_s, application),
            lambda session: workload.prepare(session, self._mine),
            rng,
            self._stopping,
            report_failure,
            most_reconnects,
        )

    @property
    def lost(self) -> CallFailed | None:
        return self._fault or self._retrying.lost

    def stop(self) -> None:
        """Finish the transaction under way, then end."""
        self._stopping.set()

    def cancel(self) -> None:
        """Ask the server to give up the call under way."""
        if self.is_alive() and (session := self._retrying.session):
            session.cancel()

    def run(self) -> None:
        try:
            self._retrying.open()
            self.is_connected = self._retrying.session is not None
            self._work()
        except CallFailed as error:
            self._fault = error
        except Exception as error:  # a fault of ours must not pass for a client that did less
            self._fault = CallFailed(ErrorClass.OTHER, type(error).__name__, str(error))
            raise
        finally:
            if self.lost:
                self._report_lost(self)
            self._retrying.close()

    @abstractmethod
    def _work(self) -> None:
        """Execute transactions until told to stop."""

    @abstractmethod
    def _kinds(self) -> list[type[Transaction]]:
        """Return the transaction types that this client executes."""

    def _sample_own_io(self, index: int, ended: int, outcome: Outcome | None) -> int:
        """Sample the session's own I/O after a transaction; return after how many more transactions to sample again."""
        assert self._retrying.session
        return self._own_io_sampler.sample(self._retrying.session, index, ended, done=outcome is not None)
