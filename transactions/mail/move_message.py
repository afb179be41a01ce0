"""Move-Message: a message goes into another folder of its mailbox."""

import random
from typing import ClassVar, NamedTuple

from stallmark.engines.base import Isolation, Session
from stallmark.schema.mail.scale import FOLDERS
from stallmark.transactions.mail.context import Context
from stallmark.transactions.workload import Outcome, Transaction


class Move(NamedTuple):
    mailbox: int
    place: int
    folder: int


class MoveMessage(Transaction):
    name = "move_message"
    frames: ClassVar = {"move_message": 3}
    call_isolation = Isolation.READ_COMMITTED

    def __init__(self, context: Context):
        super().__init__(context)
        self._context = context

    def inputs(self, rng: random.Random) -> Move:
        return Move(*self._context.place(rng), 1 + int(rng.random() * len(FOLDERS)))

    def execute(self, session: Session, inputs: tuple) -> Outcome:
        session.call("move_message", inputs)
        return Outcome.COMMITTED
