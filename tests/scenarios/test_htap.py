"""Users and streams of queries at once on a small database: what the record keeps, and what the report says of both."""

import io
from dataclasses import replace

import pytest
from rich.console import Console
from support.embedded_servers import copied
from support.findings import facts_of
from support.pages import table, write_report
from support.steps import changed_step

from stallmark.analysis.conclusions import conclusions
from stallmark.analysis.experiment import summarise
from stallmark.analysis.finding import ExperimentKind
from stallmark.engines.postgres.embedded_engine import EmbeddedEngine
from stallmark.experiment.progress import Show
from stallmark.experiment.runner import Runner
from stallmark.record.reader import LoadRecord, find_records
from stallmark.scenarios.read import read_scenario
from stallmark.transactions import find_workload

SMALL = (
    "loads={brokerage: {workload: brokerage, scale: {customers: 1000, days: 0.1}, users: 4, think_time: {mean: 50ms}}, "
    "reports: {workload: warehouse, scale: {factor: 0.01}, streams: 2}}",
    "emulated_array=null", "buffer_pool=null", "reset=continue", "start_cache=as it is", "ramp=0s", "warm_up=1s",
    "measure=2s", "variants=[{name: alone, without: [reports]}, {name: two}]",
)  # fmt: skip


@pytest.fixture(scope="module")
def finished(template, tmp_path_factory):
    scenario = read_scenario("htap", SMALL)
    out = tmp_path_factory.mktemp("htap")
    with copied(template) as server:
        runner = Runner(
            scenario, EmbeddedEngine(server, scenario.contents.name), out / "runs", Show(Console(file=io.StringIO()))
        )
        return runner.run(), find_records([runner.folder]), out


def test_both_are_driven_and_the_data_of_both_hold(finished):
    ended, [alone, two], _ = finished
    assert ended.incomplete_because is None and ended.conditions_hold
    assert alone.table("queries").num_rows == 0 and [step.streams for step in alone.manifest.steps] == [0]
    rows = two.table("queries").to_pylist()
    assert {row["stream"] for row in rows} == {1, 2} and {(row["phase"], row["load"]) for row in rows} == {
        ("concurrent", "reports")
    }
    assert not any(row["error"] for row in rows)
    whole = [row["query"] for row in rows if row["stream"] == 1][:22]
    assert len(set(whole)) == len(whole)
    names = {condition.name for condition in two.manifest.conditions}
    assert {
        "warehouse: no refresh set is half done",
        "brokerage: tiers have the customers and accounts they should",
    } <= names
    parts = find_workload("brokerage+warehouse").parts
    assert len(names) == sum(not one.fresh_only for part in parts for one in part.conditions)


def test_their_figures_are_apart(finished):
    _, records, _ = finished
    experiment = summarise([LoadRecord(record, "brokerage") for record in records])
    alone, two = experiment.steps
    assert alone.streams is None and alone.storage.reads_per_transaction is not None
    assert two.storage.reads_per_transaction is None  # nobody can tell whose they were
    beside = two.streams
    measured = [row for row in records[1].table("queries").to_pylist() if 1 <= row["started_s"] + row["seconds"] < 3]
    assert beside.streams == 2 and beside.failed == 0
    assert beside.done == len(measured) == sum(query.done for query in beside.queries)
    assert beside.per_hour == pytest.approx(beside.done / 2 * 3600)
    assert two.throughput.tps > 0 and alone.throughput.tps > 0
    # So short a run fails gates of the brokerage, on a machine with other work: neither is looked at here.
    sound = {"invalid": [], "driver_bound": [], "foreign_cpu_share": None, "foreign_io_share": None}
    runs = [
        replace(run, steps=[changed_step(step, **sound) for step in run.steps], conditions=[], growth_share=None)
        for run in experiment.runs
    ]
    [told] = facts_of(conclusions("variant", runs), ExperimentKind.STREAMS)
    assert (told["streams"], told["users"]) == (2, 4) and told["queries_per_h"] == beside.per_hour
    assert told["alone_per_s"] == alone.result_tps


def test_people_see_both(finished):
    _, records, out = finished
    experiment = summarise([LoadRecord(record, "brokerage") for record in records])
    page = write_report(experiment, out / "report.html").read_text()
    assert "Concurrent streams of queries" in page and "queries per hour" in page
    shown = io.StringIO()
    Console(file=shown, width=120).print(table(experiment))
    assert "queries" in shown.getvalue()
