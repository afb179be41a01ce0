"""What a workload declares: its tables, its transactions, and the conditions that must hold.

A transaction is one class in one file. It draws its inputs (cheap, in Python) and executes frames: one round
trip each through a `Session`. It never catches errors: the virtual user classifies, counts and retries them.
"""

import random
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib.resources import files
from typing import Any, ClassVar

from sqlalchemy import MetaData

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
    """A consistency condition: `sql` returns the offending rows, none when it holds.

    `statistical` conditions are judged with a tolerance and not exact; `cost` says what it reads: "cheap"
    touches aggregates or small tables, "scan" reads whole large ones.
    """

    name: str
    sql: str
    cost: str = "scan"
    statistical: bool = False


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

    def sql(self, name: str, dialect: str) -> str:
        """The text of `<name>.<dialect>.sql` beside the workload's transactions."""
        return files(self.package).joinpath(f"{name}.{dialect}.sql").read_text()
