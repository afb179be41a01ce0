"""The contents of the files of an import: columns of numbers over spans of time, and facts about the machine."""

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np

from stallmark.errors import StallmarkError
from stallmark.record.formats.dates import MONTH_FIRST, Clock, Schedule, choose_order, find_zone
from stallmark.record.formats.sample import Counter, Has, Recorded
from stallmark.record.profile.interval_table import SERVER, STATES, FileClass

WHOLE_MACHINE = "CPU time is that of the whole machine."
MOST_SPANS = 1_000_000
"""Eleven days of a sample every second: about a GB of memory."""
COUNTS = tuple(name for name in SERVER.names[2:] if name not in STATES)
_ROUNDED_S = 2.0
_NAMED = 8  # maximum names in a sentence


@dataclass(frozen=True)
class Wanted:
    """The options of an import."""

    classes: Mapping[str, FileClass] = field(default_factory=dict)
    """The class of a device, by its name."""
    zone: str | None = None
    """The zone of local times."""
    dates: Literal["month-first", "day-first"] | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    """Our names of a CSV's series, by their own."""
    schedule: Schedule | None = None
    """The times of iostat reports without times."""


class Rows(NamedTuple):
    """Columns of numbers over spans of time in seconds since 1970, as "data.reads"; NaN if unknown."""

    start: np.ndarray
    end: np.ndarray
    columns: dict[str, np.ndarray]


@dataclass
class Recording:
    """The contents of the files so far. Of two rows over one span the first counts, column by column."""

    rows: list[Rows] = field(default_factory=list)
    host: str | None = None
    engine: Literal["mssql", "postgresql"] | None = None
    cores: int | None = None
    restarts: list[float] = field(default_factory=list)
    clock_set: list[float] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    devices: set[str] = field(default_factory=set)
    """The names of all devices in the files."""
    mapped: set[str] = field(default_factory=set)
    """The given names with a class that exist in the files."""

    def note(self, sentence: str) -> None:
        if sentence not in self.notes:
            self.notes.append(sentence)


class Part(NamedTuple):
    """The amounts of one device, database or file in each row, NaN if unknown. In a row that does not need the part, an
    unknown amount is zero."""

    name: str
    amounts: np.ndarray
    needed: np.ndarray


class Sums:
    """Sums over the parts of columns, for a file whose name leads the notes."""

    def __init__(self, recording: Recording, file: str, rows: int):
        self._recording, self._file, self._rows = recording, file, rows
        self._unknown, self._absent = set[str](), set[str]()
        self.were_omitted = False
        """Idle devices were left out of the file."""

    def add_up(self, parts: Iterable[Part]) -> np.ndarray:
        """Return the sum in each row, NaN if a needed part is unknown, or no part is needed or known."""
        total = np.zeros(self._rows)
        unknown, seen = np.zeros(self._rows, dtype=bool), np.zeros(self._rows, dtype=bool)
        unneeded = list[tuple[str, np.ndarray]]()
        for name, amounts, needed in parts:
            known = np.isfinite(amounts)
            total += np.where(known, amounts, 0.0)
            unknown |= needed & ~known
            seen |= needed | known
            self._unknown |= {name} if known.any() and (needed & ~known).any() else set()
            unneeded.append((name, ~needed & ~known))
        self._absent |= {name for name, rows in unneeded if (rows & seen).any()}
        return np.where(unknown | ~seen, np.nan, total)

    def note(self) -> None:
        """Note the parts that were not there in some rows."""
        if self.were_omitted:
            self._recording.note(f"{self._file}: devices without I/O were left out in it; they count as 0 there.")
        if unknown := self._unknown - {""}:
            self._recording.note(f"{self._file}: not known while values of it are missing: {some_names(unknown)}.")
        if absent := self._absent - {""}:
            self._recording.note(f"{self._file}: not there all the time, and 0 while not: {some_names(absent)}.")


class Samples:
    """All samples of one file with the counters that `has` accepts: the time of each, and the values by counter.

    A given zone overrides that of the file, except UTC.
    """

    def __init__(self, file: Recorded, recording: Recording, wanted: Wanted, has: Has):
        self._file, self._recording = file, recording
        self._cells: dict[Counter, tuple[array, array]] = {}
        ends, stated, begins = array("d"), array("d"), array("b")
        order = file.order or choose_order(file.path, file.stamps(), wanted.dates, file.otherwise)
        if order == MONTH_FIRST and not (file.order or wanted.dates):
            recording.note(f"{file.path.name}: its dates are read with the month before the day.")
        asked, clock, repeated = find_zone(wanted.zone) if wanted.zone else None, None, False
        for place, sample in enumerate(file.samples(has)):
            if place >= MOST_SPANS:
                raise StallmarkError(
                    f"The files have more than {MOST_SPANS:,} samples: import a part of the time, or use longer "
                    "intervals."
                )
            if clock is None or sample.begins:
                zone = file.zone if file.zone_words == "UTC" else asked or file.zone
                clock = Clock(file.path, order, zone, file.zone_words)
            ends.append(clock.instant(sample.stamp))
            stated.append(np.nan if sample.seconds is None else sample.seconds)
            begins.append(sample.begins)
            for counter, value in sample.values:
                places, values = self._cells.setdefault(counter, (array("q"), array("d")))
                places.append(place)
                values.append(value)
            repeated |= clock.is_repeated
        if repeated:
            recording.note(
                f"{file.path.name}: summer time ended within it. The times of that hour are there twice; they are "
                "taken in the order of the file."
            )
        self.times = np.array(ends)
        self._set_spans(np.array(stated), np.array(begins, dtype=bool))
        recording.restarts += [clock.instant(stamp) for stamp in file.restarts if clock]
        recording.host = recording.host or file.host or None
        recording.cores = file.cores or recording.cores
        for note in [*(f"left out: {phrase}" for phrase in file.notes), *file.remarks]:
            recording.note(f"{file.path.name}: {note}.")

    def _set_spans(self, stated: np.ndarray, begins: np.ndarray) -> None:
        """Find the span of each sample: from the sample before it, or as long as it states.

        Stated seconds are rounded: a span that starts within 2 s of the sample before begins with it.
        """
        ends = self.times
        before = np.concatenate([[np.nan], ends[:-1]])[: len(ends)]
        follows = ~begins & np.isfinite(before)
        is_near = (before < ends) & (np.abs(ends - before - stated) <= _ROUNDED_S)
        starts = np.where(np.isnan(stated) | is_near, before, ends - stated)
        self._kept = np.where(np.isnan(stated), follows & (ends > before), stated > 0)
        self.start, self.end = starts[self._kept], ends[self._kept]
        self.seconds = self.end - self.start
        by_stamp = follows & np.isnan(stated)
        same, back = int((by_stamp & (ends == before)).sum()), by_stamp & (ends < before)
        self._recording.clock_set += ends[back].tolist()
        if same:
            samples = "1 sample is" if same == 1 else f"{same} samples are"
            self._recording.note(f"{self._file.path.name}: {samples} of the time of the one before: left out.")
        if back.any():
            times = "once" if back.sum() == 1 else f"{back.sum()} times"
            self._recording.note(
                f"{self._file.path.name}: its times go back {times}, by up to {np.max((before - ends)[back]):.0f} s. "
                "The clock was set, or the rows are out of order; a time that was there already counts once."
            )

    @property
    def counters(self) -> Sequence[Counter]:
        """The counters with a value."""
        return list(self._cells)

    def points(self, counter: Counter) -> tuple[np.ndarray, np.ndarray]:
        """Return the times and values of a counter, only the first of each time, without those below zero."""
        places, values = map(np.array, self._cells[counter])
        known = values >= 0
        times, first = np.unique(self.times[places[known]], return_index=True)
        return times, values[known][first]

    def values(self, counter: Counter) -> np.ndarray:
        """Return the values of a counter in the rows with a span, NaN if unknown or below zero."""
        values = np.full(len(self._kept), np.nan)
        if counter in self._cells:
            values[np.array(self._cells[counter][0])] = self._cells[counter][1]
        return np.where(values >= 0, values, np.nan)[self._kept]


def some_names(names: Iterable[str]) -> str:
    """Return the first names in alphabetical order, for a sentence."""
    ordered = sorted(set(names))
    return ", ".join(ordered[:_NAMED]) + (", …" if len(ordered) > _NAMED else "")
