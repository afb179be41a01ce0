"""The tables of the mail store.

* A mailbox's row is the first that every change of the mailbox locks, so no two changes wait for each other in a
  circle. It counts the changes, which `counted` of the workload reads.
* A message is found by its number in its mailbox, which counts up with each delivery. The messages of a mailbox are
  stored together; an index has the messages of each folder.
* Bodies are stored apart from the rest of a message, so that a change of a message does not move its body. A body too
  large for a row is stored outside: PostgreSQL does so from 2 KB (TOAST), SQL Server from 8 KB.
* Space of deleted messages is used again soon, so the store does not grow: PostgreSQL vacuums messages and bodies once
  2 % were deleted, not 20 %.
* A body has no foreign key to its message: a delete would have to take the body first, against the order in which
  readers lock. A consistency condition checks the reference instead.
"""

from functools import partial

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    SmallInteger,
    String,
    Table,
)
from sqlalchemy.dialects.mssql import DATETIME2

from stallmark.schema.mail import MEAN_BYTES
from stallmark.schema.placement import GROWING
from stallmark.schema.size import Article

METADATA = MetaData(
    schema="mail",
    naming_convention={
        "ix": "%(table_name)s_%(column_0_N_name)s_idx",
        "pk": "%(table_name)s_pkey",
        "fk": "%(table_name)s_%(column_0_name)s_fkey",
        "ck": "%(table_name)s_%(constraint_name)s_check",
    },
)

_SOON = {"autovacuum_vacuum_scale_factor": 0.02}

_column = partial(Column, nullable=False, autoincrement=False)


def _text(name: str, longest: int, mean_bytes: int) -> Column[str]:
    return _column(name, String(longest), info={"mean_bytes": mean_bytes})


MAILBOX = Table(
    "mailbox",
    METADATA,
    _column("mb_id", Integer, primary_key=True),
    _text("mb_address", 60, 26),
    _column("mb_first", Integer),  # number of its oldest message
    _column("mb_next", Integer),  # number of the next one that is delivered
    _column("mb_messages", Integer),
    _column("mb_least", Integer),  # messages: below that none is deleted
    _column("mb_most", Integer),  # above that a delete takes two
    _column("mb_deletes", BigInteger),  # transactions, since the load
    _column("mb_updates", BigInteger),
    _column("mb_moves", BigInteger),
    CheckConstraint("mb_messages >= mb_least AND mb_least > 0", name="mb_messages"),
)
FOLDER = Table(
    "folder",
    METADATA,
    _column("fo_mb_id", Integer, ForeignKey("mailbox.mb_id")),
    _column("fo_id", SmallInteger),
    _text("fo_name", 20, 8),
    _column("fo_messages", Integer),
    _column("fo_unread", Integer),
    _column("fo_bytes", BigInteger),
    PrimaryKeyConstraint("fo_mb_id", "fo_id"),
    CheckConstraint("fo_unread >= 0 AND fo_unread <= fo_messages", name="fo_unread"),
    CheckConstraint("fo_bytes >= 0", name="fo_bytes"),
)
MESSAGE = Table(
    "message",
    METADATA,
    _column("me_mb_id", Integer),
    _column("me_id", Integer),
    _column("me_fo_id", SmallInteger),
    _column("me_received", DateTime().with_variant(DATETIME2(3), "mssql")),
    _text("me_sender", 60, 19),
    _text("me_subject", 70, 48),
    _column("me_read", Boolean),
    _column("me_bytes", Integer),
    PrimaryKeyConstraint("me_mb_id", "me_id"),
    ForeignKeyConstraint(["me_mb_id", "me_fo_id"], ["folder.fo_mb_id", "folder.fo_id"]),
    CheckConstraint("me_bytes > 0", name="me_bytes"),
    Index(None, "me_mb_id", "me_fo_id", "me_id"),
    postgresql_with=_SOON,
    info={GROWING: True},
)
BODY = Table(
    "body",
    METADATA,
    _column("bo_mb_id", Integer),
    _column("bo_me_id", Integer),
    _column("bo_text", Article(), info={"mean_bytes": MEAN_BYTES}),
    PrimaryKeyConstraint("bo_mb_id", "bo_me_id"),
    postgresql_with=_SOON | {f"toast.{name}": value for name, value in _SOON.items()},
    info={GROWING: True},
)
