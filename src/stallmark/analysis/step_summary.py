"""The values that the analysis returns for one step of a run, with their units; `None` where nothing was measured.

Those of its cause: where its transactions' time went, what moved with throughput, which laws hold, and what faster
reads would have given.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated

from stallmark.analysis.finding import Finding, Kind
from stallmark.analysis.probe_comparison import AgainstProbe
from stallmark.analysis.read.active_set import ActiveSet, FlashUse
from stallmark.analysis.read.io import MailIo
from stallmark.analysis.read.io_latency import IoLatencySummary
from stallmark.analysis.read.queries import StreamsSummary
from stallmark.analysis.read.server_io import FileSummary, ProcessIo
from stallmark.analysis.read.server_state import ServerState
from stallmark.analysis.read.server_summary import IoSummary
from stallmark.analysis.read.server_views import ProcedureSummary, RowWait, ServerWait, TransactionReads, VolumeSummary
from stallmark.analysis.read.statements import OwnStatementSummary, QueryStoreSummary, StatementSummary
from stallmark.analysis.read.times import Cycles
from stallmark.analysis.read.transactions import ErrorSummary, MaintenanceSummary, TransactionSummary
from stallmark.analysis.read.waits import BlockedPair
from stallmark.analysis.service_level import ServiceLevel
from stallmark.analysis.steady import Steadiness
from stallmark.analysis.validity_gates import Gate
from stallmark.format import Shown, words
from stallmark.record.devices import DeviceLabel
from stallmark.record.manifest.workload import Waited
from stallmark.stats.inference import Correlation
from stallmark.stats.thresholds import ABOVE

PARTS = ("read", "log", "other_io", "unknown", "lock", "cpu", "client", "queue", "rest")
"""Parts of a transaction's response time, in the order in which they are shown."""


STORAGE = ("read", "log", "other_io")
"""The parts in storage: in the device, or above the device."""


class Source(StrEnum):
    """The side that timed or counted I/O."""

    DEVICE = "device"
    SERVER = "server"


class LawKind(Kind):
    """Identities of operational analysis. Facts are the subject of the law, its two sides (`left`, `right`) as
    measured, and whether it `closed`."""

    USERS = "law_of_users"
    READS = "law_of_reads"
    DEVICE = "law_of_device"
    CPU = "law_of_cpu"
    WAITS = "law_of_waits"


class NoteKind(Kind):
    """Reasons why something could not be computed for a step."""

    SERVER_LOST = "server_lost_in_step"
    NOT_LOOKED_AT = "sessions_not_looked_at"
    NOTHING_ENDED = "no_transaction_of_users_ended"
    NOTHING_COUNTED = "no_transaction_of_the_result_committed"
    OPEN_LOOP = "no_prediction_in_open_loop"
    OTHER_LOADS = "no_prediction_beside_other_loads"
    OTHER_USERS = "sessions_of_several_loads"
    NO_READS = "no_reads_counted"
    CPU_UNKNOWN = "cpu_unknown_to_predictions"
    QUERIES = "no_prediction_of_queries"
    NOT_PREDICTED = "steps_not_predicted"


class Associated(StrEnum):
    """Series that may move with throughput."""

    READ_TIME = "read_time"
    WRITE_TIME = "write_time_of_data_files"
    LOG_TIME = "log_time_per_sync"
    READERS = "sessions_waiting_for_reads"
    LOG_WAITERS = "sessions_waiting_for_the_log"
    LOCK_WAITERS = "sessions_waiting_for_locks"
    CPU = "CPU"


class Limit(StrEnum):
    """The part of a user's cycle that would take longest."""

    READS = "reads"
    CPU = "CPU"
    LOCKS = "locks"
    THINK_TIME = "think_time"
    REST = "the_rest"


@dataclass(frozen=True)
class Budget:
    """The response time of a transaction by part, on average over a step's measured interval.

    Sessions in I/O that waited for a CPU are in "cpu"; "unknown" is I/O above the device or waiting for a CPU, if the
    two cannot be separated.
    """

    response_ms: float  # scheduled to ended, mean of all types
    transactions: int  # committed or rolled back
    parts_ms: dict[str, float]  # keys: PARTS; values sum to `response_ms`
    looks: int  # sessions sampled, one by one
    device_known: bool  # whether the device's own counters separate I/O from waiting for a CPU afterwards
    above_ms: dict[str, float] = field(default_factory=dict)  # keys: STORAGE; time that the device did not count

    @property
    def storage_ms(self) -> float:
        return sum(self.parts_ms[name] for name in STORAGE)

    @property
    def storage_share(self) -> float:
        return self.storage_ms / self.response_ms

    @property
    def above_share(self) -> float:
        """Return the share of the time in storage that was above the device, or 0 without any."""
        return sum(self.above_ms.values()) / self.storage_ms if self.storage_ms else 0.0

    def is_above(self, part: str) -> bool:
        """Return True if most of a part of STORAGE was above the device."""
        return self.above_ms.get(part, 0.0) > ABOVE * self.parts_ms[part]

    def share(self, part: str) -> float:
        return self.parts_ms[part] / self.response_ms


@dataclass(frozen=True)
class Law:
    """An identity of operational analysis, with its two sides measured in different ways."""

    finding: Finding
    left_value: float
    right_value: float
    tolerance: float  # allowed distance of right ÷ left from 1
    closed: bool | None  # None if the sides need not agree more closely

    @property
    def kind(self) -> Kind:
        return self.finding.kind

    @property
    def gap(self) -> float | None:
        """Return right ÷ left, less 1, or None if left is 0."""
        return self.right_value / self.left_value - 1 if self.left_value else None


@dataclass(frozen=True)
class Association:
    """A series that moved with throughput within a step: its changes from one segment of time to the next.

    Intervals are 95 % intervals; fields are None if they cannot be computed.
    """

    series: Associated
    source: Source | None  # None if the series is not I/O
    n: int  # pairs of changes
    bin_s: int  # length of a segment
    r: float
    low: float
    high: float
    lag_s: float | None = None  # positive if throughput follows
    lag_low_s: float | None = None
    lag_high_s: float | None = None
    elasticity_n: int = 0  # number of changes from one segment of ASSOCIATION_BIN_S to the next
    elasticity: float | None = None
    """The derivative d ln TPS / d ln of the series; noise in the measured series draws it towards 0."""
    elasticity_low: float | None = None
    elasticity_high: float | None = None
    expected: float | None = None  # elasticity predicted by the share of the response time

    @property
    def is_associated(self) -> bool:
        """Return True if the series moved with throughput at all."""
        return self.low > 0 or self.high < 0


_MEASURED = "As measured"


@dataclass(frozen=True)
class Demands:
    """The parameters of the closed model of a step. Times are ms per transaction of users."""

    users: float
    think_ms: float  # user's cycle outside the response time, the driver's own overhead included
    rate: float  # transactions of the users' per second, committed or rolled back
    read_ms: Annotated[float, Shown("read ms", group=_MEASURED)]  # time of a single read
    read_source: Annotated[Source, words("counted by", group=_MEASURED)]
    tps: Annotated[float, Shown("TPS", group=_MEASURED)]  # the step's result; taken to keep its ratio to `rate`
    read_part_ms: float
    read_volume_ms: float  # `read_part_ms` by the counters: reads per transaction × read_ms
    lock_ms: float
    cpu_part_ms: float  # running or waiting for a CPU
    cpu_ms: float | None  # CPU time that the run itself used on the server's machine, or None if unknown
    cores: int | None
    fixed_ms: float  # writes, log, client and the rest: taken not to change
    spread: float  # standard error of the step's TPS, relative, from means of batches within the run

    @property
    def reads_per_transaction(self) -> float:
        return self.read_volume_ms / self.read_ms

    @property
    def response_ms(self) -> float:
        return self.read_part_ms + self.lock_ms + self.cpu_part_ms + self.fixed_ms


@dataclass(frozen=True)
class Prediction:
    """Committed transactions per second if a read took `read_ms` on average, queueing included."""

    read_ms: float
    tps: float
    low: float
    high: float
    response_ms: float
    limit: Limit | None  # None: not the same in all runs


@dataclass(frozen=True)
class StepCause:
    """The analysis of causes of one step. `notes` are the reasons why something is None."""

    budget: Budget | None
    laws: list[Law] = field(default_factory=list)
    associations: list[Association] = field(default_factory=list)  # strongest first
    demands: Demands | None = None
    predictions: list[Prediction] = field(default_factory=list)  # slowest reads first
    notes: list[Finding] = field(default_factory=list)


@dataclass(frozen=True)
class StepInterval:
    """The measured interval of a step. All its figures are over the seconds of the run from `begin_s` to
    before `end_s`."""

    measured_s: float
    warm_up_s: float
    begin_s: int = 0
    end_s: int = 0
    cut: bool = False  # measured for less than planned, because the run ended early
    cycles: Cycles | None = None  # checkpoint cycles
    waited: Waited | None = None  # wait for a steady state before measuring, from the manifest's step


@dataclass(frozen=True)
class Throughput:
    """Transactions that ended. `primary` is the transaction whose rate is the result; None: all are."""

    tps: float
    committed: int
    rolled_back: int
    failed: int
    retries: int
    primary: str | None = None
    primary_tps: float | None = None
    nominal_tps: float | None = None  # rate that the database's size is made for

    @property
    def result_tps(self) -> float:
        """Return transactions per second: of the primary transaction where there is one, else of all."""
        return self.tps if self.primary_tps is None else self.primary_tps


@dataclass(frozen=True)
class Latency:
    """Times of all transactions. Percentiles are as in `TransactionSummary`. In the last step `judged_ms` has arrivals
    that had not begun when the run ended, and what did not end, as well."""

    mean_ms: float | None
    percentiles_ms: dict[str, float | None]
    service_ms: dict[str, float | None]
    judged_ms: dict[str, float | None] = field(default_factory=dict)


@dataclass(frozen=True)
class StorageFigures:
    """I/O as the server and the devices of data and log (WAL) counted it."""

    data: IoSummary | None  # server, data files
    wal: IoSummary | None
    data_device: IoSummary | None
    wal_device: IoSummary | None
    reads_per_transaction: float | None  # physical, data files, per committed transaction
    read_stall_ms_per_s: float | None  # Δ stall summed over users, per second
    foreign_io_share: float | None
    busy_share: float | None = None  # share of the data device's time, or of its spindles' time if emulated
    late_share: float | None = None  # share of an emulated array's I/Os for which the real device was slower
    flash: FlashUse | None = None  # the data device's flash, if counted
    active: ActiveSet | None = None
    writes_per_transaction: float | None = None  # the same of all processes' writes; a file that grew was written
    reads_per_write: float | None = None  # data files
    writes_partial: Finding | None = None  # why these two are not of whole checkpoint cycles
    probe: AgainstProbe | None = None  # comparison with the probe before the run

    @property
    def uncertainty(self) -> float:
        """Return the share by which counts of the server's files may be off, because their samples were few."""
        return max((io.uncertainty or 0.0 for io in (self.data, self.wal) if io), default=0.0)


@dataclass(frozen=True)
class ServerFigures:
    """The server's own views and its host's CPUs."""

    hit_share: float | None  # share of block requests answered by the pool
    cpu_busy_share: float | None  # share of the host's CPU time
    foreign_cpu_share: (
        float | None
    )  # used by other programs on the host; None if unknown, or if nothing waited because of it
    checkpoints: int | None = None  # checkpoints that wrote something, within the measured interval
    state: ServerState | None = None
    processes: list[ProcessIo] | None = None  # most I/O first; None if the server does not tell them apart
    files: list[FileSummary] = field(default_factory=list)  # our own and those with I/O
    procedures: list[ProcedureSummary] = field(default_factory=list)  # most physical reads first
    statements: list[StatementSummary] = field(default_factory=list)  # most physical reads first
    volumes: list[VolumeSummary] = field(default_factory=list)  # counted by Windows
    io_latency: list[IoLatencySummary] = field(default_factory=list)  # on request
    query_store: list[QueryStoreSummary] = field(default_factory=list)  # on request; most reads first


@dataclass(frozen=True)
class WaitFigures:
    """Time that sessions waited, by sampling them and as the server counts it."""

    share: dict[str, float] | None  # WAIT_CLASSES -> share of the users' sampled time, sums to 1
    top: list[tuple[str, float]]  # (event, share)
    server_waits: list[ServerWait] = field(default_factory=list)  # benign ones left out, longest first
    row_waits: list[RowWait] | None = None  # most waited for first; None where nothing was sampled
    blocked: list[BlockedPair] = field(default_factory=list)  # most frequent first


@dataclass(frozen=True)
class StepValidity:
    """Reasons why the figures may not represent the intended load."""

    invalid: list[Finding]  # why it must not be compared
    driver_bound: list[Finding]  # why the driver was the bottleneck; empty where it was not
    errors: list[ErrorSummary]
    bursts: list[Finding] = field(default_factory=list)  # errors that came many at once
    gaps: list[Finding] = field(default_factory=list)  # sources that were not read for a while
    gates: list[Gate] = field(default_factory=list)
    steadiness: Steadiness | None = None
    slo: ServiceLevel | None = None


@dataclass(frozen=True)
class Bottleneck:
    """The limit of the throughput, and the series that moved with it."""

    device_verdict: Finding | None  # is the device the bottleneck?
    is_device: bool | None
    """The result of `device_verdict`; None if unknown, or if the device is one limit among others."""
    correlations: list[Correlation]


@dataclass(frozen=True)
class StepSummary:
    """One step of one run. `key` identifies it among all steps of the report."""

    key: str
    run: str  # folder name of the record
    variant: str
    repeat: int
    step: str
    users: int
    buffer_pool_bytes: int | None  # measured on the server
    buffer_pool_share: float | None  # share of the database's size at the start
    device: DeviceLabel
    emulated_roles: tuple[str, ...]  # those of "data" and "wal" whose device was emulated
    interval: StepInterval
    throughput: Throughput
    latency: Latency
    storage: StorageFigures
    server: ServerFigures
    waits: WaitFigures
    validity: StepValidity
    bottleneck: Bottleneck
    transactions: list[TransactionSummary]
    reads: list[TransactionReads] = field(default_factory=list)  # ordered as `transactions`
    own_statements: list[OwnStatementSummary] = field(default_factory=list)  # ordered as in the SQL files
    cause: StepCause | None = None
    streams: StreamsSummary | None = None  # concurrent streams of queries
    maintenance: MaintenanceSummary | None = None  # beside the users
    mail_io: MailIo | None = None  # a mail store that runs alone
    beside: tuple[str, ...] = ()  # the other loads that ran
    cells: int | None = None  # copies of every load, where an experiment varies them

    @property
    def emulated(self) -> bool:
        """Return True if data, log or both were on an emulated array; such a step is labelled."""
        return bool(self.emulated_roles)

    @property
    def pool_held_bytes(self) -> int | None:
        """Return the bytes in the buffer pool during the measurement if the server counts its pages; else its size."""
        held = self.server.state.pool_bytes if self.server.state else None
        return held or self.buffer_pool_bytes

    @property
    def pool_held_share(self) -> float | None:
        """Return `pool_held_bytes` as a share of the database's size at the start."""
        if not self.buffer_pool_bytes or self.buffer_pool_share is None or self.pool_held_bytes is None:
            return self.buffer_pool_share
        return self.buffer_pool_share * self.pool_held_bytes / self.buffer_pool_bytes

    @property
    def result_tps(self) -> float:
        """Return the result per second, as `Throughput.result_tps`."""
        return self.throughput.result_tps

    @property
    def other_work(self) -> tuple[object, ...]:
        """Return the work beside the users, which reads and writes too: other loads, streams, maintenance."""
        return self.beside, bool(self.streams), self.maintenance.kind if self.maintenance else None

    @property
    def budget(self) -> Budget | None:
        return self.cause.budget if self.cause else None

    @property
    def demands(self) -> Demands | None:
        return self.cause.demands if self.cause else None

    @property
    def flash_warming(self) -> bool:
        """Return True if the share of reads that the device's flash answered was still rising."""
        return self.storage.flash is not None and self.storage.flash.warming
