"""The intervals of a profile, whatever its source: imported ones as they are, or made of a server's raw counters.

An interval lies between two neighbouring samples. It is left out where nothing was seen: in a gap, and across a restart
of the server. Where a single counter began anew (a wrap, another handle of a file, a reset of statistics), only what
it counts is null.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stallmark.analysis.profile.groups import GroupRises, GroupStates
from stallmark.analysis.profile.raw import placed
from stallmark.analysis.profile.sample_clock import Samples, sample_times
from stallmark.analysis.profile.waits import waits_of
from stallmark.analysis.read.codes import Codes
from stallmark.analysis.read.sample_times import floats
from stallmark.record.profile.folder import read_imported, read_profile
from stallmark.record.profile.intervals import FILE_IO, LONGEST_TRANSACTION, SERVER, FileClass, Intervals
from stallmark.record.profile.reader import read_raw

_IO = ("reads", "read_bytes", "read_stall_ms", "writes", "write_bytes", "write_stall_ms")
_STATES = (*("memory_target_bytes", "database_pages_bytes", "stolen_bytes", "page_life_expectancy_s", "connections"),)
_SCALED = {"cpu_ms": ("cpu_s", 1000.0)}
_COUNTERS = ("cpu_ms", *(name for name in SERVER.names[2:] if name not in (*_STATES, "cpu_s")))
_US = 1e6


def intervals_of(folder: Path, samples: Samples | None = None) -> Intervals:
    """Return the intervals of a profile, in the order of time; up to the last of the `samples` where they were read
    before."""
    samples = samples or samples_of(folder)
    if samples is None:
        return read_imported(folder)
    server, longest_s = _server(folder, samples)
    return Intervals(_file_io(folder, samples), server, waits_of(folder, samples), longest_s)


def samples_of(folder: Path) -> Samples | None:
    """Return when the samples of a profile of a server were taken; None for an imported one, which has none."""
    manifest = read_profile(folder)
    return sample_times(read_raw(folder, "samples"), manifest.interval_s) if manifest.source == "server" else None


def _file_io(folder: Path, samples: Samples) -> pa.Table:
    classes, entities, epochs = Codes(), Codes(), Codes()
    rises, sizes = GroupRises(len(samples.number), len(_IO)), GroupStates(len(samples.number))
    for at, batch in placed(folder, "file_counters", samples):
        group, entity = classes.of(batch, "file_class"), entities.of(batch, "entity")
        rises.add(at, group, entity, epochs.of(batch, "epoch"), [floats(batch, column) for column in _IO])
        sizes.add(at, group, entity, floats(batch, "size_bytes"))
    rises.finish()
    parts = []
    for name in (one for one in FileClass if one in classes.names):
        code = classes.names.index(name)
        columns = dict(zip(_IO, rises.of(code), strict=True)) | {"size_bytes": sizes.of(code)}
        parts.append(_table(samples, columns, FILE_IO, {"file_class": str(name)}))
    return pa.concat_tables(parts or [FILE_IO.empty_table()]).sort_by([("start", "ascending")])


def _server(folder: Path, samples: Samples) -> tuple[pa.Table, float | None]:
    """Return the intervals of the whole server, and the age of the oldest transaction."""
    counters, epochs = Codes(), Codes()
    rises, states = GroupRises(len(samples.number), 1), GroupStates(len(samples.number))
    ages: list[float] = []
    for at, batch in placed(folder, "server_counters", samples):
        counted, rows = _named(_COUNTERS, at, batch)
        group = counters.of(rows, "counter")
        rises.add(counted, group, group, epochs.of(rows, "epoch"), [floats(rows, "value")])
        _, aged = _named([LONGEST_TRANSACTION], at, batch)
        ages += floats(aged, "value").tolist()
        held, rows = _named(_STATES, at, batch)
        group = counters.of(rows, "counter")
        states.add(held, group, group, floats(rows, "value"))
    rises.finish()
    columns = {}
    for code, counter in enumerate(counters.names):
        if counter in _STATES:
            columns[counter] = states.of(code)
        else:
            name, scale = _SCALED.get(counter, (counter, 1.0))
            columns[name] = rises.of(code)[0] / scale
    return _table(samples, columns, SERVER), max(ages) / 1000 if ages else None


def _named(counters: Sequence[str], at: np.ndarray, batch: pa.RecordBatch) -> tuple[np.ndarray, pa.RecordBatch]:
    """Return the rows of some counters alone."""
    wanted = pc.is_in(batch.column("counter"), value_set=pa.array(counters))
    return at[wanted.to_numpy(zero_copy_only=False)], batch.filter(wanted)


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
