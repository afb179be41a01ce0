import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stallmark.schema.brokerage.population import HIGH_CENTS, LOW_CENTS, PERIOD_S, moment, price_cents, second_reached

securities = st.integers(0, 10_000_000)
seconds = st.floats(0, 9e6).map(lambda s: round(s, 3))


def price(security: int, second: float) -> int:
    return int(price_cents(np.array([security]), np.array([second]))[0])


@given(securities, seconds)
def test_a_price_goes_between_20_and_30_dollars_and_comes_back(security, second):
    assert LOW_CENTS <= price(security, second) <= HIGH_CENTS
    assert abs(price(security, second + PERIOD_S) - price(security, second)) <= 1
    over_a_period = price_cents(np.full(900, security), second + np.arange(900.0))
    assert over_a_period.min() <= LOW_CENTS + 2 and over_a_period.max() >= HIGH_CENTS - 2
    assert np.abs(np.diff(over_a_period)).max() <= 4


@given(securities, seconds, st.integers(LOW_CENTS, HIGH_CENTS), st.booleans())
def test_the_second_reached_is_the_first_with_that_price(security, second, cents, rising):
    reached = second_reached(np.array([security]), np.array([second]), np.array([cents]), np.array([rising]))[0]
    assert second <= reached <= second + PERIOD_S
    there = price(security, reached)
    assert there >= cents - 1 if rising else there <= cents + 1
    before = np.arange(second, reached - 1, 7.0)
    prices = price_cents(np.full(len(before), security), before)
    assert (prices < cents).all() if rising else (prices > cents).all()


def test_trading_days_are_weekdays_from_nine_to_five():
    day = 28_800
    at = moment(np.array([0, 0.0015, day - 1, day, 5 * day, 260 * day + 60.25]))
    assert at.astype(str).tolist() == [
        "2005-01-03T09:00:00.000",
        "2005-01-03T09:00:00.002",
        "2005-01-03T16:59:59.000",
        "2005-01-04T09:00:00.000",
        "2005-01-10T09:00:00.000",
        "2006-01-02T09:01:00.250",
    ]


def test_phases_differ():
    prices = price_cents(np.arange(685), np.zeros(685))
    assert prices.mean() == pytest.approx((LOW_CENTS + HIGH_CENTS) / 2, abs=50)
    assert prices.std() == pytest.approx(1_000 / 12**0.5, abs=50)
