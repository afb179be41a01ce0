"""Deliver-Message: a new message comes into a mailbox."""

import random
from typing import ClassVar, NamedTuple

from stallmark.engines.base import Isolation, Session
from stallmark.schema.mail.scale import INBOX, SENT
from stallmark.transactions.mail.context import Context
from stallmark.transactions.workload import Outcome, Transaction, as_text

# Of a hundred messages a day Microsoft's profile of a user has 20 sent and 80 received.
_SENT_SHARE = 0.2


class Delivery(NamedTuple):
    """The inputs; the time of reception is that of the call."""

    mailbox: int
    folder: int
    sender: str
    subject: str
    body: str


class DeliverMessage(Transaction):
    name = "deliver_message"
    frames: ClassVar = {"deliver_message": 6}
    call_isolation = Isolation.READ_COMMITTED

    def __init__(self, context: Context):
        super().__init__(context)
        self._context = context

    def inputs(self, rng: random.Random) -> Delivery:
        folder = SENT if rng.random() < _SENT_SHARE else INBOX
        return Delivery(self._context.mailbox(rng), folder, *self._context.new.message(rng))

    def execute(self, session: Session, inputs: tuple) -> Outcome:
        mailbox, folder, *message = inputs
        session.call("deliver_message", (mailbox, folder, as_text(self._context.clock.now()), *message))
        return Outcome.COMMITTED
