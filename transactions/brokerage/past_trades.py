"""The choice of trades of the initial days for Trade-Lookup and Trade-Update: by their ids, or those of an account or a
security from some time on. Ids and times are skewed, as TPC-E's are.

Trades are drawn many at a time, as `choices` are. They are a pure function of the generator.
"""

import random
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from stallmark.engines.base import Session
from stallmark.errors import CallFailed, ErrorClass
from stallmark.schema.brokerage.population import DAY_S, Population, moment, trade_key
from stallmark.schema.draw import Numbers, below
from stallmark.transactions.brokerage.choices import Skew
from stallmark.transactions.brokerage.context import Context

TRADES = 20
"""The trades of one transaction; the procedures have this number too."""

_AT_ONCE = 64  # are drawn, with as many trades each

_SPARE = 12  # ids, for those that are drawn twice

ID_SKEW = Skew(width=16, shift=7)
TIME_SKEW = Skew(width=12, shift=16)  # of milliseconds

# How long before the end of the initial days start times end, in seconds: so that enough trades follow.
BEFORE_END_S = {"account": 4 * DAY_S, "security": 200 * 60, "first of account": 500 * 60}


class FrameCall(NamedTuple):
    """A frame and its parameters. At least `expected` rows must come; an account or a security may have fewer trades
    than are asked for."""

    frame: str
    parameters: tuple[int | str, ...]
    expected: int = 0

    @classmethod
    def by_id(cls, frame: str, trades: list[int]) -> "FrameCall":
        return cls(frame, (",".join(map(str, trades)),), len(trades))


def ask(session: Session, asked: FrameCall) -> None:
    found = len(session.call(asked.frame, asked.parameters))
    if found < asked.expected:
        missing = f"{asked.expected - found} of {asked.expected} trades are not there"
        raise CallFailed(ErrorClass.OTHER, "", f"{missing}: run `stallmark check`")


class PastTrades:
    """The past trades for one session. Times are texts as the server takes them."""

    def __init__(self, context: Context, rng: random.Random):
        population = context.population
        self._symbols = context.symbols
        self._rng = rng
        self._choices = context.choices(rng)
        self._ids = ids(population, context.part.cell, rng)
        self._since_of_account = since(population, BEFORE_END_S["account"], rng)
        self._since_of_security = since(population, BEFORE_END_S["security"], rng)
        self._since_of_first = since(population, BEFORE_END_S["first of account"], rng)

    def some(self) -> list[int]:
        """Return ids of different trades, in order."""
        return next(self._ids)

    def of_account(self) -> tuple[int, str]:
        """Return an account, and a time from which on it normally has enough trades."""
        return next(self._choices).account, next(self._since_of_account)

    def of_security(self) -> tuple[str, str]:
        """Return a symbol, and a time from which on the security normally has enough trades."""
        return self._symbols[self._rng.randrange(len(self._symbols))], next(self._since_of_security)

    def first_of_account(self) -> tuple[int, str]:
        """Return an account, and a time from which on it normally has one trade."""
        return next(self._choices).account, next(self._since_of_first)


def ids(population: Population, units: range, rng: random.Random) -> Iterator[list[int]]:
    """Yield lists of `TRADES` ids of these load units; fewer only if there are hardly as many trades."""
    while True:
        bits = _bits(rng, 2 * _AT_ONCE * (TRADES + _SPARE)).reshape(2, _AT_ONCE, -1)
        number = ID_SKEW.draw(population.unit_trades, bits[0]).astype(np.int64)
        for keys in trade_key(population, units.start + below(len(units), bits[1]), number).tolist():
            yield sorted(list(dict.fromkeys(keys))[:TRADES])


def since(population: Population, before_end_s: float, rng: random.Random) -> Iterator[str]:
    """Yield start times, up to so long before the end of the initial days, or up to their middle if that is later."""
    days_s = population.days * DAY_S
    latest_ms = max(days_s - before_end_s, days_s / 2) * 1000
    while True:
        yield from np.datetime_as_string(moment(TIME_SKEW.draw(latest_ms, _bits(rng, _AT_ONCE)) / 1000)).tolist()


def _bits(rng: random.Random, count: int) -> Numbers:
    return np.frombuffer(rng.randbytes(8 * count), np.uint64)
