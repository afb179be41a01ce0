"""The samples of one file as a table of times and counters, and the spans between its rows."""

from array import array
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from stallmark.record.formats.dates import MONTH_FIRST, Clock, choose_order, find_zone
from stallmark.record.formats.sample import Counter, Has, Recorded
from stallmark.record.formats.sentences import count_with_noun, refusal
from stallmark.record.imports.recording import Recording, Wanted
from stallmark.record.profile.manifest import GAP

MOST_SAMPLES = 1_000_000
"""Eleven days of a sample every second: about a GB of memory."""
MOST_VALUES = 1 << 28  # 2 GB
_ROUNDED_S = 2.0
Cells = dict[Counter, tuple[Any, Any]]
"""The places of the times of each counter, and its values."""


@dataclass
class Readings:
    """The samples of one file. `values` are NaN if unknown."""

    name: str
    times: np.ndarray
    values: dict[Counter, np.ndarray]
    seconds: np.ndarray | None = None
    """The covered time, NaN if the file does not state it."""
    begins: np.ndarray | None = None
    """A mask of the samples after a time of unknown length; None if every long time is one."""

    def spans(self, kept: np.ndarray, recording: Recording) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the kept rows that have a span, and the start and end of each.

        A span begins at the sample before, or the stated seconds before its end. Stated seconds are rounded: a span
        that starts within 2 s of the sample before begins with it.
        """
        ends = self.times[kept]
        before = np.concatenate([[np.nan], ends[:-1]])[: len(ends)]
        stated = np.full(len(ends), np.nan) if self.seconds is None else self.seconds[kept]
        begins = ends - before > self.longest_s if self.begins is None else self.begins[kept]
        follows = ~begins & np.isfinite(before)
        is_near = (before < ends) & (np.abs(ends - before - stated) <= _ROUNDED_S)
        starts = np.where(np.isnan(stated) | is_near, before, ends - stated)
        by_stamp = follows & np.isnan(stated)
        same, back = int((by_stamp & (ends == before)).sum()), by_stamp & (ends < before)
        recording.clock_set += ends[back].tolist()
        if same:
            recording.note("same_time", file=self.name, samples=count_with_noun(same, "sample"))
        if back.any():
            most_s, times = np.max((before - ends)[back]), count_with_noun(int(back.sum()), "time")
            recording.note("clock_back", file=self.name, times=times, most_s=most_s)
        rows = np.flatnonzero(np.where(np.isnan(stated), follows & (ends > before), stated > 0))
        return rows, starts[rows], ends[rows]

    @property
    def longest_s(self) -> float:
        """The longest time between two samples without a gap."""
        return GAP * float(np.median(np.diff(self.times))) if len(self.times) > 1 else 0.0


def read_samples(
    file: Recorded, recording: Recording, wanted: Wanted, has: Has, *, is_ordered: bool = True
) -> Readings:
    """Read a file with the counters that `has` accepts. A given zone overrides that of the file, except UTC."""
    name = file.path.name
    cells: Cells = {}
    times, seconds, begins = array("d"), array("d"), array("b")
    order = file.order or choose_order(file.path, file.stamps(), wanted.dates, file.otherwise)
    if order == MONTH_FIRST and not (file.order or wanted.dates):
        recording.note("month_first", file=name)
    asked, clock, repeated = find_zone(wanted.zone) if wanted.zone else None, None, False
    for place, sample in enumerate(file.samples(has)):
        if place >= MOST_SAMPLES:
            raise refusal("many_samples", file.path, most=MOST_SAMPLES, what="samples")
        if clock is None or sample.begins:
            zone = file.zone if file.zone_words == "UTC" else asked or file.zone
            clock = Clock(file.path, order, zone, file.zone_words)
        times.append(clock.instant(sample.stamp))
        seconds.append(np.nan if sample.seconds is None else sample.seconds)
        begins.append(sample.begins)
        for counter, value in sample.values:
            if value >= 0:
                places, values = cells.setdefault(counter, (array("q"), array("d")))
                places.append(place)
                values.append(value)
        repeated |= clock.is_repeated
    if repeated:
        recording.note("summer_time", file=name)
    recording.restarts += [clock.instant(stamp) for stamp in file.restarts if clock]
    recording.host = recording.host or file.host or None
    recording.cores = file.cores or recording.cores
    for kind, phrases in (("left_out", file.notes), ("converted", file.remarks)):
        for phrase in phrases:
            recording.note(kind, file=name, phrase=phrase)
    if not is_ordered:
        readings = in_order(file.path, np.array(times), cells)
        if double := len(times) - len(readings.times):
            recording.note("double_times", file=name, count=double)
        return readings
    columns = _columns(file.path, np.arange(len(times)), cells)
    return Readings(name, np.array(times), columns, np.array(seconds), np.array(begins, dtype=bool))


def in_order(path: Path, times: np.ndarray, cells: Cells) -> Readings:
    """Return the samples in the order of time; of two values of one time the first counts."""
    distinct_times = np.unique(times)
    return Readings(path.name, distinct_times, _columns(path, np.searchsorted(distinct_times, times), cells))


def _columns(path: Path, rows: np.ndarray, cells: Cells) -> dict[Counter, np.ndarray]:
    """Return the values by row of each counter, and empty the cells meanwhile; `rows` has the row of each time."""
    if len(cells) * (rows.max(initial=-1) + 1) > MOST_VALUES:
        raise refusal("many_samples", path, most=MOST_VALUES, what="values")
    columns = {}
    for counter in list(cells):
        places, values = map(np.array, cells.pop(counter))
        known = np.flatnonzero(np.isfinite(values))[::-1]  # the first value of a time is written last, so it counts
        columns[counter] = column = np.full(rows.max(initial=-1) + 1, np.nan)
        column[rows[places[known]]] = values[known]
    return columns
