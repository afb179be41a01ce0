"""READ_COMMITTED_SNAPSHOT as a variant has it, and as it was afterwards. A note on the server outlives a killed run."""

import time

from stallmark.engines.abilities import VariantSetting
from stallmark.engines.mssql import sql
from stallmark.engines.mssql.journal import Journal
from stallmark.engines.mssql.server import Server
from stallmark.errors import CallFailed, NotGivenBack, StallmarkError

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
        """Turn READ_COMMITTED_SNAPSHOT on or off. Raise StallmarkError while others are in the database: it needs to be
        alone, and ends nobody's session."""
        name, is_on = self._state(self._server.address.database)
        if is_on == wanted:
            return
        self._journal().note({"database": name, "was": is_on})
        self.was_made = True
        self._set(name, wanted)

    def give_back(self) -> None:
        journal = self._journal()
        if not (found := journal.read()):
            return
        name, was = found["database"], bool(found["was"])
        try:
            if self._state(name)[1] != was:
                self._set(name, was)
        except (CallFailed, StallmarkError) as error:
            raise NotGivenBack(
                f"READ_COMMITTED_SNAPSHOT could not be given back, which the next run tries again. "
                f"{str(error).rstrip('.')}. Or {_statement(name, was)} yourself, then {journal.how_to_remove}."
            ) from error
        journal.remove()

    def _state(self, database: str) -> tuple[str, bool]:
        found = self._server.query(_IS_ON.format(database=sql.text(database)))
        if not found:
            raise StallmarkError(f"There is no database {database} on {self._server.address.server}.")
        return found[0][0], bool(found[0][1])

    def _set(self, name: str, wanted: bool) -> None:
        deadline = time.monotonic() + ALONE_WITHIN_S
        while True:
            self._server.close_idle()
            try:
                self._server.execute(_statement(name, wanted))
                return
            except CallFailed as error:
                if error.code not in _IN_USE:
                    raise
                if time.monotonic() > deadline:
                    raise StallmarkError(
                        f"Others are in the database {name}, and READ_COMMITTED_SNAPSHOT is set only while nobody else "
                        "is: end their sessions, and run again."
                    ) from None
            time.sleep(1)

    def _journal(self) -> Journal:
        return Journal(self._server, "row_versioning")


def _statement(database: str, wanted: bool) -> str:
    return _SET.format(name=sql.name(database), state="ON" if wanted else "OFF")
