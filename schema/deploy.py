"""The order in which a database comes to be, the same for every workload.

    create_tables   Stallmark's own, then the workload's, bare: heaps without a key are the fastest to load
    … the load …
    finish          primary keys and indexes in parallel → foreign keys → procedures → statistics

Every step looks at what is there and adds what is missing, so a build that was interrupted goes on where it
stopped.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import sqlalchemy as sa
from sqlalchemy.schema import AddConstraint, Constraint, CreateIndex, CreateSchema, Index

from stallmark.driver.engines.base import Engine
from stallmark.driver.engines.errors import CallFailed, StallmarkError

Item = TypeVar("Item")

_DRIVERS = {"postgresql": "postgresql+psycopg://", "mssql": "mssql+pyodbc://"}

# Held by the session: gone with it, whatever happens to the process.
_LOCK = {
    "postgresql": "SELECT pg_advisory_lock(hashtext('stallmark.build'))",
    "mssql": "EXEC sp_getapplock "
    "@Resource = 'stallmark.build', @LockMode = 'Exclusive', @LockOwner = 'Session'",
}


@contextmanager
def connected(engine: Engine) -> Iterator[sa.Connection]:
    """A SQLAlchemy connection in autocommit over the engine's own, for DDL and Stallmark's tables."""
    pool = sa.create_engine(
        _DRIVERS[engine.dialect], creator=engine.connect, poolclass=sa.NullPool, isolation_level="AUTOCOMMIT"
    )
    try:
        with pool.connect() as connection:
            yield connection
    except sa.exc.DBAPIError as error:
        raise engine.failure(error.orig or error) from error


@contextmanager
def exclusive(engine: Engine) -> Iterator[None]:
    """Only one build at a time prepares or finishes a database; loaders of several machines wait here."""
    with engine.cursor() as cursor:
        cursor.execute(_LOCK[engine.dialect])
        yield


@contextmanager
def failing_in_words(engine: Engine, what: str) -> Iterator[None]:
    """Turn an error of the server or its driver into a sentence: `what`, the reason, and what to do."""
    dialect = sa.make_url(_DRIVERS[engine.dialect]).get_dialect()
    try:
        yield
    except (dialect.import_dbapi().Error, CallFailed) as error:
        message = error.message if isinstance(error, CallFailed) else error
        reason = str(message).strip().splitlines()
        raise StallmarkError(
            f"{what} failed: {reason[0].rstrip('.') if reason else 'no reason given'}. "
            "What was done is kept: the same build again continues."
        ) from error


def create_tables(engine: Engine, metadata: sa.MetaData) -> None:
    """Create the schema of `metadata` and its tables, those that are not there."""
    with connected(engine) as connection:
        if metadata.schema not in sa.inspect(connection).get_schema_names():
            connection.execute(CreateSchema(str(metadata.schema)))
        for table in metadata.sorted_tables:
            table.create(connection, checkfirst=True)


def finish(
    engine: Engine, parts: "Parts", procedures: str, *, workers: int = 1, step: Callable[[str], None]
) -> None:
    """Everything after the load, in order; `step` is told what begins."""
    step("keys and indexes")
    _in_parallel(workers, lambda item: _add(engine, item), parts.keys)
    if parts.foreign_keys:
        step("foreign keys")
        for constraint in parts.foreign_keys:
            _add(engine, constraint)
    step("procedures")
    for batch in batches(procedures):
        engine.execute(batch)
    step("statistics")
    _in_parallel(workers, lambda table: engine.settle(table.fullname), parts.tables.sorted_tables)


@dataclass(frozen=True)
class Parts:
    """A copy of a schema in the order of deployment. The keys are not part of the tables any more."""

    tables: sa.MetaData
    keys: Sequence[Constraint | Index]
    foreign_keys: Sequence[Constraint]


def take_apart(metadata: sa.MetaData) -> Parts:
    copy = sa.MetaData(schema=metadata.schema, naming_convention=metadata.naming_convention)
    keys: list[Constraint | Index] = []
    foreign_keys: list[Constraint] = []
    for original in metadata.sorted_tables:
        table = original.to_metadata(copy)
        keys += sorted(table.indexes, key=lambda index: str(index.name))
        table.indexes.clear()
        for constraint in sorted(table.constraints, key=lambda c: str(c.name)):
            match constraint:
                case sa.ForeignKeyConstraint():
                    foreign_keys.append(constraint)
                case sa.PrimaryKeyConstraint() if len(constraint.columns):
                    keys.insert(0, constraint)
                case sa.UniqueConstraint():
                    keys.append(constraint)
                case _:
                    continue  # a check costs little inline, and a scan of the table afterwards
            AddConstraint(constraint)  # keeps it out of CREATE TABLE
    return Parts(copy, keys, foreign_keys)


def batches(procedures: str) -> list[str]:
    """The batches of a script: separated by GO lines as in T-SQL tools, one batch without any."""
    return [text for text in re.split(r"(?im)^[ \t]*GO[ \t]*$", procedures) if text.strip()]


def _add(engine: Engine, item: Index | Constraint) -> None:
    table = item.table
    assert table is not None
    with connected(engine) as connection:
        look = sa.inspect(connection)
        schema = table.schema
        match item:
            case sa.PrimaryKeyConstraint():
                present = {look.get_pk_constraint(table.name, schema)["name"]} - {None}
            case sa.UniqueConstraint():
                # SQL Server's dialect knows them as indexes only.
                listed = look.get_indexes if engine.dialect == "mssql" else look.get_unique_constraints
                present = {found["name"] for found in listed(table.name, schema)}
            case sa.ForeignKeyConstraint():
                present = {found["name"] for found in look.get_foreign_keys(table.name, schema)}
            case _:
                present = {found["name"] for found in look.get_indexes(table.name, schema)}
        if not present & {str(_name(item, connection))}:
            connection.execute(CreateIndex(item) if isinstance(item, Index) else AddConstraint(item))


def _in_parallel(workers: int, action: Callable[[Item], None], items: Sequence[Item]) -> None:
    with ThreadPoolExecutor(workers) as pool:
        for done in [pool.submit(action, item) for item in items]:
            done.result()


def _name(item: Index | Constraint, connection: sa.Connection) -> str:
    preparer = connection.dialect.identifier_preparer
    formatted = preparer.format_index(item) if isinstance(item, Index) else preparer.format_constraint(item)
    return str(formatted).strip('"[]')
