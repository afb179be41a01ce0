"""Random draws that depend only on the seed, on what is drawn, and on a number."""

from functools import lru_cache
from hashlib import blake2b

import numpy as np

from stallmark.schema.arrays import Ints
from stallmark.schema.hashing import Numbers, below, hashed


def bits(seed: int, what: str, numbers: Ints) -> Numbers:
    """Return 64 random bits for each of `numbers`; other bits for every other `what`."""
    return hashed(seed + _stream(what), numbers.astype(np.uint64))


def whole(seed: int, what: str, numbers: Ints, limit: int | Ints) -> Ints:
    """Return for each of `numbers` an integer from 0 to `limit` - 1; `limit` may differ by element."""
    return below(limit, bits(seed, what, numbers))


def percent(seed: int, what: str, numbers: Ints, upto: tuple[int, ...]) -> Ints:
    """Return for each of `numbers` the index of the first element of `upto` that its drawn percentage is below."""
    return np.searchsorted(upto, whole(seed, what, numbers, 100), side="right")


@lru_cache
def _stream(what: str) -> int:
    return int.from_bytes(blake2b(what.encode(), digest_size=8).digest(), "little")
