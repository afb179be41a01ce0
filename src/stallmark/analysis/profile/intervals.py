"""The intervals of a profile, whatever its source: imported ones as they are, or made of a server's raw counters.

An interval lies between two neighbouring samples. It is left out where nothing was seen: in a gap, and across a restart
of the server. Where a single counter began anew (a wrap, another handle of a file, a reset of statistics), only what
it counts is null.

Three clocks are read with every sample: this machine's, the server's, and one that nobody sets but that stands still
while this machine sleeps. Between two samples the median of the three passed: one clock that jumps changes nothing.

Memory grows with groups of entities and samples. A place is a group and a sample: group × number of samples + index of
the sample.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from stallmark.analysis.read.rises import Codes, PairCodes, Rises
from stallmark.analysis.read.sample_times import first_of_runs, floats
from stallmark.errors import StallmarkError
from stallmark.record.profile.intervals import (
    IO,
    LONGEST_S,
    LONGEST_TRANSACTION,
    STATES,
    Intervals,
    Waited,
    read_imported,
)
from stallmark.record.profile.manifest import GAP, read_profile
from stallmark.record.profile.raw import raw_batches, read_raw

JUMP_S = 5.0
"""A clock that is off by more between two samples was set."""
_COUNTED = ("waits", "wait_ms", "signal_ms")  # the last for its losses
_US = 1e6


@dataclass(frozen=True)
class Samples:
    """The samples of a profile (n): their numbers, and when they were taken, in seconds since 1970. `seen` (n − 1)
    tells between which neighbours the server was really seen: not across a gap, nor across its restart.
    """

    number: np.ndarray
    at: np.ndarray
    seen: np.ndarray
    restarts: np.ndarray  # places of the first sample after a restart, or of another server
    jumps: tuple[tuple[float, float], ...]  # when this machine's clock was set, and by how many seconds
    own_cpu_ms: np.ndarray  # CPU time of our own session on the server so far; NaN where it is not told
    server: np.ndarray  # the number of the server that answered, in the manifest

    @property
    def elapsed_s(self) -> np.ndarray:
        return np.diff(self.at)


def sample_times(samples: pa.Table, interval_s: float) -> Samples:
    """Return when samples were taken, from their raw table."""
    number = samples.column("sample").to_numpy()
    if not len(number):
        empty = np.empty(0)
        return Samples(number, empty, empty.astype(bool), np.empty(0, dtype=int), (), empty, server=number)
    session, server = (samples.column(name).to_numpy() for name in ("session", "server"))
    clock, monotonic, its_clock = (
        samples.column(name).to_numpy().astype(float) for name in ("clock", "monotonic_s", "server_clock")
    )
    start = np.array(samples.column("start").to_pylist(), dtype=object)
    same_session, same_server = np.diff(session) == 0, np.diff(server) == 0
    by_wall = np.diff(clock)
    by_server = np.where(same_server, np.diff(its_clock), by_wall)
    by_server = np.where(np.isfinite(by_server), by_server, by_wall)
    # Of another session the third clock began anew: in between, this machine's has the word.
    by_monotonic = np.where(same_session, np.diff(monotonic), by_wall)
    elapsed = np.maximum(np.median([by_wall, by_server, by_monotonic], axis=0), 0.0)
    if elapsed.sum() > LONGEST_S:
        raise StallmarkError("The samples of this profile are damaged (more than ten years apart): collect it anew.")
    restarted = start[1:] != start[:-1]
    jumped = np.flatnonzero(same_session & (np.abs(by_wall - elapsed) > JUMP_S))
    at = np.concatenate([[clock[0]], clock[0] + np.cumsum(elapsed)])
    return Samples(
        number,
        at,
        (elapsed > 0) & (elapsed <= GAP * interval_s) & ~restarted,
        np.flatnonzero(restarted) + 1,
        tuple((float(at[place + 1]), float(by_wall[place] - elapsed[place])) for place in jumped),
        samples.column("own_cpu_ms").cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False),
        server,
    )


def placed(folder: Path, name: str, samples: Samples) -> Iterator[tuple[np.ndarray, pa.RecordBatch]]:
    """Yield the indices of the samples of some rows, and these rows. Those of samples that were not written whole are
    left out."""
    if not len(samples.number):
        return
    for batch in raw_batches(folder, name):
        number = batch.column("sample").to_numpy()
        at = np.minimum(np.searchsorted(samples.number, number), len(samples.number) - 1)
        whole = samples.number[at] == number
        if whole.any():
            yield at[whole], batch.filter(pa.array(whole))


class _Groups:
    """The groups of a table's entities: what they counted in each interval, and the sums of a state at each sample.
    `names`: the columns of the group, of the entity and of the state."""

    def __init__(self, folder: Path, table: str, samples: Samples, names: tuple[str, str, str], counted: Sequence[str]):
        self._samples = len(samples.number)
        self._rises = np.zeros((len(counted), 0))
        self._met = self._lost = np.zeros(0, dtype=bool)
        self._unknown: list[tuple[int, int, int]] = []
        self._reader = Rises(np.arange(self._samples, dtype=float), len(counted), self)
        self.states = _States(self._samples)
        groups, entities, epochs = Codes(), Codes(), Codes()
        for at, batch in placed(folder, table, samples):
            group, entity = groups.of(batch, names[0]), entities.of(batch, names[1])
            more = len(groups.names) * self._samples - len(self._met)
            self._rises = np.pad(self._rises, ((0, 0), (0, more)))
            self._met, self._lost = np.pad(self._met, (0, more)), np.pad(self._lost, (0, more))
            values = [floats(batch, column) for column in counted]
            self._reader.add(at, group, entity, epochs.of(batch, "epoch"), values)
            self.states.add(at, group, entity, floats(batch, names[2]))
        self._reader.finish()
        self.names = groups.names

    def take(self, places: np.ndarray, rises: Sequence[np.ndarray | None], lost: np.ndarray) -> None:
        self._met[places] = True
        self._lost[places] |= lost
        for column, rise in enumerate(rises):
            if rise is not None:
                self._rises[column, places] += rise

    def take_late(self, column: int, places: np.ndarray, rises: np.ndarray, lost: np.ndarray) -> None:
        np.add.at(self._rises[column], places, rises)
        self._lost[places] |= lost

    def take_unknown(self, column: int, first: int, last: int) -> None:
        self._unknown.append((column, first, last))

    def counted(self, group: int) -> list[np.ndarray]:
        """Return what was counted in each interval (n − 1), by column; NaN where it is not known. Where one counter
        began anew the others are not told either: a reset that is seen in one may be hidden in another."""
        begin = group * self._samples
        own = slice(begin, begin + self._samples)
        met = np.flatnonzero(self._met[own]).tolist()
        found = []
        for column, rises in enumerate(self._rises[:, own]):
            rise = rises[1:].copy()
            rise[self._lost[own][1:]] = np.nan
            rise[: met[0] if group in self._reader.groups_with(column) else None] = np.nan
            for of, first, last in self._unknown:
                if of == column and own.start <= first < own.stop:
                    # Rows that are not stored are as they were: nothing is known since the sample that had one.
                    since = met[max(bisect_left(met, first - begin) - 1, 0)]
                    rise[since : last - begin] = np.nan
            found.append(rise)
        return found


class _States:
    """The sum of a state over the entities of each group, at each of `samples` samples."""

    def __init__(self, samples: int):
        self._samples = samples
        self._numbers = PairCodes()
        self._last = np.empty(0)  # of each entity
        self._sum, self._known = np.zeros(0), np.zeros(0, dtype=np.int64)  # by how much they change at each place

    def add(self, at: np.ndarray, group: np.ndarray, entity: np.ndarray, values: np.ndarray) -> None:
        """Add rows: the indices of their samples, codes, and values, NaN for null."""
        if not len(at):
            return
        number = self._numbers.of(group, entity)
        self._last = np.append(self._last, np.full(len(self._numbers) - len(self._last), np.nan))
        places = group * self._samples + at
        order = np.argsort(number, kind="stable")
        number, values, places = number[order], values[order], places[order]
        first = first_of_runs(number)
        before = np.append(np.nan, values[:-1])
        before[first] = self._last[number[first]]
        self._last[number] = values  # of several, the last
        count = max(len(self._sum), int(group.max() + 1) * self._samples)
        self._sum = np.pad(self._sum, (0, count - len(self._sum)))
        self._known = np.pad(self._known, (0, count - len(self._known)))
        np.add.at(self._sum, places, np.nan_to_num(values) - np.nan_to_num(before))
        np.add.at(self._known, places, np.isfinite(values).astype(int) - np.isfinite(before))

    def sums(self, group: int) -> np.ndarray:
        """Return the sum at each sample (n), each entity as it was stored last; NaN where none of them has a value."""
        own = slice(group * self._samples, (group + 1) * self._samples)
        total, known = np.cumsum(self._sum[own]), np.cumsum(self._known[own])
        return np.where(known > 0, total, np.nan)


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
        waits, wait_ms = (np.pad(sums, (0, len(self._types) - len(sums))).tolist() for sums in self._sums[:2])
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
    classes = _Groups(folder, "file_counters", samples, ("file_class", "entity", "size_bytes"), IO)
    columns: dict[str, np.ndarray] = {}
    for code, name in enumerate(classes.names):
        columns |= {f"{name}.{column}": values for column, values in zip(IO, classes.counted(code), strict=True)}
        columns[f"{name}.size_bytes"] = classes.states.sums(code)[1:]
    return columns


def _server(folder: Path, samples: Samples) -> tuple[dict[str, np.ndarray], float | None]:
    """Return the columns of the whole server, as of the files, and the age of the oldest transaction."""
    counters = _Groups(folder, "server_counters", samples, ("counter", "counter", "value"), ["value"])
    columns, longest_s = {}, None
    for code, name in enumerate(counters.names):
        if name == LONGEST_TRANSACTION:
            longest_s = float(np.fmax.reduce(counters.states.sums(code), initial=0.0)) / 1000
        elif name in STATES:
            columns[f"server.{name}"] = counters.states.sums(code)[1:]
        else:
            [columns[f"server.{name}"]] = counters.counted(code)
    if "server.cpu_ms" in columns:
        columns["server.cpu_s"] = columns.pop("server.cpu_ms") / 1000
    return columns, longest_s
