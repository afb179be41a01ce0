"""The order in which a database comes to be, the same for every workload.

    create_tables   Stallmark's own, then the workload's, bare: heaps without a key are the fastest to load
    … the load …
    finish          primary keys and indexes → foreign keys → procedures → statistics

What is there is looked up once and only what is missing is added, so a build that was interrupted goes on where it
stopped. Tables are worked on in parallel, the one with most to do first, but no two workers are at the same table:
they would wait for each other's locks, and SQL Server makes the other indexes twice if they are there before the
primary key.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import sqlalchemy as sa
from sqlalchemy.schema import AddConstraint, Constraint, CreateIndex, CreateSchema, Index

from stallmark.driver.engines import sql_file
from stallmark.driver.engines.base import Engine
from stallmark.driver.engines.errors import CallFailed, StallmarkError
from stallmark.schema import size

Item = TypeVar("Item")
OfTable = TypeVar("OfTable", bound=Index | Constraint | sa.Table)

SHOWN_ROWS = 3  # of those that break a foreign key

_DRIVERS = {"postgresql": "postgresql+psycopg://", "mssql": "mssql+pyodbc://"}

# Of SQL Server: an index, or anything else, with this name is there.
_THERE = {"1913", "2714"}

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
    engine: Engine,
    parts: "Parts",
    procedures: str,
    *,
    rows: Mapping[str, int],
    workers: int = 1,
    step: Callable[[str], None],
) -> None:
    """Everything after the load, in order; `step` is told what begins. `rows` are those loaded, by the tables' full
    names: by them the longest work comes first.

    Raises StallmarkError for a foreign key that does not hold, with its first rows.
    """

    def work(items: Sequence[OfTable]) -> int:
        table = _table(items[0])
        return len(items) * size.table_bytes(table, rows.get(table.fullname, 0), engine.dialect)

    def everywhere(action: Callable[[Sequence[OfTable]], None], items: Iterable[OfTable]) -> None:
        _in_parallel(workers, action, sorted(_by_table(items), key=work, reverse=True))

    present = _present(engine, str(parts.tables.schema))
    with connected(engine) as connection:
        keys, foreign_keys = (
            [item for item in items if (_table(item).name, _name(item, connection)) not in present]
            for items in (parts.keys, parts.foreign_keys)
        )
    step("keys and indexes")
    everywhere(lambda items: _add(engine, items), keys)
    if parts.foreign_keys:
        step("foreign keys")
        _add(engine, foreign_keys)  # each locks two tables
        if engine.dialect == "postgresql":
            everywhere(lambda items: _validate(engine, items), parts.foreign_keys)
    step("procedures")
    for batch in batches(procedures):
        engine.execute(batch)
    step("statistics")
    everywhere(lambda tables: engine.settle(tables[0].fullname), parts.tables.sorted_tables)


@dataclass(frozen=True)
class Parts:
    """A copy of a schema in the order of deployment. The keys are not part of the tables any more."""

    tables: sa.MetaData
    keys: Sequence[Constraint | Index]
    foreign_keys: Sequence[sa.ForeignKeyConstraint]


def take_apart(metadata: sa.MetaData) -> Parts:
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
    return Parts(copy, keys, foreign_keys)


def batches(procedures: str) -> list[str]:
    """The batches of a script: separated by GO lines as in T-SQL tools, one batch without any."""
    return [text for text in re.split(r"(?im)^[ \t]*GO[ \t]*$", procedures) if text.strip()]


def _present(engine: Engine, schema: str) -> set[tuple[str, str]]:
    """The keys, indexes and foreign keys that are there, by table and name."""
    sql = sql_file.read(__package__, f"present_keys.{engine.dialect}")
    return {(table, name) for table, name in engine.query(sql, [schema, schema])}


def _add(engine: Engine, items: Sequence[Index | Constraint]) -> None:
    with connected(engine) as connection:
        for item in items:
            match item:
                case Index():
                    with _unless_there(engine):
                        connection.execute(CreateIndex(item))
                case sa.ForeignKeyConstraint():
                    with _naming_rows(connection, item):
                        connection.execute(AddConstraint(item))
                case _:
                    connection.execute(AddConstraint(item))


@contextmanager
def _unless_there(engine: Engine) -> Iterator[None]:
    """Babelfish lists an index under another name than it was given, where `present_keys` does not find it."""
    try:
        yield
    except sa.exc.DBAPIError as error:
        if engine.failure(error.orig or error).code not in _THERE:
            raise


def _validate(engine: Engine, foreign_keys: Sequence[sa.ForeignKeyConstraint]) -> None:
    """Of PostgreSQL: what is valid already costs nothing."""
    with connected(engine) as connection:
        for key in foreign_keys:
            with _naming_rows(connection, key):
                connection.exec_driver_sql(
                    f"ALTER TABLE {_table(key).fullname} VALIDATE CONSTRAINT {_name(key, connection)}"
                )


@contextmanager
def _naming_rows(connection: sa.Connection, key: sa.ForeignKeyConstraint) -> Iterator[None]:
    """When the foreign key fails because rows have no parent, say which."""
    try:
        yield
    except sa.exc.DBAPIError:
        table, [element] = _table(key), key.elements
        child, parent = element.parent, element.column
        shown = list(dict.fromkeys((*table.primary_key.columns, child)))
        rows = connection.execute(
            sa.select(*shown)
            .where(child.is_not(None), ~sa.exists().where(parent == child))
            .order_by(*shown)
            .limit(SHOWN_ROWS)
        ).all()
        if not rows:
            raise
        listed = "; ".join(
            ", ".join(f"{column.name} {value}" for column, value in zip(shown, row, strict=True))
            for row in rows
        )
        raise StallmarkError(
            f"{table.fullname} has rows whose {child.name} is not in {parent.table.fullname}, the first with {listed}: "
            "mend them and build again, or drop the database and build it anew."
        ) from None


def _table(item: Index | Constraint | sa.Table) -> sa.Table:
    table = item if isinstance(item, sa.Table) else item.table
    assert table is not None
    return table


def _by_table(items: Iterable[OfTable]) -> list[list[OfTable]]:
    groups: dict[sa.Table, list[OfTable]] = {}
    for item in items:
        groups.setdefault(_table(item), []).append(item)
    return list(groups.values())


def _in_parallel(workers: int, action: Callable[[Item], None], items: Sequence[Item]) -> None:
    """In that order; what has not begun when one fails is left."""
    with ThreadPoolExecutor(workers) as pool:
        ended, left = wait([pool.submit(action, item) for item in items], return_when=FIRST_EXCEPTION)
        for future in left:
            future.cancel()
        for future in ended:
            future.result()


def _name(item: Index | Constraint, connection: sa.Connection) -> str:
    preparer = connection.dialect.identifier_preparer
    formatted = preparer.format_index(item) if isinstance(item, Index) else preparer.format_constraint(item)
    return str(formatted).strip('"[]')
