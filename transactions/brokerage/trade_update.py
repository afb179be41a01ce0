"""Trade-Update: small corrections to past trades, which are read as well."""

import random
from typing import ClassVar

from stallmark.engines.base import Isolation, Session
from stallmark.transactions.brokerage.context import Context, FrameCall, PastTrades, ask
from stallmark.transactions.workload import Outcome, Transaction

EXECUTOR = "trade_update_executor"
CASH_TYPE = "trade_update_cash_type"
CASH_NAME = "trade_update_cash_name"

# Cumulative shares of the transactions; the rest changes names of cash transactions.
_EXECUTOR, _CASH_TYPE = 0.33, 0.66


class TradeUpdate(Transaction):
    name = "trade_update"
    frames: ClassVar = {EXECUTOR: 1, CASH_TYPE: 2, CASH_NAME: 2}
    limit_s = 3.0

    def __init__(self, context: Context):
        super().__init__(context)
        self._past: PastTrades | None = None

    def inputs(self, rng: random.Random) -> FrameCall:
        past = self._past = self._past or PastTrades(self.shared, rng)
        draw = rng.random()
        if draw < _EXECUTOR:
            return FrameCall.by_id(EXECUTOR, past.some())
        if draw < _CASH_TYPE:
            return FrameCall(CASH_TYPE, past.account_time())
        return FrameCall(CASH_NAME, past.security_time())

    def execute(self, session: Session, inputs: tuple) -> Outcome:
        with session.transaction(Isolation.REPEATABLE_READ):
            asked = FrameCall(*inputs)
            if asked.expected:
                ask(session, asked)  # trades that are missing undo it
            else:
                session.finish(asked.frame, asked.parameters)
        return Outcome.COMMITTED
