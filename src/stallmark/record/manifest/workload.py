"""The loads of a run in its manifest: workloads with their transactions or queries, steps and searches."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field, model_validator

from stallmark.record.manifest.course import LeftWaiting, ManifestPart, RunSecond
from stallmark.record.manifest.storage import DirectIo, ServiceLevelObjective

# The depth of the brokerage's history of trades, from the scale of its database. Everything that shows or judges it
# takes it from here.

WORKLOAD = "brokerage"
TRADES_PER_ACCOUNT = 11.52
"""Trades of an account in one initial trade day, on average: 57,600 by the 5,000 accounts of 1,000 customers."""


@dataclass(frozen=True)
class TradeHistory:
    """The history of trades in a brokerage's database as loaded. `days` are initial trade days."""

    customers: int
    days: float

    @property
    def trades_per_account(self) -> float:
        return round(self.days * TRADES_PER_ACCOUNT, 4)


def trade_history(workload: Any, scale: Any) -> TradeHistory | None:
    """Return the history of a workload's database, or of that of several; None without a brokerage or a known scale."""
    if not isinstance(workload, str) or WORKLOAD not in re.split(r"\W", workload) or not isinstance(scale, Mapping):
        return None
    customers, days = scale.get("customers"), scale.get("days")
    if type(customers) is not int or not (type(days) is int or type(days) is float) or not math.isfinite(days):
        return None
    return TradeHistory(customers, days)


# The search for a ceiling in the manifest of a run: what was asked, each level that was tried, and the answer.

Verdict = Literal["held", "broke", "undecided"]


class LimitSeen(ManifestPart):
    """One limit of the service level, and its measurement at one level.

    Attributes:
        value: for reads, the mean time in ms of `seen` reads of all data files; for transactions, the share of `seen`
            that took longer than `limit_ms`. Null if too little was seen.
        low: the 95 % interval of `value` begins here and ends at `high`; null with `value`.
        limit: in the unit of `value`.
        verdict: undecided if the interval contains the limit.
    """

    of: Literal["reads", "transactions"]
    transaction: str | None = None
    percentile: str | None = None
    limit_ms: float
    limit: float
    value: float | None = None
    low: float | None = None
    high: float | None = None
    seen: float
    verdict: Verdict


class LevelSeen(ManifestPart):
    """The level of a step of a search.

    Attributes:
        level: users, transactions due per second, or multiples of the load.
        tried: the reason for trying it.
        verdict: decided by the values if the intervals leave it open, undecided if too little was seen.
        backlog: True if it ended early because a growing number of arrivals waited.
        behind: the loads whose queries these were.
    """

    level: float
    tried: Literal["first", "double", "halve", "above", "ceiling", "balance"]
    verdict: Verdict
    backlog: bool = False
    behind: tuple[str, ...] = ()
    limits: tuple[LimitSeen, ...] = ()


class Search(ManifestPart):
    """The search of a load, from level `low` to `high`. Its answer is null until it is known.

    Attributes:
        load: the load's name, or null for all loads whose transactions arrive at a rate.
        holds: the highest level that kept the service level, null if none did.
        breaks: the lowest level above it that did not, null if every level did.
    """

    load: str | None
    of: Literal["users", "rate", "load"]
    low: float
    high: float
    tolerance: float
    outcome: Literal["found", "at_least", "none", "unconfirmed"] | None = None
    holds: float | None = None
    breaks: float | None = None


# The load of a run in its manifest: the workload, its transactions or queries, and the steps.


class Waited(ManifestPart):
    """The wait of a step for a steady state, after its ramp and before it was measured."""

    until: Literal["steady"] = "steady"
    at_least_s: float
    at_most_s: float
    seconds: float
    steady: bool


class Steered(ManifestPart):
    """The steering of a mail store's rate, while a step warmed up, to `wanted` I/Os for each mailbox and second. Only
    older records have it: the step was measured at its `rate`."""

    wanted: float
    mailboxes: int
    limit_ms: float
    outcome: Literal["reached", "limit", "unserved", "alone", "time"]
    rate: float
    iops: float | None = None
    read_ms: float | None = None
    within: float | None = None
    windows: int = 0


PHASES = {
    "power": "power run",
    "throughput": "throughput run",
    "each": "queries by themselves",
    "concurrent": "streams beside virtual users",
}
"""The parts of a run of queries by name."""


class Step(ManifestPart):
    """A step of the load, or a completed phase of queries. Seconds count from the run's start; the measured interval is
    from `measure_s` to `end_s`.

    Attributes:
        rate: transactions per second of an open loop, all users together.
        alone: the only load that runs in it.
        cells: number of copies of every load.
        beside: in the record of one load, the other loads that ran.
        missed: the other loads that ended before it.
        streams: number of streams of queries that ran concurrently with its users.
        spawn_rate: users started or stopped per second, when somebody began this step on Locust's page.
        stopped_by_hand: True if somebody ended this step, and the run with it, on Locust's page.
    """

    name: str
    users: int
    begin_s: RunSecond
    measure_s: RunSecond
    end_s: RunSecond
    arrivals: Literal["closed", "fixed", "poisson"] = "closed"
    rate: float | None = None
    think_ms: float | None = None
    phase: str | None = None
    waited: Waited | None = None
    steered: Steered | None = None
    searched: LevelSeen | None = None
    alone: str | None = None
    cells: int | None = None
    beside: tuple[str, ...] = ()
    missed: tuple[str, ...] = ()
    streams: int = 0
    spawn_rate: float | None = None
    stopped_by_hand: bool = False

    @property
    def is_by_hand(self) -> bool:
        """Return True if somebody began or ended this step by hand."""
        return self.spawn_rate is not None or self.stopped_by_hand


class Follows(ManifestPart):
    """The transaction that a follower follows: `each` is the mean number of followers per transaction."""

    transaction: str
    each: float


class Transaction(ManifestPart):
    """A transaction type that may occur. `cards`: its cards in the deck; for a follower, how many come of one
    whole deck. `every_s`: the time after which it is due again, of a timer or at a rate."""

    name: str
    cards: int | float = 0
    source: Literal["users", "followers", "timer", "rate"] = "users"
    limit_s: float | None = None
    reads_only: bool = False
    follows: Follows | None = None
    every_s: float | None = None


class Opening(ManifestPart):
    """The transaction that was executed once before the run, and its result."""

    name: str
    done: dict[str, Any] = {}


class Counted(ManifestPart):
    """A number in the database that grows by one with each commit, before and after the run."""

    before: int
    after: int | None = None


class Statement(ManifestPart):
    """A statement of a user's own SQL.

    Attributes:
        name: its transaction, and its number in the transaction.
        line: its line in the transaction's file.
        text: in one line, without comments.
    """

    name: str
    transaction: str
    line: int
    text: str


_DERIVED_FROM = {"bank": "TPC-B", "brokerage": "TPC-E", "mail": "Jetstress", "warehouse": "TPC-H"}
"""The benchmarks of workloads in older records, which do not name them."""


class Workload(ManifestPart):
    """The workload of a run.

    Attributes:
        scale: in the workload's own measures.
        trades_per_account: mean depth of the brokerage's history.
        version: of the rows, the inputs and the procedures.
        derived_from: the benchmark it is derived from. Missing without one, and in older records.
        statements: statements of a user's own SQL, in the order of its files.
        background_sessions: number of sessions for transactions that no virtual user starts.
    """

    name: str = ""
    scale: dict[str, int | float] = {}
    trades_per_account: float | None = None
    seed: int | None = None
    mix: dict[str, float] | None = None
    locality: float = 0.0
    version: int | None = None
    derived_from: str | None = Field(default=None, exclude_if=lambda benchmark: benchmark is None)
    transactions: tuple[Transaction, ...] = ()
    statements: tuple[Statement, ...] = ()
    primary: str | None = None
    nominal_rate: float | None = None
    background_sessions: int = 0
    opening: Opening | None = None
    counted: dict[str, Counted] = {}

    @model_validator(mode="before")
    @classmethod
    def _with_depth(cls, given: Any) -> Any:
        """Add the depth of the history, which older records leave to the scale."""
        if not isinstance(given, dict) or given.get("trades_per_account") is not None:
            return given
        history = trade_history(given.get("name"), given.get("scale"))
        return given | {"trades_per_account": history.trades_per_account} if history else given

    @property
    def history(self) -> TradeHistory | None:
        """Return the history of trades in its database, or None without one."""
        return trade_history(self.name, self.scale)

    @property
    def benchmark(self) -> str | None:
        """Return the benchmark it is derived from, also for an older record."""
        return self.derived_from or _DERIVED_FROM.get(self.name)


class Queries(ManifestPart):
    """The plan of a run of queries. `dops`: degrees of parallelism; None is the server's own setting."""

    run: str
    phases: tuple[str, ...] = ()
    streams: int | None = None
    refresh: bool = False
    dops: tuple[int | None, ...] = (None,)
    timeout_s: float | None = None


# The loads of a run that has several, in its manifest.


def application(kind: Literal["users", "streams"], load: str) -> str:
    """Return the name by which the server knows the sessions of a load, where a run may have several."""
    return f"stallmark-{'stream' if kind == 'streams' else 'user'}-{load}"


class RawPlan(ManifestPart):
    """The reads and writes of a raw load.

    Attributes:
        blocks: share of the I/Os by their size in bytes.
        rate_iops: I/Os per second and cell. If this and `rate_bytes` are None, the storage limits the load.
        rate_bytes: bytes per second and cell.
    """

    pattern: str
    operation: Literal["read", "write"]
    order: Literal["random", "sequential"]
    blocks: dict[int, float]
    outstanding: int
    rate_iops: float | None = None
    rate_bytes: float | None = None
    size_bytes: int
    folder: str | None = None
    emulated: bool = False
    direct_io: DirectIo | None = None


class Load(ManifestPart):
    """A load of a run. Each copy has its own part of the data.

    Attributes:
        counts: its users, its streams of queries, or the cells of its raw I/O, in each step of the run; 0 if idle.
        cells: maximum number of copies.
        rate: transactions or queries per second, in an open loop.
    """

    name: str
    kind: Literal["users", "streams", "raw"]
    counts: tuple[int, ...]
    cells: int = 1
    workload: Workload | None = None
    arrivals: Literal["closed", "fixed", "poisson"] = "closed"
    rate: float | None = None
    think_ms: float | None = None
    timeout_s: float | None = None
    service_level: ServiceLevelObjective | None = None
    thresholds: tuple[str, ...] = ()
    raw: RawPlan | None = None
    ended_s: int | None = None
    """The whole seconds after which it ended although the run went on, or was to; null where it did not."""
    ended_because: str | None = None
    left_waiting: LeftWaiting = LeftWaiting()
    unfinished: int = 0
    """The transactions of its users that did not end even when cancelled."""
    given_up: int = 0
    """The queries under way that were given up, since the number of their streams changed or the run ended."""


def ended_early(loads: Sequence[Load]) -> str | None:
    """Return the loads that ended before the run did, with the reasons, or None if none did."""
    return (
        "; ".join(
            f"{load.name} ended early, after {load.ended_s} s: {load.ended_because}"
            for load in loads
            if load.ended_because
        )
        or None
    )


def cut_short(loads: Sequence[Load], ended: Mapping[str, tuple[int, str]]) -> tuple[Load, ...]:
    """Return the loads with those marked that ended early: by name, after how many whole seconds and why."""
    marked = {name: {"ended_s": after_s, "ended_because": reason} for name, (after_s, reason) in ended.items()}
    return tuple(load.changed(**marked.get(load.name, {})) for load in loads)
