"""Trade-Status on every engine: whose trades it asks for, and what it tells of them."""

import random

import pytest
from support.answers import values

from stallmark.engines.base import Engine, Session
from stallmark.errors import CallFailed
from stallmark.transactions.brokerage.context import Context
from stallmark.transactions.brokerage.read_only import Status, TradeStatus
from stallmark.transactions.workload import Outcome


def test_inputs(engine: Engine, context: Context, rng: random.Random) -> None:
    there = {account for (account,) in engine.query("SELECT ca_id FROM brokerage.customer_account")}
    assert {TradeStatus(context).inputs(rng).account for _ in range(1_000)} <= there


def test_the_fifty_latest_trades(engine: Engine, session: Session, busy_account: int) -> None:
    [(customer, broker)] = engine.query(
        f"SELECT ca_c_id, ca_b_id FROM brokerage.customer_account WHERE ca_id = {busy_account}"
    )
    [who] = engine.query(f"SELECT c_l_name, c_f_name FROM brokerage.customer WHERE c_id = {customer}")
    [through] = engine.query(f"SELECT b_name FROM brokerage.broker WHERE b_id = {broker}")
    states, types, exchanges = (
        dict(engine.query(f"SELECT {columns} FROM brokerage.{table}"))
        for columns, table in (
            ("st_id, st_name", "status_type"),
            ("tt_id, tt_name", "trade_type"),
            ("ex_id, ex_name", "exchange"),
        )
    )
    securities = {
        symbol: (name, exchanges[exchange])
        for symbol, name, exchange in engine.query("SELECT s_symb, s_name, s_ex_id FROM brokerage.security")
    }
    trades = engine.query(
        "SELECT t_id, t_dts, t_st_id, t_tt_id, t_s_symb, t_qty, t_exec_name, t_chrg "
        f"FROM brokerage.trade WHERE t_ca_id = {busy_account}"
    )
    trades.sort(key=lambda row: (row[1], row[0]), reverse=True)
    assert len(trades) > 50 and len({row[3] for row in trades}) == 5
    expected = []
    for trade, moment, state, type_, symbol, quantity, executor, charge in trades[:50]:
        expected += [trade, moment, states[state], types[type_], symbol, quantity, executor, charge]
        expected += [*securities[symbol], *who, *through]
    assert values(session.call("trade_status", (busy_account,))) == values([expected])


def test_an_account_without_trades(engine: Engine, session: Session, context: Context) -> None:
    [(account, last, first, broker)] = engine.query(
        "SELECT ca_id, c_l_name, c_f_name, b_name FROM brokerage.customer_account "
        "JOIN brokerage.customer ON c_id = ca_c_id JOIN brokerage.broker ON b_id = ca_b_id "
        "WHERE NOT EXISTS (SELECT 1 FROM brokerage.trade WHERE t_ca_id = ca_id) "
        "ORDER BY ca_id OFFSET 0 ROWS FETCH FIRST 1 ROWS ONLY"
    )
    assert session.call("trade_status", (account,)) == [(None,) * 10 + (last, first, broker)]
    assert TradeStatus(context).execute(session, Status(account)) is Outcome.COMMITTED


def test_an_account_that_is_not_there(session: Session, context: Context) -> None:
    with pytest.raises(CallFailed, match="account 1 does not exist: run `stallmark check`"):
        TradeStatus(context).execute(session, Status(1))
