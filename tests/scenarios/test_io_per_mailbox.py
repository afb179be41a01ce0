"""I/Os per mailbox that a load of mail is steered to, as a scenario says them (`profile`)."""

import pytest

from stallmark.driver.pacing import Arrivals
from stallmark.driver.steered_load import SteeringPlan
from stallmark.errors import StallmarkError
from stallmark.experiment.load_specs import load_specs, steering_plan
from stallmark.scenarios.model import LoadsScenario, Scenario, TimedScenario
from stallmark.scenarios.read import read_any_scenario, read_scenario

MAIL = """
name: mail
workload: {name: mail, scale: {mailboxes: 2000}}
users: 20
warm_up: {until: steady, at_most: 10min}
measure: 60s
variants: [{name: mail}]
"""


@pytest.fixture
def read(tmp_path):
    def read_with(*sets: str, mail: str = MAIL) -> Scenario:
        path = tmp_path / "mail.yaml"
        path.write_text(mail)
        scenario = read_scenario(str(path), sets)
        assert isinstance(scenario, Scenario)
        return scenario

    return read_with


def plan_of(scenario: TimedScenario) -> SteeringPlan | None:
    return steering_plan(scenario, scenario.variants[0])


def arrivals(scenario: TimedScenario) -> Arrivals:
    [load] = load_specs(scenario, scenario.variants[0])
    return load.arrivals


def test_a_profile_is_steered_to_by_arrivals_that_begin_slowly(read) -> None:
    scenario = read("profile=0.12")
    assert plan_of(scenario) == SteeringPlan("mail", frozenset({0}), 0.12, 2_000, 20)
    assert arrivals(scenario) == Arrivals("poisson", rate=240 / 20)
    assert arrivals(read("profile={iops: 0.5, arrivals: fixed}")) == Arrivals("fixed", rate=1_000 / 20)
    assert plan_of(read()) is None and arrivals(read()).kind == "closed"


def test_reads_are_held_against_the_service_level_of_the_scenario(read) -> None:
    for slo, limit_ms in (("mail", 20), ("dss", 30), ("{read: 8ms}", 8)):
        plan = plan_of(read("profile=0.12", f"slo={slo}"))
        assert plan and plan.limit_ms == limit_ms


@pytest.mark.parametrize("more", ["arrivals={kind: fixed, rate: 100}", "think_time={mean: 1s}"])
def test_a_rate_is_either_said_or_steered(read, more: str) -> None:
    with pytest.raises(StallmarkError, match="remove arrivals and think_time"):
        read("profile=0.12", more)


def test_steering_takes_a_warm_up(read) -> None:
    short = MAIL.replace("{until: steady, at_most: 10min}", "20s")
    with pytest.raises(StallmarkError, match="raise warm_up"):
        read("profile=0.12", mail=short)
    assert plan_of(read("profile=0.12", "warm_up=40s", mail=short))


SEVERAL = """
name: blender
loads:
  mail: {workload: mail, scale: {mailboxes: 2000}, users: 20, profile: 0.12, slo: {read: 8ms}}
  bank: {workload: bank, scale: {branches: 10}, users: 20}
alone: true
warm_up: 60s
measure: 60s
variants: [{name: all}]
"""


def read_several(tmp_path, text: str) -> LoadsScenario:
    path = tmp_path / "several.yaml"
    path.write_text(text)
    scenario = read_any_scenario(str(path))
    assert isinstance(scenario, LoadsScenario)
    return scenario


def test_one_of_several_loads_is_steered_while_it_is_alone(tmp_path) -> None:
    scenario = read_several(tmp_path, SEVERAL)
    assert [step.name for step in scenario.steps_of(scenario.variants[0])] == ["mail alone", "bank alone", "together"]
    assert plan_of(scenario) == SteeringPlan("mail", frozenset({0}), 0.12, 2_000, 8)


@pytest.mark.parametrize(
    ("written", "instead", "words"),
    [
        ("alone: true", "", "write alone: true"),
        ("alone: true", "cells: [1, 2]", "leave out cells"),
        ("bank, scale", "bank, profile: 0.1, scale", "bank has no mailboxes"),
        ("warm_up: 60s", "warm_up: 10s", "raise warm_up"),
        (
            "workload: bank, scale: {branches: 10}",
            "workload: mail, scale: {mailboxes: 2000}, profile: 0.5",
            "leave one",
        ),
    ],
)
def test_a_load_that_could_not_be_told_from_others_is_not_steered(tmp_path, written, instead, words) -> None:
    with pytest.raises(StallmarkError, match=words):
        read_several(tmp_path, SEVERAL.replace(written, instead))
