"""The spans of all files in one order of time: no two overlap, each time counts once, and holes are told."""

from dataclasses import dataclass

import numpy as np

from stallmark.record.imports.recording import Recording
from stallmark.record.profile.intervals import Intervals
from stallmark.record.profile.manifest import GAP

_US = 1e6
_LONG_S = 0.5  # what lies between two spans and is shorter is no gap


@dataclass(frozen=True)
class Hole:
    start: float
    end: float
    reason: str


@dataclass(frozen=True)
class Timeline:
    """The intervals of an import, how long they usually are, and the times between them."""

    intervals: Intervals
    interval_s: float
    gaps: list[Hole]
    notes: list[str]


def timeline_of(recording: Recording) -> Timeline:
    """Put the spans of all files into one order. What overlaps an earlier span is left out; a span that is much longer
    than the others covers a time in which nothing was seen."""
    spans = recording.spans
    start, end = np.round(np.array(spans.start) * _US), np.round(np.array(spans.end) * _US)
    order = np.lexsort((np.arange(len(end)), end, start))
    start, end = start[order], end[order]
    first = np.ones(len(start), dtype=bool)
    first[1:] = (np.diff(start) != 0) | (np.diff(end) != 0)
    group = np.cumsum(first) - 1
    columns = {name: _first_known(np.array(values)[order], first, group) for name, values in spans.columns.items()}
    start, end = start[first] / _US, end[first] / _US
    usual_s = float(np.median(end - start)) if len(start) else 0.0
    long = end - start > GAP * usual_s
    kept = _apart(start, end, ~long)
    notes = []
    if doubled := int((~kept & ~long).sum()):
        notes.append(f"{doubled} sample{'s' * (doubled > 1)} of a time that was there already {_left_out(doubled)}.")
    if long.any():
        count = int(long.sum())
        notes.append(
            f"{count} sample{'s' * (count > 1)} after a time in which nothing was recorded {_left_out(count)}."
        )
    start, end = start[kept], end[kept]
    intervals = Intervals(start, end, {name: values[kept] for name, values in columns.items()})
    return Timeline(intervals, round(usual_s, 3), _holes(start, end, recording), notes)


def _left_out(count: int) -> str:
    return "is left out" if count == 1 else "are left out"


def _first_known(values: np.ndarray, first: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Return the first value that is known of each group of rows of one span."""
    found = values[first]
    for place in np.flatnonzero(~first & np.isfinite(values)):
        if np.isnan(found[group[place]]):
            found[group[place]] = values[place]
    return found


def _apart(start: np.ndarray, end: np.ndarray, candidates: np.ndarray) -> np.ndarray:
    """Return which of the spans to keep, so that none overlaps one before it."""
    kept = np.zeros(len(start), dtype=bool)
    until = -np.inf
    for place in np.flatnonzero(candidates).tolist():
        if start[place] >= until:
            kept[place] = True
            until = end[place]
    return kept


def _holes(start: np.ndarray, end: np.ndarray, recording: Recording) -> list[Hole]:
    found = []
    for begin, until in zip(end[:-1].tolist(), start[1:].tolist(), strict=True):
        if until - begin > _LONG_S:
            found.append(Hole(begin, until, _reason(begin, until, recording)))
    return found


def _reason(begin: float, until: float, recording: Recording) -> str:
    if any(begin <= at <= until for at in recording.restarts):
        return "the machine was restarted"
    if any(begin <= at <= until for at in recording.clock_set):
        return "the clock was set"
    return "no samples"
