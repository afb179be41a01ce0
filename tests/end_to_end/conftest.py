"""Tools to try: one that many tests share, and a fresh one for each of the others; on every engine where a test has a
meaning on each."""

import fcntl
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.remote import remote
from support.sql_server import database, sql_server
from support.tool import Tool

from stallmark.engines.mssql.engine import MssqlEngine

__all__ = ["remote", "sql_server"]  # servers: of a module's tests, of all

SHARED = {"embedded": "shared", "sqlserver": "shared_sqlserver"}
"""The fixture of each engine's shared tool."""
ENGINES = ["embedded", pytest.param("sqlserver", marks=pytest.mark.sqlserver("container"))]


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tool]:
    """A tool with a small database, of which a copy is kept: made by the first test process, the others copy it. What
    one test does to it the next one finds: every start proves a recovery."""
    base = tmp_path_factory.getbasetemp()
    first = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "first-tool"
    with first.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (first / "whole").exists():
            first.mkdir(exist_ok=True)
            made = Tool(first)
            code, said = made.run("run", made.scenario(reset="restore"))
            assert code == 0, said
            (first / "whole").touch()
    tool = Tool(shutil.copytree(first, base / "end-to-end", symlinks=True))
    yield tool
    tool.nothing_left()


@pytest.fixture(scope="session")
def shared_sqlserver(sql_server: MssqlEngine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tool]:
    """The same on SQL Server; the copy only where the server can keep one."""
    with database(sql_server, "shared") as url:
        tool = Tool.on_server(tmp_path_factory.mktemp("sqlserver"), url)
        reset = "continue" if tool.cannot("backup") else "restore"
        code, said = tool.run("run", tool.scenario(reset=reset))
        assert code == 0, said
        yield tool
        tool.nothing_left()


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Tool]:
    tool = Tool(tmp_path)
    yield tool
    tool.nothing_left()


@pytest.fixture(params=ENGINES)
def tool(request: pytest.FixtureRequest) -> Tool:
    """`shared`, on each engine."""
    return request.getfixturevalue(SHARED[request.param])


@pytest.fixture(params=ENGINES)
def new_tool(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Tool]:
    """`fresh`, on each engine; on SQL Server in an empty database."""
    if request.param == "embedded":
        yield request.getfixturevalue("fresh")
        return
    with database(request.getfixturevalue("sql_server"), "new") as url:
        tool = Tool.on_server(tmp_path, url)
        yield tool
        tool.nothing_left()
