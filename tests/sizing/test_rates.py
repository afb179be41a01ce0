"""The rates of a stand-in and its costs: as a profile asks for them, and as measured."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.sizings import a_demand
from support.synthetic_loads import MEASURED_S, LoadsStep, alone_and_together, make_loads_run

from stallmark.analysis.loads import LoadsSummary, summarise_loads
from stallmark.record.reader import Record
from stallmark.sizing.rates import (
    corrected_costs,
    costs_of,
    ended_queries,
    fitted_rates,
    largest_error,
    quantities_to_fit,
    shares_of_waiting_queries,
    target_rates,
)


@pytest.fixture(scope="module")
def calibrated(tmp_path_factory) -> LoadsSummary:
    steps = alone_and_together({"bank": (200.0, 80.0)}, reports=(0.5, 0.25))
    return summarise_loads([Record(make_loads_run(tmp_path_factory.mktemp("calibration") / "run", steps))])


def test_a_query_costs_what_the_server_did_by_those_that_ended(calibrated):
    costs, steps = costs_of(calibrated, None), calibrated.whole.runs[0].steps
    [alone] = [step for step in steps if step.step == "reports alone"]
    assert ended_queries(calibrated) == {"reports": 12} and alone.interval.measured_s == MEASURED_S
    data = alone.storage.data
    assert costs["reports"]["reads"] == pytest.approx(data.reads / data.seconds * MEASURED_S / 12)
    assert costs["reports"]["read_bytes"] == pytest.approx(data.read_bytes / data.seconds * MEASURED_S / 12)
    assert costs["reports"]["cpu_cores"] is None


@pytest.mark.thorough
@pytest.mark.parametrize("late_s", [None, 0.0, 3.0])
def test_queries_that_waited_are_a_share_of_those_that_began(tmp_path, late_s):
    steps = [LoadsStep("all loads", {"bank": 200.0, "reports": 0.5})]
    found = shares_of_waiting_queries(summarise_loads([Record(make_loads_run(tmp_path / "run", steps, late_s=late_s))]))
    assert set(found) == (set() if late_s is None else {"reports"})
    if late_s is not None:
        assert found["reports"] == pytest.approx(0.25 if late_s else 0.0, abs=0.1)


def test_a_transaction_costs_what_it_does_beside_queries_or_not(calibrated):
    [bank] = [step for step in calibrated.loads["bank"].runs[0].steps if step.step == "bank alone"]
    reads = bank.storage.data.reads / bank.storage.data.seconds
    assert costs_of(calibrated, None)["bank"]["reads"] == pytest.approx(reads / 200, rel=0.05)


def test_bytes_read_are_fitted_beside_queries_alone():
    wanted = {"reads": 1000.0, "read_bytes": 3.2e7, "writes": 100.0, "log_bytes": 1e6, "cpu_cores": None}
    # A transaction reads pages of 8 KiB one by one; a query 64 KiB at once.
    costs = {
        "bank": {"reads": 2.0, "read_bytes": 16_384.0, "writes": 0.5, "log_bytes": 5000.0, "cpu_cores": None},
        "reports": {"reads": 1000.0, "read_bytes": 6.5e7, "writes": 0.0, "log_bytes": 0.0, "cpu_cores": None},
    }
    rates = fitted_rates({name: wanted[name] for name in quantities_to_fit(True)}, costs)
    assert rates["bank"] == pytest.approx(200, rel=0.1) and rates["reports"] == pytest.approx(0.45, rel=0.15)
    assert set(quantities_to_fit(True)) - set(quantities_to_fit(False)) == {"read_bytes"}


def test_the_share_that_is_off_is_of_what_was_fitted():
    wanted, reached = target_rates(a_demand()), {"reads": 1.0, "read_bytes": 1.0, "writes": 1.0, "log_bytes": None}
    assert largest_error({name: wanted[name] for name in ("reads",)}, reached) == pytest.approx(1 - 1 / wanted["reads"])
    assert largest_error({"log_bytes": 5.0}, reached) == largest_error({"reads": None}, reached) == 0


rate = st.floats(0.1, 1e4)
cost = st.floats(1e-3, 1e5)


@given(st.lists(rate, min_size=2, max_size=2), st.lists(cost, min_size=6, max_size=6))
def test_what_loads_did_gives_their_rates_back(rates: list[float], each: list[float]) -> None:
    costs = {"a": dict(zip("rwl", each[:3], strict=True)), "b": dict(zip("rwl", each[3:], strict=True))}
    wanted = {name: rates[0] * costs["a"][name] + rates[1] * costs["b"][name] for name in "rwl"}
    found = fitted_rates(wanted, costs)
    for name in "rwl":
        done = sum(found[load] * costs[load][name] for load in found)
        assert done == pytest.approx(wanted[name], rel=1e-6), "several rates may do the same, if costs are alike"


@given(st.lists(cost, min_size=4, max_size=4), st.lists(rate, min_size=2, max_size=2))
def test_no_rate_is_negative_and_none_near_does_better(each: list[float], wanted: list[float]) -> None:
    costs = {"a": dict(zip("rw", each[:2], strict=True)), "b": dict(zip("rw", each[2:], strict=True))}
    want = dict(zip("rw", wanted, strict=True))
    found = fitted_rates(want, costs)

    def off(rates: dict[str, float]) -> float:
        return sum((sum(rates[one] * costs[one][name] for one in rates) / want[name] - 1) ** 2 for name in want)

    assert min(found.values()) >= 0
    for change in np.random.default_rng(1).uniform(0.8, 1.25, (20, 2)):
        assert off(found) <= off({one: found[one] * c for one, c in zip(found, change, strict=True)}) + 1e-9


def test_what_is_not_known_of_a_load_or_not_wanted_does_not_count() -> None:
    costs = {"a": {"r": 2.0, "cpu": None}, "b": {"r": 0.0, "cpu": 1.0}}
    assert fitted_rates({"r": 10.0, "cpu": 5.0, "w": None}, costs) == {"a": pytest.approx(5), "b": 0}
    with pytest.raises(ValueError):
        fitted_rates({"cpu": 5.0, "w": 3.0}, costs)


def test_costs_are_mended_by_what_they_were_off_together() -> None:
    costs = {"a": {"r": 2.0, "w": 1.0}, "b": {"r": 4.0, "w": None}}
    mended = corrected_costs(costs, {"a": 5.0, "b": 5.0}, {"r": 15.0, "w": 10.0})
    assert mended == {"a": {"r": 1.0, "w": 2.0}, "b": {"r": 2.0, "w": None}}
    assert corrected_costs(costs, {"a": 5.0, "b": 5.0}, {"r": None, "w": 0.0}) == costs
