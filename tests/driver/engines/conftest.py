"""A server of one's own to kill, made by copying a data directory that was initialised once."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from stallmark.driver.engines.embedded import EmbeddedServer

POOL = 8 * 1024**2


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of an embedded server that was started and stopped."""
    server = EmbeddedServer(tmp_path_factory.mktemp("template") / "server", buffer_pool_bytes=POOL)
    server.start()
    server.close()
    return server.folder


@pytest.fixture
def make_server(template: Path, tmp_path: Path) -> Iterator[Callable[..., EmbeddedServer]]:
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
def server(make_server: Callable[..., EmbeddedServer]) -> EmbeddedServer:
    server = make_server()
    server.start()
    return server
