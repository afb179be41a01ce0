"""The context that all transactions of a load process share: the market, and the choices of customers and past
trades."""

import heapq
import random
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import count
from math import log2
from typing import NamedTuple

import numpy as np

from stallmark.engines.base import Session
from stallmark.errors import CallFailed, ErrorClass
from stallmark.schema.brokerage import (
    BROKERS,
    DAY_S,
    UNIT,
    Population,
    account_key,
    accounts_of,
    busy_rank,
    cents_at,
    customer_at,
    held_by,
    moment,
    phase_s,
    price_second,
    security_of,
    symbol,
    trade_key,
)
from stallmark.schema.draw import Floats, Ints, Numbers, below, unit
from stallmark.transactions.workload import Clock, RunClock, Transaction, WorkloadContext

# The market emulator: the market outside the brokerage, which executes the orders sent to it. Each process has one.
#
# An order that has gone to the market is executed a little later, at the price of that moment: a Trade-Result. The tape
# then reports two trades, this one and another: that of a limit order whose price has come, where one is due, else of
# any security. When twenty have been reported they come as one Market-Feed, which may send limit orders to the market.

ANSWER_LEAST_S, ANSWER_MEAN_S, ANSWER_MOST_S = 1.0, 1.0, 5.0
"""Seconds until an order is executed: at least, then the mean of a negative exponential time beyond that, and its most.
"""

FEED = 20
"""The number of reports in one Market-Feed."""

OTHER_SHARES = 100  # traded by whom we do not know


class TapeReport(NamedTuple):
    """A report on the tape: the number of shares of a security that were traded at a price."""

    security: int
    cents: int
    quantity: int


class Order(NamedTuple):
    """The order of a trade that has gone to the market."""

    trade: int
    security: int
    quantity: int


class MarketEmulator:
    """The market for a number of securities.

    `price(security, moment)` returns cents. The transaction `result` is posted with an Order and its price in cents as
    inputs, `feed` with Reports.
    """

    def __init__(
        self,
        securities: int,
        price: Callable[[int, datetime], int],
        clock: Clock,
        post: Callable[[type[Transaction], tuple, float], None],
        rng: random.Random,
        result: type[Transaction],
        feed: type[Transaction],
    ):
        self._securities = securities
        self._price = price
        self._clock = clock
        self._post = post
        self._rng = rng
        self._result = result
        self._feed = feed
        # When which security comes to a limit, the earliest first; the number between is their order at one moment.
        self._awaited: list[tuple[datetime, int, int]] = []
        self._order = count()
        self._tape: list[TapeReport] = []
        self._lock = threading.Lock()

    def send(self, order: Order) -> None:
        """Send an order to the market, after the commit that made it one for the market."""
        with self._lock:
            after_s = ANSWER_LEAST_S + min(ANSWER_MOST_S, self._rng.expovariate(1 / ANSWER_MEAN_S))
        due = self._clock.now() + timedelta(seconds=after_s)
        self._post(self._result, (order, self._price(order.security, due)), after_s)

    def await_price(self, security: int, due: datetime) -> None:
        """Wait with a limit order for the price that its security has at that moment."""
        with self._lock:
            heapq.heappush(self._awaited, (due, next(self._order), security))

    def report(self, order: Order, cents: int) -> None:
        """Report an order that was executed, after the commit of that."""
        now = self._clock.now()
        with self._lock:
            self._tape.append(TapeReport(order.security, cents, order.quantity))
            self._tape.append(self._another(now))
            due, self._tape = (self._tape, []) if len(self._tape) >= FEED else ([], self._tape)
        if due:
            self._post(self._feed, tuple(due), 0.0)

    def _another(self, now: datetime) -> TapeReport:
        if self._awaited and self._awaited[0][0] <= now:
            due, _, security = heapq.heappop(self._awaited)
        else:
            due, security = now, self._rng.randrange(self._securities)
        return TapeReport(security, self._price(security, due), OTHER_SHARES)


# The choice of customers by how busy they are, of their accounts and securities, and of past trades: skewed draws.

# Skewed draws from a range, as TPC-E's non-uniform random numbers are, at every length of the range.
#
# TPC-E draws a number uniformly and sets some neighbouring bits of it that are set in a second one: `width` bits from
# number `shift` on. Each of them is then 1 three times out of four, so the range consists of blocks of `2**shift`
# numbers whose weights differ by powers of three, and repeats itself every `2**(shift + width)` numbers.
#
# A short range has fewer blocks. There the published draw is nearly uniform: it loses the upper bits, and wraps round.
# Here fewer bits stand for the `width` of them, each 1 so much more often that all together are as far from uniform, in
# bits of information (Kullback and Leibler). So the hottest share of the blocks has the same share of the draws.

_PUBLISHED_SHARE = 0.75  # share of draws in which a bit is 1
_MOST_SHARE = 0.999
_HALVINGS = 40  # more than a double has digits for


@dataclass(frozen=True)
class Skew:
    """The `width` bits, from bit number `shift` on, that are 1 more often than 0."""

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
    """Return the cumulative shares of a period's blocks, up to 1 for the last: shape (2**bits)."""
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
    """A customer, an account and a security."""

    customer: int  # number from 0
    account: int  # key of the table
    security: int  # number from 0


@dataclass(frozen=True)
class LocalUnits:
    """The load units of a cell, and one load machine's `own` part. The machine takes the share `locality` of its
    customers from its own part, the others from the whole cell."""

    cell: range
    own: range
    locality: float

    @classmethod
    def for_machine(cls, cell: range, machine: int, machines: int, locality: float) -> "LocalUnits":
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


# The context that all transactions of a load process share, made once before the load begins.
#
# Names that the loaders made of words are read from the database; all else follows from the scale.
#
# A cell has customers, accounts, brokers and past trades of its own. Securities and their companies are the market,
# shared by all cells: a transaction that names a security may find trades, orders or news of any cell, and a limit
# order goes to the market on the report of whichever process. So each cell has market emulators and maintenance of its
# own, as machines have.


@dataclass(frozen=True)
class Context:
    population: Population
    part: LocalUnits
    symbols: list[str]
    """Symbols by security."""
    company_names: list[str]
    """Names by company."""
    broker_names: list[str]
    """Names of the cell's brokers."""
    sector_names: list[str]
    industry_names: list[str]
    next_trade_id: Callable[[], int]
    """Return an id that no other session gets, in whatever process."""
    next_round: Callable[[], int]
    """Return the next round of maintenance. All sessions of a process count together, from a drawn number on."""
    price: Callable[[int, datetime], int]
    """Return the price of a security at a moment, in cents."""
    clock: Clock
    market: MarketEmulator
    seed: int
    """The seed of the data."""

    @property
    def customers(self) -> range:
        """Return the customers of the cell."""
        return range(self.part.cell.start * UNIT, self.part.cell.stop * UNIT)

    def choices(self, rng: random.Random) -> Iterator[Choice]:
        return choices(self.population, self.part, rng)


def open_context(
    around: WorkloadContext, result: type[Transaction], feed: type[Transaction], clock: Clock | None = None
) -> Context:
    """Make the context. `result` and `feed` are the transactions with which the market answers."""
    population = Population.from_scale(around.scale)
    clock = clock or RunClock()
    symbols = [symbol(security) for security in range(population.securities)]
    price = _prices(population)
    rng = random.Random(f"{around.seed}/market {around.process}")
    [(last_trade,)] = around.query("SELECT MAX(t_id) FROM brokerage.trade")
    # Each process has the ids with its own remainder, so that they are nobody else's whenever each of them asked.
    ids = count(last_trade + 1 + (around.process - last_trade - 1) % around.processes, around.processes)

    def names(query: str) -> list[str]:
        return [name for (name,) in around.query(query)]

    cell = around.part(population.units)
    brokers = names("SELECT b_name FROM brokerage.broker ORDER BY b_id")

    return Context(
        population,
        LocalUnits.for_machine(cell, around.machine, around.machines, around.locality),
        symbols,
        company_names=names("SELECT co_name FROM brokerage.company ORDER BY co_id"),
        broker_names=brokers[cell.start * BROKERS : cell.stop * BROKERS],
        sector_names=names("SELECT sc_name FROM brokerage.sector ORDER BY sc_id"),
        industry_names=names("SELECT in_name FROM brokerage.industry ORDER BY in_id"),
        next_trade_id=ids.__next__,
        next_round=count(rng.randrange(1_000)).__next__,
        price=price,
        clock=clock,
        market=MarketEmulator(population.securities, price, clock, around.post, rng, result, feed),
        seed=around.seed,
    )


def _prices(population: Population) -> Callable[[int, datetime], int]:
    phases = phase_s(np.arange(population.securities)).tolist()
    return lambda security, moment: cents_at(price_second(moment) + phases[security])


def dollars(cents: int) -> str:
    """Return an amount in dollars as text for the server. `cents` must not be below zero."""
    return f"{cents // 100}.{cents % 100:02}"


# The choice of trades of the initial days for Trade-Lookup and Trade-Update: by their ids, or those of an account or a
# security from some time on. Ids and times are skewed, as TPC-E's are.
#
# Trades are drawn many at a time, as `choices` are. They are a pure function of the generator.

TRADES = 20
"""The trades of one transaction; the procedures have this number too."""

_AT_ONCE = 64  # are drawn, with as many trades each

_SPARE = 12  # ids, for those that are drawn twice

ID_SKEW = Skew(width=16, shift=7)
TIME_SKEW = Skew(width=12, shift=16)  # skew of times, in milliseconds

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
    count = len(session.call(asked.frame, asked.parameters))
    if count < asked.expected:
        missing = f"{asked.expected - count} of {asked.expected} trades are not there"
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

    def account_time(self) -> tuple[int, str]:
        """Return an account, and a time from which on it normally has enough trades."""
        return next(self._choices).account, next(self._since_of_account)

    def security_time(self) -> tuple[str, str]:
        """Return a symbol, and a time from which on the security normally has enough trades."""
        return self._symbols[self._rng.randrange(len(self._symbols))], next(self._since_of_security)

    def first_of_account(self) -> tuple[int, str]:
        """Return an account, and a time from which on it normally has one trade."""
        return next(self._choices).account, next(self._since_of_first)


def ids(population: Population, units: range, rng: random.Random) -> Iterator[list[int]]:
    """Yield lists of `TRADES` ids from load units; fewer only if the units have barely that many trades."""
    while True:
        bits = _bits(rng, 2 * _AT_ONCE * (TRADES + _SPARE)).reshape(2, _AT_ONCE, -1)
        number = ID_SKEW.draw(population.unit_trades, bits[0]).astype(np.int64)
        for keys in trade_key(population, units.start + below(len(units), bits[1]), number).tolist():
            yield sorted(list(dict.fromkeys(keys))[:TRADES])


def since(population: Population, before_end_s: float, rng: random.Random) -> Iterator[str]:
    """Yield start times, at most `before_end_s` before the end of the initial days, or up to their middle if that is
    later."""
    days_s = population.days * DAY_S
    latest_ms = max(days_s - before_end_s, days_s / 2) * 1000
    while True:
        yield from np.datetime_as_string(moment(TIME_SKEW.draw(latest_ms, _bits(rng, _AT_ONCE)) / 1000)).tolist()


def _bits(rng: random.Random, count: int) -> Numbers:
    return np.frombuffer(rng.randbytes(8 * count), np.uint64)
