"""The loads of a run: users, streams of queries, raw I/O, and the search for the ceiling that a service level sets."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, ValidationError, ValidationInfo, WithJsonSchema, model_validator

from stallmark.driver.pacing import Arrivals
from stallmark.errors import mistake
from stallmark.quantities import IoRate, Rate, Seconds
from stallmark.record.manifest.workload import RawPlan
from stallmark.scenarios.database import Measures, OwnSql, Weight, WorkloadChoice, one_of, with_definition
from stallmark.scenarios.probe import FileSize
from stallmark.scenarios.search import ServiceLevelChoice
from stallmark.scenarios.section import Section
from stallmark.scenarios.users import ArrivalsChoice, OpenLoop, StreamCounts, Users
from stallmark.storage.arrivals import MOST_PER_S
from stallmark.storage.patterns import MOST_OUTSTANDING, NAMES, RawPattern, find_pattern
from stallmark.transactions import WORKLOADS, find_workload
from stallmark.transactions.workload import background_per_user

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
