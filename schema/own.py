"""The things in a database that are ours: their names, our own tables, and dropping them."""

import re
from collections.abc import Mapping, Sequence
from typing import Protocol

import sqlalchemy as sa
from sqlalchemy import BigInteger, Boolean, CheckConstraint, Column, Float, Integer, MetaData, String, Table
from sqlalchemy.schema import DropSchema

from stallmark.engines.base import Engine
from stallmark.errors import StallmarkError
from stallmark.schema.deploy import connected, schemas_of

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
