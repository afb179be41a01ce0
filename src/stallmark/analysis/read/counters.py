"""Deltas of raw cumulative counters.

A table of counters has one row per sample and entity. Differences are taken between an entity's neighbouring samples
and then summed over entities. So an entity that restarts is seen even where the sum does not fall. A counter that falls
and an epoch that changes are a **break**: the count between those two samples is unknown and never guessed.

Samples do not fall on the ends of a measured interval or on whole seconds. Between two samples the count is taken to
grow evenly (linear interpolation of the cumulative total). Nothing is extrapolated beyond the first and the last
sample, nor is an end of the interval sought in a gap between samples: `Delta.seconds` says what was covered instead,
and every rate is over that. A gap inside the interval loses nothing, as totals are cumulative.

A null is a sample that was not taken. What was counted meanwhile is known only once there is a value again.

The samples of all groups of a table of counters: what was counted up to each, and where a count is not known.

A sample is named by its place: group × number of times + index of its time. Samples that nobody will ask for can be
left out while others are still added: each adds what it counted to the next that is kept.
"""

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np

from stallmark.analysis.read.rises import Codes, Rises
from stallmark.analysis.read.sample_times import (
    first_of_runs,
    longest_apart_s,
    numbers_of,
    open_s,
    placed,
    planned_interval_s,
    sample_times,
)
from stallmark.errors import StallmarkError
from stallmark.record.reader import Record
from stallmark.stats.thresholds import DATED_ROUGHLY

MANY = 1 << 16
"""Samples from which on it is worth leaving some out."""
PARTS = 256
"""Small arrays from which on they are put together: between them lies memory of batches that is not used again."""


class GroupSamples(NamedTuple):
    """The samples of one group (n). `rises` are None of columns that the table lacks; `lost` and `gaps` (n − 1) are of
    the stretches between two samples."""

    at: np.ndarray  # indices of times
    rises: list[np.ndarray | None]
    lost: np.ndarray
    gaps: np.ndarray


class _Some(NamedTuple):
    """Samples by rising place. Of the stretch before each: its rises, whether its count was lost, whether it is a gap,
    and whether that was looked at."""

    places: np.ndarray
    rises: list[np.ndarray | None]
    lost: np.ndarray
    gaps: np.ndarray
    seen: np.ndarray


class Samples:
    """The samples of groups at `times` (seconds, rising). Two are a gap if further apart than `longest_s`, which is
    given for each two neighbours of `times`. All are kept or, where there are `borders` (indices of times, rising),
    those before and after them, the ends of gaps, and those of which something may yet turn out to be unknown."""

    def __init__(self, times: np.ndarray, columns: int, longest_s: np.ndarray, borders: np.ndarray | None = None):
        self._times, self._longest_s = times, np.append(np.inf, longest_s)
        self._borders = borders
        none = np.empty(0, dtype=bool)
        self._kept = _Some(np.empty(0, dtype=np.int64), [np.empty(0)] * columns, none, none, none)
        self._new: list[_Some] = []
        self._late: list[tuple[int, np.ndarray, np.ndarray, np.ndarray]] = []
        self._unknown: list[tuple[int, int]] = []
        self._added = 0  # since some were left out
        self.rises: Rises | None = None
        """Those that are taken; needed where some are left out."""

    def take(self, places: np.ndarray, rises: Sequence[np.ndarray | None], lost: np.ndarray) -> None:
        some = _Some(places, list(rises), lost, *np.zeros((2, len(places)), dtype=bool))
        if self._borders is not None and not self._late and not self._unknown:
            some = self._thinned(self._looked_at(_in_order(some)))
        self._new.append(some)
        self._added += len(some.places)
        if self._borders is not None and self._added > MANY:
            self._thin()
        elif len(self._new) > PARTS:
            self._merge()

    def take_late(self, column: int, places: np.ndarray, rises: np.ndarray, lost: np.ndarray) -> None:
        self._late.append((column, places, rises, lost))
        self._added += len(places)

    def take_unknown(self, _: int, first: int, last: int) -> None:
        self._unknown.append((first, last))

    def groups(self) -> Iterator[tuple[int, GroupSamples]]:
        """Yield the samples of each group, in order."""
        self._merge()
        if self._borders is not None:
            self._thin()
        kept = self._kept
        group, at = np.divmod(kept.places, len(self._times))
        cuts = np.flatnonzero(np.diff(group, prepend=-1)).tolist()
        for begin, end in zip(cuts, [*cuts[1:], len(group)], strict=True):
            rises = [None if one is None else one[begin:end] for one in kept.rises]
            between = slice(begin + 1, end)
            yield int(group[begin]), GroupSamples(at[begin:end], rises, kept.lost[between], kept.gaps[between])

    def _thin(self) -> None:
        self._merge()
        self._kept = self._thinned(self._kept)

    def _thinned(self, some: _Some) -> _Some:
        """Return the samples that are to be kept."""
        assert self._borders is not None and self.rises is not None
        places = some.places
        if not len(places):
            return some
        group, at = np.divmod(places, len(self._times))
        side = np.searchsorted(self._borders, at, side="right")
        changes = (np.diff(group) != 0) | (np.diff(side) != 0)
        keep = np.append(True, changes) | np.append(changes, True)
        keep[:-1] |= some.gaps[1:] != some.gaps[:-1]
        open_places = self.rises.places_to_keep()
        opened = np.searchsorted(places, open_places[(open_places >= places[0]) & (open_places <= places[-1])])
        keep[opened] = keep[np.maximum(opened - 1, 0)] = True
        kept = np.flatnonzero(keep)
        begins = np.append(0, kept[:-1] + 1)
        return _Some(
            places[kept],
            [None if one is None else np.add.reduceat(one, begins) for one in some.rises],
            np.logical_or.reduceat(some.lost, begins),
            some.gaps[kept],
            some.seen[kept],
        )

    def _looked_at(self, some: _Some) -> _Some:
        """Return the samples with the gaps between those of the same group."""
        group, at = np.divmod(some.places, len(self._times))
        seen = some.seen.copy()
        seen[1:] |= np.diff(group) == 0
        gaps = some.gaps.copy()
        gaps[1:] |= seen[1:] & ~some.seen[1:] & (np.diff(self._times[at]) > self._longest_s[at[1:]])
        return some._replace(gaps=gaps, seen=seen)

    def _merge(self) -> None:
        """Put what was added into its place."""
        parts = [self._kept, *self._new]
        places = np.concatenate([part.places for part in parts])
        order = np.argsort(places, kind="stable")  # which is quick where parts are in order already
        places = places[order]
        new = first_of_runs(places)
        sample = np.empty(len(places), dtype=np.int64)
        sample[order] = np.cumsum(new) - 1
        count = int(new.sum())
        rises: list[np.ndarray | None] = []
        for column in range(len(self._kept.rises)):
            some = [rise for part in parts if (rise := part.rises[column]) is not None]
            rises.append(np.bincount(sample, np.concatenate(some), count) if len(some) == len(parts) else None)
            for part in parts:  # all of it twice would be much
                part.rises[column] = None

        def any_of(flags: list[np.ndarray]) -> np.ndarray:
            found: np.ndarray = np.bincount(sample[np.concatenate(flags)], minlength=count) > 0
            return found

        lost, gaps = any_of([part.lost for part in parts]), any_of([part.gaps for part in parts])
        merged = self._looked_at(_Some(places[new], rises, lost, gaps, any_of([part.seen for part in parts])))
        for late_column, late, rise, fell in self._late:
            at = np.searchsorted(merged.places, late)
            to = merged.rises[late_column]
            assert to is not None
            np.add.at(to, at, rise)
            merged.lost[at[fell]] = True
        edges = np.zeros(count + 1, dtype=np.int64)
        for first, last in self._unknown:
            edges[np.searchsorted(merged.places, first)] += 1
            edges[np.searchsorted(merged.places, last, side="right")] -= 1
        self._kept = merged._replace(gaps=merged.gaps | (np.cumsum(edges[:-1]) > 0))
        self._new, self._late, self._unknown, self._added = [], [], [], 0


def _in_order(some: _Some) -> _Some:
    if (some.places[1:] > some.places[:-1]).all():
        return some
    order = np.argsort(some.places)
    rises = [None if one is None else one[order] for one in some.rises]
    return _Some(some.places[order], rises, *(flags[order] for flags in some[2:]))


class Stretch(Protocol):
    """A stretch of time, in seconds since run start."""

    @property
    def begin(self) -> float: ...
    @property
    def end(self) -> float: ...


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
    open_s: float = 0.0
    """For how long it is open, at both ends together, what was counted: samples there were far apart."""

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
        """Return the rise of a counter that every source has. Raise StallmarkError where the record has none."""
        try:
            return self.values[name]
        except KeyError:
            raise StallmarkError(
                f"The record has no value of the counter {name}: restore it, or leave this record out."
            ) from None

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
    whole: bool = True
    """Not where samples were left out that the intervals asked for do not need: `over` these is all it can tell."""
    means: dict[Any, float | None] = field(default_factory=dict, repr=False, compare=False)
    """Means of seconds that were asked for once: each load of a run asks for those of its server."""

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
        return Delta(begin, end, bool(np.any(self.breaks & inside)), values, open_s(self.t, self.gaps, (begin, end)))

    def per_second(self, seconds: int, *names: str) -> dict[str, np.ndarray]:
        """Return the rise of the counters of these names, or of all, within each of the whole seconds 0 … seconds − 1;
        NaN where samples are too far apart or lost."""
        assert self.whole
        totals = {name: self.totals[name] for name in names or self.totals if name in self.totals}
        if len(self.t) < 2 or not totals:
            return {name: np.full(seconds, np.nan) for name in totals}
        grid = np.arange(seconds + 1.0)
        known = np.zeros(seconds, dtype=bool)
        known[: len(self._known)] = self._known[:seconds]
        return {
            name: np.where(known, np.diff(np.interp(grid, self.t, total)), np.nan) for name, total in totals.items()
        }

    @cached_property
    def _known(self) -> np.ndarray:
        """The whole seconds up to the last sample, and whether it is known of each what was counted in it."""
        grid = np.arange(max(0, int(self.t[-1])) + 1.0)
        lost_before = np.concatenate([[0], np.cumsum(self.breaks | self.gaps)])
        # The gaps that overlap a second are those from the last sample at or before it to the first after it.
        first = np.searchsorted(self.t, grid[:-1], side="right") - 1
        last = np.searchsorted(self.t, grid[1:], side="left")
        known: np.ndarray = (first >= 0) & (lost_before[last] == lost_before[np.maximum(first, 0)])
        return known

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
    within: Sequence[Stretch] | None = None,
) -> dict[str, Counters]:
    """Return the counters of a table by the value of its column `group`; all are under "" without one.

    `entity` is the column that names a row. Samples are dated back by `delay_s`, because they show what had happened by
    then. Memory grows with the samples of groups. Where there are many, `within` are the only intervals that they will
    be asked for; then it grows with groups alone.
    """
    times = sample_times(record, table)
    if times is None or not len(times):
        return {}
    view = View(record, table, times, columns, delay_s, within)
    rises = view.samples.rises = Rises(times, len(columns), view.samples)
    groups, entities, epochs = Codes(), Codes(), Codes()
    names = [name for name in (group, entity, "epoch") if name]
    for at, batch in placed(record, table, [*names, *columns]):
        values = [numbers_of(batch, column) for column in columns]
        rises.add(at, groups.of(batch, group), entities.of(batch, entity), epochs.of(batch, "epoch"), values)
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
        found = {}
        for code, of_group in self.samples.groups():
            t = self._times[of_group.at]
            totals = {
                name: np.cumsum(rise, out=rise)
                for name, rise, has in zip(self._columns, of_group.rises, known, strict=True)
                if rise is not None and code in has
            }
            breaks = lasting(of_group.lost, t, self._delay_s)
            name = names[code] if names else ""
            found[name] = Counters(t - self._delay_s, totals, breaks, of_group.gaps, self._whole)
        return found


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
