"""The physical design of a database on SQL Server: its files, their contents, and the settings that affect I/O. On
PostgreSQL (`placement.postgres`): the tablespaces of tables and indexes.

Plain data, checked as it is made: a mistake raises StallmarkError. `placement.mssql` writes a design in T-SQL,
`placement.mssql_existing` compares it with an existing database. Limits are those of "CREATE DATABASE" and "Maximum
capacity specifications" in Microsoft's documentation.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Literal

from stallmark.errors import StallmarkError

if TYPE_CHECKING:
    import sqlalchemy as sa

MIB, GIB, TIB = 1024**2, 1024**3, 1024**4

PRIMARY = "PRIMARY"
GROWING = "growing"  # stands for all tables that `Table.info` marks as growing
ALL = "*"  # stands for all tables without an entry
MOST_DATA_BYTES, MOST_LOG_BYTES = 16 * TIB, 2 * TIB  # largest file
LEAST_BYTES = 8 * MIB  # smallest file: as large as the first one of a new database is anyway
GROWTH_BYTES = 64 * MIB
GROWTH_STEP = 64 * 1024  # the server rounds to it

# Room beside the data of a new database, so that no file grows in a run.
ROOM_SHARE = 0.25
LEAST_ROOM = GIB
LEAST_LOG = GIB

Compression = Literal["none", "row", "page"]
Storage = Literal["rowstore", "columnstore"]
Period = Literal["month", "year"]
DATES = "dates"  # key in `Column.info` of a date: the first and last date of its rows
Recovery = Literal["simple", "bulk_logged", "full"]
DelayedDurability = Literal["disabled", "allowed", "forced"]
PageVerify = Literal["checksum", "torn_page_detection", "none"]
StatisticsUpdate = Literal["on", "off", "async"]


@dataclass(frozen=True)
class File:
    """A data or log file on the server's own disks. `size_bytes` None: as large as what it holds needs."""

    path: str
    name: str  # name, unique in the database
    size_bytes: int | None = None
    growth_bytes: int = GROWTH_BYTES  # 0: it never grows

    def __post_init__(self) -> None:
        _check_name(self.name, "a file")
        _check_path(self.path)
        if self.size_bytes is not None and self.size_bytes < LEAST_BYTES:
            raise StallmarkError(f"{self.path} is to have less than {LEAST_BYTES // MIB}MiB: give it more.")
        if self.growth_bytes and self.growth_bytes < GROWTH_STEP:
            raise StallmarkError(f"{self.path} is to grow by less than 64KiB: write more, or 0 for never.")


@dataclass(frozen=True)
class Filegroup:
    """Files that fill evenly; equal sizes keep the server from preferring one."""

    name: str
    files: tuple[File, ...]

    def __post_init__(self) -> None:
        _check_name(self.name, "a filegroup")
        if self.name.casefold() == "default":
            raise StallmarkError("A filegroup cannot be called default: that word means another: rename it.")
        if not self.files:
            raise StallmarkError(f"The filegroup {self.name} has no file: name one.")


@dataclass(frozen=True)
class TableGroup:
    """Tables by name, with the schema if several schemas have the name; or GROWING, or ALL. For one schema:
    `bank.growing`, `bank.*`. A filegroup or tablespace of None is the server's default: for tables PRIMARY or
    PostgreSQL's own choice, for an index that of its table.

    Rows are stored in the order of their primary key, by a column (`cluster_by`), or in a columnstore. All kinds may be
    in partitions, one for each period of a date (`partition_by`).
    """

    tables: tuple[str, ...]
    filegroup: str | None = None
    index_filegroup: str | None = None  # filegroup of all but the clustered index, which is the table
    compression: Compression = "none"
    tablespace: str | None = None
    index_tablespace: str | None = None  # tablespace of keys and indexes
    storage: Storage = "rowstore"
    cluster_by: str | None = None
    partition_by: str | None = None
    partition_every: Period = "month"
    fill_factor: int | None = None  # per cent of a page, of indexes as they are made; None: the server's, which is all
    sequential_key: bool = False  # OPTIMIZE_FOR_SEQUENTIAL_KEY, from 2019 on

    def __post_init__(self) -> None:
        names = ", ".join(self.tables)
        if self.storage == "columnstore" and self.compression != "none":
            raise StallmarkError(
                f"{names} cannot be a columnstore with compression {self.compression}: a columnstore is always "
                "compressed in its own way, so leave `compression` out."
            )
        if self.storage == "columnstore" and (self.fill_factor or self.sequential_key):
            raise StallmarkError(
                f"{names} cannot be a columnstore with a fill factor or a sequential key: leave that out."
            )
        if self.storage == "columnstore" and self.cluster_by:
            raise StallmarkError(
                f"{names} cannot be a columnstore and be clustered by {self.cluster_by}: leave out `storage` or "
                "`cluster_by`."
            )
        if self.partition_by and self.storage == "rowstore" and self.cluster_by != self.partition_by:
            raise StallmarkError(
                f"{names} cannot have partitions by {self.partition_by} while the rows are clustered by another key: "
                f"add `cluster_by: {self.partition_by}`, or `storage: columnstore`."
            )

    @property
    def key_is_apart(self) -> bool:
        """True if the primary key is a separate index, because the rows are stored in another order."""
        return self.storage == "columnstore" or self.cluster_by is not None


@dataclass(frozen=True)
class TempDb:
    """tempdb's own files, in the order of its file numbers. It is the server's, not a database's."""

    files: tuple[File, ...] = ()
    log: File | None = None


@dataclass(frozen=True)
class Settings:
    """Settings of the database; None keeps the server's default."""

    recovery: Recovery | None = None
    read_committed_snapshot: bool | None = None
    snapshot_isolation: bool | None = None
    compatibility_level: int | None = None  # 140 is SQL Server 2017, 170 is 2025
    target_recovery_time_s: int | None = None  # 0: checkpoints by the server's recovery interval
    delayed_durability: DelayedDurability | None = None
    page_verify: PageVerify | None = None
    legacy_cardinality_estimation: bool | None = None  # estimates rows as SQL Server 2012 did, at any level
    auto_update_statistics: StatisticsUpdate | None = None  # async: behind the query that needs them


@dataclass(frozen=True)
class Design:
    """The physical design of one database; without `files` the server chooses the location."""

    files: tuple[File, ...] = ()  # files of PRIMARY
    filegroups: tuple[Filegroup, ...] = ()
    log: tuple[File, ...] = ()
    tables: tuple[TableGroup, ...] = ()
    tempdb: TempDb | None = None
    settings: Settings = Settings()

    def __post_init__(self) -> None:
        if (self.filegroups or self.log) and not self.files:
            raise StallmarkError("Filegroups and a log have places, the database itself has none: name its files.")
        if PRIMARY.casefold() in (group.name.casefold() for group in self.filegroups):
            raise StallmarkError("PRIMARY is the filegroup of the database's own files: name the other differently.")
        _once("filegroup", [group.name for group in self.filegroups])
        _once("file", [file.name for file in self._declared_files()])
        _once("table", [name for group in self.tables for name in group.tables])
        tempdb = [*self.tempdb.files, *([self.tempdb.log] if self.tempdb.log else [])] if self.tempdb else []
        _once("file of tempdb", [file.name for file in tempdb])
        everything = [file.path for file in (*self._declared_files(), *tempdb)]
        if len({is_windows(path) for path in everything}) > 1:
            raise StallmarkError("Some files are on a Windows server and some on a Linux one: write all paths one way.")
        _once("path", everything)
        groups = {PRIMARY.casefold(), *(group.name.casefold() for group in self.filegroups)}
        for table_group in self.tables:
            for name in (table_group.filegroup, table_group.index_filegroup):
                if name is not None and name.casefold() not in groups:
                    tables = ", ".join(table_group.tables)
                    hint = "" if self.files else " (of PostgreSQL, name a `tablespace` and an `index_tablespace`)"
                    raise StallmarkError(f"{tables} cannot be stored in {name}: no filegroup has that name{hint}.")

    def groups(self) -> Iterator[Filegroup]:
        """Yield PRIMARY and the others."""
        if self.files:
            yield Filegroup(PRIMARY, self.files)
        yield from self.filegroups

    def group_of(self, table: "sa.Table") -> TableGroup:
        """Return the group of a table; its own name goes before GROWING, and that before ALL."""
        named = (group for name in _names_of(table) for group in self.tables if name in group.tables)
        return next(named, TableGroup((table.fullname,)))

    def check_tables(self, metadata: "sa.MetaData") -> None:
        """Raise StallmarkError if the design does not fit the tables.

        It may name a table or a column that the schemas lack, a table that several of them have, or the same one twice;
        or it may partition by a column without a known range of dates.
        """
        named: dict[str, list[sa.Table]] = {}
        for table in metadata.sorted_tables:
            for name in _names_of(table):
                named.setdefault(name, []).append(table)
        for name in (name for group in self.tables for name in group.tables):
            if name not in named:
                schemas = dict.fromkeys(str(table.schema) for table in metadata.sorted_tables)
                whole = len(schemas) > 1
                known = sorted(table.fullname if whole else table.name for table in metadata.sorted_tables)
                has = "have" if whole else "has"
                raise StallmarkError(f"{' and '.join(schemas)} {has} no table {name}: there are {', '.join(known)}.")
            if name == named[name][0].name and len(named[name]) > 1:
                raise StallmarkError(
                    f"There are several tables {name}: write {' or '.join(table.fullname for table in named[name])}."
                )
        for table in metadata.sorted_tables:
            _once(
                "table",
                [table.fullname for group in self.tables for name in group.tables if name in _table_name(table)],
            )
            _check_columns(self.group_of(table), table)

    def _declared_files(self) -> list[File]:
        return [file for group in self.groups() for file in group.files] + list(self.log)


def sized(design: Design, tables: "Iterable[sa.Table]", rows: Mapping[str, int]) -> Design:
    """Return the design with a size for every file of the database.

    Missing sizes are estimated by `schema.size` for `rows` per table (full names), with space for a run and without
    compression. Raise StallmarkError if files would be larger than the server allows.
    """
    from stallmark.schema import size  # imports SQLAlchemy, which reading a scenario does not need

    names = [PRIMARY, *(group.name for group in design.filegroups)]
    needs = {name.casefold(): 0 for name in names}
    sorts = dict(needs)
    for table in tables:
        count, group = rows.get(table.fullname, 0), design.group_of(table)
        place = (group.filegroup or PRIMARY).casefold()
        index_place = (group.index_filegroup or place).casefold()
        needs[place] += size.table_bytes(table, count, "mssql")
        needs[index_place] += size.index_bytes(table, count, "mssql")
        # A clustered key is a copy of its heap, beside it until it is made; that space is free afterwards.
        sorts[place] += size.sort_bytes(table, count, "mssql")
        if group.key_is_apart:
            needs[index_place] += size.key_apart_bytes(table, count)
    everything = sum(needs.values())

    def fitting(group: str, files: Sequence[File]) -> tuple[File, ...]:
        data = needs[group.casefold()]
        room = max(sorts[group.casefold()], data * ROOM_SHARE, LEAST_ROOM)
        return _shared(files, data + room, MOST_DATA_BYTES)

    log = max(LEAST_LOG, min(everything, size.LOG_BYTES))
    if design.settings.recovery in ("full", "bulk_logged"):
        log += everything  # nothing leaves the log before it is backed up
    return replace(
        design,
        files=fitting(PRIMARY, design.files),
        filegroups=tuple(replace(group, files=fitting(group.name, group.files)) for group in design.filegroups),
        log=_shared(design.log, log, MOST_LOG_BYTES),
    )


def default_name(path: str) -> str:
    """Return the default logical name of a file: the last part of its path, without the extension."""
    return (PureWindowsPath(path) if is_windows(path) else PurePosixPath(path)).stem


def is_windows(path: str) -> bool:
    return bool(re.match(r"[A-Za-z]:\\", path))


def _shared(files: Sequence[File], need: float, most: int) -> tuple[File, ...]:
    """Share the remaining need evenly among the files without a size."""
    open_files = [file for file in files if file.size_bytes is None]
    if not open_files:
        return tuple(files)
    left = max(0.0, need - sum(file.size_bytes or 0 for file in files))
    size = max(LEAST_BYTES, -(-int(left) // len(open_files) // MIB) * MIB)
    if size > most:
        raise StallmarkError(
            f"{open_files[0].path} would need {size / TIB:.1f} TiB, and a file holds {most // TIB} TiB: "
            "name more files."
        )
    return tuple(replace(file, size_bytes=size) if file.size_bytes is None else file for file in files)


def _check_name(name: str, kind: str) -> None:
    if not 1 <= len(name) <= 128 or not name.isprintable() or name != name.strip():
        raise StallmarkError(
            f"{name!r} is not a name for {kind}: write 1 to 128 printable characters, no blank at either end."
        )


def _check_path(path: str) -> None:
    if path.startswith(("\\\\", "//")):
        raise StallmarkError(
            f"{path} is on a network share, where the server ignores the size of files, so they would grow in a run: "
            "name a local volume."
        )
    if not (is_windows(path) or path.startswith("/")) or path.endswith(("/", "\\")) or path.endswith(":"):
        raise StallmarkError(
            f"{path} is not a file on a server: write it whole, as D:\\data\\bank.mdf or /data/bank.mdf."
        )
    if len(path) > 259 or not path.isprintable() or path != path.strip():
        raise StallmarkError(
            f"{path[:40]!r} is not a path: write at most 259 printable characters, no blank at either end."
        )


def _table_name(table: "sa.Table") -> tuple[str, str]:
    return table.fullname, table.name


def _names_of(table: "sa.Table") -> list[str]:
    """Return the names by which a group may have a table, those first that go before others."""
    kinds = [*([GROWING] if table.info.get(GROWING) else []), ALL]
    return [*_table_name(table), *(name for kind in kinds for name in (f"{table.schema}.{kind}", kind))]


def _check_columns(group: TableGroup, table: "sa.Table") -> None:
    if group.cluster_by and group.cluster_by not in table.columns:
        raise StallmarkError(
            f"{table.name} cannot be clustered by {group.cluster_by}: it has no such column, but "
            f"{', '.join(table.columns.keys())}."
        )
    dates = [column.name for column in table.columns if DATES in column.info]
    if group.partition_by and group.partition_by not in dates:
        has = f"by {' or '.join(dates)}" if dates else "by none of its columns"
        raise StallmarkError(f"{table.name} can have partitions {has}, not by {group.partition_by}.")


def _once(kind: str, names: Sequence[str]) -> None:
    """Refuse names that occur twice, compared without regard to case as the server may."""
    seen: set[str] = set()
    for name in names:
        key = name if kind == "path" and not is_windows(name) else name.casefold()
        if key in seen:
            raise StallmarkError(f"The {kind} {name} is there twice: give each its own.")
        seen.add(key)
