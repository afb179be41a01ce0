"""The market group of a load unit: companies, their securities, what these cost, and news."""

from collections.abc import Iterator

import numpy as np

from stallmark.loaders.brokerage.companies import companies, securities
from stallmark.loaders.brokerage.daily_market import Days, daily_market, last_trade
from stallmark.loaders.brokerage.news import news
from stallmark.loaders.plan import Piece
from stallmark.schema.brokerage.population import COMPANIES, SECURITIES, Population

_SECURITIES = 137  # of a piece: 180,000 rows of their days


def market(seed: int, population: Population, unit: int, compressibility: float) -> Iterator[Piece]:
    """Return all rows of the market group of one load unit. `compressibility` is that of articles: see `prose`."""
    company = unit * COMPANIES + np.arange(COMPANIES)
    yield from companies(seed, population, company)
    first, end = unit * SECURITIES, (unit + 1) * SECURITIES
    yield "brokerage.last_trade", last_trade(population, np.arange(first, end))
    for start in range(first, end, _SECURITIES):
        days = Days.of(seed, np.arange(start, min(start + _SECURITIES, end)))
        yield "brokerage.security", securities(seed, days)
        yield "brokerage.daily_market", daily_market(days)
    yield from news(seed, company, compressibility)
