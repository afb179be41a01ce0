"""A sizing's scenario: the parts of its stand-in, what is refused, and the time that it takes."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stallmark.errors import StallmarkError
from stallmark.experiment.estimate import estimate
from stallmark.experiment.work import load_specs, work_of_loads
from stallmark.quantities import PoolSize
from stallmark.scenarios.model import LoadsScenario
from stallmark.scenarios.read import read_any_scenario
from stallmark.sizing.scenario import LEAST_RATE, SizingScenario, estimate_sizing


def read(*overrides: str) -> SizingScenario:
    found = read_any_scenario("sizing-emulated", overrides)
    assert isinstance(found, SizingScenario)
    return found


@pytest.mark.parametrize("name", ["sizing", "sizing-emulated"])
def test_the_parts_of_the_stand_in_have_one_database(name: str) -> None:
    scenario = read_any_scenario(name)
    assert isinstance(scenario, SizingScenario)
    rates = dict.fromkeys(scenario.loads, 10.0)
    parts = [scenario.calibration(None), scenario.trial(rates, None), scenario.ceiling(rates, None)]
    assert {type(part) for part in parts} == {LoadsScenario}
    assert [part.contents for part in parts] == [scenario.contents] * 3
    assert {part.emulated_array for part in parts} == {scenario.emulated_array}
    assert len({part.name for part in parts}) == 3


def test_each_load_is_calibrated_alone_with_few_users() -> None:
    part = read().calibration(PoolSize(share=0.25))
    steps = part.steps_of(part.variants[0])
    assert [step.alone for step in steps] == ["bank", "brokerage"]
    assert {count for step in steps for count in step.counts.values()} == {8}
    assert part.pool_of(part.variants[0]) == PoolSize(share=0.25)


@pytest.mark.parametrize("warm_up", ["4s", "{until: steady, at_least: 5s, at_most: 1min}", "2min"])
def test_costs_are_measured_when_the_load_has_lasted_as_long(warm_up: str) -> None:
    scenario = read(f"warm_up={warm_up}")
    for part in (scenario.calibration(None), scenario.trial({"bank": 3.0}, None)):
        assert part.measure == 3 * scenario.measure
        settled = part.warm_up if isinstance(part.warm_up, float) else part.warm_up.at_least
        assert settled == max(part.measure, 120.0 if warm_up == "2min" else 0.0)
    assert scenario.ceiling({"bank": 3.0}, None).warm_up == scenario.warm_up


def test_loads_of_no_rate_rest_and_their_data_stay() -> None:
    scenario = read()
    part = scenario.ceiling({"bank": 0.0, "brokerage": 12.5}, None)
    assert part.contents == scenario.contents
    [spec] = load_specs(part, part.variants[0])
    assert (spec.name, spec.arrivals.kind, spec.arrivals.rate) == ("brokerage", "poisson", 6.25)
    assert part.search and (part.search.of, part.search.to) == ("load", 8)
    trial = scenario.trial({"bank": 3.0, "brokerage": 12.5}, None)
    assert {one.name: one.arrivals.rate for one in load_specs(trial, trial.variants[0])} == {
        "bank": 3.0,
        "brokerage": 12.5,
    }


QUERIES = "loads.queries={workload: warehouse, scale: {factor: 0.01}, streams: 3}"


def test_queries_run_alone_in_few_streams_and_then_at_their_rate() -> None:
    scenario = read(QUERIES)
    assert scenario.queries == ["queries"]
    alone = scenario.calibration(None)
    assert [dict(step.counts) for step in alone.steps_of(alone.variants[0])][-1] == {"queries": 2}
    part = scenario.ceiling({"bank": 3.0, "brokerage": 0.0, "queries": 0.05}, None)
    [variant] = part.variants
    assert {load.name: load.rate for load in work_of_loads(part, variant, "postgresql").loads} == {
        "bank": 3.0,
        "queries": 0.05,
    }
    searched = part.searched_of(variant)
    assert searched and searched.rates == {"bank": 3.0, "queries": 0.05}
    assert part.contents == scenario.contents


def test_queries_of_no_rate_rest() -> None:
    part = read(QUERIES).trial({"bank": 3.0, "brokerage": 1.0, "queries": 0.0}, None)
    assert "queries" not in part.loads_of(part.variants[0])


def test_whatever_the_rates_are_there_are_users() -> None:
    scenario = read(QUERIES)
    for values in itertools.product([0.0, 0.01, 5.0], repeat=3):
        rates = dict(zip(("bank", "brokerage", "queries"), values, strict=True))
        idle = not rates["bank"] and not rates["brokerage"]
        assert scenario.runnable_rates(rates) == rates | ({"bank": LEAST_RATE} if idle else {})
    part = scenario.trial(scenario.runnable_rates({"bank": 0.0, "brokerage": 0.0, "queries": 5.0}), None)
    assert [spec.name for spec in load_specs(part, part.variants[0])] == ["bank"]


def test_the_candidate_is_described() -> None:
    found = read("candidate={name: B, memory: 64GiB, cost: 42000, watts: 900, rack_units: 4}").candidate.to_record()
    assert (found.name, found.memory_bytes, found.cost, found.watts, found.rack_units) == ("B", 2**36, 42000, 900, 4)


def test_its_time_is_that_of_all_its_parts() -> None:
    scenario = read()
    found = estimate(scenario, to_build=0.0, to_copy=False)
    longer = estimate(read("replay.play=20s", "replay.window=1min"), to_build=0.0, to_copy=False)
    assert scenario.search
    assert longer.total_s - found.total_s == pytest.approx(10 * scenario.search.spec().usual_levels)
    assert found.total_s > sum(estimate(scenario.calibration(None), to_build=0.0, to_copy=False).runs_s)


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("search={of: users, from: 1, to: 9}", "multiples of the load"),
        ("slo=null", "service level"),
        ("loads.bank.think_time={mean: 1s}", "found by the sizing"),
        ("loads.bank.arrivals={kind: poisson, rate: 4}", "found by the sizing"),
        ("loads.scan={raw: scan}", "no rate that could be found"),
        ("loads.queries={workload: warehouse, scale: {factor: 1}, streams: [1, 2]}", "found by the sizing"),
        (QUERIES.replace("streams: 3", "streams: 3, arrivals: {kind: poisson, rate: 1}"), "found by the sizing"),
        ("loads={queries: {workload: warehouse, scale: {factor: 0.01}, streams: 1}}", "no load has users"),
        ("variants=[{name: a}, {name: b}]", "one candidate"),
        ("alone=true", "leave out cells and alone"),
        ("replay.size=1MiB", "replay.size must be at least 32MiB"),
        ("candidate.cost=0", "candidate.cost"),
    ],
)
def test_what_cannot_be_is_refused(override: str, said: str) -> None:
    with pytest.raises(StallmarkError, match=said):
        read(override)


@pytest.mark.thorough
@given(st.integers(1, 9))
def test_every_window_of_a_profile_is_replayed_at_every_level(windows):
    sizing = read_any_scenario("sizing")
    one, more = estimate(sizing), estimate_sizing(sizing, windows=windows)
    levels = sizing.search.spec().usual_levels
    assert more.runs_s[0] - one.runs_s[0] == pytest.approx((windows - 1) * levels * sizing.replay.play)
    assert more.runs_s[1:] == one.runs_s[1:]


def test_only_a_sizing_is_estimated():
    assert estimate_sizing(read_any_scenario("demo")) is None
