"""A scenario in which streams execute the warehouse's queries to their end, in place of users and their time.

queries: {run: power}                            # refresh, 22 queries in one stream, refresh
queries: {run: throughput, streams: 4}           # streams at once, and one that refreshes
queries: {run: both}                             # one after the other
queries: {run: each, only: [1, 6, 18], dop: [1, 2, all]}   # queries alone, at each degree of parallelism
"""

from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator

from stallmark.quantities import Seconds
from stallmark.scenarios.base import AnyScenario
from stallmark.scenarios.section import Section
from stallmark.scenarios.users import Scenario
from stallmark.scenarios.workload import WorkloadChoice
from stallmark.transactions import find_workload
from stallmark.transactions.warehouse.queries import QUERIES
from stallmark.transactions.warehouse.streams import MOST_STREAMS
from stallmark.transactions.workload import QueryStreams

Phase = Literal["power", "throughput", "each"]
Strict = Annotated[int, Field(strict=True)]


def _dop(given: Any) -> Any:
    if given != "all" and (type(given) is not int or given < 1):
        raise ValueError("write a whole number from 1, or all: so many work on a query at once")
    return given


Dop = Annotated[int | Literal["all"], BeforeValidator(_dop)]


class QueriesChoice(Section):
    """`only` and `dop` are of a run of `each`: which queries, and how many processes or threads may work on one at once
    (`all`: as many as the server has cores). `streams`: by the scale unless it is said."""

    run: Literal["power", "throughput", "both", "each"]
    """`power`: one query after the other. `throughput`: streams at once, and one that refreshes. `both`: one after the
    other. `each`: every query by itself."""
    streams: Annotated[int, Field(ge=1, strict=True)] | None = None
    """The streams of a throughput run; by default what the scale asks for."""
    only: Annotated[list[Strict], Field(min_length=1)] | None = None
    """The numbers of the queries of an `each` run; by default all."""
    dop: Annotated[list[Dop], Field(min_length=1)] | None = None
    """The degrees of parallelism of an `each` run, `all` for as many as the server has cores."""
    refresh: Annotated[bool, Field(strict=True)] | None = None
    """Run the refresh functions; by default in power and throughput runs."""
    timeout: Annotated[Seconds, Field(ge=1)] = 120.0
    """The time a query has; one that takes longer is cancelled and counted."""

    @field_validator("streams")
    @classmethod
    def _in_the_table(cls, given: int | None) -> int | None:
        if given and given > MOST_STREAMS:
            raise ValueError(f"the order of queries is known for {MOST_STREAMS} streams at most, not for {given}")
        return given

    @field_validator("only")
    @classmethod
    def _known(cls, given: list[int] | None) -> list[int] | None:
        if unknown := [query for query in given or () if query not in QUERIES]:
            raise ValueError(f"there is no query {unknown[0]}: write numbers from {QUERIES[0]} to {QUERIES[-1]}")
        return _once(given)

    @field_validator("dop")
    @classmethod
    def _each_once(cls, given: list[Any] | None) -> list[Any] | None:
        return _once(given)

    @model_validator(mode="after")
    def _belongs(self) -> Self:
        for name in ("only", "dop"):
            if getattr(self, name) and self.run != "each":
                raise ValueError(f"{name} belongs to `run: each`: remove it, or write that")
        if self.streams and self.run not in ("throughput", "both"):
            raise ValueError("streams belong to `run: throughput` or `run: both`: remove them, or write one of these")
        if self.refresh and self.run == "each":
            raise ValueError("refresh belongs to a power or throughput run: remove it")
        return self

    @property
    def phases(self) -> tuple[Phase, ...]:
        """Return the phases, in order."""
        return ("power", "throughput") if self.run == "both" else (self.run,)

    @property
    def refreshes(self) -> bool:
        """True where the refresh functions are run: as said, else in power and throughput runs."""
        return self.run != "each" if self.refresh is None else self.refresh


def _once(given: list[Any] | None) -> list[Any] | None:
    if twice := [one for one in given or () if (given or []).count(one) > 1]:
        raise ValueError(f"{twice[0]} is there twice: write it once")
    return given


_OF_USERS = set(Scenario.model_fields) - set(AnyScenario.model_fields) - {"workload"}


class QueryScenario(AnyScenario):
    """Streams execute queries, to their end."""

    workload: WorkloadChoice
    """The database, and what is asked of it."""
    queries: QueriesChoice
    """Streams of queries, in place of users."""

    @model_validator(mode="before")
    @classmethod
    def _no_users(cls, data: dict) -> dict:
        if isinstance(data, dict) and (found := sorted(_OF_USERS & set(data))):
            raise ValueError(
                f"{found[0]} belongs to users who execute transactions, and `queries` has streams in their place: "
                "remove one of the two"
            )
        return data

    @model_validator(mode="after")
    def _has_queries(self) -> Self:
        if not find_workload(self.workload.name).streams:
            raise ValueError(
                f"{self.workload.name} has no queries for streams: write users, warm_up and measure in place of "
                "`queries`, or set workload.name: warehouse"
            )
        self.refuse_without()
        self.refuse_curve("it is of reads per transaction, which queries have none of")
        return self

    @property
    def contents(self) -> WorkloadChoice:
        return self.workload

    @property
    def query_streams(self) -> QueryStreams:
        found = find_workload(self.workload.name).streams
        assert found
        return found

    @property
    def streams(self) -> int:
        """Return the streams of a throughput run."""
        return self.queries.streams or self.query_streams.at_scale(self.workload.scale)
