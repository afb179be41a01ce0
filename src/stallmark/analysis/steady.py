"""Steady state: the judgement whether the load was steady while it was measured, and over which checkpoint cycles."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np
import scipy  # imports its parts lazily

from stallmark.analysis.finding import Finding, Kind, caution, info, invalid
from stallmark.analysis.read.counters import Counters
from stallmark.analysis.read.server_state import ServerState
from stallmark.analysis.read.times import Cycles, CyclesBy, Interval
from stallmark.stats import steady_state
from stallmark.stats.steady_state import StretchTests, filled, tests_over
from stallmark.stats.thresholds import (
    BATCHES_FEWEST,
    CHECKPOINT_QUIET_S,
    CHECKPOINT_WRITES,
    CHECKPOINTS,
    CYCLES_COVER,
    DRIFT,
    HEAD_ERRORS,
    HEAD_MATTERS,
    MSER_BATCH,
    UNSTEADY_P,
)

# The judgement whether the server was in a steady state while it was measured.
#
# It is made on the throughput of each second. In an open loop throughput is the rate of arrivals whatever the server
# does, so there it is made on the mean latency. "Never became steady" is a result and not a fault: a cache that
# warms for hours, a device whose spare room runs out, a queue without end.


class Judgement(StrEnum):
    STEADY = "steady"
    LATE = "became_steady_late"
    NEVER = "never_became_steady"
    TOO_SHORT = "too_short_to_tell"


class Rate(StrEnum):
    """The series that is judged."""

    TPS = "TPS"
    LATENCY = "mean_latency"


class SteadyKind(Kind):
    """The kinds of findings on the steadiness of an interval."""

    TOO_FEW_SECONDS = "too_few_seconds"
    NOTHING_DONE = "nothing_done"
    NOT_TOLD = "steadiness_not_told"
    STEADY = "steady"
    STEADY_LATE = "became_steady_late"
    TREND = "never_steady_trend"
    LEVEL_CHANGED = "never_steady_level_changed"


@dataclass(frozen=True)
class Steadiness:
    """The steadiness of one measured interval. Shares are relative to the mean unless noted; values that were not
    judged are None."""

    verdict: Judgement
    finding: Finding
    of: Rate
    seconds: int  # number of judged seconds
    batches: int = 0
    batch_s: int = 0
    alike: float = 0.0  # correlation of neighbouring batches
    inflation: float = 1.0  # factor of the variance of the mean caused by the correlation
    independent: float = 0.0  # independent batches worth as much as the correlated ones
    drift: float | None = None
    """The change from the begin to the end of the line with Sen's slope, as a share of its begin, with its 95 %
    interval."""
    drift_low: float | None = None
    drift_high: float | None = None
    slope_per_h: float | None = None
    """The slope per hour, as a share of the mean."""
    slope_per_h_low: float | None = None
    slope_per_h_high: float | None = None
    trend_p: float | None = None
    change: float | None = None  # the level's largest step, shown or not, as a share of the level before
    change_at_s: int | None = None  # seconds from the begin of the interval to that step
    change_p: float | None = None
    truncation_s: int = 0  # seconds that MSER-5 would omit
    warm_up_s: int = 0  # the part clearly off the rest: a warm-up still inside the measured interval
    warm_up_shift: float = 0.0  # relative shift of the interval's mean by the warm-up

    @property
    def p(self) -> float:
        """Return the p-value of no trend and no change, both tests together; 0 for a warm-up inside, which is shown by
        other means."""
        if self.verdict == Judgement.LATE:
            return 0.0
        known = [p for p in (self.trend_p, self.change_p) if p is not None]
        return min(1.0, 2 * min(known, default=0.0))

    @property
    def incomparable(self) -> bool:
        """Return True if the figures deviate from those of a steady state by more than the tolerance."""
        late = self.verdict == Judgement.LATE and abs(self.warm_up_shift) > HEAD_MATTERS
        return self.verdict == Judgement.NEVER or late


def judge(per_second: np.ndarray, rate: Rate = Rate.TPS) -> Steadiness:
    """Judge the seconds of one interval, shape (n,); NaN marks a second without a value."""
    series, seconds = filled(per_second), len(per_second)
    if seconds < BATCHES_FEWEST:
        few = caution(SteadyKind.TOO_FEW_SECONDS, seconds=seconds, needed_s=BATCHES_FEWEST)
        return Steadiness(Judgement.TOO_SHORT, few, rate, seconds)
    # Nothing ended, so there is no level to be steady at.
    if not len(series) or series.mean() <= 0:
        return Steadiness(Judgement.TOO_SHORT, caution(SteadyKind.NOTHING_DONE, of=rate), rate, seconds)
    whole = tests_over(series, seconds)
    truncated = steady_state.truncation(series)
    head = _warm_up(series, truncated)
    shift = _shift(series, head)
    ends = {"drift": whole.drift, "drift_low": whole.drift_low, "drift_high": whole.drift_high}
    drift = {name: growth_of_line(share) for name, share in ends.items()}
    verdict, finding = _verdict(series, whole, head, rate, shift, drift)
    per_hour = 3600 / seconds
    batched = whole.batched
    return Steadiness(
        verdict=verdict,
        finding=finding,
        of=rate,
        seconds=seconds,
        batches=len(batched.means),
        batch_s=batched.length,
        alike=float(batched.correlation),
        inflation=float(batched.inflation),
        independent=batched.independent,
        **drift,
        slope_per_h=whole.drift * per_hour,
        slope_per_h_low=whole.drift_low * per_hour,
        slope_per_h_high=whole.drift_high * per_hour,
        trend_p=whole.trend.p,
        change=_stepped(whole),
        change_at_s=whole.change.index,
        change_p=whole.change.p,
        truncation_s=truncated,
        warm_up_s=head,
        warm_up_shift=shift,
    )


def incomparable(judged: Sequence[Steadiness]) -> list[Steadiness]:
    """Return the runs whose figures are not those of a steady state, by more than chance among the number judged.

    Each verdict alone is wrong for one in twenty steady runs, so among six steady runs one is often wrong. A single run
    counts if its own p-value passes the bound for that number of runs (Bonferroni): of six runs one with p < 0.1 / 6.
    All count if their number alone is improbable (binomial): two of six steady runs would be judged unsteady in one set
    of thirty.
    """
    unsteady, level = [steadiness for steadiness in judged if steadiness.incomparable], 2 * UNSTEADY_P
    if unsteady and scipy.special.bdtrc(len(unsteady) - 1, len(judged), level) < level:
        return unsteady
    return [steadiness for steadiness in unsteady if steadiness.p * len(judged) < level]


def _verdict(
    series: np.ndarray, whole: StretchTests, head: int, rate: Rate, shift: float, drift: Mapping[str, float]
) -> tuple[Judgement, Finding]:
    facts: dict[str, Any] = {"of": rate, "seconds": len(series)}
    if head and (whole.unsteady or abs(shift) > HEAD_MATTERS) and _rest_is_steady(series, head):
        make = invalid if abs(shift) > HEAD_MATTERS else caution
        return Judgement.LATE, make(SteadyKind.STEADY_LATE, **facts, warm_up_s=head, shift=shift)
    if whole.unsteady:
        if whole.changing and (not whole.trending or whole.change.p < whole.trend.p):
            change = {"change": _stepped(whole), "at_s": whole.change.index, "p": whole.change.p}
            return Judgement.NEVER, invalid(SteadyKind.LEVEL_CHANGED, **facts, **change)
        return Judgement.NEVER, invalid(SteadyKind.TREND, **facts, **drift, p=whole.trend.p)
    if whole.unknown:
        return Judgement.TOO_SHORT, caution(SteadyKind.NOT_TOLD, **facts, **drift)
    return Judgement.STEADY, info(SteadyKind.STEADY, **facts, **drift, warm_up_s=head, shift=shift)


def growth_of_line(share: float) -> float:
    """Return the change from the begin to the end of a straight line that rises by `share` of its mean, as a share of
    its begin.

    A line around mean 1 that rises by 0.2 goes from 0.9 to 1.1, which is 22 %. Nothing falls by more than 100 %, and a
    begin near 0 counts as a tenth of the mean.
    """
    return _change_from_begin(1 - share / 2, 1 + share / 2)


def _stepped(whole: StretchTests) -> float:
    return _change_from_begin(whole.change.before / whole.mean, whole.change.after / whole.mean)


def _change_from_begin(begin: float, end: float) -> float:
    return max(end, 0.0) / max(begin, 0.1) - 1


def _warm_up(series: np.ndarray, truncated: int) -> int:
    """Return the truncation in seconds if the omitted part differs from the rest by more than chance and by more than
    matters, else 0.

    A truncation of half the interval means that MSER found no steady part, not that the first half is a warm-up.
    """
    if not truncated or truncated >= len(series) // 2 - MSER_BATCH:
        return 0
    head, rest = series[:truncated], series[truncated:]
    off = float(head.mean() - rest.mean())
    batched = steady_state.batches(rest) if len(rest) >= BATCHES_FEWEST else None
    if batched is None or rest.mean() <= 0 or abs(off) <= DRIFT * float(rest.mean()):
        return 0
    spread = float(batched.means.std(ddof=1) ** 2 * batched.inflation * batched.length)
    error = float(np.sqrt(spread / len(head) + spread / len(rest)))
    return truncated if abs(off) > HEAD_ERRORS * error else 0


def _rest_is_steady(series: np.ndarray, head: int) -> bool:
    """Return True if the rest is long enough to judge, and would not drift over an interval of the full length."""
    rest = tests_over(series[head:], len(series))
    return not rest.unsteady and not rest.unknown


def _shift(series: np.ndarray, head: int) -> float:
    """Return the change of the mean by the first `head` seconds, as a share of the mean without them."""
    return float(series.mean() / series[head:].mean() - 1) if head else 0.0


# Checkpoint cycles of a measured interval.
#
# A server writes most of its pages in checkpoints, so two and a half cycles are another load than three. Figures are
# taken over whole cycles where the record shows at least CHECKPOINTS of them. A cycle is from one checkpoint to the
# same point of a later one: its end, or its beginning where the server counts there (PostgreSQL before 18). That point
# is known to the sampling interval of its counter, and so are the ends of what is measured.


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


def cut_to_whole_cycles(interval: Interval, marks: Marks | None) -> Interval:
    """Return the interval for the figures: the complete checkpoint cycles, or the full interval if these are too few or
    cover too little."""
    if marks is None:
        return interval
    seen = marks.t[(marks.t > interval.begin) & (marks.t <= interval.end)]
    count = max(len(seen) - 1, 0)
    begin, end = (math.ceil(seen[0]), math.ceil(seen[-1])) if count else (interval.begin, interval.end)
    mean_s = float((seen[-1] - seen[0]) / count) if count else None
    covers = end - begin >= CYCLES_COVER * interval.seconds
    # Few or short cycles would judge only a part of the interval.
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


def missing_checkpoint(interval: Interval, state: ServerState | None) -> Finding | None:
    """Return a caution if no checkpoint was counted in the interval, so that its writes are of a part of a cycle; None
    if checkpoints are unknown, or the server wrote pages for them all the time."""
    if interval.cycles is None or interval.cycles.checkpoints:
        return None
    # The server wrote pages for checkpoints all the time: there is no cycle to miss.
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


def marks_of_counter(checkpoints: Counters | None) -> Marks | None:
    """Return the marks from a count of checkpoints (PostgreSQL), or None if nothing was counted, or the count was
    reset.

    `done` (since 18) counts checkpoints that wrote something, at their end. Else `timed` and `requested` count all
    checkpoints at their beginning; under a load that writes, all of them write something.
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
    checkpoints write all the time: then the count has neither bursts nor complete cycles. None if nothing was counted,
    or the count was reset.
    """
    if line is None or len(line[0]) < 3 or np.any(np.diff(line[1]) < 0):
        return None
    t, total = line
    rate = np.diff(total) / np.diff(t)
    writes = rate > CHECKPOINT_WRITES * rate.max() if rate.max() > 0 else np.zeros(len(rate), dtype=bool)
    # A burst that is cut off by the end of the record has no end. The last complete one counts as quiet until there.
    ends = np.flatnonzero(writes[:-1] & ~writes[1:])
    begins = np.append(np.flatnonzero(~writes[:-1] & writes[1:]) + 1, len(writes))
    next_begin = begins[np.searchsorted(begins, ends, side="right")]
    ends = ends[t[next_begin] - t[ends + 1] >= CHECKPOINT_QUIET_S]
    return Marks(t[1:][ends], CyclesBy.BURSTS, _interval_s(t))


def _interval_s(t: np.ndarray) -> float:
    return round(float(np.median(np.diff(t))), 1)
