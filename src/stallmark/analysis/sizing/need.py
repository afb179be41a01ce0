"""The need: the multiple of a profile's busiest windows that new hardware is to carry."""

from dataclasses import dataclass

import numpy as np

from stallmark.analysis.profile.demand import ios_of_minutes
from stallmark.analysis.profile.summary import PERCENTILES, ProfileSummary, percentile_of
from stallmark.errors import StallmarkError
from stallmark.record.sizing import Demand


@dataclass(frozen=True)
class Need:
    """The need: `multiple` times the I/Os of the busiest window, `window_per_s`; growth is part of it. `percentile` is
    the one that was asked for, None if the busiest window counts; `minutes_per_s`: its I/Os per second, None if there
    are too few `minutes` for it, and the busiest window counts in its place."""

    multiple: float
    window_per_s: float
    growth: float = 1.0
    percentile: str | None = None
    minutes: int = 0
    minutes_per_s: float | None = None

    @property
    def per_s(self) -> float:
        """The need in I/Os per second, growth included."""
        return self.multiple * self.window_per_s


def need_of(found: ProfileSummary, demand: Demand, percentile: str | None, growth: float) -> Need:
    """Return `growth` × the I/Os per second of a percentile of the minutes, as a multiple of the busiest window.

    Raise StallmarkError if the percentile has no I/O."""
    window_per_s = busiest_per_s(demand)
    if percentile is None or not window_per_s:
        return Need(growth, window_per_s, growth)
    minutes = np.sort(ios_of_minutes(found.intervals, found.rates))
    minutes_per_s = percentile_of(minutes, PERCENTILES[percentile])
    if minutes_per_s == 0:
        raise StallmarkError(f"The {percentile} of the profile has no I/O: give a higher --percentile, or none.")
    multiple = growth * (1.0 if minutes_per_s is None else minutes_per_s / window_per_s)
    return Need(multiple, window_per_s, growth, percentile, len(minutes), minutes_per_s)


def busiest_per_s(demand: Demand) -> float:
    """Return the I/Os per second of the busiest window, writes of the log included."""
    return sum(demand.windows[0].mean(name) for name in ("reads", "writes", "log_writes"))
