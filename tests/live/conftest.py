"""An experiment of five runs, of which two are whole and the third goes on."""

from collections.abc import Callable
from pathlib import Path

import pytest
from support.synthetic import Truth, make_run

from stallmark.live.view import View
from stallmark.scenarios.model import Scenario
from stallmark.scenarios.read import read_scenario

CUT_AT = 28
TRUTHS = (
    Truth(tps=400, read_ms=28, variant="3 % of the data", sequence=1),
    Truth(tps=540, read_ms=26, variant="10 % of the data", sequence=2),
    Truth(tps=890, read_ms=21, variant="25 % of the data", sequence=3, cut_at=CUT_AT, failed_per_second=2),
)


@pytest.fixture(scope="session")
def made(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("live") / "20260101-000000-buffer-pool"
    for number, truth in enumerate(TRUTHS, 1):
        make_run(folder / f"{number:02d}", truth, "buffer-pool")
    return folder


@pytest.fixture(scope="session")
def scenario() -> Scenario:
    return read_scenario("buffer-pool", ())


@pytest.fixture
def view(made, scenario) -> Callable[..., View]:
    def looked(folder: Path = made, show=None) -> View:
        """A view that has read all the runs there are."""
        found = View(folder, scenario, show)
        for _ in TRUTHS:
            found.look()
        return found

    return looked
