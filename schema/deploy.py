"""The order in which a database is built, the same for every workload; our own tables in it; and dropping what is ours.

create_tables Stallmark's own, then the workload's, bare: heaps without a key are the fastest to load … the load …
finish primary keys and indexes, statistics → foreign keys → procedures

Existing objects are looked up once and only missing ones are added, so an interrupted build continues where it stopped.
Tables are processed in parallel, the one with most work first. Two workers never process the same table: they would
wait for each other's locks, and SQL Server makes other indexes twice if they exist before the primary key.
"""

import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing, contextmanager
from typing import Any, Protocol, TypeVar

import sqlalchemy as sa
from sqlalchemy import BigInteger, Boolean, CheckConstraint, Column, Float, Integer, MetaData, String, Table
from sqlalchemy.schema import AddConstraint, Constraint, CreateIndex, CreateSchema, DropSchema, Index

from stallmark.engines import sql_file
from stallmark.engines.abilities import ServerSession
from stallmark.engines.base import Engine
from stallmark.errors import CallFailed, NoConnection, StallmarkError, as_reason
from stallmark.schema import ddl, size
from stallmark.schema.ddl import Ddl, name_of, present, table_of

Item = TypeVar("Item")
OfTable = TypeVar("OfTable", bound=Index | Constraint | sa.Table)

KEPT = "What was done is kept: the same build again continues."
SAY_AFTER_S = 1.0  # seconds of waiting for another build before it is reported

_DRIVERS = {"postgresql": "postgresql+psycopg://", "mssql": "mssql+pyodbc://"}

# Of SQL Server: an index, or anything else, with this name is there.
_THERE = {"1913", "2714"}


@contextmanager
def connected(engine: Engine) -> Iterator[sa.Connection]:
    """Yield a SQLAlchemy connection in autocommit over the engine's own, for DDL and Stallmark's tables."""
    try:
        with engine.cursor() as cursor:
            pool = sa.create_engine(
                _DRIVERS[engine.dialect],
                creator=lambda: cursor.connection,
                poolclass=sa.StaticPool,  # leaves the connection open
                isolation_level="AUTOCOMMIT",
            )
            with pool.connect() as connection:
                yield connection
    except sa.exc.DBAPIError as error:
        raise engine.failure(error.orig or error) from error


@contextmanager
def exclusive(engine: Engine, waiting: Callable[[], Any]) -> Iterator[None]:
    """Hold the lock under which one build at a time prepares or finishes a database; loaders of other machines wait.

    `waiting` is called once, by another thread, when that takes a while. The lock belongs to the session: it ends with
    it, whatever happens to the process."""
    notice = threading.Timer(SAY_AFTER_S, waiting)
    notice.daemon = True
    with closing(engine.connect()) as connection:
        notice.start()
        try:
            cursor = connection.cursor()
            cursor.execute(sql_file.read(__package__, f"build_lock.{engine.dialect}"))
            while cursor.nextset():  # an error may follow the first result
                pass
        except _driver_error(engine) as error:
            raise engine.failure(error) from error
        finally:
            notice.cancel()
            notice.join()
        yield


def _blockers(engine: Engine) -> list[ServerSession]:
    try:
        return [session for database in engine.databases() for session in database.blockers()]
    except (StallmarkError, CallFailed):  # keep waiting
        return []


@contextmanager
def telling_blockers(engine: Engine, say: Callable[[str], Any]) -> Iterator[None]:
    """Call `say`, from another thread, with a sentence on the sessions that block one of ours for a while, in any
    database."""
    done = threading.Event()

    def watch() -> None:
        before: list[ServerSession] = []
        while not done.wait(SAY_AFTER_S):
            if (now := _blockers(engine)) and now != before:
                say(f"Waiting for a lock that {' and '.join(map(str, now))} {'holds' if len(now) == 1 else 'hold'}.")
            before = now

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


@contextmanager
def failing_in_words(engine: Engine, action: str) -> Iterator[None]:
    """Turn an error of the server or its driver into a sentence: `what`, the reason, and what to do."""
    try:
        yield
    except NoConnection as error:  # it was there when the build began
        raise StallmarkError(f"{action} failed: {error} {KEPT}") from error
    except (_driver_error(engine), CallFailed) as error:
        message = error.message if isinstance(error, CallFailed) else error
        reason = str(message).strip().splitlines()
        text = as_reason(reason[0]) if reason else "no reason given"
        raise StallmarkError(f"{action} failed: {text}. {KEPT}") from error


def _driver_error(engine: Engine) -> type[Exception]:
    driver = sa.make_url(_DRIVERS[engine.dialect]).get_dialect().import_dbapi()
    error: type[Exception] = driver.Error
    return error


def schemas_of(metadata: sa.MetaData) -> list[str]:
    """Return the schemas of the tables, in the order of their first tables."""
    return list(dict.fromkeys(str(table.schema) for table in metadata.tables.values()))


def create_tables(engine: Engine, metadata: sa.MetaData) -> None:
    """Create the schemas of `metadata` and its tables, those that are not there."""
    with connected(engine) as connection:
        for schema in set(schemas_of(metadata)) - set(sa.inspect(connection).get_schema_names()):
            connection.execute(CreateSchema(schema))
        for table in metadata.sorted_tables:
            table.create(connection, checkfirst=True)


def finish(
    engine: Engine,
    ddl: Ddl,
    procedures: str,
    *,
    rows: Mapping[str, int],
    workers: int = 1,
    step: Callable[[str, float], None],
) -> None:
    """Do everything after the load, in order; `step` gets each stage and its progress, by bytes of tables.

    `rows` maps full table names to loaded rows, so that the longest work comes first.

    Raises StallmarkError for a key or foreign key that does not hold, with its first rows.
    """

    def work(items: Sequence[OfTable]) -> int:
        table = table_of(items[0])
        return len(items) * size.table_bytes(table, rows.get(table.fullname, 0), engine.dialect)

    def everywhere(stage: str, action: Callable[[Sequence[OfTable]], None], items: Iterable[OfTable]) -> None:
        step(stage, 0.0)
        to_do = sorted(_by_table(items), key=work, reverse=True)
        total, done = sum(map(work, to_do)), 0

        def show_progress(items: Sequence[OfTable]) -> None:
            nonlocal done
            done += work(items)
            step(stage, done / total if total else 0.0)

        _in_parallel(workers, action, to_do, show_progress)

    existing = {schema: present(engine, schema) for schema in schemas_of(ddl.tables)}

    def is_there(item: Constraint | Index) -> bool:
        table = table_of(item)
        return (table.name, name_of(item, engine.dialect)) in existing[str(table.schema)]

    keys, foreign_keys = ([item for item in items if not is_there(item)] for items in (ddl.keys, ddl.foreign_keys))

    def index() -> None:
        everywhere("keys and indexes", lambda items: _add(engine, items), keys)

    def settle() -> None:
        everywhere("statistics", lambda tables: engine.settle(tables[0].fullname), ddl.tables.sorted_tables)

    # PostgreSQL freezes rows as it gathers statistics. An index that is made before notes on every page that its rows
    # are committed, and all of them are written once more. SQL Server makes statistics along with an index.
    for phase in (settle, index) if engine.dialect == "postgresql" else (index, settle):
        phase()
    # Foreign keys last: without statistics PostgreSQL looks each of the warehouse's lineitems up in an index.
    if ddl.foreign_keys:
        step("foreign keys", 0.0)
        _add(engine, foreign_keys)  # each locks two tables
        if engine.dialect == "postgresql":
            everywhere("foreign keys", lambda items: _validate(engine, items), ddl.foreign_keys)
    step("procedures", 0.0)
    for batch in batches(procedures):
        engine.execute(batch)


def batches(procedures: str) -> list[str]:
    """Return the batches of a script: separated by GO lines as in T-SQL tools, one batch without any."""
    return [text for text in re.split(r"(?im)^[ \t]*GO[ \t]*$", procedures) if text.strip()]


def _add(engine: Engine, items: Sequence[Index | Constraint]) -> None:
    with connected(engine) as connection:
        for item in items:
            with _unless_there(engine, item), ddl.name_violations(engine, connection, item):
                connection.execute(CreateIndex(item) if isinstance(item, Index) else AddConstraint(item))


@contextmanager
def _unless_there(engine: Engine, item: Index | Constraint) -> Iterator[None]:
    """Let pass that an index is there: Babelfish lists an index under another name than it was given, where `present`
    does not find it."""
    try:
        yield
    except sa.exc.DBAPIError as error:
        if not (isinstance(item, Index) and engine.failure(error.orig or error).code in _THERE):
            raise


def _validate(engine: Engine, foreign_keys: Sequence[sa.ForeignKeyConstraint]) -> None:
    """Validate foreign keys on PostgreSQL; one that is valid already costs nothing."""
    with connected(engine) as connection:
        for key in foreign_keys:
            with ddl.name_violations(engine, connection, key):
                connection.exec_driver_sql(
                    f"ALTER TABLE {table_of(key).fullname} VALIDATE CONSTRAINT {name_of(key, engine.dialect)}"
                )


def _by_table(items: Iterable[OfTable]) -> list[list[OfTable]]:
    groups: dict[sa.Table, list[OfTable]] = {}
    for item in items:
        groups.setdefault(table_of(item), []).append(item)
    return list(groups.values())


def _in_parallel(
    workers: int, action: Callable[[Item], None], items: Sequence[Item], ended: Callable[[Item], None]
) -> None:
    """Start `action` on the items in their order, and tell of each that has ended; when one fails, start no further
    one."""
    with ThreadPoolExecutor(workers) as pool:
        started = {pool.submit(action, item): item for item in items}
        try:
            for future in as_completed(started):
                future.result()
                ended(started[future])
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


# Stallmark's own tables in a loaded database: what it holds, and which batches are in.
#
# `stallmark.database` is one row by which a database is recognised; `stallmark.ledger` has a row per loaded
# batch, written in the transaction of the batch itself, so that a killed load loses and doubles nothing.


OWN_TABLES = MetaData(schema="stallmark")

DATABASE = Table(
    "database",
    OWN_TABLES,
    Column("only_row", Integer, primary_key=True, autoincrement=False),
    Column("workload", String(40), nullable=False),
    Column("version", Integer, nullable=False),
    Column("scale", String(400), nullable=False),  # JSON with sorted keys
    Column("seed", BigInteger, nullable=False),
    Column("options", String(400), nullable=False),  # JSON with sorted keys: what else decides the data
    Column("loaded_bytes", BigInteger),  # size after loading, keys and statistics; NULL until then
    Column("compressibility", Float),  # ratio to one when loaded; NULL if the server shows no pages
    Column("driven", Boolean, nullable=False),  # load has been driven against it since
    CheckConstraint("only_row = 1", name="database_only_row"),
)
LEDGER = Table(
    "ledger",
    OWN_TABLES,
    Column("table_group", String(40), primary_key=True),
    Column("batch", Integer, primary_key=True, autoincrement=False),
    Column("row_count", BigInteger),  # NULL while the batch has begun and is not in
    Column("byte_count", BigInteger),  # bytes sent to the server
)


# The names of what Stallmark makes in a database: all others are of somebody else.

MOST_NAMED = 4

_CREATED = re.compile(r"^CREATE (?:OR REPLACE )?(?:FUNCTION|PROCEDURE) (\w+)\.(\w+)", re.MULTILINE)


class Deployable(Protocol):
    """The part of a workload that is made in a database."""

    @property
    def metadata(self) -> sa.MetaData: ...
    def procedures(self, dialect: str) -> str: ...


def routines(workload: Deployable, dialect: str) -> set[tuple[str, str]]:
    """Return schema and name of the workload's functions or procedures."""
    return set(_CREATED.findall(workload.procedures(dialect)))


def things_of_others(used: Mapping[str, Sequence[str]], dialect: str, *workloads: Deployable) -> list[str]:
    """Return the things that belong neither to the workloads nor to the ledger, as schema.name. `used`: as
    `Engine.schemas_in_use` returns it."""
    own = {(str(table.schema), table.name) for table in OWN_TABLES.tables.values()}
    for workload in workloads:
        own.update((str(table.schema), table.name) for table in workload.metadata.tables.values())
        own.update(routines(workload, dialect))
    return sorted(f"{schema}.{name}" for schema, names in used.items() for name in names if (schema, name) not in own)


def in_short(names: Sequence[str]) -> str:
    """Return the first of the names, and the number of the others."""
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


# Drop what Stallmark has built in a database, which itself stays: it was there before.


# The routines of a schema: their names, and the statements that drop them.
_ROUTINES = {
    "mssql": "SELECT name, 'DROP PROCEDURE ' + QUOTENAME(SCHEMA_NAME(schema_id)) + '.' + QUOTENAME(name)"
    " FROM sys.procedures WHERE schema_id = SCHEMA_ID(?)",
    "postgresql": "SELECT p.proname::text, 'DROP ROUTINE ' || p.oid::regprocedure::text FROM pg_proc p"
    " JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = %s",
}


def drop_schemas(engine: Engine, workloads: Sequence[Deployable]) -> list[str]:
    """Drop tables, routines and schemas of the workloads and Stallmark's own; return the schemas.

    Raise StallmarkError before anything is dropped if others have something in these schemas.
    """
    dropped = []
    with connected(engine) as connection:
        existing = set(sa.inspect(connection).get_schema_names())
        owned = [
            (metadata, [schema for schema in schemas_of(metadata) if schema in existing])
            for metadata in (*(workload.metadata for workload in workloads), OWN_TABLES)
        ]
        _refuse_others(engine, workloads, {schema for _, schemas in owned for schema in schemas})
        ours = {routine for workload in workloads for routine in routines(workload, engine.dialect)}
        for metadata, schemas in owned:  # the ledger last: a drop that was cut can be repeated
            for schema in schemas:  # first: PostgreSQL drops no table of whose rows a function takes or returns some
                for name, statement in engine.query(_ROUTINES[engine.dialect], [schema]):
                    if (schema, name) in ours:
                        connection.execute(sa.text(statement))
            if schemas:
                metadata.drop_all(connection)
            for schema in schemas:  # the server keeps the schema if it is not empty
                connection.execute(DropSchema(schema))
            dropped += schemas
    return dropped


def _refuse_others(engine: Engine, workloads: Sequence[Deployable], schemas: set[str]) -> None:
    used = {schema: names for schema, names in engine.schemas_in_use().items() if schema in schemas}
    if others := things_of_others(used, engine.dialect, *workloads):
        raise StallmarkError(
            f"Nothing was dropped: Stallmark's schemas also contain objects that this version has not made, "
            f"{in_short(others)}. Move these to another schema or drop them, then repeat this command."
        )
