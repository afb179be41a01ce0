"""Market-Feed: the tape reports what was traded at which price, and limit orders whose price has come go to the market.

Each ticker is a transaction by itself. One that failed is tried again, those before it stand: a second time they would
add to the volume what was traded once.
"""

import random
from collections.abc import Sequence
from typing import ClassVar

from stallmark.engines.base import Session
from stallmark.transactions.brokerage.context import Context, dollars
from stallmark.transactions.brokerage.market_emulator import Order, TapeReport
from stallmark.transactions.clock import as_text
from stallmark.transactions.workload import Outcome, Transaction


class MarketFeed(Transaction):
    name = "market_feed"
    frames: ClassVar = {"market_feed_ticker": 4}
    limit_s = 2.0

    def __init__(self, context: Context):
        super().__init__(context)
        self._context = context
        self._under_way: tuple[TapeReport, ...] = ()
        self._committed = 0  # of its tickers

    def inputs(self, rng: random.Random) -> tuple[TapeReport, ...]:
        """Raise NotImplementedError: inputs are not drawn, the market gives them."""
        raise NotImplementedError

    def execute(self, session: Session, inputs: tuple[TapeReport, ...]) -> Outcome:
        if inputs is not self._under_way:
            self._under_way, self._committed = inputs, 0
        for report in inputs[self._committed :]:
            triggered = self._ticker(session, report)
            self._committed += 1
            for trade, quantity in triggered:
                self._context.market.send(Order(trade, report.security, quantity))
        self._under_way = ()
        return Outcome.COMMITTED

    def _ticker(self, session: Session, report: TapeReport) -> Sequence[tuple]:
        symbol, now = self._context.symbols[report.security], as_text(self._context.clock.now())
        return session.call("market_feed_ticker", (symbol, dollars(report.cents), report.quantity, now))
