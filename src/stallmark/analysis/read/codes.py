"""Texts of a table as small integers, and entities of groups, the same in all its batches."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

NONE = "none"
"""Stands for a null."""


class Codes:
    """The codes of the texts of one column, in the order in which they were met."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}

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
        texts = [*array.dictionary.to_pylist(), NONE]
        indices = array.indices.fill_null(len(texts) - 1).to_numpy(zero_copy_only=False)
        codes = np.full(len(texts), -1, dtype=np.int64)
        for place in np.flatnonzero(np.bincount(indices, minlength=len(texts))):  # a dictionary may hold more
            codes[place] = self._known.setdefault(texts[place], len(self._known))
        found: np.ndarray = codes[indices]
        return found


class PairCodes:
    """The codes of pairs of codes, as an entity and its group are, in the order in which they were met."""

    def __init__(self) -> None:
        self._known: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._known)

    @property
    def pairs(self) -> list[tuple[int, int]]:
        return [(pair >> 32, pair & (1 << 32) - 1) for pair in self._known]

    def of(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Return the codes of the pairs in two arrays."""
        pairs = pa.array((first << 32) | second).dictionary_encode()
        codes = [self._known.setdefault(pair, len(self._known)) for pair in pairs.dictionary.to_pylist()]
        found: np.ndarray = np.array(codes, dtype=np.int64)[pairs.indices.to_numpy()]
        return found
