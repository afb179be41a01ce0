"""The brokerage's transactions as a single user executed them: what each called, with which parameters.

Recorded once on a database as loaded and replayed on the same, by whatever contestant. The market's answers come a
fixed number of transactions later, so that whoever replays with many users finds the trade that a result is of.
"""

import random
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from stallmark.driver.pacing import Dealer
from stallmark.engines.base import Engine, Isolation, Session
from stallmark.errors import CallFailed
from stallmark.transactions import find_workload
from stallmark.transactions.workload import Transaction, WorkloadContext

ANSWER_AFTER = 400  # transactions; users times what one of them may be behind the others


class Recorded(NamedTuple):
    """`calls` are (frame, parameters) in order; `isolation` is of the transaction around them, if there is one. A
    Market-Feed is several; `ends` is true for the last one."""

    name: str
    isolation: Isolation | None
    calls: list[tuple[str, list[Any]]]
    commits: bool
    ends: bool


class RecordingSession(Session):
    """A session that passes every call on and keeps it."""

    def __init__(self, session: Session):
        self._session = session
        self.dialect = session.dialect
        self.server_pid = session.server_pid
        self.take()

    @property
    def is_lost(self) -> bool:  # type: ignore[override]
        return self._session.is_lost

    def take(self) -> list[tuple[Isolation | None, list[tuple[str, list[Any]]], bool]]:
        """Return the transactions since the last time: (isolation, calls, whether it was committed)."""
        taken = getattr(self, "_done", [])
        self._done: list[tuple[Isolation | None, list[tuple[str, list[Any]]], bool]] = []
        self._open: tuple[Isolation, list[tuple[str, list[Any]]]] | None = None
        return taken

    def prepare(self, name: str, sql: str) -> None:
        self._session.prepare(name, sql)

    def call(
        self, name: str, parameters: Sequence[Any], *, commits: bool = True, last: bool = False
    ) -> Sequence[tuple]:
        call = name, list(parameters)
        if self._open:
            self._open[1].append(call)
        else:
            self._done.append((None, [call], True))
        rows = self._session.call(name, parameters, commits=commits, last=last)
        if last:
            self._end(committed=True)
        return rows

    def call_each(self, name: str, several: Sequence[Sequence[Any]]) -> list[Sequence[tuple] | CallFailed]:
        self._done += [(None, [(name, list(parameters))], True) for parameters in several]
        return self._session.call_each(name, several)

    def begin(self, isolation: Isolation) -> None:
        self._open = isolation, []
        self._session.begin(isolation)

    def commit(self) -> None:
        self._session.commit()
        self._end(committed=True)

    def roll_back(self) -> None:
        self._session.roll_back()
        self._end(committed=False)

    def _end(self, committed: bool) -> None:
        if self._open:
            self._done.append((*self._open, committed))
        self._open = None


def record(engine: Engine, scale: dict[str, Any], count: int, seed: int = 1) -> Iterator[Recorded]:
    """Record `count` transactions of the mix, in order, those of the market included, executed on `engine` as
    they come."""
    workload = find_workload("brokerage")
    later: list[tuple[int, type[Transaction], tuple]] = []
    done = 0

    def post(kind: type[Transaction], inputs: tuple, after_s: float) -> None:
        later.append((done + ANSWER_AFTER, kind, inputs))

    rng = random.Random(seed)
    shared = workload.users.share(WorkloadContext(scale, seed, engine.query, post))
    mine = {kind: kind(shared) for kind in workload.transactions}
    session = RecordingSession(engine.session(60))
    workload.prepare(session, workload.transactions)
    deal = Dealer(workload.users.deck, rng).next_card
    while done < count:
        if later and later[0][0] <= done:
            _, kind, inputs = later.pop(0)
        else:
            kind = deal()
            inputs = mine[kind].inputs(rng)
        mine[kind].execute(session, inputs)
        parts = session.take()
        for number, (isolation, calls, committed) in enumerate(parts, start=1):
            yield Recorded(kind.name, isolation, calls, committed, ends=number == len(parts))
        done += 1
    session.close()
