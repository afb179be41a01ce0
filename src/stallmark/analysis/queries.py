"""Runs of queries: their figures, compared with the baseline's, and the conclusions."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import geometric_mean
from typing import Annotated, Any

from stallmark import format
from stallmark.analysis.compare import sides
from stallmark.analysis.compare.claims import Claims
from stallmark.analysis.compare.summary import PairKind
from stallmark.analysis.conclusions import data_wrong
from stallmark.analysis.finding import Finding, Kind, caution, info
from stallmark.analysis.metrics import mean_of
from stallmark.analysis.read.queries import REFRESH, SHORTEST_S, Execution, QueryRunSummary, in_order
from stallmark.analysis.run import RunSummary
from stallmark.format import Shown, in_units
from stallmark.record.devices import DeviceLabel, storage_label
from stallmark.stats.thresholds import REPLICATES, SAME

# Variants of queries against the first of them, as report, terminal and `--json` show it; `None` where nothing
# was measured.


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
    """One query at one degree of parallelism in one variant, over its repeats and streams. Times are geometric means,
    other figures means."""

    query: str
    dop: int | None
    seconds: float | None
    relative: float | None  # time ÷ the baseline's time; None if either failed
    executions: int
    rows: Annotated[float | None, Shown("rows", format.whole)] = None
    logical_reads: Annotated[float | None, Shown("logical", format.whole, "Pages")] = None
    physical_reads: Annotated[float | None, Shown("physical", format.whole, "Pages")] = None
    read_bytes: Annotated[float | None, Shown("MiB read", format.mib)] = None
    spill_bytes: Annotated[float | None, Shown("MiB spilt", format.mib)] = None
    grant_kib: Annotated[float | None, Shown("MiB grant", in_units(1024))] = None
    cpu_ms: Annotated[float | None, Shown("CPU s", in_units(1000))] = None
    actual_dop: float | None = None
    waits: list[tuple[str, float]] = field(default_factory=list)  # ms per execution, longest first
    waits_known: bool = False
    plans: list[str] = field(default_factory=list)  # their hashes
    plan_changed: bool = False  # it has a plan that the baseline does not have
    failed: int = 0
    error: str | None = None
    io_wait_ms: float | None = None  # waits for reads and writes of files


_DERIVED = "Derived figures"


@dataclass(frozen=True)
class QueryVariant:
    """The runs of one variant. Figures are the lowest of its repeats, as TPC-H counts."""

    name: str
    device: DeviceLabel
    buffer_pool_bytes: Annotated[int | None, Shown("pool", format.size)]
    runs: int
    power: Annotated[float | None, Shown("power", group=_DERIVED)]
    throughput: Annotated[float | None, Shown("throughput", group=_DERIVED)]
    composite: Annotated[float | None, Shown("composite", group=_DERIVED)]
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
    """Variants compared with the first variant. Times come from `phase`: the power run if one exists."""

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


# A comparison of variants of an experiment of queries with the first: run times, plans, and the gain of parallelism.

_MEANS = (
    *("rows", "logical_reads", "physical_reads", "read_bytes", "spill_bytes", "grant_kib", "cpu_ms", "actual_dop"),
)  # fmt: skip

_IO = ("PAGEIOLATCH_", "IO_COMPLETION", "ASYNC_IO_COMPLETION", "WRITELOG", "IO_QUEUE_LIMIT")


def compare(runs: Sequence[RunSummary], claims: Claims) -> QueryComparison | None:
    """Compare all runs of queries among `runs`, as far as they may be compared with the first variant; None without
    any. If runs differ in kind, the phase that the first one has is compared."""
    chosen = [run for run in runs if run.queries]
    if not chosen:
        return None
    executed = [execution for run in chosen if run.queries for execution in run.queries.executions]
    phase = _phase(executed, chosen[0].queries)
    executed = [execution for execution in executed if execution.phase == phase]
    by_variant: dict[str, list[RunSummary]] = defaultdict(list)
    for run in chosen:
        by_variant[sides.variant(run)].append(run)
    baseline, *_ = by_variant
    cells = {name: _cells(same, phase) for name, same in by_variant.items()}
    variants = []
    dops = list(dict.fromkeys(execution.dop for execution in executed))
    for name, same in by_variant.items():
        # An incomparable variant keeps its times, but gets no ratios.
        base = {} if claims.reasons_against(baseline, name) else cells[baseline]
        held = [_held_against(base.get(key), cell) for key, cell in cells[name].items()]
        # Refreshes change with the data, and further degrees of parallelism would count a query twice.
        known = [cell.relative for cell in held if cell.relative and cell.dop == dops[0] and cell.query not in REFRESH]
        figures = [run.queries.figures for run in same if run.queries]
        variants.append(
            QueryVariant(
                name=name,
                device=storage_label(same[0].manifest),
                buffer_pool_bytes=same[0].manifest.memory.reached_bytes,
                runs=len(same),
                power=_lowest([figure.power for figure in figures]),
                throughput=_lowest([figure.throughput for figure in figures]),
                composite=_lowest([figure.composite for figure in figures]),
                cells=held,
                relative=geometric_mean(known) if known else None,
                compared=len(known),
            )
        )
    return QueryComparison(
        baseline=baseline,
        phase=phase,
        factor=chosen[0].queries.factor if chosen[0].queries else 1,
        names=sorted({execution.query for execution in executed}, key=in_order),
        dops=dops,
        variants=variants,
    )


def is_io(wait: str) -> bool:
    """Return True if a wait is for reads or writes of files, by its name in PostgreSQL's plans or in SQL Server."""
    return wait.endswith((" file read", " file write")) or wait.startswith(_IO)


def _phase(executed: Sequence[Execution], first: QueryRunSummary | None) -> str:
    done = {execution.phase for execution in executed}
    return next((name for name in ("power", "each", "throughput") if name in done), first.run if first else "power")


def _cells(runs: Sequence[RunSummary], phase: str) -> dict[tuple[str, int | None], QueryCell]:
    by_cell: dict[tuple[str, int | None], list[Execution]] = defaultdict(list)
    for run in runs:
        for execution in run.queries.executions if run.queries else ():
            if execution.phase == phase:
                by_cell[execution.query, execution.dop].append(execution)
    keys = sorted(by_cell, key=lambda key: (in_order(key[0]), key[1] or 0))
    return {key: _cell(*key, by_cell[key]) for key in keys}


def _cell(query: str, dop: int | None, executions: Sequence[Execution]) -> QueryCell:
    """Sum up executions. One that failed makes the time unknown: the others are of the easier parameters."""
    failed = [execution for execution in executions if execution.failed]
    done = [execution for execution in executions if not execution.failed]
    times = [execution.seconds for execution in done if execution.seconds > 0]
    with_waits = [execution.wait_ms for execution in done if execution.wait_ms is not None]
    waits: dict[str, float] = defaultdict(float)
    for waits_of_execution in with_waits:
        for kind, ms in waits_of_execution.items():
            waits[kind] += ms / len(with_waits)
    means: dict[str, Any] = {name: mean_of([getattr(execution, name) for execution in done]) for name in _MEANS}
    return QueryCell(
        query=query,
        dop=dop,
        seconds=geometric_mean(times) if times and not failed else None,
        relative=None,
        executions=len(executions),
        waits=sorted(waits.items(), key=lambda wait: -wait[1]),
        waits_known=bool(with_waits),
        io_wait_ms=sum(ms for kind, ms in waits.items() if is_io(kind)) if with_waits else None,
        plans=sorted({execution.plan_hash for execution in done if execution.plan_hash}),
        failed=len(failed),
        error=failed[0].error if failed else None,
        **means,
    )


def _held_against(baseline: QueryCell | None, cell: QueryCell) -> QueryCell:
    if baseline is None:
        return cell
    relative = cell.seconds / baseline.seconds if cell.seconds and baseline.seconds else None
    changed = bool(baseline.plans) and bool(set(cell.plans) - set(baseline.plans))
    return replace(cell, relative=relative, plan_changed=changed)


def _lowest(values: Sequence[float | None]) -> float | None:
    """Return the lowest value, or None if a repeat has no value: the lowest of the others would be wrong."""
    return None if any(value is None for value in values) else min(v for v in values if v is not None)


# The conclusions from runs of queries, most important first.

MANY = 4  # queries that a finding names
FIGURES = ("power", "throughput", "composite")


def query_cautions(compared: QueryComparison) -> list[Finding]:
    raised = [caution(QueryKind.NO_TPC_RESULT)]
    if rounded_up := _rounded_up(compared):
        raised.append(caution(QueryKind.ROUNDED_UP, variants=rounded_up))
    if len(compared.dops) > 1:
        raised.append(caution(QueryKind.DOPS_IN_TURN))
    if compared.phase == "throughput":
        raised.append(caution(QueryKind.OTHER_PARAMETERS))
    return raised


def _rounded_up(compared: QueryComparison) -> dict[str, int]:
    """Return the number of queries that were too quick for the power metric, for each variant with power and such
    queries."""
    quick = {
        variant.name: sum(
            cell.seconds is not None and cell.seconds < SHORTEST_S
            for cell in variant.cells
            if cell.query not in REFRESH
        )
        for variant in compared.variants
        if variant.power is not None
    }
    return {name: count for name, count in quick.items() if count}


def query_findings(compared: QueryComparison, runs: Sequence[RunSummary], claims: Claims) -> Iterator[Finding]:
    yield from data_wrong(runs)
    for run in runs:
        for lacks in (run.queries.figures.power_lacks, run.queries.figures.throughput_lacks) if run.queries else ():
            if lacks:
                yield caution(QueryKind.LACKS, run=run.title, because=lacks)
    alike: list[QueryVariant] = []
    for variant in compared.variants:
        # Each variant must be comparable with all kept so far, so that the extremes are comparable too.
        if not any(claims.reasons_against(other.name, variant.name) for other in alike):
            alike.append(variant)
        elif reasons := claims.reasons_against(compared.baseline, variant.name):
            names = {"a": compared.baseline, "b": variant.name}
            yield caution(PairKind.NOT_COMPARABLE, **names, step=None, reasons=reasons)
    fewest = min((variant.runs for variant in compared.variants), default=0)
    for name in FIGURES:
        known = [(variant.name, value) for variant in alike if (value := getattr(variant, name)) is not None]
        if known:
            ends = [choose(known, key=lambda named: named[1]) for choose in (min, max)][: len(known)]
            ends_of, values = zip(*ends, strict=True)
            facts = {"variants": list(ends_of), "values_per_h": list(values), "fewest_runs": fewest}
            yield info(QueryKind.FIGURE, figure=name, **facts)
    for variant in compared.variants[1:]:
        yield from _compare_with_baseline(compared, variant)
    for variant in compared.variants[1:]:
        if changed := list(dict.fromkeys(cell.query for cell in variant.cells if cell.plan_changed)):
            yield caution(QueryKind.PLANS, queries=changed, variant=variant.name, baseline=compared.baseline)
    for variant in compared.variants:
        yield from _parallel(compared, variant)
    if len(compared.variants) > 1 and fewest < REPLICATES:
        yield caution(QueryKind.FEW_RUNS, runs=fewest)


def _compare_with_baseline(compared: QueryComparison, variant: QueryVariant) -> Iterator[Finding]:
    cells = [
        cell for cell in variant.cells
        if cell.relative and cell.query not in REFRESH and cell.dop == compared.dops[0]
    ]  # fmt: skip
    if not cells or variant.relative is None:
        return
    faster = sorted((c for c in cells if (c.relative or 1) < 1 - SAME), key=lambda cell: cell.relative or 0)
    slower = sorted((c for c in cells if (c.relative or 1) > 1 + SAME), key=lambda cell: -(cell.relative or 0))
    yield info(
        QueryKind.RELATIVE,
        variant=variant.name,
        baseline=compared.baseline,
        ratio=variant.relative,
        queries=variant.compared,
        fewest_runs=min(variant.runs, compared.baseline_variant.runs),
        faster=len(faster),
        slower=len(slower),
        alike=len(cells) - len(faster) - len(slower),
        fastest=_ratios(faster),
        slowest=_ratios(slower),
    )


def _parallel(compared: QueryComparison, variant: QueryVariant) -> Iterator[Finding]:
    known = [dop for dop in compared.dops if dop is not None]
    if len(known) < 2:
        return
    low, high = min(known), max(known)
    ratios = {}
    for query in compared.queries:
        lowest, highest = variant.cell(query, low), variant.cell(query, high)
        if lowest and highest and lowest.seconds and highest.seconds:
            ratios[query] = highest.seconds / lowest.seconds
    if not ratios:
        return
    serial = [
        query for query in ratios
        if (cell := variant.cell(query, high)) and cell.actual_dop is not None and cell.actual_dop < 1.5
    ]  # fmt: skip
    yield info(
        QueryKind.PARALLEL,
        variant=variant.name if len(compared.variants) > 1 else None,
        dops=[low, high],
        ratio=geometric_mean(list(ratios.values())),
        queries=len(ratios),
        fewest_runs=variant.runs,
        slower=[query for query, ratio in ratios.items() if ratio > 1 + SAME],
        serial=len(serial),
    )


def _ratios(cells: Sequence[QueryCell]) -> Mapping[str, float]:
    return {cell.query: cell.relative or 0.0 for cell in cells[:MANY]}
