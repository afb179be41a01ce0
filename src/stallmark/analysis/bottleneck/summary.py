"""The bottleneck of one step, as the report, the terminal and `--json` show it: where its transactions' time went, what
moved with throughput, which laws hold, and what faster reads would have given.
"""

from dataclasses import dataclass, field
from enum import StrEnum

from stallmark.analysis.finding import Finding, Kind
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


@dataclass(frozen=True)
class Demands:
    """The parameters of the closed model of a step. Times are ms per transaction of users."""

    users: float
    think_ms: float  # user's cycle outside the response time, the driver's own overhead included
    rate: float  # transactions of the users' per second, committed or rolled back
    tps: float  # the step's result; taken to keep its ratio to `rate`
    read_ms: float  # time of a single read
    read_source: Source
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
