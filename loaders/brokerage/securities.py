"""Securities: their symbols, and their prices on the weekdays before trading begins."""

from dataclasses import dataclass
from string import ascii_uppercase

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from stallmark.loaders.brokerage.counts import WEEK_DAYS
from stallmark.loaders.brokerage.simulation import LONGEST_S
from stallmark.loaders.plan import strings
from stallmark.schema.brokerage import (
    DAY_S,
    HIGH_CENTS,
    LOW_CENTS,
    TICKER_LETTERS,
    Population,
    company_of,
    is_preferred,
    moment,
    price_cents,
    ticker_numbers,
)
from stallmark.schema.draw import Ints, Numbers, bits
from stallmark.schema.words import chosen, decimals

# The symbols of many securities at once: those of `population.symbol`.


_FIFTH = ("", *ascii_uppercase[1:])  # before the four, where so many companies need one


def symbols(security: Ints) -> pa.StringArray:
    """Return the symbols of securities, for fewer than 26**5 companies."""
    fifth, four = ticker_numbers(company_of(security))
    places = 26 ** np.arange(TICKER_LETTERS - 1, -1, -1)
    letters = four[:, np.newaxis] // places % 26 + ord("A")
    kind = chosen(("", ".PRA"), is_preferred(security).astype(np.int64))
    return pc.binary_join_element_wise(chosen(_FIFTH, fifth), strings(letters.astype(np.uint8)), kind, "")


# Prices of securities on the weekdays before trading begins, of five years at most, and at the end of trading.

_CALENDAR = np.arange("2000-01-03", "2005-01-01", dtype="datetime64[D]")
_DAYS = _CALENDAR[np.is_busday(_CALENDAR)]
YEAR = 261  # days of the last year
_MOST_VOLUME = 100_000


@dataclass(frozen=True)
class Days:
    """Daily prices and volumes of securities: arrays of shape (securities, days), prices in cents."""

    date: npt.NDArray[np.datetime64]
    security: Ints
    close: Ints
    high: Ints
    low: Ints
    volume: Ints

    @classmethod
    def for_securities(cls, seed: int, population: Population, security: Ints) -> "Days":
        day = np.arange(len(_DAYS) - WEEK_DAYS * population.market_weeks, len(_DAYS))
        draws = bits(seed, "daily market", security[:, None] * len(_DAYS) + day[None, :])
        close = LOW_CENTS + _below(HIGH_CENTS - LOW_CENTS + 1, draws, 0)
        high = close + _below(HIGH_CENTS - close + 1, draws, 16)
        low = close - _below(close - LOW_CENTS + 1, draws, 32)
        return cls(_DAYS[day], security, close, high, low, 1 + _below(_MOST_VOLUME, draws, 48))


def daily_market(days: Days) -> pa.Table:
    securities = len(days.security)
    return pa.table(
        {
            "dm_date": np.tile(days.date, securities),
            "dm_s_symb": chosen(symbols(days.security), np.repeat(np.arange(securities), len(days.date))),
            "dm_close": decimals(days.close.ravel(), 8),
            "dm_high": decimals(days.high.ravel(), 8),
            "dm_low": decimals(days.low.ravel(), 8),
            "dm_vol": days.volume.ravel(),
        }
    )


def last_trade(population: Population, security: Ints) -> pa.Table:
    """Return the latest completion time of an order of the initial trade days."""
    end = np.full(len(security), population.days * DAY_S + LONGEST_S)
    opening = end // DAY_S * DAY_S
    return pa.table(
        {
            "lt_s_symb": symbols(security),
            "lt_dts": moment(end),
            "lt_price": decimals(price_cents(security, end), 8),
            "lt_open_price": decimals(price_cents(security, opening), 8),
            "lt_vol": np.zeros(len(security), np.int64),
        }
    )


def _below(limit: int | Ints, draws: Numbers, shift: int) -> Ints:
    """Return integers from 0 to `limit` - 1, from 16 of the bits."""
    sixteen = ((draws >> np.uint64(shift)) & np.uint64(0xFFFF)).astype(np.int64)
    return sixteen * limit >> 16
