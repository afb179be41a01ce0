"""Statistics of a comparison, in which the replicate is the run.

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

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy  # submodules are imported on first use

from stallmark.stats.thresholds import CONFIDENCE, POWER, REPLICATES

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


def welch(log_a: np.ndarray, log_b: np.ndarray) -> Student:
    """Return the mean of ln b − ln a for runs without partners; the two variances may differ. At least two runs
    each."""
    a, b = np.asarray(log_a), np.asarray(log_b)
    n, m = a.shape[-1], b.shape[-1]
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


def spread_interval(spread: float, df: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Return the bounds of the true standard deviation (χ²): of few runs it is itself known only roughly."""
    tail = (1 - confidence) / 2
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
