"""The context that all transactions of a load process share, made once before the load begins.

Names that the loaders made of words are read from the database; all else follows from the scale.

A cell has customers, accounts, brokers and past trades of its own. Securities and their companies are the market, which
all cells share: what names a security may find trades, orders or news of any cell, and a limit order goes to the market
on the report of whichever process. So each cell has market emulators and maintenance of its own, as machines have.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import count

import numpy as np

from stallmark.schema.brokerage.population import BROKERS, UNIT, Population, cents_at, phase_s, price_second, symbol
from stallmark.transactions.brokerage.choices import Choice, LocalUnits, choices
from stallmark.transactions.brokerage.market_emulator import MarketEmulator
from stallmark.transactions.clock import Clock, RunClock
from stallmark.transactions.workload import Transaction, WorkloadContext


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
    population = Population.of(around.scale)
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
        LocalUnits.of(cell, around.machine, around.machines, around.locality),
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
