"""The copy that every run starts from: a backup of the database in the server's own backup folder."""

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from stallmark.driver.engines.errors import CallFailed, StallmarkError
from stallmark.driver.engines.mssql import sql
from stallmark.driver.engines.mssql.editions import AZURE
from stallmark.driver.engines.mssql.errors import failed
from stallmark.driver.engines.mssql.odbc import api

if TYPE_CHECKING:
    from stallmark.driver.engines.mssql.engine import MssqlEngine

NO_MORE = "-"  # a description cannot be empty
LABEL_PART = 255  # characters that a description holds; a label may fill two

NOT_THERE = "3201"  # the backup file cannot be opened

# To read what a backup holds, too, a login must be allowed to create databases.
_MAY = """\
SELECT HAS_PERMS_BY_NAME(DB_NAME(), 'DATABASE', 'BACKUP DATABASE')
     & HAS_PERMS_BY_NAME(NULL, NULL, 'CREATE ANY DATABASE') AS may
"""


def cannot(engine: "MssqlEngine") -> str | None:
    """Why the database cannot be backed up and restored here, as a sentence; None when it can."""
    if engine.edition in AZURE:
        return "this edition takes no backup to its own disk: use `reset: continue`"
    if engine.identity().product != "SQL Server":
        return f"{engine.identity().product} has no BACKUP: use `reset: continue`"
    [(may,)] = engine.query(_MAY)
    if not may:
        return "this login may not back up and restore the database (dbcreator and its owner): use `reset: continue`"
    return None


def keep(engine: "MssqlEngine", label: str) -> None:
    """Back the database up. The file overwrites an earlier one of the same database."""
    if len(label) > 2 * LABEL_PART:
        raise StallmarkError(
            f"The database's identity is too long for a backup's description: {len(label)} letters."
        )
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
    if row["DatabaseName"] != engine.address.database:
        return None
    second = label["MediaDescription"] or ""
    return (row["BackupDescription"] or "") + ("" if second == NO_MORE else second)


def restore(engine: "MssqlEngine") -> None:
    """Put the backup in the place of the database; sessions that are in it are ended.

    Offline meanwhile: of a single-user database somebody else's session could take the one place.
    """
    name = _name(engine)
    _run(engine, f"ALTER DATABASE {name} SET OFFLINE WITH ROLLBACK IMMEDIATE", "Restoring")
    try:
        _run(
            engine, f"RESTORE DATABASE {name} FROM DISK = {_file(engine)} WITH REPLACE, CHECKSUM", "Restoring"
        )
    except StallmarkError:
        with suppress(StallmarkError):  # as it was, where the restore had not begun
            _run(engine, f"ALTER DATABASE {name} SET ONLINE", "Restoring")
        raise


def _run(engine: "MssqlEngine", statement: str, what: str) -> None:
    """To the end: pyodbc breaks a backup off when its messages are not read."""
    connection: Any = engine.connect("stallmark-restore", database="master")
    try:
        cursor = connection.execute(statement)
        while cursor.nextset():
            pass
    except api().Error as error:
        reason = failed(error).message
        raise StallmarkError(f"{what} {engine.where} failed: {reason}.") from None
    finally:
        connection.close()


def _name(engine: "MssqlEngine") -> str:
    return sql.name(engine.address.database)


def _file(engine: "MssqlEngine") -> str:
    """Without a folder: the server puts it into its default one."""
    return sql.text(f"stallmark-{engine.address.database}.bak")
