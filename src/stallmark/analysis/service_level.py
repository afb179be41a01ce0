"""Service levels: a limit on the time of reads, and whether the reads of a step met it.

The percentile is judged if the server kept a histogram of single reads, else the mean. A mean above the limit does not
meet it. A mean within it does not show that 95 % of the reads are: that outcome is "mean only".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from stallmark.analysis.finding import Finding, Kind, caution, info
from stallmark.record.manifest.storage import ServiceLevelObjective

if TYPE_CHECKING:
    from stallmark.analysis.read.io_latency import IoLatencySummary
    from stallmark.analysis.read.server_summary import IoSummary


class ServiceLevelKind(Kind):
    """The findings on a service level, and the reasons why a percentile is not judged."""

    READS_TAKE = "reads_take"
    READS_NOT_KNOWN = "reads_not_known"
    NO_HISTOGRAM = "no_histogram"
    TOO_FEW_READS = "too_few_reads"
    READS_NOT_MEASURED = "reads_not_measured"
    NOTHING_READ = "nothing_read"


class LevelOutcome(StrEnum):
    MET = "met"
    NOT_MET = "not_met"
    MEAN_ONLY = "mean_only"
    NOT_KNOWN = "not_known"


class ReadSource(StrEnum):
    """The source of read times."""

    HISTOGRAM = "histogram_of_single_reads"
    FILE_COUNTERS = "counters_of_data_files"
    NONE = "none"


@dataclass(frozen=True)
class ReadLimit:
    """A limit on the time of reads in milliseconds, and the ideal time."""

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
    """One step compared with its service level."""

    name: str  # "oltp" …, or "read" for a custom limit
    percentile: str
    limit_ms: float
    ideal_ms: float | None
    outcome: LevelOutcome
    ideal_met: bool | None  # None without an ideal, and if unknown, as by a mean within it
    figure: str  # "p95", "mean_only", or "none"
    figure_ms: float | None
    reads: int  # reads of the data files in `figure_ms`
    source: ReadSource
    finding: Finding


def make_objective(name: str | None, read_ms: float | None, percentile: str) -> ServiceLevelObjective:
    """Return a service level for the manifest: a ready-made one by its name, or a custom limit; None sets no limit on
    reads."""
    if name is None:
        return ServiceLevelObjective(name="read", read_ms=read_ms, percentile=percentile)
    limit = READY_MADE[name]
    return ServiceLevelObjective(name=name, read_ms=limit.read_ms, ideal_ms=limit.ideal_ms, percentile=percentile)


def judge_reads(
    objective: ServiceLevelObjective | None, histograms: Sequence[IoLatencySummary], data: IoSummary | None
) -> ServiceLevel | None:
    """Judge the reads of a step; return None if the scenario sets no service level of reads."""
    if objective is None or objective.read_ms is None:
        return None
    percentile, limit, ideal = objective.percentile, objective.read_ms, objective.ideal_ms
    of_reads = (histogram for histogram in histograms if histogram.operation == "read" and histogram.database is None)
    figure, figure_ms, reads, source, no_percentile = _judged_figure(percentile, next(of_reads, None), data)
    # A mean above the limit breaks it, but a mean within it does not show that a percentile is.
    outcome = judge_figure(figure, figure_ms, limit)
    ideal_outcome = LevelOutcome.NOT_KNOWN if ideal is None else judge_figure(figure, figure_ms, ideal)
    ideal_met = {LevelOutcome.MET: True, LevelOutcome.NOT_MET: False}.get(ideal_outcome)
    return ServiceLevel(
        name=objective.name,
        percentile=percentile,
        limit_ms=limit,
        ideal_ms=ideal,
        outcome=outcome,
        ideal_met=ideal_met,
        figure=figure,
        figure_ms=figure_ms,
        reads=reads,
        source=source,
        finding=info(ServiceLevelKind.READS_NOT_KNOWN, why=no_percentile)
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
            why=no_percentile,
        ),
    )


def judge_figure(figure: str, figure_ms: float | None, limit_ms: float) -> LevelOutcome:
    """Return the outcome of a figure, which is a percentile or MEAN_ONLY."""
    if figure_ms is None:
        return LevelOutcome.NOT_KNOWN
    if figure_ms > limit_ms:
        return LevelOutcome.NOT_MET
    return LevelOutcome.MEAN_ONLY if figure == MEAN_ONLY else LevelOutcome.MET


def _judged_figure(
    percentile: str, histogram: IoLatencySummary | None, data: IoSummary | None
) -> tuple[str, float | None, int, ReadSource, Finding | None]:
    """Return the figure that is judged, its ms, the number of reads, their source, and the reason if it is not a
    percentile."""
    no_percentile = info(ServiceLevelKind.NO_HISTOGRAM)
    if histogram is not None:
        if (ms := histogram.latency_ms.get(percentile)) is not None:
            return percentile, ms, histogram.ios, ReadSource.HISTOGRAM, None
        no_percentile = histogram.doubt or info(
            ServiceLevelKind.TOO_FEW_READS, reads=histogram.ios, percentile=percentile
        )
    if data is None or (data.reads and data.read_ms is None):
        return "none", None, 0, ReadSource.NONE, info(ServiceLevelKind.READS_NOT_MEASURED)
    if not data.reads:
        return "none", None, 0, ReadSource.NONE, info(ServiceLevelKind.NOTHING_READ)
    # The counters of files know only totals, so only the mean can be judged.
    return MEAN_ONLY, data.read_ms, data.reads, ReadSource.FILE_COUNTERS, no_percentile
