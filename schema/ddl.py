"""The DDL of a schema, of one workload or several: bare tables first, their keys later, and rows in the way of one."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import mssql, postgresql
from sqlalchemy.schema import AddConstraint, Constraint, Index

from stallmark.engines import sql_file
from stallmark.engines.base import Engine
from stallmark.errors import StallmarkError

# The DDL of a schema, split so that tables can be loaded bare and get their keys afterwards.


@dataclass(frozen=True)
class Ddl:
    """A copy of a schema in the order of deployment. The keys are not part of the tables any more."""

    tables: sa.MetaData
    keys: Sequence[Constraint | Index]
    foreign_keys: Sequence[sa.ForeignKeyConstraint]


def ddl_of(metadata: sa.MetaData) -> Ddl:
    copy = sa.MetaData(schema=metadata.schema, naming_convention=metadata.naming_convention)
    keys: list[Constraint | Index] = []
    foreign_keys: list[sa.ForeignKeyConstraint] = []
    for original in metadata.sorted_tables:
        table = original.to_metadata(copy)
        keys += sorted(table.indexes, key=lambda index: str(index.name))
        table.indexes.clear()
        for constraint in sorted(table.constraints, key=lambda c: str(c.name)):
            match constraint:
                case sa.ForeignKeyConstraint():
                    # Checked afterwards, when PostgreSQL needs no lock on the parent.
                    constraint.dialect_options["postgresql"]["not_valid"] = True
                    foreign_keys.append(constraint)
                case sa.PrimaryKeyConstraint() if len(constraint.columns):
                    keys.insert(0, constraint)
                case sa.UniqueConstraint():
                    keys.append(constraint)
                case _:
                    continue  # a check costs little inline, and a scan of the table afterwards
            AddConstraint(constraint)  # keeps it out of CREATE TABLE
    return Ddl(copy, keys, foreign_keys)


# The tables of several workloads in one database, each in its own schema.


def combined_metadata(parts: Sequence[sa.MetaData]) -> sa.MetaData:
    """Return metadata without a schema of its own: each table keeps the one it has."""
    all_of_them = sa.MetaData(naming_convention=parts[0].naming_convention)
    for part in parts:
        for table in part.sorted_tables:
            table.to_metadata(all_of_them, schema=str(table.schema), referred_schema_fn=_table_schema)
    return all_of_them


def _table_schema(table: sa.Table, schema: str | None, *_: Any) -> str | None:
    """Return the schema of a foreign key: that of its table, because it names none."""
    return schema


# Find the keys, indexes and foreign keys of a schema that are missing or not trusted.


_DIALECTS: dict[str, sa.Dialect] = {"postgresql": postgresql.dialect(), "mssql": mssql.dialect()}

# Babelfish lists an index as <name><table><digest>, and keeps of what is too long this many characters and a digest.
_KEPT_BY_BABELFISH = 31


def present(engine: Engine, schema: str) -> dict[tuple[str, str], bool]:
    """Return, by table and name, whether the server trusts a key, index or check: it knows that all rows fulfil it."""
    sql = sql_file.read(__package__, f"present_keys.{engine.dialect}")
    return {(table, name): bool(trusted) for table, name, trusted in engine.query(sql, [schema])}


def defects(engine: Engine, schema: str, items: Iterable[Constraint | Index]) -> list[str]:
    """Return a phrase for each of `items` that is missing in a schema or not trusted."""
    existing = present(engine, schema)
    digested = engine.identity().product == "Babelfish"

    def is_there(table: str, name: str) -> bool:
        return (table, name) in existing or (
            digested and any(t == table and n.startswith(name[:_KEPT_BY_BABELFISH]) for t, n in existing)
        )

    of_schema = [item for item in items if table_of(item).schema == schema]
    wanted = sorted((table_of(item).name, name_of(item, engine.dialect)) for item in of_schema)
    missing = [f"{schema}.{table}: {name} is missing" for table, name in wanted if not is_there(table, name)]
    untrusted = [
        f"{schema}.{table}: {name} is disabled or was never checked"
        for (table, name), trusted in sorted(existing.items())
        if not trusted
    ]
    return missing + untrusted


def table_of(item: Index | Constraint | sa.Table) -> sa.Table:
    table = item if isinstance(item, sa.Table) else item.table
    assert table is not None
    return table


def name_of(item: Index | Constraint, dialect: str) -> str:
    """Return the name as the server has it: longer ones are cut."""
    preparer = _DIALECTS[dialect].identifier_preparer
    formatted = preparer.format_index(item) if isinstance(item, Index) else preparer.format_constraint(item)
    return str(formatted).strip('"[]')


# Find the rows that keep a key or a foreign key from being created.

SHOWN_ROWS = 3

# Of a foreign key, and of a key that is made: PostgreSQL, SQL Server.
_VIOLATED = {"23503", "547", "23505", "1505"}


@contextmanager
def name_violations(engine: Engine, connection: sa.Connection, item: Constraint | Index) -> Iterator[None]:
    """Raise StallmarkError with the first offending rows if these keep `item` from being created."""
    try:
        yield
    except sa.exc.DBAPIError as error:
        if engine.failure(error.orig or error).code not in _VIOLATED:
            raise
        examples = (
            _orphans(connection, item) if isinstance(item, sa.ForeignKeyConstraint) else _doubles(connection, item)
        )
        if examples is None:
            raise
        raise StallmarkError(
            f"{examples}: mend them and build again, or drop the database and build it again."
        ) from None


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
