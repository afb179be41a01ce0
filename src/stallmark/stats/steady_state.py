"""Tests whether a series is stationary: of trend, change of level and truncation, over a horizon or rounds."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # submodules are imported on first use

from stallmark.stats.thresholds import (
    BATCHES,
    BATCHES_FEWEST,
    DRIFT,
    DRIFT_UNKNOWN,
    MSER_BATCH,
    RESEMBLANCE_MOST,
    RESEMBLANCE_NOISE,
    STEADY_ROUNDS,
    STEADY_ROUNDS_RANGE,
    STEADY_ROUNDS_SLOPE,
    UNSTEADY_P,
    VALUES_MOST,
)

# All take a series of equally spaced values, shape (n,), without NaN. Neighbouring seconds of a throughput resemble
# each other, and tests that take them for independent find a trend in many a steady run. So the tests are made on the
# means of batches, and their variance is raised by how far neighbouring batches still resemble each other. A
# wandering that takes longer than a tenth of the series cannot be told from a trend. For as long as the series lasts it
# is one.
#
# Neither scipy nor statsmodels has MSER-5, Mann-Kendall's or Pettitt's test. scipy.stats.theilslopes has the slope,
# but its interval takes the batches for independent; tests hold ours against it where they are.


_ROUNDING = 1e-12
"""Relative to the sum of squares. A hundred thousand values in double precision stay below it, and a throughput that
varies by less than its root, a millionth, counts as constant.
"""


@dataclass(frozen=True)
class Batches:
    """Means of successive batches of equal length.

    For example, 600 seconds become 30 batches of 20 s. With a correlation of 0.2 their variance is inflated by 1.2 /
    0.8 = 1.5, so they are worth 20 independent batches.
    """

    means: np.ndarray
    length: int  # values in each batch
    correlation: float  # remaining correlation of neighbouring batches, 0 if none is significant
    skipped: int = 0  # number of first values, which fill no batch

    @property
    def inflation(self) -> float:
        """Return the factor by which the variance of a mean exceeds that of independent batches (AR(1))."""
        return (1 + self.correlation) / (1 - self.correlation)

    @property
    def independent(self) -> float:
        """Return the number of independent batches with the same information as these."""
        return len(self.means) / self.inflation


@dataclass(frozen=True)
class Trend:
    """The trend of a series, with its slope (Sen) and test (Mann-Kendall)."""

    p: float  # probability without a trend, two-sided
    slope: float  # per value
    low: float  # 95 % interval of the slope
    high: float


@dataclass(frozen=True)
class Change:
    """The place where a level changes, if it does: before value `at`. `p` of no change (Pettitt); the means on
    both sides."""

    index: int
    p: float
    before: float
    after: float


def batch_means(series: np.ndarray, length: int) -> np.ndarray:
    count = len(series) // length
    means: np.ndarray = series[len(series) - count * length :].reshape(count, length).mean(axis=1)
    return means


def batches(series: np.ndarray) -> Batches:
    """Return about BATCHES batches. Raise ValueError for fewer than BATCHES_FEWEST values."""
    if len(series) < BATCHES_FEWEST:
        raise ValueError(f"{len(series)} values, at least {BATCHES_FEWEST} are needed")
    length = max(1, round(len(series) / BATCHES))
    fine = -(-len(series) // VALUES_MOST)
    means = batch_means(series, length)
    seen = lag_correlations(means)[0] - RESEMBLANCE_NOISE
    expected = _batch_correlation(batch_means(series, fine), length / fine)
    alike = min(max(seen, expected, 0.0), RESEMBLANCE_MOST)
    return Batches(means, length, alike, len(series) % length)


def lag_correlations(values: np.ndarray) -> tuple[float, float]:
    """Return the correlation of values one and two apart, about a straight line, or about two if the level changes.

    A trend or change would otherwise hide itself: it raises the correlation by which its own test is weakened. Fitting
    lines lowers the correlation, by about 2 / n for each line of n values, which is added again.
    """
    count = len(values)
    cut, _ = _largest_change(values)
    # Fewer than five values on one side are too few for a line of their own.
    parts = [values] if min(cut, count - cut) < 5 else [values[:cut], values[cut:]]
    left = np.concatenate([_without_line(part) for part in parts])
    total, lost = float(left @ left), 2 * len(parts)
    # Everything is on the lines, up to rounding: nothing is left that could be correlated.
    if total <= 1e-18 * float(values @ values):
        return 0.0, 0.0
    # Fitting a line to n values lowers their correlation by about 2 / n: `lost` is added again. In a simulation of 30
    # to 200 values the result is low by 0.01 to 0.03 for independent ones, and by 0.02 to 0.13 at a correlation of 0.6.
    lag1, lag2 = ((count * float(left[lag:] @ left[:-lag]) / total + lost) / (count - 1.5 * lost) for lag in (1, 2))
    return lag1, lag2


def _without_line(values: np.ndarray) -> np.ndarray:
    t = np.arange(len(values)) - (len(values) - 1) / 2
    centred = values - values.mean()
    rest: np.ndarray = centred - t * float(t @ centred) / float(t @ t)
    return rest


def _batch_correlation(values: np.ndarray, size: float) -> float:
    """Return the correlation of neighbouring batches of `size` values, from the values themselves.

    It is that of an AR(1) process with the same inflation of the variance. The values are modelled as a slow AR(1)
    process with quick noise: values 1, 2, … apart have correlations a·φ, a·φ², … For example, lag 1 = 0.4 and lag 2 =
    0.32 give φ = 0.8 and a = 0.5.
    """
    lag1, lag2 = lag_correlations(values)
    # Twice the standard error of a correlation of independent values: less is taken for chance.
    if lag1 < 2 / np.sqrt(len(values)):
        return 0.0
    # φ cannot be below the correlation at lag 1; above 0.98 the process would count as a trend.
    phi = min(max(lag2 / lag1, lag1), 0.98)
    slow = min(lag1 / phi, 1.0)
    lags = np.arange(1, max(int(size), 1))
    of_a_batch = (1 + 2 * slow * float(np.sum((1 - lags / size) * phi**lags))) / size
    inflation = (1 + 2 * slow * phi / (1 - phi)) / (size * of_a_batch)
    return (inflation - 1) / (inflation + 1)


def truncation(series: np.ndarray) -> int:
    """Return the number of values to drop at the beginning: MSER-5 (White, Cobb, Spratt: A comparison of five
    steady-state truncation heuristics for simulation, WSC 2000).

    The rest then has the smallest standard error of its mean. Only the first half is searched: beyond it too little is
    left, and an answer of just half means that no steady part was found.
    """
    means = batch_means(series, MSER_BATCH)
    count = len(means)
    if count < 2:
        return 0
    left = np.arange(count, 0, -1)
    centred = means - means.mean()
    total, squares = np.cumsum(centred[::-1])[::-1], np.cumsum((centred**2)[::-1])[::-1]
    error = np.maximum((squares - total**2 / left) / left**2, 0.0)
    searched = error[: count // 2 + 1]
    # The first of those that differ by no more than what rounding leaves of differences of large sums.
    equal = _ROUNDING * float(means @ means) / left[: len(searched)] ** 2
    best = int(np.argmax(searched <= searched.min() + equal))
    return best * MSER_BATCH + (len(series) % MSER_BATCH if best else 0)


def trend(batched: Batches) -> Trend:
    """Return the Mann-Kendall test and Sen's slope, per value of the series and not per batch (Gilbert: Statistical
    methods for environmental pollution monitoring, 1987, ch. 16), with the variance corrected for autocorrelation (as
    Hamed, Rao: A modified Mann-Kendall trend test for autocorrelated data, J. Hydrology 204 (1998) 182)."""
    means = batched.means
    count = len(means)
    left, right = np.triu_indices(count, 1)
    rises = means[right] - means[left]
    slopes = np.sort(rises / (right - left)) / batched.length
    score = float(np.sign(rises).sum())
    _, ties = np.unique(means, return_counts=True)
    variance = _pairs_variance(count) - float(_pairs_variance(ties).sum())
    deviation = float(np.sqrt(variance * batched.inflation))
    z = (abs(score) - 1) / deviation if score and deviation else 0.0
    half = scipy.special.ndtri(0.975) * deviation / 2
    middle = (len(slopes) - 1) / 2
    low, high = np.interp([middle - half, middle + half], np.arange(len(slopes)), slopes)
    return Trend(float(2 * scipy.special.ndtr(-z)), float(np.median(slopes)), float(low), float(high))


def _pairs_variance(count: Any) -> Any:
    """Return the variance of the sum of the signs of all pairs of `count` independent values, a number or an array."""
    return count * (count - 1.0) * (2.0 * count + 5.0) / 18.0


def change(batched: Batches) -> Change:
    """Return Pettitt's test for one change of the level (Appl. Statistics 28 (1979) 126), its statistic reduced by the
    square root of the inflation as a sum of ranks is."""
    means = batched.means
    count = len(means)
    cut, statistic = _largest_change(means)
    p = min(1.0, 2 * float(np.exp(-6 * statistic**2 / batched.inflation / (count**3 + count**2))))
    return Change(batched.skipped + cut * batched.length, p, float(means[:cut].mean()), float(means[cut:].mean()))


def _largest_change(means: np.ndarray) -> tuple[int, float]:
    """Return the index of the mean at which the level changes most, and Pettitt's K there.

    K counts, for all pairs of means on both sides of the cut, the rising minus the falling ones. Pairs on one side
    cancel out.
    """
    signs = np.sign(means[:, None] - means[None, :])
    statistic = np.abs(np.cumsum(signs.sum(axis=1)))[:-1]
    return int(np.argmax(statistic)) + 1, float(statistic.max())


# The tests whether a series stands still: trend and change of level together over a horizon, or rounds of writes.


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
    """Return True if measuring may begin, judged by the seconds that went before, shape (n,).

    It is stricter than `judge`, which calls steady what it cannot show to drift: with few seconds that would be
    everything. Here the slope's whole interval must keep the drift over the `to_measure_s` ahead below DRIFT. So a slow
    warm-up is waited for until it is seen to have ended.
    """
    series = filled(per_second)
    if len(series) < BATCHES_FEWEST or series.mean() <= 0:
        return False
    tests = tests_over(series, to_measure_s)
    return not tests.changing and tests.drift_low > -DRIFT and tests.drift_high < DRIFT


def tests_over(series: np.ndarray, horizon: float) -> StretchTests:
    batched = batches(series)
    return StretchTests(batched, trend(batched), change(batched), float(series.mean()), horizon)


def filled(per_second: np.ndarray) -> np.ndarray:
    """Return the series, with unknown seconds interpolated: a mean of nothing is not a sign of anything."""
    values = np.asarray(per_second, dtype=float)
    known = np.flatnonzero(~np.isnan(values))
    if not len(known):
        return np.zeros(0)
    return np.interp(np.arange(len(values)), known, values[known])


def steady_rounds(rounds_ms: Sequence[float]) -> bool:
    """Return True if the mean write latencies (ms) of the last STEADY_ROUNDS rounds are steady. Their range, and the
    rise of a straight line through them, must be small against their mean. False with fewer rounds."""
    last = np.asarray(rounds_ms[-STEADY_ROUNDS:], dtype=float)
    if len(last) < STEADY_ROUNDS or last.mean() <= 0:
        return False
    slope = np.polyfit(np.arange(len(last)), last, 1)[0]
    spread, rise = np.ptp(last), abs(slope) * (len(last) - 1)
    return bool(spread <= STEADY_ROUNDS_RANGE * last.mean() and rise <= STEADY_ROUNDS_SLOPE * last.mean())
