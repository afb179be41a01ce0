"""By how much the counters of a table rose from row to row of an entity, read a batch at a time.

The rows of an entity come in the order of time. Kept of it is its last row, and where its last values are null, the
places of these. So memory grows with entities, never with rows.

A run is an entity's rows in one epoch. Between two of its values that lie around nulls it is taken to have counted
evenly. Before its first value and after its last it is not known what was counted. An entity first seen later began at
zero, if the epoch is one that others of its group were already seen in.

Texts of a table as small integers, and entities of groups, the same in all its batches.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stallmark.analysis.read.sample_times import first_of_runs
from stallmark.stats.thresholds import ROUNDING

NONE = "none"
"""Stands for a null."""


DENSE = 1 << 20
"""Pairs that there may be, up to which their codes are looked up in a table of them all."""


class Codes:
    """The codes of the texts of one column, in the order in which they were met."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}
        self._texts = pa.array([], pa.string())

    @property
    def names(self) -> list[str]:
        return list(self._known)

    def of(self, batch: pa.RecordBatch, column: str | None) -> np.ndarray:
        """Return the codes of a batch's rows; all 0, and no text, without the column."""
        if column is None or column not in batch.schema.names:
            return np.zeros(batch.num_rows, dtype=np.int64)
        array = batch.column(column)
        if not pa.types.is_dictionary(array.type):
            array = pc.dictionary_encode(array.cast(pa.string()))
        codes = pc.index_in(array.dictionary, value_set=self._texts)
        if array.null_count or codes.null_count:
            return self._learn(array)
        found: np.ndarray = codes.to_numpy().astype(np.int64)[array.indices.to_numpy()]
        return found

    def _learn(self, array: pa.DictionaryArray) -> np.ndarray:
        """Return the codes of rows of which some have a text that was not met before, or none."""
        texts = [*array.dictionary.to_pylist(), NONE]
        indices = array.indices.fill_null(len(texts) - 1).to_numpy(zero_copy_only=False)
        codes = np.full(len(texts), -1, dtype=np.int64)
        for place in np.flatnonzero(np.bincount(indices, minlength=len(texts))):  # a dictionary may hold more
            codes[place] = self._known.setdefault(texts[place], len(self._known))
        if len(self._known) > len(self._texts):
            self._texts = pa.array(self._known, pa.string())
        found: np.ndarray = codes[indices]
        return found


class PairCodes:
    """The codes of pairs of codes, as an entity and its group are, in the order in which they were met."""

    def __init__(self) -> None:
        self._known: dict[int, int] = {}
        self._room = 0, 0  # one more than the highest codes of either kind
        self._table = np.empty((0, 0), dtype=np.int32)  # of the pairs known, by both codes; −1 elsewhere

    def __len__(self) -> int:
        return len(self._known)

    @property
    def pairs(self) -> list[tuple[int, int]]:
        return [(pair >> 32, pair & (1 << 32) - 1) for pair in self._known]

    def of(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Return the codes of the pairs in two arrays."""
        if not len(first):
            return first
        rows, columns = self._table.shape
        if first.max() < rows and second.max() < columns:
            found: np.ndarray = self._table.ravel()[first * columns + second].astype(np.int64)
            if found.min() >= 0:
                return found
        return self._learn(first, second)

    def _learn(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Return the codes of pairs of which some were not met before."""
        pairs = pa.array((first << 32) | second).dictionary_encode()
        codes = [self._known.setdefault(pair, len(self._known)) for pair in pairs.dictionary.to_pylist()]
        self._room = max(self._room[0], int(first.max()) + 1), max(self._room[1], int(second.max()) + 1)
        if self._room[0] * self._room[1] <= DENSE:
            known = np.array(list(self._known), dtype=np.int64)
            self._table = np.full(self._room, -1, dtype=np.int32)
            self._table[known >> 32, known & (1 << 32) - 1] = np.arange(len(known))
        found: np.ndarray = np.array(codes, dtype=np.int64)[pairs.indices.to_numpy()]
        return found


class Taker(Protocol):
    """A receiver of rises. A place is a group and a time: group × number of times + index of the time."""

    def take(self, places: np.ndarray, rises: Sequence[np.ndarray | None], lost: np.ndarray) -> None:
        """Take the rises of each column to the samples in `places`, each once; before those `lost` a count was lost."""

    def take_late(self, column: int, places: np.ndarray, rises: np.ndarray, lost: np.ndarray) -> None:
        """Take rises of one column to samples that were taken before, whose values are known only now."""

    def take_unknown(self, column: int, first: int, last: int) -> None:
        """Take that it is not known what a column counted up to each of the samples in these places."""


def summed(
    places: np.ndarray, rises: Sequence[np.ndarray | None], lost: np.ndarray
) -> tuple[np.ndarray, list[np.ndarray | None], np.ndarray]:
    """Return each of the places once, rising or as they were met, with the sums of its rises, and whether a count was
    lost before it."""
    low = int(places.min())
    room = int(places.max()) - low + 1
    if room <= 4 * len(places):
        sample = places - low
        there = np.flatnonzero(np.bincount(sample, minlength=room))
        met = there + low
    else:
        encoded = pa.array(places).dictionary_encode()
        sample, met = encoded.indices.to_numpy(), encoded.dictionary.to_numpy()
        room = len(met)
        there = np.arange(room)
    return (
        met,
        [None if rise is None else np.bincount(sample, rise, room)[there] for rise in rises],
        (np.bincount(sample[lost], minlength=room) > 0)[there],
    )


class Rises:
    """The rises of `columns` counters at `times` (seconds, rising), for a taker."""

    def __init__(self, times: np.ndarray, columns: int, taker: Taker):
        self._times, self._taker = times, taker
        self._numbers = PairCodes()  # of an entity, by its group and its code
        self._began: dict[tuple[int, int], int] = {}  # when peers were first seen in an epoch
        self._waiting: dict[tuple[int, int], list[range]] = {}  # nulls after a value, by column and entity
        none = np.empty(0, dtype=np.int64)
        # Of each entity: the place of time 0 in its group, the epoch of its run, whether that is of a newcomer, the
        # times of its first row and of the last.
        self._group, self._epoch, self._newcomer, self._begun, self._last = (none.copy() for _ in range(5))
        # Of each column and entity: the last value of the run, and its time, -1 where there is none yet.
        self._value, self._known = np.empty((columns, 0)), np.empty((columns, 0), dtype=np.int64)

    def add(
        self,
        at: np.ndarray,
        group: np.ndarray,
        entity: np.ndarray,
        epoch: np.ndarray,
        values: Sequence[np.ndarray | None],
        peers: np.ndarray | None = None,
    ) -> None:
        """Add rows: the indices of their times, codes, and the values of each column, NaN for null. None stands for a
        column that the table lacks. An entity may be a newcomer among its `peers`: those of its group, or by these
        codes."""
        if not len(at):
            return
        number = self._number(group, entity)
        peers = group if peers is None else peers
        # Short numbers are sorted by counting them.
        order = np.argsort(number.astype(np.uint16) if len(self._numbers) <= 1 << 16 else number, kind="stable")
        number, at, epoch = number[order], at[order], epoch[order]
        places = self._group[number] + at
        first = first_of_runs(number)
        before = np.append(-1, epoch[:-1])
        before[first] = self._epoch[number[first]]
        rows = _Rows(number, at, epoch, places, first, before == epoch)
        newcomer = self._newcomers(rows, order, before < 0, peers[order])
        lost = (before >= 0) & ~rows.follows
        rises: list[np.ndarray | None] = []
        for column, unsorted in enumerate(values):
            rises.append(None)
            if unsorted is not None:
                rises[-1], fell = self._rise(column, rows, unsorted[order], newcomer)
                if fell is not None:
                    lost |= fell
        self._remember(rows, newcomer)
        if (places[1:] > places[:-1]).all():  # every entity is a group by itself
            self._taker.take(places, rises, lost)
        else:
            self._taker.take(*summed(places, rises, lost))

    def finish(self) -> None:
        """Tell what is not known after the last values."""
        for column, number in zip(*np.nonzero((self._known >= 0) & (self._known < self._last)), strict=True):
            self._end(int(column), int(number), int(self._last[number]))

    def places_to_keep(self) -> np.ndarray:
        """Return the places from or to which something may yet turn out to be unknown."""
        seen = np.flatnonzero(self._last >= 0)
        _, nothing_yet = np.nonzero(self._known[:, seen] < 0)
        column, null_since = np.nonzero((self._known[:, seen] >= 0) & (self._known[:, seen] < self._last[seen]))
        ends = [self._last[seen], self._begun[seen[nothing_yet]], self._known[column, seen[null_since]]]
        groups = [self._group[seen], self._group[seen[nothing_yet]], self._group[seen[null_since]]]
        return np.unique(np.concatenate(groups) + np.concatenate(ends))

    def groups_with(self, column: int) -> set[int]:
        """Return the groups that have a value in a column."""
        valued = self._group[~np.isnan(self._value[column])]
        return set((valued // len(self._times)).tolist())

    def _number(self, group: np.ndarray, entity: np.ndarray) -> np.ndarray:
        """Return the number of each row's entity."""
        found = self._numbers.of(group, entity)
        room = len(self._group)
        if len(self._numbers) > room:
            more = max(len(self._numbers) - room, room)
            new = np.zeros(more, dtype=np.int64)
            self._group, self._newcomer = np.append(self._group, new), np.append(self._newcomer, new)
            self._epoch, self._begun = np.append(self._epoch, new - 1), np.append(self._begun, new)
            self._last = np.append(self._last, new - 1)
            self._value = np.pad(self._value, ((0, 0), (0, more)), constant_values=np.nan)
            self._known = np.pad(self._known, ((0, 0), (0, more)), constant_values=-1)
        self._group[found] = group * len(self._times)
        return found

    def _newcomers(self, rows: "_Rows", order: np.ndarray, new: np.ndarray, peers: np.ndarray) -> np.ndarray:
        """Return which rows are the first of an entity that began at zero."""
        newcomer = np.zeros(len(new), dtype=bool)
        begins = np.flatnonzero(~rows.follows)
        for row in begins[np.argsort(order[begins])].tolist():  # in the order of time
            at = int(rows.at[row])
            began = self._began.setdefault((int(peers[row]), int(rows.epoch[row])), at)
            newcomer[row] = new[row] and began < at
        return newcomer

    def _rise(
        self, column: int, rows: "_Rows", values: np.ndarray, newcomer: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Return the rise of a column to each row, and before which rows it fell, and so began again; None of it where
        it never did."""
        begins, ends = rows.begins, rows.ends
        number = rows.number[begins]
        known, value = self._known[column], self._value[column]  # a value of an earlier run stays
        rise = np.empty(len(values))
        np.subtract(values[1:], values[:-1], out=rise[1:])
        rise[begins] = values[begins] - value[number]
        if rows.all_follow and rise.min() >= 0 and (known[number] == self._last[number]).all():
            value[number], known[number] = values[ends - 1], rows.at[ends - 1]
            return rise, None
        empty = np.isnan(values)
        nulls = np.add.reduceat(empty, begins, dtype=np.int64)
        null = (nulls > 0) | (known[number] < self._last[number])
        # A mean × count, which is how Query Store tells a total, differs in its last digits from sample to sample.
        fell = rows.follows & (rise < -ROUNDING * np.abs(values))
        rise = np.where(newcomer, values, np.where(rows.follows & ~fell, rise, 0.0))
        if null.any():
            apart = np.repeat(null, ends - begins)
            rise[apart], fell[apart] = 0.0, False
            # An entity that has no such counter has nothing but nulls.
            goes_on = np.add.reduceat(~rows.follows, begins, dtype=np.int64) == 0
            idle = (nulls == ends - begins) & (known[number] < 0) & goes_on
            for one in np.flatnonzero(null & ~idle):
                self._with_nulls(column, rows, slice(begins[one], ends[one]), values, newcomer)
        whole = number[~null]
        value[whole], known[whole] = values[ends[~null] - 1], rows.at[ends[~null] - 1]
        return rise, fell

    def _with_nulls(self, column: int, rows: "_Rows", part: slice, values: np.ndarray, newcomer: np.ndarray) -> None:
        """Add the rows of one entity that has nulls among them, or had in its last rows."""
        number = int(rows.number[part.start])
        cuts = part.start + 1 + np.flatnonzero(~rows.follows[part.start + 1 : part.stop])
        for begin, end in pairwise([part.start, *cuts.tolist(), part.stop]):
            begun, is_newcomer = int(self._begun[number]), bool(self._newcomer[number])
            is_new = not rows.follows[begin]
            if is_new:
                last = self._last[number] if begin == part.start else rows.at[begin - 1]
                self._end(column, number, int(last))
                self._known[column, number] = -1
                begun, is_newcomer = int(rows.at[begin]), bool(newcomer[begin])
            at, found = rows.at[begin:end], values[begin:end]
            there = np.flatnonzero(~np.isnan(found))
            if not len(there):
                if self._known[column, number] >= 0:
                    self._wait(column, number, at)
                continue
            if self._known[column, number] < 0:
                first = int(there[0])
                if is_newcomer:
                    self._late(column, number, np.array([begun]), found[first : first + 1])
                if first or not is_new:
                    group = int(self._group[number])
                    self._taker.take_unknown(column, group + begun, group + int(at[first]))
                at, found = at[first:], found[first:]
            else:
                waited = [np.arange(some.start, some.stop) for some in self._waiting.pop((column, number), [])]
                at = np.concatenate([self._known[column, number : number + 1], *waited, at])
                unknown = np.full(len(at) - len(found) - 1, np.nan)
                found = np.concatenate([self._value[column, number : number + 1], unknown, found])
            self._between(column, number, at, found)

    def _between(self, column: int, number: int, at: np.ndarray, values: np.ndarray) -> None:
        """Add rows of one run that begin with a value, nulls up to its last one filled."""
        there = np.flatnonzero(~np.isnan(values))
        last = int(there[-1])
        upto = at[: last + 1]
        filled = np.interp(self._times[upto], self._times[at[there]], values[there])
        filled[there] = values[there]
        self._late(column, number, upto[1:], np.diff(filled), filled[1:])
        self._value[column, number], self._known[column, number] = values[last], at[last]
        self._wait(column, number, at[last + 1 :])

    def _late(
        self, column: int, number: int, at: np.ndarray, rise: np.ndarray, values: np.ndarray | None = None
    ) -> None:
        fell = np.zeros(len(at), dtype=bool) if values is None else rise < -ROUNDING * np.abs(values)
        self._taker.take_late(column, self._group[number] + at, np.where(fell, 0.0, rise), fell)

    def _wait(self, column: int, number: int, at: np.ndarray) -> None:
        """Keep the places of nulls until there is a value again."""
        if not len(at):
            return
        waiting = self._waiting.setdefault((column, number), [])
        for some in np.split(at, np.flatnonzero(np.diff(at) != 1) + 1):
            begin, end = int(some[0]), int(some[-1]) + 1
            if waiting and waiting[-1].stop == begin:
                begin = waiting.pop().start
            waiting.append(range(begin, end))

    def _end(self, column: int, number: int, last: int) -> None:
        """End a run with the row at time `last`: after its last value nothing is known."""
        known, group = int(self._known[column, number]), int(self._group[number])
        self._waiting.pop((column, number), None)
        if 0 <= known < last:
            self._taker.take_unknown(column, group + known + 1, group + last)

    def _remember(self, rows: "_Rows", newcomer: np.ndarray) -> None:
        """Keep the last row of each entity."""
        begins = np.flatnonzero(~rows.follows)
        self._begun[rows.number[begins]] = rows.at[begins]  # of several, the last
        self._newcomer[rows.number[begins]] = newcomer[begins]
        last = rows.ends - 1
        self._epoch[rows.number[last]], self._last[rows.number[last]] = rows.epoch[last], rows.at[last]


class _Rows:
    """Rows of a batch in the order of entity and time."""

    def __init__(
        self,
        number: np.ndarray,
        at: np.ndarray,
        epoch: np.ndarray,
        places: np.ndarray,
        first: np.ndarray,
        follows: np.ndarray,
    ):
        self.number, self.at, self.epoch, self.places = number, at, epoch, places
        self.first = first  # of their entity in this batch
        self.follows = follows  # one before them of the same run
        self.all_follow = bool(follows.all())
        self.begins = np.flatnonzero(first)
        self.ends = np.append(self.begins[1:], len(first))
