"""Trades that are asked for exist, and as many follow a start time as are looked for."""

import random
from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stallmark.loaders.brokerage.simulation import Simulation
from stallmark.schema.brokerage import DAY_S, Population, moment, trade_key
from stallmark.transactions.brokerage.context import BEFORE_END_S, TRADES, LocalUnits, choices, ids, since

pytestmark = pytest.mark.thorough

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


def test_load_units_are_asked_for_evenly() -> None:
    population = Population(4_000, 1.0)
    drawn = np.array(list(islice(ids(population, range(population.units), random.Random(1)), DRAWS))).ravel()
    unit = (drawn - 200_000_000_000_001) // population.unit_trade_ids
    assert np.bincount(unit) / len(drawn) == pytest.approx(0.25, abs=0.01)


@given(seed=st.integers(), days=st.floats(0.01, 300), before_end_s=st.sampled_from(list(BEFORE_END_S.values())))
def test_start_times_are_of_the_initial_days(seed: int, days: float, before_end_s: float) -> None:
    end = str(moment(np.array(max(days * DAY_S - before_end_s, days * DAY_S / 2))))
    for time in islice(since(Population(2_000, days), before_end_s, random.Random(seed)), 70):
        assert type(time) is str and OPENING <= time <= end


@pytest.mark.parametrize("days", [0.2, 3, 5, 40])
def test_the_window_of_start_times_does_not_collapse(days: float) -> None:
    times = list(islice(since(Population(1_000, days), BEFORE_END_S["account"], random.Random(1)), DRAWS))
    assert len(set(times)) > 0.9 * DRAWS
    assert max(times) > str(moment(np.array(days * DAY_S * 0.45)))


@pytest.mark.parametrize(
    ("by", "following", "normally"), [("account", TRADES, 0.9), ("security", TRADES, 0.9), ("first of account", 1, 0.9)]
)
def test_normally_as_many_follow(by: str, following: int, normally: float) -> None:
    population = Population(1_000, 12.0)
    whose, when = [], []
    simulation = Simulation(1, population, 0)
    for done in simulation.completed():
        account = simulation.book.account_keys[done.orders.account]
        whose.append(done.orders.security if by == "security" else account)
        when.append(done.completed)
    trader, time = np.concatenate(whose), np.concatenate(when)
    order = np.lexsort((time, trader))
    trader, time = trader[order], time[order]

    rng = random.Random(1)
    drawn = choices(population, LocalUnits.for_machine(range(1), 0, 1, 0.0), rng)
    enough = 0
    for start in islice(since(population, BEFORE_END_S[by], rng), DRAWS):
        choice = next(drawn)
        trading = choice.security if by == "security" else choice.account
        first, end = np.searchsorted(trader, [trading, trading + 1])
        follow = end - first - np.searchsorted(time[first:end], np.datetime64(start))
        enough += follow >= following
    assert enough / DRAWS > normally
