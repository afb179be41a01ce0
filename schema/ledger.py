"""Stallmark's own tables in a loaded database: what it holds, and which batches are in.

`stallmark.database` is one row by which a database is recognised; `stallmark.ledger` has a row per loaded
batch, written in the transaction of the batch itself, so that a killed load loses and doubles nothing.
"""

from sqlalchemy import BigInteger, Boolean, CheckConstraint, Column, Float, Integer, MetaData, String, Table

METADATA = MetaData(schema="stallmark")

DATABASE = Table(
    "database",
    METADATA,
    Column("only_row", Integer, primary_key=True, autoincrement=False),
    Column("workload", String(40), nullable=False),
    Column("version", Integer, nullable=False),
    Column("scale", String(400), nullable=False),  # JSON with sorted keys
    Column("seed", BigInteger, nullable=False),
    Column("options", String(400), nullable=False),  # JSON with sorted keys: what else decides the data
    Column("loaded_bytes", BigInteger),  # its size when it was loaded, keyed and analysed; NULL until then
    Column("compressibility", Float),  # as loaded, to one; NULL where the server shows no pages
    Column("driven", Boolean, nullable=False),  # load has been driven against it since
    CheckConstraint("only_row = 1", name="database_only_row"),
)
LEDGER = Table(
    "ledger",
    METADATA,
    Column("table_group", String(40), primary_key=True),
    Column("batch", Integer, primary_key=True, autoincrement=False),
    Column("row_count", BigInteger),  # NULL while the batch has begun and is not in
    Column("byte_count", BigInteger),  # as sent to the server
)
