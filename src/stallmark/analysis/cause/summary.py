"""The cause of a difference, as the report, the terminal and `--json` show it: why B differs from A."""

from dataclasses import dataclass, field
from enum import StrEnum

from stallmark.analysis.bottleneck.summary import Source
from stallmark.analysis.finding import Finding, Kind


class Storage(StrEnum):
    """The part of storage in a difference."""

    CAUSE = "is_the_cause"
    NOT_THE_CAUSE = "is_not_the_cause"
    ONE_OF_SEVERAL = "one_of_several"
    NOT_KNOWN = "not_known"


class CauseKind(Kind):
    """Causes of a difference, and what to be careful about."""

    NOT_LOOKED_AT = "cause_not_known"
    UNCHANGED = "response_time_unchanged"
    LITTLE_IO = "response_time_unchanged_with_little_io"
    NOT_SPLIT = "cause_not_split"
    NOT_DIVIDED = "cause_not_divided"
    """I/O above the device, or waiting for a CPU."""
    STORAGE = "storage_is_the_cause"
    NOT_STORAGE = "storage_is_not_the_cause"
    ONE_OF_SEVERAL = "storage_is_one_cause"
    UNCERTAIN = "no_single_part_shown"
    NO_DEVICE = "device_counters_unknown"
    LAW_FAILED = "law_does_not_close"
    LOCKS = "locks_in_the_change"
    CPUS_BUSY = "cpus_busy_otherwise_in_a_side"
    """So each side's device was not judged, and an I/O may have waited for a CPU."""


class ChangeKind(Kind):
    """Changes between two sides; facts are of A and B."""

    READ_TIME = "read_time_changed"
    ABOVE = "io_above_device_changed"
    PART = "part_changed"
    CPU_TIME = "cpu_time_changed"
    NUMBER = "number_changed"
    WAITED_FOR = "number_waited_for_changed"
    LITTLE_IO = "io_hardly_changed"


class ComparedFigure(StrEnum):
    """Figures of two sides that are compared to find a cause."""

    RESPONSE = "response_time"
    PART = "part_of_the_response_time"
    ABOVE = "part_above_the_device"
    READ_TIME = "read_time"
    WRITE_TIME = "write_time"
    SYNC_TIME = "log_sync_time"
    READS = "physical_reads_per_transaction"
    WRITES = "writes_of_data_files_per_transaction"
    SYNCS = "syncs_of_the_log_per_transaction"
    CPU_BUSY = "CPU"
    CPU_TIME = "CPU_time_per_transaction"
    DEVICE_BUSY = "device_busy"


@dataclass(frozen=True)
class Evidence:
    """One figure for A and for B: means over runs. The interval (95 %) is of B − A, over runs; None with fewer than
    two runs on a side."""

    figure: ComparedFigure
    part: str | None  # of PARTS
    source: Source | None  # of I/O
    a: float
    b: float
    low: float | None
    high: float | None
    runs_a: int
    runs_b: int
    share: float | None = None  # of the change in response time

    @property
    def change(self) -> float:
        return self.b - self.a


@dataclass(frozen=True)
class Cause:
    """The reason why B differs from A."""

    storage: Storage
    finding: Finding
    parts: list[Evidence] = field(default_factory=list)  # of the response time, ms per transaction
    evidence: list[Evidence] = field(default_factory=list)  # I/O, CPU and what was checked besides
    predictions: list["ModelTest"] = field(default_factory=list)
    cautions: list[Finding] = field(default_factory=list)


@dataclass(frozen=True)
class ModelTest:
    """One side's prediction for the other, against what the other really did: TPS, means over runs."""

    model_of: str  # variant
    variant: str
    read_ms: float  # of the other, as measured
    predicted: float
    low: float
    high: float
    measured: float
    runs: int  # of the other

    @property
    def error(self) -> float:
        """Return predicted ÷ measured, less 1."""
        return self.predicted / self.measured - 1

    @property
    def held(self) -> bool:
        return self.low <= self.measured <= self.high
