"""Was the server in a steady state while it was measured? Judged on the throughput of each second (design.md, 9).

Where transactions arrive at a rate of their own the throughput is that rate whatever the server does, so there it is
the mean latency. "Never became steady" is a result and not a fault: a cache that warms for hours, a device whose spare
room runs out, a queue without end.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import special

from stallmark.format import by, percent, signed
from stallmark.stats import stationarity
from stallmark.stats.steady_state import Tested, filled, tests_over
from stallmark.stats.thresholds import BATCHES_FEWEST, DRIFT, HEAD_ERRORS, HEAD_MATTERS, MSER_BATCH, UNSTEADY_P

Judgement = Literal["steady", "became steady late", "never became steady", "too short to tell"]
METHOD = (
    "Means of {count} batches of {length} s each (correlation of neighbours {alike:.2f}, which raises the variance "
    "{inflation:.1f}-fold): Mann-Kendall test for a trend with Sen's slope and its 95 % interval, Pettitt's test for a "
    "change of the level, MSER-5 for a warm-up at the beginning. Unsteady is what is significant (p < {p:g} each) "
    "and above {drift} of the mean over the interval."
)


@dataclass(frozen=True)
class Steadiness:
    """Whether one measured interval was steady. Shares are of the mean of the interval; what was not judged is None.

    `drift` is Sen's slope over the whole interval with its 95 % interval, `slope_per_h` the same per hour.
    """

    verdict: Judgement
    sentence: str
    of: str  # what was judged: "TPS" or "mean latency"
    seconds: int  # how many were judged
    method: str
    batches: int = 0
    batch_s: int = 0
    independent: float = 0.0  # batches, after what neighbours have in common
    drift: float | None = None
    drift_low: float | None = None
    drift_high: float | None = None
    slope_per_h: float | None = None
    slope_per_h_low: float | None = None
    slope_per_h_high: float | None = None
    trend_p: float | None = None
    change: float | None = None  # the level's largest step, shown or not
    change_at_s: int | None = None  # after so many seconds of the interval
    change_p: float | None = None
    truncation_s: int = 0  # what MSER-5 would leave out
    warm_up_s: int = 0  # of it, what clearly lies off the rest: a warm-up still inside the measured interval
    warm_up_shift: float = 0.0  # by how much of itself that moves the interval's mean

    @property
    def p(self) -> float:
        """Of no trend and no change, both tests together; 0 for a warm-up inside, which other means show."""
        if self.verdict == "became steady late":
            return 0.0
        known = [one for one in (self.trend_p, self.change_p) if one is not None]
        return min(1.0, 2 * min(known, default=0.0))

    @property
    def incomparable(self) -> bool:
        """The figures are not those of a steady state, by more than what is tolerated."""
        late = self.verdict == "became steady late" and abs(self.warm_up_shift) > HEAD_MATTERS
        return self.verdict == "never became steady" or late


def judge(per_second: np.ndarray, of: str = "TPS") -> Steadiness:
    """The verdict on the seconds of one interval, shape (n,); NaN where a second had no value."""
    series = filled(per_second)
    seconds = len(series)
    if seconds < BATCHES_FEWEST or series.mean() <= 0:
        why = (
            f"{seconds} s are too short to tell whether it was steady: at least {BATCHES_FEWEST} s are needed."
            if seconds < BATCHES_FEWEST
            else f"Whether it was steady cannot be told: {of} was 0."
        )
        return Steadiness("too short to tell", why, of, seconds, "Not judged.")
    whole = tests_over(series, seconds)
    truncated = stationarity.truncation(series)
    head = _warm_up(series, truncated)
    verdict, sentence = _verdict(series, whole, truncated, head, of)
    per_hour = 3600 / seconds
    batched = whole.batched
    return Steadiness(
        verdict=verdict,
        sentence=sentence,
        of=of,
        seconds=seconds,
        method=METHOD.format(
            count=len(batched.means),
            length=batched.length,
            alike=batched.alike,
            inflation=batched.inflation,
            p=UNSTEADY_P,
            drift=percent(DRIFT),
        ),
        batches=len(batched.means),
        batch_s=batched.length,
        independent=batched.independent,
        drift=whole.drift,
        drift_low=whole.drift_low,
        drift_high=whole.drift_high,
        slope_per_h=whole.drift * per_hour,
        slope_per_h_low=whole.drift_low * per_hour,
        slope_per_h_high=whole.drift_high * per_hour,
        trend_p=whole.trend.p,
        change=whole.step,
        change_at_s=whole.change.at,
        change_p=whole.change.p,
        truncation_s=truncated,
        warm_up_s=head,
        warm_up_shift=_shift(series, head),
    )


def incomparable(judged: Sequence[Steadiness]) -> list[Steadiness]:
    """Of several runs those whose figures are not a steady state's, by more than chance among so many.

    Each verdict alone is wrong once in twenty steady runs, so of six steady runs one often would be. Beyond chance is
    one whose own p-value says so among so many (Bonferroni), and all, where so many at once are too many (binomial):
    of six steady runs two would be in one set of thirty.
    """
    found, level = [one for one in judged if one.incomparable], 2 * UNSTEADY_P
    if found and special.bdtrc(len(found) - 1, len(judged), level) < level:
        return found
    return [one for one in found if one.p * len(judged) < level]


def _verdict(series: np.ndarray, whole: Tested, truncated: int, head: int, of: str) -> tuple[Judgement, str]:
    seconds, shift = len(series), _shift(series, head)
    if head and (whole.unsteady or abs(shift) > HEAD_MATTERS) and _rest_is_steady(series, head):
        return "became steady late", (
            f"It became steady only {head} s after measuring had begun, of {seconds} s: these moved the mean of {of} "
            f"by {signed(shift)}."
        )
    if whole.unsteady:
        return "never became steady", f"It never became steady: {_how(whole, of)}."
    over = f"over the {seconds} s measured"
    if whole.unknown:
        may = f"may have changed by anything from {signed(whole.drift_low)} to {signed(whole.drift_high)}"
        if max(-whole.drift_low, whole.drift_high) > 1:
            may = "scatters too much"
        return "too short to tell", f"{seconds} s are too short to tell whether it was steady: {of} {may}."
    started = f", after a warm-up of {head} s that moved the mean by {signed(shift)}" if head else ""
    return "steady", f"Steady: {of} changed by {_drift(whole)} {over}{started}."


def _how(found: Tested, of: str) -> str:
    over = f"the {round(found.horizon)} s measured"
    if found.changing and (not found.trending or found.change.p < found.trend.p):
        return f"{of} {by(found.step)} after {found.change.at} s of {over} ({_chance(found.change.p)})"
    return f"{of} {by(found.drift)} ({_interval(found)}) over {over} ({_chance(found.trend.p)})"


def _chance(p: float) -> str:
    return "p < 0.001" if p < 0.001 else f"p = {p:.2g}"


def _drift(found: Tested) -> str:
    return f"{signed(found.drift)} ({_interval(found)})"


def _interval(found: Tested) -> str:
    return f"95 % interval {signed(found.drift_low)} to {signed(found.drift_high)}"


def _warm_up(series: np.ndarray, truncated: int) -> int:
    """The truncation, if what it leaves out lies off the rest by more than chance and more than matters; else 0.

    A truncation of half means that MSER found no steady part, not that the first half is a warm-up.
    """
    if not truncated or truncated >= len(series) // 2 - MSER_BATCH:
        return 0
    head, rest = series[:truncated], series[truncated:]
    off = float(head.mean() - rest.mean())
    batched = stationarity.batches(rest) if len(rest) >= BATCHES_FEWEST else None
    if batched is None or rest.mean() <= 0 or abs(off) <= DRIFT * float(rest.mean()):
        return 0
    spread = float(batched.means.std(ddof=1) ** 2 * batched.inflation * batched.length)
    error = float(np.sqrt(spread / len(head) + spread / len(rest)))
    return truncated if abs(off) > HEAD_ERRORS * error else 0


def _rest_is_steady(series: np.ndarray, head: int) -> bool:
    """Whether what follows would not drift over an interval as long as the whole, and there is enough of it."""
    rest = tests_over(series[head:], len(series))
    return not rest.unsteady and not rest.unknown


def _shift(series: np.ndarray, head: int) -> float:
    """By how much of the mean without the first `head` seconds the mean with them differs from it."""
    return float(series.mean() / series[head:].mean() - 1) if head else 0.0
