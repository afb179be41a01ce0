"""Trade-Cleanup: it cancels what an earlier run has left over, before the next one begins."""

import random
from typing import ClassVar, NamedTuple

import numpy as np

from stallmark.engines.base import Isolation, Session
from stallmark.schema.brokerage.population import trade_key
from stallmark.transactions.brokerage.context import Context
from stallmark.transactions.workload import Opening, Outcome, as_text


class FirstTrade(NamedTuple):
    id: int
    """The first id that a trade of a run may have: all that were loaded have ended."""


class TradeCleanup(Opening):
    name = "trade_cleanup"
    frames: ClassVar = {"trade_cleanup_cancel": 2}
    call_isolation = Isolation.READ_COMMITTED

    def __init__(self, context: Context):
        super().__init__(context)
        self._context = context

    def inputs(self, rng: random.Random) -> FirstTrade:
        """Return the inputs; nothing is drawn."""
        loaded = self._context.population
        last_trade = trade_key(loaded, loaded.units - 1, np.array([loaded.unit_trades - 1]))
        return FirstTrade(int(last_trade[0]) + 1)

    def execute(self, session: Session, inputs: tuple) -> Outcome:
        now = as_text(self._context.clock.now())
        [(waited, unanswered)] = session.call("trade_cleanup_cancel", (*inputs, now))
        self.done = {"limit orders cancelled": waited, "unanswered orders cancelled": unanswered}
        return Outcome.COMMITTED
