"""The amounts of a file's series in each span, and their sums by column.

`counters.csv` has the column of each counter of other tools.
"""

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Literal, NamedTuple

import numpy as np

from stallmark.record.formats.sample import Counter
from stallmark.record.formats.sentences import count_with_noun, refusal
from stallmark.record.imports.readings import Readings
from stallmark.record.imports.recording import Recording, some_names
from stallmark.record.profile.interval_table import Intervals

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
