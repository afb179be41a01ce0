"""The need: the multiple of a profile's busiest windows that new hardware is to carry."""

from dataclasses import dataclass

import numpy as np

from stallmark.analysis.profile.demand import ios_of_minutes
from stallmark.analysis.profile.summary import PERCENTILES, ProfileSummary, percentile_of
from stallmark.record.sizing.manifest import Demand


@dataclass(frozen=True)
class Need:
    """The need. `percentile` is the one that was asked for, None where the busiest window counts; `minutes_per_s`: its
    I/Os per second, None where there are too few `minutes` for it, and the busiest window counts in its place."""

    multiple: float
    growth: float = 1.0
    percentile: str | None = None
    minutes: int = 0
    minutes_per_s: float | None = None
    window_per_s: float | None = None


def need_of(found: ProfileSummary, demand: Demand, percentile: str | None, growth: float) -> Need:
    """Return `growth` × the I/Os per second of a percentile of the minutes, as a multiple of the busiest window."""
    window_per_s = sum(demand.windows[0].mean(name) for name in ("reads", "writes", "log_writes"))
    if percentile is None or not window_per_s:
        return Need(growth, growth, window_per_s=window_per_s)
    minutes = np.sort(ios_of_minutes(found.intervals, found.rates))
    minutes_per_s = percentile_of(minutes, PERCENTILES[percentile])
    multiple = growth * (1.0 if minutes_per_s is None else minutes_per_s / window_per_s)
    return Need(multiple, growth, percentile, len(minutes), minutes_per_s, window_per_s)
