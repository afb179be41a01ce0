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
from stallmark.record.profile.intervals import LONGEST_TRANSACTION, SERVER, Intervals
from stallmark.record.profile.reader import read_raw

_IO = ("reads", "read_bytes", "read_stall_ms", "writes", "write_bytes", "write_stall_ms")
_STATES = (*("memory_target_bytes", "database_pages_bytes", "stolen_bytes", "page_life_expectancy_s", "connections"),)
_COUNTERS = ("cpu_ms", *(name for name in SERVER.names[2:] if name not in (*_STATES, "cpu_s")))
_US = 1e6


def intervals_of(folder: Path, samples: Samples | None = None) -> Intervals:
    """Return the intervals of a profile, in the order of time; up to the last of the `samples` where they were read
    before."""
    samples = samples or samples_of(folder)
    if samples is None:
        return read_imported(folder)
    server, longest_s = _server(folder, samples)
    seen = np.flatnonzero(samples.seen)
    at = np.round(samples.at * _US) / _US  # as the times of an imported profile
    columns = {name: values[seen] for name, values in (_file_io(folder, samples) | server).items()}
    return Intervals(at[seen], at[seen + 1], columns, waits_of(folder, samples), longest_s)


def samples_of(folder: Path) -> Samples | None:
    """Return when the samples of a profile of a server were taken; None for an imported one, which has none."""
    manifest = read_profile(folder)
    return sample_times(read_raw(folder, "samples"), manifest.interval_s) if manifest.source == "server" else None


def _file_io(folder: Path, samples: Samples) -> dict[str, np.ndarray]:
    """Return the columns of the classes of file, each by interval (n − 1), seen or not."""
    classes, entities, epochs = Codes(), Codes(), Codes()
    rises, sizes = GroupRises(len(samples.number), len(_IO)), GroupStates(len(samples.number))
    for at, batch in placed(folder, "file_counters", samples):
        group, entity = classes.of(batch, "file_class"), entities.of(batch, "entity")
        rises.add(at, group, entity, epochs.of(batch, "epoch"), [floats(batch, column) for column in _IO])
        sizes.add(at, group, entity, floats(batch, "size_bytes"))
    rises.finish()
    columns: dict[str, np.ndarray] = {}
    for code, name in enumerate(classes.names):
        columns |= {f"{name}.{column}": values for column, values in zip(_IO, rises.of(code), strict=True)}
        columns[f"{name}.size_bytes"] = sizes.of(code)
    return columns


def _server(folder: Path, samples: Samples) -> tuple[dict[str, np.ndarray], float | None]:
    """Return the columns of the whole server, as of the files, and the age of the oldest transaction."""
    counters, epochs = Codes(), Codes()
    rises, states = GroupRises(len(samples.number), 1), GroupStates(len(samples.number))
    longest_ms = 0.0
    for at, batch in placed(folder, "server_counters", samples):
        counted, rows = _named(_COUNTERS, at, batch)
        group = counters.of(rows, "counter")
        rises.add(counted, group, group, epochs.of(rows, "epoch"), [floats(rows, "value")])
        _, aged = _named([LONGEST_TRANSACTION], at, batch)
        longest_ms = float(np.fmax.reduce(floats(aged, "value"), initial=longest_ms))
        held, rows = _named(_STATES, at, batch)
        group = counters.of(rows, "counter")
        states.add(held, group, group, floats(rows, "value"))
    rises.finish()
    columns = {
        f"server.{name}": states.of(code) if name in _STATES else rises.of(code)[0]
        for code, name in enumerate(counters.names)
    }
    if "server.cpu_ms" in columns:
        columns["server.cpu_s"] = columns.pop("server.cpu_ms") / 1000
    return columns, longest_ms / 1000 or None


def _named(counters: Sequence[str], at: np.ndarray, batch: pa.RecordBatch) -> tuple[np.ndarray, pa.RecordBatch]:
    """Return the rows of some counters alone."""
    wanted = pc.is_in(batch.column("counter"), value_set=pa.array(counters))
    return at[wanted.to_numpy(zero_copy_only=False)], batch.filter(wanted)
