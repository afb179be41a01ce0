"""Background-Scan: all bodies are read one after the other for a checksum, over and over, at a limited rate; each cell
has a scan of its own mailboxes.

A mail server does so to find damage. The rate holds over time: bodies are read whole, and what one had beyond its turn
is left out of the next ones.
"""

import random
from typing import ClassVar

from stallmark.engines.base import Session
from stallmark.transactions.mail.context import Context
from stallmark.transactions.workload import Outcome, Transaction

CHUNK_BYTES = 256 * 1024
EVERY_S = 0.25  # so at most 1 MiB/s


class BackgroundScan(Transaction):
    name = "background_scan"
    frames: ClassVar = {"background_scan": 3}
    reads_only = True

    def __init__(self, context: Context):
        super().__init__(context)
        self._context = context

    def inputs(self, rng: random.Random) -> tuple[()]:
        """Return no inputs: it continues where it has been."""
        return ()

    def execute(self, session: Session, inputs: tuple) -> Outcome:
        position, mailboxes = self._context.scan, self._context.mailboxes
        budget = max(1, CHUNK_BYTES - position.ahead)
        [(last, size, _)] = session.call("background_scan", (position.mailbox, position.message, budget), commits=False)
        if last is None:
            following = position.mailbox + 1
            position.mailbox, position.message = following if following in mailboxes else mailboxes.start, 1
            return Outcome.COMMITTED
        position.message = last + 1
        position.ahead = max(0, position.ahead + size - CHUNK_BYTES)
        return Outcome.COMMITTED
