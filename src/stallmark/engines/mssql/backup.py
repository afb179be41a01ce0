"""The copy that every run starts from: a backup of the database in the server's own backup folder."""

from typing import TYPE_CHECKING

from stallmark.engines import sql_file
from stallmark.engines.mssql import lock, sql
from stallmark.engines.mssql.editions import AZURE
from stallmark.engines.mssql.journal import Journal
from stallmark.errors import CallFailed, StallmarkError

if TYPE_CHECKING:
    from stallmark.engines.mssql.engine import MssqlEngine

NO_MORE = "-"  # a description cannot be empty
LABEL_PART = 255  # characters that a description holds; a label may fill two

NOT_THERE = "3201"  # the backup file cannot be opened
SINGLE_USER = "SINGLE_USER"

_STATE = "SELECT state_desc, user_access_desc FROM sys.databases WHERE name = ?"


def cannot(engine: "MssqlEngine") -> str | None:
    """Why the database cannot be backed up and restored here, as a sentence; None when it can."""
    if engine.edition in AZURE:
        return "this edition takes no backup to its own disk: use `reset: continue`"
    if engine.identity().product != "SQL Server":
        return f"{engine.identity().product} has no BACKUP: use `reset: continue`"
    with engine.cursor() as cursor:
        cursor.execute(sql_file.read(__package__, "rights_restore"))
        [row] = cursor.fetchall()
        missing = [name for (name, *_), has in zip(cursor.description, row, strict=True) if not has]
    if missing:
        return (
            f"to back up and restore the database this login needs {', '.join(missing)} as well: have that granted, or "
            "use `reset: continue`"
        )
    return None


def keep(engine: "MssqlEngine", label: str) -> None:
    """Back the database up. The file overwrites an earlier one of the same database."""
    if len(label) > 2 * LABEL_PART:
        raise StallmarkError(f"The database's identity is too long for a backup's description: {len(label)} letters.")
    first, second = sql.text(label[:LABEL_PART]), sql.text(label[LABEL_PART:] or NO_MORE)
    _run(
        engine,
        f"BACKUP DATABASE {_name(engine)} TO DISK = {_file(engine)} WITH COPY_ONLY, INIT, FORMAT, "
        f"DESCRIPTION = {first}, MEDIADESCRIPTION = {second}, CHECKSUM",
        "Backing up",
    )


def kept(engine: "MssqlEngine") -> str | None:
    """The label of the backup; None when there is none that can be read."""
    try:
        with engine.cursor() as cursor:
            header = cursor.execute(f"RESTORE HEADERONLY FROM DISK = {_file(engine)}")
            names = [column[0] for column in header.description]
            row = dict(zip(names, header.fetchone(), strict=True))
            media = cursor.execute(f"RESTORE LABELONLY FROM DISK = {_file(engine)}")
            names = [column[0] for column in media.description]
            label = dict(zip(names, media.fetchone(), strict=True))
    except CallFailed as error:
        if error.code == NOT_THERE:
            return None
        raise
    [(name,)] = engine.query("SELECT DB_NAME()")  # as it was made: a URL may write it in other capitals
    if row["DatabaseName"] != name:
        return None
    second = label["MediaDescription"] or ""
    return (row["BackupDescription"] or "") + ("" if second == NO_MORE else second)


def restore(engine: "MssqlEngine") -> None:
    """Put the backup in the place of the database; sessions that are in it are ended.

    Offline meanwhile: of a single-user database somebody else's session could take the one place. A journal says that
    it is us who made the database so, until it can be opened again.
    """
    name, state, journal = _name(engine), _state(engine), _journal(engine)
    journal.note({"was": state})
    try:
        if state in ("ONLINE", SINGLE_USER):
            _run(engine, f"ALTER DATABASE {name} SET OFFLINE WITH ROLLBACK IMMEDIATE", "Restoring")
        _run(engine, _statement(engine), "Restoring")
    except (StallmarkError, KeyboardInterrupt) as error:
        _open_again(engine, journal, error)
        raise
    journal.remove()


def _open_again(engine: "MssqlEngine", journal: Journal, error: BaseException) -> None:
    """As it was, where the restore had not begun. Where it had, no statement but another restore opens it."""
    online = f"ALTER DATABASE {_name(engine)} SET ONLINE"
    try:
        _run(engine, online, "Opening")
        journal.remove()
    except (CallFailed, StallmarkError) as closed:
        error.add_note(
            f"The database is left closed: {str(closed).rstrip('.')}. If it is OFFLINE, {online} opens it as it was. "
            f"If it is RESTORING, a scenario with `reset: restore` finishes that, and so does {_statement(engine)}."
        )


def finish(engine: "MssqlEngine") -> None:
    """Restore again where a restore of ours was cut, and nobody can open the database since."""
    try:
        journal = _journal(engine)
        if not journal.read():
            return
    except (CallFailed, StallmarkError):  # no way into `master`, so that none was ever made either
        return
    with lock.held(engine.on_database("master")):  # or another run is at it now
        if _state(engine) in ("ONLINE", None):
            journal.remove()
        else:
            restore(engine)


def why_closed(engine: "MssqlEngine") -> str | None:
    """Why the database cannot be opened and what to do, as a phrase; None where it can be, or that is not known."""
    name = _name(engine)
    try:
        state, was_cut = _state(engine), bool(_journal(engine).read())
    except (CallFailed, StallmarkError):
        return None
    if state is None or state == "ONLINE":
        return None
    if was_cut:
        return (
            "a Stallmark restores it, or was cut while it did; then a scenario with `reset: restore` finishes that, "
            f"and so does {_statement(engine)}"
        )
    remedies = {
        "OFFLINE": f"ALTER DATABASE {name} SET ONLINE",
        "RESTORING": f"let whoever restores it finish, or RESTORE DATABASE {name} WITH RECOVERY",
        SINGLE_USER: f"let the one session that is in it say ALTER DATABASE {name} SET MULTI_USER",
    }
    return f"the database is {state}: {remedies.get(state, 'see the error log of the server')}"


def _state(engine: "MssqlEngine") -> str | None:
    """ONLINE where everybody may open it; None where there is no such database."""
    for state, access in engine.on_database("master").query(_STATE, [engine.address.database]):
        return access if (state, access) == ("ONLINE", SINGLE_USER) else state
    return None


def _statement(engine: "MssqlEngine") -> str:
    return f"RESTORE DATABASE {_name(engine)} FROM DISK = {_file(engine)} WITH REPLACE, RECOVERY, CHECKSUM"


def _journal(engine: "MssqlEngine") -> Journal:
    return Journal(engine.on_database("master"), f"restore.{engine.address.database}")


def _run(engine: "MssqlEngine", statement: str, what: str) -> None:
    try:
        engine.on_database("master").execute(statement)
    except CallFailed as error:
        raise StallmarkError(f"{what} {engine.where} failed: {error.message}.") from None


def _name(engine: "MssqlEngine") -> str:
    return sql.name(engine.address.database)


def _file(engine: "MssqlEngine") -> str:
    """Without a folder: the server puts it into its default one."""
    return sql.text(f"stallmark-{engine.address.database}.bak")
