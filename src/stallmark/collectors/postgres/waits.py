"""Waits of the virtual users and the rows they wait for, sampled five times a second."""

from collections import Counter
from collections.abc import Sequence

from stallmark.collectors.base import WAITS, EachDatabase, Polled, Row, ServerConnection, polled_columns
from stallmark.collectors.postgres.collector import CollectorConnection, PostgresCollector, missing_privilege_sentence
from stallmark.engines import sql_file
from stallmark.engines.base import Engine
from stallmark.errors import StallmarkError

_UNKNOWN = "unknown"
_HIDDEN = "the sessions of the virtual users are hidden from it"


def wait_class(state: str | None, event_type: str | None, event: str | None) -> tuple[str, str]:
    """Return the class of a session's wait (io, lock, wal, cpu, client, other) and its name, "IO:DataFileRead".

    A session that is not executing waits for its client, whatever it seems to do at that instant. Writing and
    syncing WAL is "wal" and not "io", and so is queueing for it.
    """
    if state is None or state == "starting":
        return "other", "starting"
    if state.startswith("idle"):
        return "client", state
    if event_type is None or event is None:
        return "cpu", "CPU"
    name = f"{event_type}:{event}"
    is_wal = event.upper().startswith("WAL")
    match event_type:
        case "IO" | "LWLock" if is_wal:
            return "wal", name
        case "IO":
            return "io", name
        case "IPC" if event.upper() == "BUFFERIO":  # another session reads the same block
            return "io", name
        case "Lock":
            return "lock", name
        case "Client":
            return "client", name
    return "other", name


class UserWaits(PostgresCollector):
    name = "waits"
    title = "Waits of the users"
    help = (
        "The activity of each virtual user's session (I/O, lock, WAL, CPU or client), sampled at a random "
        "instant of every fifth of a second and counted per second (pg_stat_activity). Samples / polls is a "
        "mean number of users."
    )
    interval_s = 0.2
    polling = True
    columns = polled_columns(WAITS)

    def __init__(self, engine: Engine):
        super().__init__(engine)
        self._polled = Polled(*WAITS)

    def unavailable(self) -> str | None:
        return super().unavailable() or self._hidden_users()

    def sample(self, now: float) -> list[Row]:
        sessions = self.connection.rows(self.sql)
        if any(row["hidden"] for row in sessions):
            raise StallmarkError(f"{_HIDDEN}: run GRANT pg_monitor TO its role")
        users: Counter[tuple[str | None, ...]] = Counter()
        for row in sessions:
            users[row["application"], *wait_class(row["state"], row["event_type"], row["event"])] += row["users"]
        return self._polled.add(now, users)

    def finish(self) -> list[Row]:
        return self._polled.finish()

    def _hidden_users(self) -> str | None:
        """Return the reason why the users' sessions are hidden; None if they are seen.

        A role always sees its own sessions, so without pg_read_all_stats only a trial shows it.
        """
        with self.engine.cursor() as cursor:
            if cursor.execute("SELECT pg_has_role('pg_read_all_stats', 'USAGE')").fetchone() == (True,):
                return None
            user = self.engine.session(call_timeout_s=10)
            try:
                rows = cursor.execute(self.sql).fetchall()
            finally:
                user.close()
            hidden = [column.name for column in cursor.description].index("hidden")
            return missing_privilege_sentence(cursor, _HIDDEN) if any(row[hidden] for row in rows) else None


class RowLocks(PostgresCollector):
    name = "row_locks"
    title = "Waits for rows"
    help = (
        "The number of users waiting for a row that another transaction had changed or locked, by table, sampled at a "
        "random instant of every fifth of a second and counted per second (pg_locks). Samples / polls is a mean number "
        "of users. The table is unknown for waits for a key being inserted or for a newer version of a row. Samples "
        "without a waiting user are a row without a table."
    )
    interval_s = 0.2
    polling = True
    named = ("relation",)
    columns = polled_columns(
        {
            "relation": "the table, with its schema; the database before it where several are under load; null: nobody "
            "waited"
        }
    )

    def __init__(self, engine: Engine):
        super().__init__(engine)
        self._polled = Polled("relation")
        self._catalogues: ServerConnection = self.connection
        if self.several:
            self._catalogues = EachDatabase(self.databases, CollectorConnection)
        self._tables: dict[tuple[str, int], str] = {}  # keyed by database and number

    def sample(self, now: float) -> list[Row]:
        waiting: Counter[tuple[str | None, ...]] = Counter()
        for row in self._with_tables(self.connection.rows(self.sql)):
            waiting[(row["relation"],)] += row["users"]
        # A sample without a waiting user counts too: the mean is over all samples.
        return self._polled.add(now, waiting or Counter({(None,): 0}))

    def finish(self) -> list[Row]:
        return self._polled.finish()

    def close(self) -> None:
        super().close()
        self._catalogues.close()

    def _with_tables(self, rows: Sequence[Row]) -> Sequence[Row]:
        """Return the rows with the names of their tables; the catalogues are read when one of an unknown is met."""
        met = {(row["database"], row["number"]) for row in rows if row["number"] is not None}
        if not met <= self._tables.keys():
            relations = self._catalogues.rows(sql_file.read(__package__, "row_locks.tables"))
            # A table that was dropped meanwhile stays unknown, and is not looked up again.
            self._tables = dict.fromkeys(met, _UNKNOWN)
            self._tables |= {(table["database"], table["number"]): table["relation"] for table in relations}
        named = [row | {"relation": self._tables.get((row["database"], row["number"]), _UNKNOWN)} for row in rows]
        return self.with_database_names(named)
