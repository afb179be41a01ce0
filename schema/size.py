"""Estimate the disk space of a table from its declaration, by the formulas of the two engines' page layouts.

PostgreSQL: manual, chapter "Database Physical Storage". SQL Server: "Estimate the size of a heap" and "… of a
clustered index" (its primary key holds the rows themselves, so it adds only its upper levels).
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy import String
from sqlalchemy.ext.compiler import compiles

# The column type of long texts.


class Article(String):
    """A text that no engine may compress. SQL Server leaves VARCHAR(max) outside the row uncompressed by itself."""


@compiles(Article, "postgresql")
def _article(article: Article, compiler: Any, **options: Any) -> str:
    return "TEXT STORAGE EXTERNAL"


PAGE = 8192

# What a server keeps of its log after a load: the max_wal_size of the embedded one.
LOG_BYTES = 4 * 1024**3


@dataclass(frozen=True)
class Estimate:
    """Disk space of a database, in bytes."""

    heap_bytes: int  # the rows alone
    data_bytes: int  # data with keys
    loaded_bytes: int  # also with the log of the load
    build_bytes: int  # peak of the build: also with the sorts of keys


def with_article_bytes(metadata: sa.MetaData, article_bytes: Mapping[str, int]) -> list[sa.Table]:
    """Return the tables; articles have these mean lengths, by full table name, in copies of their tables. Those of the
    other tables do not depend on the scale."""
    return [_copy(table, article_bytes.get(table.fullname)) for table in metadata.tables.values()]


def _copy(table: sa.Table, mean_bytes: int | None) -> sa.Table:
    if mean_bytes is None:
        return table
    copy = table.to_metadata(sa.MetaData(naming_convention=table.metadata.naming_convention))
    for column in copy.columns:
        if isinstance(column.type, Article):
            column.info = {"mean_bytes": mean_bytes}
    return copy


def table_bytes(table: sa.Table, rows: int, dialect: str) -> int:
    """Return the bytes of the table's rows, without keys, for `rows` rows."""
    if dialect == "mssql":
        return _pages(rows, 8096, _mssql_row(table.columns) + 2) * PAGE
    storage = table.dialect_options["postgresql"]["with"] or {}
    space = PAGE - 24 - PAGE * (100 - storage.get("fillfactor", 100)) // 100
    return _pages(rows, space, _aligned(24 + _postgres_data(table.columns)) + 4) * PAGE


def index_bytes(table: sa.Table, rows: int, dialect: str) -> int:
    """Return the bytes of the primary key and the indexes of the table, for `rows` rows."""
    keys: list[Sequence[sa.Column]] = [tuple(index.columns) for index in _indexes(table)]
    primary = tuple(table.primary_key.columns)
    if dialect == "mssql":
        # A clustered key adds its upper levels to the rows; every other index
        # carries the clustered key along.
        upper = math.ceil(table_bytes(table, rows, dialect) / 200) if primary else 0
        return upper + sum(_pages(rows, 8096, _mssql_row([*key, *primary]) + 2) for key in keys) * PAGE
    if primary:
        keys.append(primary)
    leaf_space = int((PAGE - 24 - 16) * 0.9)  # the fill factor of a B-tree
    leaves = sum(_pages(rows, leaf_space, _aligned(8 + _postgres_data(key)) + 4) for key in keys)
    return math.ceil(leaves * 1.01) * PAGE


def key_apart_bytes(table: sa.Table, rows: int) -> int:
    """Return the bytes of the primary key on SQL Server where it does not hold the rows, with its row locators."""
    # Bytes that locate a row in a columnstore; a clustering column with its uniquifier has the same size.
    locator = 8
    return _pages(rows, 8096, _mssql_row(table.primary_key.columns) + locator + 2) * PAGE


def sort_bytes(table: sa.Table, rows: int, dialect: str) -> int:
    """Return the temporary bytes needed while the largest index of the table is built."""
    if dialect == "mssql" and len(table.primary_key.columns):
        return table_bytes(table, rows, dialect)  # the heap is copied into the clustered index
    return index_bytes(table, rows, dialect)


def estimate(tables: Iterable[sa.Table], rows: Mapping[str, int], dialect: str, *, workers: int = 1) -> Estimate:
    """Estimate the database for `rows` by full table name; `workers` tables get their keys at once."""
    counted = [(table, rows.get(table.fullname, 0)) for table in tables]
    heaps = sum(table_bytes(table, count, dialect) for table, count in counted)
    keys = sum(index_bytes(table, count, dialect) for table, count in counted)
    sorts = sorted((sort_bytes(table, count, dialect) for table, count in counted), reverse=True)
    loaded = heaps + keys + min(heaps, LOG_BYTES)
    return Estimate(heaps, heaps + keys, loaded, loaded + sum(sorts[:workers]))


def _indexes(table: sa.Table) -> list[sa.Index]:
    return sorted(table.indexes, key=lambda index: str(index.name))


def _pages(rows: int, space: int, row_bytes: int) -> int:
    if row_bytes > space:  # kept outside the row in chunks, which fill their pages to 93 %
        return math.ceil(rows * row_bytes / (0.93 * space))
    return math.ceil(rows / (space // row_bytes))


def _aligned(size: int, to: int = 8) -> int:
    return -(-size // to) * to


def _mean_length(column: sa.Column) -> int:
    """Return the bytes of a text: its declared length, or the mean that the schema states where lengths vary.

    Numbers have such a mean, too: PostgreSQL stores the digits they have, SQL Server those they may have."""
    return int(column.info.get("mean_bytes", getattr(column.type, "length", None) or 0))


def _postgres_data(columns) -> int:
    size = 0
    for column in columns:
        match column.type:
            case sa.SmallInteger():
                size = _aligned(size, 2) + 2
            case sa.BigInteger() | sa.DateTime() | sa.Float():
                size = _aligned(size) + 8
            case sa.Integer() | sa.Date():
                size = _aligned(size, 4) + 4
            case sa.Boolean():
                size += 1
            case sa.Numeric() if "mean_bytes" in column.info:
                size += column.info["mean_bytes"]
            case sa.Numeric(precision=precision, scale=scale):
                whole, fraction = (precision or 16) - (scale or 0), scale or 0
                size += 3 + 2 * (math.ceil(whole / 4) + math.ceil(fraction / 4))
            case sa.String() | sa.Text() | sa.LargeBinary():
                length = _mean_length(column)
                size = size + 1 + length if length < 127 else _aligned(size, 4) + 4 + length
            case other:
                raise NotImplementedError(f"no size known for a column of type {other}")
    return size


def _mssql_row(columns) -> int:
    fixed, varying = 0, []
    for column in columns:
        match column.type:
            case sa.CHAR(length=length):
                fixed += length or 1
            case sa.SmallInteger():
                fixed += 2
            case sa.BigInteger() | sa.DateTime() | sa.Float():
                fixed += 8
            case sa.Integer():
                fixed += 4
            case sa.Date():
                fixed += 3
            case sa.Boolean():
                fixed += 1
            case sa.Numeric(precision=precision):
                fixed += 5 if (precision or 18) <= 9 else 9 if (precision or 18) <= 19 else 13
            case sa.String() | sa.Text() | sa.LargeBinary():
                varying.append(_mean_length(column))
            case other:
                raise NotImplementedError(f"no size known for a column of type {other}")
    count = len(list(columns))
    variable_part = 2 + 2 * len(varying) + sum(varying) if varying else 0
    return 4 + fixed + variable_part + 2 + (count + 7) // 8
