"""Trade-Cleanup: what an earlier run has left over is cancelled, and nothing else is touched."""

import random
from collections.abc import Callable
from datetime import datetime

import pytest

from stallmark.engines.base import Engine, Session
from stallmark.transactions.brokerage.context import Context
from stallmark.transactions.brokerage.trade_cleanup import TradeCleanup
from stallmark.transactions.workload import Outcome

NOW = datetime(2026, 11, 23, 10)
PLACED, SUBMITTED = "2026-11-22T09:00:00", "2026-11-22T09:00:05"


def leave(engine: Engine, trade: int, type_: str, status: str) -> None:
    """An order as a run leaves it that ends before its completion."""
    engine.execute(
        "INSERT INTO brokerage.trade (t_id, t_dts, t_st_id, t_tt_id, t_is_cash, t_s_symb, t_qty, t_bid_price, t_ca_id, "
        "t_exec_name, t_trade_price, t_chrg, t_comm, t_tax, t_lifo) "
        f"SELECT {trade}, '{PLACED}', '{status}', '{type_}', t_is_cash, t_s_symb, 200, 25, t_ca_id, t_exec_name, "
        "NULL, ch_chrg, 0, 0, t_lifo FROM brokerage.trade "
        "JOIN brokerage.customer_account ON ca_id = t_ca_id JOIN brokerage.customer ON c_id = ca_c_id "
        f"JOIN brokerage.charge ON ch_tt_id = '{type_}' AND ch_c_tier = c_tier WHERE t_id = 200000000000001"
    )
    states = [(PLACED, "PNDG" if type_ in ("TLB", "TLS", "TSL") else "SBMT")]
    if status == "PNDG":
        engine.execute(
            "INSERT INTO brokerage.trade_request (tr_t_id, tr_tt_id, tr_s_symb, tr_qty, tr_bid_price, tr_b_id) "
            "SELECT t_id, t_tt_id, t_s_symb, t_qty, t_bid_price, ca_b_id FROM brokerage.trade "
            f"JOIN brokerage.customer_account ON ca_id = t_ca_id WHERE t_id = {trade}"
        )
    elif states[0][1] == "PNDG":
        states.append((SUBMITTED, "SBMT"))
    for moment, state in states:
        engine.execute(f"INSERT INTO brokerage.trade_history VALUES ({trade}, '{moment}', '{state}')")


def history(engine: Engine, trade: int) -> set[tuple[str, datetime]]:
    rows = engine.query(f"SELECT th_st_id, th_dts FROM brokerage.trade_history WHERE th_t_id = {trade}")
    return {(state, moment) for state, moment in rows}


@pytest.fixture
def left(engine: Engine, context: Context, untouched: None) -> list[int]:
    """The trades that `leave` has left: two that wait, one that was triggered, one for the market."""
    trades = [context.next_trade_id() for _ in range(4)]
    for trade, (type_, status) in zip(
        trades, [("TLB", "PNDG"), ("TSL", "PNDG"), ("TLS", "SBMT"), ("TMB", "SBMT")], strict=True
    ):
        leave(engine, trade, type_, status)
    return trades


def test_the_first_trade_of_a_run_follows_the_last_that_was_loaded(engine: Engine, context: Context) -> None:
    [(last,)] = engine.query("SELECT MAX(t_id) FROM brokerage.trade WHERE t_dts < '2026-01-01'")
    assert TradeCleanup(context).inputs(random.Random(1)) == (last + 1,)


def test_what_is_left_over_is_cancelled(
    engine: Engine, context: Context, session: Session, left: list[int], broken: Callable
) -> None:
    assert broken() == []
    cleanup = TradeCleanup(context)
    assert cleanup.execute(session, cleanup.inputs(random.Random(1))) is Outcome.COMMITTED

    rows = engine.query(f"SELECT t_id, t_st_id, t_dts FROM brokerage.trade WHERE t_id >= {left[0]} ORDER BY t_id")
    assert [tuple(row) for row in rows] == [(trade, "CNCL", NOW) for trade in left]
    placed, submitted = datetime.fromisoformat(PLACED), datetime.fromisoformat(SUBMITTED)
    ended = {("SBMT", NOW), ("CNCL", NOW)}
    assert history(engine, left[0]) == history(engine, left[1]) == {("PNDG", placed)} | ended
    assert history(engine, left[2]) == {("PNDG", placed), ("SBMT", submitted), ("CNCL", NOW)}
    assert history(engine, left[3]) == {("SBMT", placed), ("CNCL", NOW)}
    assert engine.query("SELECT COUNT(*) FROM brokerage.trade_request")[0][0] == 0
    [(loaded,)] = engine.query("SELECT COUNT(*) FROM brokerage.trade WHERE t_st_id = 'CMPT'")
    assert loaded == context.population.trades
    assert broken() == []


def test_it_says_how_many_there_were_and_finds_none_the_second_time(
    context: Context, session: Session, left: list[int]
) -> None:
    first = TradeCleanup(context).inputs(random.Random(1)).first_trade
    call = first, "2026-11-23T10:00:00.000"
    assert [tuple(row) for row in session.call("trade_cleanup_cancel", call)] == [(2, 2)]
    assert [tuple(row) for row in session.call("trade_cleanup_cancel", call)] == [(0, 0)]


def test_trades_before_the_first_are_not_looked_at(
    engine: Engine, context: Context, session: Session, untouched: None
) -> None:
    trade = context.next_trade_id()
    leave(engine, trade, "TMS", "SBMT")
    assert [tuple(row) for row in session.call("trade_cleanup_cancel", (trade + 1, PLACED))] == [(0, 0)]
    assert engine.query(f"SELECT t_st_id FROM brokerage.trade WHERE t_id = {trade}")[0][0] == "SBMT"
