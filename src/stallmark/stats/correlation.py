"""The correlation of second-to-second changes: do transactions per second fall when reads stall?

Levels of two series that both drift correlate whatever they are, so the changes from one second to the next are
correlated. Differencing makes neighbouring values of a series depend on one another. The plain Fisher interval would
then be too narrow: it misses the truth in about 11 % of independent series instead of 5 %. So the number of pairs is
reduced to an effective one by Bartlett's formula. scipy.stats.pearsonr takes all pairs for independent, so its interval
is not used.
"""

import math
from dataclasses import dataclass

import numpy as np

from stallmark.stats.thresholds import CORRELATION_PAIRS

_LAGS = 5
_Z95 = 1.959964
_MOST = 1 - 1e-12  # of which Fisher's z is still finite


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
    """Return the correlation of the changes of two per-second series (equal length, NaN where unknown).

    None where too few pairs are known, or where one of the series never changes.
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
    """Return how many independent pairs are worth as much as these: n / (1 + 2 Σ ρx(k) ρy(k)), never more than n."""
    lags = range(1, min(_LAGS, len(x) // 4) + 1)
    shared = sum(_autocorrelation(x, lag) * _autocorrelation(y, lag) for lag in lags)
    return len(x) / max(1.0, 1 + 2 * shared)


def _autocorrelation(series: np.ndarray, lag: int) -> float:
    centred = series - series.mean()
    return float(centred[lag:] @ centred[:-lag] / (centred @ centred))


def _constant(series: np.ndarray) -> bool:
    return bool(np.ptp(series) <= 1e-9 * max(1.0, float(np.abs(series).max())))
