"""What a scenario means: its timeline, and what each variant runs with."""

import json

import pytest

from stallmark.driver.pacing import Arrivals
from stallmark.scenarios.model import SHIPPED
from stallmark.scenarios.read import read_scenario, shipped
from stallmark.scenarios.units import PoolSize

DATA = "{spindles: 2, read_ms: 1, write_ms: 1, sync_ms: 1, mb_per_s: 100}"


def test_steps_follow_each_other_without_a_gap(read):
    plan = read(sets=("users=[1, 10, 5]", "ramp=2s", "warm_up=3s", "measure=10s")).plan()
    assert [(s.name, s.users) for s in plan.steps] == [("1 users", 1), ("10 users", 10), ("5 users", 5)]
    assert [(s.begin_s, s.ramp_s, s.measure_s, s.end_s) for s in plan.steps] == [
        (0, 2, 5, 15),
        (15, 2, 20, 30),
        (30, 2, 35, 45),
    ]
    assert plan.end_s >= 45 and plan.most_users == 10


def test_run_seconds_count_variants_and_repeats(read):
    scenario = read(sets=("repeats=3", "ramp=1s", "warm_up=2s", "measure=7s"))
    assert scenario.run_seconds() == 2 * 3 * scenario.plan().end_s >= 60


@pytest.mark.parametrize(
    ("overrides", "arrivals"),
    [
        ((), Arrivals()),
        (("think_time={mean: 500ms}",), Arrivals("closed", think_ms=500, think="exponential")),
        (("think_time={mean: 2s, kind: constant}",), Arrivals("closed", think_ms=2000, think="constant")),
        (("arrivals={kind: fixed, rate: 100}",), Arrivals("fixed", rate=100)),
        (("arrivals={kind: poisson, rate: 0.5}",), Arrivals("poisson", rate=0.5)),
    ],
)
def test_arrivals(read, overrides, arrivals):
    assert read(sets=overrides).plan().arrivals == arrivals


def test_a_variant_runs_with_its_own_or_the_scenario_s(read):
    scenario = read(sets=("buffer_pool=10 %", f"variants.0.device={{wal: {DATA}}}"))
    own, bare = scenario.variants
    assert scenario.pool_of(own) == PoolSize(size_bytes=8 * 2**20)
    assert scenario.pool_of(bare) == PoolSize(share=0.1)
    assert {name: model.spindles for name, model in scenario.devices_of(own).items()} == {"wal": 2}
    assert scenario.devices_of(bare) is None


def test_a_variant_without_devices_has_those_of_the_scenario(read):
    scenario = read("    device: bare\n", "")
    assert set(scenario.devices_of(scenario.variants[1])) == {"data"}


def test_without_any_device_it_is_the_real_one(read):
    scenario = read(sets=("device=null",))
    assert [scenario.devices_of(variant) for variant in scenario.variants] == [None, None]
    assert [scenario.pool_of(variant) is None for variant in scenario.variants] == [False, True]


def test_a_scenario_survives_its_own_record(read, path):
    """What the manifest keeps of a scenario can be run again."""
    scenario = read(sets=("measure=90500ms", "variants.1.buffer_pool=12.5 %", "think_time={mean: 20ms}"))
    path.write_text(json.dumps(scenario.model_dump(mode="json")))
    assert read_scenario(str(path)) == scenario


@pytest.mark.parametrize("name", shipped())
def test_shipped_scenarios_are_right(name):
    scenario = read_scenario(name)
    assert scenario.name == name
    assert all((scenario.title, scenario.answers, scenario.needs, scenario.takes))
    assert scenario.answers.endswith("?"), "it answers a question"
    assert scenario.repeats * len(scenario.variants) >= 1 and scenario.run_seconds() > 0


def test_the_first_scenarios_are_there():
    assert {"buffer-pool", "demo", "user-ramp"} <= set(shipped())
    assert all((SHIPPED / f"{name}.yaml").is_file() for name in shipped())
    assert read_scenario("user-ramp").users == [1, 10, 20, 50, 100]
    shares = [variant.buffer_pool.share for variant in read_scenario("buffer-pool").variants]
    assert len(shares) >= 4 and min(shares) <= 0.05 and max(shares) >= 1
    assert any(variant.device == "bare" for variant in read_scenario("demo").variants)
