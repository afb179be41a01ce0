"""The loads of a run: users, streams of queries, raw I/O, and the search for the ceiling that a service level sets."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    Tag,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)

from stallmark.analysis.rules import parse_threshold
from stallmark.analysis.service_level import PERCENTILES, make_objective
from stallmark.driver.pacing import Arrivals
from stallmark.errors import mistake
from stallmark.quantities import IoRate, Rate, Seconds
from stallmark.record.manifest.storage import ServiceLevelObjective
from stallmark.record.manifest.workload import RawPlan
from stallmark.scenarios import MAPPING, WORD, Section, WordOrMapping
from stallmark.scenarios.database import Measures, OwnSql, Weight, WorkloadChoice, one_of, with_definition
from stallmark.scenarios.storage import FileSize
from stallmark.scenarios.variant import Tolerance
from stallmark.stats.ceiling_search import SearchSpec
from stallmark.stats.thresholds import PERCENTILES as SHARE_OF
from stallmark.storage.arrivals import MOST_PER_S
from stallmark.storage.fio import MOST_OUTSTANDING, NAMES, RawPattern, find_pattern
from stallmark.transactions import WORKLOADS, find_workload
from stallmark.transactions.warehouse import MOST_STREAMS
from stallmark.transactions.workload import background_per_user

# The service level of a scenario: how long a read and a transaction may take. The time of reads is judged by
# analysis/service_level.py, that of transactions as thresholds are.


def _percentile_below(text: str) -> str:
    rule = parse_threshold(text)
    if rule.metric not in SHARE_OF or rule.sign not in ("<", "<="):
        raise ValueError(
            f"{text!r} is not a service level of transactions: write a percentile and its limit, as p95 < 50ms or "
            "trade_order.p99 < 1s"
        )
    return text


class OwnLevel(Section):
    """A limit of one's own, on reads, on transactions, or on both."""

    read: Annotated[Seconds, Field(gt=0)] | None = None
    """The longest that a read may take."""
    percentile: Literal[PERCENTILES] = "p95"  # type: ignore[valid-type]
    """The share of reads that must keep it; the mean where only that is known."""
    transactions: list[Annotated[str, AfterValidator(_percentile_below)]] = []
    """The longest that transactions may take: `p95 < 50ms` of all of them, `trade_order.p99 < 1s` of one type."""

    def mistakes(self) -> Iterator[str]:
        if self.read is None and not self.transactions:
            yield "write a limit: on reads (read: 10ms), on transactions (transactions: [p95 < 50ms])"


ReadyMade = Literal["oltp", "dss", "mail"]
ServiceLevelChoice = Annotated[Annotated[ReadyMade, Tag(WORD)] | Annotated[OwnLevel, Tag(MAPPING)], WordOrMapping]


def objective(choice: ServiceLevelChoice) -> ServiceLevelObjective:
    """Return the service level for the manifest."""
    if isinstance(choice, str):
        return make_objective(choice, None, PERCENTILES[0])
    read_ms = None if choice.read is None else choice.read * 1000
    return make_objective(None, read_ms, choice.percentile).changed(transactions=tuple(choice.transactions))


def transactions_of(choice: ServiceLevelChoice | None) -> list[str]:
    """Return the limits on transactions."""
    return choice.transactions if isinstance(choice, OwnLevel) else []


# The search for a ceiling in place of fixed steps: `search: {of: users, from: 10, to: 400, tolerance: 5 %}`.

MOST_USERS = 10_000
Level = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Search(Section):
    """The highest number of users, or the highest rate of arrivals, at which the service level (`slo`) holds. A run
    then has a step for each level that is tried: it doubles, and halves the gap that is left."""

    model_config = ConfigDict(validate_by_name=True, serialize_by_alias=True)

    of: Literal["users", "rate", "load"]
    """The quantity to search: `users`; the arrival `rate` of transactions per second; or, with `loads`, the `load`: a
    multiple of all rates, of transactions and queries."""
    from_: Annotated[Level, Field(alias="from")]
    """The level that is tried first."""
    to: Level
    """The highest level that is tried."""
    tolerance: Tolerance = 0.05
    """The maximum distance, at the end, between the highest level that holds and the lowest that breaks."""

    def mistakes(self) -> Iterator[str]:
        if self.from_ > self.to:
            yield f"from {self.from_:g} is above to {self.to:g}: a search goes upwards"
        if self.of == "users" and not (self.from_.is_integer() and self.to.is_integer() and self.to <= MOST_USERS):
            yield f"users come in whole numbers up to {MOST_USERS:,}: change from or to"

    def spec(self) -> SearchSpec:
        return SearchSpec(self.from_, self.to, self.tolerance, whole=self.of == "users", multiple=self.of == "load")


def _as_list(given: Any) -> Any:
    return given if isinstance(given, list) else [given]


UserCount = Annotated[int, Field(ge=1, le=10_000, strict=True)]
StreamCount = Annotated[int, Field(ge=1, le=MOST_STREAMS, strict=True)]
_ONE_OR_SEVERAL = WithJsonSchema({"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "integer"}}]})
UserCounts = Annotated[list[UserCount], Field(min_length=1), BeforeValidator(_as_list), _ONE_OR_SEVERAL]
StreamCounts = Annotated[list[StreamCount], Field(min_length=1), BeforeValidator(_as_list), _ONE_OR_SEVERAL]


class OpenLoop(Section):
    """Transactions, or queries, arrive at `rate` per second, whatever the server does."""

    kind: Literal["fixed", "poisson"]
    """The distribution of arrivals: even (`fixed`), or random (`poisson`)."""
    rate: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """Transactions per second of all users together, or queries per second of all streams. Only `search: {of: rate}`
    goes without: it finds it."""


ArrivalsChoice = Annotated[Annotated[Literal["closed"], Tag(WORD)] | Annotated[OpenLoop, Tag(MAPPING)], WordOrMapping]


class ThinkTime(Section):
    mean: Seconds
    """The mean pause of a user between two transactions."""
    kind: Literal["constant", "exponential"] = "exponential"
    """The distribution of pauses around the mean."""


class Users(Section):
    """Users who execute transactions: how many, and when each starts its next one."""

    users: UserCounts | None = None
    """The number of virtual users, or a list: a run then has a step for each number. Only `search: {of: users}` goes
    without: it finds how many."""
    search: Search | None = None
    """In place of fixed steps, the search for the highest level at which `slo` holds."""
    arrivals: ArrivalsChoice = "closed"
    """The start of transactions. `closed`: each user starts its next transaction when the last has ended. `{kind:
    poisson, rate: 500}`: transactions arrive at a rate, independent of the server, and their latency counts from their
    due time."""
    think_time: ThinkTime | None = None
    """The pause of a user between two transactions of a closed loop; none by default."""
    call_timeout: Annotated[Seconds, Field(ge=0.1)] = 60.0
    """The time a transaction has; one that takes longer is cancelled and counted as failed. At a rate it is also the
    time that a transaction waits for a free session."""
    thresholds: list[str] = []
    """Limits that every measured step must keep, or the exit code of `run` is 5: `p95 < 20ms`, `read_ms < 5`, `tps >
    500`, of one transaction `trade_order.p99 < 1s`."""

    def mistakes(self) -> Iterator[str]:
        yield from super().mistakes()
        yield from self._size_mistakes()
        if self.think_time and self.arrivals != "closed":
            yield "think_time belongs to a closed loop: remove it, or set arrivals: closed"

    def _size_mistakes(self) -> Iterator[str]:
        """Yield the mistakes of a missing number of users or rate, and of one that is both fixed and searched for."""
        searched, rated = self.search.of if self.search else None, isinstance(self.arrivals, OpenLoop)
        if (self.users is None) != (searched == "users"):
            if self.users is None:
                yield "users is missing: write how many there are, or search for it"
            else:
                yield "search finds the number of users, and users fixes it: remove one of the two"
        if searched is None:
            if isinstance(self.arrivals, OpenLoop) and self.arrivals.rate is None:
                yield "arrivals.rate is missing: add it, or search for it"
            return
        if searched == "load":
            yield "search of: load is of all loads at once: write it beside `loads`, not in one"
        if self.thresholds:
            yield "thresholds are of every step, and a search goes beyond: write slo.transactions"
        if searched == "users":
            if rated:
                yield "search of users needs a closed loop, in which users wait for the server: of: rate"
            return
        if not isinstance(self.arrivals, OpenLoop):
            yield (
                "search of a rate needs arrivals that have one, and a closed loop has none: write arrivals: {kind: "
                "poisson}, or search of users"
            )
        elif self.arrivals.rate is not None:
            yield "search finds the rate, and arrivals.rate fixes it: remove one of the two"
        if self.users and len(self.users) > 1:
            yield "search makes the steps, and users is a list of them: write one number"

    @property
    def counts(self) -> list[int]:
        """Return the number of users in each step that is planned; a search adds steps."""
        if self.users is None:
            assert self.search
            return [int(self.search.from_)]
        return self.users

    @property
    def most_users(self) -> int:
        return int(self.search.to) if self.search and self.search.of == "users" else max(self.counts)

    def search_mistakes(self, slo: ServiceLevelChoice | None) -> Iterator[str]:
        """Yield the mistake of a search without a limit."""
        if self.search and slo is None:
            yield "search needs a service level: add slo, such as oltp or {read: 10ms, transactions: [p95 < 50ms]}"

    def arrival_plan(self) -> Arrivals:
        if isinstance(self.arrivals, OpenLoop):
            return Arrivals(self.arrivals.kind, rate=self.search.from_ if self.search else self.arrivals.rate)
        if self.think_time:
            return Arrivals("closed", think_ms=self.think_time.mean * 1000, think=self.think_time.kind)
        return Arrivals()

    def transaction_mistakes(self, workload: str, slo: ServiceLevelChoice | None) -> Iterator[str]:
        """Yield the mistake of a threshold or a service level of a transaction that the workload does not have."""
        names = {kind.name for kind in find_workload(workload).transactions}
        for key, texts in (("thresholds", self.thresholds), ("slo.transactions", transactions_of(slo))):
            for rule in map(parse_threshold, texts):
                if rule.transaction and rule.transaction not in names:
                    yield f"{key}: {workload} has no transaction {rule.transaction}"


# A raw load of a scenario: reads or writes of a kind on a file of its own, beside the database.
#
# scan: {raw: scan}                              # large blocks in order, as fast as the storage lets it
# scan: {raw: scan, streams: 2, rate: 100 MB/s}
# web:  {raw: web, outstanding: 16}              # random reads of mixed sizes
# web:  {raw: web, rate: 200/s}                  # they arrive at a rate, whatever the storage does
# logs: {raw: 256k-sequential-write, folder: /mnt/other, size: 4GiB}

MOST_AT_ONCE = 64
"""Default of `outstanding` for I/Os at a rate: the maximum number under way at once."""

_PATTERN = WithJsonSchema({"type": "string", "enum": list(NAMES)})


class RawLoad(Section):
    """Reads or writes beside the database, on a file of their own: `{raw: web, outstanding: 16}`."""

    raw: Annotated[str, AfterValidator(lambda name: find_pattern(name) and name), _PATTERN]
    """The kind of I/O: `scan` (256 KiB in order), `web` (random reads of mixed sizes), or a pattern of a probe, such as
    `8k-random-read`."""
    outstanding: Annotated[int, Field(ge=1, le=MOST_OUTSTANDING, strict=True)] | None = None
    """I/Os under way at once, 1 by default; of a `rate` per second the most of them, 64 by default."""
    streams: Annotated[int, Field(ge=1, le=MOST_OUTSTANDING, strict=True)] | None = None
    """The same for I/O in order: each stream has a part of the file and one I/O under way."""
    rate: Rate | None = None
    """The rate of one cell. `200/s`: I/Os arrive at random at this rate, independent of the storage; at most 5,000/s.
    `100 MB/s`: a maximum throughput. By default as fast as the storage allows."""
    size: FileSize = 2**30
    """The size of its file, of each cell."""
    folder: Annotated[str, Field(min_length=1)] | None = None
    """The folder of the file; by default that of the embedded server's data."""
    slo: ServiceLevelChoice | None = None
    """The limit that its own reads are held against."""

    def mistakes(self) -> Iterator[str]:
        if self.streams is not None and self.pattern.random:
            yield f"streams are of I/O in order, and {self.raw} is at random: write outstanding"
        if self.streams is not None and self.outstanding is not None:
            yield "streams and outstanding are one number here: write one of them"
        if self.rate and self.rate.ios_per_s and not self.pattern.random:
            [block] = self.pattern.blocks
            same = IoRate(bytes_per_s=round(self.rate.ios_per_s * block))
            yield f"a rate of I/Os is of random ones, and {self.raw} is in order: write rate: {same}"
        if self.rate and self.rate.ios_per_s and self.rate.ios_per_s > MOST_PER_S:
            yield f"one load makes at most {MOST_PER_S}/s on time: write several that make it together"

    @property
    def pattern(self) -> RawPattern:
        return find_pattern(self.raw)

    def plan(self) -> RawPlan:
        """Return the load for the manifest, as it is asked for."""
        rate = self.rate or IoRate()
        return RawPlan(
            pattern=self.pattern.name,
            operation=self.pattern.operation,
            order=self.pattern.order,
            blocks=dict(self.pattern.blocks),
            outstanding=self.outstanding or self.streams or (MOST_AT_ONCE if rate.ios_per_s else 1),
            rate_iops=rate.ios_per_s,
            rate_bytes=rate.bytes_per_s,
            size_bytes=self.size,
            folder=self.folder,
        )


def _choice(**keys: Any) -> WorkloadChoice:
    try:
        return WorkloadChoice(**keys)
    except ValidationError as error:
        raise ValueError(mistake(error.errors()[0])) from None


class UsersLoad(Users):
    """A load of users: `{workload: bank, scale: {branches: 10}, users: 50}`."""

    workload: Annotated[
        str, WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "object"}], "examples": ["brokerage"]})
    ] = Field(
        description=f"{one_of([name for name in WORKLOADS if find_workload(name).users.deck])} Or SQL of your own, "
        "`{sql: ./orders}`."
    )
    sql: Annotated[OwnSql, WithJsonSchema({"type": "object"})] = None
    """The definition of that SQL, as a record has it."""
    scale: Measures = {}
    """The size of its data in the workload's own measures, for each cell."""
    mix: Annotated[dict[str, Weight], Field(min_length=1)] | None = None
    """Weights of the transactions that users start, or `{read_share: 0.9}`."""
    locality: Annotated[float, Field(ge=0, le=1)] = 0.0
    """The share of its customers that each of several load machines takes from a part of its own."""
    slo: ServiceLevelChoice | None = None
    """The limit that reads are held against while it runs: `oltp`, `dss`, `mail`, or one of your own."""

    @model_validator(mode="before")
    @classmethod
    def _with_definition(cls, given: Any, info: ValidationInfo) -> Any:
        if isinstance(given, dict) and isinstance(own := given.get("workload"), dict):
            if own.keys() != {"sql"}:
                raise ValueError("workload is a name, or `{sql: ./orders}`")
            given = {**given, "sql": own["sql"]}
        return with_definition(given, "workload", info)

    def mistakes(self) -> Iterator[str]:
        yield from super().mistakes()
        self.choice()
        if not find_workload(self.workload).users.deck:
            yield f"{self.workload} has no transactions that users could execute: write streams for users"
        yield from self.transaction_mistakes(self.workload, self.slo)

    def choice(self, seed: int = 1) -> WorkloadChoice:
        """Return the workload with its scale. Raise ValueError if it cannot be."""
        return _choice(name=self.workload, scale=self.scale, seed=seed, mix=self.mix, locality=self.locality)

    def background_per_user(self) -> float:
        return background_per_user(find_workload(self.workload), self.choice().deck())


class StreamsLoad(Section):
    """A load of streams of queries, over and over or at a rate: `{workload: warehouse, scale: {factor: 1}, streams:
    2}`."""

    workload: Literal["warehouse"]
    """The workload, `warehouse`."""
    scale: dict[str, int | float] = {}
    """Its scale factor. All cells query the same data."""
    streams: StreamCounts
    """The number of streams at once, or a list of numbers: a run then has a step for each."""
    arrivals: ArrivalsChoice = "closed"
    """The start of queries. `closed`: each stream executes one query after the other. `{kind: poisson, rate: 0.05}`:
    queries become due at a rate, for each cell; one that is due while all streams are busy starts late, and its time
    counts from its due time."""
    timeout: Annotated[Seconds, Field(ge=1)] = 120.0
    """The time a query has; one that takes longer is cancelled and counted."""
    slo: ServiceLevelChoice | None = None
    """The limit that reads are held against while it runs."""

    def mistakes(self) -> Iterator[str]:
        self.choice()
        if isinstance(self.arrivals, OpenLoop) and self.arrivals.rate is None:
            yield "arrivals.rate is missing: add it, such as 0.05 for three queries a minute"

    def choice(self, seed: int = 1) -> WorkloadChoice:
        """Return the workload with its scale. Raise ValueError if it cannot be."""
        return _choice(name=self.workload, scale=self.scale, seed=seed)

    def arrival_plan(self) -> Arrivals:
        return Arrivals(self.arrivals.kind, self.arrivals.rate) if isinstance(self.arrivals, OpenLoop) else Arrivals()


Load = UsersLoad | StreamsLoad | RawLoad
