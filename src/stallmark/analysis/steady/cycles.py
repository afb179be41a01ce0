"""Checkpoint cycles of a measured interval.

A server writes most of its pages in checkpoints, so two and a half cycles are another load than three.
Figures are taken over whole cycles where the record shows at least CHECKPOINTS of them. A cycle is from one checkpoint
to the same point of a later one: its end, or its beginning where the server counts there (PostgreSQL before 18). That
point is known to the sampling interval of its counter, and so are the ends of what is measured.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from stallmark.analysis.finding import Finding, Kind, caution, info
from stallmark.analysis.read.counters import Counters
from stallmark.analysis.read.interval import Cycles, CyclesBy, Interval
from stallmark.analysis.read.server_state import StateViews
from stallmark.analysis.read.server_summary import ServerState
from stallmark.stats.thresholds import CHECKPOINT_QUIET_S, CHECKPOINT_WRITES, CHECKPOINTS, CYCLES_COVER


class CycleKind(Kind):
    WHOLE = "whole_checkpoint_cycles"
    TOO_FEW = "too_few_checkpoint_cycles"
    IRREGULAR = "checkpoint_cycles_irregular"
    NO_CHECKPOINT = "no_checkpoint_while_measured"


@dataclass(frozen=True)
class Marks:
    """The times at which checkpoints were seen, in seconds since the run started, rising; sampled
    every `resolution_s`."""

    t: np.ndarray
    shown_by: CyclesBy
    resolution_s: float


def over_whole_cycles(interval: Interval, marks: Marks | None) -> Interval:
    """Return the interval that figures are taken over: the whole cycles, or all of it where these are too few or cover
    too little of it."""
    if marks is None:
        return interval
    seen = marks.t[(marks.t > interval.begin) & (marks.t <= interval.end)]
    count = max(len(seen) - 1, 0)
    begin, end = (math.ceil(seen[0]), math.ceil(seen[-1])) if count else (interval.begin, interval.end)
    mean_s = float((seen[-1] - seen[0]) / count) if count else None
    covers = end - begin >= CYCLES_COVER * interval.seconds
    whole = count >= CHECKPOINTS and covers
    cycles = Cycles(
        count=count,
        checkpoints=len(seen),
        begin_s=begin,
        end_s=end,
        measured_s=interval.seconds,
        whole=whole,
        mean_s=mean_s,
        shown_by=marks.shown_by,
        resolution_s=marks.resolution_s,
        finding=_finding(interval, count, begin, end, mean_s, covers),
    )
    whole_interval = replace(interval, begin=begin, end=end) if whole else interval
    return replace(whole_interval, cycles=cycles)


def no_checkpoint(interval: Interval, state: ServerState | None) -> Finding | None:
    """Return a caution if no checkpoint was counted in the interval, so that its writes are of a part of a cycle; None
    if checkpoints are unknown, or the server wrote pages for them all the time."""
    if interval.cycles is None or interval.cycles.checkpoints:
        return None
    if state and (state.checkpoint_pages_per_s or state.background_pages_per_s):
        return None
    return caution(CycleKind.NO_CHECKPOINT, measured_s=interval.seconds)


def _finding(interval: Interval, count: int, begin: int, end: int, mean_s: float | None, covers: bool) -> Finding:
    facts = {"cycles": count, "measured_s": interval.seconds}
    if count < CHECKPOINTS:
        return caution(CycleKind.TOO_FEW, **facts, needed=CHECKPOINTS)
    if not covers:
        return caution(CycleKind.IRREGULAR, **facts, covered_s=end - begin)
    return info(CycleKind.WHOLE, **facts, mean_s=mean_s, begin_s=begin - interval.begin, end_s=end - interval.begin)


def checkpoint_marks(checkpoints: Counters | None, state: StateViews) -> Marks | None:
    """Return the times at which checkpoints ended or, where the server counts there, began. None where its counters do
    not tell."""
    return marks_of_counter(checkpoints) or marks_of_writes(state.checkpoint_pages())


def marks_of_counter(checkpoints: Counters | None) -> Marks | None:
    """Return the marks from a count of checkpoints (PostgreSQL).

    `done` (since 18) counts at their end those that did something. Else `timed` and `requested` count all at their
    beginning; under a load that writes, all do something. None where nothing was counted, or the count began again.
    """
    if checkpoints is None or len(checkpoints.t) < 2 or np.any(checkpoints.breaks):
        return None
    totals = checkpoints.totals
    done = totals.get("done")
    if done is None:
        parts = [totals[name] for name in ("timed", "requested") if name in totals]
        if not parts:
            return None
        done = np.sum(parts, axis=0)
    rose = np.diff(done) >= 1
    return Marks(checkpoints.t[1:][rose], CyclesBy.COUNT, _interval_s(checkpoints.t))


def marks_of_writes(line: tuple[np.ndarray, np.ndarray] | None) -> Marks | None:
    """Return the marks from a cumulative count of pages that checkpoints wrote (SQL Server, which does not count
    checkpoints).

    Each burst of writes is one checkpoint, and a cycle lasts from the end of a burst to the end of the next. Indirect
    checkpoints write all the time: then there are no bursts and no whole cycles. None where nothing was counted, or the
    count began again.
    """
    if line is None or len(line[0]) < 3 or np.any(np.diff(line[1]) < 0):
        return None
    t, total = line
    rate = np.diff(total) / np.diff(t)
    writes = rate > CHECKPOINT_WRITES * rate.max() if rate.max() > 0 else np.zeros(len(rate), dtype=bool)
    ends = [last for last in _run_ends(writes) if _quiet_after(t, writes, last) >= CHECKPOINT_QUIET_S]
    return Marks(t[1:][ends], CyclesBy.BURSTS, _interval_s(t))


def _run_ends(writes: np.ndarray) -> Sequence[int]:
    """Return the indices of the last sample of each burst; a burst in which the record ends has no end."""
    ends: list[int] = np.flatnonzero(writes[:-1] & ~writes[1:]).tolist()
    return ends


def _quiet_after(t: np.ndarray, writes: np.ndarray, last: int) -> float:
    """Return the seconds from a burst's last sample to the next burst's first, or to the end of the record."""
    later = np.flatnonzero(writes[last + 1 :])
    begins = last + 1 + int(later[0]) if len(later) else len(writes)
    return float(t[begins] - t[last + 1])


def _interval_s(t: np.ndarray) -> float:
    return round(float(np.median(np.diff(t))), 1)
