"""The market of a load unit: prices that fit each other, figures, competitors, news."""

from collections import defaultdict, deque
from dataclasses import fields

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stallmark.loaders.brokerage import market_group
from stallmark.loaders.brokerage.companies import (
    Days,
    companies,
    company_names,
    daily_market,
    exchange_of,
    industry_of,
    security_names,
    symbols,
)
from stallmark.loaders.brokerage.fixed import EXCHANGE_IDS
from stallmark.loaders.brokerage.simulation import LONGEST_S, Holdings, Trades
from stallmark.schema.brokerage import COMPANIES, DAY_S, KEY, SECURITIES, Population, moment, price_cents, symbol

SEED, UNIT = 5, 1
POPULATION = Population(3_000, 0.3)
SECURITY = UNIT * SECURITIES + np.arange(SECURITIES)
DATES = Days.for_securities(SEED, POPULATION, SECURITY[:1]).date


def made(seed: int, population: Population, unit: int) -> dict[str, pa.Table]:
    pieces = defaultdict(list)
    for name, piece in market_group(seed, population, unit, 2.0):
        pieces[name.removeprefix("brokerage.")].append(piece)
    return {name: pa.concat_tables(tables) for name, tables in pieces.items()}


@pytest.fixture(scope="module")
def tables() -> dict[str, pa.Table]:
    return made(SEED, POPULATION, UNIT)


def cents(column: pa.ChunkedArray) -> np.ndarray:
    return np.rint(pc.cast(column, pa.float64()).to_numpy() * 100).astype(np.int64)


@pytest.mark.parametrize(
    ("days", "first", "count"), [(300, "2000-01-03", 1_305), (40, "2004-05-03", 175), (0.3, "2004-11-01", 45)]
)
def test_days_are_the_weekdays_of_weeks_in_proportion_to_the_initial_days(days: float, first: str, count: int) -> None:
    dates = Days.for_securities(SEED, Population(1_000, days), SECURITY[:1]).date
    assert len(dates) == count
    assert (str(dates[0]), str(dates[-1])) == (first, "2004-12-31")
    assert all(day.weekday() < 5 for day in dates.tolist())


def test_a_shorter_market_is_the_end_of_a_longer_one() -> None:
    short, long = (Days.for_securities(SEED, Population(1_000, days), SECURITY[:3]) for days in (0.3, 300))
    assert np.array_equal(short.close, long.close[:, -45:]) and np.array_equal(short.volume, long.volume[:, -45:])


def test_every_security_has_every_day_once(tables) -> None:
    daily = tables["daily_market"]
    assert daily["dm_s_symb"].unique().to_pylist() == symbols(SECURITY).to_pylist()
    assert np.array_equal(daily["dm_date"].to_numpy().astype("datetime64[D]"), np.tile(DATES, SECURITIES))


def test_a_day_closes_between_its_low_and_its_high(tables) -> None:
    daily = tables["daily_market"]
    low, close, high = (cents(daily[f"dm_{name}"]) for name in ("low", "close", "high"))
    assert ((low >= 2_000) & (low <= close) & (close <= high) & (high <= 3_000)).all()
    assert pc.min(daily["dm_vol"]).as_py() > 0
    assert close.mean() == pytest.approx(2_500, abs=2)


@settings(max_examples=20)
@given(seed=st.integers(0, 2**62), first=st.integers(0, 6_850_000), cut=st.integers(1, 4))
def test_days_of_a_security_do_not_depend_on_the_others(seed: int, first: int, cut: int) -> None:
    security = first + np.arange(5)
    whole = daily_market(Days.for_securities(seed, POPULATION, security))
    parts = [daily_market(Days.for_securities(seed, POPULATION, part)) for part in (security[:cut], security[cut:])]
    assert pa.concat_tables(parts).equals(whole)


def test_the_year_s_extremes_are_in_the_daily_market(tables) -> None:
    daily, year = tables["daily_market"], 261
    shape = (SECURITIES, len(DATES))
    high, low = (cents(daily[name]).reshape(shape)[:, -year:] for name in ("dm_high", "dm_low"))
    security = tables["security"]
    assert np.array_equal(cents(security["s_52wk_high"]), high.max(axis=1))
    assert np.array_equal(cents(security["s_52wk_low"]), low.min(axis=1))
    for column, values in (("s_52wk_high", high), ("s_52wk_low", low)):
        day = security[f"{column}_date"].to_numpy().astype("datetime64[D]")
        place = np.searchsorted(DATES[-year:], day)
        assert np.array_equal(values[np.arange(SECURITIES), place], cents(security[column]))


def test_the_last_trade_is_when_all_orders_of_the_initial_trade_days_are_completed(tables) -> None:
    last = tables["last_trade"]
    end = np.full(SECURITIES, POPULATION.days * DAY_S + LONGEST_S)
    assert np.array_equal(cents(last["lt_price"]), price_cents(SECURITY, end))
    assert np.array_equal(last["lt_dts"].to_numpy().astype("datetime64[ms]"), moment(end))
    assert np.array_equal(cents(last["lt_open_price"]), price_cents(SECURITY, np.zeros(SECURITIES)))
    assert set(last["lt_vol"].to_pylist()) == {0}


def test_securities_are_those_of_the_population(tables) -> None:
    security = tables["security"]
    assert security["s_symb"].to_pylist() == [symbol(number) for number in SECURITY.tolist()]
    assert security["s_ex_id"].to_pylist() == [EXCHANGE_IDS[number] for number in exchange_of(SECURITY)]
    assert security["s_name"].to_pylist() == security_names(SEED, SECURITY).to_pylist()
    issues = security["s_issue"].value_counts().to_pylist()
    assert {each["values"]: each["counts"] for each in issues} == {"COMMON": 500, "PREF_A": 185}
    founded = dict(zip(*(tables["company"][name].to_pylist() for name in ("co_id", "co_open_date")), strict=True))
    for row in security.to_pylist():
        assert founded[row["s_co_id"]] <= row["s_start_date"] <= row["s_exch_date"] < DATES[0].item()


@given(st.lists(st.integers(0, 6_850_000), min_size=1, max_size=20))
def test_symbols_of_many_are_those_of_each(numbers: list[int]) -> None:
    assert symbols(np.array(numbers)).to_pylist() == [symbol(number) for number in numbers]


@given(seed=st.integers(0, 2**62), first=st.integers(0, 4_990_000))
def test_companies_have_names_of_their_own(seed: int, first: int) -> None:
    near, far = (company_names(seed, first + np.arange(2_000)), company_names(seed, np.arange(0, 5_000_000, 2_503)))
    assert len(near.unique()) == 2_000
    assert len(far.unique()) == len(far)


@pytest.mark.parametrize("customers", [1_000, 2_000, 5_000])
def test_competitors_are_three_others_of_the_industry(customers: int) -> None:
    population = Population(customers, 1.0)
    found = set()
    for unit in range(population.units):
        pieces = dict(zip(range(4), market_group(SEED, population, unit, 2.0), strict=False))
        [table] = [piece for name, piece in pieces.values() if name == "brokerage.company_competitor"]
        one, other = (table[name].to_numpy() - KEY - 1 for name in ("cp_co_id", "cp_comp_co_id"))
        assert np.array_equal(one, np.repeat(unit * COMPANIES + np.arange(COMPANIES), 3))
        assert ((other >= 0) & (other < population.companies) & (other != one)).all()
        assert np.array_equal(industry_of(one), industry_of(other))
        found |= set(zip(one.tolist(), other.tolist(), strict=True))
    assert len(found) == 3 * population.companies


def test_figures_are_of_the_last_quarters_and_fit_each_other(tables) -> None:
    rows = tables["financial"].to_pylist()
    for row in rows:
        assert row["fi_qtr_start_date"].isoformat() == f"{row['fi_year']}-{3 * row['fi_qtr'] - 2:02}-01"
        assert abs(row["fi_net_earn"] - row["fi_revenue"] * row["fi_margin"] / 100) <= 1
        assert abs(row["fi_basic_eps"] - row["fi_net_earn"] / row["fi_out_basic"]) <= 1
        assert 0 < row["fi_liability"] < row["fi_assets"]
        assert row["fi_out_dilut"] > row["fi_out_basic"] > 0
    assert {(row["fi_year"], row["fi_qtr"]) for row in rows} == {(2004, quarter) for quarter in (1, 2, 3, 4)}


def test_figures_of_300_days_are_of_twenty_quarters() -> None:
    population = Population(1_000, 300)
    [table] = [piece for name, piece in companies(SEED, population, np.arange(1)) if name == "brokerage.financial"]
    quarters = list(zip(table["fi_year"].to_pylist(), table["fi_qtr"].to_pylist(), strict=True))
    assert quarters == [(year, quarter) for year in range(2000, 2005) for quarter in (1, 2, 3, 4)]


def test_a_company_has_two_news_of_any_length(tables) -> None:
    news, xref = tables["news_item"], tables["news_xref"]
    assert news["ni_id"].to_pylist() == xref["nx_ni_id"].to_pylist()
    assert xref["nx_co_id"].to_pylist() == [company for company in tables["company"]["co_id"].to_pylist() for _ in "12"]
    lengths = pc.binary_length(news["ni_item"]).to_numpy()
    assert lengths.mean() == pytest.approx(500, rel=0.06)
    assert lengths.min() < 10
    assert 990 < lengths.max() <= 1_000
    assert 0.05 < news["ni_author"].null_count / len(news) < 0.15
    years = pc.year(news["ni_dts"]).unique().to_pylist()
    assert years == [2004]


# The lockstep matching against the same rules written down for one trade at a time


POSITIONS = 4
one_trade = st.tuples(
    st.integers(0, POSITIONS - 1),
    st.sampled_from([-800, -400, -200, -100, 100, 200, 400, 800]),
    st.integers(2_000, 3_000),
    st.booleans(),
)


def trades(rows: list[tuple[int, int, int, bool]]) -> Trades:
    position, quantity, cents, lifo = (np.array(column) for column in zip(*rows, strict=True))
    numbers = np.arange(len(rows))
    return Trades(1_000 + numbers, position, quantity, cents, lifo, numbers.astype("datetime64[ms]"))


def part(whole: Trades, first: int, end: int) -> Trades:
    return Trades(**{field.name: getattr(whole, field.name)[first:end] for field in fields(whole)})


def one_after_the_other(whole: Trades) -> tuple[list, list[int], list]:
    """History, what each trade earned, and the holdings that are open at the end."""
    queues: dict[int, deque] = defaultdict(deque)
    history, earned = [], []
    for trade, position, left, cents, lifo, _ in zip(*vars(whole).values(), strict=True):
        queue, gain = queues[position], 0
        while left and queue and queue[0][1] * left < 0:
            holding, before, cost = queue.pop() if lifo else queue.popleft()
            share = min(abs(before), abs(left)) * (1 if before > 0 else -1)
            gain += share * (cents - cost)
            history.append((holding, trade, before, before - share))
            left += share
            if before != share:
                (queue.append if lifo else queue.appendleft)((holding, before - share, cost))
        if left:
            queue.append((trade, left, cents))
            history.append((trade, trade, 0, left))
        earned.append(gain)
    still_open = [(key, position, left, cents) for position, q in queues.items() for key, left, cents in q]
    return sorted(history), earned, sorted(still_open)


@given(st.lists(one_trade, min_size=1, max_size=80), st.integers(1, 80))
def test_lockstep_matches_as_one_trade_after_the_other_does(rows, stretch):
    whole = trades(rows)
    holdings = Holdings(POSITIONS)
    history, earned = [], []
    for first in range(0, len(rows), stretch):
        changes, gains = holdings.match(part(whole, first, first + stretch))
        history += list(zip(*(column.tolist() for column in vars(changes).values()), strict=True))
        earned += gains.tolist()
    holdings.close_ranks()
    still_open = zip(holdings.key, holdings.position, holdings.quantity, holdings.cents, strict=True)
    assert (sorted(history), earned, sorted(still_open)) == one_after_the_other(whole)


def test_the_newest_and_the_oldest_holding():
    bought = [(0, 100, 2_000, False), (0, 200, 2_100, False), (0, 400, 2_200, False)]
    newest_first = [(1_002, 400, 0), (1_001, 200, 100)]
    oldest_first = [(1_000, 100, 0), (1_001, 200, 0), (1_002, 400, 200)]
    for lifo, expected in ((True, newest_first), (False, oldest_first)):
        holdings = Holdings(1)
        holdings.match(trades(bought))
        history, earned = holdings.match(trades([(0, -500, 2_500, lifo)]))
        assert list(zip(history.holding, history.before, history.after, strict=True)) == expected
        assert earned.tolist() == [sum((2_500 - 2_000 - 100 * (key - 1_000)) * (b - a) for key, b, a in expected)]
