"""The order of rows on SQL Server other than by primary key: by a column, in a columnstore, in partitions.

The primary key is then an index beside them, and a clustered index without its columns holds the rows.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from typing import Any

import sqlalchemy as sa

from stallmark.engines.mssql.odbc import name, text
from stallmark.schema.ddl import Ddl
from stallmark.schema.placement.design import DATES, PRIMARY, Design, TableGroup


def arrange(ddl: Ddl, design: Design) -> Ddl:
    """Return the DDL with the clustered indexes that `design` asks for, before all others: these refer to it.
    Partitions are made before their table."""
    indexes = []
    for table in ddl.tables.sorted_tables:
        group = design.group_of(table)
        if not group.key_is_apart:
            continue
        table.primary_key.dialect_options["mssql"]["clustered"] = False
        for key in ddl.keys:
            if isinstance(key, sa.PrimaryKeyConstraint) and key.table is table:
                key.dialect_options["mssql"]["clustered"] = False
        indexes.append(_clustered(group, table))
        if group.partition_by:
            sa.event.listen(table, "before_create", _making(group, table))
    return replace(ddl, keys=[*indexes, *ddl.keys])


def partitions(group: TableGroup, table: sa.Table) -> str:
    """Return the name of the partition function and scheme of a table."""
    return f"{table.name}_{group.partition_by}_{group.partition_every}"


def bounds(group: TableGroup, table: sa.Table) -> list[date]:
    """Return the first days of all partitions but the first."""
    assert group.partition_by
    first, last = table.columns[group.partition_by].info[DATES]
    months = [date(year, month, 1) for year in range(first.year, last.year + 1) for month in range(1, 13)]
    return [day for day in months if first < day <= last and (group.partition_every == "month" or day.month == 1)]


def partition_statements(group: TableGroup, table: sa.Table) -> Iterator[str]:
    """Return the statements that create missing partitions: a build may have been stopped after them."""
    called, filegroup = name(partitions(group, table)), name(group.filegroup or PRIMARY)
    found = text(partitions(group, table))
    days = ", ".join(text(day.isoformat()) for day in bounds(group, table))
    yield (
        f"IF NOT EXISTS (SELECT 1 FROM sys.partition_functions WHERE name = {found}) "
        f"CREATE PARTITION FUNCTION {called} (date) AS RANGE RIGHT FOR VALUES ({days})"
    )
    yield (
        f"IF NOT EXISTS (SELECT 1 FROM sys.partition_schemes WHERE name = {found}) "
        f"CREATE PARTITION SCHEME {called} AS PARTITION {called} ALL TO ({filegroup})"
    )


def _clustered(group: TableGroup, table: sa.Table) -> sa.Index:
    if group.storage == "columnstore":
        index = sa.Index(f"{table.name}_columnstore", mssql_clustered=True, mssql_columnstore=True, _table=table)
    else:
        assert group.cluster_by
        column = table.columns[group.cluster_by]
        index = sa.Index(f"{table.name}_{column.name}_clustered", column, mssql_clustered=True)
    table.indexes.discard(index)  # it is made after the load, as all are
    return index


def _making(group: TableGroup, table: sa.Table) -> Any:
    def make(target: sa.Table, connection: sa.Connection, **_: Any) -> None:
        for statement in partition_statements(group, table):
            connection.exec_driver_sql(statement)

    return make
