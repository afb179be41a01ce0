"""The counts of each group's entities between the samples of a profile, and their states at each.

Memory grows with groups and samples. A place is a group and a sample: group × number of samples + index of the sample.
"""

from bisect import bisect_left
from collections.abc import Sequence

import numpy as np

from stallmark.analysis.read.codes import PairCodes
from stallmark.analysis.read.rises import Rises
from stallmark.analysis.read.sample_times import first_of_runs


class GroupRises:
    """The counts of each interval, between one of `samples` samples and the next, by group and column."""

    def __init__(self, samples: int, columns: int):
        self._samples = samples
        self._rises = np.zeros((columns, 0))
        self._met = self._lost = np.zeros(0, dtype=bool)
        self._unknown: list[tuple[int, int, int]] = []
        self._reader = Rises(np.arange(samples, dtype=float), columns, self)

    def add(
        self,
        at: np.ndarray,
        group: np.ndarray,
        entity: np.ndarray,
        epoch: np.ndarray,
        values: Sequence[np.ndarray | None],
    ) -> None:
        """Add rows: the indices of their samples, codes, and the values of each column, NaN for null."""
        more = int(group.max(initial=-1) + 1) * self._samples - len(self._met)
        if more > 0:
            self._rises = np.pad(self._rises, ((0, 0), (0, more)))
            self._met, self._lost = np.pad(self._met, (0, more)), np.pad(self._lost, (0, more))
        self._reader.add(at, group, entity, epoch, values)

    def take(self, places: np.ndarray, rises: Sequence[np.ndarray | None], lost: np.ndarray) -> None:
        self._met[places] = True
        self._lost[places] |= lost
        for column, rise in enumerate(rises):
            if rise is not None:
                self._rises[column, places] += rise

    def take_late(self, column: int, places: np.ndarray, rises: np.ndarray, lost: np.ndarray) -> None:
        np.add.at(self._rises[column], places, rises)
        self._lost[places] |= lost

    def take_unknown(self, column: int, first: int, last: int) -> None:
        self._unknown.append((column, first, last))

    def finish(self) -> None:
        """Take in what is known only after the last row."""
        self._reader.finish()

    def of(self, group: int) -> list[np.ndarray]:
        """Return what was counted in each interval (n − 1), by column; NaN where it is not known. Where one counter
        began anew the others are not told either: a reset that is seen in one may be hidden in another."""
        begin = group * self._samples
        own = slice(begin, begin + self._samples)
        met = np.flatnonzero(self._met[own]).tolist()
        found = []
        for column, rises in enumerate(self._rises[:, own]):
            rise = rises[1:].copy()
            rise[self._lost[own][1:]] = np.nan
            rise[: met[0] if group in self._reader.groups_with(column) else None] = np.nan
            for of, first, last in self._unknown:
                if of == column and own.start <= first < own.stop:
                    # Rows that are not stored are as they were: nothing is known since the sample that had one.
                    since = met[max(bisect_left(met, first - begin) - 1, 0)]
                    rise[since : last - begin] = np.nan
            found.append(rise)
        return found


class GroupStates:
    """The sum of a state over the entities of each group, at each of `samples` samples."""

    def __init__(self, samples: int):
        self._samples = samples
        self._numbers = PairCodes()
        self._last = np.empty(0)  # of each entity
        self._sum, self._known = np.zeros(0), np.zeros(0, dtype=np.int64)  # by how much they change at each place

    def add(self, at: np.ndarray, group: np.ndarray, entity: np.ndarray, values: np.ndarray) -> None:
        """Add rows: the indices of their samples, codes, and values, NaN for null."""
        if not len(at):
            return
        number = self._numbers.of(group, entity)
        self._last = np.append(self._last, np.full(len(self._numbers) - len(self._last), np.nan))
        places = group * self._samples + at
        order = np.argsort(number, kind="stable")
        number, values, places = number[order], values[order], places[order]
        first = first_of_runs(number)
        before = np.append(np.nan, values[:-1])
        before[first] = self._last[number[first]]
        self._last[number] = values  # of several, the last
        count = max(len(self._sum), int(group.max() + 1) * self._samples)
        self._sum = np.pad(self._sum, (0, count - len(self._sum)))
        self._known = np.pad(self._known, (0, count - len(self._known)))
        np.add.at(self._sum, places, np.nan_to_num(values) - np.nan_to_num(before))
        np.add.at(self._known, places, np.isfinite(values).astype(int) - np.isfinite(before))

    def of(self, group: int) -> np.ndarray:
        """Return the sum at each sample (n), each entity as it was stored last; NaN where none of them has a value."""
        own = slice(group * self._samples, (group + 1) * self._samples)
        total, known = np.cumsum(self._sum[own]), np.cumsum(self._known[own])
        return np.where(known > 0, total, np.nan)
