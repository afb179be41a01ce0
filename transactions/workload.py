"""The parts of a workload: its tables, its transactions and their mix, its conditions, and its time."""

import random
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from fractions import Fraction
from functools import cached_property
from importlib import import_module
from math import floor, gcd, lcm, sqrt
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, TypeVar

from stallmark.engines import sql_file
from stallmark.engines.base import Engine, Isolation, Session
from stallmark.errors import StallmarkError

if TYPE_CHECKING:
    from sqlalchemy import MetaData


# The time of a workload: the wall clock when the load began, continued by a monotonic clock.
#
# A wall clock that is set back during a run changes nothing. A test has a clock of its own.


class Clock(Protocol):
    def now(self) -> datetime:
        """Return the time in UTC, without a zone, as the tables have it."""


class RunClock:
    def __init__(self) -> None:
        self._began = datetime.now(UTC).replace(tzinfo=None)
        self._began_ns = time.monotonic_ns()

    def now(self) -> datetime:
        return self._began + timedelta(microseconds=(time.monotonic_ns() - self._began_ns) // 1000)


def as_text(moment: datetime) -> str:
    """Return a time as text for the server, which keeps milliseconds."""
    return moment.isoformat(timespec="milliseconds")


FAILED = -1
"""The number of rows of a statement that failed."""


class StatementFacts(NamedTuple):
    """A statement of SQL of a user's own."""

    name: str
    """Its transaction, and its number in that from 1."""
    transaction: str
    line: int
    """Its line in the transaction's file."""
    text: str
    """Its text in one line, without comments."""
    sql: str
    """Its text as it is prepared."""


# The parts of a workload: its tables, its transactions, and the conditions that must hold.
#
# A transaction is one class. It draws its inputs (cheap, in Python) and executes frames: one round trip
# each through a `Session`. It never catches errors: whoever executes it classifies, counts and retries them. Its
# procedures are in the same folder, `<name>.<dialect>.sql`. These twins do the same in the same order and neither begin
# nor commit.
#
# One frame is a transaction by itself. If it writes, it has a `call_isolation`, which on SQL Server a batch sets that
# begins, calls and commits (`call.mssql.sql`). Several frames, or one at another isolation, are one inside
# `session.transaction`, whose last call says that it is: where the server can, no trip is needed for the ends.


class Outcome(StrEnum):
    COMMITTED = "committed"
    ROLLED_BACK = "rolled back"
    """The transaction decided so (an intended rollback): neither an error nor a commit."""


class Transaction(ABC):
    """A transaction type; an instance belongs to one session and may keep its own state."""

    name: ClassVar[str]
    frames: ClassVar[Mapping[str, int]]
    """The procedures, and how many parameters each takes."""
    call_isolation: ClassVar[Isolation | None] = None
    """The isolation at which each frame is a transaction by itself; None if a frame only reads, or `execute` makes the
    transaction."""

    reads_only: ClassVar[bool] = False
    limit_s: ClassVar[float | None] = None
    """The time in seconds within which 90 % of the transactions should end."""
    user: int | None = None
    """The number of the virtual user that it belongs to, or None in a background session."""

    def __init__(self, shared: Any):
        """Take in `shared` what `UserLoad.share` made for all transactions of this process."""
        self.shared = shared

    def begin_user(self, number: int, rng: random.Random) -> None:
        """Belong to a virtual user. From its generator only `begin_user` of its other transactions has drawn yet."""
        self.user = number

    @abstractmethod
    def inputs(self, rng: random.Random) -> tuple:
        """Draw one set of inputs, a pure function of `rng` and what is shared."""

    @abstractmethod
    def execute(self, session: Session, inputs: tuple) -> Outcome: ...


class Opening(Transaction):
    """A transaction that is executed once, before a run; afterwards `done` has the counts of its work, for the
    record."""

    done: Mapping[str, int] = MappingProxyType({})


@dataclass(frozen=True)
class WorkloadContext:
    """The facts and services that an executor gives its transactions."""

    scale: Mapping[str, Any]
    seed: int
    query: Callable[[str], list[tuple]]
    post: Callable[[type[Transaction], tuple, float], None]
    """`post(transaction, inputs, after_s)` has a background session execute a transaction `after_s` seconds later."""
    process: int = 0
    """The number of this process, from 0, over all loads and load machines."""
    processes: int = 1
    machine: int = 0
    """The number of this load machine, from 1, or 0 for a single one."""
    machines: int = 1
    locality: float = 0.0
    """With several machines: the share of customers that each takes from its own part."""
    cell: int = 1
    """The number of the load's cell, from 1: users of a cell keep to the cell's own part of the data."""
    cells: int = 1
    users: int = 1
    """The maximum number of users of the load at once, over all processes and machines."""
    dialect: str = "postgresql"
    report_statements: Callable[[Sequence[int]], None] = lambda samples: None
    """The receiver of the executed statements of a transaction of a user's own. Each is four numbers: its place among
    the workload's statements, its rows or FAILED, and in monotonic ns its start and its end. They follow one another
    without more structure, because this is the hot path."""

    def part(self, units: int) -> range:
        """Return this cell's part of `units` units, counted from 0. Parts differ by at most one unit.

        Raise StallmarkError if there are fewer units than cells.
        """
        if units < self.cells:
            raise StallmarkError(
                f"{self.cells} cells have {units} units of data to share, and each needs one of its own: build a "
                "larger database, or run fewer cells."
            )
        return range((self.cell - 1) * units // self.cells, self.cell * units // self.cells)


_MARKS: Mapping[str, tuple[str, Any]] = {
    "cheap": ("cost", "cheap"), "statistical": ("statistical", True), "fresh": ("fresh_only", True)
}  # fmt: skip
"""The field and value of a condition that a mark in its heading sets."""


@dataclass(frozen=True)
class Condition:
    """A consistency condition on a database."""

    name: str
    sql: str
    """A query that returns the offending rows; `:name` is a number from the workload."""
    cost: str = "scan"
    """“cheap” reads aggregates or small tables, “scan” reads large ones completely."""
    statistical: bool = False
    """True if the condition has a tolerance, which is part of the SQL."""
    fresh_only: bool = False
    """True if the condition holds only until transactions have run on the loaded database."""

    @classmethod
    def read_all(cls, package: str) -> "tuple[Condition, ...]":
        """Return the conditions of a workload, in the order of `conditions.sql` in its package."""
        conditions = []
        for statement in sql_file.statements(f"{package}.conditions"):
            _, *marks = statement.key.split(", ")
            values = dict(_MARKS[mark] for mark in marks)
            conditions.append(cls(statement.title, statement.text.rstrip().removesuffix(";"), **values))
        return tuple(conditions)


@dataclass(frozen=True)
class Background:
    """Transactions that no virtual user starts, and the sessions that execute them."""

    followers: Mapping[type[Transaction], tuple[type[Transaction], float]] = field(default_factory=dict)
    """Transactions that follow from others (`WorkloadContext.post`): the cause, and the mean number for each."""
    timers: Mapping[type[Transaction], float] = field(default_factory=dict)
    """Transactions that one process executes periodically, with the period in seconds."""
    rates: Mapping[type[Transaction], float] = field(default_factory=dict)
    """Transactions due at a rate per second, over all processes, whether earlier ones have ended or not."""
    sessions_per_user: float = 0.0
    """Background sessions for each virtual user, with the workload's own deck."""
    executed_by: str = "the background sessions"
    """These sessions in words."""


@dataclass(frozen=True)
class UserLoad:
    """The transactions that virtual users start, and what a load process, a run and a report need for them."""

    deck: Mapping[type[Transaction], int] = field(default_factory=dict)
    """The number of cards of each transaction in the shuffled deck; empty if users start nothing."""
    share: Callable[[WorkloadContext], Any] = attrgetter("scale")
    """The function that makes what the transactions of one process share. It is called before the load begins, and may
    query the database."""
    opening: type[Opening] | None = None
    primary: type[Transaction] | None = None
    """The transaction whose rate is the result; None: all count."""
    nominal_rate: Callable[[Mapping[str, Any]], float | None] = lambda scale: None
    """The rate of the primary transaction, per second, that a database of that scale is meant for; None if the
    workload has none."""
    counted: Mapping[type[Transaction], str] = field(default_factory=dict)
    """A number in the database (as a query) that grows by one with each commit of a transaction."""
    has_local_customers: bool = False
    """True if a load machine can have customers of its own (`WorkloadContext.locality`)."""
    contention: Callable[[Mapping[str, Any], int], str | None] = lambda scale, users: None
    """The function that returns a sentence if a number of users is too large for the scale: they would wait for each
    other, not for storage."""


@dataclass(frozen=True)
class QueryStreams:
    """The queries that streams execute."""

    queries: Sequence[int]
    """The numbers of the queries."""
    at_scale: Callable[[Mapping[str, Any]], int]
    """The function that returns the default number of streams of a throughput run, by scale."""


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
    derived_from: str | None = None
    """The benchmark it is derived from; its results are not results of that benchmark."""
    called: Sequence[str] = ()
    """The files of procedures that those of several transactions call."""
    conditions: Sequence[Condition] = ()
    numbers: Callable[[Mapping[str, Any]], Mapping[str, int]] = dict
    """The whole numbers that conditions name, from the scale: its own measures where those are such numbers."""
    users: UserLoad = UserLoad()
    background: Background = Background()
    cells_by: str | None = None
    """The measure that is larger with more cells; None if all cells use the same data."""
    streams: QueryStreams | None = None
    """None if its database has no queries for streams."""
    build_mib_per_s: float = 40
    """A load with keys, foreign keys and statistics, by two loader processes; see experiment/estimate.py."""
    check_mib_per_s: float = 400
    """Conditions are checked, measured in the same way."""
    definition: Mapping[str, Any] | None = None
    """The definition of a user's workload, which makes it in any process; None for one of ours."""

    @cached_property
    def metadata(self) -> "MetaData":
        """Return the tables."""
        return import_module(self.tables).METADATA

    @property
    def data_version(self) -> int:
        """Return the version of what a build makes."""
        return self.version

    @property
    def setup(self) -> str:
        """Return the SQL that fills a new database of our own server, in batches."""
        return ""

    @property
    def is_given(self) -> bool:
        """Return True if all tables are the user's own."""
        return self.definition is not None

    @property
    def parts(self) -> tuple["Workload", ...]:
        """Return the workloads that it is made of: itself, unless it is several in one database."""
        return (self,)

    def for_cells(self, scale: Mapping[str, Any], cells: int) -> dict[str, Any]:
        """Return the scale of a database with `cells` times the data of `scale`."""
        return {name: value * cells if name == self.cells_by else value for name, value in scale.items()}

    def statements(self, dialect: str) -> Sequence[StatementFacts]:
        """Return the statements of SQL of a user's own, in order; empty for a workload of ours."""
        return ()

    def examine(self, engine: Engine, users: int) -> None:
        """Raise StallmarkError if `users` users could not execute the workload's transactions on this engine."""

    @property
    def transactions(self) -> tuple[type[Transaction], ...]:
        opening = (self.users.opening,) if self.users.opening else ()
        background = self.background
        return *self.users.deck, *background.followers, *background.timers, *background.rates, *opening

    def procedures(self, dialect: str) -> str:
        """Return the SQL that is deployed for all transactions, in batches."""
        names = (*self.called, *(transaction.name for transaction in self.transactions))
        return "\nGO\n".join(sql_file.read(self.package, f"{name}.{dialect}") for name in names)

    def prepare(self, session: Session, kinds: Iterable[type[Transaction]]) -> None:
        """Prepare the calls of the frames of `kinds`, each once even if several transactions share it."""
        by_frame = {frame: transaction for transaction in kinds for frame in transaction.frames}
        for frame, kind in by_frame.items():
            session.prepare(frame, self.call(kind, frame, session.dialect))

    def call(self, kind: type[Transaction], frame: str, dialect: str) -> str:
        """Return the statement that calls a frame of a transaction."""
        procedure, count = f"{self.schema}.{frame}", kind.frames[frame]
        if dialect != "mssql":
            return f"SELECT * FROM {procedure}({', '.join(f'${number + 1}' for number in range(count))})"
        parameters = ", ".join("?" * count)
        if kind.call_isolation:
            template = sql_file.read("stallmark.transactions", "call.mssql")
            return template.format(isolation=kind.call_isolation, procedure=procedure, parameters=parameters)
        return f"{{CALL {procedure}({parameters})}}"


# The mix of a scenario as cards of the shuffled deck: which transactions the users start, and how often.

MOST_CARDS = 1_000
"""The mix is met exactly only where a deck was dealt whole: a larger one takes too long."""

READ_SHARE = "read_share"

FEWEST = 0.1  # share of a workload's background sessions, for timers if nothing follows

Kind = TypeVar("Kind")
Mix = Mapping[str, float]


def deck_of(workload: Workload, mix: Mix | None) -> dict[str, int]:
    """Return the cards by the transaction's name; without a mix those of the workload.

    A mix has weights by name, without which a transaction is not started. Or it has a `read_share` (0 to 1): the share
    of transactions that only read. Reading transactions then keep their proportions, and writing ones too. Raise
    StallmarkError, a sentence without its full stop, for an impossible mix.
    """
    own = {kind.name: cards for kind, cards in workload.users.deck.items()}
    if not own:
        raise StallmarkError(
            f"users start no transactions of {workload.name}, whose queries are executed by streams: write queries "
            "instead of users, warm_up and measure"
        )
    if mix is None:
        return own
    weights = _by_read_share(workload, mix) if READ_SHARE in mix else _by_name(workload, mix)
    return dict.fromkeys(own, 0) | weights


def background_per_user(workload: Workload, deck: Mapping[str, int]) -> float:
    """Return the background sessions for each virtual user.

    With the workload's own deck this is `sessions_per_user`. A mix with more causes has more followers, but the number
    of sessions does not grow in proportion: causes take longer than other transactions, so users start fewer in all.
    The square root is a compromise: with 4 times the followers there are twice the sessions.
    """
    own = _following(workload, deck_of(workload, None))
    if not own:
        return workload.background.sessions_per_user
    more = sqrt(_following(workload, deck) / own)
    return workload.background.sessions_per_user * max(more, FEWEST)


def _following(workload: Workload, deck: Mapping[str, int]) -> float:
    """Return the number of transactions that follow, on average, for each that users start."""
    return sum(deck[kind.name] * share for kind, share in workload.background.followers.values()) / sum(deck.values())


def apportioned(weights: Mapping[Kind, Fraction], cards: int, least: Mapping[Kind, int]) -> dict[Kind, int]:
    """Return the numbers of cards for given weights, by largest remainders. Each gets at least `least`, whose sum must
    not exceed `cards`.

    Weights of 5, 3 and 1 with 10 cards: the exact shares are 5.56, 3.33 and 1.11, so 5, 3 and 1 cards are dealt first,
    and the last goes to the largest remainder: 6, 3 and 1.
    """
    total = sum(weights.values())
    quotas = {kind: weight / total * cards for kind, weight in weights.items()}
    if few := {kind: least[kind] for kind, quota in quotas.items() if quota < least[kind]}:
        others = {kind: weight for kind, weight in weights.items() if kind not in few}
        return few | (apportioned(others, cards - sum(few.values()), least) if others else {})
    dealt = {kind: floor(quota) for kind, quota in quotas.items()}
    by_remainder = sorted(quotas, key=lambda kind: dealt[kind] - quotas[kind])
    for kind in by_remainder[: cards - sum(dealt.values())]:
        dealt[kind] += 1
    return dealt


def _by_name(workload: Workload, mix: Mix) -> dict[str, int]:
    names = [kind.name for kind in workload.users.deck]
    for name, weight in mix.items():
        if name not in names:
            others = [kind.name for kind in workload.transactions]
            problem = "is not started by users" if name in others else f"is no transaction of {workload.name}"
            raise StallmarkError(f"{name} {problem}: there are {', '.join(names)}, or {READ_SHARE} alone")
        if weight <= 0:
            raise StallmarkError(
                f"{name} has the weight {weight:g}: give it more than 0, or leave it out to have none started"
            )
    weights = {name: _exact(weight) for name, weight in mix.items()}
    return _exactly(weights) or apportioned(weights, MOST_CARDS, dict.fromkeys(weights, 1))


def _by_read_share(workload: Workload, mix: Mix) -> dict[str, int]:
    if len(mix) > 1:
        raise StallmarkError(f"{READ_SHARE} excludes weights: remove one or the other")
    share = _exact(mix[READ_SHARE])
    if not 0 <= share <= 1:
        raise StallmarkError(f"{READ_SHARE} is 0 to 1 (0.9: nine of ten only read), not {mix[READ_SHARE]:g}")
    groups: dict[str, dict[str, Fraction]] = {}
    shares = {does: part for does, part in (("reads only", share), ("writes", 1 - share)) if part}
    for does in shares:
        groups[does] = {
            kind.name: Fraction(cards)
            for kind, cards in workload.users.deck.items()
            if kind.reads_only == (does == "reads only")
        }
        if not groups[does]:
            raise StallmarkError(
                f"{READ_SHARE} cannot be {mix[READ_SHARE]:g}: no transaction of {workload.name} {does}"
            )
    weights = {
        name: shares[does] * weight / sum(group.values())
        for does, group in groups.items()
        for name, weight in group.items()
    }
    if exact := _exactly(weights):
        return exact
    # First how many read, so that rounding each type by itself does not add up to another share.
    sizes = apportioned(shares, MOST_CARDS, {does: len(group) for does, group in groups.items()})
    return {
        name: cards
        for does, group in groups.items()
        for name, cards in apportioned(group, sizes[does], dict.fromkeys(group, 1)).items()
    }


def _exact(weight: float) -> Fraction:
    return Fraction(str(weight))  # decimal as written: 0.1 is a tenth


def _exactly(weights: Mapping[Kind, Fraction]) -> dict[Kind, int] | None:
    """Return the smallest deck that has exactly these proportions; None when it is too large."""
    unit = lcm(*(weight.denominator for weight in weights.values()))
    whole = {kind: int(weight * unit) for kind, weight in weights.items()}
    cards = {kind: count // gcd(*whole.values()) for kind, count in whole.items()}
    return cards if sum(cards.values()) <= MOST_CARDS else None
