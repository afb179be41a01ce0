"""Trade-Lookup on every engine: its branches and their shares, and that it tells what the tables say."""

import random
from collections import Counter

import pytest
from support.answers import values
from support.undone import undone

from stallmark.engines.base import Engine, Session
from stallmark.errors import CallFailed
from stallmark.transactions.brokerage.context import TRADES, Context, FrameCall
from stallmark.transactions.brokerage.read_only import BY_ACCOUNT, BY_ID, BY_SYMBOL, HOLDINGS, TradeLookup
from stallmark.transactions.workload import Outcome

OPENING = "2005-01-03T09:00:00.000"
COLUMNS = {
    BY_ID: "t.t_id, t_bid_price, t_exec_name, t_is_cash, tt_is_mrkt, t_trade_price",
    BY_ACCOUNT: "t.t_id, t_dts, t_bid_price, t_exec_name, t_is_cash, t_trade_price",
    BY_SYMBOL: "t.t_id, t_dts, t_ca_id, t_tt_id, t_qty, t_exec_name, t_is_cash, t_trade_price",
}


def told(engine: Engine, frame: str, which: str, order: str = "t_dts, t_id") -> list[tuple]:
    """Read the trades, each table by itself."""
    settled = {
        row[0]: row[1:]
        for row in engine.query("SELECT se_t_id, se_amt, se_cash_due_date, se_cash_type FROM brokerage.settlement")
    }
    paid = {
        row[0]: row[1:]
        for row in engine.query("SELECT ct_t_id, ct_amt, ct_dts, ct_name FROM brokerage.cash_transaction")
    }
    times = {
        (trade, state): time
        for trade, state, time in engine.query("SELECT th_t_id, th_st_id, th_dts FROM brokerage.trade_history")
    }
    return [
        (
            *trade,
            *settled[trade[0]],
            *paid.get(trade[0], (None,) * 3),
            *(times.get((trade[0], state)) for state in ("PNDG", "SBMT", "CMPT")),
        )
        for trade in engine.query(
            f"SELECT {COLUMNS[frame]} FROM brokerage.trade AS t JOIN brokerage.trade_type ON tt_id = t_tt_id "
            f"WHERE {which} ORDER BY {order}"
        )
    ]


def test_by_id(engine: Engine, session: Session, context: Context, rng: random.Random) -> None:
    lookup = TradeLookup(context)
    asked = next(each for each in iter(lambda: lookup.inputs(rng), None) if each.frame == BY_ID)
    assert lookup.execute(session, asked) is Outcome.COMMITTED
    rows = session.call(*asked[:2])
    assert len(rows) == TRADES
    assert values(rows) == values(told(engine, BY_ID, f"t.t_id IN ({asked.parameters[0]})", "t.t_id"))


def test_by_account(engine: Engine, session: Session) -> None:
    [(busiest,)] = engine.query(
        "SELECT t_ca_id FROM brokerage.trade GROUP BY t_ca_id ORDER BY COUNT(*) DESC, t_ca_id "
        "OFFSET 0 ROWS FETCH FIRST 1 ROWS ONLY"
    )
    of_account = told(engine, BY_ACCOUNT, f"t_ca_id = {busiest}")
    assert len(of_account) > 2
    assert values(session.call(BY_ACCOUNT, (busiest, OPENING))) == values(of_account[:TRADES])
    second = of_account[1][1].isoformat(timespec="milliseconds")
    assert values(session.call(BY_ACCOUNT, (busiest, second))) == values(of_account[1 : TRADES + 1])
    assert session.call(BY_ACCOUNT, (busiest, "2030-01-01T00:00:00.000")) == []


def test_by_symbol(engine: Engine, session: Session) -> None:
    [(busiest,)] = engine.query(
        "SELECT t_s_symb FROM brokerage.trade GROUP BY t_s_symb ORDER BY COUNT(*) DESC, t_s_symb "
        "OFFSET 0 ROWS FETCH FIRST 1 ROWS ONLY"
    )
    first = "t_id < 200000000000060"
    of_security = told(engine, BY_SYMBOL, f"t_s_symb = '{busiest}' OR {first}")
    assert len(of_security) > TRADES + 5
    # In so small a database no security has as many.
    with undone(session, f"UPDATE brokerage.trade SET t_s_symb = '{busiest}' WHERE {first}"):
        assert values(session.call(BY_SYMBOL, (busiest, OPENING))) == values(of_security[:TRADES])
        fifth = of_security[5][1].isoformat(timespec="milliseconds")
        assert values(session.call(BY_SYMBOL, (busiest, fifth))) == values(of_security[5 : TRADES + 5])
    assert len(session.call(BY_SYMBOL, (busiest, OPENING))) < TRADES


def test_a_trade_that_waits_and_one_that_was_canceled(engine: Engine, session: Session) -> None:
    [(account, pending, canceled)] = engine.query(
        "SELECT t_ca_id, MIN(t_id), MAX(t_id) FROM brokerage.trade JOIN brokerage.trade_history ON th_t_id = t_id "
        "WHERE th_st_id = 'PNDG' GROUP BY t_ca_id HAVING MIN(t_id) <> MAX(t_id) ORDER BY t_ca_id "
        "OFFSET 0 ROWS FETCH FIRST 1 ROWS ONLY"
    )
    both = f"({pending}, {canceled})"
    with undone(
        session,
        f"DELETE FROM brokerage.settlement WHERE se_t_id IN {both}",
        f"DELETE FROM brokerage.cash_transaction WHERE ct_t_id IN {both}",
        f"UPDATE brokerage.trade SET t_trade_price = NULL WHERE t_id IN {both}",
        f"DELETE FROM brokerage.trade_history WHERE th_t_id = {pending} AND th_st_id <> 'PNDG'",
        f"UPDATE brokerage.trade_history SET th_st_id = 'CNCL' WHERE th_t_id = {canceled} AND th_st_id = 'CMPT'",
    ):
        rows = {row[0]: row for row in session.call(BY_ACCOUNT, (account, OPENING))}
    assert rows[pending][5:12] == (None,) * 7 and rows[canceled][5:12] == (None,) * 7
    assert [time is None for time in rows[pending][12:]] == [False, True, True]
    assert [time is None for time in rows[canceled][12:]] == [False, False, False]


def test_holdings(engine: Engine, session: Session) -> None:
    """A first trade that changed several holdings, or the one that was changed most."""
    histories = engine.query("SELECT hh_h_t_id, hh_t_id, hh_before_qty, hh_after_qty FROM brokerage.holding_history")
    trades = engine.query("SELECT t_id, t_ca_id, t_dts FROM brokerage.trade ORDER BY t_dts, t_id")

    def changes(trade: int) -> list[tuple]:
        holdings = {row[0] for row in histories if row[1] == trade}
        return [(trade, *row) for row in sorted(map(tuple, histories)) if row[0] in holdings]

    several = max(trades, key=lambda trade: (len(changes(trade[0])), -trade[0]))
    for trade, account, time in (several, trades[0]):
        rows = session.call(HOLDINGS, (account, time.isoformat(timespec="milliseconds")))
        assert values(rows) == values(changes(trade)[:TRADES])
    assert len(changes(several[0])) > 1
    assert session.call(HOLDINGS, (several[1], "2030-01-01T00:00:00.000")) == []


def test_at_most_twenty_changes(engine: Engine, session: Session) -> None:
    [(trade, account, time)] = engine.query(
        "SELECT t_id, t_ca_id, t_dts FROM brokerage.trade WHERE t_id = (SELECT MIN(hh_h_t_id) FROM "
        "brokerage.holding_history WHERE hh_h_t_id = hh_t_id)"
    )
    with undone(
        session,
        "INSERT INTO brokerage.holding_history (hh_h_t_id, hh_t_id, hh_before_qty, hh_after_qty) "
        f"SELECT {trade}, t_id, 1, 2 FROM brokerage.trade WHERE t_id > {trade} AND t_id < {trade} + 60 "
        f"AND NOT EXISTS (SELECT 1 FROM brokerage.holding_history WHERE hh_h_t_id = {trade} AND hh_t_id = t_id)",
    ):
        rows = session.call(HOLDINGS, (account, time.isoformat(timespec="milliseconds")))
    assert len(rows) == TRADES and {row[0] for row in rows} == {trade}
    assert rows == sorted(rows)


def test_trades_that_are_not_there(session: Session, context: Context) -> None:
    asked = FrameCall.by_id(BY_ID, [200_000_000_000_001, 200_000_000_000_002, 5, 7])
    with pytest.raises(CallFailed, match="of 4 trades are not there: run `stallmark check`"):
        TradeLookup(context).execute(session, asked)


def test_a_lookup_that_finds_less_is_none_that_failed(session: Session, context: Context) -> None:
    for frame in (BY_ACCOUNT, BY_SYMBOL, HOLDINGS):
        assert TradeLookup(context).execute(session, FrameCall(frame, (0, OPENING))) is Outcome.COMMITTED


def test_shares_of_the_branches(context: Context, rng: random.Random) -> None:
    lookup, draws = TradeLookup(context), 10_000
    frames = Counter(lookup.inputs(rng).frame for _ in range(draws))
    shares = {BY_ID: 0.3, BY_ACCOUNT: 0.3, BY_SYMBOL: 0.3, HOLDINGS: 0.1}
    assert set(frames) == set(shares)
    assert all(frames[frame] / draws == pytest.approx(share, abs=0.015) for frame, share in shares.items())
