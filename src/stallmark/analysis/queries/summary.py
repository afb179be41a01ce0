"""The values that the analysis returns for runs of queries, with their units; `None` where nothing was measured."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from stallmark.analysis.finding import Finding, Kind
from stallmark.record.devices import DeviceLabel

REFRESH = ("RF1", "RF2")

PHASES = {"power": "power run", "throughput": "throughput run", "each": "queries by themselves"}
"""The parts of a run of queries by name."""


class QueryKind(Kind):
    """Findings and cautions of runs of queries."""

    QUERY_FAILED = "query_failed"
    PHASE_CUT = "query_phase_cut"
    LACKS = "query_figure_lacking"
    FIGURE = "query_figure"
    RELATIVE = "query_times"
    PLANS = "query_plans_changed"
    PARALLEL = "query_parallelism"
    FEW_RUNS = "few_runs_of_queries"
    NO_TPC_RESULT = "no_tpc_result"
    SMALL_SCALE = "small_scale_factor"
    DOPS_IN_TURN = "parallelism_in_turn"
    OTHER_PARAMETERS = "streams_of_other_parameters"


@dataclass(frozen=True)
class Execution:
    """One query or refresh function, once. Pages are of 8 KiB; waits are in ms, summed over all its workers."""

    phase: str  # "power", "throughput" or "each"
    stream: int
    position: int
    query: str
    dop: int | None  # asked for; None: as the server is set
    started_s: float
    seconds: float
    rows: int | None = None
    logical_reads: int | None = None
    physical_reads: int | None = None
    read_bytes: int | None = None
    spill_bytes: int | None = None
    grant_kib: int | None = None
    cpu_ms: float | None = None
    actual_dop: int | None = None
    wait_ms: Mapping[str, float] | None = None
    plan_hash: str | None = None
    error_class: str | None = None
    error: str | None = None

    @property
    def failed(self) -> bool:
        return self.error_class is not None


@dataclass(frozen=True)
class QueryFigures:
    """The figures of a run by TPC-H's formulas, or why there are none. Derived: no TPC result, and no QphH."""

    power: float | None = None
    throughput: float | None = None
    composite: float | None = None
    power_lacks: Finding | None = None
    throughput_lacks: Finding | None = None


@dataclass(frozen=True)
class QueryRunSummary:
    """A run of queries. `phases` with what each took, in seconds, those that came to their end."""

    run: str  # "power", "throughput", "both" or "each"
    factor: float
    streams: int | None  # of the throughput run
    refresh: bool
    timeout_s: float | None
    phases: dict[str, float]
    executions: list[Execution]
    figures: QueryFigures
    driver_gap_ms: float | None = None  # between the end of one query and the start of the next: mean and most
    driver_gap_most_ms: float | None = None


@dataclass(frozen=True)
class StreamQuerySummary:
    """A query of concurrent streams: how often it ended, and the geometric mean of its times."""

    name: str
    done: int
    seconds: float


@dataclass(frozen=True)
class StreamsSummary:
    """The work of concurrent streams of queries within the measured interval of a step."""

    streams: int
    done: int
    failed: int
    per_hour: float  # of all streams
    queries: list[StreamQuerySummary]


@dataclass(frozen=True)
class QueryCell:
    """One query at one degree of parallelism in one variant, over its repeats and streams: times are geometric means,
    the rest means. `relative` to the baseline's time; None where either failed."""

    query: str
    dop: int | None
    seconds: float | None
    relative: float | None
    executions: int
    rows: float | None = None
    logical_reads: float | None = None
    physical_reads: float | None = None
    read_bytes: float | None = None
    spill_bytes: float | None = None
    grant_kib: float | None = None
    cpu_ms: float | None = None
    actual_dop: float | None = None
    waits: list[tuple[str, float]] = field(default_factory=list)  # ms per execution, longest first
    waits_known: bool = False
    plans: list[str] = field(default_factory=list)  # their hashes
    plan_changed: bool = False  # it has a plan that the baseline does not have
    failed: int = 0
    error: str | None = None
    io_wait_ms: float | None = None  # of the waits those for reads and writes of files


@dataclass(frozen=True)
class QueryVariant:
    """The runs of one variant. Figures are the lowest of its repeats, as TPC-H counts."""

    name: str
    device: DeviceLabel
    buffer_pool_bytes: int | None
    runs: int
    power: float | None
    throughput: float | None
    composite: float | None
    cells: list[QueryCell]
    relative: float | None  # geometric mean of the queries' at the first degree of parallelism, without refreshes
    compared: int  # over how many queries

    @property
    def emulated(self) -> bool:
        return self.device.emulated

    def cell(self, query: str, dop: int | None) -> QueryCell | None:
        return next((cell for cell in self.cells if (cell.query, cell.dop) == (query, dop)), None)


@dataclass(frozen=True)
class QueryComparison:
    """Variants held against the first of them. Times are those of `phase`: of the power run where there is one."""

    baseline: str
    phase: str
    factor: float
    names: list[str]  # "Q1" … "Q22", and around them the refresh functions, as far as they were executed
    dops: list[int | None]
    variants: list[QueryVariant]

    @property
    def queries(self) -> list[str]:
        return [name for name in self.names if name not in REFRESH]

    @property
    def baseline_variant(self) -> QueryVariant:
        return self.variants[0]
