"""Customers are drawn by how busy they are, with an account and a security of their own, at home as often as told."""

import random
from collections import Counter
from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stallmark.schema.brokerage import Population, account_key, accounts_of, held_by, rank_of, security_of, tier_of
from stallmark.transactions.brokerage.context import AT_ONCE, Choice, LocalUnits, choices

pytestmark = pytest.mark.thorough

DRAWS = 40_000


def drawn(units: int, part: LocalUnits | None = None, seed: int = 1, draws: int = DRAWS) -> list[Choice]:
    population = Population(units * 1_000, 1.0)
    part = part or LocalUnits.for_machine(range(units), 0, 1, 0.0)
    return list(islice(choices(population, part, random.Random(seed)), draws))


@given(units=st.integers(1, 10_000), seed=st.integers())
def test_accounts_and_securities_are_the_customers(units: int, seed: int) -> None:
    securities = Population(units * 1_000, 1.0).securities
    for customer, account, security in drawn(units, seed=seed, draws=AT_ONCE + 3):
        assert 0 <= customer < units * 1_000
        owner = np.array([customer])
        accounts = account_key(owner, np.arange(accounts_of(owner)[0]))
        assert account in accounts
        of_account = np.array([account])
        held = security_of(of_account, np.arange(held_by(of_account)[0]), securities)
        assert security in held


def test_they_are_plain_numbers() -> None:
    assert {type(each) for choice in drawn(1, draws=3) for each in choice} == {int}


def test_they_are_a_function_of_the_generator() -> None:
    assert drawn(3, seed=7, draws=300) == drawn(3, seed=7, draws=300)
    assert drawn(3, seed=7, draws=300) != drawn(3, seed=8, draws=300)


def test_sessions_do_not_follow_each_other() -> None:
    population = Population(1_000, 1.0)
    part = LocalUnits.for_machine(range(1), 0, 1, 0.0)
    one, other = (choices(population, part, random.Random(seed)) for seed in (1, 2))
    together = [next(each) for _ in range(AT_ONCE * 2) for each in (one, other)]
    assert together[::2] == drawn(1, seed=1, draws=AT_ONCE * 2)
    assert together[1::2] == drawn(1, seed=2, draws=AT_ONCE * 2)


def test_tiers_have_their_shares_and_are_busier_along_the_ramp() -> None:
    customer = np.array([choice.customer for choice in drawn(2)])
    tiers = Counter(tier_of(customer).tolist())
    assert tiers[1] / DRAWS == pytest.approx(0.1, abs=0.008)
    assert tiers[2] / DRAWS == pytest.approx(0.6, abs=0.012)
    assert tiers[3] / DRAWS == pytest.approx(0.3, abs=0.012)
    rank = rank_of(customer)
    lower, upper = np.sum((rank >= 200) & (rank < 500)), np.sum((rank >= 500) & (rank < 800))
    # A ramp from 0.7 to 1.3: its halves are as 0.85 to 1.15.
    assert upper / lower == pytest.approx(1.15 / 0.85, rel=0.06)


def test_load_units_accounts_and_securities_are_even() -> None:
    these = drawn(4)
    units = Counter(choice.customer // 1_000 for choice in these)
    assert all(units[unit] / DRAWS == pytest.approx(0.25, abs=0.01) for unit in range(4))
    busy, _ = Counter(choice.customer for choice in these).most_common(1)[0]
    accounts = accounts_of(np.array([busy]))[0]
    assert len({choice.account for choice in these if choice.customer == busy}) == accounts
    assert len({choice.security for choice in these}) > 0.99 * 4 * 685


@given(first=st.integers(0, 60), units=st.integers(1, 60), machines=st.integers(2, 40))
def test_machines_share_all_units_of_their_cell(first: int, units: int, machines: int) -> None:
    cell = range(first, first + units)
    parts = [LocalUnits.for_machine(cell, machine, machines, 0.5) for machine in range(1, machines + 1)]
    assert {unit for part in parts for unit in part.own} == set(cell)
    sizes = [len(part.own) for part in parts]
    assert min(sizes) > 0 and {part.cell for part in parts} == {cell}
    if machines <= units:
        assert sum(sizes) == units
        assert max(sizes) - min(sizes) <= 1


@given(units=st.integers(1, 60), machine=st.integers(0, 1), locality=st.floats(0, 1))
def test_one_machine_alone_has_all(units: int, machine: int, locality: float) -> None:
    assert LocalUnits.for_machine(range(units), machine, 1, locality) == LocalUnits(range(units), range(units), 0.0)


@pytest.mark.parametrize("locality", [0.0, 0.5, 1.0])
def test_at_home_as_often_as_told(locality: float) -> None:
    part = LocalUnits.for_machine(range(10), 3, 5, locality)
    assert part.own == range(4, 6)
    units = Counter(choice.customer // 1_000 for choice in drawn(10, part))
    at_home = (units[4] + units[5]) / DRAWS
    # Those from everywhere are at home by chance too.
    assert at_home == pytest.approx(locality + (1 - locality) * 0.2, abs=0.012)
    assert units[4] / (units[4] + units[5]) == pytest.approx(0.5, abs=0.02)
    away = [units[unit] / DRAWS for unit in range(10) if unit not in (4, 5)]
    assert all(share == pytest.approx((1 - locality) / 10, abs=0.008) for share in away)


def test_locality_leaves_the_tiers_as_they_are() -> None:
    part = LocalUnits.for_machine(range(4), 2, 2, 0.5)
    at_home = np.array([choice.customer for choice in drawn(4, part) if choice.customer >= 2_000])
    assert np.mean(tier_of(at_home) == 2) == pytest.approx(0.6, abs=0.015)
