"""Series of values, each with its own times, as the counts of intervals."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from stallmark.errors import StallmarkError
from stallmark.record.imports.recording import Part, Recording, Rows, Sums
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


def add_series(series: Sequence[Series], recording: Recording, name: str, times: np.ndarray | None = None) -> None:
    """Add the sums over series, by column and interval, and note unknown parts for the file `name`.

    `times` are those of all samples, if some may lack values. Raise StallmarkError for series of different times.
    Intervals lie between times at which no total lacks a point. A column is unknown in an interval if a part was reset
    there, or was absent and came back; so are the other columns of its group, as a fall in one may be hidden in
    another. An instance whose totals or states begin later, or end before, did not exist outside.
    """
    times_of_all = np.unique(np.concatenate([[] if times is None else times, *(part.times for part in series)]))
    longest_s = GAP * float(np.median(np.diff(times_of_all))) if len(times_of_all) > 1 else 0.0
    lacking = _lacking(series, times_of_all, longest_s)
    bounds = times_of_all[~lacking]
    start, end = bounds[:-1], bounds[1:]
    is_joined = np.diff(np.flatnonzero(~lacking)) > 1
    columns, fallen = dict[str, list[Series]](), dict[str, np.ndarray]()
    for part in series:
        columns.setdefault(part.column, []).append(part)
        if part.kind == "total":
            falls = np.searchsorted(bounds, part.times[1:][np.diff(part.values) < 0]) - 1
            falls = falls[(falls >= 0) & (falls < len(start))]
            fallen.setdefault(part.group, np.zeros(len(start), dtype=bool))[falls] = True
    sums, rows = Sums(recording, name, len(start)), dict[str, np.ndarray]()
    for column, parts in columns.items():
        values = sums.add_up(_as_part(part, bounds, is_joined) for part in parts)
        for group in {part.group for part in parts} & fallen.keys():
            values[fallen[group]] = np.nan
        rows[column] = values
    resets = int(np.any(list(fallen.values()), axis=0).sum()) if fallen else 0
    is_known = any(np.isfinite(values).any() for values in rows.values())
    if not is_known and not resets and any(part.kind == "total" and len(part.times) > 1 for part in series):
        raise StallmarkError(
            f"Each time of {name} is of some of its series alone: write those of one sample with one time, as a query "
            "does that groups by time."
        )
    near = end - start <= longest_s
    recording.rows.append(Rows(start[near], end[near], {column: values[near] for column, values in rows.items()}))
    if resets:
        recording.note(
            f"{name}: counters began anew {resets} time{'s' * (resets > 1)}; what they counted there is not known."
        )
    if joined := int(lacking.sum()):
        recording.note(
            f"{name}: points are missing at {joined} time{'s' * (joined > 1)}; the intervals around them are joined."
        )
    sums.note()


def _lacking(series: Iterable[Series], times: np.ndarray, longest_s: float) -> np.ndarray:
    """Return the times at which a total lacks a point, between two of its points without a gap."""
    lacking = np.zeros(len(times), dtype=bool)
    for part in series:
        if part.kind == "total":
            places = np.searchsorted(times, part.times)
            for before in np.flatnonzero((np.diff(places) > 1) & (np.diff(part.times) <= longest_s)):
                lacking[places[before] + 1 : places[before + 1]] = True
    return lacking


def _as_part(part: Series, bounds: np.ndarray, is_joined: np.ndarray) -> Part:
    """Return the amount that a series adds to each interval."""
    values = np.full(len(bounds), np.nan)
    is_bound = np.isin(part.times, bounds)
    values[np.searchsorted(bounds, part.times[is_bound])] = part.values[is_bound]
    if part.kind in ("count", "rate"):
        amounts = values[1:] * np.diff(bounds) if part.kind == "rate" else values[1:]
        return Part(part.name, np.where(is_joined, np.nan, amounts), ~(is_joined & False))
    begins = bounds[:-1] if part.kind == "total" else bounds[1:]
    inside = (begins >= part.times[0]) & (bounds[1:] <= part.times[-1])
    return Part(part.name, np.diff(values) if part.kind == "total" else values[1:], inside)
