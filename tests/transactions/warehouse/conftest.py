"""A small warehouse on every engine, and the oracle's answers to the queries on it."""

from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from support.kept_databases import bring_back, kept_engine

from stallmark.engines.base import Engine
from stallmark.loaders.warehouse import LOADER
from stallmark.schema.warehouse.tables import LINEITEM, ORDERS, REFRESH
from stallmark.transactions.warehouse import WORKLOAD
from stallmark.transactions.warehouse.oracle import Oracle

FACTOR = 0.01
# Tables that tests write: to look whether the others have changed would take longer than all else.
WRITTEN = SimpleNamespace(sorted_tables=[ORDERS, LINEITEM, REFRESH])
SCALE = LOADER.scale({"factor": FACTOR})


@pytest.fixture(scope="session")
def factor() -> float:
    return FACTOR


engine = kept_engine(WORKLOAD, SCALE, 1)


@pytest.fixture
def changed(engine: Engine) -> Iterator[Engine]:
    """The database for a test that changes it: brought back afterwards."""
    yield engine
    bring_back(engine, WRITTEN)


@pytest.fixture(scope="session")
def oracle() -> Iterator[Oracle]:
    """As loaded."""
    with Oracle(FACTOR) as oracle:
        yield oracle
