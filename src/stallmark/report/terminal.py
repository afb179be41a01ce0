"""Tables and lists in a terminal."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from rich.table import Table as RichTable
from rich.text import Text

from stallmark import format
from stallmark.report.table import Cell, Table, is_known
from stallmark.report.text.reading import not_shown, percentile_missing

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
        table = self.table
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
            yield Text(percentile_missing(), style="dim")


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


def fit(table: Table, width: int, widths: Sequence[int] = ()) -> tuple[list[int], int, bool]:
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
