"""Deltas of raw cumulative counters.

A table of counters has one row per sample and entity. Differences are taken between an entity's neighbouring samples
and then summed over entities. So an entity that restarts is seen even where the sum does not fall. A counter that falls
and an epoch that changes are a **break**: the count between those two samples is unknown and never guessed.

Samples do not fall on the ends of a measured interval or on whole seconds. Between two samples the count is taken to
grow evenly (linear interpolation of the cumulative total). Nothing is extrapolated beyond the first and the last
sample, nor is an end of the interval sought in a gap between samples: `Delta.seconds` says what was covered instead,
and every rate is over that. A gap inside the interval loses nothing, as totals are cumulative.

A null is a sample that was not taken. What was counted meanwhile is known only once there is a value again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stallmark.analysis.read.sample_times import gap_s, numbers, sample_times
from stallmark.record.reader import Record
from stallmark.stats.thresholds import ROUNDING


@dataclass(frozen=True)
class Delta:
    """The rise of counters from `begin` to `end` (s since run start). `broken`: a break fell inside, and values are
    only a part.

    A counter is missing from `values` where the source has none.
    """

    begin: float
    end: float
    broken: bool
    values: dict[str, float]

    @property
    def seconds(self) -> float:
        return self.end - self.begin

    def __getitem__(self, name: str) -> float:
        return self.values[name]

    def get(self, name: str) -> float | None:
        return self.values.get(name)

    def mean(self, total: str, count: str) -> float | None:
        """Return the volume-weighted mean Δtotal / Δcount; None where nothing was counted."""
        if not self.values.get(count) or total not in self.values:
            return None
        return self.values[total] / self.values[count]


@dataclass(frozen=True)
class Counters:
    """The totals of counters since the first sample, summed over entities.

    `t` (n) is the time of the samples in seconds since run start. `totals` maps a counter to its total at each (n).
    `breaks` (n − 1) tells between which samples the count was lost, `gaps` (n − 1) between which it is not known when
    it grew.
    """

    t: np.ndarray
    totals: dict[str, np.ndarray]
    breaks: np.ndarray
    gaps: np.ndarray
    entities: list[str] = field(default_factory=list)

    def over(self, begin: float, end: float) -> Delta | None:
        """Return the rise from `begin` to `end` (s), or over the part of it that was sampled; None when nothing was."""
        if not len(self.t):
            return None
        begin, end = max(begin, float(self.t[0])), min(end, float(self.t[-1]))
        if end <= begin:
            return None
        begin, end = self._seen_from(begin), self._seen_to(end)
        if end <= begin:
            return None
        inside = (self.t[1:] > begin) & (self.t[:-1] < end)
        values = {
            name: float(np.diff(np.interp([begin, end], self.t, total))[0]) for name, total in self.totals.items()
        }
        return Delta(begin, end, bool(np.any(self.breaks & inside)), values)

    def per_second(self, seconds: int) -> dict[str, np.ndarray]:
        """Return the rise within each of the whole seconds 0 … seconds − 1; NaN where samples are too far apart
        or lost."""
        if len(self.t) < 2:
            return {name: np.full(seconds, np.nan) for name in self.totals}
        grid = np.arange(seconds + 1.0)
        lost = self.breaks | self.gaps
        lost_before = np.concatenate([[0], np.cumsum(lost)])
        # The gaps that overlap a second are those from the last sample at or before it to the first after it.
        first = np.searchsorted(self.t, grid[:-1], side="right") - 1
        last = np.searchsorted(self.t, grid[1:], side="left")
        known = (first >= 0) & (last < len(self.t))
        first, last = np.clip(first, 0, None), np.clip(last, None, len(self.t) - 1)
        known &= lost_before[last] == lost_before[first]
        return {
            name: np.where(known, np.diff(np.interp(grid, self.t, total)), np.nan)
            for name, total in self.totals.items()
        }

    def _seen_from(self, begin: float) -> float:
        """Return `begin`, or the end of the gaps that it falls into."""
        at = int(np.searchsorted(self.t, begin, side="right")) - 1
        while at < len(self.gaps) and self.gaps[at]:
            at += 1
            begin = float(self.t[at])
        return begin

    def _seen_to(self, end: float) -> float:
        """Return `end`, or the begin of the gaps that it falls into."""
        at = int(np.searchsorted(self.t, end)) - 1
        while at >= 0 and self.gaps[at]:
            end = float(self.t[at])
            at -= 1
        return end


def read_counters(
    record: Record,
    table: str,
    columns: Sequence[str],
    group: str | None = None,
    entity: str = "entity",
    delay_s: float = 0.0,
) -> dict[str, Counters]:
    """Return the counters of a table by the value of its column `group`; all are under "" without one.

    `entity` is the column that names a row. Samples are dated back by `delay_s`, because they show what had happened by
    then. Memory stays near 60 bytes a row: columns are read one after another.
    """
    t = sample_times(record, table)
    if t is None or not len(t):
        return {}
    longest_s = gap_s(record, table, t)
    groups, group_names = codes(record, table, group, len(t))
    entities, entity_names = codes(record, table, entity, len(t))
    epochs, _ = codes(record, table, "epoch", len(t))
    by_group = {
        name: Differences(t, entities, epochs, np.flatnonzero(groups == code))
        for code, name in enumerate(group_names or [""])
        if np.any(groups == code)
    }
    totals: dict[str, dict[str, np.ndarray]] = {name: {} for name in by_group}
    gaps = {name: np.diff(differences.times) > longest_s for name, differences in by_group.items()}
    for column in columns:
        values = numbers(record, table, column)
        if values is None:
            continue
        for name, differences in by_group.items():
            if (found := differences.total(values)) is not None:
                totals[name][column], unknown = found
                gaps[name] |= unknown
    return {
        name: Counters(
            differences.times - delay_s,
            totals[name],
            _lasting(differences.breaks, differences.times, delay_s),
            gaps[name],
            [entity_names[code] for code in differences.seen] if entity_names else [],
        )
        for name, differences in by_group.items()
    }


def _lasting(breaks: np.ndarray, t: np.ndarray, delay_s: float) -> np.ndarray:
    """Return breaks that last to the sample that showed them: later samples are dated back into the break."""
    lasting = breaks.copy()
    for gap in np.flatnonzero(breaks):
        lasting[gap : np.searchsorted(t - delay_s, t[gap + 1])] = True
    return lasting


class Differences:
    """The differences between an entity's neighbouring samples, for the rows of one group.

    `rows` (n) are its rows in the order of entity and time, `at` (n) their places in `times`; `breaks` tells between
    which of the times a count was lost, and grows as columns are read."""

    def __init__(self, t: np.ndarray, entities: np.ndarray, epochs: np.ndarray, rows: np.ndarray):
        self.seen = np.unique(entities[rows])
        order = np.argsort(entities[rows], kind="stable")  # rows come in the order of time
        self.rows = rows[order]
        self.times, at = np.unique(t[self.rows], return_inverse=True)
        self.at = at.astype(np.int32)
        entity, epoch = entities[self.rows], epochs[self.rows]
        same = entity[1:] == entity[:-1]
        self.follows = np.concatenate([[False], same & (epoch[1:] == epoch[:-1])])
        self.breaks = np.zeros(max(len(self.times) - 1, 0), dtype=bool)
        self._lost(np.concatenate([[False], same & (epoch[1:] != epoch[:-1])]))
        # An entity first seen later began at zero, if the epoch is one that others were already seen in.
        began = np.full(epochs.max() + 1, np.inf)
        np.minimum.at(began, epoch, self.times[self.at])
        newcomer = np.concatenate([[True], ~same]) & (self.at > 0)
        self.newcomer = newcomer & (began[epoch] < self.times[self.at])

    def _lost(self, rows: np.ndarray) -> None:
        self.breaks[self.at[rows] - 1] = True

    def total(self, column: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the cumulative sum over entities since the first sample, and between which samples it is not known;
        None when the source has no such counter."""
        found = self.rises(column)
        if found is None:
            return None
        rise, unknown = found
        return np.cumsum(np.bincount(self.at, weights=rise, minlength=len(self.times))), unknown

    def rises(self, column: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """Return what each row (n) counted since the one before it of its entity, and between which samples it is not
        known; None when the source has no such counter."""
        values = column[self.rows]
        empty = np.isnan(values)
        if empty.all():
            return None
        unknown = self._fill(values, empty)
        rise = np.diff(values, prepend=values[:1])
        # A mean × count, which is how Query Store tells a total, differs in its last digits from sample to sample.
        fell = self.follows & (rise < -ROUNDING * np.abs(values))
        self._lost(fell)
        return np.where(self.newcomer, values, np.where(self.follows & ~fell, rise, 0)), unknown

    def _fill(self, values: np.ndarray, empty: np.ndarray) -> np.ndarray:
        """Fill nulls between two values of an entity evenly. Return between which samples it is not known what was
        counted: before its first value and after its last. An entity without any has no such counter."""
        unknown = np.zeros(len(self.breaks), dtype=bool)
        begins = np.flatnonzero(~self.follows)  # of an entity's rows in one epoch
        nulls = np.add.reduceat(empty, begins)
        lengths = np.diff(begins, append=len(values))
        values[empty] = 0
        for first, length in zip(begins[nulls % lengths > 0], lengths[nulls % lengths > 0], strict=True):
            part = slice(first, first + length)
            at, known = self.at[part], ~empty[part]
            values[part] = np.interp(self.times[at], self.times[at[known]], values[part][known])
            unknown[max(at[0] - 1, 0) : at[known][0]] |= not known[0]
            unknown[at[known][-1] : at[-1]] |= not known[-1]
        return unknown


def codes(record: Record, table: str, column: str | None, rows: int) -> tuple[np.ndarray, list[str]]:
    """Return a text column as small integers, and the texts they stand for; all 0 and no text without the column."""
    known: dict[str, int] = {}
    parts = []
    for batch in record.batches(table, [column] if column else []):
        if not batch.num_columns:
            break
        array = batch.column(0)
        if not pa.types.is_dictionary(array.type):
            array = pc.dictionary_encode(array.cast(pa.string()))
        texts = array.dictionary.to_pylist() + (["none"] if array.null_count else [])
        codes = np.array([known.setdefault(text, len(known)) for text in texts], dtype=np.int16)
        parts.append(codes[array.indices.fill_null(len(array.dictionary)).to_numpy(zero_copy_only=False)])
    if not parts:
        return np.zeros(rows, dtype=np.int16), []
    return np.concatenate(parts), list(known)
