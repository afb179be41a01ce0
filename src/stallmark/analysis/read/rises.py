"""Per-row increments of a table's cumulative counters, computed batch by batch.

Terms. An *entity* is a row's subject, such as a file; its rows come in the order of time. An *epoch* numbers the
periods between resets of its counters: a new epoch begins again at zero. A *run* is an entity's rows in one epoch. A
*place* is the index of a group and a time: group × number of times + index of the time. Only the last row of each
entity is kept, plus the indexes of its trailing nulls, so memory grows with entities, never with rows.

Increments. The values 10, 14, null, 20 at the times 0, 1, 2, 3 s give the increments 4, 3, 3: between two values around
nulls the counter is assumed to grow evenly. Before the first value of a run and after its last the increment is
unknown. A value below its predecessor is a reset: that increment is lost, and never guessed. An entity that appears
after its peers of the same epoch began at zero, so its first value is an increment too.

Texts of a table are coded as small integers, and so are pairs of entity and group; the codes are the same in all
batches.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stallmark.analysis.read.times import first_of_runs
from stallmark.stats.thresholds import ROUNDING

NONE = "none"
"""The text of a null."""


DENSE = 1 << 20
"""Number of possible pairs up to which their codes are looked up in a table of all pairs."""


class Codes:
    """The codes of the texts of one column, in the order in which they were met."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}
        self._texts = pa.array([], pa.string())

    @property
    def names(self) -> list[str]:
        return list(self._known)

    def codes(self, batch: pa.RecordBatch, column: str | None) -> np.ndarray:
        """Return the codes of a batch's rows; all 0, and no text, without the column."""
        if column is None or column not in batch.schema.names:
            return np.zeros(batch.num_rows, dtype=np.int64)
        array = batch.column(column)
        if not pa.types.is_dictionary(array.type):
            array = pc.dictionary_encode(array.cast(pa.string()))
        codes = pc.index_in(array.dictionary, value_set=self._texts)
        if array.null_count or codes.null_count:
            return self._learn(array)
        row_codes: np.ndarray = codes.to_numpy().astype(np.int64)[array.indices.to_numpy()]
        return row_codes

    def _learn(self, array: pa.DictionaryArray) -> np.ndarray:
        """Return the codes of rows if some have a new text, or null."""
        texts = [*array.dictionary.to_pylist(), NONE]
        indices = array.indices.fill_null(len(texts) - 1).to_numpy(zero_copy_only=False)
        codes = np.full(len(texts), -1, dtype=np.int64)
        for place in np.flatnonzero(np.bincount(indices, minlength=len(texts))):  # a dictionary may hold more
            codes[place] = self._known.setdefault(texts[place], len(self._known))
        if len(self._known) > len(self._texts):
            self._texts = pa.array(self._known, pa.string())
        row_codes: np.ndarray = codes[indices]
        return row_codes


class PairCodes:
    """The codes of pairs of codes, such as an entity and its group, in the order of appearance."""

    def __init__(self) -> None:
        self._known: dict[int, int] = {}
        self._room = 0, 0  # one more than the highest codes of either kind
        self._table = np.empty((0, 0), dtype=np.int32)  # codes of known pairs, by both parts; −1 elsewhere

    def __len__(self) -> int:
        return len(self._known)

    @property
    def pairs(self) -> list[tuple[int, int]]:
        return [(pair >> 32, pair & (1 << 32) - 1) for pair in self._known]

    def codes(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Return the codes of the pairs in two arrays."""
        if not len(first):
            return first
        rows, columns = self._table.shape
        if first.max() < rows and second.max() < columns:
            pair_codes: np.ndarray = self._table.ravel()[first * columns + second].astype(np.int64)
            if pair_codes.min() >= 0:
                return pair_codes
        return self._learn(first, second)

    def _learn(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Return the codes of pairs if some are new."""
        pairs = pa.array((first << 32) | second).dictionary_encode()
        codes = [self._known.setdefault(pair, len(self._known)) for pair in pairs.dictionary.to_pylist()]
        self._room = max(self._room[0], int(first.max()) + 1), max(self._room[1], int(second.max()) + 1)
        if self._room[0] * self._room[1] <= DENSE:
            known = np.array(list(self._known), dtype=np.int64)
            self._table = np.full(self._room, -1, dtype=np.int32)
            self._table[known >> 32, known & (1 << 32) - 1] = np.arange(len(known))
        pair_codes: np.ndarray = np.array(codes, dtype=np.int64)[pairs.indices.to_numpy()]
        return pair_codes


class IncrementSink(Protocol):
    """A receiver of increments, by place."""

    def add(self, places: np.ndarray, rises: Sequence[np.ndarray | None], lost: np.ndarray) -> None:
        """Add the increments of each column at the samples in `places`, each given once; at the places `lost` a reset
        lost the count before."""

    def add_late(self, column: int, places: np.ndarray, rises: np.ndarray, lost: np.ndarray) -> None:
        """Add increments of one column at samples that were added before, whose values became known only now."""

    def mark_unknown(self, column: int, first: int, last: int) -> None:
        """Mark the increments of a column as unknown at the samples from place `first` to `last`."""


@runtime_checkable
class GridSink(IncrementSink, Protocol):
    """A receiver that takes whole samples as well; others get them row by row."""

    def add_grid(self, time: np.ndarray, groups: np.ndarray, rises: Sequence[np.ndarray | None]) -> None:
        """Add the increments of each column, shape (times, entities), at rising times by index. `groups` has the place
        of time 0 in the group of each entity."""


def sum_by_place(
    places: np.ndarray, rises: Sequence[np.ndarray | None], lost: np.ndarray
) -> tuple[np.ndarray, list[np.ndarray | None], np.ndarray]:
    """Return each place once, with the sums of its increments, and whether a count was lost before it."""
    low = int(places.min())
    room = int(places.max()) - low + 1
    # Counting into an array beats hashing as long as the places are dense.
    if room <= 4 * len(places):
        sample = places - low
        present = np.flatnonzero(np.bincount(sample, minlength=room))
        met = present + low
    else:
        encoded = pa.array(places).dictionary_encode()
        sample, met = encoded.indices.to_numpy(), encoded.dictionary.to_numpy()
        room = len(met)
        present = np.arange(room)
    return (
        met,
        [None if rise is None else np.bincount(sample, rise, room)[present] for rise in rises],
        (np.bincount(sample[lost], minlength=room) > 0)[present],
    )


class CounterIncrements:
    """Computes the increments of counters, batch by batch, and passes them to a sink. `times` are seconds, rising."""

    def __init__(self, times: np.ndarray, columns: int, taker: IncrementSink):
        self._times, self._sink = times, taker
        self._grids = taker if isinstance(taker, GridSink) else None
        self._waiting: _Batch | None = None  # rows of the last sample, which may go on in the next batch
        self._numbers = PairCodes()  # number of an entity, by its group and its code
        self._began: dict[tuple[int, int], int] = {}  # when peers were first seen in an epoch
        self._held_nulls: dict[tuple[int, int], list[range]] = {}  # nulls after a value, by column and entity
        none = np.empty(0, dtype=np.int64)
        # Of each entity: the place of time 0 in its group, the epoch of its run, whether that is of a newcomer, the
        # times of its first row and of the last.
        self._group, self._epoch, self._newcomer, self._begun, self._last = (none.copy() for _ in range(5))
        # Of each column and entity: the last value of the run, and its time, -1 where there is none yet.
        self._value, self._known = np.empty((columns, 0)), np.empty((columns, 0), dtype=np.int64)

    def add(
        self,
        time: np.ndarray,
        group: np.ndarray,
        entity: np.ndarray,
        epoch: np.ndarray,
        values: Sequence[np.ndarray | None],
        peers: np.ndarray | None = None,
    ) -> None:
        """Add rows: the indices of their times, codes, and the values of each column, NaN for null, or None for a
        column that the table lacks.

        An entity that appears later than its `peers` began at zero. Peers are the entities of its group, or those with
        equal codes in `peers`.
        """
        batch = _Batch(time, group, entity, epoch, group if peers is None else peers, values)
        if self._grids is None:
            self._add_rows(batch)
            return
        batch = self._waiting.followed_by(batch) if self._waiting else batch
        added = self._add_grid(batch)
        if not added:
            # The last sample may go on in the next batch, and a grid begins with the first row of a sample.
            added = int(np.append(0, np.flatnonzero(np.diff(batch.time)) + 1)[-1])
            self._add_rows(batch.part(0, added))
        self._waiting = batch.part(added, len(batch.time)) if added < len(batch.time) else None

    def _add_grid(self, batch: "_Batch") -> int:
        """Add the samples of a batch at once if all have the same known entities in one order, and no counter was reset
        or lacks a value. Return the number of their rows, 0 if they differ."""
        time, group, entity, epoch, _, values = batch
        assert self._grids
        width = int(np.argmax(time != time[0]))
        height = len(time) // width if width else 0
        size = width * height
        if height < 2 or any((part[width:size] != part[: size - width]).any() for part in (group, entity, epoch)):
            return 0
        samples = time[:size:width]
        if (np.diff(samples) <= 0).any() or (time[:size].reshape(height, width) != samples[:, np.newaxis]).any():
            return 0
        number = self._entity_numbers(group[:width], entity[:width])
        last = self._last[number]
        if (self._epoch[number] != epoch[:width]).any() or np.bincount(number).max() > 1:
            return 0
        rises: list[np.ndarray | None] = [None] * len(values)
        for column, flat in enumerate(values):
            if flat is None:
                continue
            grid, never = flat[:size].reshape(height, width), self._known[column, number] < 0
            rise = rises[column] = np.empty_like(grid)
            np.subtract(grid[0], self._value[column, number], out=rise[0])
            np.subtract(grid[1:], grid[:-1], out=rise[1:])
            if never.any():
                # An entity that has no such counter has nothing but nulls.
                if not np.isnan(grid[:, never]).all():
                    return 0
                rise[:, never] = 0.0
            # NaN fails the comparison.
            if not (rise.min() >= 0 and (never | (self._known[column, number] == last)).all()):
                return 0
        for column, flat in enumerate(values):
            if flat is not None:
                known = self._known[column, number] >= 0
                self._value[column, number[known]] = flat[size - width : size][known]
                self._known[column, number[known]] = samples[-1]
        self._last[number] = samples[-1]
        self._grids.add_grid(samples, self._group[number], rises)
        return size

    def _add_rows(self, batch: "_Batch") -> None:
        time, group, entity, epoch, peers, values = batch
        if not len(time):
            return
        number = self._entity_numbers(group, entity)
        # Short numbers are sorted by counting them.
        order = np.argsort(number.astype(np.uint16) if len(self._numbers) <= 1 << 16 else number, kind="stable")
        number, time, epoch = number[order], time[order], epoch[order]
        places = self._group[number] + time
        first = first_of_runs(number)
        before = np.append(-1, epoch[:-1])
        before[first] = self._epoch[number[first]]
        rows = _Rows(number, time, epoch, first, before == epoch)
        newcomer = self._find_newcomers(rows, order, before < 0, peers[order])
        lost = (before >= 0) & ~rows.follows
        rises: list[np.ndarray | None] = []
        for column, unsorted in enumerate(values):
            rises.append(None)
            if unsorted is not None:
                rises[-1], fell = self._increments(column, rows, unsorted[order], newcomer)
                if fell is not None:
                    lost |= fell
        self._remember(rows, newcomer)
        if (places[1:] > places[:-1]).all():  # every entity is its own group: nothing to add up
            self._sink.add(places, rises, lost)
        else:
            self._sink.add(*sum_by_place(places, rises, lost))

    def finish(self) -> None:
        """Add the last sample, and mark the increments after the last values as unknown."""
        if self._waiting:
            self._add_rows(self._waiting)
            self._waiting = None
        for column, number in zip(*np.nonzero((self._known >= 0) & (self._known < self._last)), strict=True):
            self._close_epoch(int(column), int(number), int(self._last[number]))

    def places_to_keep(self) -> np.ndarray:
        """Return the places at either end of a span that may still turn out to be unknown."""
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

    def _entity_numbers(self, group: np.ndarray, entity: np.ndarray) -> np.ndarray:
        """Return the number of each row's entity."""
        numbers = self._numbers.codes(group, entity)
        room = len(self._group)
        if len(self._numbers) > room:
            more = max(len(self._numbers) - room, room)
            new = np.zeros(more, dtype=np.int64)
            self._group, self._newcomer = np.append(self._group, new), np.append(self._newcomer, new)
            self._epoch, self._begun = np.append(self._epoch, new - 1), np.append(self._begun, new)
            self._last = np.append(self._last, new - 1)
            self._value = np.pad(self._value, ((0, 0), (0, more)), constant_values=np.nan)
            self._known = np.pad(self._known, ((0, 0), (0, more)), constant_values=-1)
        self._group[numbers] = group * len(self._times)
        return numbers

    def _find_newcomers(self, rows: "_Rows", order: np.ndarray, new: np.ndarray, peers: np.ndarray) -> np.ndarray:
        """Return a mask of the rows that are the first of an entity that began at zero."""
        newcomer = np.zeros(len(new), dtype=bool)
        begins = np.flatnonzero(~rows.follows)
        for row in begins[np.argsort(order[begins])].tolist():  # sorted by time
            time = int(rows.at[row])
            began = self._began.setdefault((int(peers[row]), int(rows.epoch[row])), time)
            newcomer[row] = new[row] and began < time
        return newcomer

    def _increments(
        self, column: int, rows: "_Rows", values: np.ndarray, newcomer: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Return the increment of a column at each row, and a mask of the rows before which it was reset, or None
        without any."""
        begins, ends = rows.begins, rows.ends
        number = rows.number[begins]
        known, value = (
            self._known[column],
            self._value[column],
        )  # the value of an earlier run stays, and the epoch decides whether it counts
        rise = np.empty(len(values))
        np.subtract(values[1:], values[:-1], out=rise[1:])
        rise[begins] = values[begins] - value[number]
        # Fast path: no resets, no nulls, every entity continues its run: plain differences suffice. NaN fails the
        # comparison.
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
            for index in np.flatnonzero(null & ~idle):
                self._add_rows_with_nulls(column, rows, slice(begins[index], ends[index]), values, newcomer)
        whole = number[~null]
        value[whole], known[whole] = values[ends[~null] - 1], rows.at[ends[~null] - 1]
        return rise, fell

    def _add_rows_with_nulls(
        self, column: int, rows: "_Rows", part: slice, values: np.ndarray, newcomer: np.ndarray
    ) -> None:
        """Add the rows of one entity with nulls among them, or in its last rows."""
        number = int(rows.number[part.start])
        cuts = part.start + 1 + np.flatnonzero(~rows.follows[part.start + 1 : part.stop])
        for begin, end in pairwise([part.start, *cuts.tolist(), part.stop]):
            begun, is_newcomer = int(self._begun[number]), bool(self._newcomer[number])
            is_new = not rows.follows[begin]
            # Case 1: a new epoch. The run before ends with its last value; the new one has none yet.
            if is_new:
                last = self._last[number] if begin == part.start else rows.at[begin - 1]
                self._close_epoch(column, number, int(last))
                self._known[column, number] = -1
                begun, is_newcomer = int(rows.at[begin]), bool(newcomer[begin])
            time, entity_values = rows.at[begin:end], values[begin:end]
            known_indices = np.flatnonzero(~np.isnan(entity_values))
            # Case 2: all null. Hold the indexes until a value follows; before the first value they stay unknown.
            if not len(known_indices):
                if self._known[column, number] >= 0:
                    self._hold_nulls(column, number, time)
                continue
            # Case 3: the first value of a run. It is an increment only of a newcomer; what came before is unknown.
            if self._known[column, number] < 0:
                first = int(known_indices[0])
                if is_newcomer:
                    self._add_late(column, number, np.array([begun]), entity_values[first : first + 1])
                if first or not is_new:
                    group = int(self._group[number])
                    self._sink.mark_unknown(column, group + begun, group + int(time[first]))
                time, entity_values = time[first:], entity_values[first:]
            else:
                waited = [np.arange(nulls.start, nulls.stop) for nulls in self._held_nulls.pop((column, number), [])]
                time = np.concatenate([self._known[column, number : number + 1], *waited, time])
                unknown = np.full(len(time) - len(entity_values) - 1, np.nan)
                entity_values = np.concatenate([self._value[column, number : number + 1], unknown, entity_values])
            self._add_values(column, number, time, entity_values)

    def _add_values(self, column: int, number: int, time: np.ndarray, values: np.ndarray) -> None:
        """Add rows of one run that begin with a value; nulls before the last value are interpolated."""
        known_indices = np.flatnonzero(~np.isnan(values))
        last = int(known_indices[-1])
        upto = time[: last + 1]
        filled = np.interp(self._times[upto], self._times[time[known_indices]], values[known_indices])
        filled[known_indices] = values[known_indices]
        self._add_late(column, number, upto[1:], np.diff(filled), filled[1:])
        self._value[column, number], self._known[column, number] = values[last], time[last]
        self._hold_nulls(column, number, time[last + 1 :])

    def _add_late(
        self, column: int, number: int, time: np.ndarray, rise: np.ndarray, values: np.ndarray | None = None
    ) -> None:
        fell = np.zeros(len(time), dtype=bool) if values is None else rise < -ROUNDING * np.abs(values)
        self._sink.add_late(column, self._group[number] + time, np.where(fell, 0.0, rise), fell)

    def _hold_nulls(self, column: int, number: int, time: np.ndarray) -> None:
        """Hold the indexes of nulls until a value follows."""
        if not len(time):
            return
        waiting = self._held_nulls.setdefault((column, number), [])
        for indices in np.split(time, np.flatnonzero(np.diff(time) != 1) + 1):
            begin, end = int(indices[0]), int(indices[-1]) + 1
            if waiting and waiting[-1].stop == begin:
                begin = waiting.pop().start
            waiting.append(range(begin, end))

    def _close_epoch(self, column: int, number: int, last: int) -> None:
        """Close a run with its row at time `last`: increments after its last value are unknown."""
        known, group = int(self._known[column, number]), int(self._group[number])
        self._held_nulls.pop((column, number), None)
        if 0 <= known < last:
            self._sink.mark_unknown(column, group + known + 1, group + last)

    def _remember(self, rows: "_Rows", newcomer: np.ndarray) -> None:
        """Keep the last row of each entity."""
        begins = np.flatnonzero(~rows.follows)
        self._begun[rows.number[begins]] = rows.at[begins]  # the last of several wins
        self._newcomer[rows.number[begins]] = newcomer[begins]
        last = rows.ends - 1
        self._epoch[rows.number[last]], self._last[rows.number[last]] = rows.epoch[last], rows.at[last]


class _Batch(NamedTuple):
    """Rows in the order of the table."""

    time: np.ndarray
    group: np.ndarray
    entity: np.ndarray
    epoch: np.ndarray
    peers: np.ndarray
    values: Sequence[np.ndarray | None]

    def part(self, begin: int, end: int) -> "_Batch":
        """Return a copy of some rows, which does not keep the others in memory."""
        values = [None if column is None else column[begin:end].copy() for column in self.values]
        return _Batch._make([*(column[begin:end].copy() for column in self[:5]), values])

    def followed_by(self, other: "_Batch") -> "_Batch":
        values = [
            None if first is None or second is None else np.append(first, second)
            for first, second in zip(self.values, other.values, strict=True)
        ]
        return _Batch._make([*map(np.append, self[:5], other[:5]), values])


class _Rows:
    """Rows of a batch in the order of entity and time."""

    def __init__(self, number: np.ndarray, time: np.ndarray, epoch: np.ndarray, first: np.ndarray, follows: np.ndarray):
        """`first`: true for the first row of its entity in this batch."""
        self.number, self.at, self.epoch = number, time, epoch
        self.follows = follows  # true if the row before is of the same run
        self.all_follow = bool(follows.all())
        self.begins = np.flatnonzero(first)
        self.ends = np.append(self.begins[1:], len(first))
