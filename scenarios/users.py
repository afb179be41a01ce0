"""A scenario in which users execute transactions for a time, and perhaps streams of queries as well."""

from typing import Annotated, Literal, Self

from pydantic import Field, Tag, WithJsonSchema, model_validator

from stallmark.analysis.compare.summary import PRIMARIES
from stallmark.analysis.thresholds import Rule
from stallmark.driver.pacing import Arrivals
from stallmark.driver.timeline import Timeline, WarmUpLimits, consecutive_steps
from stallmark.quantities import Seconds, write_duration
from stallmark.scenarios.base import AnyScenario
from stallmark.scenarios.section import MAPPING, WORD, Section, WordOrMapping
from stallmark.scenarios.variant import Variant
from stallmark.transactions import find_workload
from stallmark.transactions.mix import background_per_user
from stallmark.transactions.warehouse.streams import MOST_STREAMS


class OpenLoop(Section):
    """Transactions arrive at `rate` per second, whatever the server does."""

    kind: Literal["fixed", "poisson"]
    """How arrivals are spread: evenly (`fixed`), or at random (`poisson`)."""
    rate: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    """Transactions per second of all users together."""


ArrivalsChoice = Annotated[Annotated[Literal["closed"], Tag(WORD)] | Annotated[OpenLoop, Tag(MAPPING)], WordOrMapping]


class ThinkTime(Section):
    mean: Seconds
    """The mean pause of a user between two transactions."""
    kind: Literal["constant", "exponential"] = "exponential"
    """How pauses are spread about it."""


class UntilSteady(Section):
    """`warm_up: {until: steady, at_most: …}`: every step of a run waits by itself, after its ramp."""

    until: Literal["steady"]
    """The only word there is: `steady`."""
    at_least: Annotated[Seconds, Field(ge=0)] = 30.0
    """The shortest warm-up."""
    at_most: Annotated[Seconds, Field(ge=1)]
    """The longest: what is not steady by then is measured, and the report says so."""

    @model_validator(mode="after")
    def _a_while(self) -> Self:
        if self.at_most <= self.at_least:
            raise ValueError(
                f"at_most {write_duration(self.at_most)} leaves no time to wait after at_least "
                f"{write_duration(self.at_least)}: raise it"
            )
        return self

    def limits(self) -> WarmUpLimits:
        return WarmUpLimits(self.at_least, self.at_most)


WarmUp = Annotated[Annotated[Seconds, Field(ge=0), Tag(WORD)] | Annotated[UntilSteady, Tag(MAPPING)], WordOrMapping]


class ConcurrentStreams(Section):
    """Streams of queries at the same time as the users, over and over as long as these are there.

    concurrent_streams: {streams: 2, timeout: 5min}
    """

    streams: Annotated[int, Field(ge=1, le=MOST_STREAMS, strict=True)]
    """How many streams run at once."""
    timeout: Annotated[Seconds, Field(ge=1)] = 120.0
    """The time a query has; one that takes longer is cancelled and counted."""


UserCount = Annotated[int, Field(ge=1, le=10_000, strict=True)]
_ONE_OR_SEVERAL = WithJsonSchema({"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "integer"}}]})


class Scenario(AnyScenario):
    """Users execute transactions, for a time."""

    users: Annotated[list[UserCount], Field(min_length=1), _ONE_OR_SEVERAL]
    """The number of virtual users, or a list: a run then has a step for each number."""
    ramp: Annotated[Seconds, Field(ge=0)] = 0.0
    """The time over which the users of a step start."""
    warm_up: WarmUp = 30.0
    """The time before each step is measured, or `{until: steady, at_most: 1h}`."""
    measure: Annotated[Seconds, Field(ge=1)]
    """The time that each step is measured."""
    arrivals: ArrivalsChoice = "closed"
    """`closed`: each user starts its next transaction when the last has ended. `{kind: poisson, rate: 500}`:
    transactions arrive at a rate, whatever the server does, and their latency counts from when they were due."""
    think_time: ThinkTime | None = None
    """The pause of a user between two transactions of a closed loop; none by default."""
    call_timeout: Annotated[Seconds, Field(ge=0.1)] = 60.0
    """The time a transaction has; one that takes longer is cancelled and counted as failed."""
    primary: Literal[PRIMARIES] = "tps"  # type: ignore[valid-type]
    """The metric that variants are compared by. It is declared before anything runs, or it could be chosen by how it
    came out."""
    thresholds: list[str] = []
    """Limits that every measured step must keep, or the exit code of `run` is 5: `p95 < 20ms`, `read_ms < 5`, `tps >
    500`, of one transaction `trade_order.p99 < 1s`."""
    concurrent_streams: ConcurrentStreams | None = None
    """Streams of queries beside the users, for the workload htap."""

    @model_validator(mode="before")
    @classmethod
    def _one_number_of_users(cls, data: dict) -> dict:
        if isinstance(data, dict) and "users" in data and not isinstance(data["users"], list):
            return dict(data) | {"users": [data["users"]]}
        return data

    @model_validator(mode="after")
    def _has_load(self) -> Self:
        if not find_workload(self.workload.name).users.deck:
            raise ValueError(
                f"{self.workload.name} has no transactions that users could execute: write `queries: {{run: power}}` "
                "in place of users, warm_up and measure"
            )
        if self.concurrent_streams and not find_workload(self.workload.name).streams:
            raise ValueError(
                f"concurrent_streams: {self.workload.name} has no queries for streams: set workload.name to htap, "
                "which has the brokerage's users and the warehouse's queries, or leave it out"
            )
        if not self.concurrent_streams and (asked := [one.name for one in self.variants if one.streams is not None]):
            raise ValueError(
                f"variant {asked[0]!r} has streams, and there is no section `concurrent_streams` that says of what: "
                "write one, or remove them"
            )
        names = {kind.name for kind in find_workload(self.workload.name).transactions}
        for rule in map(Rule.parse, self.thresholds):
            if rule.transaction and rule.transaction not in names:
                raise ValueError(f"thresholds: {self.workload.name} has no transaction {rule.transaction}")
        if self.think_time and self.arrivals != "closed":
            raise ValueError("think_time belongs to a closed loop: remove it, or set arrivals: closed")
        return self

    def streams_of(self, variant: Variant) -> int:
        """Return how many streams of queries run at the same time as the users."""
        if self.concurrent_streams is None:
            return 0
        return self.concurrent_streams.streams if variant.streams is None else variant.streams

    def arrival_plan(self) -> Arrivals:
        if isinstance(self.arrivals, OpenLoop):
            return Arrivals(self.arrivals.kind, rate=self.arrivals.rate)
        if self.think_time:
            return Arrivals("closed", think_ms=self.think_time.mean * 1000, think=self.think_time.kind)
        return Arrivals()

    def timeline(self) -> Timeline:
        limits = self.warm_up.limits() if isinstance(self.warm_up, UntilSteady) else None
        warm_up_s = self.warm_up.at_most if isinstance(self.warm_up, UntilSteady) else self.warm_up
        steps = consecutive_steps(self.users, ramp_s=self.ramp, warm_up_s=warm_up_s, measure_s=self.measure)
        background = background_per_user(find_workload(self.workload.name), self.workload.deck())
        return Timeline(steps, self.arrival_plan(), self.workload.seed, background, limits)
