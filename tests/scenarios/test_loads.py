"""A scenario of several loads: what may stand in it, and the steps and data that it asks for."""

import pytest

from stallmark.errors import StallmarkError
from stallmark.experiment.work import load_specs, search_plan, sessions, work_of_loads
from stallmark.scenarios.load import RawLoad, StreamsLoad, UsersLoad
from stallmark.scenarios.model import LoadsScenario
from stallmark.scenarios.read import read_any_scenario

TEXT = """
name: three
loads:
  bank: {workload: bank, scale: {branches: 3}, users: [4, 8]}
  mail: {workload: mail, scale: {mailboxes: 20}, users: 5, arrivals: {kind: poisson, rate: 7}, slo: mail}
  reports: {workload: warehouse, scale: {factor: 0.01}, streams: 2}
  scan: {raw: scan}
warm_up: 5s
measure: 10s
slo: oltp
variants:
  - {name: all}
  - {name: few, without: [reports, scan]}
"""


@pytest.fixture
def read(tmp_path):
    def from_text(*overrides: str, without: tuple[str, ...] = (), text: str = TEXT) -> LoadsScenario:
        lines = [line for line in text.splitlines() if not any(part in line for part in without)]
        path = tmp_path / "three.yaml"
        path.write_text("\n".join(lines))
        scenario = read_any_scenario(str(path), overrides)
        assert isinstance(scenario, LoadsScenario)
        return scenario

    return from_text


def test_a_load_is_of_the_kind_that_its_keys_say(read):
    kinds = [type(load) for load in read().loads.values()]
    assert kinds == [UsersLoad, UsersLoad, StreamsLoad, RawLoad]


def test_a_step_has_a_number_of_each_load(read):
    scenario = read()
    every, few = ([dict(step.counts) for step in scenario.steps_of(one)] for one in scenario.variants)
    assert every == [
        {"bank": 4, "mail": 5, "reports": 2, "scan": 1}, {"bank": 8, "mail": 5, "reports": 2, "scan": 1},
    ]  # fmt: skip
    assert few == [{"bank": 4, "mail": 5}, {"bank": 8, "mail": 5}]
    timeline = scenario.timeline(scenario.variants[0])
    assert [(step.users, step.begin_s, step.measure_s, step.end_s) for step in timeline.steps] == [
        (9, 0, 5, 15), (13, 15, 20, 30),
    ]  # fmt: skip
    assert len({step.name for step in timeline.steps}) == 2


def test_loads_run_alone_before_they_run_together(read):
    scenario = read("alone=true", "loads.bank.users=4")
    steps = scenario.steps_of(scenario.variants[0])
    assert [step.alone for step in steps] == ["bank", "mail", "reports", "scan", None]
    assert [dict(step.counts) for step in steps][:2] == [{"bank": 4}, {"mail": 5}]
    only = read("alone=only", "loads.bank.users=4")
    assert [step.alone for step in only.steps_of(only.variants[1])] == ["bank", "mail"]


def test_cells_are_copies_on_data_of_their_own(read):
    scenario = read("cells=[1, 3]", "loads.bank.users=4")
    variant = scenario.variants[0]
    assert [(step.cells, dict(step.counts)) for step in scenario.steps_of(variant)] == [
        (1, {"bank": 4, "mail": 5, "reports": 2, "scan": 1}), (3, {"bank": 12, "mail": 15, "reports": 6, "scan": 3}),
    ]  # fmt: skip
    specs = load_specs(scenario, variant)
    assert [(one.name, one.cell, one.cells, one.users) for one in specs] == [
        ("bank", 1, 3, (4, 4)), ("bank", 2, 3, (0, 4)), ("bank", 3, 3, (0, 4)),
        ("mail", 1, 3, (5, 5)), ("mail", 2, 3, (0, 5)), ("mail", 3, 3, (0, 5)),
    ]  # fmt: skip
    assert scenario.contents.scale["branches"] == 9 and scenario.contents.scale["mailboxes"] == 60
    assert scenario.contents.scale["factor"] == 0.01
    assert {one.scale["branches"] for one in specs if one.name == "bank"} == {9}


def test_a_load_of_a_size_is_of_one_cell(read):
    sized = "loads.bank={workload: brokerage, scale: {size: 2GB}, users: 4}"
    scenario = read(sized, "cells=[1, 3]")
    scale = scenario.contents.scale
    assert (scale["customers"], scale["days"], scale["mailboxes"]) == (3_000, 42.4, 60) and "size" not in scale
    again = type(scenario).model_validate(scenario.model_dump(mode="json"))  # as a record keeps it
    assert again.contents == scenario.contents


def test_the_database_holds_the_data_of_all(read):
    contents = read().contents
    assert contents.name == "bank+mail+warehouse"
    assert (contents.scale["branches"], contents.scale["mailboxes"], contents.scale["factor"]) == (3, 20, 0.01)


def test_a_load_has_its_own_users_pace_and_sessions(read):
    scenario = read()
    bank, mail = load_specs(scenario, scenario.variants[0], repeat=2)
    assert (bank.users, mail.users, mail.arrivals.rate) == ((4, 8), (5, 5), 7)
    assert bank.repeat == 2
    users, background, streams = sessions(scenario, scenario.variants[0], 1)
    assert (users, streams) == (13, 2) and background >= 1


def test_a_step_is_no_closed_loop_where_one_of_its_loads_is_open(read):
    scenario = read("alone=true", "loads.bank.users=4")
    steps = work_of_loads(scenario, scenario.variants[0], "postgresql").steps
    assert [(step.alone, step.arrivals == "closed") for step in steps] == [
        ("bank", True), ("mail", False), ("reports", True), ("scan", True), (None, False),
    ]  # fmt: skip


def test_what_was_read_is_read_again_from_a_record(read):
    scenario = read("cells=[1, 2]", "loads.bank.users=4")
    assert LoadsScenario.model_validate(scenario.model_dump(mode="json")) == scenario


def test_queries_at_a_rate_leave_the_loop_of_users_as_it_is(read):
    scenario = read("alone=true", "loads.bank.users=4", "loads.reports.arrivals={kind: poisson, rate: 0.05}")
    work = work_of_loads(scenario, scenario.variants[0], "postgresql")
    assert {load.name: (load.arrivals, load.rate) for load in work.loads} == {
        "bank": ("closed", None), "mail": ("poisson", 7), "reports": ("poisson", 0.05), "scan": ("closed", None),
    }  # fmt: skip
    assert [step.arrivals == "closed" for step in work.steps] == [True, False, True, True, False]


def test_a_search_of_the_load_multiplies_the_rates_of_queries(read):
    search = "search={of: load, from: 0.5, to: 4}"
    scenario = read(search, "loads.bank.users=4", "loads.reports.arrivals={kind: poisson, rate: 0.05}")
    every, few = (search_plan(scenario, variant) for variant in scenario.variants)
    assert every.rates_at(2) == {"mail": 14, "reports": 0.1} and few.rates_at(2) == {"mail": 14}


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (("loads.reports.arrivals={kind: poisson}",), "arrivals.rate is missing"),
        (("loads.reports.arrivals={kind: poisson, rate: 0}",), "must be more than 0"),
        (("loads.bank.workload=bnak",), "bnak"),
        (("loads.bank.scale={mailboxes: 2}",), "mailboxes"),
        (("loads.bank.users=0",), "at least 1"),
        (("loads.bank.users=[1, 2]", "loads.mail.users=[1, 2, 3]"), "number for each step"),
        (("loads.bank.think_tim={mean: 1s}",), "did you mean think_time"),
        (("loads={scan: {raw: scan}}", "variants=[{name: a}]"), "no load has users"),
        (("loads.other={workload: bank, scale: {branches: 4}, users: 1}",), "two scales of bank"),
        (("variants=[{name: a, without: [x]}]",), "no load"),
        (("variants=[{name: a, without: [bank, mail]}]",), "leave one"),
        (("cells=[2, 1]",), "must rise"),
        (("cells=[1, 2]", "alone=true"), "two experiments"),
        (("alone=sometimes",), "only"),
        (("loads.bank.thresholds=['mail.p95 < 1ms']",), "no transaction mail"),
    ],
)
def test_a_mistake_is_said_in_a_sentence(read, overrides, said):
    with pytest.raises(StallmarkError, match=said) as found:
        read(*overrides)
    assert "\n" not in str(found.value) and "validation error" not in str(found.value)


def test_a_load_named_twice_is_refused(read):
    text = TEXT.replace("  scan: {raw: scan}", "  scan: {raw: scan}\n  bank: {workload: bank, users: 1}")
    with pytest.raises(StallmarkError, match="bank is there twice"):
        read(text=text)


def test_a_scenario_of_one_load_leaves_none_out(tmp_path):
    path = tmp_path / "one.yaml"
    path.write_text(
        "name: one\nworkload: {name: bank, scale: {branches: 1}}\nusers: 1\nmeasure: 5s\n"
        "variants: [{name: a, without: [bank]}]"
    )
    with pytest.raises(StallmarkError, match="without"):
        read_any_scenario(str(path))


def test_workloads_may_have_a_database_each(read):
    several = read(text=TEXT + "databases: {bank: {recovery: simple}, mail: {}, warehouse: {}}\n")
    assert several.contents.name == "bank,mail,warehouse" and several.contents.scale == read().contents.scale
    assert several.designs().keys() == {"bank"} and several.designs()["bank"].settings.recovery == "simple"
    assert several.contents.part("bank").scale == {"branches": 3}
    assert read().contents.name == "bank+mail+warehouse" and read().designs() == {}


@pytest.mark.parametrize(
    ("databases", "said"),
    [
        ("{bank: {}, mail: {}}", "databases leaves out warehouse"),
        ("{bank: {}, mail: {}, warehouse: {}, brokerage: {}}", "databases names brokerage, which no load has"),
        ("{bank: {}, mail: {}, warehouse: {}, post: {}}", "databases"),
        ("{bank: {}}", "databases"),
        ("{bank: {}, mail: {tables: [{names: [history], filegroup: a}]}, warehouse: {}}", "history"),
        ("{bank: {}, mail: {}, warehouse: {}}\ndatabase: {recovery: simple}", "database is one for all"),
    ],
)
def test_databases_that_cannot_be_are_refused(read, databases, said):
    with pytest.raises(StallmarkError, match=said):
        read(text=f"{TEXT}databases: {databases}\n")


def test_databases_of_one_workload_are_refused(read):
    text = "\n".join(line for line in TEXT.splitlines() if "mail:" not in line and "reports:" not in line)
    with pytest.raises(StallmarkError, match="the loads have bank alone"):
        read(text=text.replace(", without: [reports, scan]", "") + "\ndatabases: {bank: {}, mail: {}}\n")
