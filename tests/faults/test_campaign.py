"""A round of the campaign of faults, as `python -m benchmarks.faults` makes it."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from benchmarks.faults.__main__ import can_be_apart, make


@pytest.fixture
def work() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="sf-"))  # short: sockets lie below it
    yield folder
    shutil.rmtree(folder)


@pytest.mark.server
def test_a_round_finds_nothing_wrong(work):
    found = make(23, work, can_be_apart(), (1917, "build"))
    assert not found.problems, found
    assert not found.skipped and "SIGKILL to loader" in " ".join(found.did)
