"""Series of values, each with its own times, as the counts of intervals."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from stallmark.errors import StallmarkError
from stallmark.record.imports.recording import Recording, some_names
from stallmark.record.profile.manifest import GAP

Kind = Literal["total", "count", "rate", "state"]
"""The meaning of a value: a total since some time, a count of the interval that ends with it, a rate in that interval,
or a state at its end."""


@dataclass(frozen=True)
class Series:
    """The values of one instance as a part of a column, at times in their order."""

    column: str
    kind: Kind
    group: str
    """The name shared by totals that are reset together."""
    name: str
    """The name of its device, database or file; empty if it has none."""
    times: np.ndarray
    values: np.ndarray


def add_series(series: Sequence[Series], recording: Recording, name: str, times: Sequence[float] = ()) -> None:
    """Add the sums over series, by column and interval, and note unknown parts for the file `name`.

    `times` are those of all samples, if some may lack values. Raise StallmarkError for series of different times.
    Intervals lie between times at which no total lacks a point. A column is unknown in an interval if a part was reset
    there, or was absent and came back; so are the other columns of its group, as a fall in one may be hidden in
    another. An instance whose totals or states begin later, or end before, did not exist outside.
    """
    times_of_all = np.unique(np.concatenate([times, *(part.times for part in series)]))
    longest_s = GAP * float(np.median(np.diff(times_of_all))) if len(times_of_all) > 1 else 0.0
    lacking = _lacking(series, times_of_all, longest_s)
    bounds = times_of_all[~lacking]
    seconds, is_joined = np.diff(bounds), np.diff(np.flatnonzero(~lacking)) > 1
    columns: dict[str, list[Series]] = {}
    for part in series:
        columns.setdefault(part.column, []).append(part)
    sums = dict[str, np.ndarray]()
    fallen, away, absent = dict[str, np.ndarray](), set[str](), set[str]()
    for column, parts in columns.items():
        total, seen, unknown = (
            np.zeros(len(seconds)),
            np.zeros(len(seconds), dtype=bool),
            np.zeros(len(seconds), dtype=bool),
        )
        outside = list[tuple[str, np.ndarray]]()
        for part in parts:
            amounts = _amounts(part, bounds, seconds)
            covered = np.isfinite(amounts)
            begins = bounds[:-1] if part.kind == "total" else bounds[1:]
            inside = (begins >= part.times[0]) & (bounds[1:] <= part.times[-1])
            total += np.where(covered, amounts, 0.0)
            seen |= covered
            if part.kind in ("count", "rate"):
                unknown |= ~covered | is_joined
            else:
                unknown |= inside & ~covered
                away |= {part.name or part.column} if (inside & ~covered).any() else set()
                outside.append((part.name, ~covered & ~inside))
            if part.kind == "total":
                falls = np.searchsorted(bounds, part.times[1:][np.diff(part.values) < 0]) - 1
                falls = falls[(falls >= 0) & (falls < len(seconds))]
                fallen.setdefault(part.group, np.zeros(len(seconds), dtype=bool))[falls] = True
        absent |= {name for name, where in outside if name and (where & seen).any()}
        sums[column] = np.where(unknown | ~seen, np.nan, total)
    for column, parts in columns.items():
        for group in {part.group for part in parts} & fallen.keys():
            sums[column][fallen[group]] = np.nan
    resets = int(np.any(list(fallen.values()), axis=0).sum()) if fallen else 0
    is_known = any(np.isfinite(values).any() for values in sums.values())
    if not is_known and not resets and any(part.kind == "total" and len(part.times) > 1 for part in series):
        raise StallmarkError(
            f"Each time of {name} is of some of its series alone: write those of one sample with one time, as a query "
            "does that groups by time."
        )
    for place, (start, end) in enumerate(pairwise(bounds.tolist())):
        if end - start <= longest_s:
            row = {column: float(values[place]) for column, values in sums.items()}
            recording.spans.add(start, end, {column: value for column, value in row.items() if np.isfinite(value)})
    joined = int(lacking.sum())
    for is_so, sentence in (
        (resets, f"counters began anew {resets} time{'s' * (resets > 1)}; what they counted there is not known"),
        (joined, f"points are missing at {joined} time{'s' * (joined > 1)}; the intervals around them are joined"),
        (away, f"not known while points of it are missing: {some_names(away)}"),
        (absent, f"not there all the time, and 0 while not: {some_names(absent)}"),
    ):
        if is_so:
            recording.note(f"{name}: {sentence}.")


def _lacking(series: Iterable[Series], times: np.ndarray, longest_s: float) -> np.ndarray:
    """Return the times at which a total lacks a point, between two of its points without a gap."""
    lacking = np.zeros(len(times), dtype=bool)
    for part in series:
        if part.kind == "total":
            places = np.searchsorted(times, part.times)
            for before in np.flatnonzero((np.diff(places) > 1) & (np.diff(part.times) <= longest_s)):
                lacking[places[before] + 1 : places[before + 1]] = True
    return lacking


def _amounts(part: Series, bounds: np.ndarray, seconds: np.ndarray) -> np.ndarray:
    """Return the amount that a series adds to each interval, NaN if unknown."""
    values = np.full(len(bounds), np.nan)
    places = np.searchsorted(bounds, part.times)
    on_bounds = (places < len(bounds)) & (bounds[np.minimum(places, len(bounds) - 1)] == part.times)
    values[places[on_bounds]] = part.values[on_bounds]
    if part.kind == "total":
        return np.diff(values)
    return values[1:] * seconds if part.kind == "rate" else values[1:]
