"""The form of all tables: rows and columns as text, shown in HTML (templates/blocks.html), in Markdown and, as lists
are, in a terminal."""

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any, Generic, TypeVar, overload

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from rich.table import Table as RichTable
from rich.text import Text

from stallmark import format
from stallmark.format import Shown, shown_fields
from stallmark.redact import markdown
from stallmark.report.text.reading import PERCENTILE_MISSING, not_shown

PERCENTILES = ("p50", "p90", "p95", "p99", "p99.9", "max")


@dataclass(frozen=True)
class Cell:
    """A cell that is more than text: `kind` is a class of the style sheet, and a style of terminals."""

    text: str
    kind: str = ""

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Table:
    """A table of texts: columns of words, and columns of numbers, which are set flush right."""

    header: list[str]
    rows: list[Sequence[str | Cell]]
    words: frozenset[int] = frozenset({0})  # the columns that hold words
    notes: list[str] = field(default_factory=list)
    groups: list[tuple[str, int]] = field(default_factory=list)
    """Titles above the header and how many columns each spans."""
    importance: dict[int, int] = field(default_factory=dict)
    """Columns of high importance leave a narrow terminal first; 0, the default, never leaves."""

    def header_below(self, end: str) -> list[str]:
        """Return the header as one line: each title behind that of its group, which ends in `end`."""
        above = [title for title, span in self.groups for _ in range(span)] or [""] * len(self.header)
        return [f"{over}{end}{title}" if over else title for over, title in zip(above, self.header, strict=True)]


K = TypeVar("K")
T = TypeVar("T")
V = TypeVar("V")


@dataclass(frozen=True)
class Column(Generic[T]):
    """A column before it has rows: its title, and its cell in the row of an item. For `importance` see `Table`."""

    title: str
    cell: Callable[[T], str | Cell]
    is_word: bool = False
    importance: int = 0
    group: str = ""
    if_known: bool = False
    """It is left out if it has no value in any row."""


Columns = Sequence[Column[T]]


def word(title: str, cell: Callable[[T], str | Cell], importance: int = 0, *, when: bool = True) -> Columns[T]:
    """Return a column of words; nothing unless `when`."""
    return [Column(title, cell, True, importance)] if when else []


@overload
def number(
    title: str, value: Callable[[T], float | str | Cell | None], *, importance: int = 0, when: bool = True
) -> Columns[T]: ...
@overload
def number(
    title: str, value: Callable[[T], V], write: Callable[[V], str | Cell], *, importance: int = 0, when: bool = True
) -> Columns[T]: ...
def number(
    title: str,
    value: Callable[[Any], Any],
    write: Callable[[Any], str | Cell] | None = None,
    *,
    importance: int = 0,
    when: bool = True,
) -> Columns[Any]:
    """Return a column of numbers, each written by `write`; nothing unless `when`."""
    written = write or _written
    return [Column(title, lambda item: written(value(item)), importance=importance)] if when else []


def numbers(
    keys: Iterable[K],
    title: Callable[[K], str],
    value: Callable[[T, K], float | str | Cell | None],
    importance: Mapping[K, int] | None = None,
) -> Columns[T]:
    """Return a column of numbers for each of the keys."""

    def column(key: K) -> Column[T]:
        leaves = importance.get(key, 0) if importance else 0
        return Column(title(key), lambda item: _written(value(item, key)), importance=leaves)

    return [column(key) for key in keys]


def fields(row: type, part: Callable[[T], Any] = lambda item: item, groups: Container[str] | None = None) -> Columns[T]:
    """Return the columns that the class of a row declares with its fields; `part` of an item is that row, or None. With
    `groups` those below these titles alone."""

    def column(name: str, shown: Shown) -> Column[T]:
        def cell(item: T) -> str:
            known = part(item)
            return format.NONE if known is None else shown.write(getattr(known, name))

        return Column(shown.title, cell, shown.is_word, shown.importance, shown.group)

    return [column(name, shown) for name, shown in shown_fields(row) if groups is None or shown.group in groups]


def _written(value: float | str | Cell | None) -> str | Cell:
    return value if isinstance(value, str | Cell) else format.number(value)


def group(title: str, *columns: Columns[T]) -> Columns[T]:
    """Return columns with a common title above them."""
    return [replace(column, group=title) for part in columns for column in part]


def if_known(*columns: Columns[T]) -> Columns[T]:
    """Return columns of which each is left out when it has no value in any row."""
    return [replace(column, if_known=True) for part in columns for column in part]


@dataclass(frozen=True)
class Rows(Generic[T]):
    """The items of a table, one for each row. With a `title`, their `names` are a column of words before the others."""

    items: Sequence[T]
    title: str | None = None
    names: Sequence[str] = ()

    def table(self, *columns: Columns[T], notes: Iterable[str] = ()) -> Table:
        """Return the table with these columns."""
        every: list[Column] = [column for part in columns for column in part]
        rows = [[column.cell(item) for column in every] for item in self.items]
        if self.title is not None:
            every = [Column(self.title, str, True), *every]
            rows = [[name, *row] for name, row in zip(self.names, rows, strict=True)]
        kept = [index for index, column in enumerate(every) if not column.if_known or is_known(rows, index)]
        shown = [every[index] for index in kept]
        # A title spans the columns that remain.
        spans = [
            (title, sum(index in kept for index, _ in same))
            for title, same in groupby(enumerate(every), lambda pair: pair[1].group)
        ]
        return Table(
            [column.title for column in shown],
            [[row[index] for index in kept] for row in rows],
            frozenset(index for index, column in enumerate(shown) if column.is_word),
            list(notes),
            [(title, span) for title, span in spans if span] if any(title for title, _ in spans) else [],
            {index: column.importance for index, column in enumerate(shown) if column.importance},
        )

    def table_if_any(self, *columns: Columns[T], notes: Iterable[str] = ()) -> Table | None:
        """Return the table with these columns; None without rows."""
        return self.table(*columns, notes=notes) if self.items else None


def named_rows(title: str, pairs: Iterable[tuple[str, T]]) -> Rows[T]:
    """Return a row for each pair of a name and an item, with the names below `title`."""
    known = list(pairs)
    return Rows([item for _, item in known], title, [name for name, _ in known])


def is_known(rows: Sequence[Sequence[str | Cell]], column: int) -> bool:
    return any(str(row[column]) != format.NONE for row in rows)


def in_markdown(table: Table) -> list[str]:
    """Return the lines of a table in Markdown that every tracker shows."""
    columns = range(len(table.header))
    return [
        f"| {' | '.join(map(_in_cell, table.header_below(', ')))} |",
        f"|{'|'.join('---' if column in table.words else '---:' for column in columns)}|",
        *(f"| {' | '.join(map(_in_cell, row))} |" for row in table.rows),
    ]


def _in_cell(cell: str | Cell) -> str:
    text = markdown(str(cell))
    return f"**{text}**" if isinstance(cell, Cell) and cell.kind == "main" else text


def percentile(value: float | None) -> Cell | str:
    return Cell(format.MISSING, "none") if value is None else format.number(value)


def percentiles(latency: Callable[[T], Mapping[str, float | None]], names: Sequence[str] = PERCENTILES) -> Columns[T]:
    """Return a column for each of these percentiles of an item's latency."""
    return numbers(names, str, lambda item, name: percentile(latency(item).get(name)))


def percentile_notes(latencies: Iterable[Mapping[str, float | None]], names: Sequence[str] = PERCENTILES) -> list[str]:
    """Return the note on percentiles that are missing, if one of these is."""
    missing = any(latency.get(name) is None for latency in latencies for name in names)
    return [PERCENTILE_MISSING] if missing else []


GUTTER = 2
NAME_MIN, NAME_MAX = 12, 34  # width of the first column
MARK_MAX = 18  # width of the marks of a list
FULL = 6
"""Number of columns above which columns leave before the first one gets narrower."""

STYLES = {
    "bad": "bold red",
    "good": "green",
    "apart": "yellow",
    "none": "dim",
    "main": "bold",
    "quiet": "dim",
    "emulated": "yellow",
}
"""The styles of cells and words, by their kind."""


@dataclass(frozen=True)
class InTerminal:
    """A table in a terminal: as the window gets narrower it drops columns, never digits, and names them."""

    table: Table
    one_line: bool = False  # cut names that are too long instead of wrapping them
    widths: Sequence[int] = ()  # minimum widths, for tables below each other
    header: bool = True  # False: rows alone

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        table = replace(self.table, header=self.table.header_below("\n"), groups=[])
        shown, spare, fits = fit(table, options.max_width, self.widths)
        made = RichTable(
            box=None, padding=(0, GUTTER, 0, 0), pad_edge=False, header_style="bold", show_header=self.header
        )
        for column in shown:
            made.add_column(
                Text(table.header[column]),
                justify="left" if column in table.words else "right",
                no_wrap=self.one_line if column == 0 else fits and column not in table.words,
                overflow="ellipsis" if self.one_line else "fold",
                min_width=self.widths[column] if self.widths else None,
                max_width=(min(spare, NAME_MAX) if self.one_line else spare) if column == 0 and fits else None,
                vertical="bottom" if self.one_line or "\n" in "".join(table.header) else "top",
            )
        for row in table.rows:
            made.add_row(*(_styled(row[column]) for column in shown))
        yield Unpadded(made)
        if left := [column for column in table.importance if column not in shown and is_known(table.rows, column)]:
            yield Text(not_shown([table.header[column].replace("\n", " ") for column in left]), style="dim")
        if any(str(row[column]) == format.MISSING for row in table.rows for column in shown):
            yield Text(PERCENTILE_MISSING, style="dim")


@dataclass
class Unpadded:
    """A table of rich without the spaces that fill its lines up: they are copied, and wrapped in a narrower window."""

    table: RichTable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in console.render_lines(self.table, options, pad=False):
            while line and not line[-1].text.strip(" "):
                line.pop()
            if line:
                line[-1] = line[-1]._replace(text=line[-1].text.rstrip(" "))
            yield from (*line, Segment.line())


def fit(table: Table, width: int, widths: Sequence[int]) -> tuple[list[int], int, bool]:
    """Return the columns that fit `width`, the width left for the first, and whether the numbers fit at all.

    A column that may leave and holds no value leaves in any case.
    """
    shown = [
        column for column in range(len(table.header)) if column not in table.importance or is_known(table.rows, column)
    ]
    longest = [_widths(table, column) for column in range(len(table.header))]
    name = min(max(longest[0][1], 4), NAME_MAX)

    def needed_width(name: int) -> int:
        least = [
            max(longest[column][0 if column in table.words else 1], widths[column] if widths else 0)
            for column in shown
            if column
        ]
        return name + sum(least) + GUTTER * (len(shown) - 1)

    # First the name shrinks to NAME_MIN, but a table of many columns rather loses its least important one.
    while needed_width(min(name, NAME_MIN)) > width or (needed_width(name) > width and len(shown) > FULL):
        last = max(shown, key=lambda column: table.importance.get(column, 0))
        # Only columns that must stay are left.
        if not table.importance.get(last):
            break
        shown.remove(last)
    # The first column gets the rest; below four characters names are folded instead.
    spare = width - needed_width(0)
    return shown, spare, spare >= 4


def _widths(table: Table, column: int) -> tuple[int, int]:
    """Return the longest word and the longest line of a column."""
    lines = [
        line for text in (table.header[column], *(str(row[column]) for row in table.rows)) for line in text.split("\n")
    ]
    return max(cell_len(word) for line in lines for word in line.split(" ")), max(map(cell_len, lines))


def _styled(cell: str | Cell) -> Text:
    return Text(str(cell), STYLES.get(cell.kind, "") if isinstance(cell, Cell) else "")


def listed(items: Sequence[tuple[str | Cell, str | Text]]) -> RenderableType:
    """Return a list for a terminal: marks, and next to each its text, wrapped."""
    grid = RichTable.grid(padding=(0, 1, 0, 0))
    grid.add_column(max_width=MARK_MAX)
    grid.add_column()
    for mark, text in items:
        grid.add_row(_styled(mark), Text(text) if isinstance(text, str) else text)
    return Unpadded(grid)
