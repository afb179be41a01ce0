"""Drop what Stallmark has built in a database, which itself stays: it was there before."""

from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy.schema import DropSchema

from stallmark.engines.base import Engine
from stallmark.schema.deploy import connected, schemas_of
from stallmark.schema.ledger import METADATA as OWN_TABLES

_PROCEDURES = "SELECT name FROM sys.procedures WHERE schema_id = SCHEMA_ID(?)"


def drop_schemas(engine: Engine, workloads: Sequence[sa.MetaData]) -> list[str]:
    """Drop tables, procedures and schemas of these workloads and Stallmark's own; return the schemas."""
    dropped = []
    with connected(engine) as connection:
        there = set(sa.inspect(connection).get_schema_names())
        for metadata in (*workloads, OWN_TABLES):  # the ledger last: a drop that was cut can be repeated
            schemas = [schema for schema in schemas_of(metadata) if schema in there]
            if schemas:
                metadata.drop_all(connection)
            for schema in schemas:
                if engine.dialect == "mssql":  # has no DROP SCHEMA … CASCADE
                    for (name,) in engine.query(_PROCEDURES, [schema]):
                        connection.execute(sa.text(f"DROP PROCEDURE [{schema}].[{name}]"))
                    connection.execute(DropSchema(schema))
                else:
                    connection.execute(DropSchema(schema, cascade=True))
            dropped += schemas
    return dropped
