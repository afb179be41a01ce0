"""Every page is rendered from a record of every kind, in every form that it can take."""

import json
import math
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from rich.console import Console
from support import external_files
from support.flash_records import on_array, with_flash
from support.html_page import Page
from support.manifests import changed
from support.pages import render, render_comparison, table, verdicts
from support.synthetic import Brokerage, Truth, make_experiment, make_run
from support.synthetic_queries import make_query_run
from support.tables import put
from support.wording import findings_in, golden

from stallmark.analysis.cautions import CautionKind
from stallmark.analysis.compare.verdicts import compare_runs
from stallmark.analysis.experiment import ExperimentSummary, summarise
from stallmark.analysis.finding import ExperimentKind, Kind
from stallmark.attach.attach import Request, Wanted, attach
from stallmark.errors import StallmarkError
from stallmark.record.reader import Record, find_records
from stallmark.record.schema import TABLES
from stallmark.report.comparison.document import summary_for_a_ticket
from stallmark.report.experiment import experiment_in_json
from stallmark.report.renderers import dumped, in_json

REAL = {"emulated": False, "device": {"name": "sdb", "model": "MSA 2040", "rotational": True}}


def pools(folder: Path) -> None:
    make_experiment(folder)


def ramp(folder: Path) -> None:
    make_experiment(folder, kind="user-ramp", repeats=2)


def _pair(folder: Path, **more) -> list[Path]:
    return [
        make_run(folder / name, Truth(variant=name, sequence=number, tps=300 + 100 * number, **more))
        for number, name in enumerate(("HDD", "SSD"), 1)
    ]


def flash(folder: Path) -> None:
    for run, kind in zip(_pair(folder), ("cache", "tier"), strict=True):
        with_flash(run, kind)


def array(folder: Path) -> None:
    for run in _pair(folder, **REAL):
        on_array(run, dram_bytes=8 << 30, flash_cache_bytes=64 << 30)


def brokerage(folder: Path) -> None:
    _pair(folder, brokerage=Brokerage(late_s=0.3, nominal_rate=9.87))


def cut(folder: Path) -> None:
    _pair(folder, cut_at=20.0)


def cut_in_warm_up(folder: Path) -> None:
    _pair(folder, cut_at=2.0)


def reset_while_measured(folder: Path) -> None:
    _pair(folder, epoch_change_at=20.0)


def nothing_collected(folder: Path) -> None:
    off = ("server_io", "wal", "waits", "database", "checkpoints", "host", "device")
    _pair(folder, off=off)


def sql_server(folder: Path) -> None:
    from support.mssql_records import run

    for number, name in enumerate(("HDD", "SSD"), 1):
        changed(run(folder / name), variant={"name": name}, sequence=number)


def power(folder: Path) -> None:
    for number, name in enumerate(("disks", "flash"), 1):
        make_query_run(folder / name, variant=name, sequence=number)


def each_query(folder: Path) -> None:
    for number, name in enumerate(("disks", "flash"), 1):
        make_query_run(folder / name, variant=name, sequence=number, run="each", dops=(1, 2), only=(1, 6))


def throughput(folder: Path) -> None:
    for number, name in enumerate(("disks", "flash"), 1):
        make_query_run(folder / name, variant=name, sequence=number, run="throughput", streams=2)


def attached(folder: Path) -> None:
    for run in _pair(folder):
        ends, latency = external_files.disk_of(run, around_s=80)
        attach([Record(run)], Wanted(external_files.iostat(folder / "iostat.txt", ends, latency)), Request(zone="UTC"))


def concurrent_streams(folder: Path) -> None:
    alone, beside = _pair(folder)
    changed(alone, concurrent_streams={"streams": 0})
    changed(beside, concurrent_streams={"streams": 2, "timeout_s": 60.0})
    measured = Record(beside).manifest.steps[0].measure_s
    rows = [{"stream": n % 2, "query": f"Q{n}", "started_s": measured + n, "seconds": 0.5 * n} for n in range(1, 7)]
    _table(
        beside,
        "queries",
        [dict.fromkeys(TABLES["queries"].names) | {"phase": "beside", "position": 1} | row for row in rows],
    )


def maintenance(folder: Path) -> None:
    _, beside = _pair(folder)
    measured = Record(beside).manifest.steps[0].measure_s
    times = ({"started_s": measured - 5.0, "seconds": 9.0}, {"started_s": measured + 5.0, "seconds": 12.0})
    rows = [{"kind": "backup", "finished": True, "error": None} | one for one in times]
    _table(beside, "maintenance", rows)


def thresholds(folder: Path) -> None:
    for run in _pair(folder):
        changed(run, scenario=Record(run).manifest.scenario.model_dump() | {"thresholds": ["tps > 450", "p95 < 10s"]})


def load_machines(folder: Path) -> None:
    for run in _pair(folder):
        machines = [{"number": n, "executors": 2, "clock_within_ms": 0.5 * n, "cores": 8} for n in (1, 2)]
        changed(run, load_machines=machines)


def _table(run: Path, name: str, rows: list[dict]) -> None:
    schema = TABLES.get(name)
    put(run, name, pa.Table.from_pylist(rows, schema=schema))


KINDS = (
    pools, ramp, flash, array, brokerage, cut, cut_in_warm_up, reset_while_measured, nothing_collected, sql_server,
    power, each_query, throughput, attached, concurrent_streams, maintenance, thresholds, load_machines,
)  # fmt: skip
SAID = {
    attached: ("Measured elsewhere", "iostat"),
    concurrent_streams: ("Concurrent streams of queries", "2 streams of queries did"),
    maintenance: ("a backup ran during",),
    thresholds: ("FAILED", "tps > 450"),
    load_machines: ("Load machine 1", "Load machine 2"),
}
"""Words that only a page of such records holds."""
GOLDEN_FACTS: dict[Kind, list[set[str]]] = {}
for _, worded, _ in golden():
    GOLDEN_FACTS.setdefault(worded.kind, []).append(set(worded.facts))
WRITTEN_BY_OTHERS = {"bank_log", "r_await", "w_await"}  # a file of the database, and columns of iostat
NAMES = re.compile(r"\b[a-z]+(?:_[a-z0-9]+)+\b")
NOT_COMPARED = (ramp, cut, cut_in_warm_up, power, each_query, throughput)


@pytest.mark.parametrize("make", KINDS, ids=lambda make: make.__name__)
def test_every_page_is_rendered_from_a_record_of_every_kind(make, tmp_path):
    make(tmp_path)
    summary = summarise(find_records([tmp_path]))
    dumped(experiment_in_json(summary))
    html = render(summary)
    assert html.rstrip().endswith("</html>") and len(html.encode()) < 1_000_000
    text = Page(html).text
    assert names_of_ours(text, summary) == set()
    for kind, words in SAID.items():
        assert all(one in text for one in words) is (kind is make), kind
    for finding in findings_in(summary):
        assert set(finding.facts) in GOLDEN_FACTS.get(finding.kind, [set(finding.facts)]), finding
    console = Console(width=80, record=True, file=(tmp_path / "terminal").open("w"))
    console.print(table(summary))
    said = console.export_text()
    assert said.strip() and names_of_ours(said, summary) == set()
    if make in NOT_COMPARED:
        with pytest.raises(StallmarkError):
            compare_runs(summary.runs)
        return
    found = compare_runs(summary.runs)
    html = render_comparison(summary, found)
    assert html.rstrip().endswith("</html>") and ('id="array"' in html) is (make in (flash, array))
    ticket = summary_for_a_ticket(found)
    assert all(pair.b in ticket for pair in found.pairs)
    console.print(verdicts(found))
    assert names_of_ours("\n".join((Page(html).text, ticket, console.export_text())), summary) == set()


def names_of_ours(text: str, summary: ExperimentSummary) -> set[str]:
    """Return the identifiers in a text that no reader knows: neither a server's setting, nor a column of the record."""
    settings = {name for run in summary.runs for name in run.manifest.server.settings}
    columns = {name for schema in TABLES.values() for name in schema.names}
    return set(NAMES.findall(text)) - settings - columns - WRITTEN_BY_OTHERS


def test_two_experiments_in_one_report_have_a_title_and_a_question_each(tmp_path):
    asked = {"one": "Which disk?", "two": "How much memory?"}
    for number, (name, title) in enumerate(asked.items()):
        scenario = {"name": name, "title": title, "answers": f"The question of {name}."}
        for repeat in range(1, number + 2):
            folder = make_run(tmp_path / f"{name}{repeat}", Truth(variant="small", sequence=repeat, seed=repeat))
            changed(folder, scenario=scenario, experiment=name, repeat=repeat)
    summary = summarise(find_records([tmp_path]))
    assert [(one.title, one.variants) for one in summary.questions] == [
        ("Which disk?", ["small (one)"]),
        ("How much memory?", ["small (two)"]),
    ]
    assert not any(finding.kind == ExperimentKind.ONE_RUN_EACH for finding in summary.findings)
    [few] = [one for one in summary.cautions if one.kind == CautionKind.FEW_RUNS]
    assert few.facts == {"fewest": 1, "most": 2}
    html = render(summary)
    assert all(title in html and f"The question of {name}." in html for name, title in asked.items())


def test_results_that_are_different_things_are_refused(tmp_path):
    make_run(tmp_path / "bank", Truth(variant="a", sequence=1))
    make_run(tmp_path / "brokerage", Truth(variant="b", sequence=2, brokerage=Brokerage()))
    with pytest.raises(StallmarkError, match="make a report of each"):
        summarise(find_records([tmp_path]))


def test_json_holds_no_number_that_is_none() -> None:
    values = {"read_ms": float("nan"), "share": np.float64("inf"), "facts": [{"r": -math.inf}, 1.5, np.int64(3)]}
    assert json.loads(dumped(in_json(values))) == {"read_ms": None, "share": None, "facts": [{"r": None}, 1.5, 3]}
    with pytest.raises(ValueError, match="not JSON compliant"):
        dumped({"read_ms": math.nan})
