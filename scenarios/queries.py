"""A scenario in which streams execute the warehouse's queries to their end, in place of users and their time.

queries: {run: power}                            # refresh, 22 queries in one stream, refresh
queries: {run: throughput, streams: 4}           # streams at once, and one that refreshes
queries: {run: both}                             # one after the other
queries: {run: each, only: [1, 6, 18], dop: [1, 2, all]}   # queries alone, at each degree of parallelism
"""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from stallmark.quantities import Seconds
from stallmark.scenarios import EachOnce, Section
from stallmark.scenarios.base import AnyScenario
from stallmark.scenarios.database import WorkloadChoice
from stallmark.scenarios.load import StreamCount
from stallmark.scenarios.timed import Scenario
from stallmark.transactions import find_workload
from stallmark.transactions.warehouse import QUERIES
from stallmark.transactions.workload import QueryStreams

Phase = Literal["power", "throughput", "each"]
QueryNumber = Annotated[int, Field(ge=QUERIES[0], le=QUERIES[-1], strict=True)]


def _dop(given: Any) -> Any:
    if given != "all" and (type(given) is not int or given < 1):
        raise ValueError("write a whole number from 1, or all: the number of processes or threads for a query")
    return given


Dop = Annotated[int | Literal["all"], BeforeValidator(_dop)]


class QueriesChoice(Section):
    """The `queries:` section: queries run alone, in streams, or each by itself."""

    run: Literal["power", "throughput", "both", "each"]
    """The kind of run. `power`: one query after the other. `throughput`: streams at once, and one that refreshes.
    `both`: power, then throughput. `each`: every query by itself."""
    streams: StreamCount | None = None
    """The number of streams of a throughput run; by default that for the scale."""
    only: Annotated[list[QueryNumber], Field(min_length=1), EachOnce] | None = None
    """The numbers of the queries of an `each` run; by default all."""
    dop: Annotated[list[Dop], Field(min_length=1), EachOnce] | None = None
    """The degrees of parallelism of an `each` run: numbers of processes or threads for one query, or `all` for the
    number of the server's cores."""
    refresh: Annotated[bool, Field(strict=True)] | None = None
    """Run the refresh functions; by default in power and throughput runs."""
    timeout: Annotated[Seconds, Field(ge=1)] = 120.0
    """The time a query has; one that takes longer is cancelled and counted."""

    def mistakes(self) -> Iterator[str]:
        for name in ("only", "dop"):
            if getattr(self, name) and self.run != "each":
                yield f"{name} belongs to `run: each`: remove it, or write that"
        if self.streams and self.run not in ("throughput", "both"):
            yield "streams belong to `run: throughput` or `run: both`: remove them, or write one of these"
        if self.refresh and self.run == "each":
            yield "refresh belongs to a power or throughput run: remove it"

    @property
    def phases(self) -> tuple[Phase, ...]:
        """Return the phases, in order."""
        return ("power", "throughput") if self.run == "both" else (self.run,)

    @property
    def refreshes(self) -> bool:
        """True if the refresh functions are run: by default in power and throughput runs."""
        return self.run != "each" if self.refresh is None else self.refresh


_OF_USERS = set(Scenario.model_fields) - set(AnyScenario.model_fields) - {"workload"}


class QueryScenario(AnyScenario):
    """Streams execute queries, to their end."""

    heading = "Streams of queries"
    workload: WorkloadChoice
    """The database and its load."""
    queries: QueriesChoice
    """Streams of queries, in place of users."""

    @model_validator(mode="before")
    @classmethod
    def _refuse_users(cls, data: dict) -> dict:
        if isinstance(data, dict) and (unwanted := sorted(_OF_USERS & set(data))):
            raise ValueError(
                f"{unwanted[0]} belongs to users who execute transactions, and `queries` has streams in their place: "
                "remove one of the two"
            )
        return data

    def mistakes(self) -> Iterator[str]:
        yield from super().mistakes()
        if not find_workload(self.workload.name).streams:
            yield (
                f"{self.workload.name} has no queries for streams: write users, warm_up and measure in place of "
                "`queries`, or set workload.name: warehouse"
            )
        yield from self.without_mistakes()
        yield from self.curve_mistakes("it is of reads per transaction, which queries have none of")

    @property
    def contents(self) -> WorkloadChoice:
        return self.workload

    @property
    def query_streams(self) -> QueryStreams:
        own_streams = find_workload(self.workload.name).streams
        assert own_streams
        return own_streams

    @property
    def streams(self) -> int:
        """Return the streams of a throughput run."""
        return self.queries.streams or self.query_streams.at_scale(self.workload.scale)
