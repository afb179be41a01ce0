"""A server that answers what a test scripts, and the engine that asks it through the real ODBC driver."""

from collections.abc import Iterator

import pytest
from support.mssql_server import answering, engine_at
from support.tds.responder import Responder
from support.tds.script import Script

from stallmark.engines.mssql.engine import MssqlEngine


@pytest.fixture
def script() -> Script:
    return Script(databases=["bank", "master", "tempdb"])


@pytest.fixture
def server(script: Script) -> Iterator[Responder]:
    with answering(script) as server:
        yield server


@pytest.fixture
def engine(server: Responder) -> MssqlEngine:
    return engine_at(server)
