"""Gaps: how long a source was not read while a step was measured, whatever the reason; and samples at its ends that are
dated too roughly for its rates."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from stallmark.analysis.finding import Finding, caution
from stallmark.analysis.read.interval import Interval, Span
from stallmark.analysis.read.kinds import ReadKind
from stallmark.analysis.read.sample_times import gap_s, sample_times, spread
from stallmark.record.reader import Record
from stallmark.stats.thresholds import DATED_ROUGHLY


def gap_findings(record: Record, intervals: Sequence[Interval]) -> dict[Span, list[Finding]]:
    """Return what was not read for a while, by the interval that it touches.

    Sources that have nothing to tell at times leave no rows: those that name an epoch always have.
    """
    sources = [
        (collector.title, t, gap_s(record, name, t), spread(record, name))
        for name, collector in record.manifest.collectors.items()
        if not collector.unavailable and (t := _reads(record, name)) is not None
    ]
    found: dict[Span, list[Finding]] = {}
    for interval in intervals:
        unseen = {title: _unseen_s(t, interval, longest_s) for title, t, longest_s, _ in sources}
        rough = {title: _rough_s(*dates, interval) for title, _, _, dates in sources}
        found[interval.span] = [
            *_said(ReadKind.NOT_READ, unseen, 0.0, interval),
            *_said(ReadKind.DATED_ROUGHLY, rough, DATED_ROUGHLY * interval.seconds, interval),
        ]
    return found


def _said(kind: ReadKind, seconds: Mapping[str, float], above: float, interval: Interval) -> Iterator[Finding]:
    """Yield one finding on all sources of which it is true; its seconds are the most of any."""
    sources = [title for title, one in seconds.items() if one > above]
    if sources:
        yield caution(kind, sources=sources, seconds=max(seconds.values()), measured_s=interval.seconds)


def _rough_s(t: np.ndarray, late: np.ndarray, interval: Interval) -> float:
    """Return by how much it is not known better when the samples at both ends were taken: between the server's time and
    the end of their calls."""
    if not len(t):
        return 0.0
    ends = np.searchsorted(t, [interval.begin, interval.end])
    return float(sum(late[max(0, i - 1) : i + 1].max() for i in ends))


def _reads(record: Record, table: str) -> np.ndarray | None:
    """Return when a source was read; None where it names no epoch, or never had anything to tell."""
    first = next(record.batches(table, ["epoch"]), None)
    if first is not None and not first.num_columns:
        return None
    t = sample_times(record, table)
    return None if t is None or not len(t) else t


def _unseen_s(t: np.ndarray, interval: Interval, longest_s: float) -> float:
    edges = np.concatenate([[min(interval.begin, t[0])], t, [max(interval.end, t[-1])]])
    overlap = np.minimum(edges[1:], interval.end) - np.maximum(edges[:-1], interval.begin)
    return float(overlap[(np.diff(edges) > longest_s) & (overlap > 0)].sum())
