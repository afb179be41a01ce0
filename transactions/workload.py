"""What a workload declares: its tables, its transactions, and the conditions that must hold.

A transaction is one class in one file. It draws its inputs (cheap, in Python) and executes frames: one round trip each
through a `Session`. It never catches errors: whoever executes it classifies, counts and retries them. Its procedures
stand beside it, `<name>.<dialect>.sql`, twins that do the same in the same order and neither begin nor commit.

One frame is a transaction by itself. Where it writes, its isolation is in its SQL: on SQL Server a batch
(`<frame>.call.mssql.sql`) that sets it, begins, calls and commits. Several frames, or one at another isolation, are one
inside `session.transaction`.
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

if TYPE_CHECKING:
    from sqlalchemy import MetaData


class Outcome(StrEnum):
    COMMITTED = "committed"
    ROLLED_BACK = "rolled back"
    """The transaction decided so (an intended rollback): neither an error nor a commit."""


class Transaction(ABC):
    """One transaction type; an instance belongs to one session and may keep its own state."""

    name: ClassVar[str]
    frames: ClassVar[Mapping[str, int]]
    """Procedures, and how many parameters each takes."""

    reads_only: ClassVar[bool] = False
    limit_s: ClassVar[float | None] = None
    """90 % of them should take no longer."""

    def __init__(self, shared: Any):
        """`shared` is what the workload's `share` made for all transactions of this process."""
        self.shared = shared

    @abstractmethod
    def inputs(self, rng: random.Random) -> tuple:
        """Draw one set of inputs, a pure function of `rng` and what is shared."""

    @abstractmethod
    def execute(self, session: Session, inputs: tuple) -> Outcome: ...


class Opening(Transaction):
    """One that is executed once, before a run; `done` says afterwards what it did, for the record."""

    done: Mapping[str, int] = MappingProxyType({})


@dataclass(frozen=True)
class WorkloadContext:
    """What a load process (an executor) can tell its transactions, and do for them.

    Processes are counted from 0 over all load machines, these from 1 (0: there is one alone). `locality` is the share
    of customers that a machine takes from its own part of them, where there are several. `post` has a transaction
    executed with these inputs that many seconds later, by a session that is no virtual user's.
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
        """With the SQL of `conditions/<file>.sql` in a workload's package."""
        return cls(name, sql_file.read(package, f"conditions/{file}"), cost, **marks)


@dataclass(frozen=True)
class Background:
    """Transactions that no virtual user starts, and the sessions that execute them."""

    followers: Mapping[type[Transaction], tuple[type[Transaction], float]] = field(default_factory=dict)
    """Transactions that follow from others (`WorkloadContext.post`): from which, and how many for each of it."""
    timers: Mapping[type[Transaction], float] = field(default_factory=dict)
    """Transactions that one process of all executes every so many seconds."""
    sessions_per_user: float = 0.0
    """For each virtual user who has the workload's own deck."""
    executed_by: str = "the background sessions"
    """These sessions in words."""


@dataclass(frozen=True)
class Workload:
    """A workload by name. `version` is raised when generated data or procedures change."""

    name: str
    version: int
    schema: str
    """Of its procedures."""
    tables: str
    """The module that has them. Not imported before somebody asks: who only executes transactions starts without
    SQLAlchemy, in half the time."""
    deck: Mapping[type[Transaction], int]
    """How many cards of each transaction the shuffled deck of the virtual users holds; none where streams execute
    queries instead."""
    conditions: Sequence[Condition]
    package: str
    numbers: Callable[[Mapping[str, Any]], Mapping[str, int]] = dict
    """The whole numbers that conditions name, from the scale: its own measures where those are such numbers."""
    share: Callable[[WorkloadContext], Any] = attrgetter("scale")
    """What the transactions of one process have in common; made before the load begins, and may ask the database."""
    background: Background = Background()
    opening: type[Opening] | None = None
    primary: type[Transaction] | None = None
    """The one whose rate is the result; None: all count."""
    nominal_rate: Callable[[Mapping[str, Any]], float | None] = lambda scale: None
    """Of the primary transaction, per second, at that scale, where the workload has one."""
    counted: Mapping[type[Transaction], str] = field(default_factory=dict)
    """A number in the database (as a query) that grows by one with each commit of a transaction."""
    has_parts: bool = False
    """Whether a load machine can have customers of its own (`WorkloadContext.locality`)."""
    crowded: Callable[[Mapping[str, Any], int], str | None] = lambda scale, users: None
    """A sentence where so many users are too many for the scale: they would wait for each other, not for storage."""

    queries: bool = False
    """Whether its database has the warehouse's tables, so that streams can execute the queries."""

    @cached_property
    def metadata(self) -> "MetaData":
        """Where the tables of two workloads are together, each has its own schema."""
        return import_module(self.tables).METADATA

    @property
    def transactions(self) -> tuple[type[Transaction], ...]:
        opening = (self.opening,) if self.opening else ()
        return *self.deck, *self.background.followers, *self.background.timers, *opening

    def procedures(self, dialect: str) -> str:
        """What is deployed for all transactions, in batches."""
        return "\nGO\n".join(sql_file.read(self.package, f"{each.name}.{dialect}") for each in self.transactions)

    def prepare(self, session: Session, kinds: Iterable[type[Transaction]]) -> None:
        """The calls of their frames; one that several have, once."""
        frames = dict(frame for kind in kinds for frame in kind.frames.items())
        for frame, parameters in frames.items():
            session.prepare(frame, self.call(frame, parameters, session.dialect))

    def call(self, frame: str, parameters: int, dialect: str) -> str:
        """The statement that calls a frame: as `<frame>.call.<dialect>.sql` says where there is that file."""
        if sql_file.exists(self.package, name := f"{frame}.call.{dialect}"):
            return sql_file.read(self.package, name)
        procedure = f"{self.schema}.{frame}"
        if dialect == "mssql":
            return f"{{CALL {procedure}({', '.join('?' * parameters)})}}"
        return f"SELECT * FROM {procedure}({', '.join(f'${number + 1}' for number in range(parameters))})"
