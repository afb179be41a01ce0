"""The mail store's rows: mailboxes with ten folders each, and as many messages in every mailbox.

A batch of the ledger is some neighbouring mailboxes whole, about 64 MB. Messages are numbered through in their mailbox,
in the order in which they were received over a year.
"""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stallmark.errors import StallmarkError
from stallmark.loaders import Batch, Loader, Piece, Scale, TableGroup, digits, finite, rows_of_batch
from stallmark.schema import words
from stallmark.schema.draw import Bools, Ints, percent, whole
from stallmark.schema.mail import (
    FEWEST_MESSAGES,
    FOLDERS,
    MAILBOXES,
    MEAN_BYTES,
    MESSAGES,
    MOST_MAILBOXES,
    MOST_MESSAGES,
    leeway,
)
from stallmark.schema.mail.messages import MAILBOX_NUMBERS, bodies, senders, sizes, subjects
from stallmark.schema.words import COMPRESSIBILITIES, COMPRESSIBILITY, chosen

_BATCH_BYTES, _PIECE_BYTES = 64_000_000, 16_000_000
_UPTO = (40, 60, 70, 72, 82, 86, 90, 94, 97)  # per cent of the messages, folder by folder; the last one has the rest
_READ_PERCENT = 90
_FIRST_DAY, _YEAR_MS = np.datetime64("2025-01-01", "ms"), 365 * 24 * 3600 * 1000


class MailLoader(Loader):
    example = f"mailboxes={MAILBOXES}"
    measures: ClassVar = ("mailboxes", "messages", "compressibility")

    @property
    def options(self) -> dict[str, Any]:
        return {"words": words.digest()}

    def scale(self, given: Scale) -> dict[str, Any]:
        wanted = {"mailboxes": MAILBOXES, "messages": MESSAGES, "compressibility": COMPRESSIBILITY, **given}
        if unknown := set(given) - set(self.measures):
            raise StallmarkError(f"The scale of mail has no {sorted(unknown)[0]!r}: it is `mailboxes: N, messages: M`.")
        for name, least, most, default in (
            ("mailboxes", 1, MOST_MAILBOXES, MAILBOXES),
            ("messages", FEWEST_MESSAGES, MOST_MESSAGES, MESSAGES),
        ):
            if type(wanted[name]) is not int or not least <= wanted[name] <= most:
                of_what = "Mail is scaled by" if name == "mailboxes" else "Each mailbox is loaded with"
                raise StallmarkError(
                    f"{of_what} {name}, a whole number from {least:,} to {most:,}, not {wanted[name]!r}: "
                    f"write `{name}: {default}`."
                )
        ratio, (least_ratio, most_ratio) = finite(wanted["compressibility"]), COMPRESSIBILITIES
        if ratio is None or not least_ratio <= ratio <= most_ratio:
            raise StallmarkError(
                f"Bodies can be made compressible from {least_ratio:g} to {most_ratio:g} to one, "
                f"not {wanted['compressibility']!r}: write `compressibility: {COMPRESSIBILITY:g}`."
            )
        return wanted | {"compressibility": ratio}

    def groups(self, scale: Scale) -> list[TableGroup]:
        mailboxes, messages = scale["mailboxes"], scale["mailboxes"] * scale["messages"]
        rows = {"mailbox": mailboxes, "folder": mailboxes * len(FOLDERS), "message": messages, "body": messages}
        batches = -(-mailboxes // _mailboxes_per_batch(scale))
        return [TableGroup("mailboxes", batches, {f"mail.{table}": count for table, count in rows.items()})]

    def rows_of(self, scale: Scale, batch: Batch) -> Mapping[str, str]:
        first, count = rows_of_batch(scale["mailboxes"], _mailboxes_per_batch(scale), batch.number)
        keys = {"mailbox": "mb_id", "folder": "fo_mb_id", "message": "me_mb_id", "body": "bo_mb_id"}
        return {f"mail.{table}": f"{key} BETWEEN {first + 1} AND {first + count}" for table, key in keys.items()}

    def batch(self, seed: int, scale: Scale, batch: Batch) -> Iterator[Piece]:
        first, count = rows_of_batch(scale["mailboxes"], _mailboxes_per_batch(scale), batch.number)
        messages = scale["messages"]
        mailbox = 1 + first + np.arange(count)
        number = (mailbox[:, None] * MAILBOX_NUMBERS + np.arange(1, messages + 1)[None, :]).ravel()
        lengths = sizes(seed, number)
        folder = 1 + percent(seed, "mail folder", number, _UPTO)
        read = whole(seed, "mail read", number, 100) < _READ_PERCENT
        yield "mail.mailbox", _mailboxes(mailbox, messages)
        yield "mail.folder", _folders(mailbox, number, folder, read, lengths)
        for part in _parts(lengths):
            yield "mail.message", _messages(seed, number[part], folder[part], read[part], lengths[part], messages)
            yield "mail.body", _bodies(seed, number[part], lengths[part], scale["compressibility"])


def _mailboxes_per_batch(scale: Scale) -> int:
    """Return the number of mailboxes that a batch has."""
    return max(1, _BATCH_BYTES // (scale["messages"] * MEAN_BYTES))


def _mailboxes(mailbox: Ints, messages: int) -> pa.Table:
    def each(value: int) -> Ints:
        return np.full(len(mailbox), value)

    return pa.table(
        {
            "mb_id": _integers(mailbox),
            "mb_address": pc.binary_join_element_wise("mailbox", digits(mailbox, 7), "@example.com", ""),
            "mb_first": _integers(each(1)),
            "mb_next": _integers(each(messages + 1)),
            "mb_messages": _integers(each(messages)),
            "mb_least": _integers(each(messages - leeway(messages))),
            "mb_most": _integers(each(messages + leeway(messages))),
            "mb_deletes": each(0),
            "mb_updates": each(0),
            "mb_moves": each(0),
        }
    )


def _folders(mailbox: Ints, number: Ints, folder: Ints, read: Bools, lengths: Ints) -> pa.Table:
    """Return the folders of mailboxes, with message totals."""
    place = (number // MAILBOX_NUMBERS - mailbox[0]) * len(FOLDERS) + folder - 1
    folders = len(mailbox) * len(FOLDERS)
    total = np.zeros(folders, np.int64)
    np.add.at(total, place, lengths)
    which = np.tile(np.arange(len(FOLDERS)), len(mailbox))
    return pa.table(
        {
            "fo_mb_id": _integers(np.repeat(mailbox, len(FOLDERS))),
            "fo_id": (which + 1).astype(np.int16),
            "fo_name": chosen(FOLDERS, which),
            "fo_messages": _integers(np.bincount(place, minlength=folders)),
            "fo_unread": _integers(np.bincount(place[~read], minlength=folders)),
            "fo_bytes": total,
        }
    )


def _messages(seed: int, number: Ints, folder: Ints, read: Bools, lengths: Ints, messages: int) -> pa.Table:
    mailbox, within = np.divmod(number, MAILBOX_NUMBERS)
    apart_ms = _YEAR_MS // messages
    received = _FIRST_DAY + ((within - 1) * apart_ms + whole(seed, "mail received", number, apart_ms))
    return pa.table(
        {
            "me_mb_id": _integers(mailbox),
            "me_id": _integers(within),
            "me_fo_id": folder.astype(np.int16),
            "me_received": received,
            "me_sender": senders(seed, number),
            "me_subject": subjects(seed, number),
            "me_read": read,
            "me_bytes": _integers(lengths),
        }
    )


def _bodies(seed: int, number: Ints, lengths: Ints, compressibility: float) -> pa.Table:
    mailbox, within = np.divmod(number, MAILBOX_NUMBERS)
    return pa.table(
        {
            "bo_mb_id": _integers(mailbox),
            "bo_me_id": _integers(within),
            "bo_text": bodies(seed, number, lengths, compressibility),
        }
    )


def _parts(lengths: Ints) -> Iterator[slice]:
    """Yield consecutive parts whose bodies begin within the bytes of one piece."""
    piece = (np.cumsum(lengths) - lengths) // _PIECE_BYTES
    starts = np.flatnonzero(np.diff(piece, prepend=-1))
    for start, end in zip(starts, [*starts[1:], len(lengths)], strict=True):
        yield slice(start, end)


def _integers(values: Ints) -> np.ndarray:
    return values.astype(np.int32)


LOADER = MailLoader()
