"""Read-Message: one message of a mailbox, with its body."""

import random
from typing import ClassVar

from stallmark.engines.base import Session
from stallmark.errors import CallFailed, ErrorClass
from stallmark.transactions.mail.context import Context, Place
from stallmark.transactions.workload import Outcome, Transaction

_ATTEMPTS = 10
"""The calls of one transaction at most: another one is needed where a message was deleted between choice and read."""


class ReadMessage(Transaction):
    name = "read_message"
    frames: ClassVar = {"read_message": 2}
    reads_only = True

    def __init__(self, context: Context):
        super().__init__(context)
        self._context = context

    def inputs(self, rng: random.Random) -> Place:
        return self._context.place(rng)

    def execute(self, session: Session, inputs: tuple) -> Outcome:
        for _ in range(_ATTEMPTS):
            if rows := session.call("read_message", inputs, commits=False):
                break
        else:
            raise CallFailed(ErrorClass.OTHER, "", f"mailbox {inputs[0]} has no message: run `stallmark check`")
        *_, size, body = rows[0]
        if len(body) != size:
            message = f"message {rows[0][0]} of mailbox {inputs[0]} has {len(body):,} bytes of its {size:,}"
            raise CallFailed(ErrorClass.OTHER, "", f"{message}: run `stallmark check`")
        return Outcome.COMMITTED
