"""The judgement whether the server was in a steady state while it was measured.

It is made on the throughput of each second. In an open loop throughput is the rate of arrivals whatever the server
does, so there it is made on the mean latency. "Never became steady" is a result and not a fault: a cache that warms for
hours, a device whose spare room runs out, a queue without end.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import scipy  # its parts are imported when first asked for

from stallmark.analysis.finding import Finding, Kind, caution, info, invalid
from stallmark.stats import steady_state
from stallmark.stats.steady_state import StretchTests, filled, tests_over
from stallmark.stats.thresholds import BATCHES_FEWEST, DRIFT, HEAD_ERRORS, HEAD_MATTERS, MSER_BATCH, UNSTEADY_P


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
    """The steadiness of one measured interval. Other shares are of the mean; what was not judged is None.

    `drift` is the change from the begin to the end of the line with Sen's slope, as a share of its begin, with its 95 %
    interval; `slope_per_h` the slope per hour, as a share of the mean.
    """

    verdict: Judgement
    finding: Finding
    of: Rate
    seconds: int  # how many were judged
    batches: int = 0
    batch_s: int = 0
    alike: float = 0.0  # correlation of neighbouring batches
    inflation: float = 1.0  # of the variance of their mean, because of it
    independent: float = 0.0  # batches, after what neighbours have in common
    drift: float | None = None
    drift_low: float | None = None
    drift_high: float | None = None
    slope_per_h: float | None = None
    slope_per_h_low: float | None = None
    slope_per_h_high: float | None = None
    trend_p: float | None = None
    change: float | None = None  # the level's largest step, shown or not, as a share of the level before
    change_at_s: int | None = None  # after so many seconds of the interval
    change_p: float | None = None
    truncation_s: int = 0  # what MSER-5 would leave out
    warm_up_s: int = 0  # of it, what clearly lies off the rest: a warm-up still inside the measured interval
    warm_up_shift: float = 0.0  # by how much of itself that moves the interval's mean

    @property
    def p(self) -> float:
        """Return the p-value of no trend and no change, both tests together; 0 for a warm-up inside, which is shown by
        other means."""
        if self.verdict == Judgement.LATE:
            return 0.0
        known = [one for one in (self.trend_p, self.change_p) if one is not None]
        return min(1.0, 2 * min(known, default=0.0))

    @property
    def incomparable(self) -> bool:
        """Tell whether the figures are off those of a steady state by more than is tolerated."""
        late = self.verdict == Judgement.LATE and abs(self.warm_up_shift) > HEAD_MATTERS
        return self.verdict == Judgement.NEVER or late


def judge(per_second: np.ndarray, of: Rate = Rate.TPS) -> Steadiness:
    """Return the verdict on the seconds of one interval, shape (n,); NaN where a second had no value."""
    series, seconds = filled(per_second), len(per_second)
    if seconds < BATCHES_FEWEST:
        few = caution(SteadyKind.TOO_FEW_SECONDS, seconds=seconds, needed_s=BATCHES_FEWEST)
        return Steadiness(Judgement.TOO_SHORT, few, of, seconds)
    if not len(series) or series.mean() <= 0:
        return Steadiness(Judgement.TOO_SHORT, caution(SteadyKind.NOTHING_DONE, of=of), of, seconds)
    whole = tests_over(series, seconds)
    truncated = steady_state.truncation(series)
    head = _warm_up(series, truncated)
    verdict, finding = _verdict(series, whole, head, of)
    per_hour = 3600 / seconds
    batched = whole.batched
    return Steadiness(
        verdict=verdict,
        finding=finding,
        of=of,
        seconds=seconds,
        batches=len(batched.means),
        batch_s=batched.length,
        alike=float(batched.alike),
        inflation=float(batched.inflation),
        independent=batched.independent,
        drift=grown(whole.drift),
        drift_low=grown(whole.drift_low),
        drift_high=grown(whole.drift_high),
        slope_per_h=whole.drift * per_hour,
        slope_per_h_low=whole.drift_low * per_hour,
        slope_per_h_high=whole.drift_high * per_hour,
        trend_p=whole.trend.p,
        change=_stepped(whole),
        change_at_s=whole.change.at,
        change_p=whole.change.p,
        truncation_s=truncated,
        warm_up_s=head,
        warm_up_shift=_shift(series, head),
    )


def incomparable(judged: Sequence[Steadiness]) -> list[Steadiness]:
    """Return the runs whose figures are not those of a steady state, by more than chance among so many.

    Each verdict alone is wrong in one of twenty steady runs, so among six steady runs one often would be. A single run
    is beyond chance where its own p-value says so among so many (Bonferroni). All are where so many at once are too
    many (binomial): of six steady runs two would be in one set of thirty.
    """
    found, level = [one for one in judged if one.incomparable], 2 * UNSTEADY_P
    if found and scipy.special.bdtrc(len(found) - 1, len(judged), level) < level:
        return found
    return [one for one in found if one.p * len(judged) < level]


def _verdict(series: np.ndarray, whole: StretchTests, head: int, of: Rate) -> tuple[Judgement, Finding]:
    shift = _shift(series, head)
    facts: dict[str, Any] = {"of": of, "seconds": len(series)}
    if head and (whole.unsteady or abs(shift) > HEAD_MATTERS) and _rest_is_steady(series, head):
        make = invalid if abs(shift) > HEAD_MATTERS else caution
        return Judgement.LATE, make(SteadyKind.STEADY_LATE, **facts, warm_up_s=head, shift=shift)
    ends = {"drift": whole.drift, "drift_low": whole.drift_low, "drift_high": whole.drift_high}
    drift = {name: grown(share) for name, share in ends.items()}
    if whole.unsteady:
        if whole.changing and (not whole.trending or whole.change.p < whole.trend.p):
            change = {"change": _stepped(whole), "at_s": whole.change.at, "p": whole.change.p}
            return Judgement.NEVER, invalid(SteadyKind.LEVEL_CHANGED, **facts, **change)
        return Judgement.NEVER, invalid(SteadyKind.TREND, **facts, **drift, p=whole.trend.p)
    if whole.unknown:
        return Judgement.TOO_SHORT, caution(SteadyKind.NOT_TOLD, **facts, **drift)
    return Judgement.STEADY, info(SteadyKind.STEADY, **facts, **drift, warm_up_s=head, shift=shift)


def grown(share: float) -> float:
    """Return the change from the begin to the end of a straight line that rises by `share` of its mean, as a share of
    its begin. Nothing falls by more than all of it, and what began with next to nothing began with a tenth."""
    return _of_begin(1 - share / 2, 1 + share / 2)


def _stepped(whole: StretchTests) -> float:
    return _of_begin(whole.change.before / whole.mean, whole.change.after / whole.mean)


def _of_begin(begin: float, end: float) -> float:
    return max(end, 0.0) / max(begin, 0.1) - 1


def _warm_up(series: np.ndarray, truncated: int) -> int:
    """Return the truncation in seconds, if what it leaves out lies off the rest by more than chance and by more than
    matters; else 0.

    A truncation of half means that MSER found no steady part, not that the first half is a warm-up.
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
    """Tell whether the rest would not drift over an interval as long as the whole, and is long enough to tell."""
    rest = tests_over(series[head:], len(series))
    return not rest.unsteady and not rest.unknown


def _shift(series: np.ndarray, head: int) -> float:
    """Return the change of the mean by the first `head` seconds, as a share of the mean without them."""
    return float(series.mean() / series[head:].mean() - 1) if head else 0.0
