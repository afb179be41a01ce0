"""Steps of runs of known truth."""

import pytest
from support.comparisons import template
from support.synthetic_steps import fast, slow, steady

from stallmark.analysis.run import RunSummary

__all__ = ["fast", "slow", "steady"]


@pytest.fixture(scope="session")
def sound(tmp_path_factory: pytest.TempPathFactory) -> RunSummary:
    return template(tmp_path_factory.mktemp("sound"), measured_s=40)
