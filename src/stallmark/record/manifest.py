"""The manifest of a run record: everything that decides its figures, and no secret.

One model for runs of transactions, runs of queries and probes of storage; what a kind of run lacks is
None or empty. `manifest.json` is replaced whole with every change, and nothing else reads or writes it.
"""

from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from stallmark.record.probe import ProbeResult

FORMAT: Final = 2

Role = Literal["data", "wal"]


def _moment(text: str) -> str:
    datetime.fromisoformat(text)
    return text


Moment = Annotated[str, AfterValidator(_moment)]
"""A moment in UTC, ISO 8601."""


def now() -> Moment:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


class ManifestPart(BaseModel):
    """A part of the manifest. It is immutable: `changed` returns another."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    def changed(self, **fields: Any) -> Self:
        """Return a copy with these fields replaced, validated as on reading."""
        return self.model_validate(dict(self) | fields)

    def facts(self) -> dict[str, Any]:
        """Return the names and values of all that is known, for people."""
        return self.model_dump(mode="json", exclude_none=True)


class Scenario(ManifestPart):
    """The scenario as it was given; keys that no code reads are kept as they are."""

    model_config = ConfigDict(extra="allow")

    name: str = ""
    title: str = ""
    answers: str = ""
    primary: str | None = None
    order: str | None = None
    buffer_pool: Any = None
    database: dict[str, Any] | None = None
    observe: list[str] | None = None
    thresholds: list[str] | None = None


class Variant(ManifestPart):
    model_config = ConfigDict(extra="allow")

    name: str = ""
    buffer_pool: Any = None
    row_versioning: bool | None = None
    resource_pool: dict[str, Any] | None = None
    during: dict[str, Any] | None = None


class Waited(ManifestPart):
    """The wait of a step for a steady state, after its ramp and before it was measured."""

    until: Literal["steady"] = "steady"
    at_least_s: float
    at_most_s: float
    seconds: float
    steady: bool


class Step(ManifestPart):
    """A step of the load, or a phase of queries that has ended. Seconds count from the run's start; `measure_s` to
    `end_s` is the measured interval. `rate`: transactions per second of an open loop, all users together."""

    name: str
    users: int
    begin_s: float
    measure_s: float
    end_s: float
    arrivals: Literal["closed", "fixed", "poisson"] = "closed"
    rate: float | None = None
    think_ms: float | None = None
    phase: str | None = None
    waited: Waited | None = None


class Follows(ManifestPart):
    """The transaction that another one follows: every one of `transaction` gives rise to `each` of that other, on
    average."""

    transaction: str
    each: float


class Transaction(ManifestPart):
    """A transaction type that may occur. `cards`: its cards in the deck; for a follower, how many come of one whole
    deck."""

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
    """The workload of a run. `scale` is in the workload's own measures; `background_sessions` execute what no virtual
    user starts."""

    name: str = ""
    scale: dict[str, int | float] = {}
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


class Queries(ManifestPart):
    """The plan of a run of queries. `dops`: degrees of parallelism; None is the server's own setting."""

    run: str
    phases: tuple[str, ...] = ()
    streams: int | None = None
    refresh: bool = False
    dops: tuple[int | None, ...] = (None,)
    timeout_s: float | None = None


class ConcurrentStreams(ManifestPart):
    """Streams of queries that ran at the same time as the users."""

    streams: int
    timeout_s: float | None = None


class Server(ManifestPart):
    """The database server. `settings`: its configuration, in its own names; `placement`: where data lie and how large
    files are; `momentary`: what describes the moment of reading; `unreadable`: parts that it did not tell, each with
    its words. `at_own_address`: it was reached at an address of the driver's machine, which a tunnel has as well; None
    where that is not known."""

    product: str = ""
    version: str = ""
    settings: dict[str, str] = {}
    placement: dict[str, str] = {}
    momentary: dict[str, str] = {}
    unreadable: dict[str, str] = {}
    at_own_address: bool | None = None


class Memory(ManifestPart):
    """The buffer pool: as configured for the run, as the server reported it then, and as it was before."""

    configured_bytes: int | None = None
    reached_bytes: int | None = None
    original_bytes: int | None = None


class Database(ManifestPart):
    """The size of the database in bytes. `compressibility`: ratio by LZ4 on sampled pages; 2.0 means 2 to 1."""

    bytes_before: int | None = None
    bytes_after: int | None = None
    compressibility: float | None = None


class ServiceLevelObjective(ManifestPart):
    """A limit on the time of reads. `name`: a ready-made level, or "read" for a limit of the scenario's own."""

    name: str
    read_ms: float
    ideal_ms: float | None = None
    percentile: str


class Flash(ManifestPart):
    """The flash of an emulated array; only a tier has `cycle_s` and `move`."""

    size: int
    read_ms: float
    write_ms: float
    mb_per_s: float
    channels: int
    cycle_s: float | None = None
    move: int | None = None


class EmulatedArray(ManifestPart):
    """An array that Stallmark emulated, in the server's processes or as a block device of the system."""

    block_device: bool = False
    name: str | None = None
    spindles: int
    read_ms: float | None = None
    write_ms: float | None = None
    sync_ms: float | None = None
    mb_per_s: float | None = None
    rpm: float | None = None
    seek_ms: float | None = None
    cache: Flash | None = None
    tier: Flash | None = None


class Device(ManifestPart):
    """The storage under a set of files: a block device as the system describes it, an emulated array, or both. `disk`:
    the whole disk, also of a partition. `why`: the reason why nothing is known of it."""

    name: str | None = None
    disk: str | None = None
    model: str | None = None
    rotational: bool | None = None
    scheduler: str | None = None
    write_cache: str | None = None
    emulated_array: EmulatedArray | None = None
    why: str | None = None

    @property
    def emulated_in_process(self) -> EmulatedArray | None:
        """Return the emulated array, unless it is a block device, whose I/O the kernel counts as of any other."""
        array = self.emulated_array
        return None if array is None or array.block_device else array


class Devices(ManifestPart):
    """The storage under data and log; None where the server is not Stallmark's own, or the storage is not known.
    `folders`: where they lay."""

    data: Device | None = None
    wal: Device | None = None
    folders: dict[Role, str] = {}

    def of(self, role: Role) -> Device:
        return (self.data if role == "data" else self.wal) or Device()


class Array(ManifestPart):
    """A real array as the scenario describes it; further keys are the operator's words."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, str]

    raid: str | None = None
    drives: str | None = None
    firmware: str | None = None
    write_cache: str | None = None
    reduction: str | None = None
    dram_bytes: int | None = None
    flash_cache_bytes: int | None = None
    flash_tier_bytes: int | None = None


class HookResult(ManifestPart):
    """The result of a hook before the variant: a command with its output, or a question with its answer."""

    command: tuple[str, ...] | None = None
    output: str = ""
    ask: str | None = None
    answer: str | None = None
    seconds: float


class Precondition(ManifestPart):
    """The preconditioning of storage: a file was filled, then overwritten at random in rounds until the mean write time
    was steady."""

    size_bytes: int
    round_s: float
    rounds_ms: Annotated[tuple[float, ...], Field(min_length=1)]
    steady: bool


class Probes(ManifestPart):
    """Probes of the storage around the run."""

    before: ProbeResult | None = None
    after: ProbeResult | None = None


class AskedStep(ManifestPart):
    pattern: str
    outstanding: int


class ProbePlan(ManifestPart):
    """The planned steps of a probe, each of `seconds`."""

    seconds: float
    steps: tuple[AskedStep, ...]


class Outage(ManifestPart):
    """A time in which a collector measured nothing, in seconds since the run's start; `until_s` is None where it lasted
    to the end. `reason`: the error's words."""

    since_s: float
    until_s: float | None = None
    reason: str


class Collector(ManifestPart):
    """A collector of the run. `unavailable`: why it measured nothing; `limited`: what it could not measure; `missed`:
    samples that were passed over, because an earlier one took too long."""

    title: str
    help: str = ""
    interval_s: float | None = None
    unavailable: str | None = None
    limited: str | None = None
    outages: tuple[Outage, ...] = ()
    missed: int = 0


class Condition(ManifestPart):
    """A consistency condition, checked after the run. `holds` is None when it was left out, or when the server refused
    it in the words of `refused`; `offending` counts rows, or what `counted` names."""

    name: str
    statistical: bool = False
    cost: str = ""
    holds: bool | None
    offending: int = 0
    seconds: float = 0.0
    detail: str = ""
    counted: str = "rows"
    refused: str = ""


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


class Unheard(ManifestPart):
    """The transactions that did not end even when cancelled, and the executors killed before their last report."""

    unfinished: int = 0
    silent: int = 0


class LeftWaiting(ManifestPart):
    """Transactions that waited when the run ended: `arrivals` were due and not yet started, `deferred` ones of the
    background sessions were not due yet, or not begun."""

    arrivals: int = 0
    deferred: int = 0


class External(ManifestPart):
    """A file of external measurements, and how its times were understood. `offset_s` is added to them; `span` is UTC,
    ISO 8601; `notes` name what was left out."""

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


class Ended(ManifestPart):
    """The reason why an experiment ended with this run although variant `before` was to follow."""

    before: str
    because: str


class Manifest(ManifestPart):
    """The manifest. `sequence`, `repeat`, `block` and `again` are the run's place in its experiment; `again` marks the
    first variant, repeated at the end. The keys of `external` are the endings of the names of its tables."""

    format: Literal[2] = FORMAT
    kind: Literal["transactions", "queries", "probe"] = "transactions"
    status: Literal["running", "complete", "incomplete"] = "running"
    incomplete_because: str | None = None
    stallmark: str = ""
    experiment: str = ""
    sequence: int | None = None
    repeat: int = 1
    block: int = 1
    again: bool = False
    resumed_after_s: float | None = None
    """Seconds between the last whole run of the experiment and its resumption with this one."""
    started: Moment
    scenario: Scenario = Scenario()
    variant: Variant = Variant()
    steps: tuple[Step, ...] = ()
    workload: Workload = Workload()
    queries: Queries | None = None
    concurrent_streams: ConcurrentStreams | None = None
    server: Server = Server()
    memory: Memory = Memory()
    database: Database = Database()
    cache_start: str | None = None
    reset: str | None = None
    service_level: ServiceLevelObjective | None = None
    devices: Devices = Devices()
    array: Array | None = None
    hook: HookResult | None = None
    precondition: Precondition | None = None
    probes: Probes = Probes()
    probe: ProbeResult | None = None
    """The tool, device and file of a probe; its steps are in the tables."""
    probe_plan: ProbePlan | None = None
    collectors: dict[str, Collector] = {}
    conditions: tuple[Condition, ...] = ()
    machine: Machine = Machine()
    load_machines: tuple[LoadMachine, ...] = ()
    unheard: Unheard = Unheard()
    left_waiting: LeftWaiting = LeftWaiting()
    external: dict[str, External] = {}
    notes: tuple[str, ...] = ()
    ended: Ended | None = None

    @model_validator(mode="after")
    def _has_what_its_kind_needs(self) -> Self:
        if (self.kind == "probe") != (self.probe is not None) or (self.kind == "queries") != (self.queries is not None):
            raise ValueError(f"kind {self.kind} does not fit the rest")
        return self
