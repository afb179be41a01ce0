"""The context that all transactions of a load process share."""

import random
from dataclasses import dataclass
from typing import NamedTuple

from stallmark.transactions.mail.new_messages import NewMessages
from stallmark.transactions.workload import Clock, RunClock, WorkloadContext

_PLACES = 1_000_000
"""Places in a mailbox, from its oldest message to its newest."""


class Place(NamedTuple):
    """A mailbox, and a place in it."""

    mailbox: int
    place: int


@dataclass
class ScanPosition:
    """The position of the background scan: what it reads next, and how many bytes it has read beyond its rate."""

    mailbox: int
    message: int = 1
    ahead: int = 0


@dataclass(frozen=True)
class Context:
    mailboxes: range
    """The mailboxes of the cell, by their numbers from 1."""
    new: NewMessages
    clock: Clock
    scan: ScanPosition

    def mailbox(self, rng: random.Random) -> int:
        return self.mailboxes[int(rng.random() * len(self.mailboxes))]

    def place(self, rng: random.Random) -> Place:
        """Return a mailbox and a place in it, with equal probabilities."""
        return Place(self.mailbox(rng), int(rng.random() * _PLACES))


def open_context(around: WorkloadContext, clock: Clock | None = None) -> Context:
    new = NewMessages(around.seed, around.scale["compressibility"])
    part = around.part(around.scale["mailboxes"])
    mailboxes = range(part.start + 1, part.stop + 1)
    return Context(mailboxes, new, clock or RunClock(), ScanPosition(mailboxes.start))
