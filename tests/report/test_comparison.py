"""A comparison in HTML, in a terminal and in Markdown."""

import math
import re
from dataclasses import replace

import pytest
from support.comparisons import made, template, with_step
from support.html_page import figures_of
from support.pages import render_comparison, verdicts, write_comparison
from support.report_summaries import DRIVER_BOUND, FOREIGN_IO
from support.steps import changed_step
from support.terminal import printed

from stallmark.analysis.compare.plan import plan_runs
from stallmark.analysis.compare.verdicts import compare_runs
from stallmark.analysis.experiment import ExperimentSummary
from stallmark.report.comparison import summary_for_a_ticket
from stallmark.report.comparison_figures import _ticks
from stallmark.report.renderers import in_terminal
from stallmark.report.results import plan_in_brief
from stallmark.report.text import term

HURT = "<script>window.hurt=1</script>|`*![](http://evil.example/)@all\x1b[31m\u202e"


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    return template(tmp_path_factory.mktemp("sound"))


def experiment(runs, **more) -> ExperimentSummary:
    return ExperimentSummary("s", "Which array?", "Which is faster.", True, "variant", runs, **more)


def compared(sound, order="", **tps):
    runs = made(sound, order, **(tps or {"HDD": [400.0, 404.0, 402.0], "SSD": [480.0, 478.0, 484.0]}))
    return experiment(runs), compare_runs(runs)


def test_every_ratio_is_within_the_axis(sound):
    summary, found = compared(sound, A=[4.0, 4.1, 3.9], B=[1000.0, 1010.0, 990.0])
    figure = figures_of(render_comparison(summary, found))["chart-compare-ratio-0"]
    low, high = figure["layout"]["xaxis"]["range"]
    ratios = figure["data"][0]["x"]
    assert max(ratios) > 200 and all(low < math.log10(one) < high for one in ratios)
    assert all(low < math.log10(tick) < high for tick in figure["layout"]["xaxis"]["tickvals"])


@pytest.mark.parametrize("low", [0.95, 0.84, 0.8, 0.7, 0.5, 0.12, 0.011, 0.0011])
@pytest.mark.parametrize("high", [1.05, 1.17, 1.19, 1.3, 1.9, 8.3, 90, 100, 900])
def test_an_axis_of_ratios_has_two_ticks_or_more(low, high):
    assert 2 <= len(_ticks(low, high)) <= 9


def test_runs_whose_folders_are_namesakes_stay_apart(sound):
    runs = made(sound, HDD=[400.0, 404.0, 402.0]) + made(sound, experiment="e2", HDD=[480.0, 478.0, 484.0])
    html = render_comparison(experiment(runs), compare_runs(runs))
    assert {": 402, ", ": 481, "} <= set(
        re.findall(r": \d+, ", re.search(r'class="picture.*?aria-label="(.*?)"', html)[1])
    )
    assert html.count('<td class="word"><span>e1/') == html.count('<td class="word"><span>e2/') == 3


def test_names_are_text_and_nothing_else(sound):
    summary, found = compared(sound, **{HURT: [400.0, 404.0, 402.0], "B": [480.0, 478.0, 484.0]})
    html = render_comparison(summary, found)
    assert "<script>window" not in html and "&lt;script&gt;window" in html
    ticket = summary_for_a_ticket(found)
    assert not [acts for acts in ("<script>", "![", "http://", "@all", "\x1b", "\u202e") if acts in ticket]
    assert all(row.count(" | ") == 5 for row in summary_for_a_ticket(found).splitlines() if row.startswith("| **"))


def test_the_file_is_written_whole_into_a_new_folder(sound, tmp_path):
    target = tmp_path / "new" / "comparison.html"
    assert write_comparison(*compared(sound), target) == target
    assert target.read_text().endswith("</html>\n") or target.read_text().endswith("</html>")
    assert [file.name for file in target.parent.iterdir()] == ["comparison.html"]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_terminal_of_any_width_has_the_verdict_and_whole_numbers(sound, width):
    _, found = compared(sound)
    text = printed(verdicts(found), width)
    assert max(map(len, text.splitlines())) <= width
    assert text.startswith("BETTER  SSD beats HDD by 20 % (17 to 22)")
    assert re.search(r"402 +481 +\+20 % +\+17 to \+22", text)


@pytest.mark.parametrize(
    ("tps", "order", "words"),
    [
        ({"A": [400.0], "B": [480.0]}, "", ["INDICATIVE ONLY", "a verdict needs 3 runs of each", "–"]),
        ({"A": [400.0] * 3, "B": [480.0] * 3}, "AAABBB", ["BETTER", "Confounded by order"]),
        ({"A": [400.0, 410.0, 390.0], "B": [401.0, 395.0, 405.0]}, "", ["NO DIFFERENCE SHOWN", "could have shown"]),
    ],
)
def test_every_verdict_says_what_stands_behind_it(sound, tps, order, words):
    summary, found = compared(sound, order, **tps)
    text = " ".join(printed(verdicts(found), 80).split())
    for word in words:
        assert word in text
    assert term(found.pairs[0].verdict) in render_comparison(summary, found)


def test_a_comparison_that_may_not_be_made_names_the_check(sound):
    summary, found = compared(sound)
    runs = [
        replace(run, steps=[changed_step(run.steps[0], driver_bound=[DRIVER_BOUND])])
        if run.steps[0].variant == "SSD"
        else run
        for run in summary.runs
    ]
    found = compare_runs(runs)
    for text in (printed(verdicts(found), 100), summary_for_a_ticket(found), render_comparison(summary, found)):
        assert "not comparable" in text.lower() and "The driver was the bottleneck" in " ".join(text.split())


@pytest.mark.parametrize("width", [60, 120])
def test_a_plan_says_what_runs_can_show(sound, width):
    plan = plan_runs(made(sound, A=[400.0, 408.0, 392.0], B=[480.0, 470.0, 490.0]), 0.05)
    text = printed(in_terminal(plan_in_brief(plan)), width)
    flat = " ".join(text.split())
    assert max(map(len, text.splitlines())) <= width
    assert re.search(r"\d runs of each variant show a difference of 5 % \(power 80 %\)", flat)
    assert "noncentral t" in flat and "pooled over 6 runs with 4 degrees of freedom" in flat


def test_a_plan_says_by_which_test(sound):
    def said(runs) -> str:
        return " ".join(printed(in_terminal(plan_in_brief(plan_runs(runs, 0.05))), 100).split())

    first, second = (made(sound, experiment=name, A=[400.0, 408.0, 392.0]) for name in ("e1", "e2"))
    assert "Paired t-test, two-sided" in said(first) and "Welch" not in said(first)
    apart = said([*first, *second])
    assert "Welch’s t-test (the sides are different experiments, so no run has a partner)" in apart
    assert "Paired" not in apart


def test_a_plan_says_which_runs_it_left_out(sound):
    first, *good = made(sound, A=[100.0, 400.0, 408.0])
    plan = plan_runs([with_step(first, invalid=[FOREIGN_IO]), *good], 0.05)
    assert "Omitted from 3 runs: 1 invalid." in " ".join(printed(in_terminal(plan_in_brief(plan)), 100).split())
