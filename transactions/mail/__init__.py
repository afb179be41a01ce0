"""The mail store: users read, receive, mark, delete and move messages, derived from what Jetstress does to one.

Not Jetstress, and not comparable with its results: another engine, pages of 8 KB, whole transactions that are on the
disk when they have ended.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from stallmark.engines.base import Isolation, Session
from stallmark.errors import CallFailed, ErrorClass
from stallmark.schema.mail import FOLDERS, INBOX, MOST_BYTES, SENT, leeway
from stallmark.transactions.workload import (
    Background,
    Clock,
    Condition,
    Outcome,
    RunClock,
    Transaction,
    UserLoad,
    Workload,
    WorkloadContext,
    as_text,
)

_STOCK_BYTES = 2 * MOST_BYTES
_PEOPLE = 1_000


class NewMessage(NamedTuple):
    sender: str
    subject: str
    body: str


class NewMessages:
    """New messages and bodies, with the sizes and the compressibility of loaded messages: a pure function of the seed
    and a generator.

    Each body is cut out of one long text, from any phrase on, so it costs the driver no more than a copy. Almost no two
    begin at the same place of a page, so deduplication finds as little as among loaded messages.
    """

    def __init__(self, seed: int, compressibility: float):
        # Not before a load begins: the words of Faker take half a second to come.
        from stallmark.schema.mail.messages import DELIVERED, bodies, likely_sizes, senders, subjects
        from stallmark.schema.words import WIDTH

        self._width = WIDTH
        [self._text] = bodies(seed, np.array([DELIVERED]), np.array([_STOCK_BYTES]), compressibility).to_pylist()
        number = DELIVERED + np.arange(_PEOPLE)
        self._senders: list[str] = senders(seed, number).to_pylist()
        self._subjects: list[str] = subjects(seed, number).to_pylist()
        self._sizes = likely_sizes().tolist()

    def message(self, rng: random.Random) -> NewMessage:
        return NewMessage(rng.choice(self._senders), rng.choice(self._subjects), self.body(rng))

    def body(self, rng: random.Random) -> str:
        size = rng.choice(self._sizes)
        start = self._width * int(rng.random() * ((_STOCK_BYTES - size) // self._width))
        return self._text[start : start + size - 1] + "."


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


_ATTEMPTS = 10
"""The calls of one transaction at most: another one is needed where a message was deleted between choice and read."""


class ReadMessage(Transaction):
    """Read-Message: one message of a mailbox, with its body."""

    name = "read_message"
    frames: ClassVar = {"read_message": 2}
    reads_only = True
    shared: Context

    def inputs(self, rng: random.Random) -> Place:
        return self.shared.place(rng)

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


MOST = 50
"""The messages that a window shows."""
_INBOX_SHARE = 0.6  # the rest is of all folders alike


class Listing(NamedTuple):
    mailbox: int
    folder: int


class ListFolder(Transaction):
    """List-Folder: someone opens a folder and sees its newest messages, without their bodies."""

    name = "list_folder"
    frames: ClassVar = {"list_folder": 3}
    reads_only = True
    shared: Context

    def inputs(self, rng: random.Random) -> Listing:
        folder = INBOX if rng.random() < _INBOX_SHARE else 1 + int(rng.random() * len(FOLDERS))
        return Listing(self.shared.mailbox(rng), folder)

    def execute(self, session: Session, inputs: tuple) -> Outcome:
        session.call("list_folder", (*inputs, MOST), commits=False)
        return Outcome.COMMITTED


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
    """Deliver-Message: a new message comes into a mailbox."""

    name = "deliver_message"
    frames: ClassVar = {"deliver_message": 6}
    call_isolation = Isolation.READ_COMMITTED
    shared: Context

    def inputs(self, rng: random.Random) -> Delivery:
        folder = SENT if rng.random() < _SENT_SHARE else INBOX
        return Delivery(self.shared.mailbox(rng), folder, *self.shared.new.message(rng))

    def execute(self, session: Session, inputs: tuple) -> Outcome:
        mailbox, folder, *message = inputs
        session.call("deliver_message", (mailbox, folder, as_text(self.shared.clock.now()), *message))
        return Outcome.COMMITTED


class DeleteMessage(Transaction):
    """Delete-Message: a message goes.

    A mailbox keeps its size within a tenth: two messages go from one that holds more, and none, a rollback, from one
    that holds fewer.
    """

    name = "delete_message"
    frames: ClassVar = {"delete_message": 2}
    call_isolation = Isolation.READ_COMMITTED
    shared: Context

    def inputs(self, rng: random.Random) -> Place:
        return self.shared.place(rng)

    def execute(self, session: Session, inputs: tuple) -> Outcome:
        [(deleted,)] = session.call("delete_message", inputs)
        return Outcome.COMMITTED if deleted else Outcome.ROLLED_BACK


_BODY_SHARE = 0.2


class Update(NamedTuple):
    """The inputs. Without a body the message is marked."""

    mailbox: int
    place: int
    body: str | None = None


class UpdateMessage(Transaction):
    """Update-Message: a message is marked as read or unread, or its body is replaced by another."""

    name = "update_message"
    frames: ClassVar = {"update_message_mark": 2, "update_message_body": 3}
    call_isolation = Isolation.READ_COMMITTED
    shared: Context

    def inputs(self, rng: random.Random) -> Update:
        body = self.shared.new.body(rng) if rng.random() < _BODY_SHARE else None
        return Update(*self.shared.place(rng), body)

    def execute(self, session: Session, inputs: tuple) -> Outcome:
        *where, body = inputs
        if body is None:
            session.call("update_message_mark", where)
        else:
            session.call("update_message_body", (*where, body))
        return Outcome.COMMITTED


class Move(NamedTuple):
    mailbox: int
    place: int
    folder: int


class MoveMessage(Transaction):
    """Move-Message: a message goes into another folder of its mailbox."""

    name = "move_message"
    frames: ClassVar = {"move_message": 3}
    call_isolation = Isolation.READ_COMMITTED
    shared: Context

    def inputs(self, rng: random.Random) -> Move:
        return Move(*self.shared.place(rng), 1 + int(rng.random() * len(FOLDERS)))

    def execute(self, session: Session, inputs: tuple) -> Outcome:
        session.call("move_message", inputs)
        return Outcome.COMMITTED


CHUNK_BYTES = 256 * 1024
EVERY_S = 0.25  # so at most 1 MiB/s


class BackgroundScan(Transaction):
    """Background-Scan: all bodies are read one after the other for a checksum, over and over, at a limited rate.

    A mail server does so to find damage; each cell has a scan of its own mailboxes. The rate holds over time: bodies
    are read whole, and the bytes beyond one turn are subtracted from the next ones.
    """

    name = "background_scan"
    frames: ClassVar = {"background_scan": 3}
    reads_only = True
    shared: Context

    def inputs(self, rng: random.Random) -> tuple[()]:
        """Return no inputs: it continues where it has been."""
        return ()

    def execute(self, session: Session, inputs: tuple) -> Outcome:
        position, mailboxes = self.shared.scan, self.shared.mailboxes
        budget = max(1, CHUNK_BYTES - position.ahead)
        [(last, size, _)] = session.call("background_scan", (position.mailbox, position.message, budget), commits=False)
        if last is None:
            following = position.mailbox + 1
            position.mailbox, position.message = following if following in mailboxes else mailboxes.start, 1
            return Outcome.COMMITTED
        position.message = last + 1
        position.ahead = max(0, position.ahead + size - CHUNK_BYTES)
        return Outcome.COMMITTED


# One call in ten then comes upon another in the mailbox, and waits if both change something.
MAILBOXES_PER_USER = 10


def _numbers(scale: Mapping[str, Any]) -> dict[str, int]:
    messages = scale["messages"]
    return {
        "mailboxes": scale["mailboxes"],
        "messages": messages,
        "folders": len(FOLDERS),
        "least": messages - leeway(messages),
        "most": messages + leeway(messages),
    }


def _contention(scale: Mapping[str, Any], users: int) -> str | None:
    """Return a sentence where mailboxes, whose rows each change locks, are too few for the users; None otherwise."""
    enough = MAILBOXES_PER_USER * users
    if scale["mailboxes"] >= enough:
        return None
    return (
        f"{users:,} users share {scale['mailboxes']:,} mailboxes, whose rows are locked by each change: they wait for "
        f"each other and not for storage alone; use at least {enough:,} mailboxes."
    )


WORKLOAD = Workload(
    name="mail",
    version=2,
    schema="mail",
    tables="stallmark.schema.mail.tables",
    package=__name__,
    derived_from="Jetstress",
    called=("message_at",),
    cells_by="mailboxes",
    conditions=Condition.read_all(__name__),
    numbers=_numbers,
    check_mib_per_s=40,  # every body is read whole, page by page
    users=UserLoad(
        # About 60 % of the I/Os are reads, what Jetstress tunes its mix for; as many messages go as come. Of what a
        # folder shows between two and three messages are read.
        deck={ReadMessage: 52, ListFolder: 20, DeliverMessage: 17, DeleteMessage: 17, UpdateMessage: 9, MoveMessage: 5},
        share=open_context,
        counted={
            DeliverMessage: "SELECT SUM(CAST(mb_next AS bigint)) FROM mail.mailbox",
            DeleteMessage: "SELECT SUM(mb_deletes) FROM mail.mailbox",
            UpdateMessage: "SELECT SUM(mb_updates) FROM mail.mailbox",
            MoveMessage: "SELECT SUM(mb_moves) FROM mail.mailbox",
        },
        contention=_contention,
    ),
    background=Background(
        timers={BackgroundScan: EVERY_S},
        sessions_per_user=0.001,  # one for each load process, up to 1,000 users
        executed_by="the background scan",
    ),
)
