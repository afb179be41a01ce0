"""Statistics of a comparison, in which the replicate is the run, and the dependence of one series on another.

Rates, times and counts vary from run to run by a share of themselves, so everything is computed on natural logarithms
and returned as ratios. Student's t throughout: W. S. Gosset (1908); without pairs with B. L. Welch's degrees of freedom
(Biometrika 34, 1947); several metrics by S. Holm (Scand. J. Statist. 6, 1979). Power by the noncentral t distribution
(J. Cohen, Statistical Power Analysis, 1988), exactly and not by its normal approximation, which promises too much of
three runs.

The functions of arrays take runs on the last axis, so that a simulation judges all its experiments at once.

The formulas are based on scipy.special, and tests compare them with scipy.stats. Calling scipy.stats instead saves no
line: it gives NaN for runs that are equal to the last digit, and it takes longer to import than NumPy and scipy.special
together. statsmodels, for Holm and the power of a test, would bring pandas with it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy  # submodules are imported on first use

from stallmark.stats.thresholds import CONFIDENCE, CORRELATION_PAIRS, POWER, REPLICATES

MOST_RUNS = 1000
"""The number at which the search for a number of runs ends: more are never made."""


@dataclass(frozen=True)
class Student:
    """Mean of logarithms with its standard error and degrees of freedom; arrays for many experiments."""

    mean: np.ndarray
    error: np.ndarray
    df: np.ndarray

    def interval(self, confidence: float = CONFIDENCE) -> tuple[np.ndarray, np.ndarray]:
        reach = scipy.special.stdtrit(self.df, (1 + confidence) / 2) * self.error
        return self.mean - reach, self.mean + reach

    def p(self) -> np.ndarray:
        """Return the two-sided p-value of no difference. Runs that are equal to the last digit leave no doubt in
        either direction."""
        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.abs(self.mean) / self.error
        p = 2 * scipy.special.stdtr(self.df, -np.where(self.error > 0, t, 0.0))
        return np.where(self.error > 0, p, np.where(self.mean == 0, 1.0, 0.0))


def paired(log_a: np.ndarray, log_b: np.ndarray) -> Student:
    """Return the mean of ln b − ln a, each run of B against the run of A that it is paired with. At least two pairs."""
    differences = np.asarray(log_b) - np.asarray(log_a)
    n = differences.shape[-1]
    error = differences.std(axis=-1, ddof=1) / np.sqrt(n)
    return Student(differences.mean(axis=-1), error, np.full(error.shape, n - 1.0))


def welch(log_a: np.ndarray, log_b: np.ndarray, inflation: tuple[float, float] = (1.0, 1.0)) -> Student:
    """Return the mean of ln b − ln a for runs without partners; the two variances may differ. At least two runs
    each. `inflation`: the factors by which the variances of both means exceed those of independent values, which are
    then fewer."""
    a, b = np.asarray(log_a), np.asarray(log_b)
    n, m = (max(side.shape[-1] / factor, 2.0) for side, factor in zip((a, b), inflation, strict=True))
    va, vb = a.var(axis=-1, ddof=1) / n, b.var(axis=-1, ddof=1) / m
    total = va + vb
    with np.errstate(divide="ignore", invalid="ignore"):
        of_a = va / total
        df = 1 / (of_a**2 / (n - 1) + (1 - of_a) ** 2 / (m - 1))
    return Student(b.mean(axis=-1) - a.mean(axis=-1), np.sqrt(total), np.where(total > 0, df, float(n + m - 2)))


def holm(p_values: Sequence[float]) -> list[float]:
    """Return adjusted p-values in the order given: at most α wrong claims among all of them together."""
    order = np.argsort(p_values, kind="stable")
    steps = np.asarray(p_values, dtype=float)[order] * np.arange(len(order), 0, -1)
    adjusted = np.empty(len(order))
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted.tolist()


def pooled_spread(groups: Sequence[Sequence[Sequence[float]]]) -> tuple[float, int] | None:
    """Return the standard deviation of ln of single runs within groups, and its degrees of freedom, or None if every
    group has one run.

    A group has the values of its runs step by step. The steps of one run share its fate, so they add no degrees of
    freedom: a group's mean square is the average over its steps. Groups of one run contribute nothing. Values must be
    positive.
    """
    squares, df = 0.0, 0
    for group in groups:
        logs = [np.log(step) for step in group if len(step) > 1]
        if logs:
            more = max(map(len, logs)) - 1
            squares += more * float(
                np.average([log.var(ddof=1) for log in logs], weights=[len(log) - 1 for log in logs])
            )
            df += more
    return (float(np.sqrt(squares / df)), df) if df else None


def spread_interval(spread: float, df: int) -> tuple[float, float]:
    """Return the bounds of the true standard deviation (χ²): of few runs it is itself known only roughly."""
    tail = (1 - CONFIDENCE) / 2
    low, high = (np.sqrt(df / scipy.special.chdtri(df, side)) for side in (tail, 1 - tail))
    return float(spread * low), float(spread * high)


def power(shift: float | np.ndarray, df: float | np.ndarray) -> np.ndarray:
    """Return the probability that a two-sided t-test shows a true difference of `shift` standard errors of its
    own estimate."""
    critical = scipy.special.stdtrit(df, (1 + CONFIDENCE) / 2)
    # A test that shows the opposite: next to nothing of a large shift, where the library's function gives NaN.
    opposite = np.where(np.asarray(shift) < 5, scipy.special.nctdtr(df, np.minimum(shift, 5), -critical), 0.0)
    return 1 - scipy.special.nctdtr(df, shift, critical) + opposite


@lru_cache(maxsize=1000)
def shift_for(df: float) -> float:
    """Return the true difference, in standard errors of the estimate, that is shown with the power of POWER."""
    low, high = 0.0, 1.0
    while float(power(high, df)) < POWER:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if float(power(middle, df)) < POWER else (low, middle)
    return high


def detectable(error: float, df: float) -> float:
    """Return the smallest ratio less 1 that such an estimate shows with the power of POWER: 0.03 is 3 %."""
    return float(np.expm1(shift_for(df) * error))


def detectable_with(runs: int, spread: float, paired: bool = True) -> float:
    """Return the smallest ratio less 1 for a plan: `runs` of each side, each run scattering by `spread` (standard
    deviation of its ln)."""
    return detectable(spread * np.sqrt(2 / runs), (runs - 1.0) * (1 if paired else 2))


def runs_needed(difference: float, spread: float, paired: bool = True) -> int | None:
    """Return the number of runs of each side that show a true ratio of 1 + `difference` with the power of POWER: by the
    t-test of pairs, or by Welch's with equal variances.

    REPLICATES at least; None beyond MOST_RUNS. `spread` is the standard deviation of ln of a single run.
    """
    wanted = abs(np.log1p(difference))
    if spread == 0:
        return REPLICATES
    runs = np.arange(REPLICATES, MOST_RUNS + 1)
    enough = power(wanted / (spread * np.sqrt(2 / runs)), (runs - 1.0) * (1 if paired else 2)) >= POWER
    return int(runs[np.argmax(enough)]) if enough.any() else None


# The dependence of one series on another: strength, lag and size, and the correlation of changes. Pure functions.

# Everything is done on changes. Levels of two series that drift go together whatever they are; their changes do not.

_ALPHA = 1 - CONFIDENCE
_REACH = 10
"""Seconds to either side in which a lag is searched: commits follow their I/O within a second, and collectors date
what they saw to a second or two."""
_DRAWS = 400
_BLOCKS = 500
_ORDER = 3
_USUAL = 3.0


def elasticity(y: np.ndarray, x: np.ndarray) -> tuple[float, float, float] | None:
    """Return d ln y / d ln x with its 95 % interval, by least squares on changes of logarithms.

    Changes of x far beyond the usual weigh less (C. L. Mallows, 1975), whatever y did then: unweighted, one second with
    a wrong reading outweighs a minute. The standard error is W. K. Newey and K. D. West's (Econometrica 55, 1987),
    which holds for dependent neighbouring changes with unequal variances. Its number of lags is by their rule of 1994,
    at least two because differencing ties each change to the next. None with too few changes, or a constant x. Values ≤
    0 and NaN are unknown. The sum over lags is six lines; statsmodels' would bring pandas with it.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        dy, dx = (np.diff(np.log(np.where(series > 0, series, np.nan))) for series in (y, x))
    known = ~(np.isnan(dy) | np.isnan(dx))
    dy, dx = dy[known], dx[known]
    n = len(dx)
    if n < CORRELATION_PAIRS:
        return None
    weight = _weights(dx)
    dy, dx = (changes - np.average(changes, weights=weight) for changes in (dy, dx))
    power = float(weight @ dx**2)
    # x does not change, so no slope can be fitted.
    if power <= 1e-12 * n:
        return None
    slope = float((weight * dx) @ dy) / power
    moment = weight * dx * (dy - slope * dx)
    lags = min(max(2, int(4 * (n / 100) ** (2 / 9))), n // 4)
    variance = float(moment @ moment)
    for lag in range(1, lags + 1):
        variance += 2 * (1 - lag / (lags + 1)) * float(moment[lag:] @ moment[:-lag])
    reach = float(scipy.special.stdtrit(n - 2, 1 - _ALPHA / 2)) * np.sqrt(max(variance, 0.0) * n / (n - 2)) / power
    return slope, slope - float(reach), slope + float(reach)


def _weights(dx: np.ndarray) -> np.ndarray:
    """Return 1, and (bound / distance)⁴ for what is further than `_USUAL` standard deviations from the median; these
    are from the median absolute deviation."""
    far = np.abs(dx - np.median(dx))
    bound = _USUAL * 1.4826 * float(np.median(far))
    # No spread, no outliers: all weigh the same.
    weights: np.ndarray = np.minimum(1.0, bound / np.maximum(far, 1e-300)) ** 4 if bound > 0 else np.ones(len(dx))
    return weights


def lag(y: np.ndarray, x: np.ndarray, reach: int = _REACH) -> tuple[int, int, int] | None:
    """Return the number of steps by which y follows x, with its 95 % interval; negative if y comes first.

    It is where the cross-correlation of the changes is largest, after both went through the filter that makes white
    noise of the changes of x (G. E. P. Box and G. M. Jenkins, Time Series Analysis, ch. 11): without it x's own
    autocorrelation spreads the peak. The interval is from a bootstrap of blocks (H. R. Künsch, Annals of Statistics 17,
    1989; blocks that do not overlap), its draws the same every time. None if no lag is significant.
    """
    dy, dx = np.diff(y), np.diff(x)
    known = ~(np.isnan(dy) | np.isnan(dx))
    n = len(dx)
    reach = min(reach, n // 8)
    if known.sum() < max(4 * CORRELATION_PAIRS, 4 * reach) or reach < 1:
        return None
    u, v = _whitened(np.where(known, dx, np.nanmean(dx)), np.where(known, dy, np.nanmean(dy)))
    n = len(u)
    inner = slice(reach, n - reach)
    lags = np.arange(-reach, reach + 1)
    spans = np.lib.stride_tricks.sliding_window_view(v, 2 * reach + 1)  # row t: v[t] … v[t + 2 reach]
    products = u[inner, None] * spans[: n - 2 * reach]
    scale = float(u.std() * v.std())
    mean = products.mean(axis=0) / scale if scale > 0 else np.zeros(len(lags))
    best = int(np.argmax(np.abs(mean)))
    # Of 2 reach + 1 correlations of independent series the largest is beyond this in one of twenty.
    chance = float(scipy.special.ndtri(1 - _ALPHA / 2 / len(lags))) / np.sqrt(len(products))
    if abs(mean[best]) <= chance:
        return None
    # Blocks at least as long as the lags searched, so that a lag's pairs stay within a block.
    length = max(reach, -(-len(products) // _BLOCKS))
    whole = len(products) // length
    sums = products[: whole * length].reshape(whole, length, -1).sum(axis=1)
    draws = np.random.default_rng(1).multinomial(whole, np.full(whole, 1 / whole), size=_DRAWS)
    drawn_lags = lags[np.argmax(np.abs(draws @ sums), axis=1)]
    low, high = np.quantile(drawn_lags, [_ALPHA / 2, 1 - _ALPHA / 2], method="nearest")
    best_lag = int(lags[best])
    return best_lag, min(int(low), best_lag), max(int(high), best_lag)


def _whitened(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return both after the autoregressive filter fitted to x."""
    x, y = x - x.mean(), y - y.mean()
    past = np.column_stack([x[_ORDER - k : len(x) - k] for k in range(1, _ORDER + 1)])
    weights, *_ = np.linalg.lstsq(past, x[_ORDER:], rcond=None)
    filtered = [series[_ORDER:].copy() for series in (x, y)]
    for k, weight in enumerate(weights, 1):
        for series, out in zip((x, y), filtered, strict=True):
            out -= weight * series[_ORDER - k : len(series) - k]
    return filtered[0], filtered[1]


def binned(series: np.ndarray, seconds: int) -> np.ndarray:
    """Return the means of `seconds` values each, without an incomplete last one; NaN if a second is unknown."""
    whole = len(series) // seconds
    return series[: whole * seconds].reshape(whole, seconds).mean(axis=1)


# The correlation of second-to-second changes: do transactions per second fall when reads stall?
#
# Differencing makes neighbouring values of a series depend on one another. The plain Fisher interval would then be too
# narrow: it misses the truth in about 11 % of independent series instead of 5 %. So the number of pairs is reduced to
# an effective one by Bartlett's formula. scipy.stats.pearsonr takes all pairs for independent, so its interval is not
# used.

_LAGS = 5
_Z95 = 1.959964
_MOST = 1 - 1e-12  # largest r with a finite Fisher's z


@dataclass(frozen=True)
class Correlation:
    """Correlation of the per-second changes of two series, with its 95 % interval (Fisher z)."""

    left: str
    right: str
    right_unit: str  # "ms per I/O" or "stall-ms per second"
    n: int
    r: float
    low: float
    high: float


def correlate_changes(
    left: np.ndarray, right: np.ndarray, left_name: str, right_name: str, unit: str
) -> Correlation | None:
    """Return the correlation of the changes of two per-second series (equal length, NaN if unknown).

    None if too few pairs are known, or where one of the series never changes.
    """
    x, y = np.diff(left), np.diff(right)
    known = ~(np.isnan(x) | np.isnan(y))
    x, y = x[known], y[known]
    n = len(x)
    if n < CORRELATION_PAIRS or _constant(x) or _constant(y):
        return None
    r = float(np.clip(np.corrcoef(x, y)[0, 1], -_MOST, _MOST))
    width = _Z95 / math.sqrt(max(effective_size(x, y) - 3, 1))
    z = math.atanh(r)
    return Correlation(left_name, right_name, unit, n, r, math.tanh(z - width), math.tanh(z + width))


def effective_size(x: np.ndarray, y: np.ndarray) -> float:
    """Return the number of independent pairs with the same information as these: n / (1 + 2 Σ ρx(k) ρy(k)), at most
    n."""
    lags = range(1, min(_LAGS, len(x) // 4) + 1)
    shared = sum(_autocorrelation(x, lag) * _autocorrelation(y, lag) for lag in lags)
    return len(x) / max(1.0, 1 + 2 * shared)


def _autocorrelation(series: np.ndarray, lag: int) -> float:
    centred = series - series.mean()
    return float(centred[lag:] @ centred[:-lag] / (centred @ centred))


def _constant(series: np.ndarray) -> bool:
    return bool(np.ptp(series) <= 1e-9 * max(1.0, float(np.abs(series).max())))
