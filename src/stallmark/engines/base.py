"""The interface of a database engine: what the rooms above may ask of a server.

Engines are the ground floor: they know SQL dialects, settings and error codes, nothing of workloads or runs.
What an engine cannot do on the server at hand it says in `cannot`, and nobody guesses in its place.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol

import pyarrow as pa

from stallmark.engines.queries import QuerySession
from stallmark.errors import CallFailed


class Isolation(StrEnum):
    """As SQL and both engines write it."""

    READ_COMMITTED = "READ COMMITTED"
    REPEATABLE_READ = "REPEATABLE READ"
    SERIALIZABLE = "SERIALIZABLE"


class OwnIO(NamedTuple):
    """What a session has read and written itself, in tables, their indexes and temporary tables."""

    reads: int  # I/Os of the operating system: one may bring several blocks
    read_bytes: int
    hits: int  # blocks that were in the pool
    read_us: int | None  # time in these reads; None where the server does not take it
    writes: int  # without the log


class Session(Protocol):
    """One virtual user's connection: prepared statements, one round trip each, autocommit.

    After a CallFailed no transaction is open, whatever was under way.
    """

    dialect: str
    """As its engine's."""

    server_pid: int

    is_lost: bool
    """It can be of no more use: open another."""

    def prepare(self, name: str, sql: str) -> None:
        """Parse `sql` (positional parameters) under `name`."""

    def call(self, name: str, parameters: Sequence[Any], *, commits: bool = True) -> Sequence[tuple]:
        """Execute a prepared statement and return its rows.

        Raises CallFailed. The class is UNKNOWN_OUTCOME where the server may or may not have committed: the connection
        broke while a call that `commits` was under way, or such a call was given up (timeout, `cancel`) and the server
        does not say whether that came before its end; the session then goes on. Inside `transaction` no call commits.
        """

    def transaction(self, isolation: Isolation) -> "_Open":
        """The calls inside are one transaction, which costs two round trips more than they do. It is committed at the
        end, unless `roll_back` was called, and rolled back when anything is raised.

        For transactions of several calls: one that is a single call is a statement that begins and commits by itself.
        """
        return _Open(self, isolation)

    def begin(self, isolation: Isolation) -> None: ...

    def commit(self) -> None:
        """Nothing where no transaction was begun, or where it has ended. Raises as a `call` that commits."""

    def roll_back(self) -> None:
        """Nothing where no transaction was begun, or where it has ended."""

    def own_io(self) -> OwnIO | None:
        """Since it was opened, outside a transaction; None where the server does not say. Raises CallFailed."""
        return None

    def cancel(self) -> None:
        """Ask the server to give up the call under way; from any thread."""

    def close(self) -> None: ...


class _Open:
    """Between `begin` and the end of a transaction: on the path of every call, so no generator."""

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
    """Writes Arrow tables in a transaction that the caller ends; leaving without `commit` rolls back."""

    transactional: bool
    """False where rows are in for good as they are written, and only what is executed can be rolled back."""

    def write(self, table: str, rows: pa.Table) -> None: ...

    def execute(self, sql: str) -> int:
        """Returns how many rows the statement changed, -1 for one that changes none."""

    def commit(self) -> None: ...


@dataclass(frozen=True)
class ServerIdentity:
    """What a server says of itself. `version` is (major, minor)."""

    product: str
    version: tuple[int, int]
    version_text: str

    def __str__(self) -> str:
        return f"{self.product} {self.version_text}"


class Engine(ABC):
    """A server and one database on it."""

    dialect: ClassVar[str]
    """Names the SQL files beside a transaction: `transfer.postgresql.sql`."""

    is_local: ClassVar[bool] = False
    """A server of our own on this machine: its devices and CPUs are those we can see."""

    devices: Any = None
    """The emulated devices of a server of our own (`EmulatedArrays`), for their counters."""

    may_drop_caches: bool = False
    """Of a server that others may use: only when its owner says so."""

    smallest_pool_bytes: ClassVar[int] = 0
    """`cap_memory` cannot go below this."""

    @abstractmethod
    def connect(self) -> Any:
        """A control connection (DB-API, autocommit) for DDL, checks and collectors."""

    @abstractmethod
    def session(self, call_timeout_s: float) -> Session:
        """A connection for one virtual user; the server gives up calls that take longer than the timeout."""

    @abstractmethod
    def queries(self, timeout_s: float, application: str = "stallmark-user") -> QuerySession:
        """A connection for queries of a decision-support workload, which the server gives up after the timeout. Under
        another `application` its waits are not counted as those of users."""

    @abstractmethod
    def bulk_writer(self) -> AbstractContextManager[BulkWriter]: ...

    def transactional_writer(self) -> AbstractContextManager[BulkWriter]:
        """Into tables that are in use: like `bulk_writer`, with rows that can be rolled back, if it takes longer."""
        return self.bulk_writer()

    @abstractmethod
    def failure(self, error: Exception) -> CallFailed:
        """An error of this engine's DB-API module as ours."""

    @abstractmethod
    def spec(self) -> str:
        """The URL by which another process opens this engine. Holds secrets: pass it through a pipe only."""

    @abstractmethod
    def identity(self) -> ServerIdentity: ...

    @abstractmethod
    def settings(self) -> dict[str, str]:
        """Configuration that decides I/O, as the server reports it, for the manifest."""

    @abstractmethod
    def settle(self, table: str) -> None:
        """Give the planner statistics of a loaded table, and do what the first run would else have to do for it."""

    @abstractmethod
    def bytes_used(self) -> int:
        """Size of the database at this moment, in bytes."""

    @abstractmethod
    def free_bytes(self) -> int | None:
        """Free space where the data lies; None where the server cannot say."""

    @abstractmethod
    def schemas_in_use(self) -> dict[str, str]:
        """The schemas of this database in which its users have tables, views, routines and the like, and the name of
        one of them each; as far as this login may see them."""

    def cannot(self, what: str) -> str | None:
        """Why this engine cannot do `what` on this server, as a sentence; None when it can.

        `what` is one of: cap_memory, cold_cache, prefill, restore, emulated_device, place_files, device_counters.
        """
        return None

    def examine(self) -> Iterator[tuple[str, str, str]]:
        """What else the doctor is to say: (what, state, sentence), state "ok", "limited" or "missing"."""
        return iter(())

    def hold(self) -> AbstractContextManager[Callable[[], None]]:
        """Make sure that nobody else drives this server meanwhile; settings changed in it are as before at its end.

        Yields a look at whether that is still so, to be had in any one thread at a time, which takes seconds at most:
        it raises StallmarkError when somebody else may have begun. Raises NotGivenBack at the end when settings could
        not be restored; where an error ends it, that is a note of the error.
        """
        return nullcontext(lambda: None)

    # What only an engine with a server of its own, or with the right to change one, can do.

    def cap_memory(self, size_bytes: int) -> int:
        """Cap the buffer pool and return the reached size in bytes."""
        raise NotImplementedError(self.cannot("cap_memory"))

    def uncap_memory(self) -> None:
        """Give back the size that the buffer pool had before the first cap."""

    def emulate(self, models: Mapping[str, Any] | None) -> None:
        """Put the server on emulated devices ("data", "wal"), or back on the real ones."""
        if models:
            raise NotImplementedError(self.cannot("emulated_device"))

    def emulated_devices(self) -> Mapping[str, Any]:
        """The models of the emulated devices in use, by name."""
        return {}

    def directories(self) -> Mapping[str, Path]:
        """Where "data" and "wal" lie on this machine; empty for a server that is not ours."""
        return {}

    def gone(self) -> str | None:
        """A sentence when a server of ours has ended by itself."""
        return None

    def engage_devices(self) -> None:
        """Emulated devices, if any, are slow from now on."""

    def relax_devices(self) -> None:
        """Emulated devices, if any, are as fast as the real ones from now on."""

    def kept_for_restore(self) -> str | None:
        """What the copy that `restore` brings back is of, as `keep_for_restore` was told; None without a copy."""
        return None

    def keep_for_restore(self, of: str) -> None:
        """Keep the database as it is now, for `restore`, in the place of an earlier copy."""
        raise NotImplementedError(self.cannot("restore"))

    def drop_kept(self) -> None:
        """Remove the copy kept for `restore`, if there is one."""

    def copy_bytes(self, size_bytes: int) -> int:
        """Disk that a copy of `size_bytes` would take."""
        return size_bytes

    def restore(self) -> None:
        raise NotImplementedError(self.cannot("restore"))

    def finish_restore(self) -> None:
        """Restore again where a restore of ours was cut and left a database that nobody can open."""

    def checkpoint(self) -> None:
        """Write out what is dirty, so that every run starts from the same state."""

    def buffer_pool_bytes(self) -> int | None:
        """The buffer pool as the server has it now."""
        return None

    def cores(self) -> int | None:
        """CPUs that the server may work on at once; None where it does not say."""
        return None

    def most_users(self) -> int | None:
        """How many virtual users the server has connections for, beside our own; None where it sets no limit."""
        return None

    def close(self) -> None:
        """Give back what this engine holds: a server of our own is stopped."""

    def drop_caches(self) -> Sequence[str]:
        """Empty the buffer pool; returns what could not be, as sentences for the record."""
        raise NotImplementedError(self.cannot("cold_cache"))

    def prefill(self, *schemas: str) -> int:
        """Read the tables and indexes of `schemas` into the pool; return the bytes it read."""
        raise NotImplementedError(self.cannot("prefill"))

    def execute(self, sql: str) -> None:
        with self.cursor() as cursor:
            cursor.execute(sql)

    def query(self, sql: str, parameters: Sequence | Mapping | None = None) -> list[tuple]:
        with self.cursor() as cursor:
            cursor.execute(sql, parameters)
            return cursor.fetchall()

    @contextmanager
    def cursor(self) -> Iterator[Any]:
        connection = self.connect()
        try:
            yield connection.cursor()
        finally:
            connection.close()
