"""PostgreSQL 16 and later: any server by URL. The embedded one builds on this."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import ClassVar, TypeVar

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from stallmark.engines import did_you_mean, sql_file
from stallmark.engines.abilities import (
    Backup,
    Caches,
    Examined,
    Memory,
    Missing,
    NoDevices,
    Placement,
    ServerArrays,
    ServerSession,
    UserBackup,
    VariantSetting,
)
from stallmark.engines.base import MOST_READ, READ_ONLY, ROWS_AT_ONCE, Engine, Login, ServerIdentity, ServerSettings
from stallmark.engines.journal import give_back_each
from stallmark.engines.postgres import address, lock
from stallmark.engines.postgres.session import REFUSE_WRITES, PostgresSession, call_failed, first_line
from stallmark.engines.postgres.settings import PostgresMemory, PostgresSettings, RestartedCaches
from stallmark.engines.postgres.statements import (
    Archive,
    PostgresBulkWriter,
    PostgresPrefill,
    PostgresQueries,
    maintenance,
)
from stallmark.engines.reachability import find_server, is_here, shares_paths
from stallmark.errors import CallFailed, ErrorClass, NoConnection, NotGivenBack, StallmarkError, WrongOption, in_words
from stallmark.stopping import StopSignal, later

OLDEST_MAJOR = 16
SYSTEM_DATABASE = "postgres"  # every server has it
OWN_SESSIONS = 12  # each collector, the lock of the run, and what is asked in between
RESTARTED_WITHIN_S = 60
OF_EACH_DATABASE = 3  # sessions of collectors whose views show one database alone

_INSUFFICIENT_PRIVILEGE = "42501"

# What decides I/O, also by the plans; `settings` keeps those the server knows.
_SETTINGS = [
    "shared_buffers",
    "block_size",
    "wal_block_size",
    "debug_io_direct",
    "io_method",
    "io_workers",
    "io_combine_limit",
    "effective_io_concurrency",
    "fsync",
    "synchronous_commit",
    "full_page_writes",
    "wal_level",
    "wal_sync_method",
    "wal_buffers",
    "wal_compression",
    "max_wal_size",
    "min_wal_size",
    "checkpoint_timeout",
    "checkpoint_completion_target",
    "bgwriter_delay",
    "bgwriter_lru_maxpages",
    "autovacuum",
    "data_checksums",
    "wal_log_hints",
    "huge_pages",
    "max_connections",
    "track_io_timing",
    "track_wal_io_timing",
    "commit_delay",
    "temp_buffers",
    "work_mem",
    "maintenance_work_mem",
    "jit",
    "plan_cache_mode",
    "default_transaction_isolation",
]


_SETTINGS_READ = """
SELECT name, current_setting(name) FROM pg_settings
 WHERE name = ANY(%s) OR (source IN ('global', 'database', 'user', 'database user') AND name NOT LIKE '%%.%%')
 ORDER BY name
"""


Opened = TypeVar("Opened")
_BEFORE_17: set[str] = set()
"""Addresses at which an older server refused a session for `SINCE_17`."""


class PostgresEngine(Engine):
    """A PostgreSQL server reached by a libpq URL, `postgresql://user@host/database`.

    The password may be in the URL, in PGPASSWORD or in ~/.pgpass; it never leaves this object but in `spec`.
    """

    dialect = "postgresql"
    backup: Backup | Missing = Missing(
        "the files of a server reached by URL cannot be copied back: use `reset: continue`"
    )
    placement: Placement | Missing = Missing(
        "data and WAL directories of a server reached by URL are the server's own business: a scenario can name its "
        "tablespaces"
    )
    devices: ServerArrays | NoDevices = NoDevices("an emulated array works under the embedded server only")
    no_restart_reason: ClassVar[str | None] = None

    def __init__(self, url: str):
        self.prefill = PostgresPrefill(self)
        settings, pool = (
            PostgresSettings(self, lambda: self.on_database(SYSTEM_DATABASE), subject)
            for subject in ("settings", "memory")
        )
        self._given_back = {"settings": settings, "buffer_pool": pool}
        self.memory: Memory = PostgresMemory(self, pool)
        self.caches: Caches = RestartedCaches(self)
        self.variant_settings: Mapping[str, VariantSetting | Missing] = {
            "row_versioning": Missing("PostgreSQL's readers always see row versions"),
            "resource_pool": Missing("PostgreSQL has no Resource Governor"),
            "settings": settings,
        }
        self._run_lock: lock.HeldLock | None = None
        self.user_backup: UserBackup | Missing = Archive(self)
        self.maintenance = maintenance(self.connect)
        self._url = url.replace("postgresql+psycopg://", "postgresql://", 1)
        try:
            self._parameters = conninfo_to_dict(self._url)
        except psycopg.ProgrammingError:
            self._parameters = {"port": "unreadable"}
        # The reason is not repeated: libpq quotes the part it stumbled over, which may be the password.
        if not all(port.isdigit() for port in str(self._parameters.get("port", 5432)).split(",")):
            raise WrongOption(
                "The server's URL cannot be read: write postgresql://user@host:5432/database, and every "
                "@, /, :, % or space of a password as %40, %2F, %3A, %25 or %20."
            )

    def open(self, connect: Callable[[str], Opened], application: str, more_options: str = "") -> Opened:
        """Return the result of `connect` with the settings of our sessions, and these options behind them."""
        was_known = self._address in _BEFORE_17  # another thread may find out meanwhile
        try:
            return connect(self._conninfo(application, more_options))
        except (psycopg.OperationalError, CallFailed) as error:
            if address.SINCE_17 not in str(error) or was_known:
                raise
        _BEFORE_17.add(self._address)
        return connect(self._conninfo(application, more_options))

    def _conninfo(self, application: str, more_options: str) -> str:
        own = address.session_options(self._parameters.get("options"), is_before_17=self._address in _BEFORE_17)
        return make_conninfo(
            self._url,
            application_name=application,
            connect_timeout=10,
            client_encoding="UTF8",
            options=f"{own} {more_options}".rstrip(),
        )

    def connect(self, application: str = "stallmark-collector") -> psycopg.Connection:
        try:
            return self.open(lambda text: psycopg.connect(text, autocommit=True), application)
        except psycopg.OperationalError as error:
            if address.refused_by_pooler(error):
                raise NoConnection(address.without_options(self, first_line(error))) from None
            ports = str(self._parameters.get("port", ""))
            hint = did_you_mean("postgresql", int(ports) if ports.isdigit() else None)
            raise NoConnection(
                f"No connection to {self.location}: {first_line(error)}. "
                f"{f'{hint}.' if hint else 'Is the server running, and are host, port, user and database right?'}"
            ) from None

    @contextmanager
    def cursor(self) -> Iterator[psycopg.Cursor]:
        try:
            with super().cursor() as cursor:
                yield cursor
        except psycopg.Error as error:
            raise call_failed(error) from error

    @contextmanager
    def reading_cursor(self) -> Iterator[psycopg.Cursor]:
        try:
            with self.cursor() as cursor:
                cursor.execute(REFUSE_WRITES)
                yield cursor
        except CallFailed as error:
            # Writes are refused by our wish, which is no loss of the server.
            if error.code == READ_ONLY:
                raise CallFailed(ErrorClass.OTHER, error.code, error.message) from None
            raise

    def read(self, sql: str) -> list[tuple]:
        with self.reading_cursor() as cursor:
            # `execute` would receive all rows first. The stream is cancelled when the rest is not needed.
            return list(islice(cursor.stream(sql.encode(), size=ROWS_AT_ONCE), MOST_READ + 1))

    def failure(self, error: Exception) -> CallFailed:
        return call_failed(error)

    def session(self, call_timeout_s: float, application: str = "stallmark-user") -> PostgresSession:
        return self.open(PostgresSession, application, _timeout(call_timeout_s))

    def queries(self, timeout_s: float, application: str = "stallmark-user") -> PostgresQueries:
        return self.open(PostgresQueries, application, _timeout(timeout_s))

    @contextmanager
    def bulk_writer(self) -> Iterator[PostgresBulkWriter]:
        connection = self.connect("stallmark-loader")
        connection.autocommit = False
        try:
            yield PostgresBulkWriter(connection)
        finally:
            connection.close()  # rolls back what was not committed

    def spec(self) -> str:
        return self._url

    def login(self) -> Login:
        return Login(*(str(self._parameters.get(key) or "") for key in ("host", "user", "password")))

    @property
    def location(self) -> str:
        """Return host, port and database, for messages: never the password."""
        return f"{self._address}/{self._parameters.get('dbname', '')}"

    @property
    def _address(self) -> str:
        return f"{self._parameters.get('host', 'localhost')}:{self._parameters.get('port', 5432)}"

    def database_name(self) -> str:
        [(name,)] = self.query("SELECT current_database()")
        return name

    def on_database(self, name: str) -> "PostgresEngine":
        return PostgresEngine(make_conninfo(self._url, dbname=name))

    def has_database(self, name: str) -> bool:
        return bool(self.query("SELECT 1 FROM pg_database WHERE datname = %s", [name]))

    def make_database(self, name: str) -> None:
        try:
            self.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)).as_string())
        except CallFailed as error:
            if reason := address.reads_only_message(self):
                raise StallmarkError(reason) from None
            [(role,)] = self.query("SELECT quote_ident(current_user)")
            raise StallmarkError(
                f"The database {name} is not on {self.location} and could not be made ({error.message}): create it, or "
                f"ALTER ROLE {role} CREATEDB."
            ) from None

    def identity(self) -> ServerIdentity:
        return self._identity

    @cached_property
    def _identity(self) -> ServerIdentity:
        [(number, text)] = self.query(
            "SELECT current_setting('server_version_num')::int, current_setting('server_version')"
        )
        if number < OLDEST_MAJOR * 10_000:
            raise StallmarkError(
                f"{self.location} runs PostgreSQL {text}; Stallmark needs {OLDEST_MAJOR} or later, "
                "because older servers do not report the waits of their I/O (pg_stat_io)."
            )
        address.refuse_indirect(self)
        return ServerIdentity("PostgreSQL", (number // 10_000, number % 10_000), text)

    def settings(self) -> ServerSettings:
        """Return the settings that decide I/O, and all that role or database give to sessions."""
        rows = self.query(_SETTINGS_READ, [_SETTINGS])
        return ServerSettings(dict(rows), placement=dict(self.query(sql_file.statement(__name__, "tablespaces"))))

    def settle(self, table: str) -> None:
        """Gather statistics, and freeze: otherwise a long run would be the first to rewrite every page for it."""
        self.execute(f"VACUUM (FREEZE, ANALYZE) {table}")

    def bytes_used(self) -> int:
        [(size,)] = self.query("SELECT pg_database_size(current_database())")
        return size

    def free_bytes(self) -> int | None:
        return None

    def buffer_pool_bytes(self) -> int:
        [(size,)] = self.query("SELECT pg_size_bytes(current_setting('shared_buffers'))")
        return size

    def process(self) -> int | None:
        """Return the postmaster of a server at an address of this machine. A server in a container is seen too."""
        hosts = [str(self._parameters.get(name) or "").split(",") for name in ("host", "hostaddr")]
        if not is_here([host for several in hosts for host in several]):
            return None
        with self.cursor() as cursor:
            cursor.execute("SELECT extract(epoch FROM pg_postmaster_start_time())::float8, pg_backend_pid()")
            [(started, session)] = cursor.fetchall()
            return find_server(("postgres",), started, session)

    def storage_here(self) -> Mapping[str, Path]:
        if (pid := self.process()) is None or not shares_paths(pid):
            return {}
        [(data, elsewhere)] = self.query(
            "SELECT (SELECT setting FROM pg_settings WHERE name = 'data_directory'),"
            " (SELECT count(*) FROM pg_tablespace WHERE spcname NOT IN ('pg_default', 'pg_global'))"
        )
        # The setting is for superusers and members of pg_read_all_settings.
        return {} if data is None or elsewhere else {"data": Path(data), "wal": Path(data) / "pg_wal"}

    def most_users(self) -> int:
        most, _ = self._most_connections()
        return max(0, most - OWN_SESSIONS - OF_EACH_DATABASE * (len(self.databases()) - 1))

    def users_limited_by(self) -> str:
        return self._most_connections()[1]

    def _most_connections(self) -> tuple[int, str]:
        one_database = {"one_database": not self.by_workload}
        [(most, limited_by)] = self.query(sql_file.statement(__name__, "most_connections"), one_database)
        return most, limited_by

    @contextmanager
    def hold(self) -> Iterator[Callable[[], None]]:
        """Hold a lock in the database while a run lasts. Settings that a killed run has left are given back first."""
        with lock.hold(self) as held:
            self._run_lock = held
            try:
                for setting in self._given_back.values():
                    setting.give_back()
                yield held
            except BaseException as reason:
                for sentence in self._give_back():  # beside the reason for which the run ends, not instead of it
                    reason.add_note(sentence)
                raise
            if left := self._give_back():
                raise NotGivenBack(" ".join(left))

    def restart_server(self) -> None:
        """Have the scenario restart the server, and hold the lock of the run again. Raise StallmarkError."""
        assert self.restart
        began = "SELECT pg_postmaster_start_time()"
        [(before,)] = self.query(began)
        self.close_idle()
        self.restart()
        # Waited for, because a command may return before the server has begun to stop.
        until, reason = time.monotonic() + RESTARTED_WITHIN_S, ""
        while time.monotonic() < until:
            try:
                [(now,)] = self.query(began)
            except (NoConnection, CallFailed) as error:
                reason = f"it does not answer ({in_words(error)})"
            else:
                if now > before:
                    break
                reason = f"it runs since {before:%H:%M:%S} as before"
            time.sleep(0.2)
        else:
            raise StallmarkError(f"{self.location} was not restarted within {RESTARTED_WITHIN_S} s: {reason}.")
        if self._run_lock:
            self._run_lock.retake()

    def _give_back(self) -> list[str]:
        left: list[str] = []
        try:
            with later():
                left = give_back_each(self._given_back)
        except StopSignal as stopped:
            for sentence in left:
                stopped.add_note(sentence)
            raise
        finally:
            for setting in self._given_back.values():
                setting.release()
        return left

    def blockers(self) -> list[ServerSession]:
        return [ServerSession(*row) for row in self.query(sql_file.statement(__name__, "blockers"))]

    def other_sessions(self) -> list[ServerSession]:
        return [ServerSession(*row) for row in self.query(sql_file.statement(__name__, "other_sessions"))]

    def role_settings(self) -> list[tuple[str, str, str]]:
        """Return the settings that the role, the database or both give to our sessions, in order of precedence.

        Each is a name, a value, and the first words of the statement that gives another value.
        """
        return self.query(sql_file.statement(__name__, "role_settings"))

    @property
    def user(self) -> str:
        return str(self._parameters.get("user") or "the user")

    def not_writable_reason(self, schemas: Sequence[str]) -> str | None:
        return (
            address.reads_only_message(self)
            or address.unchecked_keys_message(self)
            or address.missing_right_message(self, schemas)
        )

    def examine(self) -> Iterator[Examined]:
        try:
            reads_only = address.reads_only_message(self)
            limits = [
                sentence
                for sentence in (address.missing_right_message(self, ()), address.unchecked_keys_message(self))
                if sentence
            ]
            role_settings = self.role_settings()
        except CallFailed as error:
            yield Examined("rights", "limited", f"the server does not tell what this role may do ({error.message}).")
            return
        if reads_only:
            yield Examined("writing", "missing", reads_only)
        else:
            yield from (Examined("rights", "limited", sentence) for sentence in limits)
        for name, value, statement in role_settings:
            ours = "our sessions set their own" if name in address.OWN_SETTINGS else "it holds in our sessions as well"
            yield Examined("settings of the role", "ok", f"{name} = {value} ({statement}): {ours}.")

    def schemas_in_use(self) -> dict[str, list[str]]:
        return dict(self.query(sql_file.statement(__name__, "schemas_in_use")))

    def checkpoint(self) -> None:
        try:
            self.execute("CHECKPOINT")
        except CallFailed as error:
            if error.code != _INSUFFICIENT_PRIVILEGE:
                raise
            [(role,)] = self.query("SELECT quote_ident(current_user)")
            raise StallmarkError(
                f"{self.location} lets only members of pg_checkpoint write a checkpoint, and every run starts with "
                f"one: GRANT pg_checkpoint TO {role}."
            ) from None


def _timeout(seconds: float) -> str:
    return f"-c statement_timeout={round(seconds * 1000)}"
