"""The busiest windows of a profile: where a measure was highest for a quarter of an hour."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from stallmark.analysis.profile.rates import Measure, Rates

WINDOW_S = 900.0
WINDOWS = 5
SEEN_SHARE = 0.8
"""The share of a window that must have been seen: one busy minute beside a gap is no busy quarter of an hour."""


@dataclass(frozen=True)
class Window:
    """A window: `begin` and `end` in seconds since 1970, and the measures in it over the seconds seen."""

    begin: float
    end: float
    seen_s: float
    values: Mapping[Measure, float | None]


def busiest(
    rates: Rates,
    measure: Measure = Measure.IOS,
    length_s: float = WINDOW_S,
    count: int = WINDOWS,
    apart: Sequence[Window] = (),
) -> list[Window]:
    """Return the windows with the highest rate, highest first. No two overlap, nor does one with those of `apart`. A
    profile shorter than one has none. Each begins where an interval does."""
    if measure not in rates.counted or not len(rates.start):
        return []
    counted = rates.counted[measure]
    known = np.isfinite(counted.amount) & np.isfinite(counted.base)
    amount, base, seen = (
        np.concatenate([[0.0], np.cumsum(np.where(known, one, 0.0))])
        for one in (counted.amount, counted.base, rates.seconds)
    )
    last = np.searchsorted(rates.end, rates.start + length_s + 1e-6, side="right")
    first = np.arange(len(rates.start))
    seen_s, over = seen[last] - seen[first], base[last] - base[first]
    rate = np.divide(amount[last] - amount[first], over, out=np.full(len(first), -np.inf), where=over > 0)
    rate[seen_s < SEEN_SHARE * length_s] = -np.inf
    found: list[Window] = []
    for place in np.argsort(-rate, kind="stable"):
        if len(found) == count or not np.isfinite(rate[place]):
            break
        begin, end = float(rates.start[place]), float(rates.start[place]) + length_s
        if all(end <= one.begin or begin >= one.end for one in (*apart, *found)):
            inside = rates.between(begin, end)
            values = {name: one.mean() for name, one in inside.counted.items()}
            found.append(Window(begin, end, float(seen_s[place]), values))
    return found
