"""What tests of several rooms share: one embedded server, and an empty database on it for each test."""

import itertools
from collections.abc import Iterator

import hypothesis
import pytest

from stallmark.engines.postgres.embedded.engine import EmbeddedEngine
from stallmark.engines.postgres.embedded.server import EmbeddedServer
from stallmark.loaders.load import build
from stallmark.transactions.bank import WORKLOAD as BANK

# No test asserts a time.
hypothesis.settings.register_profile("stallmark", deadline=None)
hypothesis.settings.load_profile("stallmark")

BANK_SCALE = {"branches": 1}
_numbers = itertools.count(1)

LONG = ("end_to_end/test_readme", "end_to_end", "test_browser", "test_build", "test_selftest", "test_every_text")
"""Parts of the names of files whose tests take longest, those first that take most."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """With `--no-loadscope-reorder` no process begins a long file when the others have nothing left to do."""

    def rank(item: pytest.Item) -> int:
        return next((at for at, part in enumerate(LONG) if part in item.nodeid), len(LONG))

    items.sort(key=rank)


@pytest.fixture(scope="session")
def embedded_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedServer]:
    server = EmbeddedServer(tmp_path_factory.mktemp("embedded") / "server")
    server.start()
    yield server
    server.close()


@pytest.fixture
def database(embedded_server: EmbeddedServer) -> EmbeddedEngine:
    return EmbeddedEngine(embedded_server, f"test{next(_numbers)}")


@pytest.fixture(scope="session")
def bank(embedded_server: EmbeddedServer) -> EmbeddedEngine:
    """The bank with one branch; tests may run transactions on it."""
    engine = EmbeddedEngine(embedded_server, "bank")
    build(engine, BANK, BANK_SCALE, seed=1, workers=1)
    return engine
