"""Filler text: cheap to make, and about as compressible as a business database.

Arrays and drives with inline compression would flatter a database of blanks. A filler is a row of words of
12 characters, each drawn from a pool of 256 that was itself drawn at random: words repeat within a page (what
an LZ compressor finds), their letters do not. The target is 2:1 on 8 KiB pages with the fast compressors that
arrays use inline. Measured on heap pages of bank.accounts: LZ4 1.9:1, zlib 2.5:1.

Every word is a pure function of (key, row number, position): a row's text does not depend on its batch.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from stallmark.schema.draw import hashed

WORD = 12
POOL = 256
_ALPHABET = np.frombuffer(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-", np.uint8)


class Filler:
    """Generates columns of text of one width. `key` (any integer) decides pool and words."""

    def __init__(self, key: int, width: int):
        self._key = key
        self._width = width
        letters = hashed(key ^ 0x706F6F6C, np.arange(POOL * WORD, dtype=np.uint64)) >> np.uint64(58)
        self._pool = _ALPHABET[letters.astype(np.intp)].view(f"V{WORD}")

    def column(self, first: int, rows: int) -> pa.StringArray:
        """Return the texts of rows `first` … `first + rows - 1`."""
        words = -(-self._width // WORD)
        numbers = np.arange(first, first + rows, dtype=np.uint64)
        drawn = np.empty((rows, words), np.uint8)
        for start in range(0, words, 8):  # a hash gives eight bytes, each the number of a word
            eight = hashed(self._key + start, numbers).astype("<u8").view(np.uint8).reshape(rows, 8)
            drawn[:, start : start + 8] = eight[:, : words - start]
        text = self._pool.take(drawn).view(np.uint8).reshape(rows, words * WORD)
        return strings(np.ascontiguousarray(text[:, : self._width]))


def strings(text: npt.NDArray[np.uint8]) -> pa.StringArray:
    """Return an Arrow column from ASCII text of shape (rows, width), without a copy."""
    rows, width = text.shape
    offsets = np.arange(rows + 1, dtype=np.int32) * np.int32(width)
    return pa.StringArray.from_buffers(rows, pa.py_buffer(offsets), pa.py_buffer(text))


def digits(numbers: npt.NDArray[np.int64], width: int) -> pa.StringArray:
    """Return the last `width` decimal digits of each number, with leading zeros."""
    places = 10 ** np.arange(width - 1, -1, -1, dtype=np.int64)
    return strings((numbers[:, np.newaxis] // places % 10 + ord("0")).astype(np.uint8))
