"""The report of a brokerage run: its result, its validity, its transactions."""

import re
from dataclasses import replace

import pytest
from support.comparisons import with_manifest
from support.html_page import Page
from support.pages import charts, render
from support.steps import changed_step
from support.terminal import show

from stallmark import format
from stallmark.analysis.cautions import cautions
from stallmark.analysis.experiment import doubtful, marks
from stallmark.analysis.storage_cautions import HistoryKind
from stallmark.report import columns
from stallmark.report.document import is_invalid
from stallmark.report.experiment import experiment_in_json
from stallmark.report.sections import environment, timeline, transactions, validity
from stallmark.report.text import mark_word, sentence
from stallmark.report.text.terms import term


@pytest.mark.parametrize("width", [60, 80, 100, 160])
def test_the_result_leads_at_every_width(brokerage_runs, width):
    text = show(brokerage_runs, width)
    assert max(map(len, text.splitlines())) <= width
    header = text.split("HDD")[0]
    assert "Trade-Results/s" in header and "nominal 9.87" in header
    assert "all tx" in header
    for step in brokerage_runs.steps:
        line = next(line for line in text.splitlines() if line.startswith(step.variant))
        assert format.number(step.throughput.primary_tps) in line.split()


def test_the_terminal_gives_every_gate_with_figure_threshold_and_verdict(brokerage_runs):
    text = show(brokerage_runs, 100)
    for gate in brokerage_runs.steps[0].validity.gates:
        (line,) = [line for line in text.splitlines() if re.match(rf"(passed|FAILED) +{term(gate.kind)} ", line)]
        failed = gate.kind in ("p90_limits", "background_lag")
        assert line.startswith("FAILED" if failed else "passed")
    flat = " ".join(text.split())
    assert "0.300 s late on average, 1.20 s at worst, in SSD" in flat and "≤ 0.1 s" in flat
    assert "The background sessions fell behind: their transactions started 0.300 s late on average." in flat


def test_where_the_nominal_rate_differs_each_step_has_its_own(brokerage_runs):
    bigger = changed_step(brokerage_runs.runs[1].steps[0], nominal_tps=20.0)
    runs = [brokerage_runs.runs[0], replace(brokerage_runs.runs[1], steps=[bigger])]
    several = columns.step_metrics(replace(brokerage_runs, runs=runs))
    (nominal,) = [metric for metric in several if metric.key == "nominal"]
    assert nominal.text(bigger) == "20.0"


def test_the_report_leads_with_the_result_and_shows_all_beside_it(brokerage_runs):
    text = Page(render(brokerage_runs)).text
    assert "tpse" not in text.lower()
    for step in brokerage_runs.steps:
        assert format.number(step.throughput.primary_tps) in text and format.number(step.throughput.tps) in text
    ids = [figure.id for figure in charts(brokerage_runs)["axis"]]
    assert ids[:2] == ["primary", "tps"]
    first = charts(brokerage_runs)["axis"][0]
    assert first.plotly["data"][0]["y"] == pytest.approx(
        [s.throughput.primary_tps for s in brokerage_runs.steps], rel=1e-4
    )
    assert [name for _, name, _ in timeline.lines(brokerage_runs.runs)][:2] == ["Trade-Results", "all tx"]


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


def test_each_step_has_its_transactions_with_shares_and_limits(brokerage_runs):
    tables = transactions.by_step(brokerage_runs)
    assert [name for name, _ in tables] == ["HDD", "SSD"]
    for (_, found), step in zip(tables, brokerage_runs.steps, strict=True):
        assert [str(row[0]) for row in found.rows] == [
            *("Trade-Order", "Trade-Status", "Market-Watch", "Security-Detail", "Customer-Position"),
            *("Trade-Lookup", "Broker-Volume", "Trade-Update", "Trade-Result", "Market-Feed"),
            *("Data-Maintenance", "all"),
        ]
        assert all(len(row) == len(found.header) == sum(span for _, span in found.groups) for row in found.rows)
        order = dict(zip(found.header, found.rows[0], strict=True))
        one = step.transactions[0]
        assert order["deck"] == "11.3" + format.NBSP + "%" and order["limit"] == "2,000"
        assert order["count"] == format.count(one.done_count) and order["rolled back"] == format.count(one.rolled_back)
    results = dict(zip(tables[0][1].header, tables[0][1].rows[8], strict=True))
    assert results["p90"].kind == "bad"


def test_the_limits_compare_the_steps(brokerage_runs):
    found = transactions.limits(brokerage_runs)
    assert found.header == ["transaction", "limit", "HDD", "SSD"]
    row = next(row for row in found.rows if row[0] == "Trade-Result")
    assert [str(cell) for cell in row[2:]] == [
        format.number(next(t for t in s.transactions if t.name == "trade_result").latency_ms["p90"])
        for s in brokerage_runs.steps
    ]
    assert row[2].kind == "bad" and not hasattr(row[3], "kind")
    assert not any(row[0] == "Data-Maintenance" for row in found.rows)


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
