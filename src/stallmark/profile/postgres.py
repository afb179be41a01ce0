"""PostgreSQL as the source of a profile: a few prepared queries for every sample."""

import time
from collections.abc import Sequence

import psycopg
from psycopg.conninfo import make_conninfo

from stallmark.collectors.postgres import CollectorConnection
from stallmark.collectors.postgres.counters import wait_class
from stallmark.collectors.sampler import Row
from stallmark.engines import sql_file
from stallmark.engines.postgres.engine import OLDEST_MAJOR, PostgresEngine
from stallmark.engines.postgres.session import first_line
from stallmark.errors import NoConnection, StallmarkError
from stallmark.profile.collection import ANSWER_WITHIN_S, APPLICATION, LOCK_TIMEOUT_MS, Opened, Reading, Source
from stallmark.record.profile import IO, LONGEST_TRANSACTION, STATES, ProfiledServer

_MANNERS = (
    f"SET lock_timeout = {LOCK_TIMEOUT_MS}; SET statement_timeout = {ANSWER_WITHIN_S * 1000}; "
    "SET default_transaction_read_only = on"
)
# A server that has gone without a word is given up after this, and not after the two hours of TCP.
_ALIVE = {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3, "tcp_user_timeout": 30_000}
# Rare, because the query asks the file system for every file.
SIZES_EVERY_S = 300.0
_NOT_REPORTED = "PostgreSQL does not report figures of its machine"
_UNTIMED = "{} is off on the server: to know it, run ALTER SYSTEM SET {} = on; SELECT pg_reload_conf()"
_NO_ROLE = "this role does not see the sessions of others: as a superuser, run GRANT pg_monitor TO it"


class _Connection(CollectorConnection):
    """A connection that only reads, and waits for no lock."""

    def open(self) -> None:
        if self._connection is not None:
            return
        engine = self._engine
        assert isinstance(engine, PostgresEngine)
        try:
            self._connection = engine.open(
                lambda text: psycopg.connect(make_conninfo(text, **_ALIVE), autocommit=True), APPLICATION
            )
            self._connection.execute(_MANNERS)
        except psycopg.Error as error:
            self.close()
            raise NoConnection(f"No connection to {engine.location}: {first_line(error)}.") from None
        self._prepared = {}


class PostgresSource(Source):
    """A PostgreSQL server, by its engine."""

    engine = "postgresql"

    def __init__(self, engine: PostgresEngine, *, anonymous: bool):
        super().__init__(engine.login(), engine.location.rpartition("/")[2], anonymous=anonymous)
        self._spec = engine.spec()
        self.address = engine.location
        self._connection = _Connection(engine)
        self._texts: dict[str, str] = {}
        self._sized: float | None = None
        self._sizes: tuple[int | None, int | None] = (None, None)

    def open(self) -> Opened:
        # A new engine, because another server may be behind the address now.
        engine = PostgresEngine(self._spec)
        major = engine.identity().version[0]
        self._connection = _Connection(engine)
        self._texts = {name: statement(name, major) for name in ("moment", "files", "counters", "databases")}
        [facts] = self._connection.rows(statement("facts"))
        if facts["sees_sessions"]:
            self._texts["sessions"] = statement("sessions")
        self._sized = None
        # A refused query is reported at the start, not hours later.
        self.read()
        server = ProfiledServer(
            engine="postgresql",
            product="PostgreSQL",
            version=facts["version"],
            name=None if self._anonymous else facts["name"],
            pool_bytes=facts["pool_bytes"],
            database_bytes=self._sizes[0],
        )
        return Opened(server, facts["mark"], self._missing(facts))

    def read(self) -> Reading:
        answers = {name: self._connection.rows(text) for name, text in self._texts.items()}
        [moment] = answers["moment"]
        start = moment["start"]
        counters = [
            (row["counter"], "" if row["counter"] in STATES else f"{start} {row['epoch']}", row["value"])
            for row in (*answers["counters"], *answers["databases"])
        ]
        sessions: Sequence[Row] = answers.get("sessions", [])
        if ages := [row["oldest_s"] for row in sessions if row["oldest_s"] is not None]:
            counters.append((LONGEST_TRANSACTION, "", round(max(ages) * 1000)))
        self._measure_sizes()
        files = [self._file(start, row) for row in answers["files"]]
        tables = {"file_counters": files, "server_counters": counters, "sessions_seen": _sessions(sessions)}
        return Reading(moment["server_clock"], start, None, tables)

    def close(self) -> None:
        self._connection.close()

    def _file(self, start: str, row: Row) -> tuple:
        kind = row["file_class"]
        size = {"data": self._sizes[0], "log": self._sizes[1]}.get(kind)
        return kind, None, kind, f"{start} {row['epoch']}", *(row[name] for name in IO), size

    def _measure_sizes(self) -> None:
        now = time.monotonic()
        if self._sized is not None and now - self._sized < SIZES_EVERY_S:
            return
        self._sized = now
        try:
            [sizes] = self._connection.rows(statement("sizes"))
            self._sizes = sizes["data"], sizes["log"]
        except NoConnection:
            raise
        except StallmarkError:  # a database is being dropped, or the role lacks the right: unknown this time
            self._sizes = (None, None)

    def _missing(self, facts: Row) -> dict[str, str]:
        missing = {name: _NOT_REPORTED for name in ("cores", "memory_bytes", "cpu_s")}
        missing |= {} if facts["times_files"] else {"data stalls": _UNTIMED.format(*["track_io_timing"] * 2)}
        missing |= {} if facts["times_log"] else {"log stalls": _UNTIMED.format(*["track_wal_io_timing"] * 2)}
        missing |= {} if facts["sees_sessions"] else {"waits": _NO_ROLE}
        unsized = {"size_bytes": "this role may not ask for sizes: GRANT pg_monitor"}
        return missing | ({} if self._sizes[0] is not None else unsized)


def _sessions(rows: Sequence[Row]) -> list[tuple]:
    users: dict[tuple[str, str], int] = {}
    for row in rows:
        kind, name = wait_class(row["state"], row["event_type"], row["event"])
        users[name, kind] = users.get((name, kind), 0) + row["users"]
    return [(name, kind, count) for (name, kind), count in users.items()]


def statement(name: str, major: int = OLDEST_MAJOR) -> str:
    """Return the newest query of this name that the server's major version supports: `name.17` is for 17 and later,
    one without a version for all."""
    keys = [name, *(f"{name}.{version}" for version in range(OLDEST_MAJOR, major + 1))]
    # The file has them in ascending order.
    return [query.text for query in sql_file.statements(__name__) if query.key in keys][-1]
