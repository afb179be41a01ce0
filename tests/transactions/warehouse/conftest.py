"""A small warehouse on every engine, and the oracle's answers to the queries on it."""

import os
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from support.kept_databases import bring_back, kept_database

from stallmark.engines.base import Engine
from stallmark.engines.mssql.engine import MssqlEngine
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


@pytest.fixture(scope="session", params=["embedded", "sqlserver"])
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    """The database as it was built; who changes it asks for `changed` too."""
    server = None
    if request.param == "sqlserver":
        if not (url := os.environ.get("STALLMARK_TEST_SQLSERVER")):
            pytest.skip("STALLMARK_TEST_SQLSERVER names no SQL Server to test against")
        server = MssqlEngine(url)
    with kept_database(server, WORKLOAD, SCALE, 1) as engine:
        yield engine


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
