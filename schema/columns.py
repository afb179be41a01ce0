"""Arrow columns out of NumPy arrays and pools of words."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from stallmark.schema.arrays import Ints


def decimals(units: Ints, precision: int, scale: int = 2) -> pa.Array:
    """Return decimals from whole numbers of their last digit, for money: from cents. No larger than 64 bits."""
    words = np.empty((len(units), 2), np.int64)
    words[:, 0] = units
    words[:, 1] = units >> 63  # the sign, carried on
    return pa.Array.from_buffers(pa.decimal128(precision, scale), len(units), [None, pa.py_buffer(words)])


def chosen(pool: pa.StringArray | Sequence[str], places: Ints) -> pa.StringArray:
    """Return the texts of a pool at those places."""
    texts = pool if isinstance(pool, pa.Array) else pa.array(pool, pa.string())
    return texts.take(pa.array(places))
