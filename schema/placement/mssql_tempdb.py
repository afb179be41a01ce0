"""tempdb's files where a scenario wants them.

tempdb is the server's, and is made anew at each of its starts: from a path where it cannot be made, no start succeeds.
So the files are first made there by another database, and the statements that give back what was are kept.
"""

from collections.abc import Sequence
from contextlib import closing
from typing import Any

from stallmark.engines.mssql import variant_settings
from stallmark.engines.mssql.odbc import name, text
from stallmark.engines.mssql.server import Server
from stallmark.errors import StallmarkError
from stallmark.schema.placement import mssql_existing
from stallmark.schema.placement.design import LEAST_BYTES, MIB, Design, File, TempDb
from stallmark.schema.placement.mssql import create_database, file_clause, run, size
from stallmark.schema.placement.mssql_existing import FoundFile

REHEARSAL = "stallmark_rehearses_tempdb"

Pairs = list[tuple[FoundFile, File]]


def place(server: Server, wanted: TempDb, *, change_server: bool) -> None:
    """Change tempdb's files as `change` has it.

    Raises StallmarkError when they cannot be made there, before anything is changed; and when something is still
    otherwise, because only a restart of the server (a path) or its administrator (a file too many) can change it.
    """
    present = mssql_existing.read_tempdb(server)
    if statements := change(wanted, present, change_server=change_server):
        with closing(server.on_database("master").connect()) as connection:
            if trial := rehearsal(wanted, present):
                _rehearse(connection, trial)
            variant_settings.note_tempdb(server, give_back(wanted, present))
            for statement in statements:
                run(connection, statement, "tempdb")
    if phrases := mssql_existing.tempdb_differences(wanted, mssql_existing.read_tempdb(server)):
        kept = variant_settings.noted_tempdb(server)
        raise StallmarkError(
            f"tempdb is not yet as the scenario designs it: {'; '.join(phrases)}. A new path holds from the server's "
            "next start on: restart it, and run again; a file too many is its administrator's to remove."
            + (f" {variant_settings.how_to_give_back_tempdb(server, kept)}" if kept else "")
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
    pairs, added = _matched(wanted, present)
    statements = [statement for found, file in pairs for statement in _modify(found, file)]
    return [*statements, *(_alter(f"ADD FILE {file_clause(file)}") for file in added)]


def give_back(wanted: TempDb, present: Sequence[FoundFile]) -> list[str]:
    """Return the statements that undo `change`. The paths hold from the server's next start on."""
    pairs, added = _matched(wanted, present)
    statements = [_alter(f"REMOVE FILE {name(file.name)}") for file in reversed(added)]
    for found, file in pairs:
        if not found.lies_at(file.path):
            statements.append(_modified(found, f"FILENAME = {text(found.path)}"))
        if _is_enlarged(found, file):  # MODIFY FILE makes nothing smaller
            megabytes = -(-found.size_bytes // MIB)
            statements.append(f"USE [tempdb]; DBCC SHRINKFILE ({text(found.name)}, {megabytes})")
        if found.growth_bytes != file.growth_bytes:
            growth = f"{found.growth_percent}%" if found.growth_bytes is None else size(found.growth_bytes)
            statements.append(_modified(found, f"FILEGROWTH = {growth}"))
    return statements


def rehearsal(wanted: TempDb, present: Sequence[FoundFile]) -> Design | None:
    """Return a database of the files that are to be made: same paths, same sizes; None when all are there. A database
    has data and a log: what is not wanted of one lies small beside the other."""
    pairs, added = _matched(wanted, present)
    moved = [(found.kind, file) for found, file in pairs if not found.lies_at(file.path)]
    data = [file for kind, file in moved if kind == "ROWS"] + added
    log = [file for kind, file in moved if kind == "LOG"]
    if not data and not log:
        return None
    if not data:
        data = [File(f"{log[0].path}.rehearsal", "rehearsal")]  # as large as the server's model database
    if not log:
        log = [File(f"{data[0].path}.rehearsal", "rehearsal", LEAST_BYTES)]
    return Design(files=tuple(data), log=tuple(log))


def _rehearse(connection: Any, trial: Design) -> None:
    run(connection, f"DROP DATABASE IF EXISTS {name(REHEARSAL)}", REHEARSAL)  # of a run that was killed
    [create] = create_database(REHEARSAL, trial)
    try:
        run(connection, create, REHEARSAL)
    except StallmarkError as error:
        raise StallmarkError(
            "The server cannot make tempdb's files where the scenario wants them, and with such paths it would not "
            f"start again, so nothing was changed. {error}"
        ) from None
    run(connection, f"DROP DATABASE {name(REHEARSAL)}", REHEARSAL)


def _matched(wanted: TempDb, present: Sequence[FoundFile]) -> tuple[Pairs, list[File]]:
    """Return which present file becomes which wanted one, and the files to be added."""
    data = [file for file in present if file.kind == "ROWS"]
    pairs = list(zip(data, wanted.files, strict=False))
    if wanted.log:
        pairs += [(file, wanted.log) for file in present if file.kind == "LOG"][:1]
    return pairs, list(wanted.files[len(data) :])


def _modify(found: FoundFile, wanted: File) -> list[str]:
    """Modify one property at a time, as the documentation has it."""
    changes = []
    if not found.lies_at(wanted.path):
        changes.append(f"FILENAME = {text(wanted.path)}")
    if wanted.size_bytes is not None and _is_enlarged(found, wanted):
        changes.append(f"SIZE = {size(wanted.size_bytes)}")
    if wanted.growth_bytes != found.growth_bytes:
        changes.append(f"FILEGROWTH = {size(wanted.growth_bytes)}")
    return [_modified(found, change) for change in changes]


def _modified(found: FoundFile, change: str) -> str:
    return _alter(f"MODIFY FILE (NAME = {text(found.name)}, {change})")


def _alter(clause: str) -> str:
    return f"ALTER DATABASE [tempdb] {clause}"


def _is_enlarged(found: FoundFile, wanted: File) -> bool:
    return wanted.size_bytes is not None and wanted.size_bytes > found.size_bytes
