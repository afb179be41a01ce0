"""The waits of a profiled server, over all the time that was seen.

The counters of waits are read twice: in an interval in which any of them was lost none is counted, as the rest would
pass for the whole.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from stallmark.analysis.profile.raw import placed
from stallmark.analysis.profile.sample_clock import Samples
from stallmark.analysis.read.codes import Codes
from stallmark.analysis.read.rises import Rises, Taker
from stallmark.analysis.read.sample_times import floats
from stallmark.record.profile.intervals import WAITS

_COUNTED = ("waits", "wait_ms", "signal_ms")  # the last for its losses


def waits_of(folder: Path, samples: Samples) -> pa.Table:
    """Return what was waited for, by type."""
    return pa.concat_tables([_counted(folder, samples), _met(folder, samples)])


class _OfKnown:
    """A taker of what is known: a wait is counted from its first value to its last."""

    def take_unknown(self, column: int, first: int, last: int) -> None:
        pass


class _Lost(_OfKnown):
    """The samples before which the count of any wait was lost."""

    def __init__(self, samples: int):
        self.at = np.zeros(samples, dtype=bool)

    def take(self, places: np.ndarray, _: Sequence[np.ndarray | None], lost: np.ndarray) -> None:
        self._note(places[lost])

    def take_late(self, _: int, places: np.ndarray, __: np.ndarray, lost: np.ndarray) -> None:
        self._note(places[lost])

    def _note(self, places: np.ndarray) -> None:
        self.at[places % len(self.at)] = True


class _Sums(_OfKnown):
    """The sums of each column by type, over the intervals that end with the samples `told`."""

    def __init__(self, told: np.ndarray):
        self._told = told
        self.of = [np.zeros(0) for _ in _COUNTED]

    def take(self, places: np.ndarray, rises: Sequence[np.ndarray | None], _: np.ndarray) -> None:
        for column, rise in enumerate(rises):
            if rise is not None:
                self._add(column, places, rise)

    def take_late(self, column: int, places: np.ndarray, rises: np.ndarray, _: np.ndarray) -> None:
        self._add(column, places, rises)

    def _add(self, column: int, places: np.ndarray, rises: np.ndarray) -> None:
        types, at = np.divmod(places, len(self._told))
        told = self._told[at]
        self.of[column] = _plus(self.of[column], types[told], rises[told])


def _counted(folder: Path, samples: Samples) -> pa.Table:
    """Return waits from totals."""
    lost = _Lost(len(samples.number))
    _read(folder, samples, lost)
    sums = _Sums(np.append(False, samples.seen & ~lost.at[1:]))
    classes = _read(folder, samples, sums)
    of_type = dict(zip(_COUNTED, sums.of, strict=True))
    return _table(classes, {name: of_type[name] for name in ("waits", "wait_ms")})


def _read(folder: Path, samples: Samples, taker: Taker) -> dict[str, str]:
    """Read the counters of waits, each type a group of its own, and return the types with their classes."""
    types, epochs = Codes(), Codes()
    classes: dict[str, str] = {}
    rises = Rises(np.arange(len(samples.number), dtype=float), len(_COUNTED), taker)
    for at, batch in placed(folder, "wait_counters", samples):
        code = types.of(batch, "wait_type")
        _note_classes(classes, batch)
        values = [floats(batch, column) for column in _COUNTED]
        rises.add(at, code, code, epochs.of(batch, "epoch"), values, peers=np.zeros_like(code))
    rises.finish()
    return {name: classes[name] for name in types.names}


def _met(folder: Path, samples: Samples) -> pa.Table:
    """Return waits from sessions that were met waiting: each is taken to have waited for the whole interval."""
    types, sums = Codes(), np.zeros(0)
    classes: dict[str, str] = {}
    before_s = np.append(0.0, np.where(samples.seen, samples.elapsed_s, 0.0))
    for at, batch in placed(folder, "sessions_seen", samples):
        sums = _plus(sums, types.of(batch, "wait_type"), floats(batch, "users") * before_s[at] * 1000)
        _note_classes(classes, batch)
    return _table({name: classes[name] for name in types.names}, {"wait_ms": sums})


def _note_classes(classes: dict[str, str], batch: pa.RecordBatch) -> None:
    kinds = pa.table(batch.select(["wait_type", "wait_class"])).group_by(["wait_type", "wait_class"]).aggregate([])
    classes |= dict(zip(kinds["wait_type"].to_pylist(), kinds["wait_class"].to_pylist(), strict=True))


def _plus(sums: np.ndarray, groups: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the sums by group with further values."""
    more = np.bincount(groups, values, len(sums)).astype(float)  # of nothing it counts in integers
    more[: len(sums)] += sums
    return more


def _table(classes: dict[str, str], sums: dict[str, np.ndarray]) -> pa.Table:
    """Return the types with anything waited for."""
    count = len(classes)
    columns = {name: np.pad(one, (0, count - len(one))) for name, one in sums.items()}
    kept = np.flatnonzero(sum(columns.values(), np.zeros(count)) > 0)
    names = [list(classes)[place] for place in kept]
    nothing = pa.nulls(len(kept), pa.float64())
    return pa.table(
        {
            "wait_type": pa.array(names, pa.string()),
            "wait_class": pa.array([classes[name] for name in names], pa.string()),
            **{name: columns[name][kept] if name in columns else nothing for name in WAITS.names[2:]},
        },
        schema=WAITS,
    )
