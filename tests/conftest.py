"""What tests of several rooms share: one embedded server, and an empty database on it for each test."""

import itertools
from collections.abc import Iterator

import pytest

from stallmark.driver.engines.embedded import EmbeddedEngine, EmbeddedServer

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def embedded_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedServer]:
    server = EmbeddedServer(tmp_path_factory.mktemp("embedded") / "server")
    server.start()
    yield server
    server.close()


@pytest.fixture
def database(embedded_server: EmbeddedServer) -> EmbeddedEngine:
    return EmbeddedEngine(embedded_server, f"test{next(_numbers)}")
