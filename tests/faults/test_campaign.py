"""Three rounds of the campaign of faults, as `python -m benchmarks.faults` makes them; a round names its seed."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from benchmarks.faults.__main__ import can_be_apart, make

SEED = 23


@pytest.fixture(scope="module")
def work() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="sf-"))  # short: sockets lie below it
    yield folder
    shutil.rmtree(folder)


@pytest.mark.server
@pytest.mark.parametrize(
    ("number", "kind", "struck"),
    [(17, "check", "SIGKILL to command"), (1917, "build", "SIGKILL to loader"), (2525, "run", "SIGKILL to executor")],
)
def test_a_round_finds_nothing_wrong(number, kind, struck, work):
    found = make(SEED, work, can_be_apart(), (number, kind))
    assert not found.problems, found
    assert not found.skipped and struck in " ".join(found.did)
