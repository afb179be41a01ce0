"""A table of columns, in a terminal of any width and in Markdown: columns leave, digits never."""

import re
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import Annotated

import pytest
from support import report_summaries as given
from support.pages import table
from support.steps import changed_step
from support.terminal import printed, show

import stallmark.analysis
import stallmark.report
from stallmark import format
from stallmark.analysis.bottleneck import device_verdict
from stallmark.analysis.read.server_state import OF_MEMORY, OF_REPLICAS, OF_THE_REST, ServerState
from stallmark.format import Shown, shown_fields, words
from stallmark.report.table import (
    Cell,
    InTerminal,
    Rows,
    Table,
    fields,
    group,
    if_known,
    in_markdown,
    named_rows,
    number,
    numbers,
    percentile_notes,
    percentiles,
    word,
)

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


def test_columns_carry_their_title_value_group_and_importance():
    table = named_rows("step", [("first", 1.0), ("second", 2.0)]).table(
        word("kind", lambda value: Cell("odd", "bad") if value == 1 else "even"),
        group(
            "Rates",
            number("per s", lambda value: value * 1000, importance=2),
            number("of all", lambda value: value / 4, format.share),
        ),
        numbers([10, 20], str, lambda value, factor: value * factor, {20: 1}),
        notes=["a note"],
    )
    assert table.header == ["step", "kind", "per s", "of all", "10", "20"]
    assert table.rows == [
        ["first", Cell("odd", "bad"), "1,000", f"25.0{format.NBSP}%", "10.0", "20.0"],
        ["second", "even", "2,000", f"50.0{format.NBSP}%", "20.0", "40.0"],
    ]
    assert table.words == {0, 1} and table.groups == [("", 2), ("Rates", 2), ("", 2)]
    assert table.importance == {2: 2, 5: 1} and table.notes == ["a note"]


def test_columns_of_which_nothing_is_known_or_wanted_are_left_out_with_their_group():
    def unknown(value: int) -> None:
        return None

    table = Rows([1, 2]).table(
        word("name", str),
        group("Shares", if_known(number("read", unknown)), number("written", lambda value: value)),
        if_known(group("Times", number("ms", unknown)), number("count", lambda value: value, format.count)),
        number("shown", unknown),
        word("refused", str, when=False),
        number("refused", float, when=False),
    )
    assert table.header == ["name", "written", "count", "shown"]
    assert table.groups == [("", 1), ("Shares", 1), ("", 2)]


def test_columns_of_one_name_are_told_apart_by_their_group_where_a_header_is_one_line():
    columns = (group(name, number("before", float), number("after", float)) for name in ("Pages", "Extents"))
    table = Rows([1]).table(word("of", str), *columns)
    assert in_markdown(table)[0] == "| of | Pages, before | Pages, after | Extents, before | Extents, after |"
    above, titles, *_ = printed(InTerminal(table), 80).splitlines()
    assert re.split("  +", above.strip()) == ["Pages", "Pages", "Extents", "Extents"]
    assert titles.split() == ["of", "before", "after", "before", "after"]
    assert printed(InTerminal(Rows([1]).table(word("of", str))), 80).splitlines() == ["of", "1"]


def test_a_table_without_rows_has_its_header_or_is_none():
    columns = number("n", lambda value: value)
    assert named_rows("step", []).table(columns).header == ["step", "n"]
    assert named_rows("step", []).table_if_any(columns) is None and Rows([]).table_if_any(columns) is None


def test_percentiles_that_are_missing_are_marked_and_explained():
    latencies = [{"p50": 1.0, "p99": None}, {"p50": 2.0, "p99": 3.0}]
    table = Rows(latencies).table(percentiles(lambda latency: latency, ["p50", "p99"]))
    assert [[str(cell) for cell in row] for row in table.rows] == [["1.00", "–*"], ["2.00", "3.00"]]
    assert percentile_notes(latencies, ["p99"]) and not percentile_notes(latencies, ["p50"])


@dataclass(frozen=True)
class Drive:
    name: Annotated[str, words("drive")]
    bay: int
    read_ms: Annotated[float | None, Shown("ms", group="Reads", importance=2)]
    full_share: Annotated[float, Shown("full", format.share)]


def test_a_row_declares_its_columns_with_its_fields():
    rows = Rows([("a", Drive("sda", 1, 4.25, 0.5)), ("b", Drive("sdb", 2, None, 1)), ("c", None)])
    table = rows.table(word("shelf", lambda row: row[0]), fields(Drive, lambda row: row[1]))
    assert table.header == ["shelf", "drive", "ms", "full"] and table.words == {0, 1}
    assert table.groups == [("", 2), ("Reads", 1), ("", 1)] and table.importance == {2: 2}
    assert [list(map(str, row)) for row in table.rows] == [
        ["a", "sda", "4.25", format.share(0.5)],
        ["b", "sdb", format.NONE, format.share(1)],
        ["c", format.NONE, format.NONE, format.NONE],
    ]
    assert [column.title for column in fields(Drive, groups=("Reads",))] == ["ms"]


def test_every_row_that_declares_columns_is_in_a_table():
    modules = [import_module(one.name) for one in walk_packages(stallmark.analysis.__path__, "stallmark.analysis.")]
    classes = {kind for module in modules for kind in vars(module).values() if isinstance(kind, type)}
    declaring = {kind.__name__ for kind in classes if "Shown(" in str(vars(kind).get("__annotations__"))}
    source = "".join(file.read_text(encoding="utf-8") for file in Path(stallmark.report.__path__[0]).rglob("*.py"))
    assert len(declaring) > 10 and declaring <= set(re.findall(r"fields\((\w+)", source))
    assert {shown.group for _, shown in shown_fields(ServerState)} == {*OF_MEMORY, *OF_THE_REST, *OF_REPLICAS}


@pytest.mark.thorough
@pytest.mark.parametrize("experiment", [given.buffer_pool(), given.buffer_pool(3), given.user_ramp(), given.devices()])
def test_every_step_is_one_line_with_whole_numbers_at_every_width(experiment):
    steps = table(experiment)
    for width in (60, 80, 100, 140, 200):
        lines = printed(steps, width).splitlines()
        assert max(map(len, lines)) <= width
        start = next(i for i, line in enumerate(lines) if line.startswith("step")) + 1
        rows = lines[start : start + len(experiment.steps)]
        for row, step in zip(rows, experiment.steps, strict=True):
            assert re.search(rf"(^|\s){re.escape(format.number(step.throughput.tps))}(\s|$)", row), row
            assert format.number(step.latency.percentiles_ms["p95"]) in row.split()
            assert ("EMULATED" in row.split()) == step.emulated
            assert "…" not in row[30:]


def test_a_narrow_window_keeps_the_important_columns_and_names_the_others():
    text = show(given.buffer_pool(), 60)
    header = text.split("cap 5%")[0]
    for name in ("TPS", "p95", "read"):
        assert name in header
    assert "MB/s" not in header
    assert "MB/s" in text.split("Not shown at this width")[1]
    wide = show(given.buffer_pool(), 200)
    assert "MB/s" in wide.split("cap 5%")[0] and "Not shown" not in wide


def test_what_is_much_the_same_of_repeats_is_said_once():
    runs = [
        replace(
            run,
            steps=[
                changed_step(step, device_verdict=device_verdict(None, 0.9 + at / 100, None, 0.1, False))
                for step in run.steps
            ],
        )
        for at, run in enumerate(given.buffer_pool(3).runs)
    ]
    experiment = replace(given.buffer_pool(3), runs=runs)
    flat = " ".join(show(experiment, 100).split())
    variants = {step.variant for step in experiment.steps}
    assert flat.count("The device is the bottleneck") == len(variants)
    assert flat.count("Similar in 2 other runs.") == len(variants)


def test_nothing_is_emulated_nothing_says_so():
    assert "EMULATED" not in show(given.devices(), 100)


def test_missing_values_and_markup_in_names():
    step = given.step(
        variant="[red]cap[/red]", latency_ms=given.latencies(9.0) | {"p99": None}, data_io=None, hit_share=None
    )
    text = show(given.experiment([given.run([step])]), 200)
    assert "[red]cap[/red]" in text
    assert "–*" in text and format.TOO_SMALL in text
