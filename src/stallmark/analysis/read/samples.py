"""The samples of all groups of a table of counters: what was counted up to each, and where a count is not known.

A sample is named by its place: group × number of times + index of its time. Samples that nobody will ask for can be
left out while others are still added: each adds what it counted to the next that is kept.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from stallmark.analysis.read.rises import Rises
from stallmark.analysis.read.sample_times import first_of_runs

MANY = 1 << 16
"""Samples from which on it is worth leaving some out."""


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
