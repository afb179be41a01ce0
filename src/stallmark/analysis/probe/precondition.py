"""Were writes steady at the end of preconditioning?"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from stallmark.format import number, size
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


def preconditioned(size_bytes: int, round_s: float, rounds_ms: Sequence[float]) -> dict[str, Any]:
    """For the manifest, with the sentence that the report says of it."""
    reached = steady(rounds_ms)
    how = (
        f"writes were steady after {len(rounds_ms)} rounds"
        if reached
        else f"writes were not steady after {len(rounds_ms)} rounds, and it was measured all the same"
    )
    return {
        "size_bytes": size_bytes,
        "round_s": round_s,
        "rounds_ms": list(rounds_ms),
        "steady": reached,
        "sentence": f"A file of {size(size_bytes)} was filled and overwritten at random in rounds of {round_s:g} s: "
        f"{how} ({number(rounds_ms[0])} ms per write in the first, {number(rounds_ms[-1])} in the last).",
    }
