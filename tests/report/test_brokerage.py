"""The report of a brokerage run: its result, its validity, its transactions."""

from dataclasses import replace

import pytest
from support.comparisons import with_manifest
from support.html_page import Page
from support.pages import render
from support.steps import changed_step

from stallmark.analysis.cautions import cautions
from stallmark.analysis.environment_cautions import HistoryKind
from stallmark.analysis.experiment import doubtful, marks
from stallmark.report import columns
from stallmark.report.document import is_invalid
from stallmark.report.experiment import experiment_in_json
from stallmark.report.sections import environment, validity
from stallmark.report.text import mark_word, sentence


@pytest.mark.thorough
def test_where_the_nominal_rate_differs_each_step_has_its_own(brokerage_runs):
    bigger = changed_step(brokerage_runs.runs[1].steps[0], nominal_tps=20.0)
    runs = [brokerage_runs.runs[0], replace(brokerage_runs.runs[1], steps=[bigger])]
    several = columns.step_metrics(replace(brokerage_runs, runs=runs))
    (nominal,) = [metric for metric in several if metric.key == "nominal"]
    assert nominal.text(bigger) == "20.0"


def test_failed_gates_are_marked_with_the_reason(brokerage_runs):
    html = render(brokerage_runs)
    slow, late = brokerage_runs.steps
    marked = {step.variant: marks(run, step) for run in brokerage_runs.runs for step in run.steps}
    words = {variant: [mark_word(mark) for mark in marks_of_step] for variant, marks_of_step in marked.items()}
    assert "p90 limits" in words["HDD"] and "invalid" not in words["HDD"]
    assert "invalid" in words["SSD"]
    serious = {mark_word(mark) for mark in marked["HDD"] if is_invalid(mark)}
    assert "p90 limits" not in serious, "a step that is only slower than the limits may be compared"
    assert doubtful(brokerage_runs) == {late.key}
    text = Page(html).text
    for gate in (*slow.validity.gates, *late.validity.gates):
        if gate.failure:
            assert sentence(gate.failure) in text
    verdicts = {str(row[0]): str(row[1]) for row in validity.gates(brokerage_runs).rows}
    assert verdicts["background lag"] == "FAILED in SSD" and verdicts["mix"] == "passed"


def test_the_facts_have_the_depth_of_the_history_though_an_older_record_leaves_it_to_the_scale(brokerage_runs):
    [workload] = [dict(group.pairs) for group in environment.facts(brokerage_runs) if group.title == "Workload"]
    assert workload["scale days"] == "1" and workload["trades per account"] == "11.52"
    [run, _] = experiment_in_json(brokerage_runs)["runs"]
    assert run["manifest"]["workload"]["trades_per_account"] == 11.52
    assert not [one for one in brokerage_runs.cautions if one.kind is HistoryKind.SHALLOW]
    sizes = [with_manifest(run, variant={"buffer_pool": f"{size}GiB"}) for size, run in enumerate(brokerage_runs.runs)]
    [found] = [one for one in cautions(sizes) if one.kind is HistoryKind.SHALLOW]
    text = Page(render(replace(brokerage_runs, runs=sizes, cautions=[found]))).text
    assert " ".join(sentence(found).split()) in text
