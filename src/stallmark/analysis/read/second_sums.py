"""Sums of a table's columns per second, by load and by the name of what a row is of."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from stallmark.analysis.read.codes import Codes, PairCodes
from stallmark.analysis.read.sample_times import floats


class SecondSums:
    """The sums of `columns` in each of so many seconds, by load and by the values of the column `name`. Rows of older
    records are of no load."""

    def __init__(self, name: str, columns: Sequence[str], seconds: int):
        self._name, self._seconds = name, seconds
        self._loads, self._names, self._pairs = Codes(), Codes(), PairCodes()
        self._first = np.zeros(0, dtype=np.int64)  # the second of the first row of each pair
        self._sums = {column: np.zeros((0, seconds)) for column in columns}

    def add(self, batch: pa.RecordBatch, second: np.ndarray) -> np.ndarray:
        """Add a batch with the second of each row, and return the number of each row's load and name."""
        number = self._pairs.of(self._loads.of(batch, "load"), self._names.of(batch, self._name))
        if more := len(self._pairs) - len(self._first):
            self._first = np.append(self._first, np.full(more, self._seconds))
            for column, sums in self._sums.items():
                self._sums[column] = np.zeros((len(self._pairs), self._seconds))
                self._sums[column][: len(sums)] = sums
        np.minimum.at(self._first, number, second)
        at = number * self._seconds + second
        for column, sums in self._sums.items():
            values = floats(batch, column)
            some = np.flatnonzero(values)  # memory that nothing was written to is not taken
            np.add.at(sums.reshape(-1), at[some], values[some])
        return number

    def numbers(self, load: str | None, seconds: int) -> dict[str, list[int]]:
        """Return the numbers of each name that a load, or any, has rows of in its first `seconds`."""
        found: dict[str, list[int]] = {}
        loads, names = self._loads.names or [""], self._names.names
        for number, (of, name) in enumerate(self._pairs.pairs):
            if self._first[number] < seconds and load in (None, loads[of]):
                found.setdefault(names[name], []).append(number)
        return found

    def of(self, load: str | None, seconds: int) -> dict[str, dict[str, np.ndarray]]:
        """Return the sums in the first `seconds` of a load, or of all, by name and column."""
        return {name: self._of(numbers, seconds) for name, numbers in self.numbers(load, seconds).items()}

    def _of(self, numbers: Sequence[int], seconds: int) -> dict[str, np.ndarray]:
        """Return the sums of some numbers together: of a single one as they are, not copied."""
        return {
            column: sums[numbers[0], :seconds] if len(numbers) == 1 else sums[numbers, :seconds].sum(axis=0)
            for column, sums in self._sums.items()
        }
