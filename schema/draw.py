"""Random draws, as NumPy arrays, that depend only on the seed, the name of the quantity and a number."""

from functools import lru_cache
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

# The NumPy arrays that keys and generated rows come in.


Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


# Random bits as a pure function of a number.

Numbers = npt.NDArray[np.uint64]

_GOLDEN = 0x9E3779B97F4A7C15
_MASK = (1 << 64) - 1


def hashed(key: int, numbers: Numbers) -> Numbers:
    """Return 64 random bits for each of `numbers`: the output function of SplitMix64 (Steele, Lea, Flood 2014)."""
    x = numbers * np.uint64(_GOLDEN) + np.uint64((key * 0xD1342543DE82EF95 + _GOLDEN) & _MASK)
    x ^= x >> np.uint64(30)
    x *= np.uint64(0xBF58476D1CE4E5B9)
    x ^= x >> np.uint64(27)
    x *= np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def below(limit: int | npt.NDArray[np.int64], bits: Numbers) -> npt.NDArray[np.int64]:
    """Return integers from 0 to `limit` - 1 out of the upper 32 of each 64 `bits`; `limit` may differ by element.

    Lemire's multiplication instead of a remainder: even to one part in 2**32 / limit.
    """
    upper = bits >> np.uint64(32)
    return ((upper * np.asarray(limit).astype(np.uint64)) >> np.uint64(32)).astype(np.int64)


def unit(bits: Numbers) -> npt.NDArray[np.float64]:
    """Return numbers that are uniform in [0, 1)."""
    return (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53


def bits(seed: int, name: str, numbers: Ints) -> Numbers:
    """Return 64 random bits for each of `numbers`; other bits for every other `what`."""
    return hashed(seed + _stream(name), numbers.astype(np.uint64))


def whole(seed: int, name: str, numbers: Ints, limit: int | Ints) -> Ints:
    """Return an integer from 0 to `limit` - 1 for each of `numbers`; `limit` may differ by element."""
    return below(limit, bits(seed, name, numbers))


def percent(seed: int, name: str, numbers: Ints, upto: tuple[int, ...]) -> Ints:
    """Return, for each of `numbers`, the index of the first element of `upto` above its drawn percentage."""
    return np.searchsorted(upto, whole(seed, name, numbers, 100), side="right")


@lru_cache
def _stream(name: str) -> int:
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "little")
