"""The copy that every run starts from: a backup in the server's own folder, kept there until it is removed."""

import re
from collections.abc import Mapping
from datetime import datetime
from functools import cached_property
from pathlib import PureWindowsPath
from typing import Any, NamedTuple

from stallmark.engines import sql_file
from stallmark.engines.abilities import Backup, BackupOptions, Folders, UserBackup
from stallmark.engines.mssql import lock, odbc
from stallmark.engines.mssql.server import SQL_SERVER_2022, SQL_SERVER_2025, Server
from stallmark.engines.mssql.variant_settings import MssqlJournal
from stallmark.errors import CallFailed, NotGivenBack, StallmarkError, as_reason
from stallmark.format import size

# The copy that every run starts from: a backup of the database in the server's own backup folder.


NO_MORE = "-"  # a description cannot be empty
LABEL_PART = 255  # characters that a description holds; a label may fill two

NOT_THERE = "3201"  # the backup file cannot be opened
SINGLE_USER = "SINGLE_USER"

ALGORITHMS = {"ms_xpress": SQL_SERVER_2022, "qat_deflate": SQL_SERVER_2022, "zstd": SQL_SERVER_2025}
"""Algorithms of compression, and the first version that has each (BACKUP (Transact-SQL), Microsoft)."""

_NOT_IN_A_NAME = re.compile(r'[\\/:*?"<>|%\x00-\x1f]')
"""Characters that the name of a file on Windows cannot have, and their replacement."""

_STATE = "SELECT state_desc, user_access_desc, is_auto_close_on FROM sys.databases WHERE name = ?"


class MssqlBackup(Backup):
    """The next backup takes the place of the one before; `kept_copies` removes what is left."""

    options: BackupOptions

    def __init__(self, server: Server):
        self._server = server
        self._name = odbc.name(server.address.database)
        self._placed: Folders | None = None
        self.options = BackupOptions()

    def refusal(self) -> str | None:
        server = self._server
        if server.is_babelfish:
            return f"{server.identity().product} has no BACKUP: use `reset: continue`"
        if reason := server.service.no_restore_reason:
            return reason
        algorithm = self.options.compression
        if algorithm in ALGORITHMS and not server.has_version(ALGORITHMS[algorithm]):
            return f"{server.identity()} compresses no backup by {algorithm}: use `compression: on`"
        if missing := [name for name, has in self._query_row("rights_restore") if not has]:
            if not server.service.gives_roles:
                missing = [name.removeprefix("the role dbcreator or ") for name in missing]
            return (
                f"to back up and restore the database this login needs {', '.join(missing)} as well: have that "
                "granted, or use `reset: continue`"
            )
        if copies := [name for name, is_so in self._query_row("in_group") if is_so]:
            return (
                f"the database is {' and '.join(copies)}, where the server refuses a restore: use `reset: continue`, "
                "or take it out for the runs"
            )
        return None

    def keep(self, label: str) -> None:
        """Back the database up. The file overwrites an earlier one of the same database."""
        if len(label) > 2 * LABEL_PART:
            raise StallmarkError(
                f"The database's identity is too long for a backup's description: {len(label)} letters."
            )
        first, second = odbc.text(label[:LABEL_PART]), odbc.text(label[LABEL_PART:] or NO_MORE)
        self._run(
            f"BACKUP DATABASE {self._name} TO {self._disks} WITH COPY_ONLY, INIT, FORMAT, "
            f"DESCRIPTION = {first}, MEDIADESCRIPTION = {second}, CHECKSUM{self._compression}{self._buffers}",
            "Backing up",
        )

    def label(self) -> str | None:
        """Return the label of the backup, or None if it cannot be read."""
        try:
            row, *_ = _query_by_name(self._server, f"RESTORE HEADERONLY FROM DISK = {self._files[0]}")
            label, *_ = _query_by_name(self._server, f"RESTORE LABELONLY FROM DISK = {self._files[0]}")
        except CallFailed as error:
            if error.code == NOT_THERE:
                return None
            raise
        if row["DatabaseName"] != self._server.database_name():
            return None
        second = label["MediaDescription"] or ""
        return (row["BackupDescription"] or "") + ("" if second == NO_MORE else second)

    def restore(self, to: Folders | None = None) -> None:
        """Put the backup in the place of the database, its files where they lay when it was made, or into the folders;
        sessions that are in it are ended.

        Offline meanwhile: of a single-user database someone else's session could take the one place. A journal says
        that it is us who made the database so, until it can be opened again.
        """
        statement = self._statement + (f", {self._moves(to)}" if to else "")
        state, closes = self._state(), self._closes()
        self._journal.note({"was": state})
        self._server.close_idle()
        try:
            if state in ("ONLINE", SINGLE_USER):
                self._run(f"ALTER DATABASE {self._name} SET OFFLINE WITH ROLLBACK IMMEDIATE", "Restoring")
            self._run(statement, "Restoring")
        except (StallmarkError, KeyboardInterrupt) as error:
            self._open_again(error)
            raise
        self._journal.remove()
        self._placed = to
        if self._closes() and not closes:  # the copy has it from elsewhere
            self._run(odbc.stay_open(self._server.address.database), "Restoring")

    def refuse_folders(self, to: Folders, size_bytes: int) -> None:
        for folder in {to.data, to.log or to.data, *to.filegroups.values()}:
            [(is_folder,)] = self._master.query("SELECT file_is_a_directory FROM sys.dm_os_file_exists(?)", [folder])
            if not is_folder:
                raise StallmarkError(f"The server has no folder {folder}, or may not look into it: make it first.")
        free = self._free_bytes(to.data)  # how large a log or a filegroup is, the backup alone knows
        if free is not None and size_bytes > free:
            raise StallmarkError(
                f"The drive of {to.data} has {size(free)} free, and the database needs {size(size_bytes)}: free some "
                "space, or name another folder."
            )

    def bring_home(self) -> None:
        if self._placed is None:
            return
        try:
            self.restore()
        except (CallFailed, StallmarkError) as error:
            raise NotGivenBack(
                f"The database is still in {self._placed.data} ({as_reason(error)}): {self._statement} brings it back."
            ) from None

    def _moves(self, to: Folders) -> str:
        """Return the clauses that put each file of the backup into its folder, under the name it has."""
        files = _query_by_name(self._server, f"RESTORE FILELISTONLY FROM {self._disks}")
        unknown = to.filegroups.keys() - {file["FileGroupName"] for file in files}
        if unknown:
            raise StallmarkError(f"place.filegroups names {min(unknown)}, which the database does not have.")
        paths = {file["LogicalName"]: _join_path(_folder(file, to), _base(file["PhysicalName"])) for file in files}
        if twice := [path for path in paths.values() if list(paths.values()).count(path) > 1]:
            raise StallmarkError(f"Two files of the database would both be {twice[0]}: name folders apart.")
        return ", ".join(f"MOVE {odbc.text(name)} TO {odbc.text(path)}" for name, path in paths.items())

    def _free_bytes(self, folder: str) -> int | None:
        """Return the free bytes of a folder's drive; None if it has no letter, as on Linux."""
        if folder[1:2] != ":":
            return None
        drives = self._master.query(
            "SELECT free_space_in_bytes FROM sys.dm_os_enumerate_fixed_drives WHERE LEFT(fixed_drive_path, 2) = ?",
            [folder[:2]],
        )
        return drives[0][0] if drives else None

    def finish_restore(self) -> None:
        """Restore again if one of our restores was interrupted, so that the database cannot be opened."""
        try:
            if not self._journal.read():
                return
        except (CallFailed, StallmarkError):  # no way into `master`, so that none was ever made either
            return
        with lock.hold(self._master):  # or another run is at it now
            if self._state() in ("ONLINE", None):
                self._journal.remove()
            else:
                self.restore()

    def closed_database_reason(self) -> str | None:
        """Return the reason why the database cannot be opened and what to do, as a clause; None if it can, or it is
        unknown.
        """
        try:
            state, was_cut = self._state(), bool(self._journal.read())
        except (CallFailed, StallmarkError):
            return None
        if state is None or state == "ONLINE":
            return None
        if was_cut:
            return (
                "a Stallmark restores it, or was cut while it did; then a scenario with `reset: restore` finishes "
                f"that, and so does {self._statement}"
            )
        remedies = {
            "OFFLINE": f"ALTER DATABASE {self._name} SET ONLINE",
            "RESTORING": f"let whoever restores it finish, or RESTORE DATABASE {self._name} WITH RECOVERY",
            SINGLE_USER: f"let the one session that is in it say ALTER DATABASE {self._name} SET MULTI_USER",
        }
        return f"the database is {state}: {remedies.get(state, 'see the error log of the server')}"

    def _open_again(self, error: BaseException) -> None:
        """Open it as it was, where the restore had not begun. Where it had, only another restore opens it."""
        online = f"ALTER DATABASE {self._name} SET ONLINE"
        try:
            self._run(online, "Opening")
            self._journal.remove()
        except (CallFailed, StallmarkError) as closed:
            error.add_note(
                f"The database is left closed: {str(closed).rstrip('.')}. If it is OFFLINE, {online} opens it as it "
                "was. If it is RESTORING, a scenario with `reset: restore` finishes that, and so does "
                f"{self._statement}."
            )

    def _state(self) -> str | None:
        """Return the state of the database, ONLINE if it is open to all; None if it does not exist."""
        for state, access, _ in self._rows():
            return access if (state, access) == ("ONLINE", SINGLE_USER) else state
        return None

    def _closes(self) -> bool:
        """Return True if the database closes after its last session ends."""
        return any(closes for _, _, closes in self._rows())

    def _rows(self) -> list[tuple]:
        return self._master.query(_STATE, [self._server.address.database])

    @property
    def _statement(self) -> str:
        return f"RESTORE DATABASE {self._name} FROM {self._disks} WITH REPLACE, RECOVERY, CHECKSUM{self._buffers}"

    @property
    def _files(self) -> list[str]:
        """Each as a text of T-SQL; without a folder they are in the server's default one."""
        count = self.options.files
        name = f"stallmark-{_NOT_IN_A_NAME.sub(_as_number, self._server.address.database)}"
        names = [f"{name}.bak"] if count == 1 else [f"{name}-{part}of{count}.bak" for part in range(1, count + 1)]
        folder = self.options.folder
        return [odbc.text(name if folder is None else _join_path(folder, name)) for name in names]

    @property
    def _disks(self) -> str:
        return ", ".join(f"DISK = {file}" for file in self._files)

    @property
    def _compression(self) -> str:
        plain = {"": "", "on": ", COMPRESSION", "off": ", NO_COMPRESSION"}
        chosen = self.options.compression or ""
        return plain[chosen] if chosen in plain else f", COMPRESSION (ALGORITHM = {chosen.upper()})"

    @property
    def _buffers(self) -> str:
        chosen = {"BUFFERCOUNT": self.options.buffers, "MAXTRANSFERSIZE": self.options.transfer_bytes}
        return "".join(f", {name} = {value}" for name, value in chosen.items() if value is not None)

    def _query_row(self, name: str) -> list[tuple[str, int]]:
        """Return the columns of a query of one row, with their values."""
        with self._server.cursor() as cursor:
            cursor.execute(sql_file.statement(__name__, name))
            [row] = cursor.fetchall()
            return [(column[0], value) for column, value in zip(cursor.description, row, strict=True)]

    def _run(self, statement: str, action: str) -> None:
        try:
            self._master.execute(statement)
        except CallFailed as error:
            raise StallmarkError(f"{action} {self._server.location} failed: {error.message}.") from None

    @cached_property
    def _master(self) -> Server:
        return self._server.on_database("master")

    @property
    def _journal(self) -> MssqlJournal:
        return MssqlJournal(self._master, f"restore.{self._server.address.database}")


def _query_by_name(server: Server, statement: str) -> list[dict[str, Any]]:
    """Return the rows of a statement by their columns, of which later versions have more."""
    with server.cursor() as cursor:
        cursor.execute(statement)
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


# A backup of a user's own database, which is only read.

_FULL = 1
_FILES = "SELECT name, physical_name FROM sys.master_files WHERE database_id = DB_ID(?)"


class MssqlUserBackup(UserBackup):
    """The last full backup in a file of the server's machine. The files of the database stay in their places."""

    def __init__(self, server: Server):
        self._server = server

    def refusal(self) -> str | None:
        return MssqlBackup(self._server).refusal()

    def refuse(self, source: str) -> None:
        _UserFile(self._server, source).restore_statement()

    def restore(self, source: str) -> None:
        _UserFile(self._server, source).restore()

    def finish_restore(self, source: str) -> None:
        _UserFile(self._server, source).finish_restore()


class _UserFile(MssqlBackup):
    def __init__(self, server: Server, path: str):
        super().__init__(server)
        self._path = path

    @property
    def _files(self) -> list[str]:
        return [odbc.text(self._path)]

    @property
    def _statement(self) -> str:
        return self.restore_statement()

    def restore_statement(self) -> str:
        """Raise StallmarkError if the file has no backup that fits the database."""
        try:
            backups = _query_by_name(self._master, f"RESTORE HEADERONLY FROM {self._disks}")
        except CallFailed as error:
            raise StallmarkError(f"The server cannot read {self._path} ({error.message}).") from None
        full = [backup for backup in backups if backup["BackupType"] == _FULL]
        if not full:
            raise StallmarkError(f"{self._path} holds no full backup of a database: make one by BACKUP DATABASE.")
        number = full[-1]["Position"]
        files = _query_by_name(self._master, f"RESTORE FILELISTONLY FROM {self._disks} WITH FILE = {number}")
        places = dict(self._master.query(_FILES, [self._server.address.database]))
        if strange := [file["LogicalName"] for file in files if file["LogicalName"] not in places]:
            raise StallmarkError(
                f"{self._path} has the file {strange[0]}, which the database {self._server.address.database} lacks: "
                "restore it once by hand, so that its files have their places."
            )
        moves = [
            f"MOVE {odbc.text(name)} TO {odbc.text(places[name])}" for name in (file["LogicalName"] for file in files)
        ]
        checksum = ", CHECKSUM" if full[-1]["HasBackupChecksums"] else ""
        restore = f"RESTORE DATABASE {self._name} FROM {self._disks} WITH FILE = {number}, REPLACE, RECOVERY"
        return ", ".join([f"{restore}{checksum}", *moves])


def _as_number(character: re.Match[str]) -> str:
    return f"%{ord(character[0]):02X}"


def _join_path(folder: str, name: str) -> str:
    """Return the path of a file in a folder of the server, be it Windows or Linux."""
    separator = "\\" if "\\" in folder or folder[1:2] == ":" else "/"
    return f"{folder.rstrip(separator)}{separator}{name}"


def _folder(file: Mapping[str, Any], to: Folders) -> str:
    """Return the folder of a file as RESTORE FILELISTONLY describes it."""
    if file["Type"] == "L":
        return to.log or to.data
    return to.filegroups.get(file["FileGroupName"], to.data)


def _base(path: str) -> str:
    return PureWindowsPath(path).name  # it reads both kinds of separators


# The backup files that Stallmark has left on a server, and their removal.


# What maintenance plans remove backups by: of files that are none it does nothing.
_DELETE = "EXEC master.dbo.xp_delete_file 0, {path}"


class KeptCopy(NamedTuple):
    """A file of a backup, by its path on the server. msdb may lack what is None; `database` is empty then."""

    database: str
    path: str
    finished: datetime | None
    bytes: int | None


def kept_copies(server: Server) -> list[KeptCopy]:
    """Return the files that are still there, of all databases of the server. Raise CallFailed without the right to
    read msdb."""
    if server.is_babelfish or server.is_azure_database:  # these have no BACKUP, and no msdb to ask
        return []
    copies = [KeptCopy(*row) for row in server.query(sql_file.statement(__name__, "kept_copies"))]
    return [copy for copy in copies if _is_there(server, copy.path)]


def remove_kept_copy(server: Server, copy: KeptCopy) -> None:
    """Remove the file. Raise StallmarkError if it is still there."""
    try:
        server.execute(_DELETE.format(path=odbc.text(copy.path)))
        reason = "the server did nothing"
    except CallFailed as error:
        reason = error.message
    if _is_there(server, copy.path):
        login = "use a login that is sysadmin, or " if server.service.gives_roles else ""
        raise StallmarkError(f"{copy.path} is still there ({reason}): {login}remove the file on the server.")


def _is_there(server: Server, path: str) -> bool:
    try:
        server.query(f"RESTORE LABELONLY FROM DISK = {odbc.text(path)}")
    except CallFailed as error:
        return error.code != NOT_THERE
    return True
