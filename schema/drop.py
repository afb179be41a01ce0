"""Drop what Stallmark has built in a database, which itself stays: it was there before."""

from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy.schema import DropSchema

from stallmark.engines.base import Engine
from stallmark.errors import StallmarkError
from stallmark.schema.deploy import connected, schemas_of
from stallmark.schema.ledger import METADATA as OWN_TABLES
from stallmark.schema.own import Deployable, in_short, routines, things_of_others

# The routines of a schema: their names, and the statements that drop them.
_ROUTINES = {
    "mssql": "SELECT name, 'DROP PROCEDURE ' + QUOTENAME(SCHEMA_NAME(schema_id)) + '.' + QUOTENAME(name)"
    " FROM sys.procedures WHERE schema_id = SCHEMA_ID(?)",
    "postgresql": "SELECT p.proname::text, 'DROP ROUTINE ' || p.oid::regprocedure::text FROM pg_proc p"
    " JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = %s",
}


def drop_schemas(engine: Engine, workloads: Sequence[Deployable]) -> list[str]:
    """Drop tables, routines and schemas of these workloads and Stallmark's own; return the schemas.

    Raise StallmarkError before anything is dropped if others have something in these schemas.
    """
    dropped = []
    with connected(engine) as connection:
        there = set(sa.inspect(connection).get_schema_names())
        owned = [
            (metadata, [schema for schema in schemas_of(metadata) if schema in there])
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
            for schema in schemas:  # which the server keeps if somebody has put something into it meanwhile
                connection.execute(DropSchema(schema))
            dropped += schemas
    return dropped


def _refuse_others(engine: Engine, workloads: Sequence[Deployable], schemas: set[str]) -> None:
    used = {schema: names for schema, names in engine.schemas_in_use().items() if schema in schemas}
    if others := things_of_others(used, engine.dialect, *workloads):
        raise StallmarkError(
            f"Nothing was dropped: Stallmark's schemas also hold what this version of it has not made, "
            f"{in_short(others)}. Move that to another schema or drop it, then give this command again."
        )
