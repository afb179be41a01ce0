"""The contents of the files of an import: columns of numbers over spans of time, and facts about the machine."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from stallmark.record.formats.dates import Schedule
from stallmark.record.formats.sentences import first_names, note
from stallmark.record.profile.interval_table import SERVER, STATES, FileClass, Intervals

COUNTS = tuple(name for name in SERVER.names[2:] if name not in STATES)


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


@dataclass
class Recording:
    """The contents of the files so far. Of two intervals over one span the first counts, column by column."""

    intervals: list[Intervals] = field(default_factory=list)
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

    def note(self, kind: str, **facts: object) -> None:
        if (sentence := note(kind, **facts)) not in self.notes:
            self.notes.append(sentence)


def some_names(names: Iterable[str]) -> str:
    """Return the first names in alphabetical order, for a sentence."""
    return first_names(sorted({name.strip() for name in names}))
