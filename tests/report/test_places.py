"""The places of data and log, of each side of a comparison and of each variant of an experiment."""

from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console
from support.comparisons import QUIET, made, template, with_manifest
from support.pages import verdicts
from support.synthetic import Truth, make_run

from stallmark.analysis.compare.verdicts import compare_runs
from stallmark.analysis.experiment import summarise
from stallmark.record.manifest.storage import Device, Devices
from stallmark.record.reader import Record
from stallmark.report.comparison.document import summary_for_a_ticket
from stallmark.report.sections.environment import devices

PLACES = {
    "A": Devices(
        data=Device(name="vdb"), wal=Device(name="vdb"), folders={"data": "/mnt/a/db", "wal": "/mnt/a/db/pg_wal"}
    ),
    "B": Devices(data=Device(name="vdb"), wal=Device(name="vdc"), folders={"data": "/mnt/a/new", "wal": "/mnt/b/log"}),
    "none": Devices(),
}
TOLD = {
    "A": ("data on vdb (/mnt/a/db)", "log on the same device (/mnt/a/db/pg_wal)"),
    "B": ("data on vdb (/mnt/a/new)", "log on vdc (/mnt/b/log)"),
}


@pytest.mark.parametrize("known", [True, False])
def test_both_sides_of_a_comparison_say_where_data_and_log_lay(tmp_path, known):
    found = compare_runs(
        [
            with_manifest(run, devices=PLACES[run.steps[0].variant if known else "none"])
            for run in made(template(tmp_path), **QUIET)
        ]
    )
    console = Console(width=4000, file=StringIO(), record=True)
    console.print(verdicts(found))
    for text in (console.export_text(), summary_for_a_ticket(found).replace("\\", "")):
        for places in TOLD.values():
            assert all((place in text) is known for place in places), text


def test_the_environment_names_the_folders_of_each_device(tmp_path):
    experiment = summarise([Record(make_run(tmp_path / "run", Truth(measured_s=10)))])
    runs = [with_manifest(run, devices=PLACES[run.steps[0].variant]) for run in made(template(tmp_path), **QUIET)]
    groups = {group.title: dict(group.pairs) for group in devices(replace(experiment, runs=runs))}
    both = groups["Device: data and WAL of “A”"]
    assert (both["folder of data"], both["folder of WAL"]) == ("/mnt/a/db", "/mnt/a/db/pg_wal")
    log = groups["Device: WAL of “B”"]
    assert log["folder of WAL"] == "/mnt/b/log" and "folder of data" not in log
