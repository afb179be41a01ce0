"""The common form of all formats: series of one counter each, over the times as the file writes them."""

import fnmatch
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import tzinfo
from functools import cache
from pathlib import Path

import numpy as np

from stallmark.errors import StallmarkError

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
    notes: list[str] = field(default_factory=list)  # what was left out, a sentence each


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

    def of(self, at: np.ndarray) -> np.ndarray:
        """Return which of the places are kept."""
        if self.places is None:
            return np.ones(len(at), bool)
        known = at < len(self.places)
        known[known] = self.places[at[known]]
        return known


NOTHING = Kept(np.zeros(0, bool))
"""For a first reading, which finds out when the samples were taken."""


class Columns:
    """Series collected sample by sample, where a file holds one object per sample."""

    def __init__(self, kept: Kept) -> None:
        self._kept = kept
        self._found: dict[tuple[str, str, str], tuple[array, array]] = {}

    def __bool__(self) -> bool:
        """Tell whether there was any value, kept or not."""
        return bool(self._found)

    def add(self, place: int, counter: str, instance: str, unit: str, value: float) -> None:
        at, values = self._found.setdefault((counter, instance, unit), (array("q"), array("d")))
        if len(self._found) > MOST_COUNTERS:
            raise StallmarkError(f"There are more than {MOST_COUNTERS:,} counters: name those you want with --counter.")
        if self._kept.has(place):
            at.append(place)
            values.append(value)

    def series(self) -> list[ExternalSeries]:
        return [ExternalSeries(*key, np.array(at), np.array(values)) for key, (at, values) in self._found.items() if at]
