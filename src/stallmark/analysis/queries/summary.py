"""Variants of queries against the first of them, as report, terminal and `--json` show it; `None` where nothing
was measured."""

from dataclasses import dataclass, field

from stallmark.analysis.finding import Kind
from stallmark.analysis.read.queries import REFRESH
from stallmark.record.devices import DeviceLabel


class QueryKind(Kind):
    """Findings and cautions of runs of queries."""

    LACKS = "query_figure_lacking"
    FIGURE = "query_figure"
    RELATIVE = "query_times"
    PLANS = "query_plans_changed"
    PARALLEL = "query_parallelism"
    FEW_RUNS = "few_runs_of_queries"
    NO_TPC_RESULT = "no_tpc_result"
    ROUNDED_UP = "power_rounded_up"
    DOPS_IN_TURN = "parallelism_in_turn"
    OTHER_PARAMETERS = "streams_of_other_parameters"


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
