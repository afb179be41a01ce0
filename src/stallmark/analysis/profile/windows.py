"""The busiest windows of a profile: where a measure was highest for a quarter of an hour."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from stallmark.analysis.profile.rates import Measure, Rates

WINDOW_S = 900.0
WINDOWS = 5
SEEN_SHARE = 0.8
"""The share of a window that must have been seen: one busy minute beside a gap is no busy quarter of an hour."""


MORE = 1.1
"""So many times as much of a measure is a peak of its own: a sizing would not show less, whose levels lie about as far
apart."""
PEAKS = (
    *(Measure.IOS, Measure.READS, Measure.WRITES, Measure.LOG_WRITES),
    *(Measure.READ_MB, Measure.WRITE_MB, Measure.LOG_MB),
)
"""The measures of what storage is asked for."""


@dataclass(frozen=True)
class Window:
    """A window: `begin` and `end` in seconds since 1970, and the measures in it over the seconds seen."""

    begin: float
    end: float
    seen_s: float
    values: Mapping[Measure, float | None]


def busiest(
    rates: Rates, measure: Measure = Measure.IOS, length_s: float = WINDOW_S, count: int = WINDOWS
) -> list[Window]:
    """Return the windows with the highest rate, highest first. No two overlap. A profile shorter than one has none.
    Each begins where an interval does."""
    if measure not in rates.counted or not len(rates.start):
        return []
    counted = rates.counted[measure]
    rate, seen_s = sliding(rates.start, rates.end, counted.amount, counted.base, length_s)
    rate = np.where(np.isnan(rate), -np.inf, rate)
    found: list[Window] = []
    for place in np.argsort(-rate, kind="stable"):
        if len(found) == count or not np.isfinite(rate[place]):
            break
        begin, end = float(rates.start[place]), float(rates.start[place]) + length_s
        if all(end <= one.begin or begin >= one.end for one in found):
            inside = rates.between(begin, end)
            values = {name: one.mean() for name, one in inside.counted.items()}
            found.append(Window(begin, end, float(seen_s[place]), values))
    return found


def peaks(rates: Rates) -> dict[Measure, Window]:
    """Return the busiest window by each measure of what storage is asked for, of those that it was asked for."""
    found = {measure: busiest(rates, measure, count=1) for measure in PEAKS}
    return {measure: one[0] for measure, one in found.items() if one and one[0].values[measure]}


def sliding(
    start: np.ndarray, end: np.ndarray, amount: np.ndarray, base: np.ndarray, length_s: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean rate in the window that begins with each interval (n), and the seconds of it in which both are
    known; the rate is NaN if these are too few."""
    known = np.isfinite(amount) & np.isfinite(base)
    of, over, seen = (
        np.concatenate([[0.0], np.cumsum(np.where(known, values, 0.0))]) for values in (amount, base, end - start)
    )
    last = np.searchsorted(end, start + length_s + 1e-6, side="right")
    of, over, seen = of[last] - of[:-1], over[last] - over[:-1], seen[last] - seen[:-1]
    enough = (over > 0) & (seen >= SEEN_SHARE * length_s)
    return np.divide(of, over, out=np.full(len(start), np.nan), where=enough), seen
