"""The waits of a profiled server, over all the time that was seen.

In an interval in which the count of any wait was lost none is counted, as the rest would pass for the whole. Then the
counters are read once more.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from stallmark.analysis.profile.raw import placed
from stallmark.analysis.profile.sample_clock import Samples
from stallmark.analysis.read.codes import Codes
from stallmark.analysis.read.rises import Rises
from stallmark.analysis.read.sample_times import floats
from stallmark.record.profile.intervals import Waited

_COUNTED = ("waits", "wait_ms", "signal_ms")  # the last for its losses


def waits_of(folder: Path, samples: Samples) -> list[Waited]:
    """Return what was waited for, by type."""
    seen = np.append(False, samples.seen)
    counted = _Counted(folder, samples, seen)
    if counted.lost.any():
        counted = _Counted(folder, samples, seen & ~counted.lost)
    return counted.waits() + _met(folder, samples)


class _Counted:
    """The counters of waits, summed by type over the intervals that end with the samples `told`. A wait is counted from
    its first value to its last. `lost`: the samples before which the count of any wait was lost."""

    def __init__(self, folder: Path, samples: Samples, told: np.ndarray):
        self.lost = np.zeros(len(told), dtype=bool)
        self._told = told
        self._sums = [np.zeros(0) for _ in _COUNTED]
        self._classes: dict[str, str] = {}
        types, epochs = Codes(), Codes()
        rises = Rises(np.arange(len(told), dtype=float), len(_COUNTED), self)
        for at, batch in placed(folder, "wait_counters", samples):
            code = types.of(batch, "wait_type")  # each type is a group of its own
            _note_classes(self._classes, batch)
            values = [floats(batch, column) for column in _COUNTED]
            rises.add(at, code, code, epochs.of(batch, "epoch"), values, peers=np.zeros_like(code))
        rises.finish()
        self._types = types.names

    def waits(self) -> list[Waited]:
        waits, wait_ms = (np.pad(one, (0, len(self._types) - len(one))).tolist() for one in self._sums[:2])
        rows = zip(self._types, waits, wait_ms, strict=True)
        return [Waited(name, self._classes[name], count, ms) for name, count, ms in rows if count + ms > 0]

    def take(self, places: np.ndarray, rises: Sequence[np.ndarray | None], lost: np.ndarray) -> None:
        for column, rise in enumerate(rises):
            if rise is not None:
                self.take_late(column, places, rise, lost)

    def take_late(self, column: int, places: np.ndarray, rises: np.ndarray, lost: np.ndarray) -> None:
        types, at = np.divmod(places, len(self._told))
        self.lost[at[lost]] = True
        told = self._told[at]
        self._sums[column] = _plus(self._sums[column], types[told], rises[told])

    def take_unknown(self, column: int, first: int, last: int) -> None:
        pass


def _met(folder: Path, samples: Samples) -> list[Waited]:
    """Return waits from sessions that were met waiting: each is taken to have waited for the whole interval."""
    types, sums = Codes(), np.zeros(0)
    classes: dict[str, str] = {}
    before_s = np.append(0.0, np.where(samples.seen, samples.elapsed_s, 0.0))
    for at, batch in placed(folder, "sessions_seen", samples):
        sums = _plus(sums, types.of(batch, "wait_type"), floats(batch, "users") * before_s[at] * 1000)
        _note_classes(classes, batch)
    return [
        Waited(name, classes[name], None, ms) for name, ms in zip(types.names, sums.tolist(), strict=True) if ms > 0
    ]


def _note_classes(classes: dict[str, str], batch: pa.RecordBatch) -> None:
    kinds = pa.table(batch.select(["wait_type", "wait_class"])).group_by(["wait_type", "wait_class"]).aggregate([])
    classes |= dict(zip(kinds["wait_type"].to_pylist(), kinds["wait_class"].to_pylist(), strict=True))


def _plus(sums: np.ndarray, groups: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the sums by group with further values."""
    more = np.bincount(groups, values, len(sums)).astype(float)  # of nothing it counts in integers
    more[: len(sums)] += sums
    return more
