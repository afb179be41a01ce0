"""The context that all transactions of a load process share."""

import random
from dataclasses import dataclass, field

from stallmark.transactions.clock import Clock, RunClock
from stallmark.transactions.mail.new_messages import NewMessages
from stallmark.transactions.workload import WorkloadContext

_PLACES = 1_000_000
"""Places in a mailbox, from its oldest message to its newest."""


@dataclass
class ScanPosition:
    """The position of the background scan: what it reads next, and how many bytes it has read beyond its rate."""

    mailbox: int = 1
    message: int = 1
    ahead: int = 0


@dataclass(frozen=True)
class Context:
    mailboxes: int
    new: NewMessages
    clock: Clock
    scan: ScanPosition = field(default_factory=ScanPosition)

    def mailbox(self, rng: random.Random) -> int:
        return 1 + int(rng.random() * self.mailboxes)

    def place(self, rng: random.Random) -> tuple[int, int]:
        """Return a mailbox and a place in it: all are drawn alike."""
        return self.mailbox(rng), int(rng.random() * _PLACES)


def open_context(around: WorkloadContext, clock: Clock | None = None) -> Context:
    new = NewMessages(around.seed, around.scale["compressibility"])
    return Context(around.scale["mailboxes"], new, clock or RunClock())
