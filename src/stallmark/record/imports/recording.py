"""The contents of the files of an import: counts over spans of time, and facts about the machine."""

from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np

from stallmark.errors import StallmarkError
from stallmark.record.formats.dates import MONTH_FIRST, Clock, Schedule, find_order, find_zone
from stallmark.record.formats.sample import Recorded
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


class Spans:
    """Rows of numbers, each over a span of time in seconds since 1970; NaN if a row lacks a column."""

    def __init__(self) -> None:
        self.start, self.end = array("d"), array("d")
        self.columns: dict[str, array] = {}

    def __len__(self) -> int:
        return len(self.end)

    def add(self, start: float, end: float, values: Mapping[str, float]) -> None:
        """Add a row. Raise StallmarkError if there are too many for the memory."""
        if len(self) >= MOST_SPANS:
            raise StallmarkError(
                f"The files have more than {MOST_SPANS:,} samples: import a part of the time, or use longer intervals."
            )
        for name in values.keys() - self.columns.keys():
            self.columns[name] = array("d", [np.nan]) * len(self)
        self.start.append(start)
        self.end.append(end)
        for name, column in self.columns.items():
            column.append(values.get(name, np.nan))


@dataclass
class Recording:
    """The contents of the files so far. Columns of `spans` are named "data.reads" or "server.cpu_s"."""

    spans: Spans = field(default_factory=Spans)
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

    def add_rates(self, start: float, end: float, rates: Mapping[str, float | None]) -> None:
        """Add rates per second as counts, and states unchanged. None is unknown."""
        seconds = end - start
        known = {name: value for name, value in rates.items() if value is not None}
        self.spans.add(
            start,
            end,
            {
                name: value if name.partition(".")[2] in STATES else value * seconds
                for name, value in known.items()
                if np.isfinite(value)
            },
        )

    def clock(self, file: Recorded, wanted: Wanted) -> Clock:
        """Return the clock of a file. A given zone overrides that of a file, except UTC."""
        order = file.order or find_order(file.path, file.stamps(), wanted.dates, file.otherwise)
        if order == MONTH_FIRST and not (file.order or wanted.dates):
            self.note(f"{file.path.name}: its dates are read with the month before the day.")
        asked = find_zone(wanted.zone) if wanted.zone else None
        return Clock(file.path, order, file.zone if file.zone_words == "UTC" else asked or file.zone, self.note)

    def add_facts(self, file: Recorded) -> None:
        """Add a file's facts about its machine, and note its omissions."""
        self.host = self.host or file.host or None
        self.cores = file.cores or self.cores
        for note in [*(f"left out: {phrase}" for phrase in file.notes), *file.remarks]:
            self.note(f"{file.path.name}: {note}.")

    def note(self, sentence: str) -> None:
        if sentence not in self.notes:
            self.notes.append(sentence)


class Steps:
    """The spans between samples of one file, each from the sample before it, or as long as it states.

    Times that do not move forward are counted, for a note.
    """

    def __init__(self, path: Path, recording: Recording):
        self._path, self._recording = path, recording
        self._before: float | None = None
        self._same = 0
        self._back: list[tuple[float, float]] = []

    def forget_last(self) -> None:
        """Forget the last sample: the next one covers an unknown time."""
        self._before = None

    def span_to(self, end: float, seconds: float | None = None) -> tuple[float, float] | None:
        """Return the span that ends now, or None for a first sample and for one not after its predecessor.

        `seconds` are rounded: a span that starts within 2 s of the sample before begins with it.
        """
        before, self._before = self._before, end
        if seconds is not None:
            near = before is not None and before < end and abs(end - before - seconds) <= _ROUNDED_S
            begin = before if near and before is not None else end - seconds
            return (begin, end) if seconds > 0 else None
        if before is None:
            return None
        if end > before:
            return before, end
        if end == before:
            self._same += 1
        else:
            self._back.append((end, before - end))
            self._recording.clock_set.append(end)
        return None

    def note_irregular(self) -> None:
        """Note times that go back or are repeated."""
        if self._same:
            self._recording.note(f"{self._path.name}: {_samples(self._same)} of the time of the one before: left out.")
        if self._back:
            seconds = max(by for _, by in self._back)
            times = "once" if len(self._back) == 1 else f"{len(self._back)} times"
            self._recording.note(
                f"{self._path.name}: its times go back {times}, by up to {seconds:.0f} s. The clock was set, or the "
                "rows are out of order; a time that was there already counts once."
            )


def some_names(names: Iterable[str]) -> str:
    """Return the first names in alphabetical order, for a sentence."""
    ordered = sorted(set(names))
    return ", ".join(ordered[:_NAMED]) + (", …" if len(ordered) > _NAMED else "")


def _samples(count: int) -> str:
    return "1 sample is" if count == 1 else f"{count} samples are"
