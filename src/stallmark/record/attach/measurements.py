"""The measurements of a file as series of one counter each, over the times as the file writes them."""

import fnmatch
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import tzinfo
from functools import cache
from pathlib import Path

import numpy as np

from stallmark.errors import StallmarkError
from stallmark.record.formats.open import READERS, detect_format
from stallmark.record.formats.sample import Counter
from stallmark.record.formats.table import Table

MOST_COUNTERS = 50_000
_NAMED = 6  # counters named in a refusal


@dataclass(frozen=True)
class ExternalSeries:
    """One counter of one instance. `at` are positions in the file's times, `values` the values measured there."""

    counter: str  # "PhysicalDisk Avg. Disk sec/Read", "r_await"
    instance: str  # "0 C:", "nvme0n1"; empty where the counter has none
    unit: str  # as the file has it: "s", "ms", "KiB/s"; empty where it does not say
    at: np.ndarray
    values: np.ndarray
    host: str = ""


@dataclass(frozen=True)
class Measurements:
    """The content of a file. `zone` is the one that the file names; its times may also carry their own offset."""

    stamps: Sequence[str]  # in the order of the file
    series: list[ExternalSeries]
    zone: tzinfo | None = None
    zone_said: str = ""  # how the file names it
    host: str = ""
    notes: list[str] = field(default_factory=list)  # what was left out, a phrase each


@dataclass(frozen=True)
class Wanted:
    """The request to a file: counters by pattern (all if there is none), and the column that holds the times."""

    file: Path
    counters: tuple[str, ...] = ()
    time_column: str | None = None

    def has(self, name: str) -> bool:
        """Tell whether `name` contains one of the patterns; `*` and `?` stand for any text and any character."""
        return not self.counters or any(_contains(name, pattern) for pattern in self.counters)

    def refuse_nothing(self, found: bool, names: Iterable[str]) -> None:
        """Raise StallmarkError where nothing was `found` among the counters called `names`."""
        if found:
            return
        if not (there := list(dict.fromkeys(names))):
            raise StallmarkError(f"{self.file} holds no measurements.")
        if not any(self.has(name) for name in there):
            some = ", ".join(there[:_NAMED]) + (", …" if len(there) > _NAMED else "")
            asked = " or ".join(self.counters)
            raise StallmarkError(f"No counter of {self.file} matches {asked}: it has {some}.")
        raise StallmarkError(f"{self.file} has no value in the counters asked for.")


@cache
def _contains(name: str, pattern: str) -> bool:
    # A bracket is part of a counter's name more often than a set of characters.
    plain = pattern.lower().replace("[", "[[]")
    return fnmatch.fnmatchcase(name.lower(), f"*{plain}*")


@dataclass(frozen=True)
class Kept:
    """The samples whose values are kept, by their places in the file's times: a mask, or None for all."""

    places: np.ndarray | None = None

    def has(self, place: int) -> bool:
        return self.places is None or (place < len(self.places) and bool(self.places[place]))

    def has_any(self) -> bool:
        return self.places is None or bool(self.places.any())


NOTHING = Kept(np.zeros(0, bool))
"""For a first reading, which finds out when the samples were taken."""


def read(wanted: Wanted, format: str | None = None, kept: Kept = Kept()) -> tuple[str, Measurements]:
    """Return the file's format, told by its content unless it is given, and its measurements.

    Raise StallmarkError for a file that cannot be read, OSError for one that cannot be opened.
    """
    format = format or detect_format(wanted.file)
    if format == "prometheus":
        raise StallmarkError(
            f"{wanted.file} holds totals of Prometheus: ask for rate() of them, and attach a CSV of it, as Grafana "
            "exports it."
        )
    file = READERS[format](wanted.file) if format in READERS else Table(wanted.file, wanted.time_column)
    stamps: list[str] = []
    names: dict[str, None] = {}
    columns: dict[Counter, tuple[array, array]] = {}

    def takes(counter: Counter) -> bool:
        names[counter.name] = None
        return wanted.has(counter.name)

    for sample in file.samples(takes):
        if sample.begins and file.first_since_start:
            continue
        place = len(stamps)
        stamps.append(sample.stamp)
        if place and not kept.has(place):
            continue
        for counter, value in sample.values:
            at, values = columns.setdefault(counter, (array("q"), array("d")))
            if len(columns) > MOST_COUNTERS:
                raise StallmarkError(
                    f"There are more than {MOST_COUNTERS:,} counters: name those you want with --counter."
                )
            if kept.has(place):
                at.append(place)
                values.append(value)
    if kept.has_any():
        wanted.refuse_nothing(bool(columns), names)
    first = ["the first report, which may cover the time since the machine was started"] * file.first_since_start
    return format, Measurements(
        stamps,
        [_series(counter, *arrays) for counter, arrays in columns.items() if arrays[0]],
        file.zone,
        file.zone_words,
        file.host,
        first + file.notes,
    )


def _series(counter: Counter, at: array, values: array) -> ExternalSeries:
    label = f"{counter.object} {counter.counter}".strip()
    return ExternalSeries(label, counter.instance, counter.unit, np.array(at), np.array(values), counter.host)
