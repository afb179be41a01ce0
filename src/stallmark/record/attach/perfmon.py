r"""Windows performance counters as text: Performance Monitor, `relog -f csv`, `typeperf`, VMware's `esxtop -b`.
    "(PDH-CSV 4.0) (W. Europe Standard Time)(-60)","\\SQL01\PhysicalDisk(0 D:)\Avg. Disk sec/Read",…
    "11/21/2025 11:00:15.166","0.004311",…

The last parentheses hold the minutes that UTC is ahead of the local times (UTC = local + bias). They hold for the whole
file: nothing in it says when summer time began or ended. Some files have the bias of the other season. `typeperf` names
no zone, and a zone whose name has an apostrophe cuts the header short. A value that could not be taken is a blank. A
time stands at the end of what a rate or a mean covers.
"""

import csv
import re
from collections.abc import Iterator
from datetime import timedelta, timezone

import numpy as np
import pyarrow as pa
import pyarrow.csv

from stallmark.errors import StallmarkError, as_reason
from stallmark.record.attach.measurements import ExternalSeries, Kept, Measurements, Wanted
from stallmark.record.attach.times import is_time
from stallmark.record.text_stream import AsUtf8, lines_in, opened

HEAD = re.compile(r'\s*"?\(PDH-(CSV|TSV) \d')
_ZONE = re.compile(r"\(PDH-... [\d.]+\)\s*\((?P<name>.*)\)\s*\((?P<bias>-?\d+)\)")
_COMMA = re.compile(r"-?\d+,\d+([eE][-+]?\d+)?")
_PATH = re.compile(r"\\\\(?P<host>[^\\]+)\\(?:(?P<object>[^\\(]+)(?:\((?P<instance>.*)\))?\\)?(?P<counter>[^\\]+)")
_UNITS = (  # by a counter's name; the first match counts
    (re.compile(r"^Avg\. Disk sec/", re.I), "s"),
    (re.compile(r"Bytes?( \w+)?/sec$", re.I), "B/s"),
    (re.compile(r"/sec$", re.I), "1/s"),
    (re.compile(r"^%|%$|hit ratio$", re.I), "%"),
    (re.compile(r"\(ms\)$", re.I), "ms"),
)


def read(wanted: Wanted, kept: Kept) -> Measurements:
    """Return the counters asked for; raise StallmarkError for a file without samples or with values that are
    no numbers."""
    with opened(wanted.file) as text:
        lines = (line for line in lines_in(wanted.file, text) if line.strip())
        first, sample = next(lines, ""), next(lines, "")
        delimiter = delimiter_of(first)
        header, cells = (_cells(line, delimiter, wanted) for line in (first, sample))
        if len(cells) < 2:
            raise StallmarkError(f"{wanted.file} holds no sample.")
        # A log may end its header with a comment, which is in no row.
        paths = {column: path for column, path in enumerate(header[: len(cells)]) if _PATH.fullmatch(path)}
        commas = any(_COMMA.fullmatch(cell) for cell in cells) or (
            delimiter == ";" and not any("." in c for c in cells[1:])
        )
        skipped: list[str] = []
        chosen = [column for column, path in paths.items() if wanted.has(path)]
        stamps: list[str] = []
        found: dict[int, list[tuple[np.ndarray, np.ndarray]]] = {}
        for batch in _batches(AsUtf8(text, sample), delimiter, len(cells), chosen, wanted, commas, skipped):
            for column in chosen:
                values = batch.column(str(column)).to_numpy(zero_copy_only=False)
                at = np.flatnonzero(np.isfinite(values))
                if len(at):
                    at_kept = at[kept.of(at + len(stamps))]
                    found.setdefault(column, []).append((at_kept + len(stamps), values[at_kept]))
            stamps += batch.column("0").to_pylist()
    wanted.refuse_nothing(bool(found), paths.values())
    series = [_series(paths[column], *map(np.concatenate, zip(*parts, strict=True))) for column, parts in found.items()]
    zone = _ZONE.match(header[0])
    bias = int(zone["bias"]) if zone and len(zone["bias"]) < 6 else 0
    return Measurements(
        stamps,
        [one for one in series if len(one.at)],
        timezone(timedelta(minutes=-bias)) if zone and abs(bias) < 24 * 60 else None,
        f"bias {bias} min, {zone['name']}" if zone else "",
        next((one.host for one in series), ""),
        [f"rows with too few or too many values: {len(skipped)}"] if skipped else [],
    )


def delimiter_of(header: str) -> str:
    """Return what separates the cells: a semicolon where a program for tables has written the file anew."""
    plain = header.lstrip().lstrip('"')
    return "\t" if plain.startswith("(PDH-TSV") else ";" if '";"' in header or ");\\\\" in header else ","


def _cells(line: str, delimiter: str, wanted: Wanted) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error as error:
        raise _unreadable(wanted, error) from None


def _batches(
    source: AsUtf8, delimiter: str, width: int, chosen: list[int], wanted: Wanted, commas: bool, skipped: list[str]
) -> Iterator[pa.RecordBatch]:
    """Yield the times and the numbers of the columns chosen, some rows at a time. Rows of another width go to
    `skipped`."""

    def skip(row: pa.csv.InvalidRow) -> str:
        if is_time(row.text.partition(delimiter)[0].strip('"')):  # `typeperf` ends with a sentence
            skipped.append(row.text)
        return "skip"

    numbers = {str(column): pa.float64() for column in chosen}
    try:
        yield from pa.csv.open_csv(
            source,
            pa.csv.ReadOptions(
                column_names=[str(column) for column in range(width)], use_threads=False, block_size=1 << 22
            ),
            pa.csv.ParseOptions(delimiter=delimiter, invalid_row_handler=skip),
            pa.csv.ConvertOptions(
                column_types={"0": pa.string()} | numbers,
                null_values=["", " "],
                include_columns=["0", *numbers],
                decimal_point="," if commas else ".",
            ),
        )
    except pa.ArrowInvalid as error:
        raise _unreadable(wanted, error) from None


def _unreadable(wanted: Wanted, error: Exception) -> StallmarkError:
    return StallmarkError(f"{wanted.file} cannot be read as Perfmon's CSV: {as_reason(' '.join(str(error).split()))}.")


def _series(path: str, at: np.ndarray, values: np.ndarray) -> ExternalSeries:
    found = _PATH.fullmatch(path)
    assert found
    counter = found["counter"].strip()
    unit = next((unit for pattern, unit in _UNITS if pattern.search(counter)), "")
    name = f"{found['object'].strip()} {counter}" if found["object"] else counter
    return ExternalSeries(name, found["instance"] or "", unit, at, values, found["host"])
