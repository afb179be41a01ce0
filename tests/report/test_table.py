"""A table in a terminal of any width and in Markdown: columns leave, digits never."""

import pytest
from support.terminal import printed

from stallmark.report.table import Cell, InTerminal, Table, in_markdown

HEADER = ["step", "TPS", "p95\nms", "hits", "device"]
ROWS = [
    [f"a step with a name of many words, {at}", f"{at},234.5", f"{at}9.25", f"87.{at} %", f"9,999.{at}"]
    for at in range(1, 4)
]
TABLE = Table(HEADER, [*ROWS], importance={2: 1, 3: 2, 4: 3})


def lines(table: Table, width: int, **how) -> list[str]:
    return printed(InTerminal(table, **how), width).splitlines()


@pytest.mark.parametrize(("width", "shown"), [(21, 2), (28, 3), (44, 4), (60, 5), (80, 5), (120, 5)])
def test_columns_leave_by_importance_and_no_digit_is_lost(width, shown):
    drawn = lines(TABLE, width)
    assert max(map(len, drawn)) <= width
    text, _, said = "\n".join(drawn).partition("Not shown")
    for at, title in enumerate(HEADER):
        assert (" ".join(title.split()) in " ".join(said.split())) is (at >= shown)
        assert all((row[at] in text) is (at < shown) for row in ROWS if at)


@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_column_of_which_nothing_is_known_leaves_in_silence(width):
    table = Table(["step", "TPS", "hits"], [["a", "1", "–"], ["b", "2", "–"]], importance={2: 1})
    assert "hits" not in "".join(lines(table, width))


def test_names_are_cut_to_keep_a_row_in_one_line_or_wrapped():
    assert len(lines(TABLE, 50, one_line=True)) == 2 + len(ROWS)
    assert len(lines(TABLE, 50)) > 2 + len(ROWS)


def test_numbers_that_fit_nowhere_are_wrapped():
    table = Table(["", "a", "b"], [["x", "1234567890", "0987654321"]])
    kept = ["".join(line.split()) for line in lines(table, 14)]
    assert sorted("".join(kept)) == sorted("abx12345678900987654321")


def test_markdown_has_no_mark_up_but_its_own():
    table = Table(["a|b", "n"], [[Cell("<b>\nx", "main"), "1"]])
    assert in_markdown(table) == ["| a\\|b | n |", "|---|---:|", "| **&lt;b&gt; x** | 1 |"]
