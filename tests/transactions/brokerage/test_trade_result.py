"""Trade-Result: what a completed trade does to holdings, money and totals; the loader is who must agree."""

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import date, timedelta
from decimal import ROUND_HALF_UP, Decimal
from itertools import count

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.waiting import eventually

from stallmark.engines.base import Engine, Session
from stallmark.errors import CallFailed, ErrorClass
from stallmark.loaders.brokerage.simulation import QUANTITIES, Holdings, Trades
from stallmark.loaders.brokerage.trades import SETTLED_AFTER_DAYS
from stallmark.transactions.brokerage.context import Context, MarketEmulator, Order, TapeReport
from stallmark.transactions.brokerage.trading import MarketFeed, TradeResult, due_date
from stallmark.transactions.workload import Outcome, Transaction

BUYS, SELLS = ("TMB", "TLB"), ("TMS", "TLS", "TSL")
AT_MARKET = ("TMB", "TMS")
UNTAXED, AT_SOURCE, ELSEWHERE = 0, 1, 2


class Desk:
    """Submits trades by SQL, with the traces that they then have, and has them executed."""

    def __init__(self, engine: Engine, session: Session, context: Context):
        self.context = context
        self._session = session
        self._result = TradeResult(context)
        self._connection = engine.connect()

    def close(self) -> None:
        self._connection.close()

    def query(self, sql: str) -> list[tuple]:
        return [tuple(row) for row in self._connection.execute(sql).fetchall()]

    def row(self, sql: str) -> tuple:
        [row] = self.query(sql)
        return row

    def idle_account(self, tax_status: int = UNTAXED) -> int:
        """One that has never traded."""
        [account] = self.row(
            f"SELECT MIN(ca_id) FROM brokerage.customer_account WHERE ca_tax_st = {tax_status} "
            "AND NOT EXISTS (SELECT 1 FROM brokerage.trade WHERE t_ca_id = ca_id)"
        )
        return account

    def submit(
        self, account: int, kind: str, quantity: int, *, security: int = 0, lifo: bool = False, cash: bool = True
    ) -> Order:
        trade, now = self.context.next_trade_id(), self.context.clock.now() - timedelta(seconds=2)
        self._connection.execute(
            "INSERT INTO brokerage.trade (t_id, t_dts, t_st_id, t_tt_id, t_is_cash, t_s_symb, t_qty, t_bid_price, "
            "t_ca_id, t_exec_name, t_trade_price, t_chrg, t_comm, t_tax, t_lifo) "
            f"SELECT {trade}, CAST('{now.isoformat()}' AS {self._moment}), 'SBMT', '{kind}', '{cash}', "
            f"'{self.context.symbols[security]}', {quantity}, 25, ca_id, 'A Tester', NULL, ch_chrg, 0, 0, '{lifo}' "
            "FROM brokerage.customer_account JOIN brokerage.customer ON c_id = ca_c_id "
            f"JOIN brokerage.charge ON ch_c_tier = c_tier AND ch_tt_id = '{kind}' WHERE ca_id = {account}"
        )
        for state in ("SBMT",) if kind in AT_MARKET else ("PNDG", "SBMT"):
            self._connection.execute(
                "INSERT INTO brokerage.trade_history (th_t_id, th_dts, th_st_id) "
                f"VALUES ({trade}, '{now.isoformat()}', '{state}')"
            )
        return Order(trade, security, quantity)

    def execute(self, order: Order, cents: int, ms_later: int = 1) -> Outcome:
        self.context.clock.moment += timedelta(milliseconds=ms_later)  # type: ignore[attr-defined]
        return self._result.execute(self._session, (order, cents))

    def trade(self, account: int, kind: str, quantity: int, cents: int = 2_500, **more) -> int:
        order = self.submit(account, kind, quantity, **more)
        assert self.execute(order, cents) is Outcome.COMMITTED
        return order.trade

    def holdings(self, account: int) -> list[tuple[int, int, int]]:
        """Trade, price in cents and quantity, the oldest first."""
        rows = self.query(
            f"SELECT h_t_id, h_price, h_qty FROM brokerage.holding WHERE h_ca_id = {account} ORDER BY h_dts, h_t_id"
        )
        return [(trade, cents_of(price), quantity) for trade, price, quantity in rows]

    def history(self, trade: int) -> set[tuple[int, int, int]]:
        """Holding, quantity before and after."""
        return set(
            self.query(
                f"SELECT hh_h_t_id, hh_before_qty, hh_after_qty FROM brokerage.holding_history WHERE hh_t_id = {trade}"
            )
        )

    def summary(self, account: int) -> list[int]:
        rows = self.query(f"SELECT hs_qty FROM brokerage.holding_summary WHERE hs_ca_id = {account}")
        return [quantity for (quantity,) in rows]

    def tax(self, trade: int) -> int:
        [tax] = self.row(f"SELECT t_tax FROM brokerage.trade WHERE t_id = {trade}")
        return cents_of(tax)

    def rate(self, account: int) -> Decimal:
        """Of all taxes of the account's owner."""
        [rate] = self.row(
            "SELECT SUM(tx_rate) FROM brokerage.customer_account JOIN brokerage.customer_taxrate ON cx_c_id = ca_c_id "
            f"JOIN brokerage.taxrate ON tx_id = cx_tx_id WHERE ca_id = {account}"
        )
        return Decimal(rate)

    @property
    def _moment(self) -> str:
        return {"postgresql": "timestamp", "mssql": "datetime2(3)"}[self._session.dialect]


def cents_of(amount: Decimal | str) -> int:
    return int((Decimal(amount) * 100).to_integral_exact())


def half_up(cents: Decimal) -> int:
    return int(cents.quantize(Decimal(1), ROUND_HALF_UP))


@pytest.fixture
def desk(engine: Engine, session: Session, context: Context) -> Iterator[Desk]:
    with closing(Desk(engine, session, context)) as desk:
        yield desk


def test_other_securities_and_accounts_have_their_own_holdings(desk: Desk) -> None:
    one, other = (desk.idle_account(), desk.idle_account(AT_SOURCE))
    kept = [desk.trade(one, "TMB", 100, security=5), desk.trade(other, "TMB", 100, security=6)]
    sold = desk.trade(one, "TMS", 100, security=6)
    assert desk.holdings(one) == [(kept[0], 2_500, 100), (sold, 2_500, -100)]
    assert desk.holdings(other) == [(kept[1], 2_500, 100)]


TRADE = st.tuples(
    st.sampled_from(BUYS + SELLS),
    st.sampled_from(QUANTITIES.tolist()),
    st.integers(2_000, 3_000),  # cents
    st.booleans(),  # LIFO
    st.integers(0, 2),  # ms after the one before: two may be at the same
)


@given(trades=st.lists(TRADE, min_size=1, max_size=10), tax_status=st.integers(0, 2))
def test_as_the_loader_has_it(desk: Desk, trades: list[tuple], tax_status: int) -> None:
    account = desk.idle_account(tax_status)
    keys, times = [], []
    for kind, quantity, cents, lifo, ms_later in trades:
        order = desk.submit(account, kind, quantity, lifo=lifo)
        desk.execute(order, cents, ms_later)
        keys.append(order.trade)
        times.append(desk.context.clock.now())
    kinds, quantities, prices, lifos, _ = zip(*trades, strict=True)
    loader = Holdings(positions=1)
    history, earned = loader.match(
        Trades(
            key=np.array(keys),
            position=np.zeros(len(keys), np.int64),
            quantity=np.where(np.isin(kinds, SELLS), -1, 1) * np.array(quantities),
            cents=np.array(prices),
            lifo=np.array(lifos),
            completed=np.array(times, "datetime64[ms]"),
        )
    )

    loader.close_ranks()
    assert desk.holdings(account) == sorted(
        zip(loader.key.tolist(), loader.cents.tolist(), loader.quantity.tolist(), strict=True)
    )
    net = int(loader.quantity.sum())
    assert desk.summary(account) == ([net] if net else [])
    changes = zip(*(each.tolist() for each in vars(history).values()), strict=True)
    by_trade: dict[int, set] = {key: set() for key in keys}
    for holding, trade, before, after in changes:
        by_trade[trade].add((holding, before, after))
    assert {key: desk.history(key) for key in keys} == by_trade
    rate = desk.rate(account) if tax_status != UNTAXED else Decimal(0)
    gains = np.maximum(earned, 0).tolist()
    assert [desk.tax(key) for key in keys] == [half_up(gain * rate) for gain in gains]


@pytest.mark.parametrize("cash", [True, False])
@pytest.mark.parametrize("tax_status", [UNTAXED, AT_SOURCE, ELSEWHERE])
@pytest.mark.parametrize("kind", ["TLS", "TMB"])
def test_what_is_written(desk: Desk, kind: str, tax_status: int, cash: bool) -> None:
    account = desk.idle_account(tax_status)
    broker, name, kind_name, rate, charge = desk.row(
        "SELECT ca_b_id, s_name, tt_name, cr_rate, ch_chrg FROM brokerage.customer_account "
        f"JOIN brokerage.customer ON c_id = ca_c_id JOIN brokerage.security ON s_symb = '{desk.context.symbols[9]}' "
        f"JOIN brokerage.trade_type ON tt_id = '{kind}' "
        "JOIN brokerage.charge ON ch_tt_id = tt_id AND ch_c_tier = c_tier "
        "JOIN brokerage.commission_rate ON cr_c_tier = c_tier AND cr_tt_id = tt_id AND cr_ex_id = s_ex_id "
        f"AND cr_from_qty <= 400 AND cr_to_qty >= 400 WHERE ca_id = {account}"
    )
    # What was sold short at 27 $ is covered at 23.01 $, what was bought at 23.01 $ is sold at 27 $: a gain, on 200.
    first, then = (2_301, 2_700) if kind == "TLS" else (2_700, 2_301)
    desk.trade(account, "TMB" if kind == "TLS" else "TMS", 200, first, security=9, cash=False)
    totals = f"SELECT b_num_trades, b_comm_total FROM brokerage.broker WHERE b_id = {broker}"
    trades, total = desk.row(totals)

    trade = desk.trade(account, kind, 400, then, security=9, cash=cash)

    commission = half_up(400 * then * Decimal(rate) / 100)
    tax = half_up(200 * 399 * desk.rate(account)) if tax_status != UNTAXED else 0
    now = desk.context.clock.now().isoformat(" ", "milliseconds")
    state, moment, price, *costs = desk.row(
        f"SELECT t_st_id, t_dts, t_trade_price, t_chrg, t_comm, t_tax FROM brokerage.trade WHERE t_id = {trade}"
    )
    assert (state, moment.isoformat(" ", "milliseconds"), cents_of(price)) == ("CMPT", now, then)
    assert [cents_of(cost) for cost in costs] == [cents_of(charge), commission, tax]
    states = desk.query(
        f"SELECT th_st_id, th_dts FROM brokerage.trade_history WHERE th_t_id = {trade} ORDER BY th_dts, th_st_id"
    )
    assert [state for state, _ in states] == (["PNDG"] if kind == "TLS" else []) + ["SBMT", "CMPT"]
    assert states[-1][1] == moment

    value = 400 * then if kind == "TLS" else -400 * then
    amount = value - cents_of(charge) - commission - (tax if tax_status == AT_SOURCE else 0)
    paid, due, settled = desk.row(
        f"SELECT se_cash_type, se_cash_due_date, se_amt FROM brokerage.settlement WHERE se_t_id = {trade}"
    )
    assert (paid, due, cents_of(settled)) == ("Cash Account" if cash else "Margin", date(2026, 11, 25), amount)
    [balance] = desk.row(f"SELECT ca_bal FROM brokerage.customer_account WHERE ca_id = {account}")
    assert cents_of(balance) == (amount if cash else 0)
    payments = desk.query(f"SELECT ct_dts, ct_amt, ct_name FROM brokerage.cash_transaction WHERE ct_t_id = {trade}")
    assert payments == ([(moment, settled, f"{kind_name} 400 shares of {name}")] if cash else [])
    assert desk.row(totals) == (trades + 1, total + Decimal(commission) / 100)


def test_conditions_hold_afterwards(desk: Desk, rng, broken: Callable[[], list]) -> None:
    accounts = [desk.idle_account(tax_status) for tax_status in (UNTAXED, AT_SOURCE, ELSEWHERE)]
    for _ in range(40):
        desk.trade(
            rng.choice(accounts), rng.choice(BUYS + SELLS), rng.choice(QUANTITIES.tolist()),
            rng.randint(2_000, 3_000), security=rng.randrange(2), lifo=rng.random() < 0.5, cash=rng.random() < 0.9,
        )  # fmt: skip
    assert broken() == []


def test_a_trade_is_completed_once(desk: Desk) -> None:
    account = desk.idle_account()
    order = desk.submit(account, "TMB", 100)
    desk.execute(order, 2_500)
    canceled = desk.submit(account, "TMS", 100)
    desk._connection.execute(f"UPDATE brokerage.trade SET t_st_id = 'CNCL' WHERE t_id = {canceled.trade}")
    for again, state in ((order, "CMPT"), (canceled, "CNCL")):
        with pytest.raises(CallFailed, match=f"trade {again.trade} is {state}, not SBMT") as failed:
            desk.execute(again, 2_600)
        assert failed.value.kind is ErrorClass.OTHER  # and is not tried again
    with pytest.raises(CallFailed, match="trade 17 does not exist: run `stallmark check`"):
        desk.execute(Order(17, 0, 100), 2_500)
    assert desk.holdings(account) == [(order.trade, 2_500, 100)]
    desk._connection.execute(f"DELETE FROM brokerage.trade_history WHERE th_t_id = {canceled.trade}")
    desk._connection.execute(f"DELETE FROM brokerage.trade WHERE t_id = {canceled.trade}")


def test_what_fails_leaves_nothing(desk: Desk) -> None:
    account = desk.idle_account()
    order = desk.submit(account, "TMB", 100)
    with pytest.raises(CallFailed):  # no price is 0
        desk.execute(order, 0)
    assert desk.summary(account) == []
    assert desk.execute(order, 2_500) is Outcome.COMMITTED
    assert desk.holdings(account) == [(order.trade, 2_500, 100)]


def test_the_market_is_told_after_the_commit(engine: Engine, session: Session, context: Context, rng) -> None:
    seen, fed = [], []

    class Watched(MarketEmulator):
        def report(self, order: Order, cents: int) -> None:
            seen.append(desk.row(f"SELECT t_st_id FROM brokerage.trade WHERE t_id = {order.trade}"))
            super().report(order, cents)

    def post(kind: type[Transaction], inputs: tuple, after_s: float) -> None:
        assert kind is MarketFeed
        fed.append(inputs)

    securities = context.population.securities
    market = Watched(securities, context.price, context.clock, post, rng, TradeResult, MarketFeed)
    with closing(Desk(engine, session, replace(context, market=market))) as desk:
        account = desk.idle_account()
        with pytest.raises(CallFailed):
            desk.execute(Order(17, 0, 100), 2_500)
        for number in range(10):
            desk.trade(account, "TMB", 100, 2_500 + number, security=number)
    assert seen == [("CMPT",)] * 10
    [reports] = fed
    assert list(reports[::2]) == [TapeReport(number, 2_500 + number, 100) for number in range(10)]


def test_the_time_is_that_of_the_turn(engine: Engine, desk: Desk) -> None:
    """One that has waited for its account is completed after the one that it waited for."""
    if engine.dialect != "postgresql":
        pytest.skip("pg_stat_activity says who waits")
    account = desk.idle_account()
    order = desk.submit(account, "TMB", 100)
    holder = engine.connect()
    with holder.transaction():
        holder.execute(f"UPDATE brokerage.customer_account SET ca_bal = ca_bal WHERE ca_id = {account}")
        waiting = threading.Thread(target=desk.execute, args=(order, 2_500))
        waiting.start()
        pid = desk._session.server_pid
        look = f"SELECT 1 FROM pg_stat_activity WHERE pid = {pid} AND wait_event_type = 'Lock'"
        eventually(lambda: desk.query(look), "that the account is waited for")
        desk.context.clock.moment += timedelta(minutes=1)
        turn = desk.context.clock.now()
    waiting.join()
    holder.close()
    assert desk.row(f"SELECT h_dts FROM brokerage.holding WHERE h_t_id = {order.trade}") == (turn,)


def test_many_at_once_lose_nothing(
    engine: Engine, desk: Desk, open_session: Callable[[], Session], broken: Callable[[], list]
) -> None:
    """Of one broker, half of them of one account. PostgreSQL aborts none. Babelfish, which ignores the hints for locks,
    may; and what it aborts, it must leave undone."""
    account = desk.idle_account()
    [broker] = desk.row(f"SELECT ca_b_id FROM brokerage.customer_account WHERE ca_id = {account}")
    others = desk.query(f"SELECT ca_id FROM brokerage.customer_account WHERE ca_b_id = {broker} AND ca_id > {account}")
    orders = [
        desk.submit(account if n % 2 else others[n][0], "TMB" if n % 3 else "TLS", 100 * (1 + n % 4), lifo=n % 5 > 2)
        for n in range(30)
    ]
    before = desk.row(f"SELECT b_num_trades FROM brokerage.broker WHERE b_id = {broker}")[0]
    completed, failures = count(), []
    left, turn = list(orders), threading.Lock()

    def work(session: Session) -> None:
        result = TradeResult(desk.context)
        while True:
            with turn:
                if not left:
                    return
                order = left.pop()
                desk.context.clock.moment += timedelta(milliseconds=1)  # type: ignore[attr-defined]
            try:
                result.execute(session, (order, 2_500))
                next(completed)
            except CallFailed as failure:
                failures.append((order, failure))

    threads = [threading.Thread(target=work, args=[open_session()]) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert engine.dialect == "mssql" or failures == []
    assert next(completed) + len(failures) == len(orders)
    after = desk.row(f"SELECT b_num_trades FROM brokerage.broker WHERE b_id = {broker}")[0]
    assert after - before == len(orders) - len(failures)
    for order, _ in failures:
        desk.execute(order, 2_500)
    assert broken() == []


@given(st.dates(date(2000, 1, 1), date(2100, 1, 1)))
def test_due_date(traded: date) -> None:
    """On days of business the loader's, on others two days of business later as well."""
    expected = np.busday_offset(traded, SETTLED_AFTER_DAYS, roll="backward")
    assert due_date(traded) == str(expected)
