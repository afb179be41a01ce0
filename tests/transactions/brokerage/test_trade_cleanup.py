"""Trade-Cleanup: what an earlier run has left over is cancelled, and nothing else is touched."""

import random
from collections.abc import Callable
from datetime import datetime

import pytest
from support.brokerage_orders import PLACED, SUBMITTED, leave

from stallmark.engines.base import Engine, Session
from stallmark.transactions.brokerage.context import Context
from stallmark.transactions.brokerage.trade_cleanup import TradeCleanup
from stallmark.transactions.workload import Outcome

NOW = datetime(2026, 11, 23, 10)


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


def test_it_says_how_many_there_were_from_the_first_on(
    engine: Engine, context: Context, session: Session, left: list[int]
) -> None:
    def cancel(first: int) -> list[tuple]:
        return [tuple(row) for row in session.call("trade_cleanup_cancel", (first, "2026-11-23T10:00:00.000"))]

    assert cancel(left[0]) == [(2, 2)]
    assert cancel(left[0]) == [(0, 0)]
    leave(engine, before := context.next_trade_id(), "TMS", "SBMT")
    assert cancel(before + 1) == [(0, 0)]
    assert engine.query(f"SELECT t_st_id FROM brokerage.trade WHERE t_id = {before}") == [("SBMT",)]
