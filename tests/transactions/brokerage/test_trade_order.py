"""Trade-Order on every engine: what each branch reads, leaves in the tables and sends to the market."""

import random
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from math import sqrt
from typing import Any, NamedTuple

import hypothesis.strategies as st
import pytest
from hypothesis import given

from stallmark.engines.base import Engine, Isolation, Session
from stallmark.errors import CallFailed
from stallmark.schema.brokerage import COMPANIES, KEY, MOST_ACCOUNTS, symbol, tax_id
from stallmark.transactions.brokerage.context import Context, Order, dollars
from stallmark.transactions.brokerage.trading import QUANTITIES, MarketFeed, TradeOrder, TradeOrderInputs, TradeResult
from stallmark.transactions.workload import Outcome

MARKET_TYPES, LIMIT_TYPES = ("TMB", "TMS"), ("TLB", "TLS", "TSL")
SECURITY = 7
WAIT_S = 4.5


@pytest.fixture
def order(context: Context) -> TradeOrder:
    return TradeOrder(context)


@pytest.fixture
def account(engine: Engine) -> int:
    """One in which two others may trade."""
    [(account,)] = engine.query(
        "SELECT MIN(ap_ca_id) FROM (SELECT ap_ca_id FROM brokerage.account_permission"
        " GROUP BY ap_ca_id HAVING COUNT(*) = 3) AS open_ones"
    )
    return account


def an_order(account: int, kind: str, **other: Any) -> TradeOrderInputs:
    plain = TradeOrderInputs(
        account,
        SECURITY,
        executor=None,
        symbol=symbol(SECURITY),
        company=None,
        issue=None,
        type=kind,
        quantity=400,
        lifo=False,
        on_margin=False,
        wait_s=WAIT_S if kind in LIMIT_TYPES else None,
        rolls_back=False,
    )
    return plain._replace(**other)


class Trade(NamedTuple):
    """As the tables have it, without its number."""

    dts: datetime
    status: str
    type: str
    cash: bool
    symbol: str
    quantity: int
    bid: Decimal
    account: int
    executor: str
    price: Decimal | None
    charge: Decimal
    commission: Decimal
    tax: Decimal
    lifo: bool


def newest(engine: Engine) -> tuple[int, Trade]:
    [(trade, *rest)] = engine.query(
        "SELECT t_id, t_dts, t_st_id, t_tt_id, t_is_cash, t_s_symb, t_qty, t_bid_price, t_ca_id, t_exec_name,"
        " t_trade_price, t_chrg, t_comm, t_tax, t_lifo"
        " FROM brokerage.trade WHERE t_id = (SELECT MAX(t_id) FROM brokerage.trade)"
    )
    return trade, Trade(*rest)


def rows(engine: Engine) -> list[tuple]:
    """The totals that an order adds to."""
    return engine.query(
        "SELECT (SELECT COUNT(*) FROM brokerage.trade), (SELECT COUNT(*) FROM brokerage.trade_history),"
        " (SELECT COUNT(*) FROM brokerage.trade_request)"
    )


def owner_name(engine: Engine, account: int) -> str:
    [(name,)] = engine.query(
        "SELECT CONCAT(c_f_name, ' ', c_l_name) FROM brokerage.customer"
        f" JOIN brokerage.customer_account ON ca_c_id = c_id WHERE ca_id = {account}"
    )
    return name


def tier_rates(engine: Engine, account: int, kind: str, quantity: int) -> tuple[Decimal, Decimal]:
    """Charge, and commission in percent."""
    [(charge, rate)] = engine.query(
        "SELECT ch_chrg, cr_rate FROM brokerage.customer_account"
        " JOIN brokerage.customer ON c_id = ca_c_id"
        f" JOIN brokerage.security ON s_symb = '{symbol(SECURITY)}'"
        " JOIN brokerage.charge ON ch_c_tier = c_tier"
        " JOIN brokerage.commission_rate ON cr_c_tier = c_tier AND cr_tt_id = ch_tt_id AND cr_ex_id = s_ex_id"
        f" WHERE ca_id = {account} AND ch_tt_id = '{kind}' AND {quantity} BETWEEN cr_from_qty AND cr_to_qty"
    )
    return charge, rate


def cents(amount: Decimal) -> Decimal:
    return amount.quantize(Decimal("0.01"), ROUND_HALF_UP)


@pytest.mark.parametrize("kind", [*MARKET_TYPES, *LIMIT_TYPES])
def test_it_leaves_a_trade_with_its_history(
    kind: str, engine: Engine, session: Session, order: TradeOrder, account: int, clock: Any
) -> None:
    [(last_price,)] = engine.query(f"SELECT lt_price FROM brokerage.last_trade WHERE lt_s_symb = '{symbol(SECURITY)}'")
    limit = order.shared.price(SECURITY, clock.now() + timedelta(seconds=WAIT_S))
    bid = last_price if kind in MARKET_TYPES else Decimal(dollars(limit))
    charge, rate = tier_rates(engine, account, kind, 400)
    status = "SBMT" if kind in MARKET_TYPES else "PNDG"

    assert order.execute(session, an_order(account, kind)) is Outcome.COMMITTED
    trade, written = newest(engine)
    assert written == Trade(
        clock.now(),
        status,
        kind,
        True,
        symbol(SECURITY),
        400,
        bid,
        account,
        owner_name(engine, account),
        None,
        charge,
        cents(bid * 400 * rate / 100),
        Decimal(0),
        False,
    )
    history = f"SELECT th_dts, th_st_id FROM brokerage.trade_history WHERE th_t_id = {trade}"
    assert engine.query(history) == [(clock.now(), status)]
    requests = engine.query(
        "SELECT tr_tt_id, tr_s_symb, tr_qty, tr_bid_price, ca_b_id - tr_b_id"
        f" FROM brokerage.trade_request, brokerage.customer_account WHERE tr_t_id = {trade} AND ca_id = {account}"
    )
    assert requests == ([] if kind in MARKET_TYPES else [(kind, symbol(SECURITY), 400, bid, 0)])


def test_a_market_order_goes_to_the_market(
    engine: Engine, session: Session, order: TradeOrder, account: int, posted: list
) -> None:
    order.execute(session, an_order(account, "TMS"))
    [(kind, (sent, _), _)] = posted
    assert (kind, sent) == (TradeResult, Order(newest(engine)[0], SECURITY, 400))


def test_a_limit_order_waits_for_its_price_on_the_tape(
    session: Session, order: TradeOrder, account: int, posted: list, clock: Any
) -> None:
    context: Context = order.shared
    bid = context.price(SECURITY, clock.now() + timedelta(seconds=WAIT_S))
    order.execute(session, an_order(account, "TLS"))
    assert posted == []
    clock.moment += timedelta(seconds=WAIT_S)
    for _ in range(10):
        context.market.report(Order(0, SECURITY + 1, 200), 2_000)
    [(kind, tape, _)] = posted
    assert kind is MarketFeed
    assert (tape[1].security, tape[1].cents) == (SECURITY, bid)


def test_lifo_and_margin_are_the_trades(engine: Engine, session: Session, order: TradeOrder, account: int) -> None:
    order.execute(session, an_order(account, "TMB", lifo=True, on_margin=True))
    _, trade = newest(engine)
    assert (trade.lifo, trade.cash) == (True, False)


@pytest.mark.parametrize(("issue", "security"), [("COMMON", SECURITY), ("PREF_A", COMPANIES + SECURITY)])
def test_a_company_and_an_issue_name_the_same_security(
    issue: str, security: int, engine: Engine, session: Session, order: TradeOrder, account: int
) -> None:
    company = order.shared.company_names[SECURITY]
    named = an_order(account, "TMB", security=security, symbol=None, company=company, issue=issue)
    order.execute(session, named)
    assert newest(engine)[1].symbol == symbol(security)


def test_another_who_may_is_the_executor(engine: Engine, session: Session, order: TradeOrder, account: int) -> None:
    permitted = engine.query(
        "SELECT ap_tax_id, CONCAT(ap_f_name, ' ', ap_l_name) FROM brokerage.account_permission"
        f" WHERE ap_ca_id = {account}"
    )
    assert len(permitted) == 3
    for executor, name in permitted:
        assert order.execute(session, an_order(account, "TLB", executor=executor)) is Outcome.COMMITTED
        assert newest(engine)[1].executor == name


def test_another_who_may_not_leaves_nothing(
    engine: Engine, session: Session, order: TradeOrder, account: int, posted: list
) -> None:
    permitted = engine.query(f"SELECT ap_tax_id FROM brokerage.account_permission WHERE ap_ca_id = {account}")
    stranger = next(tax for customer in range(4) if (tax := tax_id(customer),) not in permitted)
    before, next_id = rows(engine), newest(engine)[0] + 1
    assert order.execute(session, an_order(account, "TMB", executor=stranger)) is Outcome.ROLLED_BACK
    assert (rows(engine), posted) == (before, [])
    order.execute(session, an_order(account, "TMB"))
    assert newest(engine)[0] == next_id


@pytest.mark.parametrize("kind", ["TMB", "TLS"])
def test_what_is_rolled_back_leaves_nothing_but_a_gap(
    kind: str, engine: Engine, session: Session, order: TradeOrder, account: int, posted: list
) -> None:
    before, next_id = rows(engine), newest(engine)[0] + 1
    assert order.execute(session, an_order(account, kind, rolls_back=True)) is Outcome.ROLLED_BACK
    assert (rows(engine), posted) == (before, [])
    order.execute(session, an_order(account, kind))
    assert newest(engine)[0] == next_id + 1


def test_an_account_that_is_not_there_is_said(session: Session, order: TradeOrder) -> None:
    with pytest.raises(CallFailed, match="account 5 does not exist"):
        order.execute(session, an_order(5, "TMB"))


def test_a_security_that_is_not_there_is_said(session: Session, order: TradeOrder, account: int) -> None:
    with pytest.raises(CallFailed, match="security X or its price is not there"):
        order.execute(session, an_order(account, "TMB", symbol="X"))
    with pytest.raises(CallFailed, match="COMMON of Nobody"):
        order.execute(session, an_order(account, "TMB", symbol=None, company="Nobody", issue="COMMON"))


def test_balances_and_totals_that_change_meanwhile_abort_nothing(
    engine: Engine, session: Session, account: int, context: Context, clock: Any
) -> None:
    if engine.dialect != "postgresql":
        pytest.skip("SQL Server makes the others wait")
    with session.transaction(Isolation.REPEATABLE_READ):
        [found] = session.call("trade_order_account", (account,))
        broker = found[2]
        for change in (
            f"UPDATE brokerage.customer_account SET ca_bal = ca_bal WHERE ca_id = {account}",
            f"UPDATE brokerage.broker SET b_comm_total = b_comm_total WHERE b_id = {broker}",
            f"UPDATE brokerage.last_trade SET lt_vol = lt_vol WHERE lt_s_symb = '{symbol(SECURITY)}'",
        ):
            engine.execute(change)
        trade = context.next_trade_id()
        terms = ("PNDG", "TLB", 1, symbol(SECURITY), 100, "20.00", account, "A B", "9.00", "1.00", 0, broker)
        session.call("trade_order_submit", (trade, clock.now().isoformat(), *terms))
        session.roll_back()


def test_inputs_fit_each_other(context: Context, rng: random.Random) -> None:
    order = TradeOrder(context)
    for one in (order.inputs(rng) for _ in range(1_000)):
        assert (one.symbol is None) != (one.company is None)
        assert (one.company is None) == (one.issue is None)
        assert (one.wait_s is None) == (one.type in MARKET_TYPES)
        assert one.wait_s is None or 0 <= one.wait_s < 10
        if one.symbol is not None:
            assert one.symbol == symbol(one.security)


def test_inputs_are_drawn_in_their_shares(engine: Engine, context: Context, rng: random.Random) -> None:
    permitted = set(engine.query("SELECT ap_ca_id, ap_tax_id FROM brokerage.account_permission"))
    order = TradeOrder(context)
    many = [order.inputs(rng) for _ in range(40_000)]
    owners = [tax_id((one.account - 1) // MOST_ACCOUNTS - KEY) for one in many]
    by_others = [one for one in many if one.executor]
    strangers = [one for one in by_others if (one.account, one.executor) not in permitted]
    assert all(one.executor != owner for one, owner in zip(many, owners, strict=True))
    kinds = Counter(one.type for one in many)
    quantities = Counter(one.quantity for one in many)
    shares = [
        *(
            (kinds[kind], share)
            for kind, share in zip(("TMB", "TMS", "TLB", "TLS", "TSL"), (0.3, 0.3, 0.2, 0.1, 0.1), strict=True)
        ),
        *((quantities[quantity], 0.25) for quantity in QUANTITIES),
        (len(by_others), 0.1),
        (len(strangers), 0.001),
        (sum(one.company is not None for one in many), 0.4),
        (sum(one.lifo for one in many), 0.35),
        (sum(one.on_margin for one in many), 0.08),
        (sum(one.rolls_back for one in many), 1 / 101),
    ]
    for present, share in shares:
        # The accounts that others may trade in are a draw of their own.
        assert abs(present - share * len(many)) < 6 * sqrt(share * len(many)), (present, share)


def test_conditions_hold_after_orders_of_all_kinds(
    session: Session, context: Context, rng: random.Random, clock: Any, broken: Callable[[], list], untouched: None
) -> None:
    order = TradeOrder(context)
    outcomes: Counter[Outcome] = Counter()
    for _ in range(150):
        clock.moment += timedelta(milliseconds=137)
        outcomes[order.execute(session, order.inputs(rng))] += 1
    assert outcomes[Outcome.COMMITTED] > 140
    assert broken() == []


# Trade-Order's estimates on every engine: which holdings an order would close, their tax, commission and assets


class Held(NamedTuple):
    trade: int
    minutes: int
    price: Decimal
    shares: int


@pytest.fixture
def holder(engine: Engine, session: Session) -> Session:
    """A session that also makes holdings."""

    def values(count: int) -> str:
        return ", ".join("?" if engine.dialect == "mssql" else f"${number + 1}" for number in range(count))

    session.prepare(
        "test_hold",
        f"INSERT INTO brokerage.holding (h_t_id, h_ca_id, h_s_symb, h_dts, h_price, h_qty) VALUES ({values(6)})",
    )
    session.prepare(
        "test_summarise", f"INSERT INTO brokerage.holding_summary (hs_ca_id, hs_s_symb, hs_qty) VALUES ({values(3)})"
    )
    return session


def walk(held: Iterable[Held], sells: bool, lifo: bool, quantity: int, bid: Decimal) -> tuple[Decimal, Decimal]:
    """Buy and sell value of the shares that the order would close, one holding after the other."""
    then = now = Decimal(0)
    for holding in sorted(held, key=lambda one: (one.minutes, one.trade), reverse=lifo):
        shares = min(quantity, abs(holding.shares))
        quantity -= shares
        then += shares * holding.price
        now += shares * bid
    return (then, now) if sells else (now, then)


@given(
    held=st.lists(st.tuples(st.integers(0, 3), st.integers(2_000, 3_000), st.sampled_from(QUANTITIES)), max_size=5),
    short=st.booleans(),
    sells=st.booleans(),
    lifo=st.booleans(),
    on_margin=st.booleans(),
    quantity=st.sampled_from(QUANTITIES),
    limit_cents=st.integers(2_000, 3_000),
    tax_status=st.integers(0, 2),
)
def test_the_estimate_closes_holdings_in_their_turn(
    engine: Engine,
    holder: Session,
    held: list[tuple[int, int, int]],
    short: bool,
    sells: bool,
    lifo: bool,
    on_margin: bool,
    quantity: int,
    limit_cents: int,
    tax_status: int,
) -> None:
    account, customer, tier = an_account_without_holdings(engine)
    [(rate,)] = engine.query(
        "SELECT SUM(tx_rate) FROM brokerage.customer_taxrate JOIN brokerage.taxrate ON tx_id = cx_tx_id"
        f" WHERE cx_c_id = {customer}"
    )
    unused = trades_without_holdings(engine)
    holdings = [
        Held(trade, minutes, Decimal(price) / 100, -shares if short else shares)
        for trade, (minutes, price, shares) in zip(unused, held, strict=False)
    ]
    kind, limit = "TLS" if sells else "TLB", dollars(limit_cents)
    last_price = engine.query(f"SELECT lt_price FROM brokerage.last_trade WHERE lt_s_symb = '{symbol(SECURITY)}'")[0][0]
    with holder.transaction(Isolation.READ_COMMITTED):
        for one in holdings:
            at = f"2026-01-05T10:0{one.minutes}:00.000"
            holder.call("test_hold", (one.trade, account, symbol(SECURITY), at, str(one.price), one.shares))
        if holdings:
            total = sum(one.shares for one in holdings)
            holder.call("test_summarise", (account, symbol(SECURITY), total))
        [row] = holder.call(
            "trade_order_estimate",
            (account, customer, tier, tax_status, symbol(SECURITY), None, None, kind, quantity, lifo, on_margin, limit),
        )
        holder.roll_back()
    _, _, _, market, bid, status, buy, sell, tax, commission_rate, commission, _, assets = row
    assert (Decimal(market), Decimal(bid), status) == (last_price, Decimal(limit), "PNDG")
    closes = holdings if sells != short else []
    expected = walk(closes, sells, lifo, quantity, Decimal(limit))
    assert (Decimal(buy), Decimal(sell)) == expected
    gain = max(Decimal(0), expected[1] - expected[0]) if tax_status else Decimal(0)
    assert Decimal(tax) == cents(gain * rate)
    assert Decimal(commission) == cents(Decimal(limit) * quantity * Decimal(commission_rate) / 100)
    worth = sum(one.shares for one in holdings) * last_price
    assert (assets is None) if not on_margin else Decimal(assets) == worth


def an_account_without_holdings(engine: Engine) -> tuple[int, int, int]:
    """Account, customer and tier; nothing was ever paid there."""
    [found] = engine.query(
        "SELECT ca_id, c_id, c_tier FROM brokerage.customer_account JOIN brokerage.customer ON c_id = ca_c_id"
        " WHERE ca_id = (SELECT MIN(ca_id) FROM brokerage.customer_account WHERE ca_bal = 0"
        " AND NOT EXISTS (SELECT 1 FROM brokerage.holding_summary WHERE hs_ca_id = ca_id))"
    )
    return found


def trades_without_holdings(engine: Engine) -> list[int]:
    found = engine.query(
        "SELECT t_id FROM brokerage.trade WHERE t_st_id = 'CMPT' AND t_id < 200000000000200"
        " AND NOT EXISTS (SELECT 1 FROM brokerage.holding WHERE h_t_id = t_id) ORDER BY t_id"
    )
    return [trade for (trade,) in found]
