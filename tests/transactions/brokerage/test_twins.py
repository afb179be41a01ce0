"""The proof that the twins are twins: the same inputs at the same moments, by a single user, make every engine answer
the same and leave the same rows behind.

Times, prices and the market's order are inputs: a clock of the test's own goes on by the same step with each
transaction, and what the market asks for is executed when it is due by that clock.
"""

import hashlib
import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import pytest
from support import sql_server
from support.answers import values
from support.canonical import checksums
from support.kept_databases import bring_back, drop_procedures, kept_database

from stallmark.engines.base import Engine, Isolation, Session
from stallmark.engines.mssql.engine import MssqlEngine
from stallmark.loaders.brokerage import LOADER
from stallmark.schema.deploy import batches
from stallmark.transactions.brokerage import WORKLOAD
from stallmark.transactions.brokerage.context import TapeReport, open_context
from stallmark.transactions.brokerage.trading import MarketFeed, TradeResult
from stallmark.transactions.workload import Transaction, WorkloadContext

SCALE = LOADER.scale({"customers": 1_000, "days": 0.02})
SEED = 1
BEGIN = datetime(2026, 11, 23, 10, 0, 0)
STEP = timedelta(milliseconds=20)
SHORT_FEED = 3
VOID = [("",)]
"""PostgreSQL's answer where a procedure of SQL Server says nothing."""


class Answer(NamedTuple):
    """Return what one call was answered; a digest of the rows, which are many."""

    transaction: str
    frame: str
    parameters: tuple
    rows: int
    digest: str


def plain(value: Any) -> Any:
    """Engines write as many zeros behind the point as their types have."""
    if isinstance(value, str) and re.fullmatch(r"-?\d+\.\d+", value):
        return value.rstrip("0").rstrip(".")
    return value


@dataclass
class SteppingClock:
    moment: datetime = BEGIN

    def now(self) -> datetime:
        return self.moment


class Listening(Session):
    """A session that keeps what it was answered."""

    def __init__(self, session: Session):
        self._session = session
        self.dialect, self.server_pid, self.is_lost = session.dialect, session.server_pid, False
        self.transaction_name = ""
        self.answers: list[Answer] = []

    def call(self, name: str, parameters: Sequence[Any], **ends: bool) -> Sequence[tuple]:
        rows = self._session.call(name, parameters, **ends)
        said = [] if rows == VOID else [plain(value) for value in values(rows)]
        digest = hashlib.sha256(repr(said).encode()).hexdigest()[:16]
        self.answers.append(Answer(self.transaction_name, name, tuple(map(plain, parameters)), len(said), digest))
        return rows

    def begin(self, isolation: Isolation) -> None:
        self._session.begin(isolation)

    def commit(self) -> None:
        self._session.commit()

    def roll_back(self) -> None:
        self._session.roll_back()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)


def play(engine: Engine, each: int) -> tuple[list[Answer], dict[str, tuple[int, int]], Counter[str]]:
    """`each` of every type, on the database as built: answers in order, checksums of all tables, and how many of each
    were executed. It is as built again afterwards."""
    clock, later, sessions = SteppingClock(), [], engine.session(60.0)
    session, done = Listening(sessions), Counter[str]()

    def post(kind: type[Transaction], inputs: tuple, after_s: float) -> None:
        later.append((clock.now() + timedelta(seconds=after_s), len(later), kind, inputs))

    context = open_context(WorkloadContext(SCALE, SEED, engine.query, post), TradeResult, MarketFeed, clock)
    kinds = {kind: kind(context) for kind in WORKLOAD.transactions}
    try:
        WORKLOAD.prepare(sessions, kinds)
        for kind, inputs in _schedule(each, context, kinds, clock, later, done):
            session.transaction_name = kind.name
            kinds[kind].execute(session, inputs)
            done[kind.name] += 1
            clock.moment += STEP
    finally:
        sessions.close()
    tables = checksums(engine, WORKLOAD.metadata)
    bring_back(engine, WORKLOAD.metadata)
    return session.answers, tables, done


def _schedule(each, context, kinds, clock, later, done) -> Iterator[tuple[type[Transaction], tuple]]:
    """Users' transactions shuffled; before each, what is due by the clock. Then feeds up to the number, and a cleanup,
    which finds orders that nobody has answered. Feeds of the market have twenty tickers, those up to the number fewer:
    Babelfish takes long for each."""
    rng = random.Random(SEED)
    users = [*WORKLOAD.users.deck, *WORKLOAD.background.timers]
    # Of a hundred orders one is rolled back, and the last have not been answered at the end.
    cards = [kind for kind in users for _ in range(each + each // 10 if kind.name == "trade_order" else each)]
    rng.shuffle(cards)
    for kind in cards:
        while later and min(later)[0] <= clock.now():
            _, _, due, inputs = task = min(later)
            later.remove(task)
            yield due, inputs
        yield kind, kinds[kind].inputs(rng)
    for _ in range(max(0, each - done["market_feed"])):
        symbols = rng.sample(range(len(context.symbols)), SHORT_FEED)
        yield MarketFeed, tuple(TapeReport(s, context.price(s, clock.now()), 100) for s in symbols)
    yield WORKLOAD.users.opening, kinds[WORKLOAD.users.opening].inputs(rng)


def first_difference(ours: list[Answer], theirs: list[Answer]) -> str | None:
    for one, other in zip(ours, theirs, strict=False):
        if one != other:
            return f"{one} is not {other}"
    return None if len(ours) == len(theirs) else f"{len(ours)} answers, {len(theirs)} answers"


def test_a_single_user_is_a_function_of_the_inputs(
    engine: Engine, not_deployed: dict[str, str], untouched: None
) -> None:
    first, tables, done = play(engine, 15)
    again, tables_again, _ = play(engine, 15)
    assert first_difference(first, again) is None
    assert tables == tables_again
    assert all(done[kind.name] for kind in WORKLOAD.transactions), done


@pytest.mark.server
@pytest.mark.sqlserver
def test_both_engines_answer_the_same_and_hold_the_same_rows() -> None:
    each, played = 1_000, []
    for server in (None, MssqlEngine(sql_server.URL)):
        with kept_database(server, WORKLOAD, SCALE, SEED) as engine:
            drop_procedures(engine, WORKLOAD.schema)
            for batch in batches(WORKLOAD.procedures(engine.dialect)):
                engine.execute(batch)
            played.append(play(engine, each))
    (ours, our_tables, done), (theirs, their_tables, _) = played
    assert all(done[kind.name] >= each for kind in WORKLOAD.transactions if kind is not WORKLOAD.users.opening), done
    assert first_difference(ours, theirs) is None
    assert their_tables == our_tables
