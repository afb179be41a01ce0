"""The way a load reads: over the sizes of its buffer pool, and compared with published figures of such loads."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from stallmark.analysis.environment_cautions import shallow_history
from stallmark.analysis.experiment import ExperimentSummary, summarise
from stallmark.analysis.finding import Finding, Kind, caution, info, mixed_versions
from stallmark.analysis.locality_trace import Traced, analyse_trace, has_trace, read_trace
from stallmark.analysis.metrics import group, mean_of
from stallmark.analysis.read.server_summary import IoSummary
from stallmark.analysis.read.server_views import TransactionReads
from stallmark.analysis.run import RunSummary
from stallmark.analysis.step_summary import StepSummary
from stallmark.errors import StallmarkError
from stallmark.record.manifest import Manifest
from stallmark.record.reader import Record
from stallmark.stats.thresholds import SHARE_SAMPLES


# The kinds of findings on how a load reads.
class LocalityKind(Kind):
    READS = "reads_by_pool"
    FLASH = "reads_on_lru_flash"
    SKEW = "reads_in_hottest_data"
    FOOTPRINT = "footprint_of_reads"
    TABLES = "reads_by_table"
    NOT_MEASURED = "reads_over_pool_not_measured"
    NO_TRACE = "no_trace"
    FEW_READS = "too_few_reads_traced"
    ESTIMATED = "reads_estimated_from_trace"
    ERROR = "error_of_estimated_reads"
    SHORT = "trace_too_short"
    LOST = "trace_lost_ios"
    UNLIKE_COUNTED = "trace_unlike_counters"
    FEW_SIZES = "too_few_pools_for_slope"
    INVALID = "reads_of_invalid_run"


# Published figures on how a benchmark and production databases read, to be shown beside those of a workload that is
# derived from the benchmark.


class Quantity(StrEnum):
    """A figure that a load has too."""

    SLOPE = "slope"
    """The slope of log(misses) over log(pool)."""
    MISSES = "misses"
    """The share of requests that the pool does not answer, by its share of the data."""
    READ_WRITE = "read_write"
    """Reads per write."""
    READ_BYTES = "read_bytes"
    """Bytes per I/O."""


@dataclass(frozen=True)
class Published:
    """A published figure: an interval, a single value, or a curve."""

    quantity: Quantity
    of: str
    source: str
    low: float | None = None  # ends of the interval, equal for a single value
    high: float | None = None
    points: tuple[tuple[float, float], ...] = ()  # pairs of pool ÷ data and value


_HITS = ((0.027, 0.334), (0.059, 0.44), (0.076, 0.53), (0.083, 0.56), (0.088, 0.59), (0.53, 0.999))

PUBLISHED: Mapping[str | None, tuple[Published, ...]] = {
    "TPC-E": (
        Published(Quantity.SLOPE, "ten production databases", "Hsu, Smith, Young: ACM TODS 26 (2001)", -0.5, -0.5),
        Published(
            Quantity.MISSES,
            "DBT-5, PostgreSQL 18.4, 300 days",
            "github.com/markwkm/dbt5-sizing-exercise",
            points=tuple((pool, round(1 - hits, 3)) for pool, hits in _HITS),
        ),
        Published(Quantity.READ_WRITE, "TPC-E", "Chen et al.: SIGMOD Record 39 (2010)", 9.7, 9.7),
        Published(Quantity.READ_BYTES, "a TPC-E-like load", "Demartek for HPE", 8100, 8200),
    )
}
"""Figures by benchmark; most have none."""


# Reads per transaction over the size of the pool: measured in runs, estimated from a trace, and the slope of both.

SLOPE_FROM, SLOPE_TO, LEAST_SIZES = 0.0195, 0.33, 3
"""The shares of the data between which the slope is fitted: 2 and 32 %, and pools that are whole MiB near these."""
ALIKE = 0.05
"""Relative difference up to which two pools count as the same size, and only one is shown."""


@dataclass(frozen=True)
class PoolReads:
    """Reads per transaction at one size of the pool."""

    share: float  # pool ÷ data
    size_bytes: int
    transactions: int  # number behind `measured`
    measured: float | None  # mean over runs
    least: float | None = None  # ends of the estimate from a trace
    most: float | None = None

    @property
    def estimated(self) -> float | None:
        return None if self.least is None or self.most is None else (self.least + self.most) / 2

    @property
    def value(self) -> float | None:
        return self.measured if self.measured is not None else self.estimated

    @property
    def error(self) -> float | None:
        """Return the error of the estimate as a share of the measured value, if both are known."""
        known = self.measured and self.estimated is not None
        return self.estimated / self.measured - 1 if known else None  # type: ignore[operator]


@dataclass(frozen=True)
class Slope:
    """A line through log(reads per transaction) over log(pool)."""

    slope: float
    level: float  # reads per transaction at a pool as large as the data, by the line
    deviation: float  # the largest distance of a size from the line, as a share of the line
    from_share: float
    to_share: float
    sizes: int
    estimated: int  # number of these sizes with an estimate only


def reads_over_pools(steps: Sequence[StepSummary], traced: Traced | None) -> list[PoolReads]:
    """Return the sizes of the pool, ascending: those of the steps, and larger ones that the trace of a step gives an
    estimate for."""
    by_share = {pool.share: pool for pool in _measured_pools(steps)}
    base = next((pool for pool in by_share.values() if traced and traced.pool_share == pool.share), None)
    # Estimates scale the measured reads of the traced size: without that there are none.
    if not traced or not base or not base.measured:
        return [by_share[share] for share in sorted(by_share)]
    other_sizes = [size for size in traced.flash if all(abs(size.share / share - 1) > ALIKE for share in by_share)]
    for flash in [*traced.as_large_as_pools, *other_sizes]:
        # A trace sees only the misses of its own pool, so it cannot estimate smaller pools.
        if flash.least is not None and flash.most is not None and flash.share > base.share:
            known = by_share.get(flash.share, PoolReads(flash.share, flash.size_bytes, 0, None))
            least, most = (base.measured * (1 - hits) for hits in (flash.most, flash.least))
            by_share[flash.share] = replace(known, least=least, most=most)
    return [by_share[share] for share in sorted(by_share)]


def _measured_pools(steps: Sequence[StepSummary]) -> list[PoolReads]:
    known = [step for step in steps if step.buffer_pool_share and step.storage.reads_per_transaction is not None]
    return [
        PoolReads(
            same[0].buffer_pool_share or 0.0,
            same[0].buffer_pool_bytes or 0,
            sum(step.throughput.committed for step in same),
            mean_of([step.storage.reads_per_transaction for step in same]),
        )
        for same in group(known, lambda step: step.buffer_pool_share)
    ]


def reads_at(pools: Sequence[PoolReads], share: float) -> float | None:
    """Return the reads per transaction at a share of the data between two sizes, or None outside the known range."""
    known = [pool for pool in pools if pool.value]
    if not known or not known[0].share <= share <= known[-1].share:
        return None
    x, y = np.log([pool.share for pool in known]), np.log([pool.value or 0.0 for pool in known])
    return float(np.exp(np.interp(np.log(share), x, y)))


def slope_of(pools: Sequence[PoolReads]) -> Slope | None:
    """Return the slope over the sizes from 2 to 32 % of the data, or None for fewer than three sizes with reads."""
    used = [pool for pool in pools if SLOPE_FROM <= pool.share <= SLOPE_TO and pool.value]
    # A line through two points fits always.
    if len(used) < LEAST_SIZES:
        return None
    x, y = np.log([pool.share for pool in used]), np.log([pool.value or 0.0 for pool in used])
    slope, level = np.polyfit(x, y, 1)
    off = np.exp(np.abs(y - (slope * x + level)).max()) - 1
    estimated = sum(pool.measured is None for pool in used)
    return Slope(float(slope), float(np.exp(level)), float(off), used[0].share, used[-1].share, len(used), estimated)


# The summary of how a load reads, from the records of runs of it.

WIDE_BAND = 0.05
"""Share of the reads that a trace may leave unknown for a flash size before it counts as too short."""
UNLIKE = 0.05
"""Tolerated relative difference of the reads in a trace from the server's count, which is a second late."""
REPORTED_LATE_S = 2.0
"""Sessions report up to a second late, at the begin of an interval and at its end."""


@dataclass(frozen=True)
class Locality:
    """The way a load reads. Figures of single I/Os and transactions belong to the traced step, or without a trace to
    the step with the smallest pool."""

    workload: str
    experiment: ExperimentSummary
    manifest: Manifest  # the run of `io`
    data_bytes: int
    pools: list[PoolReads]
    slope: Slope | None
    traced: Traced | None
    io: IoSummary | None  # data files, by the server's counters
    by_transaction: list[TransactionReads]  # types sampled too rarely have no share
    published: tuple[Published, ...]
    findings: list[Finding]
    cautions: list[Finding]


def characterise(records: Sequence[Record], map_runs: Callable[..., Iterable[RunSummary]] = map) -> Locality:
    """Characterise the reads of a load from its runs. `map_runs` may be the `map` of a pool.

    Raise StallmarkError if the runs belong to several loads.
    """
    # One page describes one load: other rows or transactions would read otherwise.
    if len(names := {record.manifest.workload.name for record in records}) > 1:
        raise StallmarkError(f"These runs are of several loads ({', '.join(sorted(names))}): name those of one.")
    if mixed_versions(record.manifest for record in records):
        raise StallmarkError("These runs are on data of several versions, which have other rows: name those of one.")
    if len({repr(record.manifest.workload.scale) for record in records}) > 1:
        raise StallmarkError("These runs are on databases of several scales: name those of one.")
    if len({record.folder.name for record in records}) < len(records):
        raise StallmarkError("Two of these runs have the same name: name runs of a single experiment.")
    experiment = summarise(records, map_runs)
    traced_runs = {record.folder.name: record for record in records if has_trace(record)}
    steps = sorted(experiment.steps, key=lambda step: step.buffer_pool_share or 0.0)
    if not steps:
        raise StallmarkError("No run has a measured interval, so nothing is known of its reads: run it to its end.")
    step = next((step for step in steps if step.run in traced_runs), steps[0])
    manifest = next(record.manifest for record in records if record.folder.name == step.run)
    data_bytes = manifest.database.bytes_before or 0
    traced = None
    if step.run in traced_runs and data_bytes:
        others = {other.buffer_pool_share for other in steps if other.buffer_pool_share} - {step.buffer_pool_share}
        traced = analyse_trace(read_trace(traced_runs[step.run]), step, data_bytes, sorted(others))
    pools = reads_over_pools(steps, traced)
    locality = Locality(
        workload=manifest.workload.name or "",
        experiment=experiment,
        manifest=manifest,
        data_bytes=data_bytes,
        pools=pools,
        slope=slope_of(pools),
        traced=traced,
        io=step.storage.data,
        by_transaction=[
            reads if reads.counted >= SHARE_SAMPLES else replace(reads, share=None) for reads in step.reads
        ],
        published=PUBLISHED.get(manifest.workload.benchmark, ()),
        findings=[],
        cautions=list(_invalid_runs(steps)),
    )
    locality.findings.extend(_findings(locality))
    unused = None if traced or not traced_runs else "size" if step.run in traced_runs else "interval"
    locality.cautions.extend(_cautions(locality, unused))
    if step.storage.writes_partial:
        locality.cautions.append(step.storage.writes_partial)
    if shallow := shallow_history(manifest.workload.history, ("memory", "flash"), manifest.server.product):
        locality.cautions.append(shallow)
    return locality


def _findings(locality: Locality) -> Iterator[Finding]:
    if not (known := [pool for pool in locality.pools if pool.measured is not None]):
        yield caution(LocalityKind.NOT_MEASURED, lacking=_missing_inputs(locality.experiment.steps))
    elif slope := locality.slope:
        yield info(
            LocalityKind.READS, pool_share=known[0].share, reads=known[0].measured, slope=slope.slope,
            deviation=slope.deviation, between=[slope.from_share, slope.to_share], sizes=slope.sizes,
            estimated=slope.estimated,
        )  # fmt: skip
    else:
        yield info(LocalityKind.READS, pool_share=known[0].share, reads=known[0].measured)
    if not (traced := locality.traced):
        return
    if errors := [pool for pool in locality.pools if pool.error is not None]:
        worst = max(errors, key=lambda pool: abs(pool.error or 0.0))
        yield info(LocalityKind.ERROR, sizes=len(errors), error=worst.error, pool_share=worst.share)
    sizes = [size for size in traced.flash if size.least is not None and size.share > (traced.pool_share or 0.0)]
    if sizes:
        yield info(
            LocalityKind.FLASH, pool_share=traced.pool_share, shares=[size.share for size in sizes[:4]],
            least=[size.least for size in sizes[:4]], most=[size.most for size in sizes[:4]],
        )  # fmt: skip
    pages, extents = (skew.hottest["0.1"] for skew in traced.skew)
    if None not in (*pages, *extents):
        yield info(LocalityKind.SKEW, hottest=0.1, of_pages=pages, of_extents=extents)
    if traced.reads >= SHARE_SAMPLES:
        seconds, size_bytes = traced.footprint[-1]
        yield info(
            LocalityKind.FOOTPRINT, measured_s=seconds, size_bytes=size_bytes, share=traced.footprint_share,
            once_share=traced.once_share,
        )  # fmt: skip
    top = [table for table in traced.tables if table.share is not None and table.table][:3]
    if top:
        yield info(
            LocalityKind.TABLES, tables=[table.table for table in top], shares=[table.share for table in top],
            data_shares=[table.data_share for table in top],
        )  # fmt: skip


def _missing_inputs(steps: Sequence[StepSummary]) -> list[str]:
    """Return the inputs for reads per transaction over the pool that every step lacks."""
    lacking = [] if any(step.storage.data for step in steps) else ["counters"]
    return lacking if any(step.buffer_pool_share for step in steps) else [*lacking, "pool"]


def _cautions(locality: Locality, unused: str | None) -> Iterator[Finding]:
    """Yield the cautions. `unused`: the reason why a recorded trace has no figures."""
    traced = locality.traced
    if traced is None:
        yield caution(LocalityKind.NO_TRACE, unused=unused)
    else:
        if traced.lost:
            yield caution(LocalityKind.LOST, lost=traced.lost, traced=traced.reads + traced.writes)
        if traced.reads < SHARE_SAMPLES:
            yield caution(LocalityKind.FEW_READS, reads=traced.reads, least=SHARE_SAMPLES)
        if (counted := traced.counted_reads) and abs(traced.reads / counted - 1) > UNLIKE:
            of_late_reports = counted * REPORTED_LATE_S / traced.footprint[-1][0]
            late = abs(traced.reads - counted) <= of_late_reports
            yield caution(LocalityKind.UNLIKE_COUNTED, traced=traced.reads, counted=counted, reported_late=late)
        if short := [
            size.share
            for size in traced.flash
            if size.least is not None and size.most is not None and size.most - size.least > WIDE_BAND
        ]:
            yield caution(LocalityKind.SHORT, share=short[0], judged=traced.judged_by)
        if any(pool.measured is None for pool in locality.pools):
            yield caution(LocalityKind.ESTIMATED, pool_share=traced.pool_share)
    if locality.slope is None and locality.pools:
        yield caution(LocalityKind.FEW_SIZES)


def _invalid_runs(steps: Sequence[StepSummary]) -> Iterator[Finding]:
    """Find runs that must not be compared, grouped by the kind of reason."""
    reasons = [(finding, step.run) for step in steps for finding in step.validity.invalid]
    for same in group(reasons, lambda reason: reason[0].kind):
        yield caution(LocalityKind.INVALID, runs=list(dict.fromkeys(run for _, run in same)), why=same[0][0])
