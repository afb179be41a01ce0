"""Values of the server as they were sampled, and totals among them."""

from collections.abc import Sequence
from functools import reduce

import numpy as np

from stallmark.analysis.read.counters import Counters
from stallmark.analysis.read.interval import Interval
from stallmark.analysis.read.sample_times import longest_apart_s

Line = tuple[np.ndarray, np.ndarray]
"""Times (s since run start) and values."""


def line(pairs: Sequence[tuple[float, float]]) -> Line:
    t, values = np.array(sorted(pairs), dtype=float).reshape(-1, 2).T
    return t, values


def inside(samples: Line | None, interval: Interval) -> np.ndarray:
    """Return the values within an interval."""
    if samples is None:
        return np.empty(0)
    t, values = samples
    return values[(t >= interval.begin) & (t <= interval.end)]


def total(samples: Line, name: str, interval_s: float) -> Counters:
    """Return samples of a total, planned every `interval_s`, as counters of one name."""
    t, values = samples
    return Counters(t, {name: values}, np.diff(values) < 0, np.diff(t) > longest_apart_s(t, interval_s))


def rate(samples: Line | None, interval_s: float, interval: Interval) -> float | None:
    """Return the rise of a total per second over the sampled part of an interval; None where it began again."""
    if samples is None:
        return None
    delta = total(samples, "", interval_s).over(interval.begin, interval.end)
    return None if delta is None or delta.broken else delta[""] / delta.seconds


def added_up(lines: Sequence[Line]) -> Line:
    """Return the sum of several lines where all were sampled."""
    t = reduce(np.intersect1d, (t for t, _ in lines))
    return t, np.sum([values[np.isin(own, t)] for own, values in lines], axis=0)
