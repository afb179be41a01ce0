"""A metric that is declared once is everywhere, and the page of metrics is as the code has them."""

import re
from dataclasses import replace

import pytest
from support.comparisons import made, template
from support.documents import ROOT
from support.html_page import Page
from support.pages import charts, render, render_comparison
from support.terminal import show

from stallmark.analysis.compare.verdicts import compare_runs
from stallmark.analysis.experiment import ExperimentSummary
from stallmark.analysis.metrics import METRICS, Chart, Heading, Metric, reference
from stallmark.analysis.thresholds import judge, parse_threshold
from stallmark.report.comparison.document import summary_for_a_ticket
from stallmark.report.renderers import in_json
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
