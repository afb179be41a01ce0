"""How long an experiment will take: before anything runs, by the machine's earlier runs, and by its own."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.manifests import a_manifest

from stallmark.experiment.estimate import MIB, WRITE_BYTES_PER_S, Estimate, estimate
from stallmark.experiment.status import pace
from stallmark.probe.scenario import ProbeScenario
from stallmark.record.devices import machine_facts
from stallmark.record.manifest.course import Machine
from stallmark.record.writer import RecordWriter
from stallmark.report.text import experiment
from stallmark.scenarios.model import QueryScenario
from stallmark.scenarios.read import read_any_scenario, shipped
from stallmark.sizing.scenario import SizingScenario

pytestmark = pytest.mark.thorough

SECONDS = st.floats(0, 1e6)


@pytest.mark.parametrize("name", shipped())
def test_every_shipped_scenario_takes_longer_than_its_load(name):
    scenario = read_any_scenario(name)
    found = estimate(scenario)
    assert all(run_s > found.load_s for run_s in found.runs_s)
    assert (found.load_s == 0) == isinstance(scenario, QueryScenario | SizingScenario)
    assert (found.build_s == 0) == isinstance(scenario, ProbeScenario)
    if not isinstance(scenario, SizingScenario):  # its parts are experiments of their own
        runs = scenario.variants if isinstance(scenario, ProbeScenario) else scenario.run_order()
        assert len(found.runs_s) == len(runs)


@given(st.integers(1, 20), st.sampled_from(["alternating", "abba", "blocks"]), st.sampled_from(["restore", "continue"]))
def test_more_runs_take_longer_and_are_built_for_once(repeats, order, reset):
    scenario = read_any_scenario("demo").model_copy(update={"repeats": repeats, "order": order, "reset": reset})
    more = scenario.model_copy(update={"repeats": repeats + 1})
    assert estimate(more).total_s > estimate(scenario).total_s
    assert estimate(more).build_s == estimate(scenario).build_s


@given(st.integers(1, 9), st.integers(1, 9))
def test_a_larger_database_takes_longer(small, more):
    def of(branches: int, **known) -> Estimate:
        scenario = read_any_scenario("buffer-pool", ["workload={name: bank}", f"workload.scale.branches={branches}"])
        return estimate(scenario, **known)

    assert of(small + more).build_s > of(small).build_s > of(small, to_build=0.5).build_s > 0
    assert of(small, to_build=0, to_copy=False).build_s == 0
    assert sum(of(small + more).runs_s) > sum(of(small).runs_s) == sum(of(small, to_build=0).runs_s)


@given(st.floats(0.1, 50))
def test_a_slower_machine_has_no_longer_load(by):
    demo = read_any_scenario("demo")
    here, there = estimate(demo), estimate(demo, pace=by)
    assert there.load_s == here.load_s and there.build_s == pytest.approx(by * here.build_s)
    for one, other in zip(here.runs_s, there.runs_s, strict=True):
        assert other - here.load_s == pytest.approx(by * (one - here.load_s))


RUNS_S = (120.0, 130.0, 140.0, 110.0, 150.0)
TOOK = st.dictionaries(st.integers(1, len(RUNS_S)), SECONDS)
"""The seconds of whole runs, by number."""


@given(TOOK, SECONDS, SECONDS, st.booleans())
def test_the_time_left_is_never_negative_nor_less_than_the_load_that_is_left(took_s, spent_s, load_spent_s, at_most):
    expected = Estimate(10.0, RUNS_S, 100.0, at_most=at_most)
    to_make = [number for number in range(1, len(RUNS_S) + 1) if number not in took_s]
    left = [
        expected.left_s(took_s, to_make[:count], spent_s=spent_s, load_spent_s=load_spent_s)
        for count in range(len(to_make) + 1)
    ]
    assert min(left) >= 0 and left == sorted(left), "one run more takes no less"
    assert at_most or left[-1] >= 100.0 * len(to_make) - load_spent_s


@given(st.floats(0.1, 50), st.sets(st.integers(1, len(RUNS_S)), min_size=1))
def test_what_belongs_to_the_runs_that_are_left_takes_as_many_times_as_long_as_in_those_that_are_whole(by, whole):
    expected = Estimate(10.0, RUNS_S, 100.0)
    took_s = {number: 100 + by * (RUNS_S[number - 1] - 100) for number in whole}
    to_make = set(range(1, len(RUNS_S) + 1)) - whole
    assert expected.left_s(took_s, to_make) == pytest.approx(
        sum(100 + by * (RUNS_S[number - 1] - 100) for number in to_make)
    )
    assert expected.left_s({}, to_make) == pytest.approx(sum(RUNS_S[number - 1] for number in to_make))


def test_runs_that_were_steady_early_make_the_others_shorter():
    expected = Estimate(0.0, (3700.0, 3700.0), 3600.0, at_most=True)
    assert expected.left_s({1: 370.0}, [2]) == pytest.approx(370)


def test_a_run_that_takes_longer_than_expected_has_no_seconds_left_to_tell():
    assert "by now" in experiment.time_left(0.0, refined=True) and "about" not in experiment.time_left(
        0.0, refined=False
    )


def test_queries_take_longer_with_less_memory_and_never_beyond_their_time():
    less, all_of_it, *_ = estimate(read_any_scenario("power-memory-storage")).runs_s
    assert less > all_of_it
    short = estimate(read_any_scenario("power-memory-storage", ["queries.timeout=1s"])).runs_s
    assert max(short) < 22 + all_of_it
    twice = estimate(read_any_scenario("power-memory-storage", ["queries={run: throughput, streams: 2}"])).runs_s
    assert twice[0] > 1.5 * less


def test_what_nobody_knows_beforehand_is_said():
    found = estimate(read_any_scenario("flash-cache-vs-tiering"))
    assert found.at_most and found.asks
    said = experiment.takes(found.total_s, found.build_s, at_most=found.at_most, asks=found.asks)
    assert said.startswith("at most about") and "days" in said and "operator" in said
    assert experiment.takes(200, 0) == "about 3 minutes"


def test_probes_and_preconditioning_are_counted():
    bare = read_any_scenario("flash-cache-vs-tiering", ["probe=null"])
    probed = read_any_scenario("flash-cache-vs-tiering")
    rounds = "precondition={size: 1GiB, round: 60s, rounds: 10}"
    written = read_any_scenario("flash-cache-vs-tiering", ["probe=null", rounds])
    assert min(estimate(probed).runs_s) > max(estimate(bare).runs_s)
    plus = [with_it - without for with_it, without in zip(estimate(written).runs_s, estimate(bare).runs_s, strict=True)]
    assert [one > 600 for one in plus] == [True, False, False] * 4  # whenever another variant comes


def made(folder: Path, beside: float, machine: Machine, **fields: Any) -> None:
    """An experiment whose runs took `beside` times what was expected beside their load."""
    scenario = read_any_scenario("demo")
    expected = estimate(scenario, to_build=0)
    for number, run_s in enumerate(expected.runs_s, 1):
        took = {"prepare_s": beside * (run_s - expected.load_s), "load_s": expected.load_s, "end_s": 0}
        RecordWriter(
            folder / f"{number:02d}",
            a_manifest(
                scenario=scenario.model_dump(mode="json"), sequence=number, experiment=folder.name, machine=machine,
                **{"took": took, "devices": {"built_in": {"data": "/home"}}} | fields,
            ),
        ).close(None)  # fmt: skip


def test_the_pace_is_that_of_this_machines_earlier_runs(tmp_path):
    assert pace(tmp_path) == 1
    made(tmp_path / "20260101-a", 3, machine_facts())
    assert pace(tmp_path) == pytest.approx(3)
    made(tmp_path / "20260102-b", 5, machine_facts())
    assert pace(tmp_path) == pytest.approx(4)
    assert pace(tmp_path, Machine(cpu="another")) == 1
    for number in range(3, 6):
        made(tmp_path / f"2026010{number}-c", 2, machine_facts())
    assert pace(tmp_path) == pytest.approx(2), "only the newest count"


@pytest.mark.parametrize(
    "fields",
    [
        {"took": None},
        {"took": {"prepare_s": 100}},
        {"hook": {"ask": "Put the SSDs in.", "answer": "yes", "seconds": 3600}},
        {"kind": "queries", "queries": {"run": "power"}},
        {"machine": Machine(cpu="another")},
        {"devices": {}},  # a server by URL
    ],
)
def test_runs_that_tell_nothing_of_the_machine_are_passed_over(tmp_path, fields):
    made(tmp_path / "20260101-a", **{"beside": 9, "machine": machine_facts()} | fields)
    assert pace(tmp_path) == 1


def test_the_files_of_raw_loads_are_written_before_every_run():
    cells = read_any_scenario("cells-emulated")
    small = read_any_scenario("cells-emulated", ["loads.web.size=64MiB"])
    written = 4 * (256 - 64) * MIB
    assert sum(estimate(cells).runs_s) - sum(estimate(small).runs_s) == pytest.approx(written / WRITE_BYTES_PER_S)
