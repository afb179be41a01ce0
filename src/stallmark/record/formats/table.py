"""CSV with a column of times, as storage arrays and monitoring systems export it.

    Volume ID,Time,Interval (s),Read IO Rate (IO/s),…,Read Response Time (ms),…
    00102832,2014:10:26T06:10:07.000000,602,0.028,…

Cells are separated by commas, semicolons, tabs or bars; lines may precede the header. Date and time are in one column
or two. There is one row per time, or one per time and instance (a volume, a metric). Units are taken from the names of
the columns, if they have any. A time is taken as the end of its interval; an array that stamps the beginning is off by
one.
"""

import csv
import io
import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from stallmark.record.formats.dates import is_epoch, is_time
from stallmark.record.formats.sample import Counter, Has, Recorded, Sample, find_unit, opened
from stallmark.record.formats.sentences import refusal

_LARGEST = 1 << 26  # characters
_LINES = 60  # lines in which the header is searched
_EMPTY = pa.array(["", "-", "--", "n/a", "na", "nan", "null", "none", "undefined"])
_FILE = "file"  # a column of this name always distinguishes rows
_RULE = re.compile(r"[-,;|\s]*--[-,;|\s]*")  # sqlcmd draws one below the header
_DATE = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}|20\d{6}")
_CLOCK = re.compile(r"\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?(\s*[AaPp][Mm])?")
_TIME_NAME = re.compile(r"time|date|epoch|stamp", re.I)
_HOST_NAME = re.compile(
    r"(host|server|machine|computer|node|sql_instance|db_?instance)[ _]?(name|id|identifier)?", re.I
)
_ADDRESS = re.compile(r"\S+:\d{2,5}")  # a Prometheus calls a host with its port an instance, others a disk
_NO_COUNTER = re.compile(r"interval\b.*|(.*[ _])?(id|index|number)", re.I)  # numbers that measure nothing
_IN_BRACKETS = re.compile(r"(?P<name>.*\S)\s*[(\[](?P<unit>[^()\[\]]+)[)\]]\s*")


class _Layout(NamedTuple):
    delimiter: str
    line: int  # the header's number among lines that are not empty
    header: list[str]
    times: tuple[int, ...]  # one column, or date and time


class Table(Recorded):
    """A CSV, which is held in memory completely, because a column that distinguishes rows of one time needs all rows.

    `hint` is the remedy for a file without times; `texts` are columns with text in place of numbers; `hosts` are the
    machines that it names.
    """

    def __init__(self, path: Path, time_column: str | None = None, hint: str = "name it with --time-column"):
        super().__init__(path)
        self._time_column, self._hint = time_column, hint
        self.texts: list[str] = []
        self.hosts: list[str] = []

    def samples(self, has: Has = lambda _: True) -> Iterator[Sample]:
        with opened(self.path) as text:
            content = text.read(_LARGEST + 1)
        if len(content) > _LARGEST:
            raise refusal("large_csv", self.path, most=_LARGEST)
        lines = [line for line in content.splitlines() if line.strip() and not _RULE.fullmatch(line)]
        layout = self._layout(lines)
        # A file that a tool appended to has its headers once more in the middle.
        rows = [line for line in lines[layout.line + 1 :] if line != lines[layout.line]]
        table = self._cells(rows, layout)
        cut = len(rows) - table.num_rows
        parts = [pc.utf8_trim_whitespace(table[str(column)]) for column in layout.times]
        stamps = (pc.binary_join_element_wise(*parts, " ") if len(parts) > 1 else parts[0]).to_pylist()
        numbers, texts = _sorted_out(table, layout)
        instance = self._instance_column(table, layout, texts, stamps)
        labels = [""] * len(stamps) if instance is None else table[str(instance)].fill_null("").to_pylist()
        rows_of_time: dict[object, list[int]] = {}
        for row, stamp in enumerate(stamps):
            rows_of_time.setdefault(row if instance is None else stamp, []).append(row)
        self.texts = [layout.header[column] for column in texts if column != instance]
        self.hosts = sorted(_hosts(table, layout, texts))
        self.host = self.hosts[0] if len(self.hosts) == 1 else ""
        self.notes = [f"columns that hold text: {', '.join(self.texts)}"] if self.texts else []
        self.notes += [f"rows with too few or too many values: {cut}"] if cut > 0 else []
        counted = [
            (column, values)
            for column, values in numbers.items()
            if column != instance and not _NO_COUNTER.fullmatch(layout.header[column])
        ]

        @cache
        def counter_for(label: str, column: int) -> Counter | None:
            name, unit = _name_and_unit(layout.header[column])
            counter = Counter(f"{label} {layout.header[column]}".strip(), "", name, label, unit)
            return counter if has(counter) else None

        def row_values(rows: list[int]) -> Iterator[tuple[Counter, float]]:
            for row in rows:
                for column, values in counted:
                    counter = counter_for(labels[row].strip(), column)
                    if counter is not None and np.isfinite(values[row]):
                        yield counter, float(values[row])

        for place, own in enumerate(rows_of_time.values()):
            yield Sample(stamps[own[0]], row_values(own), begins=place == 0)

    def _layout(self, lines: list[str]) -> _Layout:
        """Find the header: the first line whose successor has a time in a column. Raise StallmarkError without one."""
        seen: list[str] = []
        for delimiter in ",;\t|":
            rows = [_split(line, delimiter) for line in lines[:_LINES]]
            for line, (header, row) in enumerate(pairwise(rows)):
                if len(header) < 2 or len(row) < 2 or len(row) > len(header) + 1:
                    continue
                seen = seen or [name for name in header if name]
                if times := _time_columns(header, row, self._time_column):
                    return _Layout(delimiter, line, header, times)
        has = f" (there is {', '.join(seen[:8])}{', …' if len(seen) > 8 else ''})" if seen else ""
        if self._time_column:
            raise refusal("no_time_in", self.path, column=self._time_column, has=has)
        raise refusal("no_time_column", self.path, hint=self._hint, has=has)

    def _cells(self, lines: list[str], layout: _Layout) -> pa.Table:
        """Return all cells as text, one column per place of the header."""
        names = [str(column) for column in range(len(layout.header))]
        try:
            return pa.csv.read_csv(
                io.BytesIO("\n".join(lines).encode()),
                pa.csv.ReadOptions(column_names=names),
                pa.csv.ParseOptions(delimiter=layout.delimiter, invalid_row_handler=lambda row: "skip"),
                pa.csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string())),
            )
        except pa.ArrowInvalid as error:
            raise refusal("not_csv", self.path, error=" ".join(str(error).split())) from None

    def _instance_column(self, table: pa.Table, layout: _Layout, texts: list[int], stamps: list[str]) -> int | None:
        """Return the first column that distinguishes rows of one time, text before numbers, or None if every time has
        one row.

        Raise StallmarkError if no column does.
        """
        if _FILE in layout.header and (column := layout.header.index(_FILE)) in texts:
            return column
        if len(set(stamps)) == len(stamps):
            return None
        others = [c for c in range(len(layout.header)) if c not in texts and c not in layout.times]
        for column in [*texts, *others]:
            labels = table[str(column)].fill_null("").to_pylist()
            if len(set(labels)) <= len(labels) / 2 and len(set(zip(stamps, labels, strict=True))) == len(labels):
                return column
        if all(stamp != following for stamp, following in pairwise(stamps)):
            # A local clock that was put back: the same times come once more, later in the file.
            return None
        raise refusal("double_rows", self.path)


def _split(line: str, delimiter: str) -> list[str]:
    return [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter, skipinitialspace=True), [])]


def _time_columns(header: list[str], row: list[str], asked: str | None) -> tuple[int, ...]:
    cells = list(zip(header, row, strict=False))
    if asked:
        named = [c for c, (name, _) in enumerate(cells) if name.lower() == asked.lower()]
        return tuple(c for c in named if is_time(row[c]) or is_epoch(row[c]))
    time_columns = [c for c, (name, value) in enumerate(cells) if is_time(value) and not is_time(name)]
    time_columns += [c for c, (name, value) in enumerate(cells) if _TIME_NAME.search(name) and is_epoch(value)]
    if time_columns:
        return (min(time_columns, key=lambda c: (not _TIME_NAME.search(header[c]), c)),)
    dates = [c for c, (_, value) in enumerate(cells) if _DATE.fullmatch(value)]
    clocks = [c for c, (_, value) in enumerate(cells) if _CLOCK.fullmatch(value)]
    return (dates[0], clocks[0]) if dates and clocks else ()


def _hosts(table: pa.Table, layout: _Layout, texts: list[int]) -> set[str]:
    hosts = set[str]()
    for column in texts:
        name, own = layout.header[column], {text for text in table[str(column)].unique().to_pylist() if text}
        if _HOST_NAME.fullmatch(name) or (name.lower() == "instance" and all(map(_ADDRESS.fullmatch, own))):
            hosts |= {re.sub(r":\d+$", "", text) for text in own}
    return hosts


def _sorted_out(table: pa.Table, layout: _Layout) -> tuple[dict[int, np.ndarray], list[int]]:
    """Return the columns of numbers, with NaN for empty cells, and the positions of all other columns."""
    numbers, texts = {}, []
    for column in range(len(layout.header)):
        if column in layout.times:
            continue
        cells = pc.utf8_trim_whitespace(table[str(column)])
        # Beside decimal points a comma separates thousands.
        if layout.delimiter == ";" and not pc.any(pc.match_substring(cells, ".")).as_py():
            cells = pc.replace_substring(cells, ",", ".")
        cells = pc.if_else(pc.is_in(pc.utf8_lower(cells), _EMPTY), None, cells)
        if cells.null_count == len(cells):
            continue
        try:
            numbers[column] = cells.cast(pa.float64()).to_numpy()
        except pa.ArrowInvalid:
            texts.append(column)
    return numbers, texts


def _name_and_unit(header: str) -> tuple[str, str]:
    brackets = _IN_BRACKETS.fullmatch(header)
    if brackets and (unit := find_unit("brackets", brackets["unit"].strip())):
        return brackets["name"], unit
    return header, find_unit("column", header)
