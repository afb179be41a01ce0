"""The brokerage database, derived from TPC-E (33 tables, 50 foreign keys): its population, and the prices of its
securities, as pure functions of the scale and of time."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from stallmark.schema.draw import Floats, Ints, Numbers, below, hashed, percent, unit, whole

# The population of the brokerage: keys, tiers, accounts and traded securities as pure functions of the scale.
#
# Loaders fill tables by these, transactions draw their inputs from them, and neither has to ask the database. A load
# unit is 1,000 customers with all that belongs to them; customers, companies, securities and brokers are counted from 0
# here and become keys by the functions called `…_key`. All functions take and give NumPy arrays (int64) or numbers.
# Apart from the tables, so that a loader process starts without SQLAlchemy.


Number = TypeVar("Number", int, Ints)

UNIT = 1_000  # customers of a load unit
ACCOUNTS, BROKERS, COMPANIES, SECURITIES = 5_000, 10, 500, 685  # numbers per load unit
EXCHANGES = 4
MOST_ACCOUNTS = 10  # accounts of a customer
TICKER_LETTERS = 4  # fewest letters
MOST_HELD = 18  # securities that an account trades

FULL_DAYS = 300
"""Initial trade days at which all counts are the specification's. With fewer, what is cold beside 300 days of trades is
smaller in proportion, else a market of five years would be most of a database of a few days."""
# Of 300 days, then the fewest: Security-Detail asks for 20 days in a row, Data-Maintenance for each day of a month.
MARKET_WEEKS, FEWEST_MARKET_WEEKS = 261, 9
QUARTERS, FEWEST_QUARTERS = 20, 4  # quarters of a company's figures
LONGEST_ARTICLE, LEAST_LONGEST_ARTICLE = 100_000, 1_000  # characters; lengths are uniform up to it
WATCHED, FEWEST_WATCHED = (50, 150), (5, 15)  # securities on a watch list, at least and at most

PERMISSIONS_PERCENT = (60, 98)  # cumulated percent of accounts with one and two; the others have three

# Per load unit: an initial trade day has eight hours, and the scale factor is 500.
TRADES_PER_DAY = 8 * 3600 * UNIT // 500

KEY = 4_300_000_000  # keys begin after it: no INTEGER holds them
TRADE_KEY = 200_000_000_000_000
BURNT_EVERY = 101  # one trade id in so many belongs to a trade that was rolled back

# Tiers follow a customer's rank in the load unit: the first 200 ranks are tier 1, the next 600 tier 2, the rest tier 3.
TIER_ENDS = (200, 800, UNIT)
# How busy a customer is grows with the rank, straight between these at the ends of the tiers: tier 1 (20 % of the
# customers) places 10 % of the orders, tier 2 (60 %) 60 %, tier 3 (20 %) 30 %.
_BUSY = (0.3, 0.7, 1.3, 1.7)
_TIER_SHARES = (10, 60, 30)
# Ranks are spread over the keys, else the busy customers would be neighbours.
_SPREAD, _SHIFT = 617, 379
_UNSPREAD = pow(_SPREAD, -1, UNIT)


@dataclass(frozen=True)
class Population:
    """The numbers of customers, accounts, companies and so on. `days` are initial trade days; fractions are allowed."""

    customers: int
    days: float

    @classmethod
    def from_scale(cls, scale: Any) -> "Population":
        return cls(scale["customers"], scale["days"])

    @property
    def units(self) -> int:
        return self.customers // UNIT

    @property
    def accounts(self) -> int:
        return self.units * ACCOUNTS

    @property
    def brokers(self) -> int:
        return self.units * BROKERS

    @property
    def companies(self) -> int:
        return self.units * COMPANIES

    @property
    def securities(self) -> int:
        return self.units * SECURITIES

    @property
    def market_weeks(self) -> int:
        """Return the number of weeks, of five days each, that the market has been recorded before trading begins."""
        return self._in_proportion(MARKET_WEEKS, FEWEST_MARKET_WEEKS)

    @property
    def quarters(self) -> int:
        """Return the number of quarters of which a company has figures."""
        return self._in_proportion(QUARTERS, FEWEST_QUARTERS)

    @property
    def longest_article(self) -> int:
        """Return the length of the longest news article, in characters."""
        return self._in_proportion(LONGEST_ARTICLE, LEAST_LONGEST_ARTICLE)

    @property
    def fewest_watched(self) -> int:
        """Return the number of securities on the shortest watch lists."""
        return self._in_proportion(WATCHED[0], FEWEST_WATCHED[0])

    @property
    def most_watched(self) -> int:
        """Return the number of securities on the longest watch lists."""
        return self._in_proportion(WATCHED[1], FEWEST_WATCHED[1])

    def _in_proportion(self, at_full_days: int, least: int) -> int:
        return max(least, round(at_full_days * self.days / FULL_DAYS))

    @property
    def unit_trades(self) -> int:
        """Return the number of trades of one load unit."""
        return round(self.days * TRADES_PER_DAY)

    @property
    def trades(self) -> int:
        return self.units * self.unit_trades

    @property
    def unit_trade_ids(self) -> int:
        """Return the number of trade ids that one load unit uses, burnt ones included."""
        return -(-self.unit_trades // (BURNT_EVERY - 1)) * BURNT_EVERY


def customer_at(unit: Ints | int, rank: Ints) -> Ints:
    """Return the customer of a rank (0 to 999) in a load unit."""
    return unit * UNIT + (rank * _SPREAD + (unit + 1) * _SHIFT) % UNIT


def rank_of(customer: Ints) -> Ints:
    unit, place = np.divmod(customer, UNIT)
    return (place - (unit + 1) * _SHIFT) * _UNSPREAD % UNIT


def busy_rank(bits: Numbers) -> Ints:
    """Return ranks of customers who place orders.

    The tier is drawn by its share; inside it activity falls linearly, so that a rank is the square root of a
    uniform number."""
    within = unit(bits)
    upto = np.cumsum(_TIER_SHARES) / 100
    tier = np.searchsorted(upto, within, side="right")
    starts = np.array([0, *TIER_ENDS[:2]])
    width = np.diff([0, *TIER_ENDS])[tier]
    low, high = np.array(_BUSY[:3])[tier], np.array(_BUSY[1:])[tier]
    share = (within - (upto - np.array(_TIER_SHARES) / 100)[tier]) / (np.array(_TIER_SHARES) / 100)[tier]
    along = (np.sqrt(low**2 + share * (high**2 - low**2)) - low) / (high - low)
    return starts[tier] + np.minimum((along * width).astype(np.int64), width - 1)


def tier_of(customer: Ints) -> Ints:
    """Return the tier: 1, 2 or 3."""
    return np.searchsorted(TIER_ENDS, rank_of(customer), side="right") + 1


def accounts_of(customer: Ints) -> Ints:
    """Return the number of accounts: 1-4, 2-8 or 5-10 by tier, and exactly 500, 3,000 and 1,500 in the tiers of a
    load unit."""
    return _ACCOUNTS_BY_RANK[rank_of(customer)]


def _accounts_by_rank() -> Ints:
    ranks = np.arange(UNIT)
    in_second, in_third = ranks - TIER_ENDS[0], ranks - TIER_ENDS[1]
    # What does not fill a whole round of the cycle has its mean.
    second = np.where(in_second < 595, 2 + in_second % 7, 5)
    third = np.where(in_third < 198, 5 + in_third % 6, 7 + in_third - 198)
    return np.where(in_second < 0, 1 + ranks % 4, np.where(in_third < 0, second, third)).astype(np.int64)


_ACCOUNTS_BY_RANK = _accounts_by_rank()


def held_by(account_key: Ints) -> Ints:
    """Return the number of securities that an account trades: 1 to 18, 10 on average."""
    bits = hashed(1, account_key.astype(np.uint64))
    low = np.where(bits & np.uint64(1), 1, 3)
    return low + below(MOST_HELD + 1 - low, bits)


def security_of(account_key: Ints, number: Ints, securities: int) -> Ints:
    """Return the security of a number (below `held_by`) among those that an account trades; no two are the same."""
    bits = hashed(2, account_key.astype(np.uint64))
    first, step = below(securities, bits), 1 + below(securities // MOST_HELD, bits << np.uint64(32))
    return (first + number * step) % securities


def watched_by(population: Population, customer: Ints) -> Ints:
    """Return the number of securities on the customer's watch list: uniform from the fewest to the most."""
    # 103 is prime and above any number of lengths, so lengths are even at every scale.
    return population.fewest_watched + customer * 103 % (population.most_watched - population.fewest_watched + 1)


def broker_of(account_key: Ints) -> Ints:
    """Return the account's broker, one of the ten of its load unit."""
    unit = (account_key - 1 - KEY * MOST_ACCOUNTS) // (UNIT * MOST_ACCOUNTS)
    return unit * BROKERS + below(BROKERS, hashed(3, account_key.astype(np.uint64)))


def company_of(security: Ints) -> Ints:
    """Return the issuer of a security: each company has a common stock, 185 of a load unit a preferred one as well."""
    unit, place = np.divmod(security, SECURITIES)
    return unit * COMPANIES + np.where(place < COMPANIES, place, place - COMPANIES)


def is_preferred(security: Ints) -> npt.NDArray[np.bool_]:
    return security % SECURITIES >= COMPANIES


def ticker_numbers(company: Number) -> tuple[Number, Number]:
    """Return a company's ticker in base 26: the number before its last four letters, and those four as a number."""
    before, within = divmod(company, 26**TICKER_LETTERS)
    return before, within * 271_829 % 26**TICKER_LETTERS


def ticker(company: int) -> str:
    """Return the ticker: four letters or more, spread over the alphabet."""
    first, mixed = ticker_numbers(company)
    mixed += first * 26**TICKER_LETTERS
    letters = ""
    while mixed or len(letters) < TICKER_LETTERS:
        mixed, letter = divmod(mixed, 26)
        letters = chr(65 + letter) + letters
    return letters


def symbol(security: int) -> str:
    company = int(company_of(np.int64(security)))  # type: ignore[arg-type]
    return ticker(company) + (".PRA" if is_preferred(np.int64(security)) else "")  # type: ignore[arg-type]


def customer_key(customer: Number) -> Number:
    return KEY + customer + 1


TAX_ID_DIGITS = 12


def tax_number(customer: Number) -> Number:
    """Return the customer's tax id as a number: unique, and far from those of neighbours."""
    return (customer * 618_033_989 + 271_828_182_845) % 10**TAX_ID_DIGITS


def tax_id(customer: int) -> str:
    return f"{tax_number(customer):0{TAX_ID_DIGITS}}"


def account_key(customer: Ints, number: Ints) -> Ints:
    """Return the key of a customer's account; `number` is below `accounts_of`."""
    return (KEY + customer) * MOST_ACCOUNTS + number + 1


def owner_of(account_key: Ints) -> Ints:
    """Return the customer who owns the account."""
    return (account_key - 1) // MOST_ACCOUNTS - KEY


def others_permitted(seed: int, account_key: Ints) -> Ints:
    """Return the number of customers permitted to trade in an account beside its owner: 0, 1 or 2."""
    return percent(seed, "permissions", account_key, PERMISSIONS_PERCENT)


def permitted(seed: int, population: Population, account_key: Ints, which: Ints | int) -> Ints:
    """Return the customer permitted to trade in an account: 0 is the owner, the others are 1 and 2. No two are
    the same."""
    # One of the others is among the customers of the half that follows the owner's number, one of the rest.
    half = (population.customers - 1) // 2
    away = 1 + np.maximum(which - 1, 0) * half + whole(seed, "permitted", account_key * 4 + which, half)
    owner = owner_of(account_key)
    return np.where(which == 0, owner, (owner + away) % population.customers)


def broker_key(broker: Number) -> Number:
    return KEY + broker + 1


def company_key(company: Number) -> Number:
    return KEY + company + 1


def trade_key(population: Population, unit: Ints | int, number: Ints) -> Ints:
    """Return the id of trade `number` (from 0, in order of submission) of a load unit; one id in 101 is left out."""
    block, place = np.divmod(number, BURNT_EVERY - 1)
    burnt = below(BURNT_EVERY, hashed(4, (unit * 2**32 + block).astype(np.uint64)))
    inside = place + (place >= burnt)
    return TRADE_KEY + unit * population.unit_trade_ids + block * BURNT_EVERY + inside + 1


def address_key_of_exchange(number: Number) -> Number:
    return KEY + number + 1


def address_key_of_company(company: Number) -> Number:
    return KEY + EXCHANGES + company + 1


def address_key_of_customer(population: Population, customer: Number) -> Number:
    return KEY + EXCHANGES + population.companies + customer + 1


# The price of a security at a trading second, and the calendar time of that second.
#
# A price moves evenly between 20 and 30 $ and back in 900 s; each security has its own phase. Time is counted in
# seconds of trading: second 0 is the opening of the first day, a day has 28,800 of them, Saturdays and Sundays have
# none.


LOW_CENTS, HIGH_CENTS = 2_000, 3_000
PERIOD_S = 900.0
DAY_S = 8 * 3600
FIRST_DAY = np.datetime64("2005-01-03")  # a Monday
_ZERO: datetime = FIRST_DAY.astype("datetime64[us]").astype(datetime)
_OPENING = np.timedelta64(9, "h")

_HALF_S = PERIOD_S / 2
_CENTS_PER_S = (HIGH_CENTS - LOW_CENTS) / _HALF_S


def price_cents(security: Ints, second: Floats) -> Ints:
    """Return the price at a trading second, in cents."""
    within = (second + phase_s(security)) % PERIOD_S
    return np.rint(HIGH_CENTS - _CENTS_PER_S * np.abs(within - _HALF_S)).astype(np.int64)


def cents_at(phased_s: float) -> int:
    """Return `price_cents` of one security, its phase added to the second; NumPy takes fifty times as long for one."""
    return round(HIGH_CENTS - _CENTS_PER_S * abs(phased_s % PERIOD_S - _HALF_S))


def second_reached(security: Ints, second: Floats, cents: Ints, rising: npt.NDArray[np.bool_]) -> Floats:
    """Return the first trading second, from `second` on, in which the price reaches `cents`.

    It is reached from below where `rising`, else from above; a price that is there already is reached at once."""
    reached = np.where(rising, price_cents(security, second) >= cents, price_cents(security, second) <= cents)
    into = (np.clip(cents, LOW_CENTS, HIGH_CENTS) - LOW_CENTS) / _CENTS_PER_S  # into a rising half
    target = np.where(rising, into, PERIOD_S - into)
    wait = (target - second - phase_s(security)) % PERIOD_S
    return np.where(reached, second, second + wait)


def moment(second: Floats) -> npt.NDArray[np.datetime64]:
    """Return the calendar time of a trading second, in milliseconds."""
    milliseconds = np.rint(second * 1000).astype(np.int64)
    day, within = np.divmod(milliseconds, DAY_S * 1000)
    week, weekday = np.divmod(day, 5)
    date = FIRST_DAY + (week * 7 + weekday).astype("timedelta64[D]")
    return date.astype("datetime64[ms]") + _OPENING + within.astype("timedelta64[ms]")


def price_second(moment: datetime) -> float:
    """Return the seconds from the first day of prices to `moment`. Prices of a run move by day and night."""
    return (moment - _ZERO).total_seconds()


def phase_s(security: Ints) -> Floats:
    return below(int(PERIOD_S * 1000), hashed(5, security.astype(np.uint64))) / 1000
