"""Market-Feed: last trades, limit orders whose price has come, and a retry that does nothing twice."""

import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from support.brokerage_orders import leave

from stallmark.engines.base import Engine, Session
from stallmark.errors import CallFailed, ErrorClass
from stallmark.transactions.brokerage.context import Context, Order, TapeReport
from stallmark.transactions.brokerage.trading import MarketFeed, TradeResult
from stallmark.transactions.workload import Outcome

PLACED = "2026-11-23T09:59:58.500"
NOW = datetime(2026, 11, 23, 10)


def place(engine: Engine, context: Context, security: int, type_: str, limit: str) -> int:
    """A limit order as Trade-Order leaves it; returns the trade's id."""
    trade = context.next_trade_id()
    leave(engine, trade, type_, "PNDG", symbol=f"'{context.symbols[security]}'", limit=limit, placed=PLACED)
    return trade


def last_trade(engine: Engine, context: Context, security: int) -> tuple[Decimal, datetime, int]:
    [(price, moment, volume)] = engine.query(
        f"SELECT lt_price, lt_dts, lt_vol FROM brokerage.last_trade WHERE lt_s_symb = '{context.symbols[security]}'"
    )
    return price, moment, volume


def state(engine: Engine, trade: int) -> tuple[str, datetime, int, list[tuple[str, datetime]]]:
    """Of a trade: its status and time, how many requests wait for it, and its history."""
    [(status, moment)] = engine.query(f"SELECT t_st_id, t_dts FROM brokerage.trade WHERE t_id = {trade}")
    [(requests,)] = engine.query(f"SELECT COUNT(*) FROM brokerage.trade_request WHERE tr_t_id = {trade}")
    history = engine.query(
        f"SELECT th_st_id, th_dts FROM brokerage.trade_history WHERE th_t_id = {trade} ORDER BY th_dts, th_st_id"
    )
    return status, moment, requests, [tuple(row) for row in history]


WAITS = ("PNDG", datetime.fromisoformat(PLACED), 1, [("PNDG", datetime.fromisoformat(PLACED))])


def sent(now: datetime = NOW) -> tuple:
    return "SBMT", now, 0, [("PNDG", datetime.fromisoformat(PLACED)), ("SBMT", now)]


def to_market(posted: list) -> list[Order]:
    assert {each.kind for each in posted} <= {TradeResult}
    return [each.inputs[0] for each in posted]


@pytest.fixture
def tidy(engine: Engine) -> Iterator[None]:
    """Without the orders that a test has placed."""
    yield
    for table, key in (("trade_request", "tr_t_id"), ("trade_history", "th_t_id"), ("trade", "t_id")):
        engine.execute(
            f"DELETE FROM brokerage.{table} WHERE {key} IN "
            f"(SELECT t_id FROM brokerage.trade WHERE t_st_id IN ('PNDG', 'SBMT'))"
        )


class Failing(Session):
    """A session on which some calls fail, counted from 0, as if the server had chosen them in a deadlock."""

    def __init__(self, session: Session, *calls: int):
        self.dialect, self.is_lost = session.dialect, False
        self._session = session
        self._failing = set(calls)
        self._calls = 0

    def call(self, name: str, parameters: Sequence[Any], **ends: bool) -> Sequence[tuple]:
        self._calls += 1
        if self._calls - 1 in self._failing:
            raise CallFailed(ErrorClass.DEADLOCK, "1205", "chosen")
        return self._session.call(name, parameters, **ends)


def test_last_trades_are_written_down(engine: Engine, context: Context, session: Session, posted: list) -> None:
    before = [last_trade(engine, context, security) for security in (1, 2, 3)]
    feed = (TapeReport(1, 2_345, 100), TapeReport(2, 2_000, 800), TapeReport(1, 2_106, 400))
    assert MarketFeed(context).execute(session, feed) is Outcome.COMMITTED
    assert last_trade(engine, context, 1) == (Decimal("21.06"), NOW, before[0][2] + 500)
    assert last_trade(engine, context, 2) == (Decimal("20.00"), NOW, before[1][2] + 800)
    assert last_trade(engine, context, 3) == before[2]
    assert posted == []


@pytest.mark.usefixtures("tidy")
@pytest.mark.parametrize(
    ("type_", "limit", "triggered"),
    [
        ("TSL", "25.01", True), ("TSL", "25.00", True), ("TSL", "24.99", False),
        ("TLS", "24.99", True), ("TLS", "25.00", True), ("TLS", "25.01", False),
        ("TLB", "25.01", True), ("TLB", "25.00", True), ("TLB", "24.99", False),
    ],
)  # fmt: skip
def test_limits(
    engine: Engine, context: Context, session: Session, posted: list, type_: str, limit: str, triggered: bool
) -> None:
    trade = place(engine, context, 5, type_, limit)
    of_another_security = place(engine, context, 6, type_, limit)
    MarketFeed(context).execute(session, (TapeReport(5, 2_500, 100),))
    assert state(engine, trade) == (sent() if triggered else WAITS)
    assert state(engine, of_another_security) == WAITS
    assert to_market(posted) == ([Order(trade, 5, 200)] if triggered else [])


def test_conditions_hold_with_orders_that_wait_and_that_were_sent(
    engine: Engine, context: Context, session: Session, posted: list, broken: Callable, tidy: None
) -> None:
    trades = [
        place(engine, context, security, type_, "25.00") for security in (7, 8) for type_ in ("TLB", "TSL", "TLS")
    ]
    MarketFeed(context).execute(
        session, (TapeReport(8, 2_600, 100), TapeReport(7, 2_400, 100), TapeReport(7, 2_600, 100))
    )
    assert to_market(posted) == [
        Order(trade, security, 200)
        for trade, security in ((trades[5], 8), (trades[0], 7), (trades[1], 7), (trades[2], 7))
    ]
    assert state(engine, trades[3]) == state(engine, trades[4]) == WAITS
    assert broken() == []


def test_orders_go_to_the_market_after_their_commit(
    engine: Engine, context: Context, session: Session, posted: list, tidy: None
) -> None:
    """And so do those of a ticker when another one fails."""
    one, other = place(engine, context, 9, "TLB", "30.00"), place(engine, context, 10, "TLB", "30.00")
    feed = MarketFeed(context)
    with pytest.raises(CallFailed):
        feed.execute(Failing(session, 1), (TapeReport(9, 2_500, 100), TapeReport(10, 2_500, 100)))  # type: ignore[arg-type]
    assert to_market(posted) == [Order(one, 9, 200)]
    assert state(engine, one) == sent()
    assert state(engine, other) == WAITS


def test_a_retry_takes_only_the_tickers_that_failed(
    engine: Engine, context: Context, session: Session, clock: Any, posted: list, tidy: None
) -> None:
    first, failing, last = (
        place(engine, context, 11, "TLB", "30"),
        place(engine, context, 12, "TLB", "30"),
        place(engine, context, 13, "TLB", "30"),
    )
    volumes = [last_trade(engine, context, security)[2] for security in (11, 12, 13)]
    feed, tape = MarketFeed(context), tuple(TapeReport(security, 2_500, 100) for security in (11, 12, 13))
    shaky = Failing(session, 1, 3)
    for _ in range(2):
        with pytest.raises(CallFailed):
            feed.execute(shaky, tape)
    clock.moment = NOW + timedelta(seconds=1)
    assert feed.execute(shaky, tape) is Outcome.COMMITTED
    assert [order.trade for order in to_market(posted)] == [first, last, failing]
    assert [last_trade(engine, context, each)[2] for each in (11, 12, 13)] == [v + 100 for v in volumes]
    assert state(engine, first) == state(engine, last) == sent()
    assert state(engine, failing) == sent(clock.moment)

    # What comes next begins at its beginning, be it equal.
    assert feed.execute(session, tape) is Outcome.COMMITTED
    assert [last_trade(engine, context, each)[2] for each in (11, 12, 13)] == [v + 200 for v in volumes]


def test_a_feed_that_was_given_up_does_not_shorten_the_next(engine: Engine, context: Context, session: Session) -> None:
    volume = last_trade(engine, context, 14)[2]
    feed = MarketFeed(context)
    with pytest.raises(CallFailed):
        feed.execute(Failing(session, 1), (TapeReport(14, 2_500, 100), TapeReport(15, 2_500, 100)))  # type: ignore[arg-type]
    feed.execute(session, (TapeReport(14, 2_500, 100), TapeReport(16, 2_500, 100)))
    assert last_trade(engine, context, 14)[2] == volume + 200


def test_one_of_two_feeds_sends_an_order(
    engine: Engine, context: Context, open_session: Callable[[], Session], posted: list, tidy: None
) -> None:
    trades = [place(engine, context, 17, "TLB", "30") for _ in range(3)]
    volume, tapes, failures = last_trade(engine, context, 17)[2], 10, []
    together = threading.Barrier(2)

    def feeds(session: Session) -> None:
        feed = MarketFeed(context)
        together.wait()
        for _ in range(tapes):
            tape = (TapeReport(17, 2_500, 1),) * 5
            while True:
                try:
                    feed.execute(session, tape)
                    break
                except CallFailed as error:
                    failures.append(error)
                    assert len(failures) < 1_000

    threads = [threading.Thread(target=feeds, args=(open_session(),)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(order.trade for order in to_market(posted)) == trades
    assert last_trade(engine, context, 17)[2] == volume + 2 * tapes * 5
    if engine.dialect == "postgresql":  # nor does SQL Server; Babelfish keeps SQL Server's level by snapshots
        assert failures == []


def test_a_security_that_is_not_there(context: Context, session: Session, engine: Engine) -> None:
    context.symbols.append("NOBODY")
    with pytest.raises(CallFailed, match="there is no last trade") as failure:
        MarketFeed(context).execute(session, (TapeReport(len(context.symbols) - 1, 2_500, 100),))
    assert failure.value.kind is ErrorClass.OTHER
