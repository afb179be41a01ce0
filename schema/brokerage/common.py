"""The metadata of the tables, and short functions for their columns.

Every column is required unless it says otherwise. `mean_bytes` is the mean length of a text, or of a number as
PostgreSQL stores it, in the data of the loaders: `schema.size` goes by it.
"""

from functools import partial
from typing import Any

from sqlalchemy import BigInteger, Column, DateTime, MetaData, Numeric, String
from sqlalchemy.dialects.mssql import DATETIME2

from stallmark.schema.placement.design import GROWING

METADATA = MetaData(
    schema="brokerage",
    naming_convention={
        "pk": "%(table_name)s_pkey",
        "fk": "%(table_name)s_%(column_0_name)s_fkey",
        "ix": "%(table_name)s_%(column_0_N_name)s_idx",
        "ck": "%(table_name)s_%(constraint_name)s_check",
    },
)

MOMENT = DateTime().with_variant(DATETIME2(3), "mssql")

# `info` of a table to which a run adds rows; the others keep their size, so a design may place these apart.
GROWS = {GROWING: True}

# PostgreSQL 18 vacuums a table that was frozen, as after a load, once 1,000 rows have come: all of it and its indexes,
# however large. Updates still start a vacuum: where a fifth of the rows has changed.
RARELY_VACUUMED = {"autovacuum_vacuum_insert_threshold": 1_000_000}

# Trade-Update changes rows of any age: with 5 % of a page free their new versions stay on it and need no index entry.
# At 100 / 95 / 90 %: 37 / 52 / 53 % of the updates of trade, 2.71 / 2.45 / 2.45 writes per transaction.
UPDATED = RARELY_VACUUMED | {"fillfactor": 95}

# Keys are the loader's: no engine makes one up.
column = partial(Column, nullable=False, autoincrement=False)


def text(name: str, longest: int, mean_bytes: int, *more: Any, **options: Any) -> Column[str]:
    return column(name, String(longest), *more, info={"mean_bytes": mean_bytes}, **options)


def symbol(name: str, *more: Any, **options: Any) -> Column[str]:
    return text(name, 15, 5, *more, **options)


def amount(name: str, digits: int, mean_bytes: int, *more: Any, **options: Any) -> Column[Any]:
    """Return a column of dollars and cents."""
    return column(name, Numeric(digits, 2), *more, info={"mean_bytes": mean_bytes}, **options)


def price(name: str, **options: Any) -> Column[Any]:
    return amount(name, 8, 7, **options)


def key(name: str, *more: Any, **options: Any) -> Column[int]:
    """Return a column of a key; keys begin above 4,300,000,000."""
    return column(name, BigInteger, *more, **options)
