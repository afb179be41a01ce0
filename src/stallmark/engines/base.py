"""The interface of a database engine: the services for the layers above.

Engines know SQL dialects, settings and error codes, nothing of workloads or runs. Services that not every server has
are abilities (see `abilities`), which give the reason if they are missing.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

from stallmark.engines.abilities import (
    Backup,
    Caches,
    Examined,
    Maintenance,
    Memory,
    Missing,
    NoDevices,
    Placement,
    Prefill,
    QuerySession,
    ServerArrays,
    ServerSession,
    Tracing,
    UserBackup,
    VariantSetting,
)
from stallmark.errors import CallFailed

if TYPE_CHECKING:
    import pyarrow as pa


class Isolation(StrEnum):
    """The isolation level, written as in SQL on both engines."""

    READ_COMMITTED = "READ COMMITTED"
    REPEATABLE_READ = "REPEATABLE READ"
    SERIALIZABLE = "SERIALIZABLE"


@dataclass(frozen=True)
class ServerSettings:
    """Names and values of a server's settings.

    `placement` holds the places and sizes of data files, `momentary` values of the moment of reading, and `unreadable`
    the parts that the server refused, each with its words. `names`: the names in `configuration` of settings that a
    scenario calls by another one.
    """

    configuration: dict[str, str]
    placement: dict[str, str] = field(default_factory=dict)
    momentary: dict[str, str] = field(default_factory=dict)
    unreadable: dict[str, str] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)


class OwnIO(NamedTuple):
    """Reads and writes of one session in tables, their indexes and temporary tables."""

    reads: int  # I/Os of the operating system: one may bring several blocks
    read_bytes: int
    hits: int  # blocks that were in the pool
    read_us: int | None  # time in these reads; None where the server does not take it
    writes: int  # without the log


Head = tuple[int, Sequence[tuple]]
"""The number of returned rows, and the first rows, at most ROWS_AT_ONCE. Without an answer it is the number of changed
rows."""

ROWS_AT_ONCE = 100
"""The most rows of a long answer that a session keeps at a time."""

MOST_READ = 1_000_000
"""Maximum number of rows of a query for parameters: each process keeps all of them."""

READ_ONLY = "25006"
"""PostgreSQL's error of a statement that would write in a transaction that reads only."""


class Session(Protocol):
    """One virtual user's connection: prepared statements, one round trip each, autocommit.

    After a CallFailed no transaction is open, whatever was under way.
    """

    dialect: str
    """Its engine's."""

    server_pid: int

    is_lost: bool
    """It can be of no more use: open another."""

    def prepare(self, name: str, sql: str) -> None:
        """Parse `sql` (positional parameters) under `name`."""

    def call(
        self, name: str, parameters: Sequence[Any], *, commits: bool = True, last: bool = False
    ) -> Sequence[tuple]:
        """Execute a prepared statement and return its rows. With `last` it ends the transaction around it: that is
        committed with it, unless it fails.

        Raises CallFailed. The class is UNKNOWN_OUTCOME where the server may or may not have committed: the connection
        broke while a call that `commits` was under way, or such a call was given up (timeout, `cancel`) and the server
        does not report whether that came before its end; the session then continues. Inside `transaction` only the
        `last` call commits.
        """

    def call_head(self, name: str, parameters: Sequence[Any], *, commits: bool = True) -> Head:
        """Execute a prepared statement and return the head of its answer.

        Further rows are counted as they arrive, and not kept. Raise CallFailed as `call` does.
        """

    def count(self, name: str, parameters: Sequence[Any], *, commits: bool = True) -> int:
        """Execute a prepared statement and return the number of its rows, as `call_head` does."""
        return self.call_head(name, parameters, commits=commits)[0]

    def finish(self, name: str, parameters: Sequence[Any]) -> None:
        """Make the last call of a transaction, whose rows are not needed."""
        self.call(name, parameters, last=True)

    def call_each(self, name: str, several: Sequence[Sequence[Any]]) -> list[Sequence[tuple] | CallFailed]:
        """Execute a prepared statement with each of several parameters, in order and in as few round trips as the
        server allows; each is a transaction by itself, and those that fail do not stop the others.

        Return the rows of each, or why it failed; fewer where the session was lost before the others were sent.
        """
        answers: list[Sequence[tuple] | CallFailed] = []
        for parameters in several:
            try:
                answers.append(self.call(name, parameters))
            except CallFailed as failure:
                answers.append(failure)
                if self.is_lost:
                    break
        return answers

    def transaction(self, isolation: Isolation) -> "_Open":
        """Make the calls inside one transaction. It is committed at the end, unless `roll_back` was called or a call
        was the `last`, and rolled back when anything is raised.

        It costs two round trips more than its calls where the server cannot begin with the first call and commit with
        the last.

        For transactions of several calls: one that is a single call is a statement that begins and commits by itself.
        """
        return _Open(self, isolation)

    def refuse_writes(self) -> None:
        """Have the server refuse what would write from now on, if it can: SQL Server has no transactions that read
        only. Call it outside a transaction."""
        return None

    def begin(self, isolation: Isolation) -> None:
        """Begin a transaction, at the latest with the next call."""

    def commit(self) -> None:
        """Commit; do nothing if no transaction is open. Raise as a `call` that commits does."""

    def roll_back(self) -> None:
        """Roll back; do nothing if no transaction is open."""

    def own_io(self) -> OwnIO | None:
        """Return the I/O since the session was opened, outside a transaction; None if the server does not report.

        Raise CallFailed.
        """
        return None

    def cancel(self) -> None:
        """Ask the server to give up the call under way; from any thread."""

    def close(self) -> None: ...


class _Open:
    """A transaction from `begin` to its end. No generator: this is on the path of every call."""

    def __init__(self, session: Session, isolation: Isolation):
        self._session = session
        self._isolation = isolation

    def __enter__(self) -> None:
        self._session.begin(self._isolation)

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        if kind is None:
            self._session.commit()
        else:
            self._session.roll_back()


class BulkWriter(Protocol):
    """Write Arrow tables in a transaction that the caller ends; leaving without `commit` rolls back."""

    transactional: bool
    """False if rows are in for good as they are written, and only what is executed can be rolled back."""

    limited: str | None
    """A clause with the reason why rows are written more slowly than this engine can; None if they are not."""

    def write(self, table: str, rows: "pa.Table") -> None: ...

    def execute(self, sql: str) -> int:
        """Return the number of rows that the statement changed, -1 for one that changes none."""

    def commit(self) -> None: ...


@dataclass(frozen=True)
class ServerIdentity:
    """Product and version of a server as it reports them. `version` is (major, minor)."""

    product: str
    version: tuple[int, int]
    version_text: str

    def __str__(self) -> str:
        return f"{self.product} {self.version_text}"


class Login(NamedTuple):
    """Host, user and password of a URL; for a redactor alone."""

    host: str
    user: str
    password: str


class Engine(ABC):
    """A server and one database on it, or several where workloads have one each."""

    dialect: ClassVar[str]
    """Names the SQL files beside a transaction: `transfer.postgresql.sql`."""

    is_local: ClassVar[bool] = False
    """A server of our own on this machine: its devices and CPUs are those we can see."""

    is_shared: bool = False
    """Others may have tables and sessions in its databases."""

    memory: Memory | Missing
    caches: Caches | Missing
    prefill: Prefill | Missing
    backup: Backup | Missing
    user_backup: UserBackup | Missing
    placement: Placement | Missing
    devices: ServerArrays | NoDevices
    tracing: Tracing | Missing = Missing("the I/Os of the embedded PostgreSQL alone can be traced")
    maintenance: Mapping[str, Maintenance | Missing]
    """Backup, check and rebuild, by these words."""
    variant_settings: Mapping[str, VariantSetting | Missing]
    """The abilities, by the variant's key that requires them."""
    no_restart_reason: ClassVar[str | None] = "no setting of SQL Server that Stallmark changes needs one"
    """The reason why no command restarts the server for settings, as a clause; None if one may."""
    restart: Callable[[], object] | None = None
    """The scenario's way to restart a server that is not ours, if it has one."""

    by_workload: Mapping[str, "Engine"] = MappingProxyType({})
    """The engine of each workload's database; those of users may share one. Empty if all are in this engine's own."""

    @abstractmethod
    def database_name(self) -> str:
        """Return the name of its database."""

    @abstractmethod
    def on_database(self, name: str) -> "Engine":
        """Return the same server and login in another database, which need not be there yet."""

    @abstractmethod
    def has_database(self, name: str) -> bool:
        """Return True if the server has a database of that name."""

    @abstractmethod
    def make_database(self, name: str) -> None:
        """Create a database on the server. Raise StallmarkError if this login may not."""

    def clear_database(self) -> None:
        """Drop everything in the database; only for a server of our own."""
        raise NotImplementedError

    def databases(self) -> tuple["Engine", ...]:
        """Return the engines of the databases that are ours, each of one database."""
        return tuple(dict.fromkeys(self.by_workload.values())) or (self,)

    def database_of(self, workload: str) -> "Engine":
        """Return the engine of the database that holds a workload."""
        return self.by_workload.get(workload, self)

    @abstractmethod
    def connect(self) -> Any:
        """Open a control connection (DB-API, autocommit) for DDL, checks and collectors."""

    @abstractmethod
    def session(self, call_timeout_s: float, application: str = "stallmark-user") -> Session:
        """Open the connection of one virtual user; the server gives up calls that take longer than the timeout.

        Every name that begins with `stallmark-user` is of a user: collectors find users by it. The server keeps no
        more of a name than 63 bytes (PostgreSQL) or 128 characters (SQL Server).
        """

    @abstractmethod
    def queries(self, timeout_s: float, application: str = "stallmark-user") -> QuerySession:
        """Open a connection for decision-support queries, which the server gives up after the timeout.

        Under another `application` its waits are not counted as those of users.
        """

    @abstractmethod
    def bulk_writer(self) -> AbstractContextManager[BulkWriter]: ...

    def transactional_writer(self) -> AbstractContextManager[BulkWriter]:
        """Open a writer into tables in use: like `bulk_writer`, if slower, with rows that can be rolled back."""
        return self.bulk_writer()

    @abstractmethod
    def failure(self, error: Exception) -> CallFailed:
        """Return an error of this engine's DB-API module as ours."""

    @abstractmethod
    def spec(self) -> str:
        """Return the URL by which another process opens this engine. It holds secrets: pass it through a pipe only."""

    @abstractmethod
    def login(self) -> Login: ...

    @abstractmethod
    def identity(self) -> ServerIdentity: ...

    @contextmanager
    def few_logins(self) -> Iterator[None]:
        """Answer what is asked meanwhile through few connections: a login with Kerberos or Entra takes seconds.

        Those that are idle are closed before a statement that needs the database for itself.
        """
        yield

    def close_idle(self) -> None:
        """Close the connections of `few_logins` that are not in use."""

    @abstractmethod
    def settings(self) -> ServerSettings:
        """Return the configuration that decides I/O, as the server reports it, for the manifest."""

    @abstractmethod
    def settle(self, table: str) -> None:
        """Give the planner statistics of a loaded table, and do what the first run would else have to do for it."""

    @abstractmethod
    def bytes_used(self) -> int:
        """Return the size of the database now, in bytes; 0 if the server does not report it."""

    @abstractmethod
    def free_bytes(self) -> int | None:
        """Return the free bytes at the data's place; None if the server does not report them."""

    @abstractmethod
    def schemas_in_use(self) -> dict[str, list[str]]:
        """Return the schemas in which users have tables, views, routines and the like, with the names of all. Objects
        that this login may not see are missing."""

    def hidden_objects_reason(self) -> str | None:
        """Return the reason why this login does not see what others have in the database, as a clause; None if it
        does."""
        return None

    def other_sessions(self) -> list[ServerSession]:
        """Return the sessions in the database that are not Stallmark's, as far as this login may see them."""
        return []

    def hidden_sessions_reason(self) -> str | None:
        """Return the reason why this login does not see the sessions of others, as a clause; None if it does."""
        return None

    def blockers(self) -> list[ServerSession]:
        """Return the sessions that keep one of ours in the database from a lock, as far as this login may see them."""
        return []

    def not_writable_reason(self, schemas: Sequence[str]) -> str | None:
        """Return the reason why nothing can be written in the database, as a sentence, or None. `schemas`: those of a
        workload.
        """
        return None

    def unfit(self) -> str | None:
        """Return the reason why no workload can be built in the database as it is set, as a sentence; None when it
        can."""
        return None

    def examine(self) -> Iterator[Examined]:
        """Yield further findings for the doctor."""
        return iter(())

    def hold(self) -> AbstractContextManager[Callable[[], None]]:
        """Keep other runs off this server meanwhile; at the end its settings are as before.

        Yield a check that this is still so, for one thread at a time, which takes seconds at most: it raises
        ServerLost when another run may have begun, or nothing can be written any more. Raise NotGivenBack at the end
        when settings could not be restored; where an error ends it, that is a note of the error.
        """
        return nullcontext(lambda: None)

    def directories(self) -> Mapping[str, Path]:
        """Return the folders of "data" and "wal" on this machine; empty for a server that is not ours."""
        return {}

    def storage_here(self) -> Mapping[str, Path]:
        """Return the folders of "data" and "wal" of any server on this machine. Empty if the folders are unknown, or
        one of them is in several places."""
        return self.directories()

    def built_in(self) -> Mapping[str, Path]:
        """Return the present folders of "data" and, if separate, "wal" of an embedded server, including those of a
        variant; empty for other servers."""
        return {}

    def note_content(self, content: Mapping[str, Any]) -> None:
        """Note beside a database of ours what it holds, for those who look while its server is stopped."""

    def process(self) -> int | None:
        """Return the server's first process, or None if it is not seen on this machine."""
        return None

    def unexpected_end(self) -> str | None:
        """Return a sentence when a server of ours has ended by itself."""
        return None

    def checkpoint(self) -> None:
        """Write out what is dirty, so that every run starts from the same state."""

    def buffer_pool_bytes(self) -> int | None:
        """Return the size of the buffer pool now, in bytes; None if the server does not report."""
        return None

    def cores(self) -> int | None:
        """Return the number of CPUs that the server may use at once; None if it is not reported."""
        return None

    def most_users(self) -> int | None:
        """Return the number of virtual users that the server has connections for, next to our own; None without a
        limit.
        """
        return None

    def users_limited_by(self) -> str:
        """Return the limit to raise for more users, as words that follow the verb."""
        return "the limit of its connections"

    def close(self) -> None:
        """Give back what this engine holds: a server of our own is stopped."""

    def execute(self, sql: str) -> None:
        with self.cursor() as cursor:
            cursor.execute(sql)

    def query(self, sql: str, parameters: Sequence | Mapping | None = None) -> list[tuple]:
        with self.cursor() as cursor:
            cursor.execute(sql, parameters)
            return cursor.fetchall()

    def read(self, sql: str) -> list[tuple]:
        """Return the rows of a query of a user's, in `reading_cursor`: the first MOST_READ and one more."""
        with self.reading_cursor() as cursor:
            cursor.execute(sql)
            return cursor.fetchmany(MOST_READ + 1)

    def reading_cursor(self) -> AbstractContextManager[Any]:
        """Yield a cursor for which the server refuses what would write, if it can: SQL Server has no transactions that
        read only."""
        return self.cursor()

    @contextmanager
    def cursor(self) -> Iterator[Any]:
        connection = self.connect()
        try:
            yield connection.cursor()
        finally:
            connection.close()
