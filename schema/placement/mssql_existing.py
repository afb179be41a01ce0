"""The files that SQL Server has: the design of a database compared with a wanted one, and tempdb's put in place."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, fields
from typing import Any

import sqlalchemy as sa

from stallmark.engines import sql_file
from stallmark.engines.mssql import variant_settings
from stallmark.engines.mssql.odbc import api, failed, name, text
from stallmark.engines.mssql.server import Server
from stallmark.errors import StallmarkError
from stallmark.schema.deploy import schemas_of
from stallmark.schema.placement import (
    LEAST_BYTES,
    MIB,
    PRIMARY,
    Design,
    File,
    Settings,
    TableGroup,
    TempDb,
    is_windows,
    mssql,
)
from stallmark.schema.placement.mssql import create_database, file_clause, run, size

# Read the physical design of a database on SQL Server, and compare it with a wanted one.


@dataclass(frozen=True)
class FoundFile:
    kind: str  # ROWS or LOG
    filegroup: str | None  # None: a log
    name: str
    path: str
    size_bytes: int
    growth_bytes: int | None  # None: it grows by a share
    growth_percent: int | None = None

    def lies_at(self, path: str) -> bool:
        """Return True if the file is at this path; Windows ignores case."""
        return self.path.casefold() == path.casefold() if is_windows(path) else self.path == path


@dataclass(frozen=True)
class FoundIndex:
    table: str  # name with schema
    number: int  # 0 the heap, 1 the clustered index, others from 2
    name: str | None
    filegroup: str
    compression: str
    storage: str  # rowstore or columnstore
    ordered_by: str | None  # first column of the clustered index; None: a heap or a columnstore
    partitioned_by: str | None
    partitions: int | None
    fill_factor: int = 0  # 0: the server's, which is all of a page


@dataclass(frozen=True)
class Found:
    files: Sequence[FoundFile]
    settings: Settings
    indexes: Sequence[FoundIndex]


def read(server: Server, schemas: Sequence[str]) -> Found:
    """Return the existing database with the places of the tables of `schemas`. Raise StallmarkError if it is
    unreadable."""
    with closing(server.connect()) as connection:
        [row] = _ask(connection, "existing_settings")
        recovery, rcsi, snapshot, level, target_s, durability, verify, legacy, updates = row
        return Found(
            [FoundFile(*file) for file in _ask(connection, "existing_files")],
            Settings(
                recovery, bool(rcsi), snapshot == "ON", level, target_s, durability, verify, bool(legacy), updates
            ),
            [
                FoundIndex(f"{schema}.{table}", *index)
                for schema in schemas
                for table, *index in _ask(connection, "existing_tables", schema)
            ],
        )


def read_tempdb(server: Server) -> list[FoundFile]:
    with closing(server.on_database("tempdb").connect()) as connection:
        return [FoundFile(*file) for file in _ask(connection, "existing_files")]


def differences(design: Design, existing: Found, metadata: sa.MetaData) -> list[str]:
    """Return a phrase for each difference from the design; none when the database is as designed.

    Properties that the design leaves open are not compared, nor are missing tables. A larger file is accepted: it has
    grown, and will not grow in a run.
    """
    return [
        *_files(design, existing.files),
        *_settings(design.settings, existing.settings),
        *_places(design, existing, metadata),
    ]


def tempdb_differences(wanted: TempDb, existing: Sequence[FoundFile]) -> list[str]:
    """Return the differences of tempdb; after `mssql_tempdb.change`, those that only a restart or an administrator
    can remove."""
    data = [file for file in existing if file.kind == "ROWS"]
    pairs = list(zip(wanted.files, data, strict=False))
    pairs += [(wanted.log, file) for file in existing if file.kind == "LOG" and wanted.log][:1]
    phrases = [phrase for file, present in pairs for phrase in _file(file, present)]
    phrases += [f"the file {file.name} is not there" for file in wanted.files[len(data) :]]
    phrases += [f"there is one file more, {file.name}" for file in data[len(wanted.files) :] if wanted.files]
    return [f"tempdb: {phrase}" for phrase in phrases]


def refuse_other(server: Server, design: Design, metadata: sa.MetaData) -> None:
    """Raise StallmarkError naming every difference between the engine's database and the design."""
    if phrases := differences(design, read(server, schemas_of(metadata)), metadata):
        raise StallmarkError(
            f"The database {server.address.database} exists, but not as the scenario designs it: "
            f"{'; '.join(phrases)}. Drop it to have it made again, or change the design in the scenario."
        )


def _ask(connection: Any, statement: str, *parameters: Any) -> list[tuple]:
    sql = sql_file.read(__package__, f"{statement}.mssql")
    try:
        return [tuple(row) for row in connection.execute(sql, *parameters).fetchall()]
    except api().Error as error:
        raise StallmarkError(f"The files of the database cannot be read: {failed(error).message}.") from None


def _files(design: Design, existing: Sequence[FoundFile]) -> Iterator[str]:
    if not design.files:
        return
    left = {file.name.casefold(): file for file in existing}
    wanted = [(group.name, file) for group in design.groups() for file in group.files]
    for filegroup, file in [*wanted, *((None, file) for file in design.log)]:
        present = left.pop(file.name.casefold(), None)
        if present is None:
            yield f"the file {file.name} is not there"
            continue
        if (present.filegroup or "").casefold() != (filegroup or "").casefold():
            yield f"the file {file.name} is in {present.filegroup or 'the log'}, not in {filegroup or 'the log'}"
        yield from _file(file, present)
    for extra in left.values():
        if extra.kind == "ROWS" or design.log:
            yield f"there is one file more, {extra.name} in {extra.filegroup or 'the log'}"


def _file(wanted: File, existing: FoundFile) -> Iterator[str]:
    if not existing.lies_at(wanted.path):
        yield f"the file {existing.name} lies at {existing.path}, not at {wanted.path}"
    if wanted.size_bytes is not None and existing.size_bytes < wanted.size_bytes:
        yield f"the file {existing.name} has {existing.size_bytes // MIB:,} MiB, not {wanted.size_bytes // MIB:,} MiB"
    if existing.growth_bytes != wanted.growth_bytes:
        now = "a share of its size" if existing.growth_bytes is None else f"{existing.growth_bytes // 1024:,} KiB"
        yield f"the file {existing.name} grows by {now}, not by {wanted.growth_bytes // 1024:,} KiB"


def _settings(wanted: Settings, existing: Settings) -> Iterator[str]:
    for field in fields(Settings):
        asked, present = getattr(wanted, field.name), getattr(existing, field.name)
        if asked is not None and asked != present:
            yield f"{field.name} is {_word(present)}, not {_word(asked)}"


def _places(design: Design, existing: Found, metadata: sa.MetaData) -> Iterator[str]:
    for index in existing.indexes:
        if (table := metadata.tables.get(index.table)) is None:
            continue
        group = design.group_of(table)
        is_table = index.number <= 1
        thing = f"the table {index.table}" if is_table else f"the index {index.name} of {index.table}"
        place = group.filegroup if is_table else group.index_filegroup or group.filegroup
        place = place or (PRIMARY if design.files else None)
        if place and index.filegroup.casefold() != place.casefold():
            yield f"{thing} lies in {index.filegroup}, not in {place}"
        if index.compression != group.compression and index.storage == "rowstore":
            yield f"the compression of {thing} is {index.compression}, not {group.compression}"
        if index.number and group.fill_factor and index.fill_factor != group.fill_factor:
            yield f"the fill factor of {thing} is {index.fill_factor or 100}, not {group.fill_factor}"
        if index.number == 1:
            yield from _rows(group, index, table)


def _rows(group: TableGroup, existing: FoundIndex, table: sa.Table) -> Iterator[str]:
    if existing.storage != group.storage:
        yield f"the table {table.fullname} is a {existing.storage}, not a {group.storage}"
        return
    ordered_by = group.cluster_by or next(iter(table.primary_key)).name
    if group.storage == "rowstore" and existing.ordered_by != ordered_by:
        yield f"the rows of {table.fullname} lie by {existing.ordered_by}, not by {ordered_by}"
    wanted = len(mssql.bounds(group, table)) + 1 if group.partition_by else None
    if (existing.partitioned_by, existing.partitions) != (group.partition_by, wanted):
        present = _partitions(existing.partitions, existing.partitioned_by)
        yield f"the table {table.fullname} has {present}, not {_partitions(wanted, group.partition_by)}"


def _partitions(count: int | None, column: str | None) -> str:
    return "no partitions" if count is None else f"{count} partitions by {column}"


def _word(value: Any) -> str:
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else str(value)


# tempdb's files where a scenario wants them.
#
# tempdb is the server's, and is made anew at each of its starts: from a path where it cannot be made, no start
# succeeds. So the files are first made there by another database, and the statements that give back what was are kept.

REHEARSAL = "stallmark_rehearses_tempdb"

Pairs = list[tuple[FoundFile, File]]


def place(server: Server, wanted: TempDb, *, change_server: bool) -> None:
    """Change tempdb's files as `change` has it.

    Raises StallmarkError when they cannot be made there, before anything is changed; and when something is still
    otherwise, because only a restart of the server (a path) or its administrator (a file too many) can change it.
    """
    present = read_tempdb(server)
    if statements := change(wanted, present, change_server=change_server):
        with closing(server.on_database("master").connect()) as connection:
            if trial := rehearsal(wanted, present):
                _rehearse(connection, trial)
            variant_settings.note_tempdb(server, give_back(wanted, present))
            for statement in statements:
                run(connection, statement, "tempdb")
    if phrases := tempdb_differences(wanted, read_tempdb(server)):
        kept = variant_settings.noted_tempdb(server)
        raise StallmarkError(
            f"tempdb is not yet as the scenario designs it: {'; '.join(phrases)}. A new path holds from the server's "
            "next start on: restart it, and run again; a file too many is its administrator's to remove."
            + (f" {variant_settings.tempdb_restore_hint(server, kept)}" if kept else "")
        )


def change(wanted: TempDb, present: Sequence[FoundFile], *, change_server: bool) -> list[str]:
    """Return tempdb's files as wanted, from those it has (in the order of their numbers): the first wanted file is its
    first, and so on; what is missing is added. A new path holds from the server's next start on, and a file is never
    made smaller or removed: those differences remain, and `mssql_existing` names them.

    Raises StallmarkError without `change_server`: every database of the server shares tempdb.
    """
    if not change_server:
        raise StallmarkError(
            "The scenario places tempdb, which changes the server for all its databases: write `change_server: true` "
            "below tempdb if it is yours to change."
        )
    pairs, added = _match_files(wanted, present)
    statements = [statement for existing, file in pairs for statement in _modify(existing, file)]
    return [*statements, *(_alter(f"ADD FILE {file_clause(file)}") for file in added)]


def give_back(wanted: TempDb, present: Sequence[FoundFile]) -> list[str]:
    """Return the statements that undo `change`. The paths hold from the server's next start on."""
    pairs, added = _match_files(wanted, present)
    statements = [_alter(f"REMOVE FILE {name(file.name)}") for file in reversed(added)]
    for existing, file in pairs:
        if not existing.lies_at(file.path):
            statements.append(_modified(existing, f"FILENAME = {text(existing.path)}"))
        if _is_enlarged(existing, file):  # MODIFY FILE makes nothing smaller
            megabytes = -(-existing.size_bytes // MIB)
            statements.append(f"USE [tempdb]; DBCC SHRINKFILE ({text(existing.name)}, {megabytes})")
        if existing.growth_bytes != file.growth_bytes:
            growth = f"{existing.growth_percent}%" if existing.growth_bytes is None else size(existing.growth_bytes)
            statements.append(_modified(existing, f"FILEGROWTH = {growth}"))
    return statements


def rehearsal(wanted: TempDb, present: Sequence[FoundFile]) -> Design | None:
    """Return a design with the missing files, with their paths and sizes, or None if all exist. As every database has
    data and a log, one of them that is not missing gets a small file next to the other."""
    pairs, added = _match_files(wanted, present)
    moved = [(existing.kind, file) for existing, file in pairs if not existing.lies_at(file.path)]
    data = [file for kind, file in moved if kind == "ROWS"] + added
    log = [file for kind, file in moved if kind == "LOG"]
    if not data and not log:
        return None
    if not data:
        data = [File(f"{log[0].path}.rehearsal", "rehearsal")]  # size of the server's model database
    if not log:
        log = [File(f"{data[0].path}.rehearsal", "rehearsal", LEAST_BYTES)]
    return Design(files=tuple(data), log=tuple(log))


def _rehearse(connection: Any, trial: Design) -> None:
    run(connection, f"DROP DATABASE IF EXISTS {name(REHEARSAL)}", REHEARSAL)  # left by a run that was killed
    [create] = create_database(REHEARSAL, trial)
    try:
        run(connection, create, REHEARSAL)
    except StallmarkError as error:
        raise StallmarkError(
            "The server cannot make tempdb's files where the scenario wants them, and with such paths it would not "
            f"start again, so nothing was changed. {error}"
        ) from None
    run(connection, f"DROP DATABASE {name(REHEARSAL)}", REHEARSAL)


def _match_files(wanted: TempDb, present: Sequence[FoundFile]) -> tuple[Pairs, list[File]]:
    """Return the pairs of present and wanted files, and the files to be added."""
    data = [file for file in present if file.kind == "ROWS"]
    pairs = list(zip(data, wanted.files, strict=False))
    if wanted.log:
        pairs += [(file, wanted.log) for file in present if file.kind == "LOG"][:1]
    return pairs, list(wanted.files[len(data) :])


def _modify(existing: FoundFile, wanted: File) -> list[str]:
    """Modify one property at a time, as the documentation has it."""
    changes = []
    if not existing.lies_at(wanted.path):
        changes.append(f"FILENAME = {text(wanted.path)}")
    if wanted.size_bytes is not None and _is_enlarged(existing, wanted):
        changes.append(f"SIZE = {size(wanted.size_bytes)}")
    if wanted.growth_bytes != existing.growth_bytes:
        changes.append(f"FILEGROWTH = {size(wanted.growth_bytes)}")
    return [_modified(existing, change) for change in changes]


def _modified(existing: FoundFile, change: str) -> str:
    return _alter(f"MODIFY FILE (NAME = {text(existing.name)}, {change})")


def _alter(clause: str) -> str:
    return f"ALTER DATABASE [tempdb] {clause}"


def _is_enlarged(existing: FoundFile, wanted: File) -> bool:
    return wanted.size_bytes is not None and wanted.size_bytes > existing.size_bytes
