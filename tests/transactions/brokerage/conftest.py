"""A small brokerage on every engine, its procedures as their files have them now, and a context with its own clock."""

import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from types import SimpleNamespace
from typing import NamedTuple

import pytest
from support.kept_databases import bring_back, kept_engine

from stallmark.engines import sql_file
from stallmark.engines.base import Engine, Session
from stallmark.errors import CallFailed
from stallmark.loaders.brokerage import LOADER
from stallmark.schema.deploy import batches
from stallmark.transactions import checks
from stallmark.transactions.brokerage import WORKLOAD
from stallmark.transactions.brokerage.context import Context, open_context
from stallmark.transactions.brokerage.trading import MarketFeed, TradeResult
from stallmark.transactions.workload import Transaction, WorkloadContext

SCALE = LOADER.scale({"customers": 1_000, "days": 0.02})
SEED = 1
# To look whether the large ones have changed would take longer than all else.
WRITTEN = SimpleNamespace(
    sorted_tables=[
        table
        for table in WORKLOAD.metadata.sorted_tables
        if table.name not in ("daily_market", "financial", "news_item", "watch_item")
    ]
)


class Posted(NamedTuple):
    kind: type[Transaction]
    inputs: tuple
    after_s: float


@dataclass
class SetClock:
    """Stands still until a test sets it."""

    moment: datetime

    def now(self) -> datetime:
        return self.moment


engine = kept_engine(WORKLOAD, SCALE, SEED)


@pytest.fixture
def untouched(engine: Engine) -> Iterator[None]:
    """The database as it was built, before and after the test; but for tables whose tests undo what they do."""
    bring_back(engine, WRITTEN)
    yield
    bring_back(engine, WRITTEN)


@pytest.fixture(scope="session")
def not_deployed(engine: Engine) -> dict[str, str]:
    """Deploys the procedures of every transaction; which could not be, and why."""
    failed = {}
    with engine.cursor() as cursor:
        for transaction in WORKLOAD.transactions:
            procedures = sql_file.read(WORKLOAD.package, f"{transaction.name}.{engine.dialect}")
            try:
                for batch in batches(procedures):
                    cursor.execute(batch)
            except Exception as error:  # its own tests fail by it, and not those of all others
                failed[transaction.name] = str(engine.failure(error))
    return failed


@pytest.fixture
def open_session(engine: Engine, not_deployed: dict[str, str]) -> Iterator[Callable[[], Session]]:
    """Opens one with all frames prepared, and closes it after the test."""
    with ExitStack() as opened:
        yield lambda: opened.enter_context(_prepared(engine))


@pytest.fixture(scope="session")
def session(engine: Engine, not_deployed: dict[str, str]) -> Iterator[Session]:
    """One with all frames prepared that many tests share: it costs Babelfish seconds."""
    with _prepared(engine) as session:
        yield session


@contextmanager
def _prepared(engine: Engine) -> Iterator[Session]:
    session = engine.session(60.0)
    try:
        for kind in WORKLOAD.transactions:
            for frame in kind.frames:
                with suppress(CallFailed):  # where it is not deployed, a call is a KeyError
                    session.prepare(frame, WORKLOAD.call(kind, frame, engine.dialect))
        yield session
    finally:
        session.close()


@pytest.fixture
def clock() -> SetClock:
    return SetClock(datetime(2026, 11, 23, 10, 0, 0))


@pytest.fixture
def posted() -> list[Posted]:
    """The orders that the market has had executed."""
    return []


@pytest.fixture
def context(engine: Engine, clock: SetClock, posted: list[Posted]) -> Context:
    def post(kind: type[Transaction], inputs: tuple, after_s: float) -> None:
        posted.append(Posted(kind, inputs, after_s))

    with engine.cursor() as cursor:  # one for all queries: Babelfish takes long for a connection

        def query(sql: str) -> list[tuple]:
            cursor.execute(sql)
            return cursor.fetchall()

        return open_context(WorkloadContext(SCALE, SEED, query, post), TradeResult, MarketFeed, clock)


@pytest.fixture
def rng() -> random.Random:
    return random.Random(1)


@pytest.fixture
def broken(engine: Engine) -> Callable[[], list[checks.ConditionResult]]:
    """Asks which conditions do not hold."""
    return lambda: [found for found in checks.run(engine, WORKLOAD, SCALE, driven=True) if found.holds is False]


@pytest.fixture
def busy_account(engine: Engine) -> Iterator[int]:
    """The key of an account that has been given the trades of others, some sixty in all."""
    first = "t_id < 200000000000060"
    [(account,)] = engine.query("SELECT MIN(t_ca_id) FROM brokerage.trade")
    owners = engine.query(f"SELECT t_id, t_ca_id FROM brokerage.trade WHERE {first}")
    engine.execute(f"UPDATE brokerage.trade SET t_ca_id = {account} WHERE {first}")
    yield account
    with engine.cursor() as cursor:
        for trade, owner in owners:
            cursor.execute(f"UPDATE brokerage.trade SET t_ca_id = {owner} WHERE t_id = {trade}")
