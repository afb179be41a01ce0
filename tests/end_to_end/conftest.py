"""Tools to try: one that many tests share, and a fresh one for each of the others."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from end_to_end.remote import remote
from end_to_end.tool import Tool

__all__ = ["remote"]  # a server, for the tests of a module


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tool]:
    """A tool with a small database, of which a copy is kept. What one test does to it the next one finds: every
    start proves a recovery."""
    tool = Tool(tmp_path_factory.mktemp("end-to-end"))
    code, said = tool.run("run", tool.scenario(reset="restore"))
    assert code == 0, said
    yield tool
    tool.nothing_left()


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Tool]:
    tool = Tool(tmp_path)
    yield tool
    tool.nothing_left()
