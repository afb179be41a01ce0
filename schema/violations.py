"""Find the rows that keep a key or a foreign key from being created."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import sqlalchemy as sa
from sqlalchemy.schema import Constraint, Index

from stallmark.engines.base import Engine
from stallmark.errors import StallmarkError
from stallmark.schema.keys import table_of

SHOWN_ROWS = 3

# Of a foreign key, and of a key that is made: PostgreSQL, SQL Server.
_VIOLATED = {"23503", "547", "23505", "1505"}


@contextmanager
def named(engine: Engine, connection: sa.Connection, item: Constraint | Index) -> Iterator[None]:
    """Raise StallmarkError with the first offending rows where `item` cannot be created because of them."""
    try:
        yield
    except sa.exc.DBAPIError as error:
        if engine.failure(error.orig or error).code not in _VIOLATED:
            raise
        said = _orphans(connection, item) if isinstance(item, sa.ForeignKeyConstraint) else _doubles(connection, item)
        if said is None:
            raise
        raise StallmarkError(f"{said}: mend them and build again, or drop the database and build it anew.") from None


def _orphans(connection: sa.Connection, key: sa.ForeignKeyConstraint) -> str | None:
    table = table_of(key)
    children, parents = [e.parent for e in key.elements], [e.column for e in key.elements]
    shown = list(dict.fromkeys((*table.primary_key.columns, *children)))
    same = [parent == child for parent, child in zip(parents, children, strict=True)]
    rows = connection.execute(
        sa.select(*shown)
        .where(*(child.is_not(None) for child in children), ~sa.exists().where(*same))
        .order_by(*shown)
        .limit(SHOWN_ROWS)
    ).all()
    listed = "; ".join(_values(shown, row) for row in rows)
    names = ", ".join(child.name for child in children)
    are = "is" if len(children) == 1 else "are"
    whose = f"{table.fullname} has rows whose {names} {are} not in {parents[0].table.fullname}"
    return f"{whose}, the first with {listed}" if rows else None


def _doubles(connection: sa.Connection, key: Constraint | Index) -> str | None:
    table, columns = table_of(key), list(key.columns)  # type: ignore[union-attr]
    rows = connection.execute(
        sa.select(*columns, sa.func.count())
        .where(*(column.is_not(None) for column in columns))
        .group_by(*columns)
        .having(sa.func.count() > 1)
        .order_by(*columns)
        .limit(SHOWN_ROWS)
    ).all()
    listed = "; ".join(f"{_values(columns, row[:-1])} ({row[-1]} rows)" for row in rows)
    same = f"{table.fullname} has several rows with the same {', '.join(column.name for column in columns)}"
    return f"{same}, the first {listed}" if rows else None


def _values(columns: Sequence[sa.Column], row: Sequence) -> str:
    return ", ".join(f"{column.name} {value}" for column, value in zip(columns, row, strict=True))
