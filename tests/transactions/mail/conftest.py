"""A small mail store on every engine, as it was built before each test, and a context with a clock of its own."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime

import pytest
from support.kept_databases import bring_back, drop_procedures, kept_engine

from stallmark.engines.base import Engine, Session
from stallmark.loaders.mail import LOADER
from stallmark.schema.deploy import batches
from stallmark.transactions import checks
from stallmark.transactions.mail import WORKLOAD, Context, open_context
from stallmark.transactions.workload import Transaction, WorkloadContext

SCALE = LOADER.scale({"mailboxes": 3, "messages": 20})
SEED = 1


@dataclass
class SetClock:
    moment: datetime

    def now(self) -> datetime:
        return self.moment


engine = kept_engine(WORKLOAD, SCALE, SEED)


@pytest.fixture(scope="session")
def deployed(engine: Engine) -> Engine:
    drop_procedures(engine, WORKLOAD.schema)
    for batch in batches(WORKLOAD.procedures(engine.dialect)):
        engine.execute(batch)
    return engine


@pytest.fixture
def mail(deployed: Engine) -> Iterator[Engine]:
    """The database as it was built, before and after the test."""
    bring_back(deployed, WORKLOAD.metadata)
    yield deployed
    bring_back(deployed, WORKLOAD.metadata)


@pytest.fixture
def session(mail: Engine) -> Iterator[Session]:
    session = mail.session(60.0)
    WORKLOAD.prepare(session, WORKLOAD.transactions)
    yield session
    session.close()


@pytest.fixture(scope="session")
def context() -> Context:
    def post(kind: type[Transaction], inputs: tuple, after_s: float) -> None:
        raise AssertionError("nothing follows from what users do with their mail")

    return open_context(WorkloadContext(SCALE, SEED, lambda _: [], post), SetClock(datetime(2026, 11, 23, 10, 0, 0)))


@pytest.fixture
def rng() -> random.Random:
    return random.Random(1)


@pytest.fixture
def broken(mail: Engine) -> Callable[[], list[checks.ConditionResult]]:
    """Asks which conditions do not hold."""
    return lambda: [found for found in checks.run(mail, WORKLOAD, SCALE, driven=True) if found.holds is False]
