"""`stallmark server`: what the real `docker` package asks of a container engine, and what the refusals become.

The engine's side of the HTTP API is ours (docker_api); the server that takes the login is the TDS responder. That
Microsoft's image does what its documentation says, no test here can know; docs/sql-server.md says what a real engine
has run.
"""

import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.asking_docker import IMAGE, first_password_of
from support.docker_api import Container, Engine
from support.mssql_server import says_it_is
from support.tds import odbc
from support.tds.answers import Count
from support.tds.requests import Request
from support.tds.responder import Responder
from support.tds.script import Script


@pytest.fixture(autouse=True)
def possible() -> None:
    if reason := odbc.missing():
        pytest.skip(reason)
    if not sys.platform.startswith("linux"):
        pytest.skip("The engine's socket is a Unix socket here.")


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Engine]:
    monkeypatch.setenv("STALLMARK_HOME", str(tmp_path / "home"))
    with tempfile.TemporaryDirectory() as short:  # the path of a Unix socket holds 107 bytes at most
        path = Path(short) / "docker.sock"
        monkeypatch.setenv("DOCKER_HOST", f"unix://{path}")
        with Engine(path, images={IMAGE}) as engine:
            yield engine


@pytest.fixture
def script(engine: Engine) -> Script:
    """As the image has it: sa's password comes from the environment where there are no databases yet, and is kept in
    them afterwards (microsoft/mssql-docker, issue 283)."""
    script = Script()
    script.sql("CREATE DATABASE")
    says_it_is(script)

    def start(made: Container) -> None:
        script.password = script.password or first_password_of(made)

    def alter(request: Request) -> list[Count]:
        [script.password] = re.findall(r"^ALTER LOGIN sa WITH PASSWORD = N'([^']+)'$", request.text)
        return [Count(0)]

    engine.on_start = start
    script.sql("ALTER LOGIN", alter)
    return script


@pytest.fixture
def sql_server(script: Script) -> Iterator[Responder]:
    with Responder(script) as responder:
        yield responder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """One that SQL Server may write to, whoever runs the tests."""
    folder = tmp_path / "data"
    folder.mkdir()
    folder.chmod(0o777)
    return folder
