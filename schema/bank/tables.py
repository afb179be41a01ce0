"""The bank database: branches, tellers, accounts and a history, as TPC-B has them and pgbench makes them.

Columns, types and sizes are pgbench's, so that its built-in script with `pgbench_` replaced by `bank.` is an exact peer
of our transaction on the same tables. Two things are deliberate:

* No foreign keys: pgbench makes none unless asked (`--foreign-keys`), and each would add a lock on a parent
  row per transaction that the peer does not take. A consistency condition checks the references instead.
* Fillers of branches, tellers and accounts hold generated text. pgbench leaves them blank or null, and a
  storage array with inline compression would store blanks in next to nothing. A history row's filler stays
  null, because the peer's script does not write it.
"""

from sqlalchemy import CHAR, Column, DateTime, Integer, MetaData, Table
from sqlalchemy.dialects.mssql import DATETIME2

from stallmark.schema.placement import GROWING

METADATA = MetaData(
    schema="bank", naming_convention={"pk": "%(table_name)s_pkey", "fk": "%(table_name)s_%(column_0_name)s_fkey"}
)

BRANCHES = Table(
    "branches",
    METADATA,
    Column("bid", Integer, primary_key=True, autoincrement=False),
    Column("bbalance", Integer),
    Column("filler", CHAR(88)),
)
TELLERS = Table(
    "tellers",
    METADATA,
    Column("tid", Integer, primary_key=True, autoincrement=False),
    Column("bid", Integer),
    Column("tbalance", Integer),
    Column("filler", CHAR(84)),
)
ACCOUNTS = Table(
    "accounts",
    METADATA,
    Column("aid", Integer, primary_key=True, autoincrement=False),
    Column("bid", Integer),
    Column("abalance", Integer),
    Column("filler", CHAR(84)),
)
HISTORY = Table(
    "history",
    METADATA,
    Column("tid", Integer),
    Column("bid", Integer),
    Column("aid", Integer),
    Column("delta", Integer),
    Column("mtime", DateTime().with_variant(DATETIME2(), "mssql")),
    Column("filler", CHAR(22)),
    info={GROWING: True},
)
