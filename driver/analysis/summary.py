"""What the analysis says of an experiment: plain values with their units, `None` where nothing was measured.

The report, the terminal table and `--json` all show these values and compute none of their own.
"""

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from stallmark.driver.analysis.query_summary import QueriesBeside, QueryComparison, QueryRunSummary

WAIT_CLASSES = ("io", "lock", "wal", "cpu", "client", "other")


@dataclass(frozen=True)
class TransactionSummary:
    """One transaction type in one step's measured interval. Percentiles the sample is too small for are None."""

    name: str
    committed: int
    rolled_back: int
    failed: int
    retries: int
    tps: float  # committed per second
    latency_mean_ms: float | None
    latency_ms: dict[str, float | None]  # keys "p50" "p90" "p95" "p99" "p99.9" "max": scheduled to ended
    service_ms: dict[str, float | None]  # the same: started to ended
    source: str = "users"  # who starts it: "users", "followers" (others give rise to it) or "timer"
    share: float | None = None  # of the users' transactions that ended
    deck_share: float | None = None  # what that should be
    limit_s: float | None = None  # 90 % should take no longer
    over_limit: float | None = None  # share that took longer
    aborted: int = 0  # calls that the server ended because of other transactions, tried again or not

    @property
    def done(self) -> int:
        return self.committed + self.rolled_back

    @property
    def ended(self) -> int:
        """With those given up."""
        return self.done + self.failed


@dataclass(frozen=True)
class IoSummary:
    """I/O of the server (`source` "server") or of the device ("device"), summed over the measured interval.

    Means are volume-weighted: Δstall / Δcount. `interval_mean_ms` is the mean of the per-second means, which is
    what monitoring tools draw; the two differ and both are named where shown.
    """

    source: str
    seconds: float
    reads: int
    read_bytes: int
    read_ms: float | None
    read_interval_mean_ms: float | None
    writes: int
    write_bytes: int
    write_ms: float | None
    write_interval_mean_ms: float | None
    syncs: int | None
    sync_ms: float | None

    @property
    def iops(self) -> float:
        return (self.reads + self.writes) / self.seconds

    @property
    def mb_per_s(self) -> float:
        """10^6 bytes per second, reads and writes."""
        return (self.read_bytes + self.write_bytes) / self.seconds / 1e6


@dataclass(frozen=True)
class Correlation:
    """Correlation of the per-second changes of two series, with its 95 % interval (Fisher z)."""

    left: str
    right: str
    right_unit: str  # "ms per I/O" or "stall-ms per second"
    n: int
    r: float
    low: float
    high: float


@dataclass(frozen=True)
class ErrorSummary:
    error_class: str
    code: str
    attempts: int
    given_up: int
    message: str
    transaction: str = ""
    most_in_a_second: int = 0


@dataclass(frozen=True)
class Gate:
    """Something that must hold for a step's figures to stand for its load, and whether it does."""

    name: str
    asks: str  # what must hold, in words
    figure: str  # what was found, and what is allowed, in words
    allowed: str
    value: float | None  # the same as a number, and what it may be at most
    limit: float | None
    unit: str
    passed: bool | None  # None: not known
    sentence: str  # the reason, for one that failed
    voids: bool = True  # a step that fails it must not be compared


@dataclass(frozen=True)
class FileSummary:
    """One file of the server, where it counts by file. `io` is None where its counters began again."""

    name: str  # "database/logical name"
    kind: str  # data, wal, temp, foreign
    io: IoSummary | None
    growths: int  # times it grew


@dataclass(frozen=True)
class ServerWait:
    """What all tasks of the server waited for, over the measured interval; `wait_ms` includes `signal_ms`."""

    wait_type: str
    wait_class: str  # of WAIT_CLASSES
    seconds: float
    waits: int
    wait_ms: float
    signal_ms: float  # of it, waiting for a CPU after what was waited for had come

    @property
    def resource_ms(self) -> float:
        return self.wait_ms - self.signal_ms


@dataclass(frozen=True)
class ProcedureSummary:
    """One procedure over the measured interval, as the server's plan cache counted it."""

    name: str
    executions: int
    coverage: float | None  # executions seen, per call of the driver; None where it made none
    physical_reads: float | None  # pages per execution
    logical_reads: float | None
    logical_writes: float | None
    elapsed_ms: float | None  # per execution


@dataclass(frozen=True)
class TransactionReads:
    """What one transaction of a type read on average. `reads` are physical: I/Os that its session asked for where
    sessions were looked at (`sampled`), else pages of 8 KiB that SQL Server counted for its procedures."""

    transaction: str
    counted: int  # transactions that were looked at, or that ended
    sampled: bool
    reads: float
    read_bytes: float
    hits: float  # blocks or pages that were in the pool
    read_ms: float | None  # time in these reads
    share: float | None = None  # of the physical reads of all types


@dataclass(frozen=True)
class RowWait:
    """Sessions that waited for one table, on average; fields that the server does not tell are None."""

    table: str
    waiting: float  # for locks on its rows or pages
    waits_per_s: float | None = None
    wait_ms: float | None = None  # of each such wait
    latched: float | None = None  # for a page in memory that another session is changing or reading
    reading: float | None = None  # for a page to be read from disk


@dataclass(frozen=True)
class IoLatencySummary:
    """How long single I/Os of our database took over the measured interval, where the server kept histograms."""

    operation: str  # "read" (data files), "log write"
    ios: int
    coverage: float | None  # of the I/Os that the file counters counted
    resolution_ms: float | None  # what the histogram's durations are whole numbers of
    latency_ms: dict[str, float | None]  # keys "p50" "p90" "p95" "p99" "p99.9" "max"
    doubt: str | None  # why there are no percentiles


@dataclass(frozen=True)
class QueryStoreSummary:
    """The statements of one procedure over the measured interval, as Query Store counted them."""

    name: str
    executions: int  # of statements
    physical_reads: float | None  # pages per execution
    logical_reads: float | None
    logical_writes: float | None
    worker_ms: float | None  # CPU per execution
    elapsed_ms: float | None
    waits: list[tuple[str, float]]  # Query Store's category, ms per second; longest first


@dataclass(frozen=True)
class PoolContent:
    """Pages of one kind in the buffer pool, as a look in the measured interval found them."""

    database: str
    page_type: str
    size_bytes: int
    dirty_bytes: int
    read_ms: float | None  # mean of what their reads took


@dataclass(frozen=True)
class ServerState:
    """How the server stood in the measured interval. Rates are per second; pages are of 8 KiB."""

    page_life_s: float | None = None  # the least seen
    page_reads_per_s: float | None = None
    read_ahead_share: float | None = None  # of the pages read
    page_lookups_per_s: float | None = None
    lazy_writes_per_s: float | None = None  # pages written to make room
    checkpoint_pages_per_s: float | None = None
    free_list_stalls_per_s: float | None = None
    memory_bytes: int | None = None  # at the end
    memory_target_bytes: int | None = None
    log_flushes_per_s: float | None = None  # of our database
    log_bytes_per_flush: float | None = None
    log_used_share: float | None = None  # the most seen
    log_kept_by: str | None = None  # what most often kept the log from being reused
    tempdb_used_bytes: int | None = None  # the most seen
    pending_ios: float | None = None  # mean of the looks
    runnable_tasks: float | None = None  # waiting for a CPU; mean of the looks
    cpu_busy_share: float | None = None  # of the server's machine, by its notes of every minute
    contents: list[PoolContent] = field(default_factory=list)

    @property
    def hit_share(self) -> float | None:
        """Of page requests answered by the pool, whoever's; a page that is read ahead counts as read."""
        if not self.page_lookups_per_s or self.page_reads_per_s is None:
            return None
        return max(0.0, 1 - self.page_reads_per_s / self.page_lookups_per_s)


@dataclass(frozen=True)
class StepSummary:
    """One step of one run. `key` identifies it among all steps of the report."""

    key: str
    run: str  # folder name of the record
    variant: str
    repeat: int
    step: str
    users: int
    buffer_pool_bytes: int | None  # as reached on the server
    buffer_pool_share: float | None  # of the database's size at the start
    device: str  # "EMULATED 8 spindles, 4 ms" or the block device's name
    emulated: bool
    measured_s: float
    warm_up_s: float
    tps: float
    committed: int
    rolled_back: int
    failed: int
    retries: int
    latency_mean_ms: float | None
    latency_ms: dict[str, float | None]
    service_ms: dict[str, float | None]
    transactions: list[TransactionSummary]
    data_io: IoSummary | None  # server, data files
    wal_io: IoSummary | None
    device_io: IoSummary | None
    wal_device_io: IoSummary | None
    reads_per_transaction: float | None  # physical, data files, per committed transaction
    hit_share: float | None  # of block requests answered by the pool
    read_stall_ms_per_s: float | None  # Δ stall summed over users, per second
    wait_share: dict[str, float] | None  # WAIT_CLASSES -> share of the users' sampled time, sums to 1
    top_waits: list[tuple[str, float]]  # (event, share)
    cpu_busy_share: float | None  # of the host
    correlations: list[Correlation]
    errors: list[ErrorSummary]
    driver_bound: str | None  # a sentence when the driver was the bottleneck
    device_verdict: (
        str | None
    )  # a sentence: is the device the bottleneck? "The device is not the bottleneck: …"
    invalid: list[str]  # sentences: epoch change inside the interval, foreign I/O above 5 %, …
    foreign_io_share: float | None
    device_is_bottleneck: bool | None = (
        None  # what device_verdict says; None: one limit among others, or unknown
    )
    device_busy_share: float | None = (
        None  # data device: of its spindles' time when emulated, else of elapsed time
    )
    device_late_share: float | None = None  # of an emulated device's I/Os, for which the real one was slower
    checkpoints: int | None = None  # that did something, within the measured interval
    cut: bool = False  # measured for less than planned, because the run ended early
    files: list[FileSummary] = field(default_factory=list)  # our own and those with I/O
    server_waits: list[ServerWait] = field(default_factory=list)  # benign ones left out, longest first
    procedures: list[ProcedureSummary] = field(default_factory=list)  # most physical reads first
    io_latency: list[IoLatencySummary] = field(default_factory=list)  # on request
    query_store: list[QueryStoreSummary] = field(default_factory=list)  # on request; most reads first
    server_state: ServerState | None = None
    primary: str | None = None  # the transaction whose rate is the result; None: all are
    primary_tps: float | None = None
    nominal_tps: float | None = None  # what the database's size stands for
    gates: list[Gate] = field(default_factory=list)
    bursts: list[str] = field(default_factory=list)  # sentences: errors that came many at once
    reads: list[TransactionReads] = field(default_factory=list)  # in the order of `transactions`
    row_waits: list[RowWait] | None = None  # most waited for first; None where nobody looked
    beside: QueriesBeside | None = None  # streams of queries that were there as well

    @property
    def result_tps(self) -> float:
        """Per second: of the primary transaction where there is one, else of all."""
        return self.tps if self.primary_tps is None else self.primary_tps


@dataclass(frozen=True)
class Series:
    """Per-second lines of one run for the charts; NaN where nothing is known. All arrays have equal length."""

    second: np.ndarray
    tps: np.ndarray
    read_ms: np.ndarray
    write_ms: np.ndarray
    read_stall_ms_per_s: np.ndarray
    users: np.ndarray
    latency_mean_ms: np.ndarray
    data_iops: np.ndarray
    data_mb_per_s: np.ndarray
    primary_tps: np.ndarray | None = None  # of the transaction whose rate is the result


@dataclass(frozen=True)
class ForeignCounter:
    """A counter measured by another tool. `t` and `values` hold its samples, seconds since the run started."""

    kind: str  # what it says of storage: "read latency", "write latency", "IOPS", "throughput", "queue", "cache hits"
    name: str  # as its tool calls it
    instance: str
    unit: str
    t: np.ndarray
    values: np.ndarray
    mean: float | None  # of the samples within measured intervals
    correlation: Correlation | None  # of its changes with those of TPS over the same intervals


@dataclass(frozen=True)
class ForeignSummary:
    """A file that was attached to a run, and by which clock its figures are."""

    name: str
    file: str
    format: str
    time_zone: str
    offset_s: float  # added to its times
    span: tuple[str, str]  # UTC, ISO 8601
    samples: int
    interval_s: float
    counters: list[ForeignCounter]  # at most six
    others: list[str]  # counters that are not drawn
    notes: list[str]  # what was left out of the file
    hint: str | None  # a sentence where another offset would fit clearly better


@dataclass(frozen=True)
class RunSummary:
    folder: str
    title: str  # "cap 5 %" or "cap 5 %, repeat 2"
    started: str  # UTC, ISO 8601
    manifest: dict[str, Any]
    incomplete_because: str | None
    steps: list[StepSummary]
    series: Series
    collectors_off: dict[str, str]  # collector title -> why it measured nothing
    collector_cost_share: float | None  # of one core
    growth_share: float | None  # of the database over the run
    conditions: list[dict[str, Any]]  # {"name", "holds", "offending", "seconds", "detail"}
    foreign: list[ForeignSummary] = field(default_factory=list)
    queries: QueryRunSummary | None = None  # of a run of queries; its steps are its phases


@dataclass(frozen=True)
class ExperimentSummary:
    """Everything the report shows."""

    scenario: str
    title: str
    answers: str
    emulated: bool  # any run on an emulated device
    axis: str  # what varies between the steps: "buffer_pool", "users", "device" or "variant"
    runs: list[RunSummary]
    findings: list[str] = field(default_factory=list)  # one sentence each, most important first
    cautions: list[str] = field(default_factory=list)  # what the reader must not conclude
    queries: QueryComparison | None = None  # of runs of queries

    @property
    def steps(self) -> list[StepSummary]:
        return [step for run in self.runs for step in run.steps]

    def as_json(self) -> dict[str, Any]:
        """Everything but the series, for `--json`."""
        result = asdict(self)
        for run in result["runs"]:
            del run["series"]
            for counter in (counter for source in run["foreign"] for counter in source["counters"]):
                del counter["t"], counter["values"]
        return result
