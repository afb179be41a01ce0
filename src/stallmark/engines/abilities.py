"""The optional abilities of an engine, and the types of their results.

An ability is an object, or `Missing` with the reason why the engine lacks it.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Protocol, TypeVar

from stallmark.errors import StallmarkError

if TYPE_CHECKING:
    from stallmark.storage.emulator import ArrayModel
    from stallmark.storage.emulator.arrays import EmulatedArrays
    from stallmark.storage.io_trace import IoTrace


# One line of the doctor's list: what was examined of this machine or a server, and what was found.

Availability = Literal["ok", "limited", "missing"]
"""The state of something examined. `limited`: a part will not be measured or done; `missing`: it will not run."""


@dataclass(frozen=True)
class Examined:
    subject: str
    state: Availability
    sentence: str


# A session on a server, as messages name it.
class ServerSession(NamedTuple):
    """The number of a session on the server and its known properties, empty if unknown."""

    number: int
    application: str
    user: str
    client: str

    @property
    def is_ours(self) -> bool:
        return self.application.startswith("stallmark-")

    def __str__(self) -> str:
        user = f"of {self.user}" if self.user else ""
        client = f"from {self.client}" if self.client else ""
        facts = ", ".join(filter(None, (self.application, user, client)))
        return f"session {self.number}{f' ({facts})' if facts else ''}"


# Queries of a decision-support workload, executed one after the other. Measures that a server does not report are None,
# never estimated.

PAGE_BYTES = 8192


@dataclass(frozen=True)
class Answer:
    """The answer to a query."""

    rows: int | None
    """The rows of the answer, or None if only the plan has their number."""
    plan: str | None
    """The server's plan, with measures of the execution if it has them, or None."""
    noted: "Measures | None" = None
    """Measures that the server keeps apart from the plan."""


@dataclass(frozen=True)
class Measures:
    """Measures of one execution, over all its parallel workers."""

    rows: int | None = None
    logical_reads: int | None = None  # pages requested, in the pool or not
    physical_reads: int | None = None  # pages that were not in the pool, read ahead or not
    read_bytes: int | None = None  # the same in bytes
    spill_bytes: int | None = None  # written to temporary files
    grant_kib: int | None = None  # memory the server set aside for it
    cpu_ms: float | None = None
    actual_dop: int | None = None  # 1: nothing ran in parallel
    wait_ms: Mapping[str, float] | None = None  # milliseconds by the server's wait type
    plan_hash: str | None = None  # hash of the plan's shape: operators, tables and indexes


class QuerySession(Protocol):
    """A connection for queries, one at a time. Each is one statement, and changes nothing."""

    plan_suffix: ClassVar[str]
    """The suffix of files with plans."""

    limited: str | None
    """A sentence on what is unknown of queries here, with the reason; final after the first execution."""

    def set_dop(self, dop: int | None) -> None:
        """Let at most `dop` processors work on a query at once; None: as the server is set. Do nothing if the degree is
        in the text of the query.
        """

    def execute(self, text: str) -> Answer:
        """Execute a query and take its whole answer. Raises CallFailed; TIMEOUT after the session's timeout."""

    def with_notes(self, answer: Answer) -> Answer:
        """Return the last execution's answer with the server's measures. Call it before the next execution; it is not
        timed."""
        return answer

    def measures(self, answer: Answer) -> Measures:
        """Return the measures of an answer. Pure; takes milliseconds where plans are large."""

    def cancel(self) -> None:
        """Ask the server to give up the query under way; from any thread."""

    def close(self) -> None: ...


# The optional abilities of an engine: an object for each, or `Missing` with the reason why there is none.
#
# if why := engine.memory.refusal():      # before a run: why it cannot be had on this server
# if engine.backup: engine.backup.drop()  # `Missing` is false
# required(engine.memory).cap(size)       # where it was asked for and not refused

AnyAbility = TypeVar("AnyAbility", bound="Ability")


@dataclass(frozen=True)
class Missing:
    """An ability that the engine does not have on any server, and why."""

    reason: str

    def __bool__(self) -> Literal[False]:
        return False

    def refusal(self) -> str:
        return self.reason


def required(ability: AnyAbility | Missing) -> AnyAbility:
    """Return the ability; raise StallmarkError with the reason where the engine does not have it."""
    if isinstance(ability, Missing):
        raise StallmarkError(f"{ability.reason[0].upper()}{ability.reason[1:]}.")
    return ability


class Ability:
    def refusal(self) -> str | None:
        """Return the reason why it cannot be had on this server, as a clause without a full stop; None when it can."""
        return None


class Memory(Ability, ABC):
    """Cap the buffer pool, and give back the size it had."""

    smallest_bytes: int = 0
    """The minimum of `cap`."""

    scarce_bytes: int = 0
    """Below this a cap is possible, and the server barely works."""

    largest_bytes: int | None = None
    """The memory of the server's machine, above which no pool can be; None if it is not known."""

    @abstractmethod
    def cap(self, size_bytes: int) -> int:
        """Cap the buffer pool and return the reached size in bytes."""

    @abstractmethod
    def give_back(self) -> None:
        """Restore the size that the buffer pool had before the first cap. Do nothing if it was not capped."""


class Caches(Ability, ABC):
    """Empty the buffer pool for a cold start."""

    allowed: bool = False
    """True if the owner of a server that others may use allows it."""

    @abstractmethod
    def empty(self) -> Sequence[str]:
        """Empty the buffer pool; return what could not be emptied, as sentences for the record."""


class Prefill(Ability, ABC):
    """Fill the buffer pool before a run."""

    @abstractmethod
    def fill(self, *schemas: str) -> int:
        """Read the tables and indexes of `schemas` into the pool; return the bytes it read."""


@dataclass(frozen=True)
class BackupOptions:
    """Options for a backup; the server chooses those that are None. `compression` is on, off or an algorithm."""

    folder: str | None = None
    files: int = 1
    compression: str | None = None
    buffers: int | None = None
    transfer_bytes: int | None = None


@dataclass(frozen=True)
class Folders:
    """Folders of the server's machine for the files of a database."""

    data: str
    log: str | None = None  # default: with the data
    filegroups: Mapping[str, str] = field(default_factory=dict)  # SQL Server: those outside `data`, by name


class Backup(Ability, ABC):
    """Keep a copy of the database that `restore` brings back: a backup, or a copy of its files."""

    options: BackupOptions | None = None
    """None if the server has no such options."""

    of_server: bool = False
    """True if a copy holds every database of the server."""

    @abstractmethod
    def label(self) -> str | None:
        """Return the label of the copy, as given to `keep`; None without a copy."""

    @abstractmethod
    def keep(self, label: str) -> None:
        """Copy the database as it is now, in the place of an earlier copy."""

    @abstractmethod
    def restore(self, to: Folders | None = None) -> None:
        """Put the copy in the place of the database, into other folders where they are given."""

    @abstractmethod
    def refuse_folders(self, to: Folders, size_bytes: int) -> None:
        """Raise StallmarkError if a database of `size_bytes` cannot be in the folders."""

    @abstractmethod
    def bring_home(self) -> None:
        """Move the database back to where it was built, now or at its next use. Do nothing if it is there."""

    def drop(self) -> None:
        """Remove the copy, if there is one."""

    def finish_restore(self) -> None:
        """Restore again where a restore of ours was cut and left a database that nobody can open."""

    def copy_bytes(self, size_bytes: int) -> int:
        """Return the disk that a copy of a database of `size_bytes` would take."""
        return size_bytes


class UserBackup(Ability, ABC):
    """Restore a user's database from a backup of the user's own."""

    @abstractmethod
    def refuse(self, source: str) -> None:
        """Raise StallmarkError if the database cannot be restored from there."""

    @abstractmethod
    def restore(self, source: str) -> None:
        """Put the content of the backup in the place of the database's."""

    def finish_restore(self, source: str) -> None:
        """Restore again if one of our restores was interrupted and left a database that cannot be opened."""


class Placement(Ability):
    """The right to place the files of a new database, which `schema.placement` then uses."""


class Recorded(NamedTuple):
    """The settings that variants have chosen, as a record has them."""

    values: Mapping[str, str] = MappingProxyType({})
    names: Mapping[str, str] = MappingProxyType({})
    """The record's name for each setting that a scenario calls by another name."""


class VariantSetting(Ability, ABC):
    """A setting of the server or database that a variant has as it wants, and that is given back afterwards."""

    was_made: bool = False
    """It has been changed since this engine was opened."""

    def check(self, wanted: Any) -> None:
        """Raise StallmarkError if it cannot be made as a variant wants it; leave the server as it is."""
        return None

    def recorded(self) -> "Recorded":
        """Return the values that the server has now, as far as `settings` of the engine leaves them out."""
        return Recorded()

    @abstractmethod
    def make(self, wanted: Any) -> None:
        """Make it as a variant wants it. Raise StallmarkError if that cannot be now."""

    @abstractmethod
    def give_back(self) -> None:
        """Restore what was found, also by a run that was killed. Do nothing if nothing was changed.

        Raise NotGivenBack.
        """


class MaintenanceWork(ABC):
    """A statement of an administrator, with a connection of its own."""

    @abstractmethod
    def execute(self) -> None:
        """Execute it once. Raise CallFailed."""

    @abstractmethod
    def cancel(self) -> None:
        """Ask the server to give up what is under way; from any thread."""

    @abstractmethod
    def close(self) -> None: ...


class Maintenance(Ability, ABC):
    """Maintenance of the database that a scenario may have beside its users."""

    @abstractmethod
    def open(self, name: str) -> MaintenanceWork:
        """Connect for it. `what`: the file of a backup, the table of a rebuild."""


class Tracing(Ability, ABC):
    """The trace of all I/Os of a server of our own."""

    @abstractmethod
    def use(self) -> None:
        """Have the server traced until it is closed; it is restarted if it was not."""

    @property
    @abstractmethod
    def trace(self) -> "IoTrace | None":
        """Return the trace; None if the server is not traced."""


class ServerArrays(Ability, ABC):
    """The emulated arrays of a server of our own: "data", "wal" or both."""

    @property
    @abstractmethod
    def models(self) -> Mapping[str, "ArrayModel"]:
        """Return the models in use, by name; empty on real storage."""

    @property
    @abstractmethod
    def array(self) -> "EmulatedArrays | None":
        """Return the emulated arrays, for their counters; None on real storage."""

    @abstractmethod
    def use(self, models: Mapping[str, "ArrayModel"] | None) -> None:
        """Put the server on emulated arrays, or back on real storage; they are not slow until `engage`."""

    @abstractmethod
    def engage(self) -> None:
        """Make emulated arrays, if any, as slow as their models."""

    @abstractmethod
    def relax(self) -> None:
        """Make emulated arrays, if any, as fast as real storage."""


class NoDevices(Missing):
    """The reason why an engine emulates no arrays: its servers are on real storage, and only asking for an emulated
    array is refused."""

    array: None = None
    models: Mapping[str, "ArrayModel"] = {}

    def use(self, models: Mapping[str, "ArrayModel"] | None) -> None:
        if models:
            raise StallmarkError(f"{self.reason[0].upper()}{self.reason[1:]}.")

    def engage(self) -> None: ...

    def relax(self) -> None: ...
