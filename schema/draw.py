"""What is left to chance: random bits by seed, by what is drawn, and by number."""

from functools import lru_cache
from hashlib import blake2b

import numpy as np

from stallmark.schema.arrays import Ints
from stallmark.schema.hashing import Numbers, below, hashed


def bits(seed: int, what: str, numbers: Ints) -> Numbers:
    """64 random bits for each of `numbers`; other bits for every other `what`."""
    return hashed(seed + _stream(what), numbers.astype(np.uint64))


def whole(seed: int, what: str, numbers: Ints, limit: int | Ints) -> Ints:
    """For each of `numbers` one from 0 to `limit` - 1; `limit` may differ by element."""
    return below(limit, bits(seed, what, numbers))


def percent(seed: int, what: str, numbers: Ints, upto: tuple[int, ...]) -> Ints:
    """0, 1, 2 … where a percentage drawn for each of `numbers` is below the first, second, third … of `upto`."""
    return np.searchsorted(upto, whole(seed, what, numbers, 100), side="right")


@lru_cache
def _stream(what: str) -> int:
    return int.from_bytes(blake2b(what.encode(), digest_size=8).digest(), "little")
