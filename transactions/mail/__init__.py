"""The mail store: users read, receive, mark, delete and move messages, derived from what Jetstress does to one.

Not Jetstress, and not comparable with its results: another engine, pages of 8 KB, whole transactions that are on the
disk when they have ended.
"""

from collections.abc import Mapping
from typing import Any

from stallmark.schema.mail import FOLDERS, leeway
from stallmark.transactions.mail.operations import (
    EVERY_S,
    BackgroundScan,
    DeleteMessage,
    DeliverMessage,
    ListFolder,
    MoveMessage,
    ReadMessage,
    UpdateMessage,
    open_context,
)
from stallmark.transactions.workload import Background, Condition, UserLoad, Workload

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
