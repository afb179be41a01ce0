"""Tables that do not grow with the customers, and the same as NumPy tables for the trade simulation."""

from decimal import Decimal
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from stallmark.loaders.brokerage.customers import tax_rate_of
from stallmark.loaders.brokerage.fixed import (
    BAND_ENDS,
    CHARGE_CENTS,
    COMMISSION_RATE_HUNDREDTHS,
    EXCHANGE_IDS,
    TRADE_TYPES,
    fixed,
    tax_ids,
    tax_rates,
)
from stallmark.loaders.brokerage.simulation import (
    LIMIT_BUY,
    LIMIT_SELL,
    QUANTITIES,
    SHARES,
    STOP_LOSS,
    OrderBook,
    Orders,
    Simulation,
)
from stallmark.schema.brokerage import (
    DAY_S,
    MOST_HELD,
    UNIT,
    Population,
    account_key,
    accounts_of,
    busy_rank,
    held_by,
    price_cents,
    rank_of,
    security_of,
)

TYPES = [kind for kind, *_ in TRADE_TYPES]
TABLES = dict(fixed(1, Population(1_000, 1.0)))


def rows(table: str) -> list[dict]:
    return TABLES[f"brokerage.{table}"].to_pylist()


def test_charges_are_those_of_the_simulation() -> None:
    charges = {(row["ch_tt_id"], row["ch_c_tier"]): row["ch_chrg"] for row in rows("charge")}
    for number, kind in enumerate(TYPES):
        of_tiers = [charges[kind, tier] for tier in (1, 2, 3)]
        assert of_tiers == [Decimal(int(cents)) / 100 for cents in CHARGE_CENTS[number]]
        assert of_tiers[0] > of_tiers[1] > of_tiers[2] > 0


def test_commission_rates_are_those_of_the_simulation() -> None:
    found = {}
    for row in rows("commission_rate"):
        for quantity in QUANTITIES.tolist():
            if row["cr_from_qty"] <= quantity <= row["cr_to_qty"]:
                place = row["cr_c_tier"], row["cr_tt_id"], row["cr_ex_id"], quantity
                assert place not in found
                found[place] = row["cr_rate"]
    assert len(found) == 240
    for (tier, kind, exchange, quantity), rate in found.items():
        band = np.searchsorted(BAND_ENDS, quantity)
        place = tier - 1, TYPES.index(kind), EXCHANGE_IDS.index(exchange), band
        assert rate * 100 == int(COMMISSION_RATE_HUNDREDTHS[place]) > 0
        if tier < 3:
            assert rate > found[tier + 1, kind, exchange, quantity]


def test_bands_cover_every_quantity_once() -> None:
    bands = sorted({(row["cr_from_qty"], row["cr_to_qty"]) for row in rows("commission_rate")})
    assert bands[0][0] == 1
    assert bands[-1][1] == 1_000_000
    assert all(end + 1 == start for (_, end), (start, _) in pairwise(bands))


def test_a_customer_pays_the_taxes_of_the_country_and_of_the_state() -> None:
    customer = np.arange(2_000)
    rates = {row["tx_id"]: row["tx_rate"] for row in rows("taxrate")}
    country, state = (tax_ids().take(pa.array(each)).to_pylist() for each in tax_rates(9, customer))
    assert {each[:2] for each in country} == {"US"}
    assert "US" not in {each[:2] for each in state}
    both = [rates[one] + rates[other] for one, other in zip(country, state, strict=True)]
    assert both == [Decimal(int(rate)).scaleb(-5) for rate in tax_rate_of(9, customer)]
    assert all(0 < rate < 1 for rate in both)


def test_a_zip_code_has_the_state_that_taxes_go_by() -> None:
    states = {row["zc_div"] for row in rows("zip_code")}
    assert {row["tx_id"][:2] for row in rows("taxrate")} == states | {"US"}


def test_each_sector_has_industries_with_names_of_their_own() -> None:
    industries = rows("industry")
    assert len({row["in_name"] for row in industries}) == 102
    per_sector = np.unique([row["in_sc_id"] for row in industries], return_counts=True)[1]
    assert (len(per_sector), per_sector.min(), per_sector.max()) == (12, 8, 9)


@pytest.mark.parametrize("customers", [1_000, 7_000])
def test_only_what_exchanges_list_depends_on_the_scale(customers: int) -> None:
    for name, table in fixed(1, Population(customers, 0.1)):
        if name == "brokerage.exchange":
            assert sum(table["ex_num_symb"].to_pylist()) == 685 * customers // 1_000
            table = table.drop_columns("ex_num_symb")
            assert table.equals(TABLES[name].drop_columns("ex_num_symb"))
        else:
            assert table.equals(TABLES[name])


# test_brokerage_orders


DAY = Population(2_000, 1.0)


@pytest.fixture(scope="module")
def day() -> Orders:
    return OrderBook(1, DAY, 1).orders(0, DAY.unit_trades)


def share(of: np.ndarray) -> float:
    return float(np.mean(of))


def test_orders_are_the_same_in_any_stretch(day):
    book = OrderBook(1, DAY, 1)
    again = Orders.joined([book.orders(0, 1), book.orders(1, 5_000), book.orders(5_000, DAY.unit_trades)])
    assert all((getattr(again, name) == column).all() for name, column in vars(day).items())
    other = OrderBook(2, DAY, 1).orders(0, 1_000)
    assert (other.account != day.account[:1_000]).any()


def test_they_come_evenly_over_the_day_in_their_order(day):
    assert (np.diff(day.placed) >= 0).all()
    assert day.placed[0] >= 0 and day.placed[-1] < DAY_S
    by_hour = np.bincount((day.placed // 3600).astype(int))
    assert by_hour.tolist() == [DAY.unit_trades // 8] * 8


def test_shares_are_those_of_the_workload(day):
    assert [share(day.type == kind) for kind in range(5)] == pytest.approx([s / 100 for s in SHARES], abs=0.01)
    assert [share(day.quantity == q) for q in QUANTITIES] == pytest.approx([0.25] * 4, abs=0.01)
    assert share(day.lifo) == pytest.approx(0.35, abs=0.01)
    assert share(day.cash) == pytest.approx(0.92, abs=0.01)


def test_customers_are_busy_by_tier_and_more_so_along_it(day):
    rank = rank_of(OrderBook(1, DAY, 1).owners[day.account])
    tiers = np.searchsorted([200, 800], rank, side="right")
    assert [share(tiers == t) for t in range(3)] == pytest.approx([0.10, 0.60, 0.30], abs=0.01)
    # Straight from 0.3 over 0.7 and 1.3 to 1.7: the halves of each tier have these means.
    halves = [share((rank >= a) & (rank < b)) / (b - a) * UNIT
              for a, b in ((0, 100), (100, 200), (200, 500), (500, 800), (800, 900), (900, 1_000))]  # fmt: skip
    assert halves == pytest.approx([0.4, 0.6, 0.85, 1.15, 1.4, 1.6], abs=0.04)


def test_the_correlation_of_who_and_what_is_none(day):
    drawn = np.stack([day.account, day.held, day.type, day.quantity, day.lifo, day.cash])
    assert np.abs(np.corrcoef(drawn) - np.eye(len(drawn))).max() < 0.02


def test_an_order_is_for_a_security_that_its_account_trades(day):
    customers = UNIT + np.arange(UNIT)
    counts = accounts_of(customers)
    keys = np.concatenate([account_key(np.full(n, c), np.arange(n)) for c, n in zip(customers, counts, strict=True)])
    assert day.account.max() < len(keys) and (day.held < held_by(keys)[day.account]).all()
    assert (security_of(keys[day.account], day.held, DAY.securities) == day.security).all()
    assert day.held.max() == MOST_HELD - 1


def test_a_limit_waits_for_its_price_and_the_market_does_not(day):
    limited = day.type >= LIMIT_BUY
    assert (day.submitted >= day.placed).all()
    assert (day.submitted == day.placed)[~limited].all()
    price = price_cents(day.security, day.submitted)
    above = day.type == LIMIT_SELL
    assert (np.abs(price - day.bid_cents)[limited] <= 1).all()
    placed_at = price_cents(day.security, day.placed)
    assert (day.bid_cents >= placed_at)[above].all()
    assert (day.bid_cents <= placed_at)[limited & ~above].all()
    assert (day.type == STOP_LOSS).any()


def test_the_market_takes_1_to_6_seconds_and_about_2(day):
    took = day.completed - day.submitted
    assert took.min() >= 1 and took.max() <= 6.001
    assert took.mean() == pytest.approx(1 + 1 - np.exp(-5), abs=0.02)  # the mean of the clipped exponential


@pytest.mark.parametrize("stretch", [700, 20_000])
def test_the_simulation_completes_every_order_once_and_in_time(monkeypatch, stretch):
    population = Population(1_000, 0.1)
    monkeypatch.setattr("stallmark.loaders.brokerage.simulation.STRETCH", stretch)
    simulation = Simulation(3, population, 0)
    done = list(simulation.completed())
    numbers = np.concatenate([d.orders.number for d in done])
    assert sorted(numbers) == list(range(population.unit_trades))
    completed = np.concatenate([d.completed for d in done])
    assert (np.diff(completed) >= np.timedelta64(0)).all()
    ties = np.diff(completed) == np.timedelta64(0)
    assert (np.diff(numbers)[ties] > 0).all()
    account, held, net = simulation.holdings_left()
    assert (net != 0).all() and len(set(zip(account, held, strict=True))) == len(net)
    assert net.sum() == sum(np.where(d.sells, -d.orders.quantity, d.orders.quantity).sum() for d in done)


def test_stretches_change_nothing(monkeypatch):
    population = Population(1_000, 0.05)
    found = []
    for stretch in (300, 100_000):
        monkeypatch.setattr("stallmark.loaders.brokerage.simulation.STRETCH", stretch)
        done = list(Simulation(3, population, 0).completed())
        found.append([np.concatenate([getattr(d, name) for d in done]).tolist() for name in ("key", "earned", "cents")])
    assert found[0] == found[1]


def test_busy_rank_takes_all_ranks():
    ranks = busy_rank(np.linspace(0, 2**64 - 2**12, 100_001).astype(np.uint64))
    assert ranks.min() == 0 and ranks.max() == UNIT - 1 and (np.diff(ranks) >= 0).all()
    assert len(set(ranks)) == UNIT
