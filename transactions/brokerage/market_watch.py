"""Market-Watch: the gain or loss of a group of securities since a day of the market before trading began."""

import random
from collections.abc import Iterator
from itertools import accumulate
from typing import ClassVar, NamedTuple

import numpy as np

from stallmark.engines.base import Session
from stallmark.errors import CallFailed, ErrorClass
from stallmark.schema.brokerage.population import MARKET_WEEKS, Population, company_key, customer_key
from stallmark.schema.draw import below
from stallmark.transactions.brokerage.context import Choice, Context, Skew
from stallmark.transactions.workload import Outcome, Transaction

LIST_SHARE, ACCOUNT_SHARE = 0.60, 0.35  # the rest watches an industry
MOST_COMPANIES = 5_000  # among which those of an industry are searched for

_LAST_MONDAY = np.datetime64("2004-12-27")  # the last Monday in daily_market
_WEEKS_LEFT_OUT = 5  # out of 261: before the weeks that are drawn
WEEK_SKEW = Skew(width=8, shift=0)
WEEKDAY_PERCENT = (20, 7, 6, 7, 60)
_WEEKDAY_ENDS = tuple(accumulate(WEEKDAY_PERCENT))
_AT_ONCE = 64


class OfList(NamedTuple):
    customer: int
    since: str


class OfAccount(NamedTuple):
    account: int
    since: str


class OfIndustry(NamedTuple):
    """The inputs for an industry: its companies from `first` to `last`."""

    industry: str
    first: int
    last: int
    since: str


_FRAMES: dict[type[tuple], str] = {
    OfList: "market_watch_list",
    OfAccount: "market_watch_account",
    OfIndustry: "market_watch_industry",
}


class MarketWatch(Transaction):
    """The transaction. It succeeds as well for an empty account, and for an industry without one of the companies."""

    name = "market_watch"
    frames: ClassVar = {"market_watch_list": 2, "market_watch_account": 2, "market_watch_industry": 4}
    limit_s = 3.0
    reads_only = True

    def __init__(self, context: Context):
        super().__init__(context)
        self._choices: Iterator[Choice] | None = None
        self._companies = min(context.population.companies, MOST_COMPANIES)
        self._days: Iterator[str] | None = None

    def inputs(self, rng: random.Random) -> OfList | OfAccount | OfIndustry:
        draw = rng.random
        self._days = self._days or days(self.shared.population, rng)
        since = next(self._days)
        watch = draw()
        if watch >= LIST_SHARE + ACCOUNT_SHARE:
            industries = self.shared.industry_names
            first = int(draw() * (self.shared.population.companies - self._companies + 1))
            last = first + self._companies - 1
            industry = industries[int(draw() * len(industries))]
            return OfIndustry(industry, company_key(first), company_key(last), since)
        self._choices = self._choices or self.shared.choices(rng)
        choice = next(self._choices)
        if watch < LIST_SHARE:
            return OfList(customer_key(choice.customer), since)
        return OfAccount(choice.account, since)

    def execute(self, session: Session, inputs: tuple) -> Outcome:
        [(securities, _)] = session.call(_FRAMES[type(inputs)], inputs)
        if isinstance(inputs, OfList) and not securities:
            raise CallFailed(ErrorClass.OTHER, "", f"customer {inputs.customer} watches nothing: run `stallmark check`")
        return Outcome.COMMITTED


def days(population: Population, rng: random.Random) -> Iterator[str]:
    """Yield days of daily_market as TPC-E draws them: skewed weeks, and of each most often the last day."""
    weeks = population.market_weeks
    left_out = weeks * _WEEKS_LEFT_OUT // MARKET_WEEKS
    while True:
        bits = np.frombuffer(rng.randbytes(8 * 2 * _AT_ONCE), np.uint64).reshape(2, _AT_ONCE)
        week = left_out + WEEK_SKEW.draw(weeks - left_out, bits[0]).astype(np.int64) + 1 - weeks  # 0 is the last
        weekday = np.searchsorted(_WEEKDAY_ENDS, below(100, bits[1]), side="right")
        yield from np.datetime_as_string(_LAST_MONDAY + 7 * week + weekday).tolist()
