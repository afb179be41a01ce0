"""`search:` in a scenario: what it plans, and what is refused."""

import pytest

from stallmark.errors import StallmarkError
from stallmark.experiment.work import load_specs, search_plan, sessions, work_of_loads
from stallmark.quantities import PoolSize
from stallmark.scenarios.model import Scenario
from stallmark.scenarios.read import read_any_scenario, read_scenario
from stallmark.stats.curve_search import MIB, CurveSpec

USERS = ["users=null", "search={of: users, from: 4, to: 100}", "slo=oltp"]
RATE = ["users=20", "search={of: rate, from: 50, to: 800}", "arrivals={kind: poisson}", "slo=oltp"]


def read(*overrides: str, name: str = "user-ramp"):
    return read_any_scenario(name, overrides)


def test_a_search_of_users_plans_its_first_level_and_keeps_time_for_the_others():
    scenario = read(*USERS)
    [variant] = scenario.variants
    [step] = scenario.steps_of(variant)
    assert (step.name, step.counts) == ("4 users", {"brokerage": 4})
    assert scenario.timeline(variant).end_s > 10 * scenario.usual_s(variant) / scenario.search.spec().usual_levels
    assert scenario.usual_s(variant) < scenario.timeline(variant).end_s
    [spec] = load_specs(scenario, variant)
    assert (spec.users, spec.most_users) == ((4,), 100)
    assert sessions(scenario, variant, 1)[0] == 100
    work = work_of_loads(scenario, variant, "postgresql")
    assert work.search and (work.search.of, work.search.low, work.search.high) == ("users", 4, 100)


def test_a_search_of_a_rate_begins_at_its_lowest():
    scenario = read(*RATE)
    [variant] = scenario.variants
    [spec] = load_specs(scenario, variant)
    assert (spec.arrivals.kind, spec.arrivals.rate, spec.users) == ("poisson", 50, (20,))
    plan = search_plan(scenario, variant)
    assert plan and plan.searches_rate and plan.read_ms == 20


def test_limits_on_transactions_are_shares():
    plan = search_plan(s := read(*USERS[:2], "slo={transactions: [p95 < 50ms, trade_order.p99 <= 1s]}"), s.variants[0])
    assert plan and plan.read_ms is None
    assert [(one.transaction, round(one.allowed, 9), one.limit_ms) for one in plan.transactions] == [
        (None, 0.05, 50),
        ("trade_order", 0.01, 1000),
    ]


@pytest.mark.parametrize("overrides", [USERS, RATE], ids=["users", "rate"])
def test_it_is_read_again_from_a_record_as_it_was(overrides):
    scenario = read(*overrides)
    assert Scenario.model_validate(scenario.model_dump(mode="json")) == scenario


def test_one_load_among_several_has_a_search():
    mail = "mail: {workload: mail, scale: {mailboxes: 60}, users: 6}"
    bank = "bank: {workload: bank, scale: {branches: 10}, search: {of: users, from: 2, to: 50}}"
    loads = f"loads={{{mail}, {bank}}}"
    scenario = read(loads, "alone=false", "slo=oltp", name="io-blender-emulated")
    [step] = scenario.steps_of(scenario.variants[0])
    assert step.counts == {"mail": 6, "bank": 2} and step.name == "bank: 2 users"
    with pytest.raises(StallmarkError, match="leave out cells and alone"):
        read(loads, name="io-blender-emulated")
    with pytest.raises(StallmarkError, match="mail a list"):
        read(loads.replace("users: 6", "users: [6, 8]"), "alone=false", name="io-blender-emulated")
    both = loads.replace("users: 6", "search: {of: users, from: 2, to: 50}")
    with pytest.raises(StallmarkError, match="leave one"):
        read(both, "alone=false", name="io-blender-emulated")


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (["users=null"], "users is missing"),
        (["search={of: users, from: 4, to: 100}", "slo=oltp"], "remove one of the two"),
        (USERS[:2], "needs a service level"),
        ([*USERS[:1], "search={of: users, from: 200, to: 100}", "slo=oltp"], "goes upwards"),
        ([*USERS[:1], "search={of: users, from: 0.5, to: 100}", "slo=oltp"], "whole numbers"),
        ([*USERS[:1], "search={of: users, from: 0, to: 100}", "slo=oltp"], "must be more than 0"),
        ([*USERS, "thresholds=[p95 < 1s]"], "slo.transactions"),
        ([*USERS, "arrivals={kind: poisson, rate: 5}"], "closed loop"),
        ([*RATE[:2], "slo=oltp"], "a closed loop has none"),
        ([*RATE, "arrivals={kind: poisson, rate: 5}"], "arrivals.rate fixes it"),
        ([*RATE, "users=[1, 2]"], "write one number"),
        (["arrivals={kind: poisson}"], "arrivals.rate is missing"),
        ([*USERS[:2], "slo={transactions: [tps > 5]}"], "is not a service level of transactions"),
        ([*USERS[:2], "slo={percentile: p99}"], "write a limit"),
        ([*USERS[:2], "slo={transactions: [nothing.p95 < 1s]}"], "has no transaction nothing"),
        ([*USERS, "buffer_pool={curve: auto, from: 2 %, to: 50 %}"], "a search finds a ceiling"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_sentence(overrides, said):
    with pytest.raises(StallmarkError) as refused:
        read(*overrides)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_all_loads_with_a_rate_are_multiplied_together():
    mail = "mail: {workload: mail, scale: {mailboxes: 60}, users: 6, arrivals: {kind: poisson, rate: 40}}"
    bank = "bank: {workload: bank, scale: {branches: 10}, users: 8, arrivals: {kind: poisson, rate: 100}}"
    scan, beside = (
        "scan: {raw: scan}",
        "brokerage: {workload: brokerage, scale: {customers: 2000, days: 0.1}, users: 2}",
    )
    loads = [f"loads={{{mail}, {bank}, {scan}, {beside}}}", "alone=false", "slo=oltp"]
    scenario = read(*loads, "search={of: load, from: 0.5, to: 8}", name="io-blender-emulated")
    variant = scenario.variants[0]
    [step] = scenario.steps_of(variant)
    assert step.name == "0.5 ×" and step.counts == {"mail": 6, "bank": 8, "scan": 1, "brokerage": 2}
    rates = {spec.name: spec.arrivals.rate for spec in load_specs(scenario, variant)}
    assert rates == {"mail": 20, "bank": 50, "brokerage": None}
    plan = search_plan(scenario, variant)
    assert plan and plan.load is None and plan.rates == {"mail": 40, "bank": 100} and plan.read_ms == 20
    work = work_of_loads(scenario, variant, "postgresql")
    assert work.search and (work.search.load, work.search.of) == (None, "load")
    assert {load.name: load.rate for load in work.loads if load.kind == "users"} == {
        "mail": 40,
        "bank": 100,
        "brokerage": None,
    }
    assert sessions(scenario, variant, 1)[0] == 16
    assert type(scenario).model_validate(scenario.model_dump(mode="json")) == scenario
    for wrong, said in [
        ("search={of: users, from: 1, to: 8}", "belongs in a load"),
        ("search={of: load, from: 0.5, to: 8}", "leave out cells and alone"),
    ]:
        with pytest.raises(StallmarkError, match=said):
            read(loads[0], "alone=true", "slo=oltp", wrong, name="io-blender-emulated")
    with pytest.raises(StallmarkError, match="none of variant"):
        closed = loads[0].replace(", arrivals: {kind: poisson, rate: 40}", "")
        closed = closed.replace(", arrivals: {kind: poisson, rate: 100}", "")
        read(closed, *loads[1:], "search={of: load, from: 0.5, to: 8}", name="io-blender-emulated")


# A curve in place of one buffer pool: what it means, and what is refused in one sentence


def test_a_curve_is_of_the_data_and_survives_the_record():
    scenario = read_scenario("memory-curve", ["buffer_pool={curve: auto, from: 2 %, to: 1GiB, sizes: 12}"])
    assert scenario.curve.spec(1000 * MIB) == CurveSpec(20 * MIB, 1024 * MIB, 12, 0.05)
    assert type(scenario).model_validate(scenario.model_dump(mode="json")) == scenario
    assert [scenario.pool_of(variant).share for variant in scenario.sized()] == [0.02, None]


def test_a_size_has_its_own_name_and_pool():
    alone = read_scenario("memory-curve").with_size(96 * MIB)
    assert (alone.name, alone.buffer_pool) == ("96 MiB", PoolSize(size_bytes=96 * MIB))
    beside = read_scenario("memory-curve", ["variants=[{name: disks}, {name: flash, buffer_pool: 5 %}]"])
    assert beside.with_size(96 * MIB).name == "disks, 96 MiB"
    assert [run.variant.name for run in beside.run_order([96 * MIB], ended=True)] == ["disks, 96 MiB", "flash"]


@pytest.mark.parametrize(
    ("name", "sets"),
    [
        ("memory-curve", ["buffer_pool.from=100 %"]),
        ("memory-curve", ["buffer_pool={curve: auto, from: 2GiB, to: 1GiB}"]),
        ("memory-curve", ["buffer_pool.from=3"]),
        ("memory-curve", ["buffer_pool.form=3 %"]),
        ("memory-curve", ["buffer_pool.sizes=4"]),
        ("memory-curve", ["buffer_pool.sizes=25"]),
        ("memory-curve", ["buffer_pool.tolerance=0"]),
        ("memory-curve", ["buffer_pool.tolerance=60 %"]),
        ("memory-curve", ["buffer_pool.curve=by hand"]),
        ("memory-curve", ["order=blocks"]),
        ("memory-curve", ["users=[1, 2]"]),
        ("memory-curve", ["variants=[{name: a}, {name: b}]"]),
        ("memory-curve", ["variants=[{name: a, buffer_pool: 5 %}]"]),
        ("memory-curve", ["buffer_pool={curve: auto, from: 2 %}"]),
        ("power-memory-storage", ["buffer_pool={curve: auto, from: 2 %, to: 50 %}", "variants=[{name: a}]"]),
        ("io-blender", ["buffer_pool={curve: auto, from: 2 %, to: 50 %}", "variants=[{name: a}]"]),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(name, sets):
    with pytest.raises(StallmarkError) as refused:
        read_scenario(name, sets)
    assert str(refused.value).endswith((".", "?")) and "\n" not in str(refused.value)
    assert "buffer_pool" in str(refused.value)
