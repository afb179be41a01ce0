"""What a workload declares: its tables, its transactions, and the conditions that must hold.

A transaction is one class in one file. It draws its inputs (cheap, in Python) and executes frames: one round
trip each through a `Session`. It never catches errors: the virtual user classifies, counts and retries them.

One frame is a transaction by itself, with its isolation in its SQL: on SQL Server a batch that sets it, begins, calls
and commits; on PostgreSQL a function, or, at another level than READ COMMITTED, a procedure that first says ROLLBACK
and SET TRANSACTION. Several frames are one inside `session.transaction`.
"""

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar

from sqlalchemy import MetaData

from stallmark.driver.engines import sql_file
from stallmark.driver.engines.base import Session


class Outcome(StrEnum):
    COMMITTED = "committed"
    ROLLED_BACK = "rolled back"
    """The transaction decided so (an intended rollback): neither an error nor a commit."""


class Transaction(ABC):
    """One transaction type; an instance belongs to one virtual user and may keep its own state."""

    name: ClassVar[str]
    frames: ClassVar[Sequence[str]]
    """Statement names; `<frame>.<dialect>.sql` beside the module holds the call of each."""

    def __init__(self, scale: Mapping[str, Any]):
        self.scale = scale

    @abstractmethod
    def inputs(self, rng: random.Random) -> tuple:
        """Draw one set of inputs, a pure function of `rng` and the scale."""

    @abstractmethod
    def execute(self, session: Session, inputs: tuple) -> Outcome: ...


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
class Workload:
    """A workload by name. `version` is raised when generated data or procedures change."""

    name: str
    version: int
    metadata: MetaData
    deck: Mapping[type[Transaction], int]
    """How many cards of each transaction the shuffled deck holds."""
    conditions: Sequence[Condition]
    package: str
    numbers: Callable[[Mapping[str, Any]], Mapping[str, int]] = dict
    """The whole numbers that conditions name, from the scale: its own measures where those are such numbers."""

    def sql(self, name: str, dialect: str) -> str:
        """The text of `<name>.<dialect>.sql` beside the workload's transactions."""
        return sql_file.read(self.package, f"{name}.{dialect}")
