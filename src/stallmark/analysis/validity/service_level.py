"""Service levels: how long a read may take, and whether the reads of a step took no longer.

Judged on the percentile where the server kept a histogram of single reads, else on their mean: a mean above the limit
does not meet it, but one within it does not show that 95 % of the reads are, so that outcome is "mean only".
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from stallmark.analysis.read.server_summary import IoLatencySummary, IoSummary
from stallmark.format import number
from stallmark.record.manifest import ServiceLevelObjective

Outcome = Literal["met", "not met", "mean only", "not known"]


@dataclass(frozen=True)
class Limit:
    """What reads may take, in milliseconds, and what is better still."""

    read_ms: float
    ideal_ms: float | None = None


READY_MADE = {"oltp": Limit(20, 10), "dss": Limit(30), "mail": Limit(20)}
"""Guidelines for the data reads of transaction processing, decision support and mail servers, as ESG Lab used them
(IBM System Storage DS5020 with mixed real-world workloads, 2010: OLTP 4-20 ms and ideally no more than 10, DSS 30, mail
20)."""

PERCENTILES = ("p95", "p99")


@dataclass(frozen=True)
class ServiceLevel:
    """One step against its service level. `figure_ms` is of reads of the data files, of `reads` of them."""

    name: str  # "oltp" …, or "read" for a limit of one's own
    percentile: str
    limit_ms: float
    ideal_ms: float | None
    outcome: Outcome
    ideal_met: bool | None  # None: there is none, or it is not known, as by a mean within it
    figure: str  # "p95", "mean only", or "none"
    figure_ms: float | None
    reads: int
    source: str
    sentence: str


def declared(name: str | None, read_ms: float | None, percentile: str) -> ServiceLevelObjective:
    """A service level as the manifest has it: a ready-made one by its name, or a limit of one's own."""
    limit = READY_MADE[name] if name else Limit(read_ms or 0.0)
    return ServiceLevelObjective(
        name=name or "read", read_ms=limit.read_ms, ideal_ms=limit.ideal_ms, percentile=percentile
    )


def judge_reads(
    asked: ServiceLevelObjective | None, histograms: Sequence[IoLatencySummary], data: IoSummary | None
) -> ServiceLevel | None:
    """None where the scenario sets no service level."""
    if asked is None:
        return None
    percentile, limit, ideal = asked.percentile, asked.read_ms, asked.ideal_ms
    kept = next((one for one in histograms if one.operation == "read"), None)
    figure, figure_ms, reads, source, why = _figure(percentile, kept, data)
    outcome = _outcome(figure, figure_ms, limit)
    of_ideal = "not known" if ideal is None else _outcome(figure, figure_ms, ideal)
    ideal_met = {"met": True, "not met": False}.get(of_ideal)
    if figure_ms is None:
        said = f"Not known: {why}."
    else:
        within = f"above {limit:g} ms" if outcome == "not met" else f"within {limit:g} ms"
        if ideal_met is not None and outcome != "not met":
            within += f", and the ideal {ideal:g} ms" if ideal_met else f", not the ideal {ideal:g} ms"
        shows = f", which shows no {percentile}" if outcome == "mean only" else "; mean only"
        only = f"{shows}: {why}" if figure == "mean only" else ""
        which = "mean" if figure == "mean only" else figure
        said = f"{outcome.capitalize()}: the {which} of {reads:,} reads was {number(figure_ms)} ms, {within}{only}."
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
        sentence=said,
    )


def _outcome(figure: str, figure_ms: float | None, limit_ms: float) -> Outcome:
    if figure_ms is None:
        return "not known"
    if figure_ms > limit_ms:
        return "not met"
    return "mean only" if figure == "mean only" else "met"


def _figure(
    percentile: str, kept: IoLatencySummary | None, data: IoSummary | None
) -> tuple[str, float | None, int, str, str]:
    """(which, ms, of how many reads, whose, why it is no percentile)."""
    why = "the server keeps no histogram of single reads"
    if kept is not None:
        if (ms := kept.latency_ms.get(percentile)) is not None:
            return percentile, ms, kept.ios, "the server's histogram of single reads", ""
        why = kept.doubt or f"{kept.ios:,} reads are too few for a {percentile}"
    if data is None:
        return "none", None, 0, "none", "the reads of the data files were not measured"
    if data.read_ms is None or not data.reads:
        return "none", None, 0, "none", "nothing was read from the data files"
    return "mean only", data.read_ms, data.reads, "the server's counters of its data files", why
