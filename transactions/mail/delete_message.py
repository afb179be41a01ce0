"""Delete-Message: a message goes. A mailbox keeps its size within a tenth: two messages go where it holds more, and
none, a rollback, where it holds fewer."""

import random
from typing import ClassVar

from stallmark.engines.base import Isolation, Session
from stallmark.transactions.mail.context import Context, Place
from stallmark.transactions.workload import Outcome, Transaction


class DeleteMessage(Transaction):
    name = "delete_message"
    frames: ClassVar = {"delete_message": 2}
    call_isolation = Isolation.READ_COMMITTED

    def __init__(self, context: Context):
        super().__init__(context)
        self._context = context

    def inputs(self, rng: random.Random) -> Place:
        return self._context.place(rng)

    def execute(self, session: Session, inputs: tuple) -> Outcome:
        [(deleted,)] = session.call("delete_message", inputs)
        return Outcome.COMMITTED if deleted else Outcome.ROLLED_BACK
