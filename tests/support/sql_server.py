"""A SQL Server for the tests: the one that STALLMARK_TEST_SQLSERVER names, else one of our own in a container.

A container runs Microsoft's image, so it needs the yes to its licence that nobody can give for you: ACCEPT_EULA=Y.
"""

import fcntl
import json
import os
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from stallmark.engines.mssql import odbc
from stallmark.engines.mssql.engine import MssqlEngine
from stallmark.errors import CallFailed, StallmarkError
from stallmark.experiment.target import server_url
from stallmark.lab import server_order
from support.remote import free_port
from support.tool import Tool
from support.waiting import eventually

URL = os.environ.get("STALLMARK_TEST_SQLSERVER", "")
"""Of a database for the tests alone: they empty it."""
IN_CONTAINER = os.environ.get("ACCEPT_EULA") == "Y"
STARTS_WITHIN_S = 1800  # its image is to be downloaded


@pytest.fixture(scope="session")
def sql_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MssqlEngine]:
    if URL:
        with _nobody_else():
            yield MssqlEngine(URL)
    elif _container_engine_answers():
        with _in_a_container(tmp_path_factory.mktemp("sqlserver")) as url:
            yield MssqlEngine(url)
    else:
        pytest.skip("ACCEPT_EULA is Y, but no container engine answers.")


def is_absent(item: pytest.Item) -> bool:
    """Tell whether the test needs a SQL Server that is absent. `sqlserver("container")`: one in a container will do."""
    marker = item.get_closest_marker("sqlserver")
    return marker is not None and not URL and not (IN_CONTAINER and "container" in marker.args)


@contextmanager
def database(server: MssqlEngine, name: str) -> Iterator[str]:
    """The URL of a new database beside the one that `server` names."""
    place = server.on_database(f"{server.address.database}_{name}")
    master, quoted = server.on_database("master"), odbc.name(place.address.database)

    def is_gone() -> bool:
        try:
            master.execute(f"DROP DATABASE IF EXISTS {quoted}")
        except CallFailed:  # a process that was killed is still in it
            return False
        return True

    eventually(is_gone, f"{quoted} dropped")  # of tests that were killed
    master.execute(f"CREATE DATABASE {quoted}")
    try:
        yield place.spec()
    finally:
        eventually(is_gone, f"{quoted} dropped")


@contextmanager
def _nobody_else() -> Iterator[None]:
    """Runs exclude each other on a server, so test processes take turns there."""
    with (Path(tempfile.gettempdir()) / "stallmark-test-sqlserver.lock").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        yield


def _container_engine_answers() -> bool:
    with suppress(StallmarkError):
        server_order.container_engine().close()
        return True
    return False


@contextmanager
def _in_a_container(folder: Path) -> Iterator[str]:
    tool = Tool(folder, {name: os.environ[name] for name in ("DOCKER_HOST",) if name in os.environ})
    name = f"stallmark-tests-{uuid.uuid4().hex[:8]}"
    command = tool.start("server", "up", "--accept-eula", "--name", name, "--port", str(free_port()), "--json")
    try:
        code = command.process.wait(STARTS_WITHIN_S)
        assert code == 0, command.text
        [line] = [line for line in command.text.splitlines() if line.startswith("{")]
        yield server_url(f"@{json.loads(line)['url_file']}")
    finally:
        code, said = tool.run("server", "down", name, "--remove-data")
        assert code == 0, said
