"""Texts of a table as small integers, and entities of groups, the same in all its batches."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

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
