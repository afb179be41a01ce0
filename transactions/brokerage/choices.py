"""The choice of customers by how busy they are, of their accounts and securities, and of past trades: skewed draws."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import log2
from typing import NamedTuple

import numpy as np

from stallmark.schema.brokerage.population import (
    Population,
    account_key,
    accounts_of,
    busy_rank,
    customer_at,
    held_by,
    security_of,
)
from stallmark.schema.draw import Floats, Ints, Numbers, below, unit

# Skewed draws from a range, as TPC-E's non-uniform random numbers are, at every length of the range.
#
# TPC-E draws a number uniformly and sets some neighbouring bits of it that are set in a second one: `width` bits from
# number `shift` on. Each of them is then 1 three times out of four, so the range consists of blocks of `2**shift`
# numbers whose weights differ by powers of three, and repeats itself every `2**(shift + width)` numbers.
#
# A short range has fewer blocks. There the published draw is nearly uniform: it loses the upper bits, and wraps round.
# Here fewer bits stand for the `width` of them, each 1 so much more often that all together are as far from uniform, in
# bits of information (Kullback and Leibler). So the hottest share of the blocks has the same share of the draws.

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


# The choice of customers by how busy they are, of their accounts, and of the securities that these trade.
#
# Choices are drawn many at a time, because NumPy takes as long for one as for a hundred. They are a pure function of
# the generator.

AT_ONCE = 256


class Choice(NamedTuple):
    """A customer, an account and a security. `customer` and `security` count from 0, `account` is a key."""

    customer: int
    account: int
    security: int


@dataclass(frozen=True)
class LocalUnits:
    """The load units of a cell, and of these one load machine's `own`. It takes the share `locality` of its customers
    from there, the others from all of the cell."""

    cell: range
    own: range
    locality: float

    @classmethod
    def of(cls, cell: range, machine: int, machines: int, locality: float) -> "LocalUnits":
        """Return the units of `machine`, 1 to `machines`; a single one has all. Where there are fewer units than
        machines, machines share them."""
        if machines < 2:
            return cls(cell, cell, 0.0)
        first = (machine - 1) * len(cell) // machines
        return cls(cell, cell[first : max(first + 1, machine * len(cell) // machines)], locality)


def choices(population: Population, part: LocalUnits, rng: random.Random) -> Iterator[Choice]:
    """Yield choices without end."""
    while True:
        bits = np.frombuffer(rng.randbytes(8 * 4 * AT_ONCE), np.uint64).reshape(4, AT_ONCE)
        customer = _customers(part, bits[0], bits[1])
        account = account_key(customer, below(accounts_of(customer), bits[2]))
        number = below(held_by(account), bits[3])
        security = security_of(account, number, population.securities)
        yield from map(Choice, customer.tolist(), account.tolist(), security.tolist())


def _customers(part: LocalUnits, where: Numbers, who: Numbers) -> Ints:
    units = part.cell.start + below(len(part.cell), where)
    if part.locality:
        here = part.own.start + below(len(part.own), where)
        at_home = unit(where << np.uint64(32)) < part.locality
        units = np.where(at_home, here, units)
    return customer_at(units, busy_rank(who))
