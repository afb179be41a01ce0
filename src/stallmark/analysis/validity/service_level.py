"""Service levels: a limit on the time of reads, and whether the reads of a step met it.

They are judged on the percentile where the server kept a histogram of single reads, else on the mean. A mean above the
limit does not meet it. A mean within it does not show that 95 % of the reads are: that outcome is "mean only".
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from stallmark.analysis.finding import Finding, caution, info
from stallmark.analysis.read.server_summary import IoLatencySummary, IoSummary
from stallmark.analysis.validity.kinds import ServiceLevelKind
from stallmark.record.manifest.storage import ServiceLevelObjective


class LevelOutcome(StrEnum):
    MET = "met"
    NOT_MET = "not_met"
    MEAN_ONLY = "mean_only"
    NOT_KNOWN = "not_known"


class ReadSource(StrEnum):
    """The source of the times of reads."""

    HISTOGRAM = "histogram_of_single_reads"
    FILE_COUNTERS = "counters_of_data_files"
    NONE = "none"


@dataclass(frozen=True)
class ReadLimit:
    """A limit on the time of reads in milliseconds, and the time that is better still."""

    read_ms: float
    ideal_ms: float | None = None


READY_MADE = {"oltp": ReadLimit(20, 10), "dss": ReadLimit(30), "mail": ReadLimit(20)}
"""Guidelines for the data reads of transaction processing, decision support and mail servers, as ESG Lab used them
(IBM System Storage DS5020 with mixed real-world workloads, 2010: OLTP 4-20 ms and ideally no more than 10, DSS 30,
mail 20)."""

PERCENTILES = ("p95", "p99")
MEAN_ONLY = "mean_only"


@dataclass(frozen=True)
class ServiceLevel:
    """One step against its service level. `figure_ms` is over `reads` reads of the data files."""

    name: str  # "oltp" …, or "read" for a limit of one's own
    percentile: str
    limit_ms: float
    ideal_ms: float | None
    outcome: LevelOutcome
    ideal_met: bool | None  # None: there is none, or it is not known, as by a mean within it
    figure: str  # "p95", "mean_only", or "none"
    figure_ms: float | None
    reads: int
    source: ReadSource
    finding: Finding


def declared(name: str | None, read_ms: float | None, percentile: str) -> ServiceLevelObjective:
    """Return a service level for the manifest: a ready-made one by its name, or a limit of one's own; None: there is
    none on reads."""
    if name is None:
        return ServiceLevelObjective(name="read", read_ms=read_ms, percentile=percentile)
    limit = READY_MADE[name]
    return ServiceLevelObjective(name=name, read_ms=limit.read_ms, ideal_ms=limit.ideal_ms, percentile=percentile)


def judge_reads(
    asked: ServiceLevelObjective | None, histograms: Sequence[IoLatencySummary], data: IoSummary | None
) -> ServiceLevel | None:
    """Judge the reads of a step; None where the scenario sets no service level of reads."""
    if asked is None or asked.read_ms is None:
        return None
    percentile, limit, ideal = asked.percentile, asked.read_ms, asked.ideal_ms
    kept = next((one for one in histograms if one.operation == "read" and one.database is None), None)
    figure, figure_ms, reads, source, why = _figure(percentile, kept, data)
    outcome = outcome_of(figure, figure_ms, limit)
    of_ideal = LevelOutcome.NOT_KNOWN if ideal is None else outcome_of(figure, figure_ms, ideal)
    ideal_met = {LevelOutcome.MET: True, LevelOutcome.NOT_MET: False}.get(of_ideal)
    return ServiceLevel(
        name=asked.name,
        percentile=percentile,
        limit_ms=limit,
        ideal_ms=ideal,
        outcome=outcome,
        ideal_met=ideal_met,
        figure=figure,
        figure_ms=figure_ms,
        reads=reads,
        source=source,
        finding=info(ServiceLevelKind.READS_NOT_KNOWN, why=why)
        if figure_ms is None
        else (info if outcome == LevelOutcome.MET else caution)(
            ServiceLevelKind.READS_TAKE,
            outcome=outcome,
            percentile=percentile,
            figure_ms=figure_ms,
            reads=reads,
            limit_ms=limit,
            ideal_ms=ideal,
            ideal_met=ideal_met,
            why=why,
        ),
    )


def outcome_of(figure: str, figure_ms: float | None, limit_ms: float) -> LevelOutcome:
    """Return the outcome of a figure, a percentile or MEAN_ONLY."""
    if figure_ms is None:
        return LevelOutcome.NOT_KNOWN
    if figure_ms > limit_ms:
        return LevelOutcome.NOT_MET
    return LevelOutcome.MEAN_ONLY if figure == MEAN_ONLY else LevelOutcome.MET


def _figure(
    percentile: str, kept: IoLatencySummary | None, data: IoSummary | None
) -> tuple[str, float | None, int, ReadSource, Finding | None]:
    """Return the figure that is judged, its ms, the number of reads, their source, and why it is no percentile."""
    why = info(ServiceLevelKind.NO_HISTOGRAM)
    if kept is not None:
        if (ms := kept.latency_ms.get(percentile)) is not None:
            return percentile, ms, kept.ios, ReadSource.HISTOGRAM, None
        why = kept.doubt or info(ServiceLevelKind.TOO_FEW_READS, reads=kept.ios, percentile=percentile)
    if data is None or (data.reads and data.read_ms is None):
        return "none", None, 0, ReadSource.NONE, info(ServiceLevelKind.READS_NOT_MEASURED)
    if not data.reads:
        return "none", None, 0, ReadSource.NONE, info(ServiceLevelKind.NOTHING_READ)
    return MEAN_ONLY, data.read_ms, data.reads, ReadSource.FILE_COUNTERS, why
