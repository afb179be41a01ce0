"""The transactions of the brokerage that only read: Broker-Volume, Customer-Position, Market-Watch, Security-Detail,
Trade-Lookup and Trade-Status."""

import random
from collections.abc import Iterator
from datetime import date, timedelta
from itertools import accumulate
from typing import ClassVar, NamedTuple

import numpy as np

from stallmark.engines.base import Isolation, Session
from stallmark.errors import CallFailed, ErrorClass
from stallmark.schema.brokerage import MARKET_WEEKS, MOST_ACCOUNTS, Population, company_key, customer_key, tax_id
from stallmark.schema.draw import below
from stallmark.transactions.brokerage.context import Choice, Context, FrameCall, PastTrades, Skew, ask
from stallmark.transactions.workload import Outcome, Transaction

FEWEST_BROKERS, MOST_BROKERS = 20, 40


class Volume(NamedTuple):
    """The inputs. `brokers`: their names, with commas between them."""

    brokers: str
    sector: str


class BrokerVolume(Transaction):
    """Broker-Volume: the volume of orders that wait with brokers for the securities of a sector.

    It succeeds as well when none of the brokers has orders waiting.
    """

    name = "broker_volume"
    frames: ClassVar = {"broker_volume": 2}
    limit_s = 3.0
    reads_only = True

    def inputs(self, rng: random.Random) -> Volume:
        brokers, sectors = self.shared.broker_names, self.shared.sector_names
        count = FEWEST_BROKERS + int(rng.random() * (MOST_BROKERS - FEWEST_BROKERS + 1))
        chosen = rng.sample(brokers, min(count, len(brokers)))
        return Volume(",".join(chosen), sectors[int(rng.random() * len(sectors))])

    def execute(self, session: Session, inputs: tuple) -> Outcome:
        session.call("broker_volume", inputs)
        return Outcome.COMMITTED


BY_TAX_ID_SHARE = 0.5
HISTORY_SHARE = 0.5


class Position(NamedTuple):
    """The inputs. The customer is named by either of the first two. `history_of` is one of the accounts in the order of
    their worth, counted from 0 and round again; None asks for no history."""

    customer: int | None
    tax_id: str | None
    history_of: int | None


class CustomerPosition(Transaction):
    """Customer-Position: the worth of a customer's accounts, and the history of the last trades of one of them.

    It succeeds as well when an account has not traded yet.
    """

    name = "customer_position"
    frames: ClassVar = {"customer_position_accounts": 2, "customer_position_history": 1}
    limit_s = 3.0
    reads_only = True

    def __init__(self, context: Context):
        super().__init__(context)
        self._choices: Iterator[Choice] | None = None

    def inputs(self, rng: random.Random) -> Position:
        draw = rng.random
        self._choices = self._choices or self.shared.choices(rng)
        customer, account, _ = next(self._choices)
        by_tax_id = draw() < BY_TAX_ID_SHARE
        return Position(
            None if by_tax_id else customer_key(customer),
            tax_id(customer) if by_tax_id else None,
            # The number of a drawn account, so that each place is as likely.
            (account - 1) % MOST_ACCOUNTS if draw() < HISTORY_SHARE else None,
        )

    def execute(self, session: Session, inputs: tuple) -> Outcome:
        customer, tax, history_of = inputs
        with session.transaction(Isolation.READ_COMMITTED):
            accounts = session.call("customer_position_accounts", (customer, tax), last=history_of is None)  # frame 1
            if not accounts:
                who = f"{customer}" if customer else f"with tax id {tax}"
                raise CallFailed(ErrorClass.OTHER, "", f"customer {who} does not exist: run `stallmark check`")
            if history_of is not None:
                account = accounts[history_of % len(accounts)][0]
                session.finish("customer_position_history", (account,))  # frame 2
        return Outcome.COMMITTED  # without history this is frame 3


LIST_SHARE, ACCOUNT_SHARE = 0.60, 0.35  # the rest watches an industry
MOST_COMPANIES = 5_000  # among which those of an industry are searched for

_LAST_MONDAY = date(2004, 12, 27)  # in daily_market
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
    """Market-Watch: the gain or loss of a group of securities since a day of the market before trading began.

    It succeeds as well for an empty account, and for an industry without one of the companies.
    """

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
        yield from np.datetime_as_string(np.datetime64(_LAST_MONDAY) + 7 * week + weekday).tolist()


FEWEST_DAYS, MOST_DAYS = 5, 20
ARTICLES_SHARE = 0.01

_LAST_FIRST_DAY = date(2004, 12, 3)  # from here to the end of 2004 daily_market has as many days as are asked for


class Detail(NamedTuple):
    """The inputs. `articles`: with the full texts of the news."""

    symbol: str
    since: str
    days: int
    articles: bool


class SecurityDetail(Transaction):
    """Security-Detail: the facts and the history of a security and its company."""

    name = "security_detail"
    frames: ClassVar = {"security_detail": 4}
    limit_s = 3.0
    reads_only = True

    def __init__(self, context: Context):
        super().__init__(context)
        first = _LAST_MONDAY - timedelta(weeks=context.population.market_weeks - 1)
        self._dates = [(first + timedelta(day)).isoformat() for day in range((_LAST_FIRST_DAY - first).days + 1)]

    def inputs(self, rng: random.Random) -> Detail:
        draw, symbols = rng.random, self.shared.symbols
        return Detail(
            symbols[int(draw() * len(symbols))],
            self._dates[int(draw() * len(self._dates))],
            FEWEST_DAYS + int(draw() * (MOST_DAYS - FEWEST_DAYS + 1)),
            draw() < ARTICLES_SHARE,
        )

    def execute(self, session: Session, inputs: tuple) -> Outcome:
        if not session.call("security_detail", inputs):
            raise CallFailed(ErrorClass.OTHER, "", f"security {inputs[0]} does not exist: run `stallmark check`")
        return Outcome.COMMITTED


BY_ID = "trade_lookup_by_id"
BY_ACCOUNT = "trade_lookup_by_account"
BY_SYMBOL = "trade_lookup_by_symbol"
HOLDINGS = "trade_lookup_holdings"

# Cumulative shares of the transactions; the rest reads holdings.
_BY_ID, _BY_ACCOUNT, _BY_SYMBOL = 0.30, 0.60, 0.90


class TradeLookup(Transaction):
    """Trade-Lookup: the history of past trades, for customers and brokers."""

    name = "trade_lookup"
    frames: ClassVar = {BY_ID: 1, BY_ACCOUNT: 2, BY_SYMBOL: 2, HOLDINGS: 2}
    limit_s = 3.0
    reads_only = True

    def __init__(self, context: Context):
        super().__init__(context)
        self._past: PastTrades | None = None

    def inputs(self, rng: random.Random) -> FrameCall:
        past = self._past = self._past or PastTrades(self.shared, rng)
        draw = rng.random()
        if draw < _BY_ID:
            return FrameCall.by_id(BY_ID, past.some())
        if draw < _BY_ACCOUNT:
            return FrameCall(BY_ACCOUNT, past.account_time())
        if draw < _BY_SYMBOL:
            return FrameCall(BY_SYMBOL, past.security_time())
        return FrameCall(HOLDINGS, past.first_of_account())

    def execute(self, session: Session, inputs: tuple) -> Outcome:
        ask(session, FrameCall(*inputs))
        return Outcome.COMMITTED


class Status(NamedTuple):
    account: int


class TradeStatus(Transaction):
    """Trade-Status: the state of the latest trades of an account. It succeeds as well when an account has not traded
    yet."""

    name = "trade_status"
    frames: ClassVar = {"trade_status": 1}
    limit_s = 1.0
    reads_only = True

    def __init__(self, context: Context):
        super().__init__(context)
        self._choices: Iterator[Choice] | None = None

    def inputs(self, rng: random.Random) -> Status:
        self._choices = self._choices or self.shared.choices(rng)
        return Status(next(self._choices).account)

    def execute(self, session: Session, inputs: tuple) -> Outcome:
        if not session.call("trade_status", inputs):
            raise CallFailed(ErrorClass.OTHER, "", f"account {inputs[0]} does not exist: run `stallmark check`")
        return Outcome.COMMITTED
