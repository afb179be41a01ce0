"""The orders that customers of a load unit have placed: who, what, when, and when each is completed.

An order is a pure function of (seed, load unit, its number), so any stretch of them can be made by itself. A market
order goes to the market as it is placed; a limit order waits until its security has come to the limit. The market
answers 1 s later and a negative exponential time with a mean of 1 s, 5 s at most.
"""

from dataclasses import dataclass

import numpy as np

from stallmark.schema.brokerage.population import (
    DAY_S,
    HIGH_CENTS,
    LOW_CENTS,
    MOST_HELD,
    PERIOD_S,
    UNIT,
    Population,
    account_key,
    accounts_of,
    busy_rank,
    customer_at,
    held_by,
    price_cents,
    second_reached,
    security_of,
)
from stallmark.schema.draw import Bools, Floats, Ints, Numbers, below, hashed, unit

# Trade types by number, in the order of `fixed.TRADE_TYPES`, and how many of 100 orders.
MARKET_BUY, MARKET_SELL, LIMIT_BUY, LIMIT_SELL, STOP_LOSS = range(5)
SHARES = (30, 30, 20, 10, 10)
QUANTITIES = np.array([100, 200, 400, 800])
LIFO_PERCENT, MARGIN_PERCENT = 35, 8
ANSWER_LEAST_S, ANSWER_MOST_S = 1, 6  # of the market
LONGEST_S = PERIOD_S + ANSWER_MOST_S  # from the placing of an order to its completion
MOST_LIMIT_CENTS = 100  # how far from the price a limit is set, at most


@dataclass(frozen=True)
class Orders:
    """Arrays of one length. Times are trading seconds, with whole milliseconds."""

    number: Ints  # in the load unit, in the order of submission
    account: Ints  # from 0 in the load unit
    held: Ints  # which of the account's securities
    security: Ints
    type: Ints
    quantity: Ints
    bid_cents: Ints
    lifo: Bools
    cash: Bools  # else on margin
    placed: Floats
    submitted: Floats  # to the market
    completed: Floats

    def __len__(self) -> int:
        return len(self.number)

    def take(self, which: Ints | Bools) -> "Orders":
        return Orders(**{name: column[which] for name, column in vars(self).items()})

    @classmethod
    def joined(cls, parts: "list[Orders]") -> "Orders":
        names = vars(parts[0])
        return cls(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in names})


class OrderBook:
    """The orders of one load unit, by number."""

    def __init__(self, seed: int, population: Population, load_unit: int):
        self._seed = seed * 1_000_003 + load_unit
        self._population = population
        customers = load_unit * UNIT + np.arange(UNIT)
        counts = accounts_of(customers)
        self._at_rank = customer_at(load_unit, np.arange(UNIT)) - load_unit * UNIT
        self._accounts_of = counts
        self._first_account = np.cumsum(counts) - counts
        owner = np.repeat(customers, counts)
        self.owners = owner
        self.account_keys = account_key(owner, np.arange(len(owner)) - np.repeat(self._first_account, counts))
        self._held_by = held_by(self.account_keys)
        self.securities = security_of(  # by account (from 0 in the load unit) and number
            self.account_keys[:, None], np.arange(MOST_HELD)[None, :], population.securities
        )
        self._seconds_each = population.days * DAY_S / population.unit_trades

    def placed(self, number: Ints) -> Floats:
        """Return the times at which orders are placed: one in each equal slice of the initial trade days."""
        second = (number + unit(self._bits(0, number))) * self._seconds_each
        return np.floor(second * 1000) / 1000

    def orders(self, first: int, end: int) -> Orders:
        number = np.arange(first, end)
        who, what, when = (self._bits(stream, number) for stream in (1, 2, 3))
        customer = self._at_rank[busy_rank(who)]
        place = below(self._accounts_of[customer], who << np.uint64(32))
        account = self._first_account[customer] + place
        held = below(self._held_by[account], what)
        security = self.securities[account, held]
        kind = _KIND_BY_PERCENT[_percent(what, 32)]
        placed = self.placed(number)
        bid, submitted = _limits(security, kind, placed, below(MOST_LIMIT_CENTS, when << np.uint64(32)) + 1)
        return Orders(
            number=number,
            account=account,
            held=held,
            security=security,
            type=kind,
            quantity=QUANTITIES[(what & np.uint64(3)).astype(np.int64)],
            bid_cents=bid,
            lifo=_percent(what, 18) < LIFO_PERCENT,
            cash=_percent(what, 4) >= MARGIN_PERCENT,
            placed=placed,
            submitted=submitted,
            completed=_whole_ms(submitted + np.minimum(ANSWER_MOST_S, ANSWER_LEAST_S - np.log1p(-unit(when)))),
        )

    def _bits(self, stream: int, number: Ints) -> Numbers:
        return hashed(self._seed * 8 + stream, number.astype(np.uint64))


def _limits(security: Ints, kind: Ints, placed: Floats, away: Ints) -> tuple[Ints, Floats]:
    """Return limit prices, and the times at which the orders go to the market."""
    now = price_cents(security, placed)
    above = kind == LIMIT_SELL
    limit = np.clip(np.where(above, now + away, now - away), LOW_CENTS, HIGH_CENTS)
    at_market = kind < LIMIT_BUY
    submitted = _whole_ms(second_reached(security, placed, limit, above))
    return np.where(at_market, now, limit), np.where(at_market, placed, np.maximum(submitted, placed))


def _percent(bits: Numbers, shift: int) -> Ints:
    """Return integers from 0 to 99, from 14 of the bits."""
    return (((bits >> np.uint64(shift)) & np.uint64(0x3FFF)) * np.uint64(100) >> np.uint64(14)).astype(np.int64)


def _whole_ms(second: Floats) -> Floats:
    return np.rint(second * 1000) / 1000


_KIND_BY_PERCENT = np.repeat(np.arange(len(SHARES)), SHARES)
