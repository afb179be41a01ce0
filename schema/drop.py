"""Drop what Stallmark has built in a database, which itself stays: it was there before."""

from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy.schema import DropSchema

from stallmark.engines.base import Engine
from stallmark.schema.deploy import connected, schemas_of
from stallmark.schema.ledger import METADATA as OWN_TABLES

# Statements that drop the routines of a schema.
_ROUTINES = {
    "mssql": "SELECT 'DROP PROCEDURE ' + QUOTENAME(SCHEMA_NAME(schema_id)) + '.' + QUOTENAME(name) FROM sys.procedures"
    " WHERE schema_id = SCHEMA_ID(?)",
    "postgresql": "SELECT 'DROP ROUTINE ' || p.oid::regprocedure::text FROM pg_proc p"
    " JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = %s",
}


def drop_schemas(engine: Engine, workloads: Sequence[sa.MetaData]) -> list[str]:
    """Drop tables, procedures and schemas of these workloads and Stallmark's own; return the schemas."""
    dropped = []
    with connected(engine) as connection:
        there = set(sa.inspect(connection).get_schema_names())
        for metadata in (*workloads, OWN_TABLES):  # the ledger last: a drop that was cut can be repeated
            schemas = [schema for schema in schemas_of(metadata) if schema in there]
            for schema in schemas:  # first: PostgreSQL drops no table of whose rows a function takes or returns some
                for (statement,) in engine.query(_ROUTINES[engine.dialect], [schema]):
                    connection.execute(sa.text(statement))
            if schemas:
                metadata.drop_all(connection)
            for schema in schemas:
                connection.execute(DropSchema(schema, cascade=engine.dialect == "postgresql"))
            dropped += schemas
    return dropped
