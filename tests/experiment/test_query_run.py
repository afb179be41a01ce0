"""Runs of queries on a small warehouse: power, throughput and each, their records, and what a killed run left."""

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from support.kept_databases import kept_database

from stallmark.analysis.experiment import ExperimentSummary, summarise
from stallmark.driver.query_streams import Query
from stallmark.engines.base import Engine
from stallmark.errors import StallmarkError
from stallmark.experiment.any_run import RunOrder
from stallmark.experiment.manifest import Place, PreparedStorage
from stallmark.experiment.progress import Show
from stallmark.experiment.runner import ExperimentEnd, Runner
from stallmark.experiment.runs import QueryRun
from stallmark.loaders import loader_for
from stallmark.record.reader import Record, find_records
from stallmark.scenarios.model import QueryScenario
from stallmark.transactions import find_workload
from stallmark.transactions.warehouse import order
from stallmark.transactions.warehouse.refresh import Refresh

FACTOR = 0.01
SCENARIO: dict[str, Any] = {
    "name": "small", "title": "Small", "answers": "Does it work?", "needs": "",
    "workload": {"name": "warehouse", "scale": {"factor": FACTOR}}, "reset": "continue", "variants": [{"name": "one"}],
}  # fmt: skip
ALL = [f"Q{number}" for number in range(1, 23)]


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    scale = loader_for("warehouse").scale({"factor": FACTOR})
    with kept_database(None, find_workload("warehouse"), scale, 1) as engine:
        yield engine


Run = Callable[..., tuple[ExperimentEnd, list[Record]]]


@pytest.fixture
def run(engine: Engine, tmp_path: Path) -> Run:
    def run_(queries: dict[str, Any], **changes: Any) -> tuple[ExperimentEnd, list[Record]]:
        scenario = QueryScenario.model_validate(SCENARIO | {"queries": queries} | changes)
        runner = Runner(scenario, engine, tmp_path / "runs", Show(Console(file=io.StringIO())))
        finished = runner.run()
        return finished, find_records([runner.folder])

    return run_


def names(record: Record, **where: Any) -> list[str]:
    rows = record.table("queries").sort_by("position").to_pylist()
    return [row["query"] for row in rows if all(row[key] == value for key, value in where.items())]


def test_a_run_of_both(run: Run, engine: Engine):
    before = Refresh(engine, FACTOR).state().set
    finished, records = run({"run": "both"}, variants=[{"name": "one", "buffer_pool": "16MiB"}])
    assert finished == ExperimentEnd(None, conditions_hold=True)
    [record] = records
    assert names(record, phase="power") == ["RF1", *(f"Q{number}" for number in order(0)), "RF2"]
    for stream in (1, 2):
        assert names(record, phase="throughput", stream=stream) == [f"Q{number}" for number in order(stream)]
    assert names(record, phase="throughput", stream=3) == ["RF1", "RF2"] * 2
    rows = record.table("queries").to_pylist()
    assert not [row for row in rows if row["error_class"]]
    for row in rows:
        if row["query"] in ALL:
            assert row["logical_reads"] > 0 and row["spill_bytes"] >= 0 and row["actual_dop"] >= 1
            assert (record.folder / "plans" / f"q{int(row['query'][1:]):02d}-{row['plan_hash']}.json").is_file()
    assert Refresh(engine, FACTOR).state().set == before + 3 and Refresh(engine, FACTOR).pending() is None
    assert [step.phase for step in record.manifest.steps] == ["power", "throughput"]
    found: ExperimentSummary = summarise(records)
    figures = found.runs[0].queries.figures  # type: ignore[union-attr]
    assert figures.power and figures.throughput and figures.composite
    assert [condition.holds for condition in record.manifest.conditions].count(True) > 5
    server_read = sum(row["read_bytes"] or 0 for row in rows)
    assert server_read > 0, "a pool of 16 MiB does not hold the data"


def test_each_query_by_itself_at_every_degree_of_parallelism(run: Run, engine: Engine, monkeypatch):
    monkeypatch.setattr(type(engine), "cores", lambda self: 3)
    before = Refresh(engine, FACTOR).state()
    finished, [record] = run({"run": "each", "only": [6, 1], "dop": [1, "all"]})
    assert finished.incomplete_because is None
    rows = record.table("queries").sort_by("position").to_pylist()
    assert [(row["query"], row["dop"]) for row in rows] == [("Q6", 1), ("Q1", 1), ("Q6", 3), ("Q1", 3)]
    assert [row["actual_dop"] for row in rows[:2]] == [1, 1]
    assert record.manifest.queries.dops == (1, 3)
    assert Refresh(engine, FACTOR).state() == before, "nothing is refreshed"


def test_what_a_killed_run_left_half_refreshed_is_put_right_and_said(run: Run, engine: Engine):
    refresh = Refresh(engine, FACTOR)
    refresh.insert()
    assert refresh.pending()
    finished, [record] = run({"run": "each", "only": [6]})
    assert finished == ExperimentEnd(None, conditions_hold=True) and refresh.pending() is None
    assert [note for note in record.manifest.notes if "The old ones were deleted before this run began" in note]


def test_too_few_refresh_sets_are_refused_before_anything_is_timed(run: Run, engine: Engine, monkeypatch, tmp_path):
    done = Refresh(engine, FACTOR).state().set
    monkeypatch.setattr("stallmark.schema.warehouse.most_sets", lambda factor: done + 5)
    with pytest.raises(StallmarkError, match=r"needs 6 refresh sets, and 5 are left"):
        run({"run": "throughput", "streams": 3}, variants=[{"name": "a"}, {"name": "b"}])
    assert not list((tmp_path / "runs").glob("*/*/manifest.json"))


def test_the_seed_decides_what_is_put_into_queries(engine: Engine, tmp_path: Path):
    def texts(seed: int) -> list[str]:
        workload = SCENARIO["workload"] | {"seed": seed}
        scenario = QueryScenario.model_validate(SCENARIO | {"queries": {"run": "power"}, "workload": workload})
        order = RunOrder(
            scenario.variants[0], folder=tmp_path, place=Place("e", 1, 1, 1), title="", loaded=None,
            original_pool_bytes=None, check=lambda: None, notes=[], storage=None, prepared=PreparedStorage(),
            opened=lambda: None,
            show=Show(Console(file=io.StringIO())),
        )  # fmt: skip
        made = QueryRun(scenario, engine, order)
        [(_, steps)] = made._streams("power")
        return [step.text for step in steps if isinstance(step, Query)]

    assert texts(1) == texts(1) != texts(2) and len(texts(2)) == 22
