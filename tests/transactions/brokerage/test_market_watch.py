"""Market-Watch on every engine: what is watched how often, and how its change follows from the prices."""

import random
from collections import Counter
from dataclasses import replace
from decimal import ROUND_HALF_UP, Decimal
from itertools import islice

import numpy as np
import pytest
import scipy  # its parts are imported when first asked for

from stallmark.engines.base import Engine, Session
from stallmark.errors import CallFailed
from stallmark.schema.brokerage import Population, company_key, customer_key
from stallmark.transactions.brokerage.context import Context
from stallmark.transactions.brokerage.read_only import MOST_COMPANIES, MarketWatch, OfAccount, OfIndustry, OfList
from stallmark.transactions.brokerage.read_only import days as draw_days
from stallmark.transactions.workload import Outcome

SINCE = "2004-12-01"


def test_inputs(engine: Engine, context: Context, rng: random.Random) -> None:
    watch = MarketWatch(context)
    drawn = [watch.inputs(rng) for _ in range(24_000)]
    kinds = Counter(map(type, drawn))
    for kind, share in ((OfList, 0.60), (OfAccount, 0.35), (OfIndustry, 0.05)):
        assert kinds[kind] / len(drawn) == pytest.approx(share, abs=0.02)

    def there(column: str, table: str) -> set:
        return {value for (value,) in engine.query(f"SELECT {column} FROM brokerage.{table}")}

    assert {of.customer for of in drawn if isinstance(of, OfList)} <= there("c_id", "customer")
    assert {of.account for of in drawn if isinstance(of, OfAccount)} <= there("ca_id", "customer_account")
    assert {of.industry for of in drawn if isinstance(of, OfIndustry)} == there("in_name", "industry")
    assert {(of.first, of.last) for of in drawn if isinstance(of, OfIndustry)} == {(company_key(0), company_key(499))}


def test_days_are_those_of_the_market(engine: Engine, context: Context) -> None:
    watch, rng = MarketWatch(context), random.Random(5)
    drawn = {watch.inputs(rng).since for _ in range(4_000)}
    assert drawn <= {day.isoformat() for (day,) in engine.query("SELECT DISTINCT dm_date FROM brokerage.daily_market")}
    assert len(drawn) > 30


def days_drawn(days: float) -> tuple[np.ndarray, int]:
    """Return how often each day of a market is drawn, and its number of weeks."""
    population, count = Population(1_000, days), 100_000
    weeks = population.market_weeks
    drawn = np.array(list(islice(draw_days(population, random.Random(3)), count)), "datetime64[D]")
    since_monday = (drawn - (np.datetime64("2004-12-27") - 7 * (weeks - 1))).astype(int)
    assert set(since_monday % 7) == set(range(5))  # a market has no weekends
    return np.bincount(since_monday // 7 * 5 + since_monday % 7, minlength=weeks * 5), weeks


WEEKDAYS = [0.20, 0.07, 0.06, 0.07, 0.60]


@pytest.mark.thorough
def test_days_of_a_market_of_five_years_are_drawn_as_published() -> None:
    """The number of a week, from the sixth on, has eight bits, each a one three times out of four."""
    seen, weeks = days_drawn(300)
    assert weeks == 261 and not seen[:25].any()
    week = 3.0 ** np.bitwise_count(np.arange(256)) / 4**8
    expected = np.outer(week, WEEKDAYS).ravel() * seen.sum()
    often = expected >= 5
    counts, means = ([*each[often], each[~often].sum()] for each in (seen[25:], expected))
    assert scipy.stats.chisquare(counts, means).pvalue > 0.001
    hottest = np.sort(seen)[::-1].cumsum() / seen.sum()
    assert [hottest[13], hottest[130]] == pytest.approx([0.27, 0.69], abs=0.02)  # 1 and 10 % of all days


@pytest.mark.thorough
@pytest.mark.parametrize("days", [0.2, 5, 40])
def test_days_of_a_short_market_are_skewed_as_much(days: float) -> None:
    seen, weeks = days_drawn(days)
    assert seen.reshape(weeks, 5).sum(0) / seen.sum() == pytest.approx(WEEKDAYS, abs=0.01)
    tenth = np.sort(seen)[::-1][: round(weeks / 2)].sum() / seen.sum()
    assert tenth == pytest.approx(0.68, abs=0.08)  # evenly drawn days would have 0.1, ramps 0.2


def test_an_industry_is_looked_for_among_some_of_many_companies(context: Context) -> None:
    """Those of a large population: rows of it are not asked for."""
    watch = MarketWatch(replace(context, population=Population(40_000, 1)))
    rng = random.Random(1)
    asked = [of for of in (watch.inputs(rng) for _ in range(4_000)) if isinstance(of, OfIndustry)]
    assert all(of.last - of.first == MOST_COMPANIES - 1 for of in asked)
    assert all(company_key(0) <= of.first and of.last <= company_key(19_999) for of in asked)
    assert max(of.first for of in asked) > company_key(14_000)


def change(engine: Engine, symbols: str) -> tuple[int, Decimal]:
    """How many securities, and their change in per cent since that day."""
    then = dict(engine.query(f"SELECT dm_s_symb, dm_close FROM brokerage.daily_market WHERE dm_date = '{SINCE}'"))
    now = dict(engine.query("SELECT lt_s_symb, lt_price FROM brokerage.last_trade"))
    out = dict(engine.query("SELECT s_symb, s_num_out FROM brokerage.security"))
    watched = [symbol for (symbol,) in engine.query(symbols)]
    was, is_ = (sum(out[symbol] * price[symbol] for symbol in watched) for price in (then, now))
    return len(watched), (100 * is_ / was - 100).quantize(Decimal("0.0001"), ROUND_HALF_UP)


def told(session: Session, of: tuple, context: Context) -> tuple[int, Decimal]:
    assert MarketWatch(context).execute(session, of) is Outcome.COMMITTED
    frame = {OfList: "list", OfAccount: "account", OfIndustry: "industry"}[type(of)]
    [(securities, percent)] = session.call(f"market_watch_{frame}", of)
    return securities, Decimal(percent)


def test_of_a_watch_list(engine: Engine, session: Session, context: Context) -> None:
    customer = customer_key(17)
    expected = change(
        engine,
        "SELECT wi_s_symb FROM brokerage.watch_item JOIN brokerage.watch_list ON wl_id = wi_wl_id "
        f"WHERE wl_c_id = {customer}",
    )
    assert expected[0] >= 5 and expected[1] != 0
    assert told(session, OfList(customer, SINCE), context) == expected


def test_of_an_account(engine: Engine, session: Session, context: Context) -> None:
    [(account, held)] = engine.query(
        "SELECT hs_ca_id, COUNT(*) FROM brokerage.holding_summary GROUP BY hs_ca_id "
        "ORDER BY COUNT(*) DESC, hs_ca_id OFFSET 0 ROWS FETCH FIRST 1 ROWS ONLY"
    )
    expected = change(engine, f"SELECT hs_s_symb FROM brokerage.holding_summary WHERE hs_ca_id = {account}")
    assert expected[0] == held > 1 and expected[1] != 0
    assert told(session, OfAccount(account, SINCE), context) == expected


def test_of_an_industry(engine: Engine, session: Session, context: Context) -> None:
    first, last, industry = company_key(10), company_key(400), context.industry_names[30]
    expected = change(
        engine,
        "SELECT s_symb FROM brokerage.security JOIN brokerage.company ON co_id = s_co_id "
        f"JOIN brokerage.industry ON in_id = co_in_id WHERE in_name = '{industry}' "
        f"AND co_id BETWEEN {first} AND {last}",
    )
    assert expected[0] > 1 and expected[1] != 0
    assert told(session, OfIndustry(industry, first, last, SINCE), context) == expected


def test_of_nothing(engine: Engine, session: Session, context: Context) -> None:
    [(empty,)] = engine.query(
        "SELECT MIN(ca_id) FROM brokerage.customer_account "
        "WHERE NOT EXISTS (SELECT 1 FROM brokerage.holding_summary WHERE hs_ca_id = ca_id)"
    )
    assert told(session, OfAccount(empty, SINCE), context) == (0, 0)
    assert told(session, OfIndustry(context.industry_names[0], 1, 2, SINCE), context) == (0, 0)
    with pytest.raises(CallFailed, match="customer 1 watches nothing: run `stallmark check`"):
        MarketWatch(context).execute(session, OfList(1, SINCE))
