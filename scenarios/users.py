"""The users of a load, who execute transactions: how many, and when each starts its next one."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, Tag, WithJsonSchema

from stallmark.analysis.thresholds import parse_threshold
from stallmark.driver.pacing import Arrivals
from stallmark.quantities import Seconds
from stallmark.scenarios.search import Search, ServiceLevelChoice, transactions_of
from stallmark.scenarios.section import MAPPING, WORD, Section, WordOrMapping
from stallmark.transactions import find_workload
from stallmark.transactions.warehouse.queries import MOST_STREAMS


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
