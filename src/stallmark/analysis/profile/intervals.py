"""The intervals of a profile, whatever its source: imported ones as they are, or made of a server's raw counters.

An interval lies between two neighbouring samples. It is left out where nothing was seen: in a gap, and across a restart
of the server. Where a single counter began anew (a wrap, another handle of a file, a reset of statistics), only what
it counts is null.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from stallmark.analysis.profile.differences import Differences
from stallmark.analysis.profile.sample_clock import Samples, sample_times
from stallmark.record.profile.folder import read_imported, read_profile
from stallmark.record.profile.intervals import FILE_IO, SERVER, WAITS, FileClass, Intervals
from stallmark.record.profile.reader import read_raw

_IO = ("reads", "read_bytes", "read_stall_ms", "writes", "write_bytes", "write_stall_ms")
_STATES = (*("memory_target_bytes", "database_pages_bytes", "stolen_bytes", "page_life_expectancy_s", "connections"),)
_SCALED = {"cpu_s": ("cpu_ms", 1000.0)}
_US = 1e6


def intervals_of(folder: Path, samples: Samples | None = None) -> Intervals:
    """Return the intervals of a profile, in the order of time; up to the last of the `samples` where they were read
    before."""
    samples = samples or samples_of(folder)
    if samples is None:
        return read_imported(folder)
    return Intervals(_file_io(folder, samples), _server(folder, samples), _waits(folder, samples))


def samples_of(folder: Path) -> Samples | None:
    """Return when the samples of a profile of a server were taken; None for an imported one, which has none."""
    manifest = read_profile(folder)
    return sample_times(read_raw(folder, "samples"), manifest.interval_s) if manifest.source == "server" else None


class _Raw:
    """A raw table as arrays, without rows of samples that were not written whole. `place`: of their samples."""

    def __init__(self, folder: Path, name: str, samples: Samples):
        table = read_raw(folder, name)
        number = table.column("sample").to_numpy()
        place = np.searchsorted(samples.number, number)
        whole = (place < len(samples.number)) & (samples.number[np.minimum(place, len(samples.number) - 1)] == number)
        self.table = table.filter(pa.array(whole))
        self.place = place[whole]
        self._samples = samples

    def numbers(self, column: str) -> np.ndarray:
        return self.table.column(column).cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)

    def codes(self, column: str) -> tuple[np.ndarray, list]:
        """Return a column as small integers, and the texts they stand for."""
        found = self.table.column(column).combine_chunks().dictionary_encode()
        if isinstance(found, pa.ChunkedArray):
            found = found.combine_chunks()
        return found.indices.fill_null(len(found.dictionary)).to_numpy(), found.dictionary.to_pylist()

    def differences(self, entities: np.ndarray, rows: np.ndarray) -> Differences:
        epochs, _ = self.codes("epoch")
        return Differences(self.place.astype(float), entities, epochs, rows)

    def _rise(self, differences: Differences, column: str) -> np.ndarray:
        """Return what all entities counted in each interval (n − 1); NaN where it is not known."""
        found = np.full(len(self._samples.seen), np.nan)
        summed = differences.rises(self.numbers(column))
        if summed is None or not len(found):
            return found
        rise, unknown = summed
        found[:] = np.bincount(self.place[differences.rows], weights=rise, minlength=len(found) + 1)[1:]
        found[_between(differences, unknown)] = np.nan
        first = self.place[differences.rows].min() if len(differences.rows) else len(found)
        found[:first] = np.nan
        return found

    def rises(self, entities: np.ndarray, rows: np.ndarray, columns: Sequence[str]) -> dict[str, np.ndarray]:
        """Return what was counted in each interval, by column. Where one counter began anew the others are not told
        either: a reset that is seen in one may be hidden in another."""
        differences = self.differences(entities, rows)
        found = {column: self._rise(differences, column) for column in columns}
        lost = _ends(differences, differences.breaks)
        for values in found.values():
            values[lost] = np.nan
        return found

    def state(self, entities: np.ndarray, rows: np.ndarray, column: str) -> np.ndarray:
        """Return the sum over entities at the end of each interval (n − 1), each as it was stored last; NaN before
        the first, and where none of them has a value."""
        values = self.numbers(column)
        count = len(self._samples.number)
        total, known = np.zeros(count), np.zeros(count)
        for entity in np.unique(entities[rows]):
            own = rows[entities[rows] == entity]
            at = np.searchsorted(self.place[own], np.arange(count), side="right") - 1
            value = np.where(at >= 0, values[own][np.maximum(at, 0)], np.nan)
            total += np.nan_to_num(value)
            known += np.isfinite(value)
        return np.where(known > 0, total, np.nan)[1:]


def _ends(differences: Differences, marked: np.ndarray) -> np.ndarray:
    """Return the intervals that end with the second of two times between which something was lost: before it, rows
    that are not stored are as they were."""
    return differences.times.astype(int)[1:][marked] - 1


def _between(differences: Differences, marked: np.ndarray) -> np.ndarray:
    """Return all intervals between the times that are marked."""
    times = differences.times.astype(int)
    spans = zip(times[:-1][marked], times[1:][marked], strict=True)
    return np.concatenate([np.empty(0, dtype=int), *(np.arange(begin, end) for begin, end in spans)])


def _file_io(folder: Path, samples: Samples) -> pa.Table:
    if len(samples.number) < 2:
        return FILE_IO.empty_table()
    raw = _Raw(folder, "file_counters", samples)
    classes, names = raw.codes("file_class")
    entities, _ = raw.codes("entity")
    parts = []
    for name in (one for one in FileClass if one in names):
        rows = np.flatnonzero(classes == names.index(name))
        columns = raw.rises(entities, rows, _IO)
        columns["size_bytes"] = raw.state(entities, rows, "size_bytes")
        parts.append(_table(samples, columns, FILE_IO, {"file_class": str(name)}))
    return pa.concat_tables(parts or [FILE_IO.empty_table()]).sort_by([("start", "ascending")])


def _server(folder: Path, samples: Samples) -> pa.Table:
    if len(samples.number) < 2:
        return SERVER.empty_table()
    raw = _Raw(folder, "server_counters", samples)
    counters, names = raw.codes("counter")
    columns = {}
    for name in SERVER.names[2:]:
        counter, scale = _SCALED.get(name, (name, 1.0))
        if counter not in names:
            continue
        rows = np.flatnonzero(counters == names.index(counter))
        if name in _STATES:
            columns[name] = raw.state(counters, rows, "value")
        else:
            columns[name] = raw.rises(counters, rows, ["value"])["value"] / scale
    return _table(samples, columns, SERVER)


def _waits(folder: Path, samples: Samples) -> pa.Table:
    if len(samples.number) < 2:
        return WAITS.empty_table()
    counted, met = _counted_waits(folder, samples), _met_waits(folder, samples)
    return pa.concat_tables([counted, met]).sort_by([("start", "ascending"), ("wait_ms", "descending")])


def _counted_waits(folder: Path, samples: Samples) -> pa.Table:
    """Return waits from totals. In an interval in which any of them was lost none is told: the rest would pass for
    the whole."""
    raw = _Raw(folder, "wait_counters", samples)
    if not raw.table.num_rows:
        return WAITS.empty_table()
    types, names = raw.codes("wait_type")
    classes, class_names = raw.codes("wait_class")
    differences = raw.differences(types, np.arange(len(types)))
    columns = {}
    for column in ("waits", "wait_ms", "signal_ms"):
        found = differences.rises(raw.numbers(column))
        columns[column] = np.zeros(len(differences.rows)) if found is None else found[0]
    place = raw.place[differences.rows] - 1  # of the interval that ends with the row
    lost = np.zeros(len(samples.seen), dtype=bool)
    lost[_ends(differences, differences.breaks)] = True
    kept = (place >= 0) & (columns["wait_ms"] + columns["waits"] > 0)
    kept[kept] = samples.seen[place[kept]] & ~lost[place[kept]]
    place, rows = place[kept], differences.rows[kept]
    return _waits_table(
        samples,
        place,
        [names[code] for code in types[rows]],
        [class_names[code] for code in classes[rows]],
        {column: values[kept] for column, values in columns.items()},
    )


def _met_waits(folder: Path, samples: Samples) -> pa.Table:
    """Return waits from sessions that were met waiting: each is taken to have waited for the whole interval."""
    raw = _Raw(folder, "sessions_seen", samples)
    if not raw.table.num_rows:
        return WAITS.empty_table()
    place = raw.place - 1
    kept = place >= 0
    kept[kept] = samples.seen[place[kept]]
    waited = raw.numbers("users")[kept] * samples.elapsed_s[place[kept]] * 1000
    table = raw.table.filter(pa.array(kept))
    nothing = np.full(len(waited), np.nan)
    return _waits_table(
        samples,
        place[kept],
        table.column("wait_type").to_pylist(),
        table.column("wait_class").to_pylist(),
        {"waits": nothing, "wait_ms": waited, "signal_ms": nothing},
    )


def _waits_table(
    samples: Samples, place: np.ndarray, types: list[str], classes: list[str], columns: dict[str, np.ndarray]
) -> pa.Table:
    arrays = [_times(samples.at[place]), _times(samples.at[place + 1]), pa.array(types), pa.array(classes)]
    return pa.Table.from_arrays([*arrays, *(_nullable(columns[name]) for name in WAITS.names[4:])], schema=WAITS)


def _table(
    samples: Samples, columns: dict[str, np.ndarray], schema: pa.Schema, texts: dict[str, str] | None = None
) -> pa.Table:
    """Return a table of the intervals that were seen."""
    seen = np.flatnonzero(samples.seen)
    arrays = [_times(samples.at[seen]), _times(samples.at[seen + 1])]
    for name in schema.names[2:]:
        if texts and name in texts:
            arrays.append(pa.array([texts[name]] * len(seen)))
        else:
            arrays.append(_nullable(columns[name][seen] if name in columns else np.full(len(seen), np.nan)))
    return pa.Table.from_arrays(arrays, schema=schema)


def _times(at: np.ndarray) -> pa.Array:
    return pa.array(np.round(at * _US).astype("int64")).cast(pa.timestamp("us", tz="UTC"))


def _nullable(values: np.ndarray) -> pa.Array:
    return pa.array(values, pa.float64(), mask=np.isnan(values))
