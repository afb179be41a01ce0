"""The intervals of a profile, whatever its source: imported ones as they are, or made of a server's raw counters.

An interval lies between two neighbouring samples. It is left out where nothing was seen: in a gap, and across a restart
of the server. Where a single counter began anew (a wrap, another handle of a file, a reset of statistics), only what
it counts is null.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from stallmark.analysis.profile.groups import GroupRises, GroupStates
from stallmark.analysis.profile.raw import placed
from stallmark.analysis.profile.sample_clock import Samples, sample_times
from stallmark.analysis.profile.waits import waits_of
from stallmark.analysis.read.codes import Codes
from stallmark.analysis.read.sample_times import floats
from stallmark.record.profile.folder import read_imported, read_profile
from stallmark.record.profile.intervals import IO, LONGEST_TRANSACTION, STATES, Intervals
from stallmark.record.profile.reader import read_raw

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
    columns: dict[str, np.ndarray] = {}
    for name, counted, sizes in _groups(folder, "file_counters", samples, ("file_class", "entity", "size_bytes"), IO):
        columns |= {f"{name}.{column}": values for column, values in zip(IO, counted, strict=True)}
        columns[f"{name}.size_bytes"] = sizes[1:]
    return columns


def _server(folder: Path, samples: Samples) -> tuple[dict[str, np.ndarray], float | None]:
    """Return the columns of the whole server, as of the files, and the age of the oldest transaction."""
    columns, longest_s = {}, None
    for name, [counted], values in _groups(
        folder, "server_counters", samples, ("counter", "counter", "value"), ["value"]
    ):
        if name == LONGEST_TRANSACTION:
            longest_s = float(np.fmax.reduce(values, initial=0.0)) / 1000
        elif name == "cpu_ms":
            columns["server.cpu_s"] = counted / 1000
        else:
            columns[f"server.{name}"] = values[1:] if name in STATES else counted
    return columns, longest_s


def _groups(
    folder: Path, table: str, samples: Samples, names: tuple[str, str, str], counted: Sequence[str]
) -> Iterator[tuple[str, list[np.ndarray], np.ndarray]]:
    """Yield the groups of a table, each with what it counted in each interval (n − 1), by column, and its state at each
    sample (n). `names`: the columns of the group, of its entities, and of a state."""
    groups, entities, epochs = Codes(), Codes(), Codes()
    rises, states = GroupRises(len(samples.number), len(counted)), GroupStates(len(samples.number))
    for at, batch in placed(folder, table, samples):
        group, entity = groups.of(batch, names[0]), entities.of(batch, names[1])
        rises.add(at, group, entity, epochs.of(batch, "epoch"), [floats(batch, column) for column in counted])
        states.add(at, group, entity, floats(batch, names[2]))
    rises.finish()
    for code, name in enumerate(groups.names):
        yield name, rises.of(code), states.of(code)
