"""Update-Message: a message is marked as read or unread, or its body is replaced by another."""

import random
from typing import ClassVar, NamedTuple

from stallmark.engines.base import Isolation, Session
from stallmark.transactions.mail.context import Context
from stallmark.transactions.workload import Outcome, Transaction

_BODY_SHARE = 0.2


class Update(NamedTuple):
    """The inputs. Without a body the message is marked."""

    mailbox: int
    place: int
    body: str | None = None


class UpdateMessage(Transaction):
    name = "update_message"
    frames: ClassVar = {"update_message_mark": 2, "update_message_body": 3}
    call_isolation = Isolation.READ_COMMITTED

    def __init__(self, context: Context):
        super().__init__(context)
        self._context = context

    def inputs(self, rng: random.Random) -> Update:
        body = self._context.new.body(rng) if rng.random() < _BODY_SHARE else None
        return Update(*self._context.place(rng), body)

    def execute(self, session: Session, inputs: tuple) -> Outcome:
        *where, body = inputs
        if body is None:
            session.call("update_message_mark", where)
        else:
            session.call("update_message_body", (*where, body))
        return Outcome.COMMITTED
