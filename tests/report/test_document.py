"""A document, whatever it is about: what is left out of it, and what a renderer refuses."""

import pytest
from support.html_page import Page
from support.terminal import printed

from stallmark.errors import StallmarkError
from stallmark.report.document import (
    Document,
    Fold,
    Grid,
    Key,
    Note,
    Notes,
    Section,
    Shown,
    Words,
    non_empty,
    table_blocks,
)
from stallmark.report.figures import Figure, chart
from stallmark.report.picture import slide
from stallmark.report.renderers import in_terminal, page_beside, render, write_pages
from stallmark.report.table import Table

TABLE = Table(["file", "reads"], [["data", "12"]])


def a_document(**more) -> Document:
    about = {"title": "A", "kind": "probe", "question": "Q?", "headline": [], "answer": "", "sections": [], "brief": []}
    return Document(**about | more)


def a_chart(name: str) -> Figure:
    return Figure(name, name, "ms", False, "summary", "method", chart(100), ["at"], [["1"]])


def test_a_section_with_nothing_to_show_is_left_out():
    sections = non_empty(
        Section("a", "A", []), Section("b", "B", table_blocks(None, "B")), Section("c", "C", table_blocks(TABLE, "C"))
    )
    assert [section.id for section in sections] == ["c"]


def test_every_chart_is_found_wherever_it_stands():
    folded = Fold("More", [a_chart("folded")])
    sections = [Section("s", "S", [Grid([a_chart("one"), a_chart("two")]), folded], "evidence")]
    document = a_document(lead=[a_chart("lead")], sections=sections)
    names = ["lead", "one", "two", "folded"]
    assert [figure.id for figure in document.figures()] == names
    assert {f"chart-{name}" for name in names} <= Page(render(document)).ids


def test_parts_of_a_terminal_have_an_empty_line_between_them_and_empty_ones_none():
    brief = [
        [Words("one")],
        [],
        [Shown(Table(["file", "reads"], []))],
        [Words(" and more", "quiet", "two"), Shown(TABLE, header=False)],
    ]
    assert [line.strip() for line in printed(in_terminal(brief)).splitlines()] == [
        "one",
        "",
        "two and more",
        "data  12",
    ]
    with pytest.raises(TypeError, match="no Key"):
        in_terminal([[Key([])]])


def test_no_line_of_a_terminal_is_filled_up_with_spaces():
    words = Table(["file", "what"], [["a", "short"], ["b", "much longer"]], words=frozenset({0, 1}))
    lines = printed(
        in_terminal([[Shown(words), Notes([Note("•", "a few words " * 30), Note("•", "few")])]])
    ).splitlines()
    assert len(lines) > 6 and lines == [line.rstrip() for line in lines]


def test_without_a_picture_there_is_a_reason_for_no_slide():
    with pytest.raises(StallmarkError, match=r"^It has no users\.$"):
        slide(a_document(no_slide="It has no users."))


def test_pages_of_a_document_stand_beside_it(tmp_path):
    written = write_pages(a_document(pages={"Mail 2": a_document()}), tmp_path / "a.html")
    assert written == [tmp_path / "a.html", page_beside(tmp_path / "a.html", "Mail 2")]
    assert [path.name for path in written] == ["a.html", "a-mail-2.html"] and all(path.exists() for path in written)
