"""Trade-Order's estimates on every engine: which holdings an order would close, their tax, commission and assets."""

from collections.abc import Iterable
from decimal import ROUND_HALF_UP, Decimal
from typing import NamedTuple

import hypothesis.strategies as st
import pytest
from hypothesis import given

from stallmark.engines.base import Engine, Isolation, Session
from stallmark.schema.brokerage.population import symbol
from stallmark.transactions.brokerage.context import dollars
from stallmark.transactions.brokerage.trade_order import QUANTITIES

SECURITY = 7


def cents(amount: Decimal) -> Decimal:
    return amount.quantize(Decimal("0.01"), ROUND_HALF_UP)


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
