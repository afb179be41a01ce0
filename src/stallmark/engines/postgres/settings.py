"""The settings of a PostgreSQL server that a variant chooses: noted first, set by ALTER SYSTEM, and given back."""

import difflib
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import ExitStack
from typing import Any, NamedTuple, Protocol

from psycopg import sql

from stallmark.engines import sql_file
from stallmark.engines.abilities import Caches, Memory, Recorded, VariantSetting
from stallmark.engines.base import ServerIdentity, ServerSettings
from stallmark.engines.journal import Journal
from stallmark.engines.postgres import MINIMUM_POOL_BYTES, lock
from stallmark.engines.postgres.address import PostgresServer
from stallmark.errors import CallFailed, NoConnection, NotGivenBack, RunLockTaken, ServerLost, StallmarkError, as_reason
from stallmark.stopping import later

# The settings that are not a scenario's, each with the reason as a clause behind "`name`".

RESERVED = {
    "is what `buffer_pool` sets: write that": ("shared_buffers",),
    "is needed by what Stallmark measures": (
        "stats_fetch_consistency", "track_activities", "track_counts", "track_io_timing", "track_wal_io_timing",
    ),
    "makes the server read its pages through this machine's page cache or past it, which Stallmark decides": (
        "debug_io_direct",
    ),
    "is set for the connections of the users": (
        "listen_addresses", "max_connections", "port", "reserved_connections", "ssl", "superuser_reserved_connections",
        "unix_socket_directories", "unix_socket_group", "unix_socket_permissions",
    ),
    "says where the server keeps its files": (
        "config_file", "data_directory", "dynamic_shared_memory_type", "external_pid_file", "hba_file", "ident_file",
    ),
    "says where errors of the server are read": ("lc_messages", "log_destination", "logging_collector"),
    "would keep transactions from writing, or from checking what they write": (
        "default_transaction_read_only", "session_replication_role",
    ),
    "belongs to recovery and replication, not to a load": (
        "archive_cleanup_command", "archive_command", "primary_conninfo", "recovery_end_command", "restore_command",
    ),
    "is a list of names, which cannot be given back as it was: set it on the server yourself": (
        "local_preload_libraries", "session_preload_libraries", "shared_preload_libraries", "temp_tablespaces",
    ),
}  # fmt: skip
RESERVED_OF_OTHERS = {
    "would let a crash damage the database: on the embedded server, which holds nothing of yours, it can be tried": (
        "full_page_writes", "fsync",
    ),
    "may damage the database": (
        "allow_in_place_tablespaces", "allow_system_table_mods", "ignore_checksum_failure", "ignore_system_indexes",
        "zero_damaged_pages",
    ),
}  # fmt: skip


class Asked(NamedTuple):
    """A setting as the server has it. `context`: when it may be changed; `source`: what gave its value."""

    name: str
    value: str
    context: str
    source: str
    may: bool


class Queried(Protocol):
    def query(self, sql: str, parameters: Any = None) -> list[tuple]: ...
    def identity(self) -> ServerIdentity: ...


def read(engine: Queried, names: Iterable[str]) -> dict[str, Asked]:
    """Return the server's settings with these names; a name that the server lacks is missing."""
    rows = engine.query(sql_file.statement(__name__, "settings_asked"), [sorted(names)])
    return {row[0]: Asked(*row) for row in rows}


def recorded(engine: Queried, names: Collection[str]) -> Recorded:
    """Return the settings as a record has them: each name with its value."""
    return Recorded({name: setting.value for name, setting in read(engine, names).items()} if names else {})


def refuse_reserved(engine: Queried, names: Iterable[str], *, is_ours: bool) -> dict[str, Asked]:
    """Return the settings with these names. Raise StallmarkError if the server lacks one, if one cannot be changed, or
    if Stallmark itself needs it."""
    settings = read(engine, names)
    reserved = RESERVED if is_ours else RESERVED | RESERVED_OF_OTHERS
    reasons = {name: reason for reason, reserved_names in reserved.items() for name in reserved_names}
    for name in names:
        if reason := reasons.get(name):
            raise StallmarkError(f"`{name}` {reason}.")
        if name not in settings:
            raise StallmarkError(f"`{name}` is not a setting of {engine.identity()}{_hint(engine, name)}")
        if settings[name].context == "internal":
            raise StallmarkError(f"`{name}` shows how the server was made, and nobody can change it: leave it out.")
        if settings[name].source == "client":
            raise StallmarkError(f"`{name}` is set by each session of Stallmark itself: leave it out.")
    return settings


def _hint(engine: Queried, name: str) -> str:
    names = [known for (known,) in engine.query("SELECT name FROM pg_settings")]
    near = difflib.get_close_matches(name.lower(), names, 1)
    return f": did you mean {near[0]}?" if near else ": `SHOW ALL` lists them."


def in_words(values: Mapping[str, str]) -> str:
    return ", ".join(f"{name}: {value}" for name, value in values.items())


# A server by URL: ALTER SYSTEM and a reload, or a restart by the command of the scenario.

RELOADED_WITHIN_S = 30
_AT_START = "postmaster"
"""The context of a setting that the server reads when it starts."""
_READ_NOTE = "SELECT obj_description(n.oid, 'pg_namespace') FROM pg_namespace AS n WHERE n.nspname = %s"
_OVERRIDING = ("command line", "environment variable", "database", "user", "database user", "session", "global")
_MAY_READ = (
    "name a superuser, or GRANT SELECT ON pg_file_settings and EXECUTE ON FUNCTION pg_show_all_file_settings() to this "
    "role"
)


class Server(PostgresServer, Queried, Protocol):
    restart: Callable[[], object] | None

    def buffer_pool_bytes(self) -> int: ...
    def restart_server(self) -> None: ...
    def execute(self, sql: str) -> None: ...
    def settings(self) -> ServerSettings: ...
    def on_database(self, name: str) -> "Server": ...


class PostgresJournal(Journal):
    """A note in the comment of a schema in `postgres`, which every server has: advisory locks and tables would be of
    the database that is driven. Without that database, or a right to it, it is on this machine."""

    def __init__(self, engine: Server, admin: Server, subject: str):
        super().__init__(subject)
        self._engine, self._admin, self._schema = engine, admin, f"stallmark_{subject}"

    def _read_on_server(self) -> str | None:
        try:
            notes = self._admin.query(_READ_NOTE, [self._schema])
        except (NoConnection, CallFailed):
            return None
        return notes[0][0] if notes else None

    def _write_on_server(self, text: str) -> bool:
        # Whatever `synchronous_commit` is: the note must be on disk before anything is changed.
        note = sql.SQL(
            "BEGIN; SET LOCAL synchronous_commit = on; CREATE SCHEMA {name}; COMMENT ON SCHEMA {name} IS {text}; COMMIT"
        )
        try:
            self._admin.execute(note.format(name=sql.Identifier(self._schema), text=sql.Literal(text)).as_string())
        except (NoConnection, CallFailed):
            return False
        return True

    def _remove_on_server(self) -> None:
        self._admin.execute(f"DROP SCHEMA {self._schema}")

    def _removal_statement(self) -> str:
        return f"DROP SCHEMA {self._schema} in the database postgres"

    def _server_name(self) -> str:
        [(identifier,)] = self._engine.query("SELECT system_identifier::text FROM pg_control_system()")
        return str(identifier)


class _WaitsForRestart(StallmarkError):
    """Settings are in the server's files, and take effect when it is restarted."""


class PostgresSettings(VariantSetting):
    """Settings by ALTER SYSTEM, brought into effect by a reload or, if a scenario has a way, by a restart. `open_admin`
    opens the database `postgres`. The note and the lock have the name of the `subject`."""

    def __init__(self, engine: Server, open_admin: Callable[[], Server], subject: str = "settings"):
        self._engine, self._open_admin, self._subject = engine, open_admin, subject
        self._names: set[str] = set()
        self._lock: ExitStack | None = None
        self._check_lock: Callable[[], None] = lambda: None

    def check(self, wanted: Mapping[str, str]) -> None:
        self.refuse_ineffective(refuse_reserved(self._engine, wanted, is_ours=False))
        self._hold_lock()
        self._journal().note(self._entries(wanted))
        try:
            for name, value in wanted.items():
                # The server judges the value; without a reload nothing follows from it.
                self._alter(name, value)
        finally:
            self._put_back(reload=False)
        self._names.update(wanted)

    def refuse_ineffective(self, settings: Mapping[str, Asked]) -> None:
        """Raise StallmarkError if one of these settings would not take effect, or would bring into effect what others
        have changed."""
        for setting in settings.values():
            self._refuse_ineffective(setting)
        if any(setting.context == _AT_START for setting in settings.values()):
            self._refuse_pending(settings)
        if not self._names:
            self._refuse_unread_files()

    def recorded(self) -> Recorded:
        return recorded(self._engine, self._names)

    def make(self, wanted: Mapping[str, str]) -> None:
        self._hold_lock()
        self._journal().note(self._entries(self._names | wanted.keys()))
        self.was_made = True
        before = self._journal().read()
        is_changed = self._enter({name: wanted.get(name, before[name]) for name in before})
        if is_changed or self._pending(before):
            self._bring_into_effect(before)
        for setting in read(self._engine, wanted).values():
            if setting.source != "configuration file":
                raise StallmarkError(
                    f"`{setting.name}` was set to {wanted[setting.name]} and is {setting.value} by its "
                    f"{setting.source}: take that away first."
                )

    def give_back(self) -> None:
        journal = self._journal()
        if not (before := journal.read()):
            return
        try:
            self._hold_lock()
            self._put_back()
        except RunLockTaken:  # those of a run on another database of the server, which gives them back itself
            return
        except _WaitsForRestart as error:
            raise NotGivenBack(
                f"The files of {self._engine.location} have the values of before again, and {as_reason(error)}, or "
                "start a run of a scenario with `restart`."
            ) from error
        except (CallFailed, StallmarkError) as error:
            statements = "; ".join(_statement(name, value) for name, value in before.items())
            raise NotGivenBack(
                f"Settings of {self._engine.location} could not be given back, which the next run tries again. "
                f"{as_reason(error)}. Or {statements}; SELECT pg_reload_conf(){self._restart_advice(before)} yourself, "
                f"then {journal.removal_hint}."
            ) from error

    def _restart_advice(self, names: Collection[str]) -> str:
        """Return the restart that settings need to be given back, as the end of a list of statements."""
        try:
            needing = [name for name, setting in read(self._engine, names).items() if setting.context == _AT_START]
        except (CallFailed, StallmarkError):  # the server does not answer
            return " and, for those that need it, restart the server"
        return f" and, for {' and '.join(needing)}, restart the server" if needing else ""

    def release(self) -> None:
        """Let runs on other databases of the server change its settings."""
        if self._lock:
            self._lock.close()
            self._lock = None

    def _hold_lock(self) -> None:
        """Hold a lock of the whole server: that of the run is of one database. Raise RunLockTaken."""
        if self._lock:
            try:
                self._check_lock()
                return
            except ServerLost:  # it was restarted
                self.release()
        with ExitStack() as new:
            self._check_lock = new.enter_context(lock.hold(self._open_admin(), f"stallmark.{self._subject}"))
            self._lock = new.pop_all()

    def _refuse_ineffective(self, setting: Asked) -> None:
        name = setting.name
        if setting.context == _AT_START and not self._engine.restart:
            # A setting that no record lists makes no difference to forbid the comparison, and --varied refuses it.
            is_recorded = name in self._engine.settings().configuration
            raise StallmarkError(
                f"`{name}` {_NO_RESTART}. Or set it yourself, make an experiment of each value, and compare them by "
                f"`stallmark compare {f'--varied {name}' if is_recorded else '--between experiments'}`."
            )
        if self._pending([name]):
            raise StallmarkError(f"`{name}` was changed and waits for a restart of the server: restart it first.")
        if setting.source in _OVERRIDING:
            given = {known: statement for known, _, statement in reversed(self._engine.role_settings())}
            whose = f"{given[name]} SET" if name in given else f"the server's {setting.source}"
            raise StallmarkError(
                f"`{name}` is given by {whose}, which counts more than ALTER SYSTEM: take that away first."
            )
        if not setting.may:
            raise StallmarkError(
                f"`{name}` may not be set by {self._engine.user}: GRANT ALTER SYSTEM ON PARAMETER {name} TO it."
            )

    def _refuse_pending(self, ours: Collection[str]) -> None:
        """Refuse while a setting of others waits for a restart: ours would bring it into effect."""
        if others := [name for name in self._pending() if name not in ours and name not in self._names]:
            raise StallmarkError(
                f"`{others[0]}` was changed and waits for a restart of the server, which this run would bring into "
                "effect: restart it, or undo the change, first."
            )

    def _refuse_unread_files(self) -> None:
        """Refuse while a file was edited and not read yet: our reload would bring that into effect."""
        try:
            edited = self._engine.query(sql_file.statement(__name__, "settings_unread"))
        except CallFailed:  # needs pg_read_server_files
            return
        if edited:
            raise StallmarkError(
                f"Someone has changed {edited[0][0]} since the server read it, and a reload would bring that into "
                "effect: SELECT pg_reload_conf(), or undo it, first."
            )

    def _put_back(self, *, reload: bool = True) -> None:
        """Bring back what was noted, and remove the note."""
        journal = self._journal()
        with later():
            before = journal.read()
            self._enter(before)
            if reload:
                self._bring_into_effect(before)
            journal.remove()

    def _bring_into_effect(self, names: Collection[str]) -> None:
        """Have the server take what its files hold, by a restart if one of these settings needs it."""
        self._reload()
        if not self._pending(names):
            return
        if self._engine.restart:
            self.release()  # the lock is of a session that ends with the server
            self._engine.restart_server()
            self._hold_lock()
        if pending := self._pending(names):
            names = " and ".join(f"`{name}`" for name in pending)
            takes = "takes" if len(pending) == 1 else "take"
            raise _WaitsForRestart(f"{names} {takes} effect when the server is restarted: restart it.")

    def _pending(self, names: Collection[str] | None = None) -> list[str]:
        """Return the names of settings that wait for a restart, among these or all."""
        try:
            pending = [name for (name,) in self._engine.query(sql_file.statement(__name__, "settings_pending"))]
        except CallFailed:  # it needs what `_entries` names
            return []
        return pending if names is None else [name for name in pending if name in names]

    def _enter(self, values: Mapping[str, str | None]) -> bool:
        """Have the server's file hold these values, None for none; return whether that changed it."""
        entries = self._entries(values)
        changes = {name: value for name, value in values.items() if entries[name] != value}
        for name, value in changes.items():
            self._alter(name, value)
        return bool(changes)

    def _entries(self, names: Iterable[str]) -> dict[str, str | None]:
        """Return the values that ALTER SYSTEM has set, None for a setting that it has not."""
        try:
            rows = self._engine.query(sql_file.statement(__name__, "settings_entered"), [sorted(names)])
        except CallFailed as error:
            raise StallmarkError(f"What ALTER SYSTEM has set is not known ({error.message}): {_MAY_READ}.") from None
        return dict.fromkeys(names) | dict(rows)

    def _alter(self, name: str, value: str | None) -> None:
        try:
            self._engine.execute(_statement(name, value))
        except CallFailed as error:
            raise StallmarkError(f"The server refuses `{name}: {value}` ({error.message}).") from None

    def _reload(self) -> None:
        """Have the server read its files, and wait until new sessions have what they hold."""
        [(before,)] = self._engine.query("SELECT pg_conf_load_time()")
        self._engine.query("SELECT pg_reload_conf()")
        until = time.monotonic() + RELOADED_WITHIN_S
        while time.monotonic() < until:
            [(loaded,)] = self._engine.query("SELECT pg_conf_load_time()")
            if loaded > before:
                return
            time.sleep(0.05)
        raise StallmarkError(
            f"{self._engine.location} did not read its files again within {RELOADED_WITHIN_S} s: see its log."
        )

    def _journal(self) -> PostgresJournal:
        return PostgresJournal(self._engine, self._open_admin(), self._subject)


# The buffer pool of a server by URL, which is made and emptied when the server starts.

_POOL = "shared_buffers"
_NO_RESTART = (
    "needs a restart, which a connection by URL cannot do: write how, `restart: {command: […]}` or `restart: {ask: "
    "Restart it.}`"
)


class PostgresMemory(Memory):
    """The buffer pool of a server that the scenario can restart. Its note is apart from that of other settings, which a
    variant without any gives back."""

    smallest_bytes = MINIMUM_POOL_BYTES

    def __init__(self, engine: Server, settings: PostgresSettings):
        self._engine, self.settings = engine, settings

    def refusal(self) -> str | None:
        if not self._engine.restart:
            return (
                f"{_POOL} {_NO_RESTART}. Or set it on the server yourself, and leave out buffer_pool, one scenario for "
                "each size"
            )
        try:
            self.settings.refuse_ineffective(read(self._engine, [_POOL]))
        except StallmarkError as error:
            return as_reason(error)
        return None

    def cap(self, size_bytes: int) -> int:
        self.settings.make({_POOL: f"{size_bytes // 1024}kB"})
        return self._engine.buffer_pool_bytes()

    def give_back(self) -> None:
        self.settings.give_back()


class RestartedCaches(Caches):
    def __init__(self, engine: Server):
        self._engine = engine

    def refusal(self) -> str | None:
        return None if self._engine.restart else f"emptying the buffer pool {_NO_RESTART}"

    def empty(self) -> list[str]:
        self._engine.restart_server()
        return ["The restart emptied the buffer pool; the page cache of the server's machine has kept its pages."]


def _statement(name: str, value: str | None) -> str:
    parameter = sql.SQL(".").join(map(sql.Identifier, name.split(".")))
    if value is None:
        return sql.SQL("ALTER SYSTEM RESET {}").format(parameter).as_string()
    return sql.SQL("ALTER SYSTEM SET {} TO {}").format(parameter, sql.Literal(value)).as_string()
