"""Runs of queries on paper and in a terminal: every figure in the text, what is emulated marked, nothing invented."""

import re
from dataclasses import replace

import plotly.graph_objects as go
import pytest
from support.html_page import Page
from support.pages import charts, render
from support.synthetic_queries import make_query_run
from support.terminal import show

from stallmark.analysis.experiment import summarise
from stallmark.analysis.finding import caution
from stallmark.analysis.read.server_state import ReplicaState, ServerState
from stallmark.analysis.read.times import ReadKind
from stallmark.record.reader import find_records

BARE = {"name": "nvme0n1"}


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("queries")
    make_query_run(folder / "1", variant="disks", seconds={f"Q{n}": n / 2 for n in range(1, 23)})
    make_query_run(
        folder / "2", variant="flash & <more>", sequence=2, seconds={f"Q{n}": n / 8 for n in range(1, 23)} | {"Q7": 20},
        plans={"Q9": "other"}, failed={"Q11": "timeout"},
    )  # fmt: skip
    return summarise(find_records([folder]))


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweep")
    make_query_run(folder / "1", run="each", dops=(1, 2, 4), only=(1, 6, 9))
    return summarise(find_records([folder]))


def test_what_is_emulated_is_marked_and_not_held_against_what_is_not(tmp_path):
    make_query_run(tmp_path / "1", variant="disks")
    make_query_run(tmp_path / "2", variant="flash & <more>", sequence=2, seconds={"Q1": 0.25}, device=BARE)
    html = render(summarise(find_records([tmp_path])))
    page = Page(html)
    assert "1 of 2 runs used a device whose service times Stallmark injected" in page.text
    cells = re.findall(r'<td class="word"><span>(.*?)</span></td>', html, re.S)
    assert [cell.split()[0] for cell in cells if "EMULATED" in cell] == ["EMULATED"]  # the device of one variant
    assert "<more>" not in html and "&lt;more&gt;" in html
    assert "0.250×" not in page.text and "are not comparable" in page.text


@pytest.mark.thorough
def test_bars_are_relative_to_the_baseline_and_plans_that_changed_hatched(compared):
    groups = charts(compared)
    relative = groups["answer"][0]
    figure = go.Figure(relative.plotly)  # plotly itself finds nothing wrong with it
    [bars] = figure.data
    assert bars.base == 1 and len(bars.y) == 23
    assert (
        bars.y[0] == pytest.approx(-0.75) and bars.y[6] == pytest.approx(20 / 3.5 - 1, rel=1e-3) and bars.y[10] is None
    )
    assert [n + 1 for n, shape in enumerate(bars.marker.pattern.shape) if shape] == [9]
    assert figure.layout.yaxis.type == "log" and relative.emulated
    assert {"query-seconds", "query-reads", "query-stalls"} == {one.id for one in groups["relative"]}
    assert groups["dop"] == []
    for one in [relative, *groups["relative"]]:
        assert one.id in render(compared)


@pytest.mark.parametrize("width", [60, 80, 140])
def test_a_terminal_shows_every_query(compared, width):
    text = show(compared, width)
    assert max(map(len, text.splitlines())) <= width
    rows = {line.split()[0]: line for line in text.splitlines() if re.match(r"(Q|RF)\d", line)}
    assert list(rows) == compared.queries.names
    assert rows["Q2"].split() == ["Q2", "1.00", "0.250", "0.250×"]
    assert rows["Q9"].split()[-1] == "0.250×*" and rows["Q11"].split()[-1] == "failed"
    flat = " ".join(text.split())
    assert "EMULATED" in flat and "not QphH" in flat and "not computed" in flat


def test_gaps_and_replicas_of_a_phase_are_shown_as_those_of_users_are(tmp_path):
    make_query_run(tmp_path / "1", seconds={f"Q{n}": 4 for n in range(1, 23)})
    experiment = summarise(find_records([tmp_path]))
    [run], [step] = experiment.runs, experiment.steps
    assert "gaps" not in show(experiment, 80) and "Other replicas" not in render(experiment)
    unread = caution(ReadKind.NOT_READ, sources=["Server I/O"], seconds=7.0, measured_s=88.0)
    far = ReplicaState("replica 1", True, 1.0, 4096.0, 8192, None, None)
    step = replace(
        step,
        validity=replace(step.validity, gaps=[unread]),
        server=replace(step.server, state=ServerState(replicas=[far])),
    )
    experiment = replace(experiment, runs=[replace(run, steps=[step])])
    assert "gaps: “Server I/O” could not be read for up to 7 of the 88 s measured." in " ".join(
        show(experiment, 300).split()
    )
    page = Page(render(experiment))
    assert "could not be read for up to 7 of the 88 s measured" in page.text and "replica 1" in page.text
