"""The price of a security at a trading second, and the calendar time of that second.

A price moves evenly between 20 and 30 $ and back in 900 s; each security has its own phase. Time is counted in seconds
of trading: second 0 is the opening of the first day, a day has 28,800 of them, Saturdays and Sundays have none.
"""

from datetime import datetime

import numpy as np
import numpy.typing as npt

from stallmark.schema.arrays import Floats, Ints
from stallmark.schema.hashing import below, hashed

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
    there = np.where(rising, price_cents(security, second) >= cents, price_cents(security, second) <= cents)
    into = (np.clip(cents, LOW_CENTS, HIGH_CENTS) - LOW_CENTS) / _CENTS_PER_S  # into a rising half
    target = np.where(rising, into, PERIOD_S - into)
    wait = (target - second - phase_s(security)) % PERIOD_S
    return np.where(there, second, second + wait)


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
