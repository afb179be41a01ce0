"""The brokerage's rows, derived from TPC-E: the contents of the database before the first user arrives.

A batch of the ledger is one group of tables for one load unit of 1,000 customers; tables that all units share are one
batch more. Trades come from a simulation of the initial trade days (module `simulation`). Brokers and accounts are in
the same group, because their totals depend on the trades.
"""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import numpy as np

from stallmark.errors import StallmarkError
from stallmark.loaders import Batch, Loader, Piece, Scale, TableGroup, finite
from stallmark.loaders.brokerage import counts, customers, fixed
from stallmark.loaders.brokerage.companies import Days, companies, daily_market, last_trade, news, securities
from stallmark.loaders.brokerage.counts import MOST_CUSTOMERS, MOST_DAYS, split
from stallmark.loaders.brokerage.trades import TradeGroup
from stallmark.schema import words
from stallmark.schema.brokerage import COMPANIES, SECURITIES, TRADES_PER_DAY, UNIT, Population
from stallmark.schema.words import COMPRESSIBILITIES, COMPRESSIBILITY

CUSTOMERS, DAYS = 1_000, 10.0  # unless the scale says otherwise
_SECURITIES_OF_A_PIECE = 137  # 180,000 rows of their days


class BrokerageLoader(Loader):
    example = f"customers={CUSTOMERS},days={DAYS:g}"
    measures: ClassVar = ("customers", "days", "size", "compressibility")

    @property
    def options(self) -> dict[str, Any]:
        return {"words": words.digest()}

    def scale(self, given: Scale) -> dict[str, Any]:
        given = _measured(given)
        wanted = {"customers": CUSTOMERS, "days": DAYS, "compressibility": COMPRESSIBILITY, **given}
        if unknown := set(given) - set(self.measures):
            raise StallmarkError(
                f"The brokerage's scale has no {sorted(unknown)[0]!r}: it is `customers: N, days: D`, or `size: 20GB`."
            )
        number = wanted["customers"]
        if type(number) is not int or number % UNIT or not UNIT <= number <= MOST_CUSTOMERS:
            raise StallmarkError(
                f"The brokerage has customers by the thousand, from {UNIT:,} to {MOST_CUSTOMERS:,}, not {number!r}: "
                f"write `customers: {CUSTOMERS}`."
            )
        days = finite(wanted["days"])
        if days is None or not 0 < days <= MOST_DAYS:
            raise StallmarkError(
                f"Initial trade days are a number above 0, {MOST_DAYS} at most, not {wanted['days']!r}: "
                "write `days: 1`, or a fraction for less."
            )
        if not Population(number, days).unit_trades:
            raise StallmarkError(
                f"{days:g} initial trade days give no trade: write `days: {2 / TRADES_PER_DAY:.5f}` or more."
            )
        ratio = finite(wanted["compressibility"])
        least, most = COMPRESSIBILITIES
        if ratio is None or not least <= ratio <= most:
            raise StallmarkError(
                f"Free text can be made compressible from {least:g} to {most:g} to one, "
                f"not {wanted['compressibility']!r}: write `compressibility: {COMPRESSIBILITY:g}`."
            )
        return {"customers": number, "days": days, "compressibility": ratio}

    def groups(self, scale: Scale) -> list[TableGroup]:
        return counts.groups(Population.from_scale(scale))

    def rows_of(self, scale: Scale, batch: Batch) -> Mapping[str, str]:
        return counts.predicates(Population.from_scale(scale), batch.group, batch.number)

    def batch(self, seed: int, scale: Scale, batch: Batch) -> Iterator[Piece]:
        population, unit = Population.from_scale(scale), batch.number
        match batch.group:
            case "trade":
                return TradeGroup(seed, population, unit).pieces()
            case "market":
                return market_group(seed, population, unit, scale["compressibility"])
            case "customers":
                return customers.customers(seed, population, unit)
            case _:
                return fixed.fixed(seed, population)


def _measured(given: Scale) -> Scale:
    """Return the scale with customers and days in place of a size in bytes."""
    if "size" not in given:
        return given
    if others := [name for name in ("customers", "days") if name in given]:
        raise StallmarkError(f"A size gives customers and days by itself: leave out `size` or `{others[0]}`.")
    if type(given["size"]) is not int:
        raise StallmarkError(f"The brokerage's size is one in bytes, not {given['size']!r}: write `size: 20GB`.")
    customers, days = split(given["size"])
    return {name: value for name, value in given.items() if name != "size"} | {"customers": customers, "days": days}


def market_group(seed: int, population: Population, unit: int, compressibility: float) -> Iterator[Piece]:
    """Return all rows of the market group of one load unit. `compressibility` is that of articles: see `prose`."""
    company = unit * COMPANIES + np.arange(COMPANIES)
    yield from companies(seed, population, company)
    first, end = unit * SECURITIES, (unit + 1) * SECURITIES
    yield "brokerage.last_trade", last_trade(population, np.arange(first, end))
    for start in range(first, end, _SECURITIES_OF_A_PIECE):
        days = Days.for_securities(seed, population, np.arange(start, min(start + _SECURITIES_OF_A_PIECE, end)))
        yield "brokerage.security", securities(seed, days)
        yield "brokerage.daily_market", daily_market(days)
    yield from news(seed, population, company, compressibility)


LOADER = BrokerageLoader()
