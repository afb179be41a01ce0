"""The course of a run in its manifest: scenario, server, machines, conditions, and what was left at the end."""

from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue

# The base of every part of the manifest: immutable, validated, and strict about names.


def _moment(text: str) -> str:
    datetime.fromisoformat(text)
    return text


Moment = Annotated[str, AfterValidator(_moment)]
"""A moment in UTC, ISO 8601."""
LONGEST_S: Final = 100 * 86_400
"""Maximum length of a run: each of its seconds takes memory."""
RunSecond = Annotated[float, Field(ge=0, lt=LONGEST_S)]
"""Seconds since the run's start."""
TableName = Annotated[str, Field(pattern=r"^[a-z0-9_-]+$")]
"""The name of a table, which is also that of its file; it cannot lead to another folder."""


def now() -> Moment:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def moment_at(seconds: float) -> Moment:
    """Return seconds since 1970 as a moment in UTC."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


def seconds_at(moment: Moment) -> float:
    """Return a moment as seconds since 1970."""
    return datetime.fromisoformat(moment).timestamp()


class ManifestPart(BaseModel):
    """A part of the manifest. It is immutable: `changed` returns another."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)

    def changed(self, **fields: Any) -> Self:
        """Return a copy with these fields replaced, validated as on reading."""
        return self.model_validate(dict(self) | fields)

    def facts(self) -> dict[str, Any]:
        """Return the names and values of all that is known, for people."""
        return self.model_dump(mode="json", exclude_none=True)


class TableFile(ManifestPart):
    """The Parquet file of a table as it was written. `crc32`: the checksum of all of it."""

    bytes: int
    crc32: int


# The scenario and the variant of a run in its manifest, as their file gave them.
#
# The fields are what the analysis uses. All other keys of the file are kept as they are: only `scenarios` knows what
# they mean, and reads them again when an experiment is resumed.


class ScenarioPart(ManifestPart):
    """A part of the scenario file. `__pydantic_extra__` is the opaque mapping of the keys that have no field here."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, JsonValue] = Field(init=False)


Settings = dict[str, str]
"""Settings of the server, by their own names."""


class Scenario(ScenarioPart):
    name: str = ""
    title: str = ""
    answers: str = ""
    primary: str | None = None
    order: Literal["alternating", "abba", "blocks"] | None = None
    buffer_pool: str | dict[str, JsonValue] | None = None
    settings: Settings | None = None
    database: dict[str, JsonValue] | None = None
    observe: list[str] | None = None
    thresholds: list[str] | None = None
    cost: dict[str, float] | None = None


class ResourcePool(ManifestPart):
    """The limits of a Resource Governor pool."""

    iops_per_volume: int | None = None
    cpu_percent: int | None = None
    grants_percent: int | None = None


class During(ManifestPart):
    """The maintenance beside the users: one of a backup to a file, a check, and a rebuild of a table's indexes."""

    backup: str | None = None
    check: bool | None = None
    rebuild: str | None = None

    @property
    def kind(self) -> str:
        return next(iter(self.facts()))


class Variant(ScenarioPart):
    name: str = ""
    buffer_pool: str | None = None
    settings: Settings | None = None
    row_versioning: bool | None = None
    resource_pool: ResourcePool | None = None
    during: During | None = None


# The database server in the manifest of a run: what it is, its memory, and the size of the database.

POSTGRESQL = "PostgreSQL"
"""The `product` of such a server."""


class Server(ManifestPart):
    """The database server.

    Attributes:
        settings: its configuration, in its own names.
        names: of each setting that the scenario calls by another name, its name in `settings`.
        placement: locations and sizes of its files.
        momentary: facts about the moment of reading.
        unreadable: parts that it did not report, each with the words of the error.
        at_own_address: True if its address is one of the driver's machine, which a tunnel has as well; None if unknown.
        shared: True if the load ran although others may have tables and sessions in its database.
    """

    product: str = ""
    version: str = ""
    settings: Settings = {}
    names: dict[str, str] = {}
    placement: dict[str, str] = {}
    momentary: dict[str, str] = {}
    unreadable: dict[str, str] = {}
    at_own_address: bool | None = None
    shared: bool = False


class ChosenSize(ManifestPart):
    """The size of a buffer pool, chosen in a curve's first run of that size.

    Attributes:
        why: an end of the curve, the middle between both, a bend, a smaller size that may be enough, or half or
            twice the smallest that is.
        error: possible error of the curve between the neighbouring sizes, as a share of its largest value.
        last: True if no further size was needed.
    """

    bytes: int
    why: Literal["end", "middle", "bend", "enough", "half", "double"]
    between_bytes: tuple[int, int] | None = None
    error: float | None = None
    last: bool = False


class Memory(ManifestPart):
    """The buffer pool: as configured for the run, as the server reported it then, and as it was before. `chosen`: the
    reason for its size, in the first run of each size of a curve."""

    configured_bytes: int | None = None
    reached_bytes: int | None = None
    original_bytes: int | None = None
    chosen: ChosenSize | None = None


class Database(ManifestPart):
    """The size of the database in bytes. `compressibility`: ratio by LZ4 on sampled pages; 2.0 means 2 to 1."""

    bytes_before: int | None = None
    bytes_after: int | None = None
    compressibility: float | None = None


# The course of a run in its manifest: machines, collectors, conditions, and what was left at the end.


class Outage(ManifestPart):
    """A time in which a collector measured nothing, in seconds since the run's start.

    Attributes:
        until_s: None if it lasted to the end.
        reason: the words of the error.
    """

    since_s: float
    until_s: float | None = None
    reason: str


class Collector(ManifestPart):
    """A collector of the run.

    Attributes:
        unavailable: the reason for having no rows.
        limited: the part that it could not measure.
        incomplete: the reason for missing values in its rows, as a clause without a full stop.
        missed: number of samples that were skipped, because an earlier one took too long.
    """

    title: str
    help: str = ""
    interval_s: float | None = None
    unavailable: str | None = None
    limited: str | None = None
    incomplete: str | None = None
    outages: tuple[Outage, ...] = ()
    missed: int = 0


class Condition(ManifestPart):
    """A consistency condition, checked after the run.

    Attributes:
        holds: None if it was skipped, or refused by the server.
        offending: number of offending rows, or of the things named in `counted`.
        refused: the words of the server that refused it.
    """

    name: str
    statistical: bool = False
    cost: str = ""
    holds: bool | None
    offending: int = 0
    seconds: float = 0.0
    detail: str = ""
    counted: str = "rows"
    refused: str = ""


class Took(ManifestPart):
    """The durations of a run: `prepare_s` until its load began, the load, and the work after the load. The last two are
    None until they end, and for a run that ended early."""

    prepare_s: float
    load_s: float | None = None
    end_s: float | None = None

    @property
    def seconds(self) -> float | None:
        """Return the total of a complete run."""
        return None if self.load_s is None or self.end_s is None else self.prepare_s + self.load_s + self.end_s


class Machine(ManifestPart):
    """The machine that the driver ran on."""

    system: str | None = None
    distribution: str | None = None
    cpu: str | None = None
    cores: int | None = None
    memory_bytes: int | None = None
    python: str | None = None


class LoadMachine(Machine):
    """One load machine of several; its clock was compared to within `clock_within_ms`."""

    number: int
    executors: int
    clock_within_ms: float


class ExpectedMachines(ManifestPart):
    """The load machines that a run waited for, and the address at which they were to connect."""

    count: int
    host: str
    port: int


class Unheard(ManifestPart):
    """The transactions that did not end even when cancelled; the executors that were killed at the end because their
    last report did not come (`silent`), and those that ended unasked before (`lost`)."""

    unfinished: int = 0
    silent: int = 0
    lost: int = 0

    @property
    def executors(self) -> int:
        """Return the number of executors whose last report is missing."""
        return self.silent + self.lost


class LeftWaiting(ManifestPart):
    """Transactions that waited when the run ended.

    Attributes:
        arrivals: number of transactions that were due and not yet started. For queries: all queries of the run that no
            stream was free for, as the queue is emptied when a rate changes.
        deferred: number of transactions of the background sessions that were not due yet, or not begun.
    """

    arrivals: int = 0
    deferred: int = 0


class External(ManifestPart):
    """A file of external measurements, and the interpretation of its times.

    Attributes:
        offset_s: added to its times.
        span: first and last time, UTC, ISO 8601.
        notes: parts that were omitted.
        remarks: conversions of values.
    """

    name: str
    file: str
    format: str
    time_zone: str
    offset_s: float
    span: tuple[Moment, Moment]
    samples: int
    interval_s: float
    counters: int
    notes: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


class Ended(ManifestPart):
    """The reason for an experiment's end with this run, before a planned variant.

    Attributes:
        before: the variant that was to follow.
        because: None while that variant is prepared, and if the experiment was killed meanwhile.
    """

    before: str
    because: str | None = None
