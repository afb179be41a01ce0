import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stallmark.schema.brokerage import population as p
from stallmark.schema.brokerage.population import Population

units = st.integers(0, 9_999)


@given(units)
def test_ranks_and_customers_of_a_load_unit_are_one_to_one(unit):
    customers = p.customer_at(unit, np.arange(p.UNIT))
    assert sorted(customers) == list(range(unit * p.UNIT, (unit + 1) * p.UNIT))
    assert (p.rank_of(customers) == np.arange(p.UNIT)).all()
    busy = customers[-10:] - unit * p.UNIT  # not neighbours, so that busy customers do not share pages
    assert np.abs(np.diff(np.sort(busy))).min() > 1


@given(units)
def test_tiers_and_accounts_of_a_load_unit(unit):
    customers = unit * p.UNIT + np.arange(p.UNIT)
    tiers, accounts = p.tier_of(customers), p.accounts_of(customers)
    assert [int((tiers == t).sum()) for t in (1, 2, 3)] == [200, 600, 200]
    assert [int(accounts[tiers == t].sum()) for t in (1, 2, 3)] == [500, 3_000, 1_500]
    assert [(accounts[tiers == t].min(), accounts[tiers == t].max()) for t in (1, 2, 3)] == [(1, 4), (2, 8), (5, 10)]


def accounts_of_unit(unit: int) -> np.ndarray:
    customers = unit * p.UNIT + np.arange(p.UNIT)
    return np.concatenate(
        [p.account_key(np.full(n, c), np.arange(n)) for c, n in zip(customers, p.accounts_of(customers), strict=True)]
    )


def test_an_account_trades_1_to_18_different_securities_10_on_average():
    population = Population(5_000, 1)
    keys = np.concatenate([accounts_of_unit(unit) for unit in range(5)])
    held = p.held_by(keys)
    assert (held.min(), held.max()) == (1, 18) and abs(held.mean() - 10) < 0.1
    securities = p.security_of(keys[:, None], np.arange(p.MOST_HELD)[None, :], population.securities)
    assert (np.diff(np.sort(securities, axis=1), axis=1) > 0).all()
    assert securities.min() >= 0 and securities.max() < population.securities
    per_security = np.bincount(securities.ravel(), minlength=population.securities)
    assert per_security.std() < 0.2 * per_security.mean()


@given(units)
def test_brokers_are_of_the_load_unit_and_all_have_accounts(unit):
    brokers = p.broker_of(accounts_of_unit(unit))
    assert set(brokers) == set(range(unit * p.BROKERS, (unit + 1) * p.BROKERS))


@given(st.integers(1, 20_000), st.integers(0, 3))
def test_trade_ids_ascend_stay_in_their_load_unit_and_leave_one_in_101_out(trades, unit):
    population = Population(4_000, trades / p.TRADES_PER_DAY)
    assert population.unit_trades == trades
    keys = p.trade_key(population, unit, np.arange(trades)) - p.TRADE_KEY
    assert (np.diff(keys) > 0).all()
    assert unit * population.unit_trade_ids < keys[0] and keys[-1] <= (unit + 1) * population.unit_trade_ids
    blocks = (keys - 1 - unit * population.unit_trade_ids) // p.BURNT_EVERY
    assert (np.bincount(blocks)[:-1] == p.BURNT_EVERY - 1).all()


def test_every_security_has_a_symbol_of_its_own():
    count = 20 * p.SECURITIES
    symbols = {p.symbol(number) for number in range(count)}
    assert len(symbols) == count and max(map(len, symbols)) <= 15
    assert len({p.ticker(company) for company in range(100_000)}) == 100_000


def test_counts_follow_from_customers_and_days():
    whole = Population(5_000, 300)
    assert (whole.accounts, whole.brokers, whole.companies, whole.securities) == (25_000, 50, 2_500, 3_425)
    assert whole.trades == 5 * 17_280_000
    assert Population(1_000, 0.5).trades == 28_800
    common = p.is_preferred(np.arange(whole.securities))
    assert common.sum() == 5 * 185
    assert set(p.company_of(np.arange(whole.securities))) == set(range(whole.companies))
