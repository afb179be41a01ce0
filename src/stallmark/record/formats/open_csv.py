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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from stallmark.record.formats.amounts import (
    Amounts,
    Meaning,
    Part,
    Recording,
    Wanted,
    known_counters,
    read_samples,
    some_names,
)
from stallmark.record.formats.dates import is_epoch, is_time
from stallmark.record.formats.prometheus import OBJECTS, refuse_rates
from stallmark.record.formats.sample import (
    Counter,
    Has,
    Recorded,
    Sample,
    find_unit,
    first_names,
    head_of,
    in_quotes,
    load_yaml,
    opened,
    refusal,
    wrong_option,
)
from stallmark.record.profile import FileClass

_LARGEST = 1 << 26  # characters
_LINES = 60  # lines in which the header is searched
_EMPTY = pa.array(["", "-", "--", "n/a", "na", "nan", "null", "none", "undefined"])
_FILE = "file"  # a column of this name always distinguishes rows
_LABEL = re.compile(
    r"(device|disk|drive|volume|lun|instance|database)([ _]?name)?", re.I
)  # so do these, if texts differ
_RULE = re.compile(r"[-,;|\s]*--[-,;|\s]*")  # sqlcmd draws one below the header
_DATE = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}|20\d{6}")
_CLOCK = re.compile(r"\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?(\s*[AaPp][Mm])?")
_TIME_NAME = re.compile(r"time|date|epoch|stamp", re.I)
_BEGIN_NAME = re.compile(r"start|begin|from", re.I)
_HOST_NAME = re.compile(
    r"(host|server|machine|computer|node|vm|sql_instance|db_?instance)[ _]?(name|id|identifier)?", re.I
)
_ADDRESS = re.compile(r"\S+:\d{2,5}")  # a Prometheus calls a host with its port an instance, others a disk
_NO_COUNTER = re.compile(r"interval\b.*|(.*[ _])?(id|index|number)", re.I)  # numbers that measure nothing
_IN_BRACKETS = re.compile(r"(?P<name>.*\S)\s*[(\[](?P<unit>[^()\[\]]+)[)\]]\s*")


class _Layout(NamedTuple):
    delimiter: str
    header: list[str]
    times: tuple[int, ...]  # one column, or date and time
    rows: list[str]


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
        lines = [line for line in content.splitlines() if line.strip(" \t,;|") and not _RULE.fullmatch(line)]
        layout = self._layout(lines)
        header = layout.header
        table = self._cells(layout)
        stamps = pc.binary_join_element_wise(*(table[str(column)] for column in layout.times), " ").to_pylist()
        numbers, texts = _sorted_out(table, layout)
        instance = self._instance_column(table, layout, texts, stamps)
        labels = [""] * len(stamps) if instance is None else table[str(instance)].fill_null("").to_pylist()
        rows_of_time: dict[object, list[int]] = {}
        for row, stamp in enumerate(stamps):
            rows_of_time.setdefault(row if instance is None else stamp, []).append(row)
        self.texts = [header[column] for column in texts if column != instance]
        self.hosts = sorted(_hosts(table, layout, texts))
        self.host = self.hosts[0] if len(self.hosts) == 1 else ""
        self.notes = [f"columns that hold text: {', '.join(self.texts)}"] if self.texts else []
        if (cut := len(layout.rows) - table.num_rows) > 0:
            self.notes.append(f"rows with too few or too many values: {cut}")
        counted = [c for c in numbers if c != instance and not _NO_COUNTER.fullmatch(header[c])]

        @cache
        def counter_for(label: str, column: int) -> Counter | None:
            name, unit = _name_and_unit(header[column])
            counter = Counter(f"{label} {header[column]}".strip(), "", name, label, unit)
            if not has(counter):
                return None
            if any(header[other] == header[column] for other in counted if other < column):
                raise refusal("double_columns", self.path, name=header[column])
            return counter

        def row_values(rows: list[int]) -> Iterator[tuple[Counter, float]]:
            for row in rows:
                for column in counted:
                    counter = counter_for(labels[row], column)
                    if counter is not None and np.isfinite(numbers[column][row]):
                        yield counter, float(numbers[column][row])

        for place, own in enumerate(rows_of_time.values()):
            yield Sample(stamps[own[0]], row_values(own), begins=place == 0)

    def _layout(self, lines: list[str]) -> _Layout:
        """Find the first line with a time, and its header: the last one before with as many cells.

        Raise StallmarkError if no line has a time.
        """
        seen: list[str] = []
        for delimiter in ",;\t|":
            header, heading = list[str](), ""
            for place, line in enumerate(lines[:_LINES]):
                cells = next(csv.reader([line], delimiter=delimiter, skipinitialspace=True), [])
                row = [cell.strip() for cell in cells]
                if 2 <= len(row) <= len(header) + 1 and (times := _time_columns(header, row, self._time_column)):
                    # A file that a tool appended to has its headers once more in the middle.
                    return _Layout(delimiter, header, times, [line for line in lines[place:] if line != heading])
                if len(row) > 1:
                    header, heading = row, line
                    seen = seen or [name for name in header if name]
        has = f" (there is {first_names(seen)})" if seen else ""
        if self._time_column:
            raise refusal("no_time_in", self.path, column=self._time_column, has=has)
        raise refusal("no_time_column", self.path, hint=self._hint, has=has)

    def _cells(self, layout: _Layout) -> pa.Table:
        """Return all cells as text, one column per place of the header."""
        names = [str(column) for column in range(len(layout.header))]
        try:
            table = pa.csv.read_csv(
                io.BytesIO("\n".join(layout.rows).encode()),
                pa.csv.ReadOptions(column_names=names),
                pa.csv.ParseOptions(delimiter=layout.delimiter, invalid_row_handler=lambda row: "skip"),
                pa.csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string())),
            )
        except pa.ArrowInvalid as error:
            raise refusal("not_csv", self.path, error=" ".join(str(error).split())) from None
        return pa.table([pc.utf8_trim_whitespace(column) for column in table.columns], names)

    def _instance_column(self, table: pa.Table, layout: _Layout, texts: list[int], stamps: list[str]) -> int | None:
        """Return the first column that distinguishes rows of one time, text before numbers, or None if every time has
        one row.

        Raise StallmarkError if no column does.
        """
        if _FILE in layout.header and (column := layout.header.index(_FILE)) in texts:
            return column
        if len(set(stamps)) == len(stamps):
            named = (column for column in texts if _LABEL.fullmatch(layout.header[column]))
            return next((column for column in named if len(table[str(column)].unique()) > 1), None)
        others = [c for c in range(len(layout.header)) if c not in texts and c not in layout.times]
        for column in [*texts, *others]:
            labels = table[str(column)].to_pylist()
            if len(set(labels)) <= len(labels) / 2 and len(set(zip(stamps, labels, strict=True))) == len(labels):
                return column
        if all(stamp != following for stamp, following in pairwise(stamps)):
            # A local clock that was put back: the same times come once more, later in the file.
            return None
        raise refusal("double_rows", self.path)


def _time_columns(header: Sequence[str], row: Sequence[str], asked: str | None) -> tuple[int, ...]:
    """Return the column of times, or those of date and time. Of a beginning and an end it is the end."""
    cells = list(enumerate(zip(header, row, strict=False)))
    if asked:
        return tuple(
            c for c, (name, text) in cells if name.lower() == asked.lower() and (is_time(text) or is_epoch(text))
        )
    times = [c for c, (name, text) in cells if is_time(text) and not is_time(name)]
    times += [c for c, (name, text) in cells if _TIME_NAME.search(name) and is_epoch(text)]
    if times:
        return (min(times, key=lambda c: (not _TIME_NAME.search(header[c]), bool(_BEGIN_NAME.search(header[c])), c)),)
    dates = [c for c, (_, text) in cells if _DATE.fullmatch(text)]
    clocks = [c for c, (_, text) in cells if _CLOCK.fullmatch(text)]
    return (dates[0], clocks[0]) if dates and clocks else ()


def _hosts(table: pa.Table, layout: _Layout, texts: Sequence[int]) -> set[str]:
    hosts = set[str]()
    for column in texts:
        name, own = layout.header[column], {text for text in table[str(column)].unique().to_pylist() if text}
        if _HOST_NAME.fullmatch(name) or (name.lower() == "instance" and all(map(_ADDRESS.fullmatch, own))):
            hosts |= {re.sub(r":\d+$", "", text) for text in own}
    return hosts


def _sorted_out(table: pa.Table, layout: _Layout) -> tuple[dict[int, np.ndarray], list[int]]:
    """Return the columns of numbers, with NaN for empty cells, and the positions of all other columns.

    Between semicolons a comma may be a decimal one. If other numbers of the file have points, either mark may separate
    thousands: then both are text.
    """
    columns = {c: table[str(c)] for c in range(len(layout.header)) if c not in layout.times}
    columns = {c: pc.if_else(pc.is_in(pc.utf8_lower(cells), _EMPTY), None, cells) for c, cells in columns.items()}
    columns = {c: cells for c, cells in columns.items() if cells.null_count < len(cells)}
    numbers, texts = {}, set[int]()
    if layout.delimiter == ";":
        commas, points = (
            {c for c, cells in columns.items() if pc.any(pc.match_substring_regex(cells, mark)).as_py()}
            for mark in (r"^[-+]?\d*,\d+$", r"^[-+]?\d*\.\d+$")
        )
        texts = commas | points if commas and points else texts
        columns = {c: pc.replace_substring(cells, ",", ".") for c, cells in columns.items()}
    for column in columns.keys() - texts:
        try:
            numbers[column] = columns[column].cast(pa.float64()).to_numpy()
        except pa.ArrowInvalid:
            texts.add(column)
    return numbers, sorted(texts)


def _name_and_unit(header: str) -> tuple[str, str]:
    brackets = _IN_BRACKETS.fullmatch(header)
    if brackets and (unit := find_unit("brackets", brackets["unit"].strip())):
        return brackets["name"], unit
    return header, find_unit("column", header)


# The series of a profile: those by our names.
#
#     Time,reads_per_s,read_bytes_per_s,data.writes_per_s,transactions_per_s
#     2026-03-02T10:00:00Z,812.3,6654362,40,118
#
# A series of another name is given ours by `--map "ReadIOPS=reads_per_s"`. Several series of one name add up. Rows of
# one time are distinguished by a column of names; one that begins with a class, as "log shop_log", is of that class:
#
#     Time,file,reads_total,read_bytes_total,read_stall_ms_total
#     2026-03-02T10:00:00Z,log shop_log,812,6651904,1624

_HINT = "it takes Perfmon's CSV, iostat with -t, sadf -j, a range query of Prometheus as JSON, and CSV with times"
_INSTANCE = re.compile(r'\binstance="([^":]+)')
_WORD = re.compile(r"[A-Za-z_:][\w:]*")
_TOTALS = {"_total", "total", "all"}
_SINCE_LONG = 200  # intervals: a total since so long ago hardly rises in each, more evenly than any load
_RARELY = 0.1

NAMES: dict[str, tuple[str, Meaning]] = {
    name if held in ("server", FileClass.DEVICE) else f"{held}.{name}": (held, meaning)
    for (object, name), [meaning] in known_counters("csv").items()
    for held in (["server"] if object == "server" else FileClass)
}
"""The class and meaning of our names: reads, reads_per_s, reads_total, read_ms, data.write_bytes_per_s and so on."""


def read(path: Path, recording: Recording, wanted: Wanted) -> None:
    """Add a file. Raise StallmarkError if none of its series has one of our names, or a series has another unit."""
    for theirs, ours in wanted.names.items():
        if ours not in NAMES:
            raise wrong_option("not_ours", ours=ours, theirs=theirs)
    names: dict[str, None] = {}

    def takes(counter: Counter) -> bool:
        names[counter.name] = None
        return _our_name(counter, wanted) is not None

    file = Table(path, hint=_HINT)
    readings = read_samples(file, recording, wanted, takes, is_ordered=False)
    series = {counter: name for counter in readings.values if (name := _our_name(counter, wanted))}
    single = {NAMES[ours][1].column for counter, (ours, _) in series.items() if counter.instance.lower() not in _TOTALS}
    totals = {
        counter for counter, (ours, row) in series.items() if row.lower() in _TOTALS and NAMES[ours][1].column in single
    }
    series = {counter: name for counter, name in series.items() if counter not in totals}
    _refuse_names(path, file, wanted, series, list(names))
    _refuse_sums(path, series)
    _refuse_turns(path, {counter: readings.values[counter] for counter in series})
    parts = []
    for counter, (ours, row) in series.items():
        held, (column, kind, factor, rank) = NAMES[ours]
        values = readings.values[counter] * factor
        parts.append(Part(column, kind, rank, (held, row), row or counter.name, values))
    refuse_rates(path, parts)
    _refuse_totals(path, parts)
    for total in sorted({counter.instance for counter in totals}):
        recording.note("total_rows", file=path.name, name=total)
    amounts = Amounts(readings, parts, recording)
    amounts.add_up({part.entity: part.entity[0] for part in amounts.parts})
    recording.note("end_of_interval", file=path.name)


def _our_name(counter: Counter, wanted: Wanted) -> tuple[str, str] | None:
    """Return our name of a series: by --map, by its own name, or by its column and the class of its row. With the last
    is the text that distinguishes its row from others of one time."""
    if (name := wanted.names.get(counter.name, counter.name)) in NAMES:
        return name, ""
    held = counter.instance.partition(" ")[0].lower()
    for name in (f"{held}.{counter.counter}", counter.counter):
        if counter.instance and name in NAMES:
            return name, counter.instance
    return None


Series = Mapping[Counter, tuple[str, str]]
"""Our name of each series, and the text that distinguishes its row."""


def _refuse_names(path: Path, file: Table, wanted: Wanted, series: Series, names: Sequence[str]) -> None:
    """Raise StallmarkError for two machines, or names without usable values."""
    hosts = {*file.hosts, *(host for counter in series for host in _INSTANCE.findall(counter.name))}
    if len(hosts) > 1:
        raise refusal("two_hosts", path, hosts=some_names(hosts), as_with="")
    for theirs in [*wanted.names, *(text for text in file.texts if text in NAMES)]:
        if any(theirs.endswith(text) for text in file.texts):
            raise refusal("text_series", path, series=theirs)
    if not names:
        # Labels stand before values.
        raise refusal("text_series", path, series=file.texts[-1]) if file.texts else refusal("no_values", path)
    for theirs in wanted.names:
        if theirs not in names:
            raise refusal("no_series", path, series=theirs, has=first_names(names))
    if not series:
        _refuse_unnamed(path, names)
        if "__name__" in head_of(path, 4096):
            raise refusal("raw_totals", path)
        raise refusal("no_name", path, has=first_names(names), quoted=in_quotes(names[0]))


def _refuse_sums(path: Path, series: Series) -> None:
    """Raise StallmarkError for series of one metric that do not add up, or one of another unit."""
    of_all = {NAMES[ours][1].column: ours for ours, row in series.values() if not row and "." not in ours}
    columns: dict[tuple[str, str], str] = {}
    rows: dict[tuple[str, str], str] = {}
    for counter, (ours, row) in series.items():
        held, meaning = NAMES[ours]
        if (other := columns.setdefault((held, meaning.column), ours)) != ours:
            raise refusal("same_metric", path, first=other, second=ours)
        if (whole := of_all.get(meaning.column)) and "." in ours and not row:
            raise refusal("whole_and_part", path, whole=whole, part=ours)
        key = (ours, row if meaning.kind == "mean" else "")
        if meaning.kind in ("mean", "state") and (other := rows.setdefault(key, counter.name)) != counter.name:
            raise refusal("no_sum", path, ours=ours, first=other, second=counter.name)
        if counter.unit and counter.unit != (unit := _unit_of(meaning)):
            own = unit or "a number for each interval"
            raise refusal("other_unit", path, series=counter.name, unit=counter.unit, ours=ours, own=own)


def _refuse_turns(path: Path, values: Mapping[Counter, np.ndarray]) -> None:
    """Raise StallmarkError if devices take turns, so that no time has values of two: their sums would be of one."""
    by_device: dict[str, np.ndarray] = {}
    for counter, own in values.items():
        by_device[counter.instance] = np.isfinite(own) | by_device.get(counter.instance, False)
    has = np.array(list(by_device.values()))
    turns = np.count_nonzero(np.diff(has.argmax(axis=0)))
    # A device may be replaced by another, and come back.
    if 1 < len(has) <= turns > has.shape[1] / 2 and (has.sum(axis=0) <= 1).all():
        raise refusal("scattered", path)


def _refuse_totals(path: Path, parts: Iterable[Part]) -> None:
    """Raise StallmarkError if all counts look like totals, which rise by a small part of their size."""
    counts = [part.amounts[np.isfinite(part.amounts)] for part in parts if part.kind == "count"]
    counts = [values for values in counts if len(np.unique(values)) > 1]
    rise = sum(np.maximum(np.diff(values), 0).mean() for values in counts)
    if (
        counts
        and all(len(values) > 2 and _restarts_rarely(values) for values in counts)
        and sum(np.median(values) for values in counts) > _SINCE_LONG * rise
    ):
        raise refusal("counts_rise", path)


def _restarts_rarely(values: np.ndarray) -> bool:
    """Return True if falls are rare, and each is to less than half, as when a total restarts."""
    falls = values[1:] < values[:-1]
    return bool(falls.mean() < _RARELY and (values[1:][falls] < values[:-1][falls] / 2).all())


def _unit_of(meaning: Meaning) -> str:
    if meaning.kind == "rate":
        return "B/s" if meaning.column.endswith("bytes") else "1/s"
    if meaning.column.endswith("_ms"):
        return "ms" if meaning.factor == 1 else "s"
    return "s" if meaning.column.endswith("_s") else ""


def _refuse_unnamed(path: Path, names: Sequence[str]) -> None:
    """Raise StallmarkError for a series with the name of a metric of Prometheus, or of its rate."""
    for name in names:
        metrics = {re.sub("^wmi_", "windows_", word): word for word in _WORD.findall(name)}
        for metric in metrics.keys() & OBJECTS.keys():
            column, _, factor, _ = known_counters("prometheus")[OBJECTS[metric], metric][0]
            if metrics.keys().isdisjoint({"rate", "irate"}):
                ours = f"{re.sub('ms$', 's', column) if factor == 1000 else column}_total"
                query = load_yaml("sentences")["commands"]["query"].replace(
                    "node_disk", "_".join(metrics[metric].split("_")[:2])
                )
                raise refusal("raw_total", path, series=name, quoted=in_quotes(name), ours=ours, as_in=query)
            if (ours := f"{column}_per_s") in NAMES:
                raise refusal("rate", path, series=name, quoted=in_quotes(name), ours=ours)
