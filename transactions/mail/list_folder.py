"""List-Folder: someone opens a folder and sees its newest messages, without their bodies."""

import random
from typing import ClassVar, NamedTuple

from stallmark.engines.base import Session
from stallmark.schema.mail.scale import FOLDERS, INBOX
from stallmark.transactions.mail.context import Context
from stallmark.transactions.workload import Outcome, Transaction

MOST = 50
"""The messages that a window shows."""
_INBOX_SHARE = 0.6  # the rest is of all folders alike


class Listing(NamedTuple):
    mailbox: int
    folder: int


class ListFolder(Transaction):
    name = "list_folder"
    frames: ClassVar = {"list_folder": 3}
    reads_only = True

    def __init__(self, context: Context):
        super().__init__(context)
        self._context = context

    def inputs(self, rng: random.Random) -> Listing:
        folder = INBOX if rng.random() < _INBOX_SHARE else 1 + int(rng.random() * len(FOLDERS))
        return Listing(self._context.mailbox(rng), folder)

    def execute(self, session: Session, inputs: tuple) -> Outcome:
        session.call("list_folder", (*inputs, MOST), commits=False)
        return Outcome.COMMITTED
