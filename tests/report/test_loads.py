"""The report of several loads: its page and those of single loads, the terminal, JSON and the slide."""

import re
from dataclasses import replace

import pytest
from support.html_page import Page
from support.synthetic_loads import LoadsStep, alone_and_together, in_cells, make_loads_run
from support.terminal import printed

from stallmark.analysis.loads import LoadsSummary, summarise_loads
from stallmark.record.reader import Record, find_records
from stallmark.report import loads_tables as tables
from stallmark.report.loads import loads_document, picture_of_loads
from stallmark.report.picture import write_slide
from stallmark.report.renderers import in_terminal, write_pages
from stallmark.report.text import loads as words

STEPS = alone_and_together({"mail": (60.0, 30.0), "bank": (200.0, 80.0)}, scan=(900.0, 300.0))


@pytest.fixture(scope="module")
def blender(tmp_path_factory) -> LoadsSummary:
    folder = tmp_path_factory.mktemp("blender")
    for number, variant in enumerate(("disks", "<b>cache</b>")):
        make_loads_run(folder / variant[:2], STEPS, variant, sequence=number, limits_ms={"mail": 20, "bank": 5})
    return summarise_loads(find_records([folder]))


@pytest.fixture(scope="module")
def cells(tmp_path_factory) -> LoadsSummary:
    steps = in_cells({1: {"mail": 60.0, "bank": 200.0}, 4: {"mail": 200.0, "bank": 280.0}})
    return summarise_loads([Record(make_loads_run(tmp_path_factory.mktemp("cells") / "run", steps))])


@pytest.fixture(scope="module")
def ramp(tmp_path_factory) -> LoadsSummary:
    folder = tmp_path_factory.mktemp("ramp")
    for number, (name, factor) in enumerate([("hdd", 1.0), ("ssd", 5.0)]):
        steps = [
            LoadsStep(f"{load} alone: {load} {users}", {load: rate * factor}, alone=load, users={load: users})
            for load in ("bank", "brokerage")
            for users, rate in ((1, 20.0), (50, 70.0))
        ]
        make_loads_run(folder / name, steps, name, sequence=number)
    return summarise_loads(find_records([folder]))


def column(table, name: str) -> list[str]:
    return [str(row[table.header.index(name)]) for row in table.rows]


@pytest.mark.thorough
def test_all_loads_have_a_page_and_each_load_of_users_its_own(blender, tmp_path):
    written = write_pages(loads_document(blender), tmp_path / "report.html")
    assert [path.name for path in written] == ["report.html", "report-mail.html", "report-bank.html"]
    page, mail = (Page(path.read_text(encoding="utf-8")) for path in written[:2])
    assert {"report-mail.html", "report-bank.html"} <= {attributes.get("href") for _, attributes in page.tags}
    assert {"loads", "together", "whole", "findings", "environment"} <= page.ids and "cells" not in page.ids
    assert "mail" in mail.text and "validity" in mail.ids
    assert ("b", {}) not in page.tags


def test_times_from_issuing_are_told_of_raw_loads_that_have_them(blender):
    assert words.WAITING_UNKNOWN not in tables.figures(blender).notes
    older = [replace(one, runs=tuple(replace(run, waiting_unknown=True) for run in one.runs)) for one in blender.points]
    assert words.WAITING_UNKNOWN in tables.figures(replace(blender, points=older)).notes


@pytest.mark.thorough
def test_the_picture_is_the_one_that_the_question_asks_for(blender, cells, ramp):
    bars = picture_of_loads(blender).panels
    assert [panel.title for panel in bars] == ["mail", "bank", "scan"] and len(bars[0].bars) == 4
    assert [bar.faint for bar in bars[0].bars] == [True, False] * 2
    [chart] = picture_of_loads(cells).panels
    assert [line.name for line in chart.lines] == ["mail", "bank", "linear"]
    assert dict(chart.lines[0].points)[4] == pytest.approx(200 / 60, rel=0.01)
    charts = picture_of_loads(ramp).panels
    assert [panel.title for panel in charts] == ["bank", "brokerage"]
    assert [line.name for line in charts[0].lines] == ["hdd", "ssd"]
    assert [users for users, _ in charts[0].lines[1].points] == [1, 50]


@pytest.mark.thorough
def test_a_terminal_of_any_width_drops_columns_and_no_digits(blender, cells, ramp):
    for summary in (blender, cells, ramp):
        brief, rates = loads_document(summary).brief, column(tables.figures(summary), "throughput")
        for width in (50, 60, 80, 200):
            text = printed(in_terminal(brief), width)
            assert max(len(line.rstrip()) for line in text.splitlines()) <= width
            assert all(rate in text for rate in rates)


def test_the_slide_has_answer_and_picture(blender, cells, ramp, tmp_path):
    for number, found in enumerate((blender, cells, ramp)):
        drawn = write_slide(loads_document(found), tmp_path / f"{number}.svg").read_text(encoding="utf-8")
        assert "EMULATED" in drawn and found.whole.title in drawn
        for panel in picture_of_loads(found).panels:
            assert panel.title in drawn
        assert re.search(r"<(rect|polyline)", drawn) and "<b>" not in drawn
