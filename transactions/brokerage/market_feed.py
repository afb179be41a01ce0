"""Market-Feed: the tape reports trades with their prices, and limit orders that reached their price go to the market.

Each ticker is its own transaction. A failed one is retried alone: repeating the others would add their trades to the
volume twice.
"""

import random
from typing import ClassVar

from stallmark.engines.base import Isolation, Session
from stallmark.errors import CallFailed
from stallmark.transactions.brokerage.context import Context, dollars
from stallmark.transactions.brokerage.market_emulator import Order, TapeReport
from stallmark.transactions.workload import Outcome, Transaction, as_text


class MarketFeed(Transaction):
    name = "market_feed"
    frames: ClassVar = {"market_feed_ticker": 4}
    call_isolation = Isolation.REPEATABLE_READ
    limit_s = 2.0

    def __init__(self, context: Context):
        super().__init__(context)
        self._context = context
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
                self._context.market.send(Order(trade, report.security, quantity))
        if failures:  # the gravest: after a lost connection nothing may be tried again
            raise min(failures, key=lambda failure: failure.kind.retryable)
        self._under_way = ()
        return Outcome.COMMITTED

    def _ticker(self, report: TapeReport) -> tuple:
        now = as_text(self._context.clock.now())
        return self._context.symbols[report.security], dollars(report.cents), report.quantity, now
