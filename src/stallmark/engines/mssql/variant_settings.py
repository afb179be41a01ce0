"""The settings that a variant changes on a server: tempdb, row versioning, a resource pool. Each is noted first."""

import time
from collections.abc import Iterable

from stallmark.engines import sql_file
from stallmark.engines.abilities import VariantSetting
from stallmark.engines.journal import Journal
from stallmark.engines.mssql import odbc
from stallmark.engines.mssql.server import ENTERPRISE, MANAGED_INSTANCE, SQL_SERVER_2025, STANDARD, Server
from stallmark.errors import CallFailed, StallmarkError

_READ = """\
SELECT CAST(value AS nvarchar(3750)) AS value
  FROM sys.extended_properties
 WHERE class_desc = 'DATABASE' AND name = ?
"""
_NOTE = "EXEC sys.sp_addextendedproperty @name = ?, @value = ?"
_REMOVE = "EXEC sys.sp_dropextendedproperty @name = ?"


class MssqlJournal(Journal):
    """A note in an extended property of `master`. `server` is on any database that can be opened."""

    def __init__(self, server: Server, subject: str):
        super().__init__(subject)
        self._server = server
        self._master = None if server.is_azure_database else server.on_database("master")

    def _read_on_server(self) -> str | None:
        notes = self._master.query(_READ, [self._name]) if self._master else []
        return notes[0][0] if notes else None

    def _write_on_server(self, text: str) -> bool:
        if not self._master:
            return False
        try:
            self._master.query(_NOTE, [self._name, text])
        except CallFailed:  # no right to, or longer than a property may be
            return False
        return True

    def _remove_on_server(self) -> None:
        if self._master:
            self._master.query(_REMOVE, [self._name])

    def _removal_statement(self) -> str:
        return f"EXEC master.sys.sp_dropextendedproperty @name = {odbc.text(self._name)}"

    def _server_name(self) -> str:
        return (self._master or self._server).name()


# The statements that give tempdb its files back after a scenario has placed them.
#
# Not done at the end of a run: a file's new path holds from the server's next start on, so a run that gave it back
# would never have measured it. The statements are kept in a journal until somebody has run them and removed it.


def note_tempdb(server: Server, statements: list[str]) -> None:
    """Keep the statements; those of an earlier note stay, because only it knew the original."""
    _tempdb_journal(server).note({"statements": statements})


def noted_tempdb(server: Server) -> list[str]:
    return _tempdb_journal(server).read().get("statements", [])


def tempdb_restore_hint(server: Server, statements: list[str]) -> str:
    return (
        f"To give tempdb back what it had: {'; '.join(statements)}; restart the server, and "
        f"{_tempdb_journal(server).removal_hint}."
    )


def _tempdb_journal(server: Server) -> MssqlJournal:
    return MssqlJournal(server, "tempdb")


# READ_COMMITTED_SNAPSHOT as a variant has it, and as it was afterwards. A note on the server outlives a killed run.

ALONE_WITHIN_S = 30  # sessions of ours that have ended leave a moment later
_IN_USE = ("5061", "5070")
_IS_ON = "SELECT name, is_read_committed_snapshot_on FROM sys.databases WHERE name = {database}"
_SET = "ALTER DATABASE {name} SET READ_COMMITTED_SNAPSHOT {state} WITH NO_WAIT"
_PERMITTED = "SELECT HAS_PERMS_BY_NAME(QUOTENAME(DB_NAME()), N'DATABASE', N'ALTER')"


class RowVersioning(VariantSetting):
    def __init__(self, server: Server):
        self._server = server

    def refusal(self) -> str | None:
        if self._server.is_babelfish:
            return f"{self._server.identity().product} always reads row versions"
        [(permitted,)] = self._server.query(_PERMITTED)
        return None if permitted else "this login may not change the database: GRANT ALTER TO it, or use db_owner"

    def make(self, wanted: bool) -> None:
        """Turn READ_COMMITTED_SNAPSHOT on or off. Raise StallmarkError while the database has other sessions, as the
        change must be alone and ends no session."""
        name, is_on = self._state(self._server.address.database)
        if is_on == wanted:
            return
        self._journal().note({"database": name, "was": is_on})
        self.was_made = True
        self._set(name, wanted)

    def give_back(self) -> None:
        journal = self._journal()
        if not (original := journal.read()):
            return
        name, was = original["database"], bool(original["was"])
        with journal.restored("READ_COMMITTED_SNAPSHOT", lambda: _statement(name, was)):
            if self._state(name)[1] != was:
                self._set(name, was)

    def _state(self, database: str) -> tuple[str, bool]:
        states = self._server.query(_IS_ON.format(database=odbc.text(database)))
        if not states:
            raise StallmarkError(f"The database {database} does not exist on {self._server.address.server}.")
        return states[0][0], bool(states[0][1])

    def _set(self, name: str, wanted: bool) -> None:
        alter_database(self._server, name, _statement(name, wanted), "READ_COMMITTED_SNAPSHOT")

    def _journal(self) -> MssqlJournal:
        return MssqlJournal(self._server, "row_versioning")


def alter_database(server: Server, database: str, statement: str, option: str) -> None:
    """Execute an ALTER DATABASE, which may need the database for itself. Raise StallmarkError while others are in it,
    whose sessions are not ended."""
    deadline = time.monotonic() + ALONE_WITHIN_S
    while True:
        server.close_idle()
        try:
            server.execute(statement)
            return
        except CallFailed as error:
            if error.code not in _IN_USE:
                raise
            if time.monotonic() > deadline:
                raise StallmarkError(
                    f"Others are in the database {database}, and {option} is set only while nobody else is: end their "
                    "sessions, and run again."
                ) from None
        time.sleep(1)


def _statement(database: str, wanted: bool) -> str:
    return _SET.format(name=odbc.name(database), state="ON" if wanted else "OFF")


# A Resource Governor pool for the users of a variant: a cap on their I/O, CPU and memory grants, without a container.
#
# It governs sessions by their application name. The buffer pool is the whole server's and is not divided by it. Whoever
# has a classifier function already has divided the server: that is left alone, and a pool is refused.

_OPTIONS = {
    "iops_per_volume": "MAX_IOPS_PER_VOLUME",
    "cpu_percent": "CAP_CPU_PERCENT",
    "grants_percent": "MAX_MEMORY_PERCENT",
}
_FOUND = """\
SELECT governor.is_enabled, governor.classifier_function_id, state.is_reconfiguration_pending
  FROM sys.resource_governor_configuration AS governor
 CROSS JOIN sys.dm_resource_governor_configuration AS state
"""
_POOL_PERMITTED = "SELECT HAS_PERMS_BY_NAME(NULL, NULL, N'CONTROL SERVER')"
_DISABLE = "ALTER RESOURCE GOVERNOR DISABLE"


class ResourcePool(VariantSetting):
    def __init__(self, server: Server):
        self._server = server

    def refusal(self) -> str | None:
        server = self._server
        if server.is_babelfish:
            return f"{server.identity().product} has no Resource Governor here"
        if reason := server.service.no_pool_reason:
            return reason
        governed = (ENTERPRISE, MANAGED_INSTANCE, *([STANDARD] if server.has_version(SQL_SERVER_2025) else []))
        if server.edition not in governed:
            return "this edition has no Resource Governor: Enterprise and Developer do, and Standard from 2025 on"
        [(permitted,)] = server.query(_POOL_PERMITTED)
        if not permitted:
            return "this login may not configure Resource Governor, which needs CONTROL SERVER"
        return None

    def make(self, wanted: Iterable[tuple[str, int | None]]) -> None:
        """Put users who log in from now on into a pool with these limits, pairs of a key and a value."""
        self.give_back()
        master = self._server.on_database("master")
        [(enabled, classifier, pending)] = master.query(_FOUND)
        if classifier or pending:
            reason = "has a classifier function of its own" if classifier else "has changes that are not in effect yet"
            raise StallmarkError(
                f"Resource Governor of {self._server.address.server} {reason}, so Stallmark leaves it as it is: leave "
                "out `resource_pool`, or take that away first."
            )
        self._journal().note({"enabled": bool(enabled)})
        self.was_made = True
        limits = ", ".join(f"{_OPTIONS[name]} = {int(value)}" for name, value in wanted if value)
        for statement in (
            f"CREATE RESOURCE POOL stallmark WITH ({limits})",
            "CREATE WORKLOAD GROUP stallmark USING stallmark",
            sql_file.statement(__name__, "resource_pool_classifier"),
            "ALTER RESOURCE GOVERNOR WITH (CLASSIFIER_FUNCTION = dbo.stallmark_classifier)",
            "ALTER RESOURCE GOVERNOR RECONFIGURE",
        ):
            master.execute(statement)

    def give_back(self) -> None:
        journal = self._journal()
        if not (original := journal.read()):
            return
        by_hand = "take away its pool, group and classifier function `stallmark`"
        with journal.restored("Resource Governor", lambda: by_hand):
            master = self._server.on_database("master")
            master.execute(sql_file.statement(__name__, "resource_pool_drop"))
            if not original["enabled"]:
                master.execute(_DISABLE)

    def _journal(self) -> MssqlJournal:
        return MssqlJournal(self._server, "resource_pool")
