"""CSV of a range query: a row for each point, or Grafana's "series to columns".

    __name__,device,instance,timestamp,value
    node_disk_reads_completed_total,sda,sql01:9100,1772445600,812344

    "Time","node_disk_reads_completed_total{device=""sda"", instance=""sql01:9100""}",…
    "2026-03-02 10:00:00",812344,…

Times are seconds or milliseconds since 1970, or dates, which are local ones unless they say their offset.
"""

import csv
import re
from array import array
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from stallmark.errors import StallmarkError
from stallmark.record.attach.times import is_epoch, is_time
from stallmark.record.imports.clock import Clock, order_of
from stallmark.record.imports.prometheus import MOST_SERIES, Labels, Series, read_series
from stallmark.record.imports.recording import Recording, Wanted
from stallmark.record.text_stream import head_of, lines_in, opened

_TIME = ("timestamp", "time", "Time", "ts")
_NAME = ("__name__", "metric", "name")
_SERIES = re.compile(r"\s*(?P<name>[A-Za-z_:][\w:]*)\s*\{(?P<labels>.*)\}\s*", re.S)
_LABEL = re.compile(r'(\w+)\s*=\s*"((?:[^"\\]|\\.)*)"')


def looks(head: str) -> bool:
    """Tell whether a file that begins so has the columns of a range query."""
    first = next(csv.reader([head.splitlines()[0]]), []) if head.strip() else []
    return any(name in first for name in _TIME) and (
        ("value" in first and any(name in first for name in _NAME)) or any(_SERIES.fullmatch(name) for name in first)
    )


def read(path: Path, recording: Recording, wanted: Wanted) -> None:
    header = next(csv.reader([head_of(path).splitlines()[0]]))
    time = next(header.index(name) for name in _TIME if name in header)
    to_seconds = _clock(path, time, recording, wanted)
    series: dict[tuple[tuple[str, str], ...], tuple[array, array]] = {}
    cut = 0
    with opened(path) as text:
        try:
            for number, row in enumerate(csv.reader(lines_in(path, text))):
                if not row or number == 0:
                    continue
                if len(row) != len(header):
                    cut += 1
                    continue
                at = to_seconds(row[time])
                for labels, value in _points(header, row, time):
                    if len(series) > MOST_SERIES:
                        raise StallmarkError(f"{path} has more than {MOST_SERIES:,} series: ask for one machine's.")
                    if (number_of := _number(path, value)) is not None:
                        places, values = series.setdefault(tuple(sorted(labels.items())), (array("d"), array("d")))
                        places.append(at)
                        values.append(number_of)
        except csv.Error as error:
            raise StallmarkError(f"{path} cannot be read as CSV ({error}).") from None
    if cut:
        recording.note(f"{path.name}: {cut} row{'s' * (cut > 1)} with too few or too many values left out.")
    found: list[Series] = [(dict(key), np.array(at), np.array(values)) for key, (at, values) in series.items()]
    read_series(path, found, recording, wanted)


def _points(header: Sequence[str], row: Sequence[str], time: int) -> list[tuple[Labels, str]]:
    if "value" in header:
        value = header.index("value")
        labels: Labels = {
            "__name__" if name in _NAME else name: cell
            for place, (name, cell) in enumerate(zip(header, row, strict=True))
            if place not in (time, value) and cell
        }
        return [(labels, row[value])]
    found: list[tuple[Labels, str]] = []
    for name, cell in zip(header, row, strict=True):
        if series := _SERIES.fullmatch(name):
            found.append(({"__name__": series["name"], **dict(_LABEL.findall(series["labels"]))}, cell))
    return found


def _clock(path: Path, time: int, recording: Recording, wanted: Wanted) -> Callable[[str], float]:
    """Return how to read the times of a file, as its first one shows."""

    def stamps() -> Iterator[str]:
        with opened(path) as text:
            for row in csv.reader(lines_in(path, text)):
                if len(row) > time and is_time(row[time]):
                    yield row[time]

    with opened(path) as text:
        rows = csv.reader(lines_in(path, text))
        next(rows, None)
        first = next((row[time] for row in rows if len(row) > time), "")
    if is_epoch(first.partition(".")[0]):
        return lambda stamp: _since_1970(path, stamp)
    clock = Clock(path, recording, wanted, order_of(path, stamps(), wanted))
    return clock.instant


def _since_1970(path: Path, stamp: str) -> float:
    try:
        seconds = float(stamp)
    except ValueError:
        raise StallmarkError(f"The time {stamp[:40]!r} of {path} is no number, as others are.") from None
    return seconds / 1000 if seconds > 1e11 else seconds


def _number(path: Path, text: str) -> float | None:
    if text.strip() in ("", "NaN", "null", "undefined"):
        return None
    try:
        return float(text)
    except ValueError:
        raise StallmarkError(
            f"{text[:40]!r} in {path} is no number: export values without a unit, as Grafana does with “raw”."
        ) from None
