"""Were writes steady at the end of preconditioning?"""

from collections.abc import Sequence

import numpy as np

from stallmark.stats.thresholds import STEADY_ROUNDS, STEADY_ROUNDS_RANGE, STEADY_ROUNDS_SLOPE


def steady(rounds_ms: Sequence[float]) -> bool:
    """Of the mean write latencies of rounds, the last few (STEADY_ROUNDS): neither their range nor what a straight line
    through them rises by is large beside their mean."""
    last = np.asarray(rounds_ms[-STEADY_ROUNDS:], dtype=float)
    if len(last) < STEADY_ROUNDS or last.mean() <= 0:
        return False
    slope = np.polyfit(np.arange(len(last)), last, 1)[0]
    spread, rise = np.ptp(last), abs(slope) * (len(last) - 1)
    return bool(spread <= STEADY_ROUNDS_RANGE * last.mean() and rise <= STEADY_ROUNDS_SLOPE * last.mean())
