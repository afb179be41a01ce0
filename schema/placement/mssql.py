"""A physical design in T-SQL: the database with its files and settings, and the filegroups of tables and indexes.

Names and paths come from a scenario file: all are quoted.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import date
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.schema import AddConstraint, CreateIndex, CreateTable

from stallmark.engines.mssql.odbc import api, execute, failed, name, stay_open, text
from stallmark.engines.mssql.server import Server
from stallmark.errors import StallmarkError
from stallmark.schema.ddl import Ddl
from stallmark.schema.placement import DATES, MIB, PRIMARY, Design, File, Settings, TableGroup

# The order of rows on SQL Server other than by primary key: by a column, in a columnstore, in partitions.
#
# The primary key is then an index beside them, and a clustered index without its columns holds the rows.


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
    partitioning = text(partitions(group, table))
    days = ", ".join(text(day.isoformat()) for day in bounds(group, table))
    yield (
        f"IF NOT EXISTS (SELECT 1 FROM sys.partition_functions WHERE name = {partitioning}) "
        f"CREATE PARTITION FUNCTION {called} (date) AS RANGE RIGHT FOR VALUES ({days})"
    )
    yield (
        f"IF NOT EXISTS (SELECT 1 FROM sys.partition_schemes WHERE name = {partitioning}) "
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


_STORAGE = "mssql_storage"  # key in the `info` of a table, key or index: (place as T-SQL or None, options)


def create_database(database: str, design: Design) -> list[str]:
    """Return the statements that make it, in order, for a connection to `master` in autocommit.
    Sizes: `placement.sized`."""
    return [_create(database, design), *settings(database, design.settings)]


def settings(database: str, wanted: Settings) -> list[str]:
    """Return one statement for each: the documentation lets several of these not be combined.

    READ_COMMITTED_SNAPSHOT would wait until every other connection is gone; NO_WAIT makes an error of that.
    """
    on = {True: "ON", False: "OFF"}
    clauses = {
        "RECOVERY {}": wanted.recovery and wanted.recovery.upper(),
        "READ_COMMITTED_SNAPSHOT {} WITH NO_WAIT": on.get(wanted.read_committed_snapshot),  # type: ignore[arg-type]
        "ALLOW_SNAPSHOT_ISOLATION {}": on.get(wanted.snapshot_isolation),  # type: ignore[arg-type]
        "COMPATIBILITY_LEVEL = {}": wanted.compatibility_level,
        "TARGET_RECOVERY_TIME = {} SECONDS": wanted.target_recovery_time_s,
        "DELAYED_DURABILITY = {}": wanted.delayed_durability and wanted.delayed_durability.upper(),
        "PAGE_VERIFY {}": wanted.page_verify and wanted.page_verify.upper(),
    }
    if updates := wanted.auto_update_statistics:
        clauses["AUTO_UPDATE_STATISTICS {}"] = on[updates != "off"]
        clauses["AUTO_UPDATE_STATISTICS_ASYNC {}"] = on[updates == "async"]
    statements = [
        f"ALTER DATABASE {name(database)} SET {clause.format(value)}"
        for clause, value in clauses.items()
        if value is not None
    ]
    if (legacy := on.get(wanted.legacy_cardinality_estimation)) is not None:  # type: ignore[arg-type]
        scoped = f"ALTER DATABASE SCOPED CONFIGURATION SET LEGACY_CARDINALITY_ESTIMATION = {legacy}"
        # ALTER DATABASE of the current database.
        statements.append(f"EXEC {name(database)}.sys.sp_executesql {text(scoped)}")
    return statements


def make_database(server: Server, design: Design) -> None:
    """Create the engine's database as designed. Raises StallmarkError with the server's words; a database whose
    settings failed is dropped again, so that the next attempt does not find half of it."""
    database = server.address.database
    create, *after = create_database(database, design)
    master = server.on_database("master")
    if not master.is_babelfish:  # the service has no AUTO_CLOSE
        after.insert(0, stay_open(database))
    with closing(master.connect()) as connection:
        run(connection, create, database)
        try:
            for statement in after:
                run(connection, statement, database)
        except StallmarkError:
            run(connection, f"DROP DATABASE {name(database)}", database)
            raise


def place_tables(ddl: Ddl, design: Design) -> Ddl:
    """Add filegroup, compression and order of rows to the CREATE statements of `schema.ddl` for SQL Server.

    Raise StallmarkError for a table or a column that the schema does not have.
    """
    design.check_tables(ddl.tables)
    ddl = arrange(ddl, design)
    for table in ddl.tables.sorted_tables:
        table.info[_STORAGE] = _storage(design, table, table)
    for item in ddl.keys:
        if item.table is not None:
            item.info[_STORAGE] = _storage(design, item, item.table)
    return ddl


@compiles(CreateTable, "mssql")
def _create_table(statement: CreateTable, compiler: Any, **options: Any) -> str:
    ddl = compiler.visit_create_table(statement, **options).rstrip()
    return " ".join([ddl, *_clauses(statement.element, filegroup_first=True)])


@compiles(CreateIndex, "mssql")
def _create_index(statement: CreateIndex, compiler: Any, **options: Any) -> str:
    return " ".join([compiler.visit_create_index(statement, **options), *_clauses(statement.element)])


@compiles(AddConstraint, "mssql")
def _add_constraint(statement: AddConstraint, compiler: Any, **options: Any) -> str:
    return " ".join([compiler.visit_add_constraint(statement, **options), *_clauses(statement.element)])


def _clauses(item: Any, *, filegroup_first: bool = False) -> Iterator[str]:
    """Return the clauses in their places: CREATE TABLE wants the filegroup before its options, keys and indexes want it
    behind them."""
    place, chosen = item.info.get(_STORAGE, (None, ()))
    on = [f"ON {place}"] if place else []
    if place and isinstance(item, sa.Table) and any(map(_is_large, item.columns)):
        on.append(f"TEXTIMAGE_ON {place}")  # else, as documented, they go to the default filegroup
    options = [f"WITH ({', '.join(chosen)})"] if chosen else []
    yield from (*on, *options) if filegroup_first else (*options, *on)


def _is_large(column: sa.Column) -> bool:
    """Return True if a column is text or binary without a limit, stored outside its row."""
    return isinstance(column.type, (sa.String, sa.LargeBinary)) and column.type.length is None


def _storage(design: Design, item: Any, table: sa.Table) -> tuple[str | None, Sequence[str]]:
    group = design.group_of(table)
    is_rows = isinstance(item, sa.Table) or _is_clustered(item)
    filegroup = group.filegroup if is_rows else group.index_filegroup or group.filegroup
    if group.partition_by and isinstance(item, sa.Index) and is_rows:
        return f"{name(partitions(group, table))} ({name(group.partition_by)})", _options(group, item)
    if group.partition_by and filegroup is None and item is not table:
        # It would go into partitions, too, and be looked up in each.
        filegroup = PRIMARY
    return filegroup and name(filegroup), _options(group, item)


def _options(group: TableGroup, item: Any) -> list[str]:
    options = [f"DATA_COMPRESSION = {group.compression.upper()}"] if group.compression != "none" else []
    if isinstance(item, sa.Table):  # a heap while it is loaded
        return options
    if group.fill_factor:
        options.append(f"FILLFACTOR = {group.fill_factor}")
    if group.sequential_key:
        options.append("OPTIMIZE_FOR_SEQUENTIAL_KEY = ON")
    return options


def _is_clustered(item: Any) -> bool:
    explicit = item.dialect_options["mssql"]["clustered"]
    return isinstance(item, sa.PrimaryKeyConstraint) if explicit is None else bool(explicit)


def _create(database: str, design: Design) -> str:
    statement = f"CREATE DATABASE {name(database)}"
    if design.files:
        groups = [f"PRIMARY\n{_files(design.files)}"]
        groups += [f"FILEGROUP {name(group.name)}\n{_files(group.files)}" for group in design.filegroups]
        statement += "\nON " + ",\n".join(groups)
    if design.log:
        statement += f"\nLOG ON\n{_files(design.log)}"
    return statement


def _files(files: Sequence[File]) -> str:
    return ",\n".join(f"    {file_clause(file)}" for file in files)


def file_clause(file: File) -> str:
    parts = [f"NAME = {text(file.name)}", f"FILENAME = {text(file.path)}"]
    if file.size_bytes is not None:
        parts.append(f"SIZE = {size(file.size_bytes)}")
    return f"({', '.join([*parts, f'FILEGROWTH = {size(file.growth_bytes)}'])})"


def run(connection: Any, statement: str, database: str) -> None:
    """Execute a statement; raise StallmarkError with the server's words and the statement."""
    try:
        execute(connection, statement)
    except api().Error as error:
        raise StallmarkError(
            f"The server refused to make {database} as designed: {failed(error).message}. "
            f"The statement was: {' '.join(statement.split())}"
        ) from None


def size(size_bytes: int) -> str:
    """Return whole MB, or whole KB where it is not: rounded up."""
    if size_bytes == 0:
        return "0"
    return f"{size_bytes // MIB}MB" if size_bytes % MIB == 0 else f"{-(-size_bytes // 1024)}KB"
