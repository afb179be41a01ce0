"""The parts of a workload: its tables, its transactions, and the conditions that must hold.

A transaction is one class in one file. It draws its inputs (cheap, in Python) and executes frames: one round trip each
through a `Session`. It never catches errors: whoever executes it classifies, counts and retries them. Its procedures
are in the same folder, `<name>.<dialect>.sql`. These twins do the same in the same order and neither begin nor commit.

One frame is a transaction by itself. Where it writes, its isolation is in its SQL: on SQL Server a batch
(`<frame>.call.mssql.sql`) that sets it, begins, calls and commits. Several frames, or one at another isolation, are one
inside `session.transaction`, whose last call says that it is: where the server can, no trip is needed for the ends.
"""

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from importlib import import_module
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from stallmark.engines import sql_file
from stallmark.engines.base import Session
from stallmark.errors import StallmarkError

if TYPE_CHECKING:
    from sqlalchemy import MetaData


class Outcome(StrEnum):
    COMMITTED = "committed"
    ROLLED_BACK = "rolled back"
    """The transaction decided so (an intended rollback): neither an error nor a commit."""


class Transaction(ABC):
    """A transaction type; an instance belongs to one session and may keep its own state."""

    name: ClassVar[str]
    frames: ClassVar[Mapping[str, int]]
    """The procedures, and how many parameters each takes."""

    reads_only: ClassVar[bool] = False
    limit_s: ClassVar[float | None] = None
    """The time in seconds within which 90 % of the transactions should end."""

    def __init__(self, shared: Any):
        """Take in `shared` what `UserLoad.share` made for all transactions of this process."""
        self.shared = shared

    @abstractmethod
    def inputs(self, rng: random.Random) -> tuple:
        """Draw one set of inputs, a pure function of `rng` and what is shared."""

    @abstractmethod
    def execute(self, session: Session, inputs: tuple) -> Outcome: ...


class Opening(Transaction):
    """A transaction that is executed once, before a run; `done` says afterwards what it did, for the record."""

    done: Mapping[str, int] = MappingProxyType({})


@dataclass(frozen=True)
class WorkloadContext:
    """The workload context: what an executor tells its transactions, and does for them.

    Processes are counted from 0 over all loads and load machines; machines from 1 (0: there is one alone). Where there
    are several, `locality` is the share of customers that a machine takes from its own part of them. Of a load in
    several cells, this is number `cell` of `cells`: its users keep to a part of the data of its own. `post(transaction,
    inputs, after_s)` has a background session execute a transaction so many seconds later.
    """

    scale: Mapping[str, Any]
    seed: int
    query: Callable[[str], list[tuple]]
    post: Callable[[type[Transaction], tuple, float], None]
    process: int = 0
    processes: int = 1
    machine: int = 0
    machines: int = 1
    locality: float = 0.0
    cell: int = 1
    cells: int = 1

    def part(self, units: int) -> range:
        """Return the part of this cell, of so many units counted from 0. Parts differ by at most one unit.

        Raise StallmarkError where there are fewer units than cells.
        """
        if units < self.cells:
            raise StallmarkError(
                f"{self.cells} cells have {units} units of data to share, and each needs one of its own: build a "
                "larger database, or run fewer cells."
            )
        return range((self.cell - 1) * units // self.cells, self.cell * units // self.cells)


@dataclass(frozen=True)
class Condition:
    """A consistency condition: `sql` returns the offending rows, none when it holds; `:name` in it is a number that
    the workload knows.

    `statistical` conditions are judged with a tolerance, which the SQL states, the others are exact. `cost` says what
    it reads: "cheap" touches aggregates or small tables, "scan" reads whole large ones. `fresh_only` is what holds for
    a database as it was loaded, and not any more when transactions have run on it.
    """

    name: str
    sql: str
    cost: str = "scan"
    statistical: bool = False
    fresh_only: bool = False

    @classmethod
    def of_file(cls, package: str, file: str, name: str, cost: str = "scan", **marks: bool) -> "Condition":
        """Return a condition with the SQL of `conditions/<file>.sql` in a workload's package."""
        return cls(name, sql_file.read(package, f"conditions/{file}"), cost, **marks)


@dataclass(frozen=True)
class Background:
    """Transactions that no virtual user starts, and the sessions that execute them."""

    followers: Mapping[type[Transaction], tuple[type[Transaction], float]] = field(default_factory=dict)
    """Transactions that follow from others (`WorkloadContext.post`): from which, and how many for each of it."""
    timers: Mapping[type[Transaction], float] = field(default_factory=dict)
    """Transactions that one process of all executes every so many seconds."""
    sessions_per_user: float = 0.0
    """Background sessions for each virtual user, with the workload's own deck."""
    executed_by: str = "the background sessions"
    """These sessions in words."""


@dataclass(frozen=True)
class UserLoad:
    """The transactions that virtual users start, and what a load process, a run and a report need for them."""

    deck: Mapping[type[Transaction], int] = field(default_factory=dict)
    """The number of cards of each transaction in the shuffled deck; none where users start nothing."""
    share: Callable[[WorkloadContext], Any] = attrgetter("scale")
    """The function that makes what the transactions of one process share. It is called before the load begins, and may
    query the database."""
    opening: type[Opening] | None = None
    primary: type[Transaction] | None = None
    """The transaction whose rate is the result; None: all count."""
    nominal_rate: Callable[[Mapping[str, Any]], float | None] = lambda scale: None
    """The rate of the primary transaction, per second, that a database of that scale is meant for; None where the
    workload has none."""
    counted: Mapping[type[Transaction], str] = field(default_factory=dict)
    """A number in the database (as a query) that grows by one with each commit of a transaction."""
    has_local_customers: bool = False
    """True where a load machine can have customers of its own (`WorkloadContext.locality`)."""
    contention: Callable[[Mapping[str, Any], int], str | None] = lambda scale, users: None
    """The function that returns a sentence where so many users are too many for the scale: they would wait for each
    other, not for storage."""


@dataclass(frozen=True)
class QueryStreams:
    """The queries that streams execute."""

    queries: Sequence[int]
    """The numbers of the queries."""
    at_scale: Callable[[Mapping[str, Any]], int]
    """The function that returns the number of streams of a throughput run, where a scenario does not say it."""


@dataclass(frozen=True)
class Workload:
    """A workload by name: its database, and its load. `version` is raised when generated data or procedures change."""

    name: str
    version: int
    schema: str
    """The schema of its procedures."""
    tables: str
    """The module that has the tables. It is imported on demand: a process that only executes transactions starts
    without SQLAlchemy, in half the time."""
    package: str
    """The package that has the SQL of its transactions."""
    called: Sequence[str] = ()
    """The files of procedures that those of several transactions call."""
    conditions: Sequence[Condition] = ()
    numbers: Callable[[Mapping[str, Any]], Mapping[str, int]] = dict
    """The whole numbers that conditions name, from the scale: its own measures where those are such numbers."""
    users: UserLoad = UserLoad()
    background: Background = Background()
    cells_by: str | None = None
    """The measure that is larger with more cells; None where all cells use the same data."""
    streams: QueryStreams | None = None
    """None where its database has no queries for streams."""
    build_mib_per_s: float = 40
    """A load with keys, foreign keys and statistics, by two loader processes, measured as experiment/rates.py says."""
    check_mib_per_s: float = 400
    """Conditions are checked, measured in the same way."""

    @cached_property
    def metadata(self) -> "MetaData":
        """Return the tables."""
        return import_module(self.tables).METADATA

    @property
    def parts(self) -> tuple["Workload", ...]:
        """Return the workloads that it is made of: itself, unless it is several in one database."""
        return (self,)

    def for_cells(self, scale: Mapping[str, Any], cells: int) -> dict[str, Any]:
        """Return the scale of a database in which so many cells of that scale each have data of their own."""
        return {name: value * cells if name == self.cells_by else value for name, value in scale.items()}

    @property
    def transactions(self) -> tuple[type[Transaction], ...]:
        opening = (self.users.opening,) if self.users.opening else ()
        return *self.users.deck, *self.background.followers, *self.background.timers, *opening

    def procedures(self, dialect: str) -> str:
        """Return the SQL that is deployed for all transactions, in batches."""
        names = (*self.called, *(each.name for each in self.transactions))
        return "\nGO\n".join(sql_file.read(self.package, f"{name}.{dialect}") for name in names)

    def prepare(self, session: Session, kinds: Iterable[type[Transaction]]) -> None:
        """Prepare the calls of the frames of these transactions; a frame that several share, once."""
        frames = dict(frame for kind in kinds for frame in kind.frames.items())
        for frame, parameters in frames.items():
            session.prepare(frame, self.call(frame, parameters, session.dialect))

    def call(self, frame: str, parameters: int, dialect: str) -> str:
        """Return the statement that calls a frame: the text of `<frame>.call.<dialect>.sql` where that file is."""
        if sql_file.exists(self.package, name := f"{frame}.call.{dialect}"):
            return sql_file.read(self.package, name)
        procedure = f"{self.schema}.{frame}"
        if dialect == "mssql":
            return f"{{CALL {procedure}({', '.join('?' * parameters)})}}"
        return f"SELECT * FROM {procedure}({', '.join(f'${number + 1}' for number in range(parameters))})"
