"""The copy that every run starts from: a backup of the database in the server's own backup folder."""

from typing import TYPE_CHECKING, Any

from stallmark.driver.engines.errors import CallFailed, StallmarkError
from stallmark.driver.engines.mssql.errors import failed
from stallmark.driver.engines.mssql.odbc import api

if TYPE_CHECKING:
    from stallmark.driver.engines.mssql.engine import MssqlEngine

LABEL_PART = 255  # characters that a description holds; a label may fill two
MANAGED_INSTANCE = 8

_MAY = """\
SELECT HAS_PERMS_BY_NAME(DB_NAME(), 'DATABASE', 'BACKUP DATABASE') & (IS_SRVROLEMEMBER('dbcreator')
       | IS_SRVROLEMEMBER('sysadmin') | CASE WHEN SUSER_SNAME(owner_sid) = SUSER_SNAME() THEN 1 ELSE 0 END)
  FROM sys.databases WHERE database_id = DB_ID()
"""


def cannot(engine: "MssqlEngine") -> str | None:
    """Why the database cannot be backed up and restored here, as a sentence; None when it can."""
    if engine.is_azure_database or engine.edition == MANAGED_INSTANCE:
        return "this edition takes no backup to its own disk: use `reset: continue`"
    if engine.identity().product != "SQL Server":
        return f"{engine.identity().product} has no BACKUP: use `reset: continue`"
    [(may,)] = engine.query(_MAY)
    if not may:
        return "this login may not back up and restore the database (dbcreator, or its owner): use `reset: continue`"
    return None


def keep(engine: "MssqlEngine", label: str) -> None:
    """Back the database up. The file overwrites an earlier one of the same database."""
    if len(label) > 2 * LABEL_PART:
        raise StallmarkError(
            f"The database's identity is too long for a backup's description: {len(label)} letters."
        )
    first, second = _literal(label[:LABEL_PART]), _literal(label[LABEL_PART:] or " ")
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
    except CallFailed:
        return None
    if row["DatabaseName"] != engine.address.database:
        return None
    return (row["BackupDescription"] or "") + (label["MediaDescription"] or "").strip()


def restore(engine: "MssqlEngine") -> None:
    """Put the backup in the place of the database; sessions that are in it are ended."""
    name = _name(engine)
    _run(
        engine,
        f"ALTER DATABASE {name} SET SINGLE_USER WITH ROLLBACK IMMEDIATE; "
        f"RESTORE DATABASE {name} FROM DISK = {_file(engine)} WITH REPLACE, CHECKSUM; "
        f"ALTER DATABASE {name} SET MULTI_USER",
        "Restoring",
    )


def _run(engine: "MssqlEngine", statement: str, what: str) -> None:
    """To the end: pyodbc breaks a backup off when its messages are not read."""
    connection: Any = engine.connect("stallmark-restore", database="master")
    try:
        cursor = connection.execute(statement)
        while cursor.nextset():
            pass
    except api().Error as error:
        reason = failed(error).message
        raise StallmarkError(f"{what} {engine.where} failed: {reason}. Is the server's disk full?") from None
    finally:
        connection.close()


def _name(engine: "MssqlEngine") -> str:
    return f"[{engine.address.database.replace(']', ']]')}]"


def _file(engine: "MssqlEngine") -> str:
    """Without a folder: the server puts it into its default one."""
    return _literal(f"stallmark-{engine.address.database}.bak")


def _literal(text: str) -> str:
    return "N'" + text.replace("'", "''") + "'"
