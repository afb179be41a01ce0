"""Fixtures of several rooms: one embedded server, an empty database on it for each test, and which are slow."""

import gc
import itertools
import signal
from functools import cache

import hypothesis
import pytest
from support import sql_server
from support.building import copy_of
from support.clusters import clusters
from support.embedded_servers import embedded_server, template
from support.tsql.tools_service import PROGRAM

from stallmark.engines.postgres.embedded_engine import EmbeddedEngine
from stallmark.engines.postgres.embedded_server import EmbeddedServer
from stallmark.loaders.load import build
from stallmark.transactions.bank import WORKLOAD as BANK

__all__ = ["clusters", "embedded_server", "template"]

# No test asserts a time, and what passes once passes always. `make explore` tries other examples, and more of them
# (1,000 answers of each statement in mssql/test_answers.py); `make quick` fewer.
_USUAL = hypothesis.settings(
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow, hypothesis.HealthCheck.function_scoped_fixture],
)
hypothesis.settings.register_profile("explore", _USUAL, max_examples=300)
_SAME = hypothesis.settings(_USUAL, derandomize=True, database=None)
hypothesis.settings.register_profile("stallmark", _SAME, max_examples=25)
hypothesis.settings.register_profile("quick", _SAME, max_examples=10)
hypothesis.settings.load_profile("stallmark")

gc.disable()  # until all tests are collected: these stay

# A shell ignores Ctrl-C for what it starts in the background, and so would every test and all that tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)

BANK_SCALE = {"branches": 1}
_numbers = itertools.count(1)

SERVERS = {
    f"support.{name}" for name in ("clusters", "embedded_servers", "kept_databases", "poolers", "remote", "sql_server")
}
"""Modules whose fixtures start database servers."""

SLOW = (
    "end_to_end", "tests/storage/", "sizing/test_replay", "test_browser", "test_on_a_block_device", "test_selftest",
    "test_locust_conductor", "test_many_machines", "test_executor_core", "probe/test_saturation",
    "loaders/test_warehouse.py", "test_oracle", "test_query_run.py", "test_brokerage_conditions",
    "test_brokerage_build.py", "test_wheel", "by_hand/test_page",
)  # fmt: skip
"""Parts of the names of files whose tests start servers, browsers, compilers or loads by themselves."""

LONG = (
    "end_to_end/test_readme", "end_to_end/test_sizing", "end_to_end/test_load_machines",
    "end_to_end/test_several_workloads", "end_to_end/test_interrupted", "end_to_end/test_whole_selftest", "end_to_end",
    "test_golden", "faults/test_campaign", "test_wheel", "experiment/test_others", "test_several_loads", "test_copies",
    "scenarios/test_htap", "test_browser", "test_build", "test_selftest", "test_query_run.py",
    "record/test_damage",
)  # fmt: skip
"""Parts of the names of files whose tests take longest, those first that take most."""


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what was left out, in one line each: those tests are not collected."""
    if not (sql_server.URL or sql_server.IN_CONTAINER):
        terminalreporter.write_line("No SQL Server: STALLMARK_TEST_SQLSERVER holds no URL, and ACCEPT_EULA is not Y.")
    if not PROGRAM.exists():
        terminalreporter.write_line("No Microsoft T-SQL parser: `make packages` unpacks it, on Linux on x86-64.")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what starts a server or the parser, and leave out what needs a SQL Server that is not there."""
    kept, absent = [], []
    no_parser = not PROGRAM.exists()
    for item in items:
        if starts_a_server(item):
            item.add_marker("server")
        asks_parser = item.get_closest_marker("microsoft_parser")
        if asks_parser:  # it takes two seconds to start
            item.add_marker("thorough")
        is_absent = sql_server.is_absent(item) or (no_parser and asks_parser)
        (absent if is_absent else kept).append(item)
    if absent:
        config.hook.pytest_deselected(items=absent)
        items[:] = kept

    at = {file: place for place, file in enumerate(_in_order(items))}
    items.sort(key=lambda item: at[_file(item)])


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Spare the 10,000 tests and all modules each search for garbage."""
    gc.freeze()
    gc.enable()


def pytest_unconfigure() -> None:
    """Let go of what was kept from searches: DuckDB calls what is left at the end leaks, in a hundred lines."""
    gc.unfreeze()


def _file(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


@cache
def _is_named_in(parts: tuple[str, ...], file: str) -> bool:
    """Return True if a part is in the file's name: asked once for a file, not for each of its tests."""
    return any(part in file for part in parts)


def _in_order(items: list[pytest.Item]) -> list[str]:
    """Return the files: what is long first and what is short last, so that no process is left to work alone. Between
    the long ones, which wait most of their time, stand short ones, which need the processor."""
    servers = {_file(item) for item in items if item.get_closest_marker("server")}
    files = list(dict.fromkeys(map(_file, items)))
    rank = {file: next((at for at, part in enumerate(LONG) if part in file), len(LONG)) for file in files}
    long = sorted((file for file in files if rank[file] < len(LONG)), key=rank.__getitem__)
    short = [file for file in files if rank[file] == len(LONG) and file not in servers]
    others = [file for file in files if rank[file] == len(LONG) and file in servers]
    between = len(short) * 2 // 3 // max(1, len(long))
    mixed = [file for at, one in enumerate(long) for file in (one, *short[between * at : between * (at + 1)])]
    return [*mixed, *others, *short[between * len(long) :]]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Refuse an embedded server to tests without the mark, and to their fixtures."""
    EmbeddedServer.start = _START if item.get_closest_marker("server") else _refused  # type: ignore[method-assign]


_START = EmbeddedServer.start


def _refused(_: EmbeddedServer) -> None:
    pytest.fail("This test starts a server: mark it `server`, or name its file in SLOW.")


def starts_a_server(item: pytest.Item) -> bool:
    if _is_named_in(SLOW, _file(item)):
        return True
    fixtures = item._fixtureinfo.name2fixturedefs.values()  # type: ignore[attr-defined]
    return any(definitions[-1].func.__module__ in SERVERS for definitions in fixtures)


@pytest.fixture
def database(embedded_server: EmbeddedServer) -> EmbeddedEngine:
    return EmbeddedEngine(embedded_server, f"test{next(_numbers)}")


@pytest.fixture(scope="session")
def bank_as_built(embedded_server: EmbeddedServer) -> EmbeddedEngine:
    """The bank with one branch, to be copied."""
    engine = EmbeddedEngine(embedded_server, "bank_as_built")
    build(engine, BANK, BANK_SCALE, seed=1, workers=1)
    return engine


@pytest.fixture
def new_bank(bank_as_built: EmbeddedEngine) -> EmbeddedEngine:
    """The bank with one branch in a database of the test's own."""
    return copy_of(bank_as_built, f"test{next(_numbers)}")


@pytest.fixture(scope="session")
def bank(bank_as_built: EmbeddedEngine) -> EmbeddedEngine:
    """The bank with one branch; tests may run transactions on it."""
    return copy_of(bank_as_built, "bank")
