"""Scenarios of queries: what they may ask for, and what they are told when they may not."""

import json

import pytest

from stallmark.engines.postgres.embedded_engine import EmbeddedEngine
from stallmark.engines.postgres.engine import PostgresEngine
from stallmark.errors import StallmarkError
from stallmark.experiment.preflight import _refuse_more_users_than_sessions, refuse_what_cannot_be
from stallmark.experiment.work import as_planned
from stallmark.machines.command import Machines
from stallmark.scenarios.model import QueryScenario
from stallmark.scenarios.read import read_scenario

RIGHT = """\
name: few
title: A few queries
answers: Is it read?
needs: Nothing.
order: alternating
workload: {name: warehouse, scale: {factor: 0.01}}
queries: {run: power}
reset: continue
variants: [{name: one}]
"""


@pytest.fixture
def read(tmp_path):
    def read_with(*sets: str) -> QueryScenario:
        path = tmp_path / "few.yaml"
        path.write_text(RIGHT)
        return read_scenario(str(path), sets)

    return read_with


@pytest.fixture
def nowhere(monkeypatch) -> PostgresEngine:
    """An engine whose server is not asked."""
    monkeypatch.setattr(PostgresEngine, "cores", lambda self: 4)
    monkeypatch.setattr(PostgresEngine, "most_users", lambda self: 60)
    monkeypatch.setattr(PostgresEngine, "users_limited_by", lambda self: "its max_connections")
    return PostgresEngine("postgresql://nobody@127.0.0.1:1/nowhere")


def test_what_is_not_said(read):
    scenario = read()
    assert scenario.queries.timeout == 120 and scenario.streams == 2
    assert scenario.queries.phases == ("power",) and scenario.queries.refreshes
    assert not read("queries.refresh=false").queries.refreshes


@pytest.mark.parametrize(
    ("run", "phases", "refreshes"),
    [("throughput", ("throughput",), True), ("both", ("power", "throughput"), True), ("each", ("each",), False)],
)
def test_the_phases_of_a_run(read, run, phases, refreshes):
    queries = read(f"queries.run={run}").queries
    assert queries.phases == phases and queries.refreshes == refreshes


def test_streams_go_by_the_scale_unless_they_are_said(read):
    assert read("queries.run=both", "workload.scale.factor=100").streams == 5
    assert read("queries.run=both", "queries.streams=40").streams == 40


@pytest.mark.parametrize(
    ("sets", "sentence"),
    [
        (["queries.run=fast"], "queries.run must be power, throughput, both or each, not 'fast'."),
        (["queries.run=each", "queries.only=[1, 23]"], "queries.only.1 must be at most 22, not 23."),
        (["queries.run=each", "queries.only=[1, 1]"], "queries.only: 1 is there twice: write it once."),
        (["queries.run=each", "queries.only=[]"], "queries.only must have at least one item"),
        (["queries.run=each", "queries.dop=[0]"], "queries.dop.0: write a whole number from 1, or all"),
        (["queries.run=each", "queries.dop=[some]"], "queries.dop.0: write a whole number from 1, or all"),
        (["queries.run=both", "queries.streams=41"], "queries.streams must be at most 40, not 41."),
        (["queries.only=[1]"], "queries: only belongs to `run: each`: remove it, or write that."),
        (["queries.dop=[1]"], "queries: dop belongs to `run: each`"),
        (["queries.streams=2"], "queries: streams belong to `run: throughput` or `run: both`"),
        (["queries.run=each", "queries.refresh=true"], "queries: refresh belongs to a power or throughput run"),
        (["queries.refresh=maybe"], "queries.refresh must be true or false, not 'maybe'."),
        (["queries.timeout=30"], "queries.timeout: 30 has no unit: write 30s or 30min."),
        (["queries.timout=30s"], "unknown key queries.timout: did you mean timeout?"),
        (["queries=3"], "queries must be written as {run: …"),
        (["users=3"], "users belongs to users who execute transactions, and `queries` has streams in their place"),
        (["measure=3s"], "measure belongs to users who execute transactions"),
        (["workload={name: bank, scale: {branches: 1}}"], "bank has no queries for streams: write users"),
        (["workload.scale.factor=2"], "scale factor is 0.01, 0.1, 1, 10"),
        (["workload.mix={q1: 2}"], "workload.mix: users start no transactions of warehouse"),
    ],
)
def test_what_cannot_be_is_one_sentence(read, sets, sentence):
    with pytest.raises(StallmarkError) as refused:
        read(*sets)
    assert sentence in str(refused.value) and str(refused.value).count("\n") == 0


def test_users_have_no_transactions_in_a_warehouse():
    with pytest.raises(StallmarkError, match="no transactions that users could execute: write `queries:"):
        read_scenario("user-ramp", ["workload={name: warehouse, scale: {factor: 1}}"])


def test_a_scenario_survives_its_own_record(read, tmp_path):
    scenario = read("queries.run=each", "queries.dop=[1, all]", "queries.only=[6]", "queries.timeout=90500ms")
    path = tmp_path / "kept.yaml"
    path.write_text(json.dumps(scenario.model_dump(mode="json")))
    assert read_scenario(str(path)) == scenario


def test_the_shipped_one_has_the_same_pools_on_slow_and_on_fast_devices():
    scenario = read_scenario("power-memory-storage")
    assert isinstance(scenario, QueryScenario) and scenario.queries.phases == ("power",)
    variants = scenario.variants
    pools = [(str(scenario.pool_of(variant)), scenario.emulated_arrays_of(variant)["data"].rpm) for variant in variants]
    on_disks = [pool for pool, rpm in pools if rpm]
    assert on_disks == [pool for pool, rpm in pools if not rpm] and len(on_disks) == 2
    assert pools[0][1], "the baseline is memory that is short, on disks"


def test_more_parallel_than_there_are_cores_is_refused(read, nowhere, tmp_path):
    refuse_what_cannot_be(read("queries.run=each", "queries.dop=[1, 4, all]"), nowhere, tmp_path)
    with pytest.raises(StallmarkError, match="few asks for `dop: 5`, but the server has 4 cores"):
        refuse_what_cannot_be(read("queries.run=each", "queries.dop=[1, 5]"), nowhere, tmp_path)


def test_all_cores_of_a_server_that_does_not_say_how_many_are_refused(read, nowhere, tmp_path, monkeypatch):
    monkeypatch.setattr(PostgresEngine, "cores", lambda self: None)
    with pytest.raises(StallmarkError, match="does not report its cores: write the number"):
        refuse_what_cannot_be(read("queries.run=each", "queries.dop=[all]"), nowhere, tmp_path)
    refuse_what_cannot_be(read("queries.run=each", "queries.dop=[64]"), nowhere, tmp_path)


def test_more_streams_than_sessions_are_refused(read, nowhere, tmp_path, monkeypatch):
    monkeypatch.setattr(PostgresEngine, "most_users", lambda self: 6)
    refuse_what_cannot_be(read("queries.run=throughput", "queries.streams=4"), nowhere, tmp_path)
    with pytest.raises(StallmarkError, match="asks for 5 streams and one that refreshes, but the server takes 6"):
        refuse_what_cannot_be(read("queries.run=throughput", "queries.streams=5"), nowhere, tmp_path)


def test_there_are_no_load_machines(read, nowhere):
    with pytest.raises(StallmarkError, match="leave out --expect-workers"):
        Machines(2, "*", 5557).refuse(read(), nowhere)


def test_streams_take_sessions_as_users_do(tmp_path):
    path = tmp_path / "both.yaml"
    path.write_text(
        "name: both\nloads:\n  brokerage: {workload: brokerage, scale: {customers: 1000}, users: 4}\n"
        "  reports: {workload: warehouse, scale: {factor: 0.01}, streams: 6}\nmeasure: 5s\nreset: continue\n"
        "variants: [{name: both}, {name: alone, without: [reports]}]\n"
    )
    few = EmbeddedEngine.__new__(EmbeddedEngine)
    few.most_users = lambda: 14  # type: ignore[method-assign]
    _refuse_more_users_than_sessions(read_scenario(str(path)), few, 1, as_planned)  # type: ignore[arg-type]
    with pytest.raises(StallmarkError, match="4 users and 4 sessions of the market emulator and 7 streams of queries"):
        _refuse_more_users_than_sessions(read_scenario(str(path), ["loads.reports.streams=7"]), few, 1, as_planned)  # type: ignore[arg-type]
