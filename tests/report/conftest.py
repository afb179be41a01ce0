"""Runs of the brokerage, for tests of what is shown of them."""

import pytest
from support.synthetic import Brokerage, Truth, make_run

from stallmark.analysis.experiment import ExperimentSummary, summarise
from stallmark.record.reader import find_records


@pytest.fixture(scope="session")
def brokerage_runs(tmp_path_factory) -> ExperimentSummary:
    """Two variants: one that is sound but slow, one whose market falls behind; 50 to 100 Trade-Results/s."""
    folder = tmp_path_factory.mktemp("runs")
    slow = {"trade_result": 2.4, "trade_order": 1.0}
    for number, (tps, name, brokerage) in enumerate(
        [
            (200, "HDD", Brokerage(latency_s=slow, nominal_rate=9.87)),
            (300, "SSD", Brokerage(late_s=0.3, nominal_rate=9.87)),
        ]
    ):
        truth = Truth(
            tps=tps,
            noise=0.0,
            warm_up_s=12,
            measured_s=40,
            arrivals="poisson",
            variant=name,
            sequence=number,
            seed=number + 1,
            emulated=False,
            device={"name": name},
            brokerage=brokerage,
        )
        make_run(folder / name, truth, "user-ramp")
    return summarise(find_records([folder]))
