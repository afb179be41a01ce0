"""Tables that do not grow with the customers, and the same as NumPy tables for the trade simulation."""

from decimal import Decimal
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from stallmark.loaders.brokerage import people
from stallmark.loaders.brokerage.customers import tax_rate_of
from stallmark.loaders.brokerage.fixed import (
    BAND_ENDS,
    CHARGE_CENTS,
    COMMISSION_RATE_HUNDREDTHS,
    EXCHANGE_IDS,
    TRADE_TYPES,
    fixed,
)
from stallmark.loaders.brokerage.simulation import QUANTITIES
from stallmark.schema.brokerage.population import Population

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
    country, state = (people.tax_ids().take(pa.array(each)).to_pylist() for each in people.tax_rates(9, customer))
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
