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

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    DateTime,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
)
from sqlalchemy.dialects.mssql import DATETIME2

from stallmark.schema.columns import NAMING, column, text
from stallmark.schema.mail import MEAN_BYTES
from stallmark.schema.placement import GROWING
from stallmark.schema.size import Article

METADATA = MetaData(schema="mail", naming_convention=NAMING)

_SOON = {"autovacuum_vacuum_scale_factor": 0.02}

MAILBOX = Table(
    "mailbox",
    METADATA,
    column("mb_id", Integer, primary_key=True),
    text("mb_address", 60, 26),
    column("mb_first", Integer),  # number of its oldest message
    column("mb_next", Integer),  # number of the next one that is delivered
    column("mb_messages", Integer),
    column("mb_least", Integer),  # messages: below that none is deleted
    column("mb_most", Integer),  # above that a delete takes two
    column("mb_deletes", BigInteger),  # transactions, since the load
    column("mb_updates", BigInteger),
    column("mb_moves", BigInteger),
    CheckConstraint("mb_messages >= mb_least AND mb_least > 0", name="mb_messages"),
)
FOLDER = Table(
    "folder",
    METADATA,
    column("fo_mb_id", Integer, ForeignKey("mailbox.mb_id")),
    column("fo_id", SmallInteger),
    text("fo_name", 20, 8),
    column("fo_messages", Integer),
    column("fo_unread", Integer),
    column("fo_bytes", BigInteger),
    PrimaryKeyConstraint("fo_mb_id", "fo_id"),
    CheckConstraint("fo_unread >= 0 AND fo_unread <= fo_messages", name="fo_unread"),
    CheckConstraint("fo_bytes >= 0", name="fo_bytes"),
)
MESSAGE = Table(
    "message",
    METADATA,
    column("me_mb_id", Integer),
    column("me_id", Integer),
    column("me_fo_id", SmallInteger),
    column("me_received", DateTime().with_variant(DATETIME2(3), "mssql")),
    text("me_sender", 60, 19),
    text("me_subject", 70, 48),
    column("me_read", Boolean),
    column("me_bytes", Integer),
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
    column("bo_mb_id", Integer),
    column("bo_me_id", Integer),
    column("bo_text", Article(), info={"mean_bytes": MEAN_BYTES}),
    PrimaryKeyConstraint("bo_mb_id", "bo_me_id"),
    postgresql_with=_SOON | {f"toast.{name}": value for name, value in _SOON.items()},
    info={GROWING: True},
)
