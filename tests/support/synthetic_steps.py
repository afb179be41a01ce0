"""The step of a run of known truth as the analysis sees it, and two such steps that differ in their reads."""

from pathlib import Path

import pytest

from stallmark.analysis.experiment import summarise
from stallmark.analysis.step_summary import StepSummary
from stallmark.record.reader import Record
from support.synthetic import Truth, make_run

STEADY = Truth(noise=0.0, extends_per_second=0.0)
WAITS = {"io": 0.72, "wal": 0.06, "lock": 0.04, "client": 0.03, "other": 0.01}


def only_step(folder: Path) -> StepSummary:
    (run,) = summarise([Record(folder)]).runs
    [step] = run.steps
    return step


def step_of(folder: Path, truth: Truth) -> StepSummary:
    """Make a run in `folder`, which may be there."""
    return only_step(make_run(folder / "run", truth))


@pytest.fixture(scope="session")
def steady(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A record that no test changes."""
    return make_run(tmp_path_factory.mktemp("steady") / "run", STEADY)


@pytest.fixture(scope="session")
def slow(tmp_path_factory: pytest.TempPathFactory) -> StepSummary:
    """30 users at 400 TPS, so 75 ms a transaction: 72 % reads of 27 ms, two of them."""
    return step_of(tmp_path_factory.mktemp("slow"), Truth(read_ms=27, waits=WAITS))


@pytest.fixture(scope="session")
def fast(tmp_path_factory: pytest.TempPathFactory) -> StepSummary:
    """The same load at 870 TPS, reads of 9 ms."""
    truth = Truth(tps=870, read_ms=9, host_cpu=0.7, waits=WAITS | {"io": 0.52}, seed=2)
    return step_of(tmp_path_factory.mktemp("fast"), truth)
