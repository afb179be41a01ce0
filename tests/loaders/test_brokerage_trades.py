"""The trade group's money and balances, against the same sums written down one trade at a time."""

from collections import defaultdict
from decimal import ROUND_HALF_UP, Decimal

import numpy as np
import pyarrow as pa
import pytest

from stallmark.loaders import Batch
from stallmark.loaders.brokerage import LOADER
from stallmark.loaders.brokerage.fixed import TRADE_TYPES

pytestmark = pytest.mark.thorough

SCALE = LOADER.scale({"customers": 1_000, "days": 0.3})
SEED = 5
CENT = Decimal("0.01")
SELLS = {kind for kind, _, sells, _ in TRADE_TYPES if sells}
Rows = dict[str, list[dict]]


@pytest.fixture(scope="module")
def tables() -> Rows:
    pieces: dict[str, list[pa.Table]] = defaultdict(list)
    for batch in (Batch("trade", 0), Batch("customers", 0), Batch("market", 0), Batch("fixed", 0)):
        for name, piece in LOADER.batch(SEED, SCALE, batch):
            if not name.endswith(("daily_market", "news_item")):
                pieces[name.removeprefix("brokerage.")].append(piece)
    return {name: pa.concat_tables(parts).to_pylist() for name, parts in pieces.items()}


def by(rows: list[dict], key: str) -> dict:
    return {row[key]: row for row in rows}


def test_what_a_trade_costs_and_brings(tables):
    accounts, customers = by(tables["customer_account"], "ca_id"), by(tables["customer"], "c_id")
    securities, trades = by(tables["security"], "s_symb"), by(tables["trade"], "t_id")
    rates = defaultdict(Decimal)
    of_id = by(tables["taxrate"], "tx_id")
    for row in tables["customer_taxrate"]:
        rates[row["cx_c_id"]] += of_id[row["cx_tx_id"]]["tx_rate"]
    earned = defaultdict(Decimal)
    for row in tables["holding_history"]:
        if row["hh_h_t_id"] != row["hh_t_id"]:
            gain = trades[row["hh_t_id"]]["t_trade_price"] - trades[row["hh_h_t_id"]]["t_trade_price"]
            earned[row["hh_t_id"]] += gain * (row["hh_before_qty"] - row["hh_after_qty"])
    charges = {(row["ch_tt_id"], row["ch_c_tier"]): row["ch_chrg"] for row in tables["charge"]}
    settled = by(tables["settlement"], "se_t_id")
    taxed = 0
    for key, trade in trades.items():
        account = accounts[trade["t_ca_id"]]
        tier = customers[account["ca_c_id"]]["c_tier"]
        value = trade["t_trade_price"] * trade["t_qty"]
        [rate] = [row["cr_rate"] for row in tables["commission_rate"]
                  if (row["cr_c_tier"], row["cr_tt_id"]) == (tier, trade["t_tt_id"])
                  and row["cr_ex_id"] == securities[trade["t_s_symb"]]["s_ex_id"]
                  and row["cr_from_qty"] <= trade["t_qty"] <= row["cr_to_qty"]]  # fmt: skip
        tax = Decimal(0)
        if account["ca_tax_st"] and earned[key] > 0:
            tax = (earned[key] * rates[account["ca_c_id"]]).quantize(CENT, ROUND_HALF_UP)
            taxed += 1
        expected = (charges[trade["t_tt_id"], tier], (value * rate / 100).quantize(CENT, ROUND_HALF_UP), tax)
        assert (trade["t_chrg"], trade["t_comm"], trade["t_tax"]) == expected
        brings = (value if trade["t_tt_id"] in SELLS else -value) - trade["t_chrg"] - trade["t_comm"]
        assert settled[key]["se_amt"] == brings - (tax if account["ca_tax_st"] == 1 else 0)
    assert taxed > 100


def test_balances_and_totals_follow(tables):
    accounts, trades = by(tables["customer_account"], "ca_id"), tables["trade"]
    balances, count, commission = defaultdict(Decimal), defaultdict(int), defaultdict(Decimal)
    settled = by(tables["settlement"], "se_t_id")
    for trade in trades:
        broker = accounts[trade["t_ca_id"]]["ca_b_id"]
        count[broker] += 1
        commission[broker] += trade["t_comm"]
        if trade["t_is_cash"]:
            balances[trade["t_ca_id"]] += settled[trade["t_id"]]["se_amt"]
    assert {key: row["ca_bal"] for key, row in accounts.items()} == {key: balances[key] for key in accounts}
    for row in tables["broker"]:
        assert (row["b_num_trades"], row["b_comm_total"]) == (count[row["b_id"]], commission[row["b_id"]])


def test_it_is_settled_two_working_days_later(tables):
    completed = {row["t_id"]: row["t_dts"].date() for row in tables["trade"]}
    late = {np.busday_count(completed[row["se_t_id"]], row["se_cash_due_date"]) for row in tables["settlement"]}
    assert late == {2}
    assert all(row["se_cash_due_date"].weekday() < 5 for row in tables["settlement"])


def test_what_is_said_of_a_cash_transaction(tables):
    trades, securities = by(tables["trade"], "t_id"), by(tables["security"], "s_symb")
    names = {kind: name for kind, name, *_ in TRADE_TYPES}
    for row in tables["cash_transaction"]:
        trade = trades[row["ct_t_id"]]
        security = securities[trade["t_s_symb"]]["s_name"]
        assert row["ct_name"] == f"{names[trade['t_tt_id']]} {trade['t_qty']} shares of {security}"
        assert row["ct_dts"] == trade["t_dts"]
