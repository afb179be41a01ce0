"""A server of one's own to kill, made by copying a data directory that was initialised once; sessions on PostgreSQL."""

import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from stallmark.engines.postgres.embedded_engine import EmbeddedEngine
from stallmark.engines.postgres.embedded_server import EmbeddedServer
from stallmark.engines.postgres.engine import PostgresEngine
from stallmark.engines.postgres.session import PostgresSession
from support.memory import server_folder

LONG_S = 60.0
POOL = 8 * 1024**2
Make = Callable[..., EmbeddedServer]


@pytest.fixture(scope="session")
def template() -> Iterator[Path]:
    """A folder of an embedded server that was started and stopped."""
    with server_folder() as folder:
        server = EmbeddedServer(folder / "server", buffer_pool_bytes=POOL)
        server.start()
        server.close()
        yield server.folder


@contextmanager
def copied(template: Path) -> Iterator[EmbeddedServer]:
    """Yield a server of our own, not started."""
    with server_folder() as folder:
        server = EmbeddedServer(shutil.copytree(template, folder / "server", symlinks=True))
        try:
            yield server
        finally:
            server.close()


@pytest.fixture(scope="session")
def embedded_server(template: Path) -> Iterator[EmbeddedServer]:
    """The one that all tests of a process share."""
    with copied(template) as server:
        server.start()
        yield server


@pytest.fixture
def make_server(template: Path, tmp_path: Path) -> Iterator[Make]:
    """Makes servers with folders of their own, not started; whatever a test does, none is left."""
    made: list[EmbeddedServer] = []

    def make(name: str = "server", *, fresh: bool = False, **options) -> EmbeddedServer:
        if not fresh and not (tmp_path / name).exists():
            shutil.copytree(template, tmp_path / name, symlinks=True)
        made.append(EmbeddedServer(tmp_path / name, **{"buffer_pool_bytes": POOL} | options))
        return made[-1]

    yield make
    for server in made:
        server.close()


@pytest.fixture
def server(make_server: Make) -> EmbeddedServer:
    server = make_server()
    server.start()
    return server


def filled(server: EmbeddedServer) -> EmbeddedEngine:
    """A database with a table `t` of 1,000 rows."""
    engine = EmbeddedEngine(server, "x")
    engine.execute("CREATE TABLE t AS SELECT i, i::text AS s FROM generate_series(1, 1000) i")
    return engine


@pytest.fixture
def table(server: EmbeddedServer) -> EmbeddedEngine:
    return filled(server)


def rows(engine: PostgresEngine) -> list[tuple]:
    return engine.query("SELECT * FROM t ORDER BY 1")


@pytest.fixture
def sessions(database: EmbeddedEngine) -> Iterator[Callable[..., PostgresSession]]:
    opened: list[PostgresSession] = []

    def make(call_timeout_s: float = LONG_S, **statements: str) -> PostgresSession:
        opened.append(database.session(call_timeout_s))
        for name, sql in statements.items():
            opened[-1].prepare(name, sql)
        return opened[-1]

    yield make
    for session in opened:
        session.close()


@pytest.fixture
def aside() -> Iterator[Callable[..., Future]]:
    with ThreadPoolExecutor() as pool:
        yield pool.submit


def postmaster(server: EmbeddedServer) -> psutil.Process:
    return psutil.Process(int((server.data / "postmaster.pid").read_text().split()[0]))


def alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def family(server: EmbeddedServer) -> list[psutil.Process]:
    return [postmaster(server), *postmaster(server).children()]
