"""Trade-Order: a customer, or someone permitted to act for one, orders to buy or sell a security.

Market orders go to the market after the commit, limit orders wait until their security reaches the limit. One order in
101 is rolled back after all its rows were written, which uses up its trade id. An order by someone without permission
is rolled back before it has an id.
"""

import random
from collections.abc import Iterator
from datetime import timedelta
from itertools import islice
from typing import Any, ClassVar, NamedTuple

import numpy as np

from stallmark.engines.base import Isolation, Session
from stallmark.errors import CallFailed, ErrorClass
from stallmark.schema.brokerage import (
    BURNT_EVERY,
    PERMISSIONS_PERCENT,
    company_of,
    is_preferred,
    others_permitted,
    permitted,
    tax_id,
)
from stallmark.transactions.brokerage.context import AT_ONCE, Choice, Context, Order, dollars
from stallmark.transactions.workload import Outcome, Transaction, as_text

LIMIT_SHARE = 0.4
SELL_SHARE = 0.5
BY_COMPANY_SHARE = 0.4
BY_ANOTHER_SHARE = 0.1  # share of all orders; only some accounts have another trader
NOT_PERMITTED_SHARE = 0.01  # share of the orders by another trader
LIFO_SHARE = 0.35
MARGIN_SHARE = 0.08
QUANTITIES = (100, 200, 400, 800)
LONGEST_WAIT_S = 10.0  # longest wait of a limit order for its price

_BY_ANOTHER_WHERE_POSSIBLE = BY_ANOTHER_SHARE / (1 - PERMISSIONS_PERCENT[0] / 100)


class TradeOrderInputs(NamedTuple):
    """The inputs. A security is identified by `symbol`, or by `company` and `issue`."""

    account: int
    security: int  # the security's number, which the market needs
    executor: str | None
    """The tax id of someone other than the owner, who may not be permitted; None for the owner."""
    symbol: str | None
    company: str | None
    issue: str | None
    type: str
    quantity: int
    lifo: bool
    on_margin: bool
    wait_s: float | None
    """Seconds from now, for a limit order: the limit is the price that the security will have then."""
    rolls_back: bool


class _Candidate(NamedTuple):
    choice: Choice
    others: int
    """The number of `another` who may trade in the account."""
    another: tuple[int, int]
    company: int
    issue: str


class TradeOrder(Transaction):
    name = "trade_order"
    frames: ClassVar = {
        "trade_order_account": 1,
        "trade_order_executor": 2,
        "trade_order_estimate": 12,
        "trade_order_submit": 14,
    }
    limit_s = 2.0
    shared: Context

    def __init__(self, context: Context):
        super().__init__(context)
        self._drawn: Iterator[_Candidate] | None = None

    def inputs(self, rng: random.Random) -> TradeOrderInputs:
        if self._drawn is None:
            self._drawn = _candidates(self.shared, rng)
        it, draw = next(self._drawn), rng.random
        _, account, security = it.choice
        by_company = draw() < BY_COMPANY_SHARE
        kind, wait_s = _kind(draw() < SELL_SHARE, draw()), None
        if kind not in ("TMB", "TMS"):
            wait_s = LONGEST_WAIT_S * draw()
        return TradeOrderInputs(
            account,
            security,
            executor=self._executor(it, rng),
            symbol=None if by_company else self.shared.symbols[security],
            company=self.shared.company_names[it.company] if by_company else None,
            issue=it.issue if by_company else None,
            type=kind,
            quantity=QUANTITIES[int(draw() * len(QUANTITIES))],
            lifo=draw() < LIFO_SHARE,
            on_margin=draw() < MARGIN_SHARE,
            wait_s=wait_s,
            rolls_back=draw() * BURNT_EVERY < 1,
        )

    def _executor(self, it: _Candidate, rng: random.Random) -> str | None:
        draw = rng.random
        if not it.others or draw() >= _BY_ANOTHER_WHERE_POSSIBLE:
            return None
        customer = it.another[int(draw() * it.others)]
        if draw() < NOT_PERMITTED_SHARE:
            known = (it.choice.customer, *it.another)
            customers = self.shared.customers
            while (customer := customers[int(draw() * len(customers))]) in known:
                pass
        return tax_id(customer)

    def execute(self, session: Session, inputs: tuple) -> Outcome:
        order = TradeOrderInputs(*inputs)
        now = self.shared.clock.now()
        due = None if order.wait_s is None else now + timedelta(seconds=order.wait_s)
        limit = None if due is None else dollars(self.shared.price(order.security, due))
        with session.transaction(Isolation.REPEATABLE_READ):
            account = _account(session, order.account)
            executor = account.first_name, account.last_name
            if order.executor is not None:
                permission = session.call("trade_order_executor", (order.account, order.executor))
                if not permission:
                    session.roll_back()
                    return Outcome.ROLLED_BACK
                [executor] = permission
            estimate = _estimate(session, order, account, limit)
            trade = self.shared.next_trade_id()
            submitted = (
                trade, as_text(now), estimate.status, order.type, not order.on_margin, estimate.symbol,
                order.quantity, str(estimate.bid), order.account, " ".join(executor), str(estimate.charge),
                str(estimate.commission), order.lifo, account.broker,
            )  # fmt: skip
            if order.rolls_back:
                session.call("trade_order_submit", submitted)
                session.roll_back()
                return Outcome.ROLLED_BACK
            session.finish("trade_order_submit", submitted)
        if due is None:
            self.shared.market.send(Order(trade, order.security, order.quantity))
        else:
            self.shared.market.await_price(order.security, due)
        return Outcome.COMMITTED


class _Account(NamedTuple):
    """The row that the first frame returns."""

    name: str
    tax_status: int
    broker: int
    broker_name: str
    customer: int
    first_name: str
    last_name: str
    tier: int
    tax_id: str


class _Estimate(NamedTuple):
    """The row that the third frame returns; amounts are as the engine's driver gives them."""

    symbol: str | None
    security_name: str
    company_name: str
    market_price: Any
    bid: Any
    status: str
    buy_value: Any
    sell_value: Any
    tax: Any
    commission_rate: Any
    commission: Any
    charge: Any
    assets: Any


def _account(session: Session, account: int) -> _Account:
    rows = session.call("trade_order_account", (account,))
    if not rows:
        raise CallFailed(ErrorClass.OTHER, "", f"account {account} does not exist: run `stallmark check`")
    return _Account(*rows[0])


def _estimate(session: Session, order: TradeOrderInputs, account: _Account, limit: str | None) -> _Estimate:
    who = order.account, account.customer, account.tier, account.tax_status
    content = order.symbol, order.company, order.issue, order.type, order.quantity
    [row] = session.call("trade_order_estimate", (*who, *content, order.lifo, order.on_margin, limit))
    estimate = _Estimate(*row)
    if None in (estimate.symbol, estimate.bid, estimate.commission, estimate.charge):
        name = order.symbol or f"{order.issue} of {order.company}"
        raise CallFailed(ErrorClass.OTHER, "", f"security {name} or its price is not there: run `stallmark check`")
    return estimate


def _kind(sells: bool, chance: float) -> str:
    """Return the trade type. Half of the limit orders to sell wait for a gain (TLS), half stop a loss (TSL)."""
    if chance >= LIMIT_SHARE:
        return "TMS" if sells else "TMB"
    if not sells:
        return "TLB"
    return "TLS" if chance < LIMIT_SHARE / 2 else "TSL"


def _candidates(context: Context, rng: random.Random) -> Iterator[_Candidate]:
    """Yield choices without end, each with what NumPy derives for many as quickly as for one."""
    choices = context.choices(rng)
    while True:
        batch = list(islice(choices, AT_ONCE))
        accounts = np.array([choice.account for choice in batch])
        securities = np.array([choice.security for choice in batch])
        others = others_permitted(context.seed, accounts)
        another = [permitted(context.seed, context.population, accounts, which).tolist() for which in (1, 2)]
        issues = np.where(is_preferred(securities), "PREF_A", "COMMON").tolist()
        yield from map(
            _Candidate, batch, others.tolist(), zip(*another, strict=True), company_of(securities).tolist(), issues
        )
