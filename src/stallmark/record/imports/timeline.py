"""The spans of all files in one order of time: no two overlap, each time counts once, and holes are told."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from stallmark.record.imports.recording import Recording
from stallmark.record.profile.intervals import FILE_IO, SERVER, WAITS, FileClass, Intervals
from stallmark.record.profile.manifest import GAP

_US = 1e6
_LONG_S = 0.5  # what lies between two spans and is shorter is no gap


@dataclass(frozen=True)
class Hole:
    start: float
    end: float
    reason: str


@dataclass(frozen=True)
class Timeline:
    """The intervals (n) of an import, in seconds since 1970, and their columns; NaN is not known."""

    start: np.ndarray
    end: np.ndarray
    columns: Mapping[str, np.ndarray]
    interval_s: float
    gaps: list[Hole]
    notes: list[str]

    def is_known(self, name: str) -> bool:
        return bool(np.isfinite(self.columns[name]).any())

    def last(self, name: str) -> float | None:
        """Return the last value of a column that is known."""
        values = self.columns.get(name, np.empty(0))
        known = values[np.isfinite(values)]
        return float(known[-1]) if len(known) else None

    def intervals(self) -> Intervals:
        parts = [self._table(FILE_IO, str(held), {"file_class": str(held)}) for held in FileClass]
        file_io = pa.concat_tables(parts).sort_by([("start", "ascending"), ("file_class", "ascending")])
        return Intervals(file_io, self._table(SERVER, "server"), WAITS.empty_table())

    def _table(self, schema: pa.Schema, prefix: str, texts: Mapping[str, str] | None = None) -> pa.Table:
        """Return a table of the intervals in which any of its columns is known."""
        own = {name: self.columns[f"{prefix}.{name}"] for name in schema.names if f"{prefix}.{name}" in self.columns}
        if not own:
            return schema.empty_table()
        there = np.flatnonzero(np.isfinite(np.array(list(own.values()))).any(axis=0))
        nothing = np.full(len(there), np.nan)
        arrays = [_times(self.start[there]), _times(self.end[there])]
        for name in schema.names[2:]:
            if texts and name in texts:
                arrays.append(pa.array([texts[name]] * len(there), pa.string()))
            else:
                values = own[name][there] if name in own else nothing
                arrays.append(pa.array(values, pa.float64(), mask=np.isnan(values)))
        return pa.Table.from_arrays(arrays, schema=schema)


def timeline_of(recording: Recording) -> Timeline:
    """Put the spans of all files into one order. What overlaps an earlier span is left out; a span that is much longer
    than the others covers a time in which nothing was seen."""
    spans = recording.spans
    start, end = np.round(np.array(spans.start) * _US), np.round(np.array(spans.end) * _US)
    order = np.lexsort((np.arange(len(end)), end, start))
    start, end = start[order], end[order]
    first = np.ones(len(start), dtype=bool)
    first[1:] = (np.diff(start) != 0) | (np.diff(end) != 0)
    group = np.cumsum(first) - 1
    columns = {name: _first_known(np.array(values)[order], first, group) for name, values in spans.columns.items()}
    start, end = start[first] / _US, end[first] / _US
    usual_s = float(np.median(end - start)) if len(start) else 0.0
    long = end - start > GAP * usual_s
    kept = _apart(start, end, ~long)
    notes = []
    if doubled := int((~kept & ~long).sum()):
        notes.append(f"{doubled} sample{'s' * (doubled > 1)} of a time that was there already {_left_out(doubled)}.")
    if long.any():
        count = int(long.sum())
        notes.append(
            f"{count} sample{'s' * (count > 1)} after a time in which nothing was recorded {_left_out(count)}."
        )
    start, end = start[kept], end[kept]
    return Timeline(
        start,
        end,
        {name: values[kept] for name, values in columns.items()},
        round(usual_s, 3),
        _holes(start, end, recording),
        notes,
    )


def _left_out(count: int) -> str:
    return "is left out" if count == 1 else "are left out"


def _first_known(values: np.ndarray, first: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Return the first value that is known of each group of rows of one span."""
    found = values[first]
    for place in np.flatnonzero(~first & np.isfinite(values)):
        if np.isnan(found[group[place]]):
            found[group[place]] = values[place]
    return found


def _apart(start: np.ndarray, end: np.ndarray, candidates: np.ndarray) -> np.ndarray:
    """Return which of the spans to keep, so that none overlaps one before it."""
    kept = np.zeros(len(start), dtype=bool)
    until = -np.inf
    for place in np.flatnonzero(candidates).tolist():
        if start[place] >= until:
            kept[place] = True
            until = end[place]
    return kept


def _holes(start: np.ndarray, end: np.ndarray, recording: Recording) -> list[Hole]:
    found = []
    for begin, until in zip(end[:-1].tolist(), start[1:].tolist(), strict=True):
        if until - begin > _LONG_S:
            found.append(Hole(begin, until, _reason(begin, until, recording)))
    return found


def _reason(begin: float, until: float, recording: Recording) -> str:
    if any(begin <= at <= until for at in recording.restarts):
        return "the machine was restarted"
    if any(begin <= at <= until for at in recording.clock_set):
        return "the clock was set"
    return "no samples"


def _times(at: np.ndarray) -> pa.Array:
    return pa.array(np.round(at * _US).astype("int64")).cast(pa.timestamp("us", tz="UTC"))
