"""The test whether something stays within a limit: a share of transactions, or the mean time of reads.

Both are ratios of sums over seconds: slow transactions to all, stalls to reads. What follows upon each other is alike,
so the scatter is that of batches of seconds, and not of single transactions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.special

from stallmark.stats.ceiling_search import Verdict
from stallmark.stats.thresholds import CEILING_BATCHES, CONFIDENCE, SAMPLES_BEYOND


@dataclass(frozen=True)
class WithinLimit:
    """The outcome: a ratio with its interval, None where too little was seen, against the limit."""

    value: float | None
    low: float | None
    high: float | None
    limit: float
    of: float  # what the ratio is of: transactions, or reads
    verdict: Verdict

    def figures(self) -> dict[str, Any]:
        """Return it in the words of a record's limit."""
        words = {"limit": self.limit, "value": self.value, "low": self.low, "high": self.high}
        return words | {"seen": self.of, "verdict": self.verdict.value}


def enough(allowed: float) -> int:
    """Return how many transactions a percentile needs that a share `allowed` of them may exceed."""
    return round(SAMPLES_BEYOND / allowed)


def judge(parts: Sequence[float], wholes: Sequence[float], limit: float, fewest: float = 1) -> WithinLimit:
    """Judge Σ parts ÷ Σ wholes, second by second, against a limit. Fewer than `fewest` wholes decide nothing."""
    a, b = (_batches(np.asarray(series, dtype=float)) for series in (parts, wholes))
    part, whole = float(a.sum()), float(b.sum())
    if whole < fewest or len(a) < 2:
        return WithinLimit(None, None, None, limit, whole, Verdict.UNDECIDED)
    value = part / whole
    off = a - value * b
    error = float(np.sqrt((off**2).sum() * len(a) / (len(a) - 1))) / whole
    reach = float(scipy.special.stdtrit(len(a) - 1, (1 + CONFIDENCE) / 2)) * error
    low, high = max(0.0, value - reach), value + reach
    verdict = Verdict.BROKE if low > limit else Verdict.HELD if high < limit else Verdict.UNDECIDED
    return WithinLimit(value, low, high, limit, whole, verdict)


def _batches(series: np.ndarray) -> np.ndarray:
    """Return the sums of batches of seconds, as alike in length as whole seconds allow."""
    return np.array([batch.sum() for batch in np.array_split(series, min(CEILING_BATCHES, max(1, len(series))))])
