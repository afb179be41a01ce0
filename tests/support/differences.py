"""Differences between an entity's neighbouring samples, of rows that are all in memory."""

import numpy as np

from stallmark.stats.thresholds import ROUNDING


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
