"""The loads of a run in its manifest: workloads with their transactions or queries, steps and searches."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import model_validator

from stallmark.record.manifest.course import LeftWaiting, ManifestPart, RunSecond
from stallmark.record.manifest.storage import ServiceLevelObjective
from stallmark.record.probe import DirectIo

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
    """One limit of the service level, and what was seen of it at one level.

    Of reads, `value` is their mean time in ms, of `seen` reads of all data files; of transactions it is the share of
    `seen` that took longer than `limit_ms`. `low` to `high` is its interval (95 %). All are null where too little was
    seen. `limit` is in the unit of `value`. `verdict` is undecided where the interval holds the limit."""

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
    """The level of a step of a search: `level` users, transactions due per second, or times the load. `tried` is why it
    was chosen. `verdict` goes by the values where intervals leave it open; it is undecided where too little was seen.
    `backlog`: it ended early, as ever more arrivals waited; where these were queries, `behind` names their loads."""

    level: float
    tried: Literal["first", "double", "halve", "above", "ceiling", "balance"]
    verdict: Verdict
    backlog: bool = False
    behind: tuple[str, ...] = ()
    limits: tuple[LimitSeen, ...] = ()


class Search(ManifestPart):
    """The search of a load, by its name, or of all whose transactions arrive at a rate (`load` is null), from level
    `low` to `high`. The answer, null until it is known: the highest
    level that `holds`, null where none does, and the lowest above it that `breaks`, null where none was seen to."""

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


class Step(ManifestPart):
    """A step of the load, or a phase of queries that has ended. Seconds count from the run's start; `measure_s` to
    `end_s` is the measured interval. `rate`: transactions per second of an open loop, all users together. `alone`: the
    load that runs by itself in it; `cells`: the copies of every load; `beside`: in the record of one load, the others
    that ran; `missed`: those of them that had not run to its end; `streams`: those of queries at the same time as its
    users. `spawn_rate`: somebody began it on Locust's page, with so many users started or stopped per second;
    `stopped_by_hand`: and ended it there, and the run with it."""

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
        """Return whether somebody decided when it began or ended."""
        return self.spawn_rate is not None or self.stopped_by_hand


class Follows(ManifestPart):
    """The transaction that another one follows: every one of `transaction` gives rise to `each` of that other,
    on average."""

    transaction: str
    each: float


class Transaction(ManifestPart):
    """A transaction type that may occur. `cards`: its cards in the deck; for a follower, how many come of one
    whole deck."""

    name: str
    cards: int | float = 0
    source: Literal["users", "followers", "timer"] = "users"
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
    """A statement of SQL of a user's own. `name`: its transaction, and its number in that; `line` of the transaction's
    file; `text` in one line, without comments."""

    name: str
    transaction: str
    line: int
    text: str


class Workload(ManifestPart):
    """The workload of a run. `scale` is in the workload's own measures; `trades_per_account`: the depth of the
    brokerage's history, on average; `background_sessions` execute what no virtual user starts. `version`: of the rows,
    the inputs and the procedures. `statements`: those of SQL of a user's own, in the order of its files."""

    name: str = ""
    scale: dict[str, int | float] = {}
    trades_per_account: float | None = None
    seed: int | None = None
    mix: dict[str, float] | None = None
    locality: float = 0.0
    version: int | None = None
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
    """The reads and writes of a raw load. `blocks`: the share of the I/Os by their size in bytes. `rate_iops` and
    `rate_bytes` are per second and cell; where both are None it goes as fast as the storage lets it."""

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
    """A load of a run. `counts`: its users, its streams of queries, or the cells of its raw I/O, in each of the run's
    steps; 0 where it rests. Each of at most `cells` copies has a part of the data of its own. `rate` is of transactions
    or queries per second, in an open loop."""

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
    """Return which loads ended before the run did, and why; None where none did."""
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
