"""The summary of how a load reads, from the records of runs of it."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from stallmark.analysis.data_versions import mixed_versions
from stallmark.analysis.experiment import ExperimentSummary, summarise
from stallmark.analysis.finding import Finding, caution, info
from stallmark.analysis.locality.kinds import LocalityKind
from stallmark.analysis.locality.pools import PoolReads, Slope, reads_over_pools, slope_of
from stallmark.analysis.locality.published import Published, published_for
from stallmark.analysis.locality.trace import has_trace, read_trace
from stallmark.analysis.locality.traced import Traced, figures_of_trace
from stallmark.analysis.points import group
from stallmark.analysis.read.server_summary import IoSummary, TransactionReads
from stallmark.analysis.run import RunSummary
from stallmark.analysis.shallow_history import shallow_history
from stallmark.analysis.step_summary import StepSummary
from stallmark.errors import StallmarkError
from stallmark.record.manifest import Manifest
from stallmark.record.manifest.workload import trade_history
from stallmark.record.reader import Record
from stallmark.stats.thresholds import SHARE_SAMPLES

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
