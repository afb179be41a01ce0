"""The values that the analysis returns for one step of a run, with their units; `None` where nothing was measured."""

from dataclasses import dataclass, field

from stallmark.analysis.bottleneck.summary import StepCause
from stallmark.analysis.finding import Finding
from stallmark.analysis.probe.against_database import AgainstProbe
from stallmark.analysis.read.active_set import ActiveSet, FlashUse
from stallmark.analysis.read.interval import Cycles
from stallmark.analysis.read.io import MailIo
from stallmark.analysis.read.queries import StreamsSummary
from stallmark.analysis.read.server_summary import (
    FileSummary,
    IoLatencySummary,
    IoSummary,
    ProcedureSummary,
    ProcessIo,
    QueryStoreSummary,
    RowWait,
    ServerState,
    ServerWait,
    StatementSummary,
    TransactionReads,
)
from stallmark.analysis.read.server_views import VolumeSummary
from stallmark.analysis.read.statements import OwnStatementSummary
from stallmark.analysis.read.transactions import ErrorSummary, MaintenanceSummary, TransactionSummary
from stallmark.analysis.read.waits import BlockedPair
from stallmark.analysis.steady import Steadiness
from stallmark.analysis.validity.gates import Gate
from stallmark.analysis.validity.service_level import ServiceLevel
from stallmark.record.devices import DeviceLabel
from stallmark.record.manifest.workload import Waited
from stallmark.stats.dependence import Correlation


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
    def flash_warming(self) -> bool:
        """Return True if the share of reads that the device's flash answered was still rising."""
        return self.storage.flash is not None and self.storage.flash.warming
