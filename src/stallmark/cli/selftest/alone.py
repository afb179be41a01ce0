"""Transactions one after the other, as a selftest tries them: what a short run may not reach, and what fails in it
because of others."""

import random
import textwrap
from collections import Counter, deque
from collections.abc import Iterator, Mapping

from stallmark.cli.common import FAILED
from stallmark.cli.selftest.check import SelftestResult, attempt
from stallmark.engines.base import Engine, Session
from stallmark.errors import CallFailed, ErrorClass
from stallmark.scenarios.model import WorkloadChoice
from stallmark.transactions import find_workload
from stallmark.transactions.workload import Outcome, Transaction, WorkloadContext

CALL_TIMEOUT_S = 60.0


class Alone:
    """Executes transactions one after the other, each as if nobody else were there, and keeps what came of it."""

    def __init__(self, engine: Engine, choice: WorkloadChoice):
        """Reads what the transactions share."""
        self.posted: deque[tuple[type[Transaction], tuple]] = deque()
        self._engine, self._workload = engine, find_workload(choice.name)
        self._rng = random.Random(choice.seed)
        around = WorkloadContext(choice.scale, choice.seed, engine.query, self._post)
        self.shared = self._workload.users.share(around)
        self._transactions = {
            kind: kind(self.shared) for kind in self._workload.transactions if kind is not self._workload.users.opening
        }
        self._came: dict[type[Transaction], Counter[SelftestResult]] = {kind: Counter() for kind in self._transactions}
        self._ends: Counter[tuple[str, Outcome | ErrorClass]] = Counter()
        self._session: Session | None = None
        self._prepared: set[type[Transaction]] = set()

    def _post(self, kind: type[Transaction], inputs: tuple, after_s: float) -> None:
        self.posted.append((kind, inputs))

    def execute(self, kind: type[Transaction], inputs: tuple | None = None) -> None:
        """Execute a transaction; `inputs` of None are drawn."""
        came = attempt(f"transaction {kind.name}, alone", lambda: self._attempt(kind, inputs))
        self._came[kind][came] += 1

    def answer(self) -> None:
        """Execute what was posted, in its order and at once, and what that posts."""
        while self.posted:
            self.execute(*self.posted.popleft())

    def checks(self) -> Iterator[SelftestResult]:
        """Yield a result for each transaction."""
        for kind, came in self._came.items():
            failures = [check for check in came if check.state == "failed"]
            said = ", ".join(f"{times:,} {check.said}" for check, times in came.items() if check not in failures)
            what = f"transaction {kind.name}, alone"
            if failures:
                failed = sum(came[check] for check in failures)
                words = "; ".join([said, f"{failed:,} failed", *(check.said for check in failures[:3])])
                yield SelftestResult(what, "failed", words.removeprefix("; "), FAILED)
            elif said:
                yield SelftestResult(what, "works", said)
            else:
                yield SelftestResult(what, "off", "nothing gave rise to one")

    def ended(self, how: Outcome | ErrorClass) -> Mapping[str, int]:
        """Return the number of such ends by transaction."""
        return {kind.name: self._ends[kind.name, how] for kind in self._transactions}

    def close(self) -> None:
        if self._session:
            self._session.close()
            self._session = None

    def _attempt(self, kind: type[Transaction], inputs: tuple | None) -> str:
        session = self._open(kind)
        transaction = self._transactions[kind]
        if inputs is None:
            inputs = transaction.inputs(self._rng)
        try:
            outcome = transaction.execute(session, inputs)
        except Exception as error:
            if isinstance(error, CallFailed):
                self._ends[kind.name, error.kind] += 1
            error.add_note(textwrap.shorten(f"[{inputs}]", 300))
            raise
        self._ends[kind.name, outcome] += 1
        return outcome

    def _open(self, kind: type[Transaction]) -> Session:
        """Open a session with the frames of the transaction: each transaction has its own."""
        if self._session and self._session.is_lost:
            self.close()
        if self._session is None:
            self._session = self._engine.session(CALL_TIMEOUT_S)
            self._prepared.clear()
        if kind not in self._prepared:
            self._workload.prepare(self._session, [kind])
            self._prepared.add(kind)
        return self._session
