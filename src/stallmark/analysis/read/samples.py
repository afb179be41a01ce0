"""The samples of all groups of a table of counters: what was counted up to each, and where a count is not known.

A sample is named by its place: group × number of times + index of its time. Samples that nobody will ask for can be
left out while others are still added: each adds what it counted to the next that is kept.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

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


class Samples:
    """The samples of groups at `times` (seconds, rising). Two are a gap if further apart than `longest_s`, which is
    given for each two neighbours of `times`."""

    def __init__(self, times: np.ndarray, columns: int, longest_s: np.ndarray):
        self._times, self._longest_s = times, np.append(np.inf, longest_s)
        self._places = np.empty(0, dtype=np.int64)
        self._rises: list[np.ndarray | None] = [np.empty(0)] * columns
        self._lost = self._gaps = np.empty(0, dtype=bool)
        self._new: list[tuple[np.ndarray, list[np.ndarray | None], np.ndarray]] = []
        self._late: list[tuple[int, np.ndarray, np.ndarray, np.ndarray]] = []
        self._unknown: list[tuple[int, int]] = []
        self.added = 0
        """Samples, since some were left out."""

    def take(self, places: np.ndarray, rises: Sequence[np.ndarray | None], lost: np.ndarray) -> None:
        self._new.append((places, list(rises), lost))
        self.added += len(places)

    def take_late(self, column: int, places: np.ndarray, rises: np.ndarray, lost: np.ndarray) -> None:
        self._late.append((column, places, rises, lost))
        self.added += len(places)

    def take_unknown(self, _: int, first: int, last: int) -> None:
        self._unknown.append((first, last))

    def groups(self) -> Iterator[tuple[int, GroupSamples]]:
        """Yield the samples of each group, in order."""
        self._merge()
        group, at = np.divmod(self._places, len(self._times))
        cuts = np.flatnonzero(np.diff(group, prepend=-1)).tolist()
        for begin, end in zip(cuts, [*cuts[1:], len(group)], strict=True):
            rises = [None if one is None else one[begin:end] for one in self._rises]
            between = slice(begin + 1, end)
            yield int(group[begin]), GroupSamples(at[begin:end], rises, self._lost[between], self._gaps[between])

    def thin(self, borders: np.ndarray, open_places: np.ndarray) -> None:
        """Leave out samples, except those before and after the `borders` (indices of times, rising) and the ends of
        gaps, of what was added, and of what may yet be a gap."""
        self._merge()
        if not len(self._places):
            return
        group, at = np.divmod(self._places, len(self._times))
        side = np.searchsorted(borders, at, side="right")
        changes = (np.diff(group) != 0) | (np.diff(side) != 0)
        keep = np.append(True, changes) | np.append(changes, True)
        keep[:-1] |= self._gaps[1:] != self._gaps[:-1]
        opened = np.searchsorted(self._places, open_places)
        keep[opened] = keep[np.maximum(opened - 1, 0)] = True
        kept = np.flatnonzero(keep)
        begins = np.append(0, kept[:-1] + 1)
        self._places, self._gaps = self._places[kept], self._gaps[kept]
        self._lost = np.logical_or.reduceat(self._lost, begins)
        self._rises = [None if one is None else np.add.reduceat(one, begins) for one in self._rises]

    def _merge(self) -> None:
        """Put what was added into its place."""
        before = len(self._places)
        places = np.concatenate([self._places, *(places for places, _, _ in self._new)])
        order = np.argsort(places, kind="stable")  # which is quick where parts are in order already
        places = places[order]
        new = first_of_runs(places)
        self._places = places[new]
        sample = np.empty(len(places), dtype=np.int64)
        sample[order] = np.cumsum(new) - 1
        count = len(self._places)
        for column, rises in enumerate(self._rises):
            parts = []
            for _, added, _ in self._new:  # which let go of what was merged: all of it twice would be much
                if (part := added[column]) is not None:
                    parts.append(part)
                added[column] = None
            if rises is None or len(parts) < len(self._new):
                self._rises[column] = None
            else:
                self._rises[column] = np.bincount(sample, np.concatenate([rises, *parts]), count)
        was, gaps = np.zeros(count, dtype=bool), np.zeros(count, dtype=bool)
        was[sample[:before]], gaps[sample[:before]] = True, self._gaps
        lost = np.concatenate([self._lost, *(lost for _, _, lost in self._new)])
        self._lost = np.bincount(sample[lost], minlength=count) > 0
        self._new, self.added = [], 0
        group, at = np.divmod(self._places, len(self._times))
        apart = (np.diff(group) == 0) & (np.diff(self._times[at]) > self._longest_s[at[1:]])
        gaps[1:] |= apart & ~was[1:]
        for column, places, rises, lost in self._late:
            at = np.searchsorted(self._places, places)
            summed = self._rises[column]
            assert summed is not None
            np.add.at(summed, at, rises)
            self._lost[at[lost]] = True
        edges = np.zeros(count + 1, dtype=np.int64)
        for first, last in self._unknown:
            edges[np.searchsorted(self._places, first)] += 1
            edges[np.searchsorted(self._places, last, side="right")] -= 1
        self._gaps = gaps | (np.cumsum(edges[:-1]) > 0)
        self._late, self._unknown = [], []
