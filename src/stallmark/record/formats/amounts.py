"""The amounts of a file's series in each span, and their sums by column.

`counters.csv` has the column of each counter of other tools.
"""

import csv
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from stallmark.record.formats.dates import MONTH_FIRST, Clock, Schedule, choose_order, find_zone
from stallmark.record.formats.sample import Counter, Has, Recorded, count_with_noun, first_names, note, refusal
from stallmark.record.profile import GAP, SERVER, STATES, FileClass, Intervals

# The contents of the files of an import: columns of numbers over spans of time, and facts about the machine.

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


# The samples of one file as a table of times and counters, and the spans between its rows.

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


# The amounts of each span.

Kind = Literal["total", "count", "rate", "mean", "state"]
"""The meaning of a value. It is a total since some time, a count of the interval that ends with it, a rate or the mean
of an I/O in that interval, or a state at its end."""
Key = tuple[str, str]
"""An object with the name of a counter, or with that of an instance."""
_CPU = {"cpu_s", "idle", "away"}  # notes do not name processors


class Meaning(NamedTuple):
    """The column of a counter; `factor` converts its unit. Of two counters of a column, the one of lower rank counts;
    those of one rank add up."""

    column: str
    kind: Kind
    factor: float = 1.0
    rank: int = 1


@dataclass
class Part:
    """One counter of an entity, which is a device, a database, a file or a server."""

    column: str
    kind: Kind
    rank: int
    entity: Key
    name: str
    """Its name in notes."""
    amounts: np.ndarray
    """The values in all rows, and then the amounts in each span; NaN if unknown."""
    needed: np.ndarray = field(default_factory=lambda: np.zeros(0))
    """The spans with the entity; elsewhere an unknown amount is zero."""
    here: np.ndarray = field(default_factory=lambda: np.zeros(0))
    """The spans with any value of the entity."""

    @property
    def mask(self) -> np.ndarray:
        """The spans with a known amount."""
        return np.isfinite(self.amounts)


@cache
def known_counters(source: str) -> dict[Key, list[Meaning]]:
    """Return the counters of a tool by object and name."""
    counters: dict[Key, list[Meaning]] = {}
    with (resources.files(__package__) / "counters.csv").open() as file:
        for row in csv.DictReader(file):
            if row["source"] == source:
                meaning = Meaning(row["column"], row["kind"], float(row["factor"]), int(row["rank"]))  # type: ignore[arg-type]
                counters.setdefault((row["object"], row["counter"]), []).append(meaning)
    return counters


def known_parts(readings: Readings, source: str, key: Callable[[Counter], Key]) -> Iterator[Part]:
    """Yield the parts of a tool's counters, and forget their readings; `key` gives the names of object and counter."""
    for counter in list(readings.values):
        values, (object, name) = readings.values.pop(counter), key(counter)
        for column, kind, factor, rank in known_counters(source)[object, name]:
            named = "" if column in _CPU else counter.instance
            yield Part(column, kind, rank, (object, counter.instance), named, values * factor)


class Amounts:
    """The amounts of one file.

    Spans are between samples at which no total lacks a value. While one of its totals fell, an entity is unknown: a
    fall in one may be hidden in another. Before its first value, and after its last, an entity did not exist; one that
    `comes_and_goes` did not exist in any row without a value.
    """

    def __init__(
        self, readings: Readings, parts: Iterable[Part], recording: Recording, *, comes_and_goes: bool = False
    ):
        self.name, self._recording, self.parts = readings.name, recording, list(parts)
        counting = [part for part in self.parts if part.kind == "total"]
        totals = [part.amounts for part in counting]
        lacking = _lacking(totals, readings)
        rows, self.start, self.end = readings.spans(~lacking, recording)
        self.seconds = self.end - self.start
        is_joined = np.diff(np.flatnonzero(~lacking), prepend=-1)[rows] > 1
        here: dict[Key, np.ndarray] = {}
        for part in self.parts:
            here[part.entity] = part.mask[~lacking] | here.get(part.entity, False)
        fell = {entity: np.zeros(len(rows), dtype=bool) for entity in here}
        for part in self.parts:
            values = part.amounts[~lacking]
            exists = np.isfinite(values) if part.kind == "total" else here[part.entity]
            if not comes_and_goes:
                exists = np.logical_or.accumulate(exists) & np.logical_or.accumulate(exists[::-1])[::-1]
            part.here, part.needed, part.amounts = here[part.entity][rows], exists[rows], values[rows]
            if part.kind == "total":
                part.needed, part.amounts = part.needed & exists[rows - 1], part.amounts - values[rows - 1]
                fell[part.entity] |= part.amounts < 0
            elif part.kind != "state":
                part.amounts = np.where(is_joined, np.nan, part.amounts * (self.seconds if part.kind == "rate" else 1))
        for part in self.parts:
            part.amounts[fell[part.entity]] = np.nan
        self._multiply_means()
        if resets := int(np.any(list(fell.values()), axis=0).sum()) if fell else 0:
            recording.note("resets", file=self.name, times=count_with_noun(resets, "time"))
        elif any(np.isfinite(total).sum() > 1 for total in totals) and not any(part.mask.any() for part in self.parts):
            raise refusal("scattered", self.name)
        apart = {
            f"{part.column} {part.name}".strip()
            for part, total in zip(counting, totals, strict=True)
            if np.isfinite(total).sum() > 1 and not part.mask.any() and not fell[part.entity].any()
        }
        if apart:
            recording.note("apart", file=self.name, names=some_names(apart))
        if joined := int(lacking.sum()):
            recording.note("joined", file=self.name, times=count_with_noun(joined, "time"))

    def _multiply_means(self) -> None:
        """Replace the mean time of an I/O by the time of all I/Os of its entity. Without their number, omit it."""
        counts: dict[tuple[Key, str], np.ndarray] = {}
        for part in self.parts:
            of_column = part.entity, part.column
            counts[of_column] = part.amounts + counts.get(of_column, 0.0)
        means = [part for part in self.parts if part.kind == "mean"]
        self.parts = [part for part in self.parts if part.kind != "mean"]
        for part in means:
            side = part.column.removesuffix("_ms")
            if (count := counts.get((part.entity, f"{side}s"))) is not None:
                part.column = f"{side}_stall_ms"
                part.amounts = np.where(count == 0, 0.0, part.amounts * count)  # no I/O has no time
                self.parts.append(part)

    def bytes_by_device(self, *objects: str) -> dict[str, float]:
        """Return the bytes read and written, by the devices of some objects."""
        moved: dict[str, float] = {}
        for part in self.parts:
            object, name = part.entity
            if object in objects:
                moved[name] = moved.get(name, 0.0) + np.nansum(part.amounts) * part.column.endswith("bytes")
        return moved

    def add_up(self, classes: Mapping[Key, str], *, by_class: bool = False) -> dict[str, np.ndarray]:
        """Add the sums over the entities of each class to the recording, and return them by class and column.

        An amount of lower rank counts if that of a higher one is unknown; if classes were given, only within an object.
        A sum is unknown if a needed part is, or no part is needed or known.
        """
        lowest: dict[str, int] = {}
        columns: dict[str, list[Part]] = {}
        recorded: dict[Key, dict[str, set[str]]] = {}  # the columns of each device, by class and object
        for part in self.parts:
            if (prefix := classes.get(part.entity)) is not None:
                columns.setdefault(f"{prefix}.{part.column}", []).append(part)
                if prefix != "server":
                    devices = recorded.setdefault((prefix, part.entity[0]), {})
                    devices.setdefault(part.entity[1], set()).add(part.column)
                lowest[part.entity[0]] = min(part.rank, lowest.get(part.entity[0], part.rank))
        sums, missing, absent = dict[str, np.ndarray](), set[str](), set[str]()
        for column, parts in columns.items():
            ranks = [part.rank - lowest[part.entity[0]] * by_class for part in parts]
            total = sums[column] = np.full(len(self.seconds), np.nan)
            for rank in sorted(set(ranks)):
                own = [part for part, its in zip(parts, ranks, strict=True) if its == rank]
                known = np.isnan(total) & np.any([part.needed | part.mask for part in own], axis=0)
                known &= np.all([part.mask | ~part.needed for part in own], axis=0)
                total[known] = 0.0
                for part in own:
                    total[known] += np.nan_to_num(part.amounts[known])
                absent |= {part.name for part in own if (known & ~part.mask).any()}
            unknown = np.isnan(total)
            missing |= {part.name for part in parts if part.mask.any() and (unknown & part.needed & ~part.mask).any()}
        self._recording.intervals.append(Intervals(self.start, self.end, sums))
        partial = {
            name
            for devices in recorded.values()
            for name, own in devices.items()
            if own < set().union(*devices.values())
        }
        for kind, names in (("unknown", missing - {""}), ("absent", absent - {""}), ("partial", partial)):
            if names:
                self._recording.note(kind, file=self.name, names=some_names(names))
        return sums


def _lacking(totals: Iterable[np.ndarray], readings: Readings) -> np.ndarray:
    """Return a mask of the rows without a value of some total, between two of its values without a gap."""
    lacking, longest_s = np.zeros(len(readings.times), dtype=bool), readings.longest_s
    for values in totals:
        places = np.flatnonzero(np.isfinite(values))
        is_near = np.diff(readings.times[places]) <= longest_s
        for before in np.flatnonzero((np.diff(places) > 1) & is_near):
            lacking[places[before] + 1 : places[before + 1]] = True
    return lacking
