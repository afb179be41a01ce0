"""Trade-Status: the state of the latest trades of an account."""

import random
from collections.abc import Iterator
from typing import ClassVar, NamedTuple

from stallmark.engines.base import Session
from stallmark.errors import CallFailed, ErrorClass
from stallmark.transactions.brokerage.context import Choice, Context
from stallmark.transactions.workload import Outcome, Transaction


class Status(NamedTuple):
    account: int


class TradeStatus(Transaction):
    """The transaction. It succeeds as well when an account has not traded yet."""

    name = "trade_status"
    frames: ClassVar = {"trade_status": 1}
    limit_s = 1.0
    reads_only = True

    def __init__(self, context: Context):
        super().__init__(context)
        self._choices: Iterator[Choice] | None = None

    def inputs(self, rng: random.Random) -> Status:
        self._choices = self._choices or self.shared.choices(rng)
        return Status(next(self._choices).account)

    def execute(self, session: Session, inputs: tuple) -> Outcome:
        if not session.call("trade_status", inputs):
            raise CallFailed(ErrorClass.OTHER, "", f"account {inputs[0]} does not exist: run `stallmark check`")
        return Outcome.COMMITTED
