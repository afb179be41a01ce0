"""The choice of customers by how busy they are, of their accounts, and of the securities that these trade.

Choices are drawn many at a time, because NumPy takes as long for one as for a hundred. They are a pure function of
the generator.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
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
from stallmark.schema.draw import Ints, Numbers, below, unit

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
