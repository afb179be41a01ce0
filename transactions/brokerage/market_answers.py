"""The transactions with which the market answers: Trade-Result for an executed order, Market-Feed for its tape."""

import random
from collections.abc import Sequence
from datetime import date, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple, Self

from stallmark.engines.base import Isolation, Session
from stallmark.errors import CallFailed, ErrorClass
from stallmark.transactions.brokerage.context import Context, Order, TapeReport, dollars
from stallmark.transactions.workload import Outcome, Transaction, as_text

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
