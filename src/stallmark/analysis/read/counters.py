"""Deltas of raw cumulative counters.

A table of counters has one row per sample and entity. Differences are taken between an entity's neighbouring samples
and then summed over entities. So the restart of an entity is visible even if the sum does not fall. A counter that
falls and an epoch that changes are a **break**: the count between those two samples is unknown and never guessed.

Samples do not fall on the ends of a measured interval or on whole seconds. Between two samples the count is taken to
grow evenly (linear interpolation of the cumulative total). Nothing is extrapolated beyond the first and the last
sample, nor is an end of the interval sought in a gap between samples: `Delta.seconds` is the covered time, and every
rate refers to it. A gap inside the interval loses nothing, as totals are cumulative.

A null is a sample that was not taken. Its increment becomes known only with the next value.

The samples of all groups of a table of counters: the increment up to each sample, and the gaps in which it is unknown.

A sample is named by its place: group × number of times + index of its time. Samples that are never needed can be
dropped while others are still added: each passes its increment to the next kept sample.
"""

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stallmark.analysis.read.rises import Codes, CounterIncrements
from stallmark.analysis.read.times import (
    first_of_runs,
    longest_apart_s,
    numbers_of,
    open_s,
    planned_interval_s,
    rows_by_sample,
    sample_times,
)
from stallmark.errors import StallmarkError
from stallmark.record.reader import Record
from stallmark.stats.thresholds import DATED_ROUGHLY

MANY = 1 << 16
"""The number of samples from which dropping some pays."""
PARTS = 256
"""The number of small arrays from which they are joined: memory of batches between them could not be reused."""


class GroupSamples(NamedTuple):
    """The samples of one group (n)."""

    time: np.ndarray  # indices of times
    increments: list[np.ndarray | None]  # None for columns that the table lacks
    lost: np.ndarray  # n − 1 flags of spans between two samples
    gaps: np.ndarray  # n − 1 flags of spans between two samples


class _Samples(NamedTuple):
    """Samples by rising place. Each has the increments of the span before it, whether a count was lost in it, whether
    it is a gap, and whether it was compared with the longest allowed."""

    places: np.ndarray
    rises: list[np.ndarray | None]
    lost: np.ndarray
    gaps: np.ndarray
    seen: np.ndarray


class Samples:
    """The samples of groups at given times. All samples are kept, or only those that the analysis needs."""

    def __init__(self, times: np.ndarray, columns: int, longest_s: np.ndarray, borders: np.ndarray | None = None):
        """`times` are seconds, rising. Two neighbouring samples are a gap if further apart than their `longest_s`.

        With `borders` (indices of times, rising) these samples alone are kept: the ones next to each border, the ends
        of gaps, and those that may still turn out to be unknown.
        """
        self._times, self._longest_s = times, np.append(np.inf, longest_s)
        self._borders = borders
        none = np.empty(0, dtype=bool)
        self._kept = _Samples(np.empty(0, dtype=np.int64), [np.empty(0)] * columns, none, none, none)
        self._new: list[_Samples] = []
        self._late: list[tuple[int, np.ndarray, np.ndarray, np.ndarray]] = []
        self._unknown: list[tuple[int, int]] = []
        self._added = 0  # since some were left out
        self.source: CounterIncrements | None = None
        """Those that are taken; needed where some are left out."""

    def add(self, places: np.ndarray, rises: Sequence[np.ndarray | None], lost: np.ndarray) -> None:
        samples = _Samples(places, list(rises), lost, *np.zeros((2, len(places)), dtype=bool))
        if self._borders is not None and not self._late and not self._unknown:
            samples = self._drop_unneeded(self._with_gaps(_in_order(samples)))
        self._append(samples)

    def add_grid(self, time: np.ndarray, groups: np.ndarray, rises: Sequence[np.ndarray | None]) -> None:
        gaps = np.append(False, np.diff(self._times[time]) > self._longest_s[time[1:]])
        kept = np.arange(len(time))
        if self._borders is not None:
            kept = np.flatnonzero(self._is_needed(np.zeros_like(time), time, gaps))
            begins = np.append(0, kept[:-1] + 1)
            rises = [None if rise is None else np.add.reduceat(rise, begins, axis=0) for rise in rises]
        order = np.argsort(groups, kind="stable")
        own, firsts = np.unique(groups[order], return_index=True)
        flat = [None if rise is None else np.add.reduceat(rise[:, order], firsts, axis=1).T.ravel() for rise in rises]
        places = (own[:, np.newaxis] + time[kept]).ravel()
        flags = np.tile([np.zeros(len(kept), dtype=bool), gaps[kept], kept > 0], len(own))
        self._append(_Samples(places, flat, *flags))

    def _append(self, samples: _Samples) -> None:
        self._new.append(samples)
        self._added += len(samples.places)
        if self._borders is not None and self._added > MANY:
            self._thin()
        elif len(self._new) > PARTS:
            self._merge()

    def add_late(self, column: int, places: np.ndarray, rises: np.ndarray, lost: np.ndarray) -> None:
        self._late.append((column, places, rises, lost))
        self._added += len(places)

    def mark_unknown(self, _: int, first: int, last: int) -> None:
        self._unknown.append((first, last))

    def groups(self) -> Iterator[tuple[int, GroupSamples]]:
        """Yield the samples of each group, in order. No more can be added."""
        self._merge()
        if self._borders is not None:
            self._thin()
        self.source = None  # it refers to this: both would take memory until the next search for garbage
        kept = self._kept
        group, time = np.divmod(kept.places, len(self._times))
        cuts = np.flatnonzero(np.diff(group, prepend=-1)).tolist()
        for begin, end in zip(cuts, [*cuts, len(group)][1:], strict=True):
            rises = [None if rise is None else rise[begin:end] for rise in kept.rises]
            between = slice(begin + 1, end)
            yield int(group[begin]), GroupSamples(time[begin:end], rises, kept.lost[between], kept.gaps[between])

    def _thin(self) -> None:
        self._merge()
        self._kept = self._drop_unneeded(self._kept)

    def _drop_unneeded(self, samples: _Samples) -> _Samples:
        """Return the samples to keep, with the increments of dropped ones added to the next."""
        assert self._borders is not None and self.source is not None
        places = samples.places
        if not len(places):
            return samples
        group, time = np.divmod(places, len(self._times))
        keep = self._is_needed(group, time, samples.gaps)
        open_places = self.source.places_to_keep()
        opened = np.searchsorted(places, open_places[(open_places >= places[0]) & (open_places <= places[-1])])
        keep[opened] = keep[np.maximum(opened - 1, 0)] = True
        kept = np.flatnonzero(keep)
        begins = np.append(0, kept[:-1] + 1)
        return _Samples(
            places[kept],
            [None if increments is None else np.add.reduceat(increments, begins) for increments in samples.rises],
            np.logical_or.reduceat(samples.lost, begins),
            samples.gaps[kept],
            samples.seen[kept],
        )

    def _is_needed(self, group: np.ndarray, time: np.ndarray, gaps: np.ndarray) -> np.ndarray:
        """Return a mask of the samples at the ends of groups, at borders, and at the ends of gaps."""
        assert self._borders is not None
        side = np.searchsorted(self._borders, time, side="right")
        changes = (np.diff(group) != 0) | (np.diff(side) != 0)
        keep = np.append(True, changes) | np.append(changes, True)
        keep[:-1] |= gaps[1:] != gaps[:-1]
        return keep

    def _with_gaps(self, samples: _Samples) -> _Samples:
        """Return the samples with the gaps between neighbours of one group marked."""
        group, time = np.divmod(samples.places, len(self._times))
        seen = samples.seen.copy()
        seen[1:] |= np.diff(group) == 0
        gaps = samples.gaps.copy()
        gaps[1:] |= seen[1:] & ~samples.seen[1:] & (np.diff(self._times[time]) > self._longest_s[time[1:]])
        return samples._replace(gaps=gaps, seen=seen)

    def _merge(self) -> None:
        """Merge the added samples into the kept ones."""
        parts = [self._kept, *self._new]
        places = np.concatenate([part.places for part in parts])
        order = np.argsort(places, kind="stable")  # stable sorting is fast for parts in order
        places = places[order]
        new = first_of_runs(places)
        sample = np.empty(len(places), dtype=np.int64)
        sample[order] = np.cumsum(new) - 1
        count = int(new.sum())
        rises: list[np.ndarray | None] = []
        for column in range(len(self._kept.rises)):
            increments = [rise for part in parts if (rise := part.rises[column]) is not None]
            rises.append(
                np.bincount(sample, np.concatenate(increments), count) if len(increments) == len(parts) else None
            )
            for part in parts:  # frees memory: both copies at once would double it
                part.rises[column] = None

        def any_of(flags: list[np.ndarray]) -> np.ndarray:
            flagged: np.ndarray = np.bincount(sample[np.concatenate(flags)], minlength=count) > 0
            return flagged

        lost, gaps = any_of([part.lost for part in parts]), any_of([part.gaps for part in parts])
        merged = self._with_gaps(_Samples(places[new], rises, lost, gaps, any_of([part.seen for part in parts])))
        for late_column, late, rise, fell in self._late:
            # Late increments belong to samples that are already there.
            index = np.searchsorted(merged.places, late)
            to = merged.rises[late_column]
            assert to is not None
            np.add.at(to, index, rise)
            merged.lost[index[fell]] = True
        # +1 where an unknown span begins and −1 behind its end: their running sum is positive inside spans.
        edges = np.zeros(count + 1, dtype=np.int64)
        for first, last in self._unknown:
            edges[np.searchsorted(merged.places, first)] += 1
            edges[np.searchsorted(merged.places, last, side="right")] -= 1
        self._kept = merged._replace(gaps=merged.gaps | (np.cumsum(edges[:-1]) > 0))
        self._new, self._late, self._unknown, self._added = [], [], [], 0


def _in_order(samples: _Samples) -> _Samples:
    if (samples.places[1:] > samples.places[:-1]).all():
        return samples
    order = np.argsort(samples.places)
    rises = [None if increments is None else increments[order] for increments in samples.rises]
    return _Samples(samples.places[order], rises, *(flags[order] for flags in samples[2:]))


class Stretch(Protocol):
    """A stretch of time, in seconds since run start."""

    @property
    def begin(self) -> float: ...
    @property
    def end(self) -> float: ...


@dataclass(frozen=True)
class Delta:
    """The increments of counters within a time. A counter that the source lacks has no value."""

    begin: float  # seconds since run start
    end: float  # seconds since run start
    broken: bool  # a reset happened inside, and values are only a part
    values: dict[str, float]
    open_s: float = 0.0
    """Seconds at both ends together for which the increment is uncertain, because samples there were far apart."""

    @property
    def uncertainty(self) -> float:
        """Return the share by which every rise may be off, both ways; 0 if samples are as close as they usually are.

        It holds if no second has more than twice the mean rate: then at each end of the interval half a distance of the
        samples around is open. Five samples in 20 s leave 4 s open: ± 20 %.
        """
        share = self.open_s / self.seconds
        return min(1.0, share) if share > DATED_ROUGHLY else 0.0

    @property
    def seconds(self) -> float:
        return self.end - self.begin

    def __getitem__(self, name: str) -> float:
        """Return the increment of a counter that every source has. Raise StallmarkError if the record lacks it."""
        try:
            return self.values[name]
        except KeyError:
            raise StallmarkError(
                f"The record has no value of the counter {name}: restore it, or leave this record out."
            ) from None

    def count_within(self, per_second: np.ndarray) -> float:
        """Return the part of another count that falls into this time, taken evenly within its seconds."""
        total = np.concatenate([[0], np.cumsum(per_second)])
        begin, end = np.interp([self.begin, self.end], np.arange(len(total)), total)
        return float(end - begin)

    def mean(self, total: str, count: str, unit: float = 1.0) -> float | None:
        """Return the volume-weighted mean Δtotal / Δcount in multiples of `unit`, or None if nothing was counted."""
        if not self.values.get(count) or total not in self.values:
            return None
        return self.values[total] / self.values[count] / unit


@dataclass(frozen=True)
class Counters:
    """The totals of counters since the first sample, summed over entities."""

    t: np.ndarray  # (n) time of the samples, in seconds since run start
    totals: dict[str, np.ndarray]  # keys: counter; values: total at each sample (n)
    breaks: np.ndarray  # (n − 1) true if a reset lost the count between two samples
    gaps: np.ndarray  # (n − 1) true if the growth between two samples cannot be placed in time

    whole: bool = True
    """False if samples were dropped that the requested intervals do not need: then only `delta` over these is
    defined."""
    means: dict[Any, float | None] = field(default_factory=dict, repr=False, compare=False)
    """Cached means per second: each load of a run needs those of its server."""
    deltas: dict[tuple[float, float], Delta] = field(default_factory=dict, repr=False, compare=False)
    """Cached increments: most figures of a step are over the same interval."""

    def delta(self, begin: float, end: float) -> Delta | None:
        """Return the increments from `begin` to `end` (s), or over the sampled part of it, or None if nothing was
        sampled."""
        if not len(self.t):
            return None
        begin, end = max(begin, float(self.t[0])), min(end, float(self.t[-1]))
        if end <= begin:
            return None
        begin, end = self._seen_from(begin), self._seen_to(end)
        if end <= begin:
            return None
        if not (delta := self.deltas.get((begin, end))):
            inside = (self.t[1:] > begin) & (self.t[:-1] < end)
            values = {}
            for name, total in self.totals.items():
                before, after = np.interp((begin, end), self.t, total)
                values[name] = float(after - before)
            lost, open_ = bool(np.any(self.breaks & inside)), open_s(self.t, self.gaps, (begin, end))
            delta = self.deltas[begin, end] = Delta(begin, end, lost, values, open_)
        return delta

    def per_second(self, seconds: int, *names: str) -> dict[str, np.ndarray]:
        """Return the increments of the named counters, or of all, within each of the whole seconds 0 … seconds − 1; NaN
        if samples are too far apart or lost."""
        assert self.whole
        totals = {name: self.totals[name] for name in names or self.totals if name in self.totals}
        if len(self.t) < 2 or not totals:
            return {name: np.full(seconds, np.nan) for name in totals}
        grid = np.arange(seconds + 1.0)
        known = np.zeros(seconds, dtype=bool)
        known[: len(self._known_seconds)] = self._known_seconds[:seconds]
        return {
            name: np.where(known, np.diff(np.interp(grid, self.t, total)), np.nan) for name, total in totals.items()
        }

    @cached_property
    def _known_seconds(self) -> np.ndarray:
        """The whole seconds up to the last sample, with true for each second whose increment is known."""
        grid = np.arange(max(0, int(self.t[-1])) + 1.0)
        lost_before = np.concatenate([[0], np.cumsum(self.breaks | self.gaps)])
        # The gaps that overlap a second are those from the last sample at or before it to the first after it.
        first = np.searchsorted(self.t, grid[:-1], side="right") - 1
        last = np.searchsorted(self.t, grid[1:], side="left")
        known: np.ndarray = (first >= 0) & (lost_before[last] == lost_before[np.maximum(first, 0)])
        return known

    def _seen_from(self, begin: float) -> float:
        """Return `begin`, or the end of the gaps that it falls into."""
        index = int(np.searchsorted(self.t, begin, side="right")) - 1
        while index < len(self.gaps) and self.gaps[index]:
            index += 1
            begin = float(self.t[index])
        return begin

    def _seen_to(self, end: float) -> float:
        """Return `end`, or the begin of the gaps that it falls into."""
        index = int(np.searchsorted(self.t, end)) - 1
        while index >= 0 and self.gaps[index]:
            end = float(self.t[index])
            index -= 1
        return end


def read_counters(
    record: Record,
    table: str,
    columns: Sequence[str],
    group: str | None = None,
    entity: str = "entity",
    delay_s: float = 0.0,
    within: Sequence[Stretch] | None = None,
    only: Sequence[str] = (),
) -> dict[str, Counters]:
    """Return the counters of a table by the value of its column `group`, `only` of some if given; all are under ""
    without a group.

    `entity` is the column that names a row. Samples are dated back by `delay_s`, because they show what had happened by
    then. Memory grows with the samples of groups. If these are many, `within` gives the only intervals needed; then
    memory grows with groups alone.
    """
    times = sample_times(record, table)
    if times is None or not len(times):
        return {}
    view = View(record, table, times, columns, delay_s, within)
    rises = view.samples.source = CounterIncrements(times, len(columns), view.samples)
    groups, entities, epochs = Codes(), Codes(), Codes()
    names = [name for name in (group, entity, "epoch") if name]
    wanted_groups = pa.array(only, pa.string())
    for time, batch in rows_by_sample(record, table, [*names, *columns]):
        if group and only and group in batch.schema.names:
            wanted = pc.is_in(batch.column(group), wanted_groups)
            time, batch = time[wanted.to_numpy(zero_copy_only=False)], batch.filter(wanted)
            if not batch.num_rows:
                continue
        values = [numbers_of(batch, column) for column in columns]
        rises.add(time, groups.codes(batch, group), entities.codes(batch, entity), epochs.codes(batch, "epoch"), values)
    rises.finish()
    return view.counters(groups.names, [rises.groups_with(column) for column in range(len(columns))])


class View:
    """The counters of a table by group, made of the samples that are taken."""

    def __init__(
        self,
        record: Record,
        table: str,
        times: np.ndarray,
        columns: Sequence[str],
        delay_s: float = 0.0,
        within: Sequence[Stretch] | None = None,
    ):
        self._times, self._columns, self._delay_s = times, columns, delay_s
        self._whole = within is None
        borders = None if within is None else _borders(times - delay_s, within)
        longest_s = longest_apart_s(times, planned_interval_s(record, table))
        self.samples = Samples(times, len(columns), longest_s, borders)

    def counters(self, names: Sequence[str], known: Sequence[Container[int]]) -> dict[str, Counters]:
        """Return the counters by the names of groups; of each column, `known` are the groups that have a value."""
        by_group = {}
        for code, of_group in self.samples.groups():
            t = self._times[of_group.time]
            totals = {
                name: np.cumsum(rise, out=rise)
                for name, rise, has in zip(self._columns, of_group.increments, known, strict=True)
                if rise is not None and code in has
            }
            breaks = lasting(of_group.lost, t, self._delay_s)
            name = names[code] if names else ""
            by_group[name] = Counters(t - self._delay_s, totals, breaks, of_group.gaps, self._whole)
        return by_group


def _borders(t: np.ndarray, within: Sequence[Stretch]) -> np.ndarray:
    """Return the samples that are the first at or after an end of an interval, or the first after it, by number."""
    ends = [end for interval in within for end in (interval.begin, interval.end)]
    return np.unique([np.searchsorted(t, ends, side="left"), np.searchsorted(t, ends, side="right")])


def lasting(breaks: np.ndarray, t: np.ndarray, delay_s: float) -> np.ndarray:
    """Return breaks that last to the sample that showed them: later samples are dated back into the break."""
    lasting = breaks.copy()
    for gap in np.flatnonzero(breaks):
        lasting[gap : np.searchsorted(t - delay_s, t[gap + 1])] = True
    return lasting
