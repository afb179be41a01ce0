"""What the virtual users wait for, seen by looking at their sessions five times a second."""

from collections import Counter

from stallmark.collectors.base import Row
from stallmark.collectors.mssql.collector import MssqlCollector
from stallmark.collectors.mssql.connection import CollectorConnection
from stallmark.collectors.mssql.wait_types import wait_class
from stallmark.collectors.polled import WAITS, Polled, polled_columns
from stallmark.engines.base import Engine

# Before 2022 the finer permission is not known and asking for it gives NULL.
_MAY_SEE_ALL = """\
SELECT COALESCE(HAS_PERMS_BY_NAME(NULL, NULL, 'VIEW SERVER PERFORMANCE STATE'),
                HAS_PERMS_BY_NAME(NULL, NULL, 'VIEW SERVER STATE'))
"""
_MAY_SEE_DATABASE = "SELECT HAS_PERMS_BY_NAME(DB_NAME(), 'DATABASE', 'VIEW DATABASE STATE')"


class Waits(MssqlCollector):
    name = "waits"
    title = "Waits of the users"
    help = (
        "What each virtual user's session was doing: I/O, lock, log, CPU or its client, seen at a random "
        "instant of every half second and counted per second (sys.dm_exec_requests). Samples / polls is a "
        "mean number of users. Of a parallel query only what its coordinator waits for is seen."
    )
    interval_s = 0.5
    polling = True
    on_azure = True
    columns = polled_columns(*WAITS)

    def __init__(self, engine: Engine, connection: CollectorConnection | None = None):
        super().__init__(engine, connection)
        self._polled = Polled(*WAITS)

    def unavailable(self) -> str | None:
        return super().unavailable() or self._hidden_users()

    def sample(self, now: float) -> list[Row]:
        sessions = self.connection.rows(self.sql)
        users: Counter[tuple[str | None, ...]] = Counter()
        for row in sessions:
            users[wait_class(row["status"], row["wait_type"])] += row["users"]
        return self._polled.add(now, users)

    def finish(self) -> list[Row]:
        return self._polled.finish()

    def _hidden_users(self) -> str | None:
        """A login without permission gets no error: it sees its own session only, and that looks like no users."""
        [(may,)] = self.engine.query(_MAY_SEE_DATABASE if self.is_azure else _MAY_SEE_ALL)
        return None if may == 1 else self.forbidden("the sessions of the virtual users are hidden from it")
