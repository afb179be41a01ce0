"""Gaps: how long a source was not read while a step was measured, whatever the reason; and samples at its ends that are
dated too roughly for its rates."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from stallmark.analysis.finding import Finding, caution
from stallmark.analysis.read.interval import Interval, Span
from stallmark.analysis.read.kinds import ReadKind
from stallmark.analysis.read.sample_times import longest_apart_s, open_s, sample_times, spread
from stallmark.record.reader import Record
from stallmark.stats.thresholds import DATED_ROUGHLY, GAP_S


def gap_findings(record: Record, intervals: Sequence[Interval]) -> dict[Span, list[Finding]]:
    """Return what was not read for a while, by the interval that it touches.

    Sources that have nothing to tell at times leave no rows: those that name an epoch always have.
    """
    sources = [
        (collector.title, t, interval_s, _longest_s(t, interval_s), spread(record, name))
        for name, collector in record.manifest.collectors.items()
        for interval_s in [collector.interval_s or 1.0]
        if not collector.unavailable and (t := _reads(record, name)) is not None
    ]
    found: dict[Span, list[Finding]] = {}
    for interval in intervals:
        unseen = {title: _unseen_s(t, longest_s, interval) for title, t, _, longest_s, _ in sources}
        few = {title: _open_s(t, longest_s, interval, interval_s) for title, t, interval_s, longest_s, _ in sources}
        rough = {title: _rough_s(*dates, interval) for title, *_, dates in sources}
        rough = {title: seconds for title, seconds in rough.items() if seconds > few[title]}
        found[interval.span] = [
            *_said(ReadKind.NOT_READ, unseen, 0.0, interval),
            *_said(ReadKind.FEW_SAMPLES, few, DATED_ROUGHLY * interval.seconds, interval),
            *_said(ReadKind.DATED_ROUGHLY, rough, DATED_ROUGHLY * interval.seconds, interval),
        ]
    return found


def _said(kind: ReadKind, seconds: Mapping[str, float], above: float, interval: Interval) -> Iterator[Finding]:
    """Yield one finding on all sources of which it is true; its seconds are the most of any."""
    sources = [title for title, one in seconds.items() if one > above]
    if sources:
        yield caution(kind, sources=sources, seconds=max(seconds.values()), measured_s=interval.seconds)


def _longest_s(t: np.ndarray, interval_s: float) -> np.ndarray:
    """Return how far apart neighbours must be for samples to have been missed, before the first and after the last too,
    shape (n + 1,)."""
    longest_s = longest_apart_s(t, interval_s) if len(t) > 1 else np.array([GAP_S * max(1.0, interval_s)])
    return np.concatenate([longest_s[:1], longest_s, longest_s[-1:]])[: len(t) + 1]


def _open_s(t: np.ndarray, longest_s: np.ndarray, interval: Interval, interval_s: float) -> float:
    return open_s(t, np.diff(t) > longest_s[1:-1], (interval.begin, interval.end), interval_s)


def _rough_s(t: np.ndarray, late: np.ndarray, interval: Interval) -> float:
    """Return by how much it is not known better when the samples at both ends were taken: between the server's time and
    the end of their calls."""
    if not len(t):
        return 0.0
    ends = np.searchsorted(t, [interval.begin, interval.end])
    return float(max(late[max(0, i - 1) : i + 1].max() for i in ends))


def _reads(record: Record, table: str) -> np.ndarray | None:
    """Return when a source was read; None where it names no epoch, or never had anything to tell."""
    first = next(record.batches(table, ["epoch"]), None)
    if first is not None and not first.num_columns:
        return None
    t = sample_times(record, table)
    return None if t is None or not len(t) else t


def _unseen_s(t: np.ndarray, longest_s: np.ndarray, interval: Interval) -> float:
    edges = np.concatenate([[min(interval.begin, t[0])], t, [max(interval.end, t[-1])]])
    overlap = np.minimum(edges[1:], interval.end) - np.maximum(edges[:-1], interval.begin)
    unseen = np.diff(edges) > longest_s
    return float(overlap[unseen & (overlap > 0)].sum())
