"""The load of a run in its manifest: the workload, its transactions or queries, and the steps."""

from typing import Any, Literal

from pydantic import model_validator

from stallmark.record.manifest.part import ManifestPart, RunSecond
from stallmark.record.manifest.search import LevelSeen
from stallmark.record.trade_history import trade_history


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
    users."""

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


class Workload(ManifestPart):
    """The workload of a run. `scale` is in the workload's own measures; `trades_per_account`: the depth of the
    brokerage's history, on average; `background_sessions` execute what no virtual user starts. `version`: of the rows,
    the inputs and the procedures."""

    name: str = ""
    scale: dict[str, int | float] = {}
    trades_per_account: float | None = None
    seed: int | None = None
    mix: dict[str, float] | None = None
    locality: float = 0.0
    version: int | None = None
    transactions: tuple[Transaction, ...] = ()
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
