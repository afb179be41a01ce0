"""The life of a trade: Trade-Order, and with Trade-Result and Market-Feed the market's answers.

Trade-Order: a customer, or someone permitted to act for one, orders to buy or sell a security. Market orders go to the
market after the commit, limit orders wait until their security reaches the limit. One order in 101 is rolled back after
all its rows were written, which uses up its trade id. An order by someone without permission is rolled back before it
has an id.
"""

import random
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from decimal import Decimal
from functools import lru_cache
from itertools import islice
from typing import Any, ClassVar, NamedTuple, Self

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
from stallmark.transactions.brokerage.context import AT_ONCE, Choice, Context, Order, TapeReport, dollars
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


# The transactions with which the market answers: Trade-Result for an executed order, Market-Feed for its tape.

TAXED_NOT_AT_ALL, TAXED_AT_SOURCE = 0, 1  # tax statuses of an account; 2 is taxed elsewhere

# From a Monday, a Tuesday … to the second business day after it: Saturdays and Sundays are none.
_DAYS_TO_SETTLE = (2, 2, 2, 4, 4, 3, 2)


class _Trade(NamedTuple):
    """The row that the first frame returns: the trade, its account, and how much that holds of the security."""

    state: str
    type: str
    type_name: str
    sells: bool
    symbol: str
    quantity: int
    lifo: bool
    cash: bool
    charge: Any
    account: int
    broker: int
    customer: int
    tax_status: int
    held: int
    """The number of shares; below zero they are owed."""

    @classmethod
    def submitted(cls, rows: Sequence[tuple], trade: int) -> Self:
        """Return the trade that the first frame found. Raise CallFailed unless it is there and submitted (SBMT).

        A submitted trade is completed only once. The market should never send any other: that is a failure, not an
        intended rollback.
        """
        if not rows:
            raise CallFailed(ErrorClass.OTHER, "", f"trade {trade} does not exist: run `stallmark check`")
        order = cls(*rows[0])
        if order.state != "SBMT":
            raise CallFailed(
                ErrorClass.OTHER, "", f"trade {trade} is {order.state}, not SBMT: it was completed or canceled before"
            )
        return order


class TradeResult(Transaction):
    """Trade-Result: the market has executed an order, so its trade is completed: holdings, tax, commission and
    settlement."""

    name = "trade_result"
    frames: ClassVar = {
        "trade_result_trade": 1,
        "trade_result_holding": 9,
        "trade_result_tax": 4,
        "trade_result_commission": 5,
        "trade_result_settlement": 7,
        "trade_result_completion": 5,
    }
    limit_s = 2.0
    isolation: ClassVar = {
        "mssql": Isolation.SERIALIZABLE,
        # Serialised by row locks that its first frame takes: above READ COMMITTED PostgreSQL would abort, for a
        # snapshot older than the last change of a hot broker, where SQL Server waits. Why the outcome is the same
        # stands at the head of the SQL.
        "postgresql": Isolation.READ_COMMITTED,
    }

    def __init__(self, context: Context):
        super().__init__(context)

    def inputs(self, rng: random.Random) -> tuple[Order, int]:
        """Raise NotImplementedError: inputs are not drawn. The market gives an order, and the price in cents at which
        it was executed."""
        raise NotImplementedError

    def execute(self, session: Session, inputs: tuple) -> Outcome:
        order, cents = inputs
        price = dollars(cents)
        with session.transaction(self.isolation[session.dialect]):
            trade = _Trade.submitted(session.call("trade_result_trade", (order.trade,)), order.trade)
            # Not before the account is locked: so its trades are completed in the order of these times, by which
            # holdings are oldest and newest.
            now = self.shared.clock.now()
            moment = as_text(now)

            [(buy_value, sell_value)] = session.call(
                "trade_result_holding",
                (
                    order.trade, trade.account, trade.symbol, trade.held, trade.sells, trade.quantity, price,
                    moment, trade.lifo,
                ),
            )  # fmt: skip
            tax: Any = 0
            if trade.tax_status != TAXED_NOT_AT_ALL and Decimal(sell_value) > Decimal(buy_value):
                [(tax,)] = session.call(
                    "trade_result_tax", (order.trade, trade.customer, str(buy_value), str(sell_value))
                )
            commission, security_name = _first_row(
                session.call(
                    "trade_result_commission", (trade.customer, trade.symbol, trade.type, trade.quantity, price)
                ),
                f"no commission rate for trade {order.trade}",
            )

            value = Decimal(price) * trade.quantity
            withheld = Decimal(tax) if trade.tax_status == TAXED_AT_SOURCE else 0
            amount = (value if trade.sells else -value) - Decimal(trade.charge) - Decimal(commission) - withheld
            paid_for = f"{trade.type_name} {trade.quantity} shares of {security_name}"
            session.call(
                "trade_result_settlement",
                (order.trade, trade.account, moment, due_date(now.date()), str(amount), trade.cash, paid_for),
            )
            _first_row(
                session.call(
                    "trade_result_completion", (order.trade, trade.broker, moment, price, str(commission)), last=True
                ),
                f"no broker {trade.broker} of trade {order.trade}",
            )
        self.shared.market.report(order, cents)
        return Outcome.COMMITTED


@lru_cache(maxsize=2)  # a run may go on over midnight
def due_date(traded: date) -> str:
    """Return the day on which a trade of that day is settled, two business days later, in ISO format."""
    return (traded + timedelta(days=_DAYS_TO_SETTLE[traded.weekday()])).isoformat()


def _first_row(rows: Sequence[tuple], missing: str) -> tuple:
    if not rows:
        raise CallFailed(ErrorClass.OTHER, "", f"there is {missing}: run `stallmark check`")
    return rows[0]


class MarketFeed(Transaction):
    """Market-Feed: the tape reports trades with their prices, and limit orders that reached their price go to the
    market.

    Each ticker is its own transaction. A failed one is retried alone: repeating the others would add their trades to
    the volume twice.
    """

    name = "market_feed"
    frames: ClassVar = {"market_feed_ticker": 4}
    call_isolation = Isolation.REPEATABLE_READ
    limit_s = 2.0
    shared: Context

    def __init__(self, context: Context):
        super().__init__(context)
        self._under_way: tuple[TapeReport, ...] = ()
        self._left: list[TapeReport] = []  # reports of its tickers

    def inputs(self, rng: random.Random) -> tuple[TapeReport, ...]:
        """Raise NotImplementedError: inputs are not drawn, the market gives them."""
        raise NotImplementedError

    def execute(self, session: Session, inputs: tuple[TapeReport, ...]) -> Outcome:
        if inputs is not self._under_way:
            self._under_way, self._left = inputs, list(inputs)
        asked = self._left
        answers = session.call_each("market_feed_ticker", [self._ticker(report) for report in asked])
        self._left, failures = asked[len(answers) :], []
        for report, answer in zip(asked, answers, strict=False):
            if isinstance(answer, CallFailed):
                self._left.append(report)
                failures.append(answer)
                continue
            for trade, quantity in answer:
                self.shared.market.send(Order(trade, report.security, quantity))
        if failures:  # the gravest: after a lost connection nothing may be tried again
            raise min(failures, key=lambda failure: failure.kind.retryable)
        self._under_way = ()
        return Outcome.COMMITTED

    def _ticker(self, report: TapeReport) -> tuple:
        now = as_text(self.shared.clock.now())
        return self.shared.symbols[report.security], dollars(report.cents), report.quantity, now
