"""The test whether writes were steady at the end of preconditioning."""

from collections.abc import Sequence

import numpy as np

from stallmark.stats.thresholds import STEADY_ROUNDS, STEADY_ROUNDS_RANGE, STEADY_ROUNDS_SLOPE


def steady(rounds_ms: Sequence[float]) -> bool:
    """Return whether the mean write latencies (ms) of the last STEADY_ROUNDS rounds are steady. Their range, and the
    rise of a straight line through them, must be small against their mean. False with fewer rounds."""
    last = np.asarray(rounds_ms[-STEADY_ROUNDS:], dtype=float)
    if len(last) < STEADY_ROUNDS or last.mean() <= 0:
        return False
    slope = np.polyfit(np.arange(len(last)), last, 1)[0]
    spread, rise = np.ptp(last), abs(slope) * (len(last) - 1)
    return bool(spread <= STEADY_ROUNDS_RANGE * last.mean() and rise <= STEADY_ROUNDS_SLOPE * last.mean())
