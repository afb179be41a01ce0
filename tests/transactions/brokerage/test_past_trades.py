"""Trades that are asked for exist, later ones more often, and as many follow a time as are looked for."""

import random
from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stallmark.loaders.brokerage.simulation import Simulation
from stallmark.schema.brokerage.population import Population, trade_key
from stallmark.schema.brokerage.prices import FIRST_DAY, moment
from stallmark.transactions.brokerage.choices import LocalUnits, choices
from stallmark.transactions.brokerage.past_trades import TRADES, ids, since

DRAWS = 2_000
OPENING = "2005-01-03T09:00:00.000"


def all_keys(population: Population) -> np.ndarray:
    numbers = np.arange(population.unit_trades)
    return np.concatenate([trade_key(population, unit, numbers) for unit in range(population.units)])


@given(units=st.integers(1, 8), days=st.sampled_from([0.001, 0.02, 0.1]), seed=st.integers())
def test_trades_exist_and_are_different(units: int, days: float, seed: int) -> None:
    population = Population(units * 1_000, days)
    keys = set(all_keys(population).tolist())
    for drawn in islice(ids(population, range(population.units), random.Random(seed)), 70):
        assert drawn == sorted(set(drawn)) and keys.issuperset(drawn)
        assert {type(each) for each in drawn} == {int}
        if population.trades > 500:
            assert len(drawn) == TRADES


def test_fewer_where_there_are_not_as_many() -> None:
    population = Population(1_000, 0.0001)
    keys = set(all_keys(population).tolist())
    assert len(keys) == 6
    for drawn in islice(ids(population, range(population.units), random.Random(1)), 70):
        assert drawn == sorted(set(drawn)) and keys.issuperset(drawn) and drawn


def test_later_trades_are_asked_for_more_often() -> None:
    population = Population(4_000, 1.0)
    drawn = np.array(list(islice(ids(population, range(population.units), random.Random(1)), DRAWS))).ravel()
    unit, within = np.divmod(drawn - 200_000_000_000_001, population.unit_trade_ids)
    assert np.bincount(unit) / len(drawn) == pytest.approx(0.25, abs=0.01)
    tenth = np.bincount(within * 10 // population.unit_trade_ids) / len(drawn)
    assert tenth == pytest.approx(np.arange(1, 20, 2) / 100, abs=0.01)


@given(seed=st.integers(), days=st.floats(0.01, 300), among=st.integers(1, 10**6))
def test_times_are_of_the_initial_days(seed: int, days: float, among: int) -> None:
    population = Population(2_000, days)
    end = str(moment(np.array(days * 28_800.0)))
    for time in islice(since(population, among, TRADES, random.Random(seed)), 70):
        assert type(time) is str and OPENING <= time <= end


def test_the_opening_where_there_never_are_as_many() -> None:
    population = Population(1_000, 0.02)
    assert set(islice(since(population, population.accounts, TRADES, random.Random(1)), DRAWS)) == {OPENING}


@pytest.mark.parametrize(
    ("of_accounts", "following", "normally"), [(True, TRADES, 0.9), (False, TRADES, 0.95), (True, 5, 0.99)]
)
def test_normally_as_many_follow(of_accounts: bool, following: int, normally: float) -> None:
    """`following` trades for as many as are looked for; for 5 it is one."""
    population = Population(1_000, 8.0)
    whose, when = [], []
    simulation = Simulation(1, population, 0)
    for done in simulation.completed():
        whose.append(simulation.book.account_keys[done.orders.account] if of_accounts else done.orders.security)
        when.append(done.completed)
    trader, time = np.concatenate(whose), np.concatenate(when)
    order = np.lexsort((time, trader))
    trader, time = trader[order], time[order]

    rng = random.Random(1)
    among = population.accounts if of_accounts else population.securities
    drawn = choices(population, LocalUnits.of(range(1), 0, 1, 0.0), rng)
    enough = 0
    times = list(islice(since(population, among, following, rng), DRAWS))
    for start in times:
        choice = next(drawn)
        one = choice.account if of_accounts else choice.security
        first, end = np.searchsorted(trader, [one, one + 1])
        follow = end - first - np.searchsorted(time[first:end], np.datetime64(start))
        enough += follow >= (1 if following < TRADES else TRADES)
    assert enough / DRAWS > normally
    assert len({each[:10] for each in times}) >= 3 and min(times) >= str(FIRST_DAY)
