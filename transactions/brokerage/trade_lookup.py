"""Trade-Lookup: the history of past trades, for customers and brokers."""

import random
from typing import ClassVar

from stallmark.engines.base import Session
from stallmark.transactions.brokerage.context import Context, FrameCall, PastTrades, ask
from stallmark.transactions.workload import Outcome, Transaction

BY_ID = "trade_lookup_by_id"
BY_ACCOUNT = "trade_lookup_by_account"
BY_SYMBOL = "trade_lookup_by_symbol"
HOLDINGS = "trade_lookup_holdings"

# Cumulative shares of the transactions; the rest reads holdings.
_BY_ID, _BY_ACCOUNT, _BY_SYMBOL = 0.30, 0.60, 0.90


class TradeLookup(Transaction):
    name = "trade_lookup"
    frames: ClassVar = {BY_ID: 1, BY_ACCOUNT: 2, BY_SYMBOL: 2, HOLDINGS: 2}
    limit_s = 3.0
    reads_only = True

    def __init__(self, context: Context):
        super().__init__(context)
        self._past: PastTrades | None = None

    def inputs(self, rng: random.Random) -> FrameCall:
        past = self._past = self._past or PastTrades(self.shared, rng)
        draw = rng.random()
        if draw < _BY_ID:
            return FrameCall.by_id(BY_ID, past.some())
        if draw < _BY_ACCOUNT:
            return FrameCall(BY_ACCOUNT, past.account_time())
        if draw < _BY_SYMBOL:
            return FrameCall(BY_SYMBOL, past.security_time())
        return FrameCall(HOLDINGS, past.first_of_account())

    def execute(self, session: Session, inputs: tuple) -> Outcome:
        ask(session, FrameCall(*inputs))
        return Outcome.COMMITTED
