"""Waiting for a steady state in a scenario, and the service level of its reads."""

from typing import get_args

import pytest

from stallmark.analysis.validity.service_level import READY_MADE
from stallmark.driver.timeline import WarmUpLimits
from stallmark.errors import StallmarkError
from stallmark.scenarios.load import ReadyMade, described
from stallmark.scenarios.model import QueryScenario
from stallmark.scenarios.read import read_scenario
from stallmark.scenarios.variant import Variant

UNTIL = "warm_up={until: steady, at_least: 20s, at_most: 2h}"


def test_a_plain_warm_up_waits_for_nothing(read):
    timeline = read(sets=("ramp=1s", "warm_up=30s")).timeline(Variant(name="one"))
    assert timeline.warm_up_limits is None and timeline.steps[0].measure_s == 31


def test_a_steady_state_is_planned_for_the_last_moment(read):
    scenario = read(sets=("ramp=1s", "users=[1, 5]", "measure=60s", UNTIL))
    timeline = scenario.timeline(Variant(name="one"))
    assert timeline.warm_up_limits == WarmUpLimits(20, 7200)
    assert [step.measure_s for step in timeline.steps] == [7201, 7201 + 60 + 7201]
    assert scenario.timeline(Variant(name="one")).end_s > 7200


def test_it_is_waited_for_half_a_minute_at_least(read):
    assert read(sets=("warm_up={until: steady, at_most: 5min}",)).timeline(
        Variant(name="one")
    ).warm_up_limits == WarmUpLimits(30, 300)


def test_the_record_says_what_the_service_level_is(read):
    assert read().slo is None
    assert described(read(sets=("slo=oltp",)).slo).model_dump() == {
        "name": "oltp",
        "read_ms": 20,
        "ideal_ms": 10,
        "percentile": "p95",
        "transactions": (),
    }
    assert described(read(sets=("slo={read: 500ms, percentile: p99}",)).slo).model_dump() == {
        "name": "read",
        "read_ms": 500,
        "ideal_ms": None,
        "percentile": "p99",
        "transactions": (),
    }


def test_every_ready_made_service_level_may_be_named():
    assert set(get_args(ReadyMade)) == set(READY_MADE)


def test_queries_have_a_service_level_and_no_warm_up(tmp_path):
    path = tmp_path / "power.yaml"
    path.write_text(
        "{name: power, title: Power, answers: How long?, needs: Nothing., slo: dss, reset: continue, "
        "workload: {name: warehouse, scale: {factor: 0.01}}, queries: {run: power}, variants: [{name: only}]}"
    )
    scenario = read_scenario(str(path))
    assert isinstance(scenario, QueryScenario) and described(scenario.slo).read_ms == 30


def test_thresholds_are_understood_before_anything_starts(read):
    assert read(sets=("thresholds=[p95 < 20ms, transfer.p99 < 1s]",)).thresholds == ["p95 < 20ms", "transfer.p99 < 1s"]
    for wrong in ("p95 < soon", "no_such.p99 < 1s", "speed > 1"):
        with pytest.raises(StallmarkError, match="thresholds"):
            read(sets=(f"thresholds=[{wrong}]",))
