"""The curve of memory in the report: a chart with intervals and sizes left out, a table, JSON; nothing without one."""

import pytest
from support.pages import render
from support.synthetic import make_experiment

from stallmark.analysis.experiment import ExperimentSummary, summarise
from stallmark.record.manifest.course import ChosenSize
from stallmark.record.reader import find_records
from stallmark.report.experiment import experiment_in_json
from stallmark.report.renderers import dumped
from stallmark.report.sections.ceiling import curve_figures, curve_tables
from stallmark.report.text.ceiling import size_reason
from stallmark.stats.curve_search import MIB, Why

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> ExperimentSummary:
    folder = tmp_path_factory.mktemp("swept")
    make_experiment(folder, repeats=3)
    return summarise(find_records([folder]))


def test_the_chart_has_every_size_with_its_interval_and_what_was_left_out(swept):
    [figure] = curve_figures(swept)
    line, sizes, left_out, *reads = figure.chart.traces
    x = sizes["x"]
    assert x == [size.pool_bytes for size in swept.curves[0].sizes] and len(left_out["x"]) == len(x) - 2
    assert all(bar > 0 for bar in sizes["error_y"]["array"]) and (line["x"][0], line["x"][-1]) == (x[0], x[-1])
    assert len(reads) == 3 and figure.emulated and len(figure.rows) == len(x)


def test_the_table_says_runs_and_intervals(swept):
    [(device, table)] = curve_tables(swept)
    assert "EMULATED" in device and len(table.rows) == 4
    assert all(row[3] == "3" and " to " in row[4] for row in table.rows)


def test_the_page_and_json_have_the_curve(swept, tmp_path):
    assert 'id="memory-curve"' in render(swept)
    [curve] = experiment_in_json(swept)["curves"]
    assert len(curve["sizes"]) == 4 and len(curve["throughput"]["left_out"]) == 2 and curve["reads"]["error"] < 0.2
    dumped(curve)
    make_experiment(tmp_path, kind="user-ramp")
    ramp = summarise(find_records([tmp_path]))
    assert ramp.curves == [] and 'id="memory-curve"' not in render(ramp)


@pytest.mark.parametrize("reason", [one.value for one in Why])
def test_every_reason_has_words(reason):
    chosen = ChosenSize(bytes=64 * MIB, why=reason, between_bytes=(32 * MIB, 128 * MIB), error=0.2)
    assert size_reason(chosen) and size_reason(chosen) != size_reason(None)
