"""Skewed draws from a range, as TPC-E's non-uniform random numbers are, at every length of the range.

TPC-E draws a number uniformly and sets some neighbouring bits of it that are set in a second one: `width` bits from
number `shift` on. Each of them is then 1 three times out of four, so the range consists of blocks of `2**shift` numbers
whose weights differ by powers of three, and repeats itself every `2**(shift + width)` numbers.

A short range has fewer blocks. There the published draw is nearly uniform: it loses the upper bits, and wraps round.
Here fewer bits stand for the `width` of them, each 1 so much more often that all together are as far from uniform, in
bits of information (Kullback and Leibler). So the hottest share of the blocks has the same share of the draws.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import log2

import numpy as np

from stallmark.schema.draw import Floats, Numbers, unit

_PUBLISHED_SHARE = 0.75  # of draws in which a bit is 1
_MOST_SHARE = 0.999
_HALVINGS = 40  # more than a double has digits for


@dataclass(frozen=True)
class Skew:
    """The bits that are 1 more often than not: so many (`width`), from bit number `shift` on."""

    width: int
    shift: int

    def draw(self, length: float, bits: Numbers) -> Floats:
        """Return numbers from 0 to below `length`, one for each 64 random bits."""
        periods = max(1, round(length / 2 ** (self.width + self.shift)))
        blocks = length / periods / 2**self.shift
        ends = _block_ends(self.width, max(1, min(self.width, round(log2(max(blocks, 1))))))
        period, within = np.divmod(unit(bits) * periods, 1)
        block = np.searchsorted(ends, within, side="right")
        begins = np.where(block, ends[block - 1], 0)
        place = (block + (within - begins) / (ends[block] - begins)) / len(ends)
        # Rounded, the highest would be `length` itself, a trade that is not there.
        return np.minimum((period + place) / periods * length, np.nextafter(length, 0))


@lru_cache
def _block_ends(width: int, bits: int) -> Floats:
    """Return the cumulative shares of the blocks of a period, the last of them 1: shape (2**bits)."""
    share = _bit_share(width, bits)
    shares = np.ones(1)
    for _ in range(bits):
        shares = np.concatenate([shares * (1 - share), shares * share])
    ends = np.cumsum(shares)
    ends[-1] = 1
    return ends


def _bit_share(width: int, bits: int) -> float:
    """Return the share of draws in which each of `bits` is 1, standing for `width` bits with the published share."""
    if bits == width:
        return _PUBLISHED_SHARE
    wanted = width * _information(_PUBLISHED_SHARE) / bits
    low, high = 0.5, _MOST_SHARE
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _information(middle) < wanted else (low, middle)
    return low


def _information(share: float) -> float:
    """Return the distance of a bit with this share of ones from a fair bit, in bits of information."""
    return 1 + share * log2(share) + (1 - share) * log2(1 - share)
