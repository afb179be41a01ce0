"""Customers, who may trade for them, and what they watch: shares, ranges, and the same whatever was made before."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from stallmark.loaders.brokerage.customers import account_names, broker_names, customers, names, tax_status_of
from stallmark.loaders.brokerage.fixed import zip_codes, zip_of
from stallmark.schema.brokerage import (
    Population,
    account_key,
    accounts_of,
    customer_key,
    tax_id,
    tax_number,
    tier_of,
    watched_by,
)

SEED = 3
POPULATION = Population(5_000, 1.0)
UNIT = 2
HERE = UNIT * 1_000 + np.arange(1_000)
TABLES = {name.removeprefix("brokerage."): table for name, table in customers(SEED, POPULATION, UNIT)}
KEYS = np.concatenate([account_key(np.full(n, c), np.arange(n)) for c, n in zip(HERE, accounts_of(HERE), strict=True)])


def test_customers_are_those_of_the_population() -> None:
    table = TABLES["customer"]
    assert table["c_id"].to_pylist() == customer_key(HERE).tolist()
    assert table["c_tier"].to_pylist() == tier_of(HERE).tolist()
    assert table["c_tax_id"].to_pylist() == [tax_id(customer) for customer in HERE.tolist()]
    together = pc.binary_join_element_wise(table["c_f_name"], table["c_l_name"], " ")
    assert together.to_pylist() == names(SEED, HERE).to_pylist()
    assert 400 < Counter(table["c_gndr"].to_pylist())["F"] < 600


def test_taxes_go_by_the_state_of_the_address() -> None:
    assert (
        TABLES["address"]["ad_zc_code"].to_pylist()
        == zip_codes().take(pa.array(zip_of(SEED, "customer", HERE))).to_pylist()
    )
    per_customer = Counter(TABLES["customer_taxrate"]["cx_c_id"].to_pylist())
    assert set(per_customer.values()) == {2}


def test_tax_ids_are_each_customer_s_own() -> None:
    many = np.arange(0, 10_000_000, 97)
    assert len(np.unique(tax_number(many))) == len(many)
    assert 0 <= tax_number(many).min() <= tax_number(many).max() < 10**12


@pytest.mark.parametrize("population", [Population(1_000, 1.0), POPULATION])
def test_who_may_trade(population: Population) -> None:
    unit = population.units - 1
    tables = {name: table for name, table in customers(SEED, population, unit)}
    table = tables["brokerage.account_permission"]
    here = unit * 1_000 + np.arange(1_000)
    own_tax_id = {
        key: tax_id(customer)
        for customer, n in zip(here.tolist(), accounts_of(here).tolist(), strict=True)
        for key in account_key(np.full(n, customer), np.arange(n)).tolist()
    }
    of_account: dict[int, list[dict]] = {}
    for row in table.to_pylist():
        of_account.setdefault(row["ap_ca_id"], []).append(row)
    assert set(of_account) == set(own_tax_id)
    everybody = {tax_id(customer) for customer in range(population.customers)}
    for account, rows in of_account.items():
        tax_ids = [row["ap_tax_id"] for row in rows]
        assert tax_ids[0] == own_tax_id[account]
        assert len(set(tax_ids)) == len(tax_ids)
        assert set(tax_ids) <= everybody
        assert [row["ap_acl"] for row in rows] == ["0000", "0001", "0011"][: len(rows)]
    counts = Counter(map(len, of_account.values()))
    assert [counts[n] / 5_000 for n in (1, 2, 3)] == pytest.approx([0.6, 0.38, 0.02], abs=0.02)


def test_who_may_trade_is_called_as_the_customer_is() -> None:
    of_tax_id = {tax_id(customer): customer for customer in range(POPULATION.customers)}
    table = TABLES["account_permission"]
    permitted = np.array([of_tax_id[each] for each in table["ap_tax_id"].to_pylist()])
    called = pc.binary_join_element_wise(table["ap_f_name"], table["ap_l_name"], " ").to_pylist()
    assert called == names(SEED, permitted).to_pylist()


@pytest.mark.parametrize(("days", "fewest", "most"), [(300, 50, 150), (90, 15, 45), (1, 5, 15)])
def test_watch_lists_are_in_proportion_to_the_initial_days(days: float, fewest: int, most: int) -> None:
    tables = dict(customers(SEED, Population(POPULATION.customers, days), UNIT))
    counts = Counter(tables["brokerage.watch_item"]["wi_wl_id"].to_pylist())
    assert set(counts) == set(tables["brokerage.watch_list"]["wl_id"].to_pylist())
    assert (min(counts.values()), max(counts.values())) == (fewest, most)
    assert sum(counts.values()) / 1_000 == pytest.approx((fewest + most) / 2, rel=0.03)


def test_watch_lists_have_every_length_at_every_scale() -> None:
    customer = np.arange(1_000)
    for days in range(1, 301):
        population = Population(1_000, days)
        lengths = np.bincount(watched_by(population, customer))[population.fewest_watched :]
        assert len(lengths) == population.most_watched - population.fewest_watched + 1
        assert lengths.max() - lengths.min() <= 1


def test_tax_status() -> None:
    counts = Counter(tax_status_of(SEED, KEYS).tolist())
    assert [counts[status] / 5_000 for status in (0, 1, 2)] == pytest.approx([0.2, 0.5, 0.3], abs=0.02)


def test_names_of_accounts_and_brokers() -> None:
    owners = np.repeat(HERE, accounts_of(HERE))
    called = account_names(SEED, KEYS).to_pylist()
    assert all(
        name.startswith(owner + " ") and len(name) <= 50
        for name, owner in zip(called, names(SEED, owners).to_pylist(), strict=True)
    )
    brokers = broker_names(SEED, np.arange(50)).to_pylist()
    assert brokers[10:20] == broker_names(SEED, np.arange(10, 20)).to_pylist()
    assert all(len(name.split()) == 2 for name in brokers)
