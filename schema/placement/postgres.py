"""A physical design on PostgreSQL: tables, keys and indexes in tablespaces that the server has.

A tablespace is a directory on someone's server: its administrator makes it, we only name it.
"""

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import sqlalchemy as sa
from psycopg import sql
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.schema import AddConstraint

from stallmark.engines import sql_file
from stallmark.engines.postgres.engine import PostgresEngine
from stallmark.errors import StallmarkError
from stallmark.schema.ddl import Ddl
from stallmark.schema.deploy import schemas_of
from stallmark.schema.placement import Design, Settings, TableGroup


def refuse_impossible(engine: PostgresEngine, design: Design) -> None:
    """Raise StallmarkError for what only SQL Server has, and for a tablespace where this user cannot make tables."""
    for key, reason in _only_sql_server(design):
        raise StallmarkError(f"`database` asks for {key}, but {reason}.")
    existing = dict(engine.query(sql_file.read(__package__, "tablespaces.postgresql")))
    for group in design.tables:
        for wanted in (group.tablespace, group.index_tablespace):
            if wanted is None or existing.get(wanted):
                continue
            name = sql.Identifier(wanted).as_string()
            if wanted in existing:
                raise StallmarkError(
                    f"{engine.location} lets this user make no tables in the tablespace {wanted}: "
                    f"GRANT CREATE ON TABLESPACE {name} TO it, or name another."
                )
            raise StallmarkError(
                f"{engine.location} has no tablespace {wanted} for tables, only {', '.join(existing)}: name one of "
                f"these, or have its administrator make it: CREATE TABLESPACE {name} LOCATION "
                "'/an/empty/directory/there'."
            )


def refuse_other(engine: PostgresEngine, design: Design, metadata: sa.MetaData) -> None:
    """Raise StallmarkError naming every table and index that is there and is elsewhere than designed."""
    phrases = []
    for schema in schemas_of(metadata):
        for name, index, tablespace in engine.query(sql_file.read(__package__, "existing_tables.postgresql"), [schema]):
            if (table := metadata.tables.get(f"{schema}.{name}")) is None:
                continue
            wanted = _tablespace(design.group_of(table), is_table=index is None)
            if wanted is not None and wanted != tablespace:
                thing = f"the index {index} of {table.fullname}" if index else f"the table {table.fullname}"
                phrases.append(f"{thing} lies in {tablespace}, not in {wanted}")
    if phrases:
        raise StallmarkError(
            f"The database {engine.location} exists, but not as the scenario designs it: {'; '.join(phrases)}. "
            "Move them (ALTER TABLE or INDEX … SET TABLESPACE …), drop it to have it made again, or change the design "
            "in the scenario."
        )


def place_tables(ddl: Ddl, design: Design) -> Ddl:
    """Add the tablespace to the CREATE statements of tables, keys and indexes of `schema.ddl` for PostgreSQL. Values
    outside their row (TOAST) are stored with the table."""
    for item in (*ddl.tables.sorted_tables, *ddl.keys):
        table = item if isinstance(item, sa.Table) else item.table
        assert table is not None
        place = _tablespace(design.group_of(table), is_table=item is table)
        item.dialect_options["postgresql"]["tablespace"] = place
    return ddl


@compiles(AddConstraint, "postgresql")
def _add_constraint(statement: AddConstraint, compiler: Any, **options: Any) -> str:
    """Write a key with its tablespace: SQLAlchemy knows tablespaces of tables and indexes, not of keys."""
    ddl = compiler.visit_add_constraint(statement, **options)
    place = statement.element.dialect_options["postgresql"].get("tablespace")
    return ddl if place is None else f"{ddl} USING INDEX TABLESPACE {compiler.preparer.quote(place)}"


def _tablespace(group: TableGroup, *, is_table: bool) -> str | None:
    return group.tablespace if is_table or group.index_tablespace is None else group.index_tablespace


def _only_sql_server(design: Design) -> Iterator[tuple[str, str]]:
    """Yield the requests that PostgreSQL cannot meet, by their names in a scenario, with the reasons."""
    if design.files:
        keys = ", ".join(name for name in ("files", "filegroups", "log") if getattr(design, name))
        yield keys, "PostgreSQL makes its files itself: leave that out, and name a `tablespace` for tables"
    if design.tempdb:
        yield "tempdb", "PostgreSQL has none: set temp_tablespaces on the server, and leave it out"
    for group in design.tables:
        if group.filegroup or group.index_filegroup:
            yield "a filegroup", "PostgreSQL has tablespaces: write `tablespace` and `index_tablespace`"
        if group.compression != "none":
            yield f"compression: {group.compression}", "PostgreSQL compresses no tables: leave it out"
        if group.fill_factor or group.sequential_key:
            yield "a fill factor or a sequential key", "that is of SQL Server's indexes here: leave it out"
        if group.storage != "rowstore":
            yield f"storage: {group.storage}", "PostgreSQL has no columnstore: leave it out"
        if group.cluster_by:
            yield (
                f"cluster_by: {group.cluster_by}",
                "PostgreSQL keeps no table in the order of a column: leave it out",
            )
        if group.partition_by:
            reason = "a key of a PostgreSQL table in partitions holds that column, which ours does not: leave it out"
            yield f"partition_by: {group.partition_by}", reason
    for setting in fields(Settings):
        if getattr(design.settings, setting.name) is not None:
            yield setting.name.removesuffix("_s"), "that is a setting of SQL Server: leave it out"
