"""Market-Watch: the gain or loss of a group of securities since a day of the five years before trading began."""

import random
from collections.abc import Iterator
from datetime import date, timedelta
from typing import ClassVar, NamedTuple

from stallmark.engines.base import Session
from stallmark.errors import CallFailed, ErrorClass
from stallmark.schema.brokerage.population import company_key, customer_key
from stallmark.transactions.brokerage.choices import Choice
from stallmark.transactions.brokerage.context import Context
from stallmark.transactions.workload import Outcome, Transaction

LIST_SHARE, ACCOUNT_SHARE = 0.60, 0.35  # the rest watches an industry
MOST_COMPANIES = 5_000  # among which those of an industry are searched for

_FIRST, _LAST = date(2000, 1, 3), date(2004, 12, 31)
_DATES = [
    day.isoformat()
    for day in (_FIRST + timedelta(days) for days in range((_LAST - _FIRST).days + 1))
    if day.weekday() < 5
]
"""The dates of daily_market."""


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

    def inputs(self, rng: random.Random) -> OfList | OfAccount | OfIndustry:
        """Draw the inputs. The day is the later of two that are drawn evenly. So recent days come most often, which
        keeps part of daily_market in the pool and leaves the rest to be read."""
        draw = rng.random
        since = _DATES[int(max(draw(), draw()) * len(_DATES))]
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
