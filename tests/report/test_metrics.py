"""A metric that is declared once is everywhere, and the page of metrics is as the code has them."""

import re
from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console
from support.comparisons import QUIET, made, template, with_manifest
from support.documents import ROOT
from support.html_page import Page
from support.manifests import changed
from support.pages import charts, render, render_comparison, verdicts
from support.synthetic import Truth, make_run
from support.terminal import show

from stallmark.analysis.compare.verdicts import compare_runs
from stallmark.analysis.experiment import ExperimentSummary, summarise
from stallmark.analysis.metrics import METRICS, Chart, Heading, Metric, reference
from stallmark.analysis.rules import judge, parse_threshold
from stallmark.record.manifest.storage import Device, Devices
from stallmark.record.reader import Record
from stallmark.report.comparison import summary_for_a_ticket
from stallmark.report.renderers import in_json
from stallmark.report.results import THRESHOLDS, experiment_cases
from stallmark.report.sections.environment import devices
from stallmark.report.sections.validity import failures
from stallmark.report.text import reading


@pytest.fixture(scope="module")
def experiment(tmp_path_factory) -> ExperimentSummary:
    sound = template(tmp_path_factory.mktemp("sound"), measured_s=40)
    runs = made(sound, HDD=[400.0, 404.0, 402.0], SSD=[480.0, 478.0, 484.0])
    limited = {**vars(sound.manifest.scenario), "thresholds": ["commits_left < 5", "transfer.commits_left > 5"]}
    runs = [replace(run, manifest=run.manifest.changed(scenario=limited)) for run in runs]
    return ExperimentSummary("s", "Which array?", "Which is faster.", True, "variant", runs)


@pytest.fixture
def declared(monkeypatch: pytest.MonkeyPatch) -> Metric:
    """A metric that this test alone declares."""
    chart = Chart("left", "Commits left over", "commits")
    metric = Metric(
        "commits_left", "left commits", "commits", lambda step: step.result_tps / 7, "committed ÷ 7", "driver",
        "higher", compared=True, heading=Heading("Throughput", "left", "per week", 1), chart=chart,
        of_type=lambda transaction: transaction.tps,
    )  # fmt: skip
    monkeypatch.setitem(METRICS, metric.key, metric)
    monkeypatch.setitem(reading.METHODS, chart.id, "A seventh of the commits.")
    return metric


def test_a_metric_that_is_declared_once_is_everywhere(experiment: ExperimentSummary, declared: Metric):
    compared = compare_runs(experiment.runs)
    page, comparison = Page(render(experiment)), Page(render_comparison(experiment, compared))
    assert "leftper week" in page.text.replace(" per", "per") and "57.1" in page.text
    assert "left/week" in comparison.text.replace("left per week", "left/week")
    assert re.search(r"\bleft\b", show(experiment, 300).split("HDD")[0])
    assert "left commits, commits" in summary_for_a_ticket(compared)
    assert "left commits" in [one["name"] for one in in_json(compared)["pairs"][0]["others"]]
    assert [figure.title for figure in charts(experiment)["axis"]].count("Commits left over") == 1
    assert parse_threshold("commits_left < 5").metric == declared.key
    judged = judge(experiment.runs)
    assert [one.holds for one in judged] == [False, True] * len(experiment.runs)
    assert "| `commits_left` | left commits | left, per week | committed ÷ 7 |" in reference()


def test_a_setting_has_no_limit():
    for key in (key for key, metric in METRICS.items() if metric.is_setting):
        with pytest.raises(ValueError, match="unknown metric"):
            parse_threshold(f"{key} < 5")


def test_every_chart_of_metrics_has_a_method():
    assert {metric.chart.id for metric in METRICS.values() if metric.chart} == set(reading.METHODS)


def test_the_page_of_metrics_is_as_the_code_has_them():
    assert (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8") == reference()


# Why thresholds make a command fail.


def why(folder, *thresholds: str, truth: Truth | None = None) -> list[str]:
    run = make_run(folder / "run", truth or Truth(measured_s=20))
    changed(run, scenario={"name": "limits", "thresholds": list(thresholds)})
    return failures(summarise([Record(run)]))


def test_nothing_is_said_of_thresholds_that_hold(tmp_path):
    assert why(tmp_path, "tps > 1", "errors < 1 %") == []


def test_the_threshold_that_was_not_kept_is_named_with_what_was_measured(tmp_path):
    [text] = why(tmp_path, "tps > 1", "p95 < 0.001ms")
    assert text.startswith("p95 < 0.001ms was not met (") and text.endswith(" ms in cap 64 MiB)")


def test_of_an_invalid_step_it_is_said_why_nothing_is_known(tmp_path):
    [text] = why(tmp_path, "tps > 1", truth=replace(Truth(measured_s=20), foreign_reads_per_second=500))
    assert text.startswith("tps > 1 is not known in cap 64 MiB: other programs used the storage")


def test_what_was_not_measured_is_not_known(tmp_path):
    [text] = why(tmp_path, "cpu < 50 %", truth=Truth(measured_s=20, off=("host",)))
    assert text == "cpu < 50 % is not known in cap 64 MiB: it was not measured there"


def test_of_several_loads_the_reason_names_the_load(tmp_path):
    run = make_run(tmp_path / "run", Truth(measured_s=20))
    changed(run, scenario={"name": "limits", "thresholds": ["tps > 1", "p95 < 0.001ms"]})
    cases = [case for case in experiment_cases(summarise([Record(run)]), "mail") if case.group == THRESHOLDS]
    assert [(case.name, case.passed) for case in cases] == [("mail: tps > 1", True), ("mail: p95 < 0.001ms", False)]
    assert cases[1].reason.startswith("mail: p95 < 0.001ms was not met (")


# The places of data and log, of each side of a comparison and of each variant of an experiment.


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
