"""The tests whether a series stands still: trend and change of level together over a horizon, or rounds of writes."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stallmark.stats import stationarity
from stallmark.stats.stationarity import Batches, Change, Trend
from stallmark.stats.thresholds import (
    BATCHES_FEWEST,
    DRIFT,
    DRIFT_UNKNOWN,
    STEADY_ROUNDS,
    STEADY_ROUNDS_RANGE,
    STEADY_ROUNDS_SLOPE,
    UNSTEADY_P,
)


@dataclass(frozen=True)
class StretchTests:
    """The tests' answers on one stretch of seconds; drifts are over `horizon` seconds."""

    batched: Batches
    trend: Trend
    change: Change
    mean: float
    horizon: float

    @property
    def drift(self) -> float:
        return self._share(self.trend.slope)

    @property
    def drift_low(self) -> float:
        return self._share(self.trend.low)

    @property
    def drift_high(self) -> float:
        return self._share(self.trend.high)

    @property
    def step(self) -> float:
        return (self.change.after - self.change.before) / self.mean

    @property
    def trending(self) -> bool:
        return self.trend.p < UNSTEADY_P and abs(self.drift) > DRIFT

    @property
    def changing(self) -> bool:
        return self.change.p < UNSTEADY_P and abs(self.step) > DRIFT

    @property
    def unsteady(self) -> bool:
        return self.trending or self.changing

    @property
    def unknown(self) -> bool:
        widest = max(abs(self.drift_low), abs(self.drift_high))
        return widest > DRIFT_UNKNOWN

    def _share(self, slope: float) -> float:
        return slope * self.horizon / self.mean


def steady_enough(per_second: np.ndarray, to_measure_s: float) -> bool:
    """Return whether measuring may begin, judged by the seconds that went before, shape (n,).

    It is stricter than `judge`, which calls steady what it cannot show to drift: with few seconds that would be
    everything. Here the slope's whole interval must keep the drift over the `to_measure_s` ahead below DRIFT. So a slow
    warm-up is waited for until it is seen to have ended.
    """
    series = filled(per_second)
    if len(series) < BATCHES_FEWEST or series.mean() <= 0:
        return False
    found = tests_over(series, to_measure_s)
    return not found.changing and found.drift_low > -DRIFT and found.drift_high < DRIFT


def tests_over(series: np.ndarray, horizon: float) -> StretchTests:
    batched = stationarity.batches(series)
    return StretchTests(
        batched, stationarity.trend(batched), stationarity.change(batched), float(series.mean()), horizon
    )


def filled(per_second: np.ndarray) -> np.ndarray:
    """Return the series, with unknown seconds interpolated: a mean of nothing is no sign of anything."""
    values = np.asarray(per_second, dtype=float)
    known = np.flatnonzero(~np.isnan(values))
    if not len(known):
        return np.zeros(0)
    return np.interp(np.arange(len(values)), known, values[known])


def steady_rounds(rounds_ms: Sequence[float]) -> bool:
    """Return whether the mean write latencies (ms) of the last STEADY_ROUNDS rounds are steady. Their range, and the
    rise of a straight line through them, must be small against their mean. False with fewer rounds."""
    last = np.asarray(rounds_ms[-STEADY_ROUNDS:], dtype=float)
    if len(last) < STEADY_ROUNDS or last.mean() <= 0:
        return False
    slope = np.polyfit(np.arange(len(last)), last, 1)[0]
    spread, rise = np.ptp(last), abs(slope) * (len(last) - 1)
    return bool(spread <= STEADY_ROUNDS_RANGE * last.mean() and rise <= STEADY_ROUNDS_SLOPE * last.mean())
