r"""Windows performance counters as text: Performance Monitor, `relog -f csv`, `typeperf`, VMware's `esxtop -b`.

    "(PDH-CSV 4.0) (W. Europe Standard Time)(-60)","\\SQL01\PhysicalDisk(0 D:)\Avg. Disk sec/Read",…
    "11/21/2025 11:00:15.166","0.004311",…

The last parentheses hold the minutes that UTC is ahead of the local times (UTC = local + bias). They hold for the whole
file: nothing in it says when summer time began or ended. Some files have the bias of the other season. `typeperf` names
no zone, and a zone whose name has an apostrophe cuts the header short. A value that could not be taken is a blank. A
time stands at the end of what a rate or a mean covers.
"""

import csv
import io
import re
from datetime import timedelta, timezone

import numpy as np
import pyarrow as pa
import pyarrow.csv

from stallmark.errors import StallmarkError
from stallmark.record.attach.measurements import ExternalSeries, Measurements, Wanted

HEAD = re.compile(r'"?\(PDH-(CSV|TSV) \d')
_ZONE = re.compile(r"\(PDH-... [\d.]+\)\s*\((?P<name>.*)\)\s*\((?P<bias>-?\d+)\)")
_PATH = re.compile(r"\\\\(?P<host>[^\\]+)\\(?:(?P<object>[^\\(]+)(?:\((?P<instance>.*)\))?\\)?(?P<counter>[^\\]+)")
_UNITS = (  # by a counter's name; the first match counts
    (re.compile(r"^Avg\. Disk sec/", re.I), "s"),
    (re.compile(r"Bytes?( \w+)?/sec$", re.I), "B/s"),
    (re.compile(r"/sec$", re.I), "1/s"),
    (re.compile(r"^%|%$|hit ratio$", re.I), "%"),
    (re.compile(r"\(ms\)$", re.I), "ms"),
)


def read(text: str, wanted: Wanted) -> Measurements:
    """Return the counters asked for; raise StallmarkError for a file without samples or with values that are
    no numbers."""
    text = text.lstrip("\r\n")
    delimiter = "\t" if text.lstrip('"').startswith("(PDH-TSV") else ","
    rows = csv.reader(io.StringIO(text[: 1 << 24]), delimiter=delimiter)
    header, sample = next(rows, []), next(rows, [])
    if len(sample) < 2:
        raise StallmarkError(f"{wanted.file} holds no sample.")
    # A log may end its header with a comment, which is in no row.
    paths = {column: path for column, path in enumerate(header[: len(sample)]) if _PATH.fullmatch(path)}
    chosen = [column for column, path in paths.items() if wanted.has(path)]
    table = _table(text, delimiter, len(sample), chosen, wanted)
    series = []
    for column in chosen:
        values = table[str(column)].to_numpy()
        at = np.flatnonzero(np.isfinite(values))
        if len(at):
            series.append(_series(paths[column], at, values[at]))
    wanted.refuse_nothing(series, paths.values())
    zone = _ZONE.match(header[0])
    bias = int(zone["bias"]) if zone else 0
    return Measurements(
        table["0"].to_pylist(),
        series,
        timezone(timedelta(minutes=-bias)) if zone else None,
        f"bias {bias} min, {zone['name']}" if zone else "",
        next((one.host for one in series), ""),
    )


def _table(text: str, delimiter: str, width: int, chosen: list[int], wanted: Wanted) -> pa.Table:
    names = [str(column) for column in range(width)]
    numbers = {str(column): pa.float64() for column in chosen}
    try:
        return pa.csv.read_csv(
            io.BytesIO(text.encode()),
            pa.csv.ReadOptions(column_names=names, skip_rows=1),
            # `typeperf` ends with "The command completed successfully."
            pa.csv.ParseOptions(delimiter=delimiter, invalid_row_handler=lambda row: "skip"),
            pa.csv.ConvertOptions(
                column_types={"0": pa.string()} | numbers, null_values=["", " "], include_columns=["0", *numbers]
            ),
        )
    except pa.ArrowInvalid as error:
        raise StallmarkError(f"{wanted.file} cannot be read as Perfmon's CSV: {error}.") from None


def _series(path: str, at: np.ndarray, values: np.ndarray) -> ExternalSeries:
    found = _PATH.fullmatch(path)
    assert found
    counter = found["counter"].strip()
    unit = next((unit for pattern, unit in _UNITS if pattern.search(counter)), "")
    name = f"{found['object'].strip()} {counter}" if found["object"] else counter
    return ExternalSeries(name, found["instance"] or "", unit, at, values, found["host"])
