"""How a load reads: over the sizes of its buffer pool, and against what was published of such loads."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from stallmark.analysis.experiment import ExperimentSummary, summarise
from stallmark.analysis.finding import Finding, Kind, caution, info, mixed_versions
from stallmark.analysis.locality.traced import Traced, figures_of_trace, has_trace, read_trace
from stallmark.analysis.points import group, mean_of
from stallmark.analysis.read.server_summary import IoSummary, TransactionReads
from stallmark.analysis.run import RunSummary
from stallmark.analysis.step_summary import StepSummary
from stallmark.analysis.storage_cautions import shallow_history
from stallmark.errors import StallmarkError
from stallmark.record.manifest import Manifest
from stallmark.record.manifest.workload import trade_history
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


# Published figures on how brokerage loads and production databases read, to be shown beside those of the brokerage.


class Quantity(StrEnum):
    """A figure that a load has too."""

    SLOPE = "slope"
    """Of log(misses) over log(pool)."""
    MISSES = "misses"
    """The share of requests that the pool does not answer, by its share of the data."""
    READ_WRITE = "read_write"
    """Reads per write."""
    READ_BYTES = "read_bytes"
    """Bytes per I/O."""


@dataclass(frozen=True)
class Published:
    """A published figure: a `low` and `high` end, alike for a single one, or `points` of (pool ÷ data, value)."""

    quantity: Quantity
    of: str
    source: str
    low: float | None = None
    high: float | None = None
    points: tuple[tuple[float, float], ...] = ()


_HITS = ((0.027, 0.334), (0.059, 0.44), (0.076, 0.53), (0.083, 0.56), (0.088, 0.59), (0.53, 0.999))

OF_BROKERAGE = (
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


def published_for(workload: str) -> tuple[Published, ...]:
    """Return the figures that are published on the kind of load that a workload is; none for most."""
    return OF_BROKERAGE if workload == "brokerage" else ()


# Reads per transaction over the size of the pool: measured in runs, estimated from a trace, and the slope of both.

SLOPE_FROM, SLOPE_TO, LEAST_SIZES = 0.0195, 0.33, 3
"""The shares of the data between which the slope is fitted: 2 and 32 %, and pools that are whole MiB near these."""
ALIKE = 0.05
"""Relative difference of pools that are taken for the same size: one alone is shown."""


@dataclass(frozen=True)
class PoolReads:
    """Reads per transaction at one size of the pool: `measured` as a mean over runs, or estimated between two ends."""

    share: float  # of the data
    size_bytes: int
    transactions: int  # of the measured ones
    measured: float | None
    least: float | None = None
    most: float | None = None

    @property
    def estimated(self) -> float | None:
        return None if self.least is None or self.most is None else (self.least + self.most) / 2

    @property
    def value(self) -> float | None:
        return self.measured if self.measured is not None else self.estimated

    @property
    def error(self) -> float | None:
        """Return the error of the estimate where both are known, as a share of the measured one."""
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
    estimated: int  # of these sizes


def reads_over_pools(steps: Sequence[StepSummary], traced: Traced | None) -> list[PoolReads]:
    """Return the sizes of the pool, ascending: those of the steps, and those beyond the traced one that its trace gives
    an estimate for."""
    found = {one.share: one for one in _measured(steps)}
    base = next((one for one in found.values() if traced and traced.pool_share == one.share), None)
    if not traced or not base or not base.measured:
        return [found[share] for share in sorted(found)]
    apart = [one for one in traced.flash if all(abs(one.share / share - 1) > ALIKE for share in found)]
    for flash in [*traced.as_large_as_pools, *apart]:
        if flash.least is not None and flash.most is not None and flash.share > base.share:
            known = found.get(flash.share, PoolReads(flash.share, flash.size_bytes, 0, None))
            least, most = (base.measured * (1 - hits) for hits in (flash.most, flash.least))
            found[flash.share] = replace(known, least=least, most=most)
    return [found[share] for share in sorted(found)]


def _measured(steps: Sequence[StepSummary]) -> list[PoolReads]:
    known = [one for one in steps if one.buffer_pool_share and one.storage.reads_per_transaction is not None]
    return [
        PoolReads(
            same[0].buffer_pool_share or 0.0,
            same[0].buffer_pool_bytes or 0,
            sum(one.throughput.committed for one in same),
            mean_of([one.storage.reads_per_transaction for one in same]),
        )
        for same in group(known, lambda one: one.buffer_pool_share)
    ]


def reads_at(pools: Sequence[PoolReads], share: float) -> float | None:
    """Return the reads per transaction at a share of the data between two sizes; None beyond what is known."""
    known = [one for one in pools if one.value]
    if not known or not known[0].share <= share <= known[-1].share:
        return None
    x, y = np.log([one.share for one in known]), np.log([one.value or 0.0 for one in known])
    return float(np.exp(np.interp(np.log(share), x, y)))


def slope_of(pools: Sequence[PoolReads]) -> Slope | None:
    """Return the slope over the sizes from 2 to 32 % of the data; None for fewer than three that were read at."""
    used = [one for one in pools if SLOPE_FROM <= one.share <= SLOPE_TO and one.value]
    if len(used) < LEAST_SIZES:
        return None
    x, y = np.log([one.share for one in used]), np.log([one.value or 0.0 for one in used])
    slope, level = np.polyfit(x, y, 1)
    off = np.exp(np.abs(y - (slope * x + level)).max()) - 1
    estimated = sum(one.measured is None for one in used)
    return Slope(float(slope), float(np.exp(level)), float(off), used[0].share, used[-1].share, len(used), estimated)


# The summary of how a load reads, from the records of runs of it.

WIDE_BAND = 0.05
"""Share of the reads that a trace may leave unknown of a size of flash before it is called too short for it."""
UNLIKE = 0.05
"""Relative difference of the reads in a trace from those that the server counted, which it learns a second late."""
REPORTED_LATE_S = 2.0
"""Sessions report up to a second late, at the begin of an interval and at its end."""


@dataclass(frozen=True)
class Locality:
    """How a load reads. `io` and `by_transaction` are of the traced step; without a trace, of that with the smallest
    pool."""

    workload: str
    experiment: ExperimentSummary
    manifest: Manifest  # of the run that `io` is of
    data_bytes: int
    pools: list[PoolReads]
    slope: Slope | None
    traced: Traced | None
    io: IoSummary | None  # of the data files, by the server's counters
    by_transaction: list[TransactionReads]  # those sampled too rarely have no share
    published: tuple[Published, ...]
    findings: list[Finding]
    cautions: list[Finding]


def characterise(records: Sequence[Record], each: Callable[..., Iterable[RunSummary]] = map) -> Locality:
    """Return how the load of some runs reads. `each` may be the `map` of a pool.

    Raise StallmarkError if the runs are not of one load.
    """
    if len(names := {record.manifest.workload.name for record in records}) > 1:
        raise StallmarkError(f"These runs are of several loads ({', '.join(sorted(names))}): name those of one.")
    if mixed_versions(record.manifest for record in records):
        raise StallmarkError("These runs are on data of several versions, which have other rows: name those of one.")
    if len({repr(record.manifest.workload.scale) for record in records}) > 1:
        raise StallmarkError("These runs are on databases of several scales: name those of one.")
    if len({record.folder.name for record in records}) < len(records):
        raise StallmarkError("Two of these runs have the same name: name the runs of one experiment.")
    experiment = summarise(records, each)
    traced_runs = {record.folder.name: record for record in records if has_trace(record)}
    steps = sorted(experiment.steps, key=lambda step: step.buffer_pool_share or 0.0)
    if not steps:
        raise StallmarkError("No run has a measured interval, so nothing is known of its reads: run it to its end.")
    step = next((one for one in steps if one.run in traced_runs), steps[0])
    manifest = next(record.manifest for record in records if record.folder.name == step.run)
    data_bytes = manifest.database.bytes_before or 0
    traced = None
    if step.run in traced_runs and data_bytes:
        others = {one.buffer_pool_share for one in steps if one.buffer_pool_share} - {step.buffer_pool_share}
        traced = figures_of_trace(read_trace(traced_runs[step.run]), step, data_bytes, sorted(others))
    pools = reads_over_pools(steps, traced)
    found = Locality(
        workload=manifest.workload.name or "",
        experiment=experiment,
        manifest=manifest,
        data_bytes=data_bytes,
        pools=pools,
        slope=slope_of(pools),
        traced=traced,
        io=step.storage.data,
        by_transaction=_enough(step.reads),
        published=published_for(manifest.workload.name or ""),
        findings=[],
        cautions=list(_invalid(steps)),
    )
    found.findings.extend(_findings(found))
    unused = None if traced or not traced_runs else "size" if step.run in traced_runs else "interval"
    found.cautions.extend(_cautions(found, unused))
    if step.storage.writes_partial:
        found.cautions.append(step.storage.writes_partial)
    history = trade_history(manifest.workload.name, manifest.workload.scale)
    if shallow := shallow_history(history, ("memory", "flash"), manifest.server.product):
        found.cautions.append(shallow)
    return found


def _enough(reads: Sequence[TransactionReads]) -> list[TransactionReads]:
    """Return the reads by type, without the share of those that were counted too rarely."""
    return [
        TransactionReads(**vars(one) | {"share": one.share if one.counted >= SHARE_SAMPLES else None}) for one in reads
    ]


def _findings(found: Locality) -> Iterator[Finding]:
    if not (known := [one for one in found.pools if one.measured is not None]):
        yield caution(LocalityKind.NOT_MEASURED, lacking=_lacking(found.experiment.steps))
    elif slope := found.slope:
        yield info(
            LocalityKind.READS, pool_share=known[0].share, reads=known[0].measured, slope=slope.slope,
            deviation=slope.deviation, between=[slope.from_share, slope.to_share], sizes=slope.sizes,
            estimated=slope.estimated,
        )  # fmt: skip
    else:
        yield info(LocalityKind.READS, pool_share=known[0].share, reads=known[0].measured)
    if not (traced := found.traced):
        return
    if errors := [one for one in found.pools if one.error is not None]:
        worst = max(errors, key=lambda one: abs(one.error or 0.0))
        yield info(LocalityKind.ERROR, sizes=len(errors), error=worst.error, pool_share=worst.share)
    sizes = [one for one in traced.flash if one.least is not None and one.share > (traced.pool_share or 0.0)]
    if sizes:
        yield info(
            LocalityKind.FLASH, pool_share=traced.pool_share, shares=[one.share for one in sizes[:4]],
            least=[one.least for one in sizes[:4]], most=[one.most for one in sizes[:4]],
        )  # fmt: skip
    pages, extents = (one.hottest["0.1"] for one in traced.skew)
    if None not in (*pages, *extents):
        yield info(LocalityKind.SKEW, hottest=0.1, of_pages=pages, of_extents=extents)
    if traced.reads >= SHARE_SAMPLES:
        seconds, size_bytes = traced.footprint[-1]
        yield info(
            LocalityKind.FOOTPRINT, measured_s=seconds, size_bytes=size_bytes, share=traced.footprint_share,
            once_share=traced.once_share,
        )  # fmt: skip
    top = [one for one in traced.tables if one.share is not None and one.table][:3]
    if top:
        yield info(
            LocalityKind.TABLES, tables=[one.table for one in top], shares=[one.share for one in top],
            data_shares=[one.data_share for one in top],
        )  # fmt: skip


def _lacking(steps: Sequence[StepSummary]) -> list[str]:
    """Return what no step has of that which reads per transaction over the pool take."""
    lacking = [] if any(step.storage.data for step in steps) else ["counters"]
    return lacking if any(step.buffer_pool_share for step in steps) else [*lacking, "pool"]


def _cautions(found: Locality, unused: str | None) -> Iterator[Finding]:
    """Yield the cautions. `unused`: what a trace lacks of which there are no figures."""
    traced = found.traced
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
        if short := [one.share for one in traced.flash if one.least is not None and _band(one) > WIDE_BAND]:
            yield caution(LocalityKind.SHORT, share=short[0], judged=traced.judged_by)
        if any(one.measured is None for one in found.pools):
            yield caution(LocalityKind.ESTIMATED, pool_share=traced.pool_share)
    if found.slope is None and found.pools:
        yield caution(LocalityKind.FEW_SIZES)


def _band(one) -> float:
    return one.most - one.least


def _invalid(steps: Sequence[StepSummary]) -> Iterator[Finding]:
    """Find runs that must not be compared, those with one kind of reason together."""
    reasons = [(why, step.run) for step in steps for why in step.validity.invalid]
    for same in group(reasons, lambda reason: reason[0].kind):
        yield caution(LocalityKind.INVALID, runs=list(dict.fromkeys(run for _, run in same)), why=same[0][0])
