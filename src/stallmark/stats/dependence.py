"""The dependence of one series on another: strength, lag and size, and the correlation of changes. Pure functions."""

import math
from dataclasses import dataclass

import numpy as np
import scipy  # submodules are imported on first use

from stallmark.stats.thresholds import CONFIDENCE, CORRELATION_PAIRS

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
