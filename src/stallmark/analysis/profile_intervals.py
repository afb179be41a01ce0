"""The intervals of a profile from any source: imported ones unchanged, others computed from a server's raw counters.

An interval is the time between two neighbouring samples. It is omitted if nothing was seen: in a gap, and across a
restart of the server. If a single counter was reset (a wrap, another handle of a file, a reset of statistics), only its
own increment is null.

Three clocks are read with every sample: this machine's, the server's, and a monotonic one that stops while this machine
sleeps. The time between two samples is the median of the three: one clock that jumps changes nothing.

Memory grows with groups of entities and samples. A place is the index of a group and a sample: group × number of
samples + index of the sample. With 10 samples, sample 3 of group 2 is place 23.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from stallmark.analysis.read.rises import Codes, CounterIncrements, PairCodes
from stallmark.analysis.read.times import first_of_runs, floats, plus
from stallmark.errors import StallmarkError
from stallmark.record.profile import (
    GAP,
    IO,
    LONGEST_S,
    LONGEST_TRANSACTION,
    STATES,
    Intervals,
    Waited,
    intervals_from_tables,
)
from stallmark.record.profile_tables import RAW_TABLES, Profile

JUMP_S = 5.0
"""A clock that deviates by more between two samples was set."""
_COUNTED = ("waits", "wait_ms", "signal_ms")  # signal_ms only because a reset shows in it
_US = 1e6


@dataclass(frozen=True)
class Samples:
    """The samples of a profile (n)."""

    number: np.ndarray
    taken_s: np.ndarray  # seconds since 1970
    seen: np.ndarray  # (n − 1) whether the server was seen between two neighbours: not across a gap or a restart

    restarts: np.ndarray  # indices of the first sample after a restart, or from another server
    jumps: tuple[tuple[float, float], ...]  # times at which this machine's clock was set, and the seconds
    own_cpu_ms: np.ndarray  # CPU time of our own session on the server so far; NaN if unknown
    server: np.ndarray  # the number of the server that answered, in the manifest

    @property
    def elapsed_s(self) -> np.ndarray:
        return np.diff(self.taken_s)


def sample_times(samples: pa.Table, interval_s: float) -> Samples:
    """Return the samples of a profile with their times, from their raw table."""
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
    # The monotonic clock restarts with a session: across sessions this machine's clock replaces it.
    by_monotonic = np.where(same_session, np.diff(monotonic), by_wall)
    elapsed = np.maximum(np.median([by_wall, by_server, by_monotonic], axis=0), 0.0)
    if elapsed.sum() > LONGEST_S:
        raise StallmarkError("The samples of this profile are damaged (more than ten years apart): collect it again.")
    restarted = start[1:] != start[:-1]
    jumped = np.flatnonzero(same_session & (np.abs(by_wall - elapsed) > JUMP_S))
    taken_s = np.concatenate([[clock[0]], clock[0] + np.cumsum(elapsed)])
    return Samples(
        number,
        taken_s,
        (elapsed > 0) & (elapsed <= GAP * interval_s) & ~restarted,
        np.flatnonzero(restarted) + 1,
        tuple((float(taken_s[place + 1]), float(by_wall[place] - elapsed[place])) for place in jumped),
        samples.column("own_cpu_ms").cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False),
        server,
    )


def rows_by_sample(profile: Profile, name: str, samples: Samples) -> Iterator[tuple[np.ndarray, pa.RecordBatch]]:
    """Yield the sample indices of some rows, and these rows. Rows of samples that were not written completely are
    omitted."""
    if not len(samples.number):
        return
    for batch in profile.batches(name, RAW_TABLES[name].names):
        number = batch.column("sample").to_numpy()
        index = np.minimum(np.searchsorted(samples.number, number), len(samples.number) - 1)
        whole = samples.number[index] == number
        if whole.any():
            yield index[whole], batch.filter(pa.array(whole))


class _Groups:
    """The groups of a table's entities: their increments in each interval, and the sums of a state at each sample.

    `names`: the columns of the group, of the entity and of the state.
    """

    def __init__(
        self, profile: Profile, table: str, samples: Samples, names: tuple[str, str, str], counted: Sequence[str]
    ):
        self._samples = len(samples.number)
        self._rises = np.zeros((len(counted), 0))
        self._met = self._lost = np.zeros(0, dtype=bool)
        self._unknown: list[tuple[int, int, int]] = []
        self._reader = CounterIncrements(np.arange(self._samples, dtype=float), len(counted), self)
        self.states = _States(self._samples)
        groups, entities, epochs = Codes(), Codes(), Codes()
        for sample, batch in rows_by_sample(profile, table, samples):
            group, entity = groups.codes(batch, names[0]), entities.codes(batch, names[1])
            more = len(groups.names) * self._samples - len(self._met)
            self._rises = np.pad(self._rises, ((0, 0), (0, more)))
            self._met, self._lost = np.pad(self._met, (0, more)), np.pad(self._lost, (0, more))
            values = [floats(batch, column) for column in counted]
            self._reader.add(sample, group, entity, epochs.codes(batch, "epoch"), values)
            self.states.add(sample, group, entity, floats(batch, names[2]))
        self._reader.finish()
        self.names = groups.names

    def add(self, places: np.ndarray, rises: Sequence[np.ndarray | None], lost: np.ndarray) -> None:
        self._met[places] = True
        self._lost[places] |= lost
        for column, rise in enumerate(rises):
            if rise is not None:
                self._rises[column, places] += rise

    def add_late(self, column: int, places: np.ndarray, rises: np.ndarray, lost: np.ndarray) -> None:
        np.add.at(self._rises[column], places, rises)
        self._lost[places] |= lost

    def mark_unknown(self, column: int, first: int, last: int) -> None:
        self._unknown.append((column, first, last))

    def group_increments(self, group: int) -> list[np.ndarray]:
        """Return the increments in each interval (n − 1), by column; NaN if unknown.

        If one counter was reset, the others are unknown too: a reset that is visible in one may be hidden in another.
        """
        begin = group * self._samples
        own = slice(begin, begin + self._samples)
        met = np.flatnonzero(self._met[own]).tolist()
        increments = []
        for column, rises in enumerate(self._rises[:, own]):
            rise = rises[1:].copy()
            rise[self._lost[own][1:]] = np.nan
            rise[: met[0] if group in self._reader.groups_with(column) else None] = np.nan
            for lost_column, first, last in self._unknown:
                if lost_column == column and own.start <= first < own.stop:
                    # Unchanged rows are not stored, so the increment is unknown since the last sample with a row.
                    since = met[max(bisect_left(met, first - begin) - 1, 0)]
                    rise[since : last - begin] = np.nan
            increments.append(rise)
        return increments


class _States:
    """The sum of a state over the entities of each group, at each of `samples` samples."""

    def __init__(self, samples: int):
        self._samples = samples
        self._numbers = PairCodes()
        self._last = np.empty(0)  # last value of each entity
        self._sum, self._known = np.zeros(0), np.zeros(0, dtype=np.int64)  # their changes at each place

    def add(self, sample: np.ndarray, group: np.ndarray, entity: np.ndarray, values: np.ndarray) -> None:
        """Add rows: the indices of their samples, codes, and values, NaN for null."""
        number = self._numbers.codes(group, entity)
        self._last = np.append(self._last, np.full(len(self._numbers) - len(self._last), np.nan))
        places = group * self._samples + sample
        order = np.argsort(number, kind="stable")
        number, values, places = number[order], values[order], places[order]
        first = first_of_runs(number)
        before = np.append(np.nan, values[:-1])
        before[first] = self._last[number[first]]
        self._last[number] = values  # the last of several rows wins
        count = max(len(self._sum), int(group.max() + 1) * self._samples)
        self._sum = np.pad(self._sum, (0, count - len(self._sum)))
        self._known = np.pad(self._known, (0, count - len(self._known)))
        np.add.at(self._sum, places, np.nan_to_num(values) - np.nan_to_num(before))
        np.add.at(self._known, places, np.isfinite(values).astype(int) - np.isfinite(before))

    def sums(self, group: int) -> np.ndarray:
        """Return the sum at each sample (n), using the last stored value of each entity; NaN if no entity has a
        value."""
        own = slice(group * self._samples, (group + 1) * self._samples)
        total, known = np.cumsum(self._sum[own]), np.cumsum(self._known[own])
        return np.where(known > 0, total, np.nan)


def waits_of(profile: Profile, samples: Samples) -> list[Waited]:
    """Return the waits by type."""
    seen = np.append(False, samples.seen)
    counted = _WaitCounters(profile, samples, seen)
    # A reset seen in one wait may hide in another: count again without the intervals of any reset.
    if counted.lost.any():
        counted = _WaitCounters(profile, samples, seen & ~counted.lost)
    return counted.waits() + _waits_of_sessions(profile, samples)


class _WaitCounters:
    """The counters of waits, summed by type over the intervals that end with the samples `seen`.

    A wait is counted from its first value to its last. `lost`: the samples before which the count of any wait was lost.
    """

    def __init__(self, profile: Profile, samples: Samples, seen: np.ndarray):
        self.lost = np.zeros(len(seen), dtype=bool)
        self._told = seen
        self._sums = [np.zeros(0) for _ in _COUNTED]
        self._classes: dict[str, str] = {}
        types, epochs = Codes(), Codes()
        rises = CounterIncrements(np.arange(len(seen), dtype=float), len(_COUNTED), self)
        for sample, batch in rows_by_sample(profile, "wait_counters", samples):
            code = types.codes(batch, "wait_type")  # each type is its own group
            _note_classes(self._classes, batch)
            values = [floats(batch, column) for column in _COUNTED]
            rises.add(sample, code, code, epochs.codes(batch, "epoch"), values, peers=np.zeros_like(code))
        rises.finish()
        self._types = types.names

    def waits(self) -> list[Waited]:
        waits, wait_ms = (np.pad(sums, (0, len(self._types) - len(sums))).tolist() for sums in self._sums[:2])
        rows = zip(self._types, waits, wait_ms, strict=True)
        return [Waited(name, self._classes[name], count, ms) for name, count, ms in rows if count + ms > 0]

    def add(self, places: np.ndarray, rises: Sequence[np.ndarray | None], lost: np.ndarray) -> None:
        for column, rise in enumerate(rises):
            if rise is not None:
                self.add_late(column, places, rise, lost)

    def add_late(self, column: int, places: np.ndarray, rises: np.ndarray, lost: np.ndarray) -> None:
        types, sample = np.divmod(places, len(self._told))
        self.lost[sample[lost]] = True
        seen = self._told[sample]
        self._sums[column] = plus(self._sums[column], types[seen], rises[seen])

    def mark_unknown(self, column: int, first: int, last: int) -> None:
        pass


def _waits_of_sessions(profile: Profile, samples: Samples) -> list[Waited]:
    """Return waits from sessions that were sampled waiting: each counts as waiting for the complete interval."""
    types, sums = Codes(), np.zeros(0)
    classes: dict[str, str] = {}
    before_s = np.append(0.0, np.where(samples.seen, samples.elapsed_s, 0.0))
    for sample, batch in rows_by_sample(profile, "sessions_seen", samples):
        sums = plus(sums, types.codes(batch, "wait_type"), floats(batch, "users") * before_s[sample] * 1000)
        _note_classes(classes, batch)
    return [
        Waited(name, classes[name], None, ms) for name, ms in zip(types.names, sums.tolist(), strict=True) if ms > 0
    ]


def _note_classes(classes: dict[str, str], batch: pa.RecordBatch) -> None:
    kinds = pa.table(batch.select(["wait_type", "wait_class"])).group_by(["wait_type", "wait_class"]).aggregate([])
    classes |= dict(zip(kinds["wait_type"].to_pylist(), kinds["wait_class"].to_pylist(), strict=True))


def intervals_of(folder: Path, samples: Samples | None = None) -> Intervals:
    """Return the intervals of a profile in the order of time, up to the last of `samples` if given."""
    samples, profile = samples or samples_of(folder), Profile(folder)
    if samples is None:
        return intervals_from_tables(**{name: profile.table(name) for name in profile.tables()})
    server, longest_s = _server(profile, samples)
    seen = np.flatnonzero(samples.seen)
    taken_s = np.round(samples.taken_s * _US) / _US  # the resolution of an imported profile
    columns = {name: values[seen] for name, values in (_file_io(profile, samples) | server).items()}
    return Intervals(taken_s[seen], taken_s[seen + 1], columns, waits_of(profile, samples), longest_s)


def samples_of(folder: Path) -> Samples | None:
    """Return the sample times of a profile, or None if it was imported."""
    profile = Profile(folder)
    made = profile.manifest
    return sample_times(profile.table("samples"), made.interval_s) if made.source == "server" else None


def _file_io(profile: Profile, samples: Samples) -> dict[str, np.ndarray]:
    """Return the columns of the classes of file, each by interval (n − 1), seen or not."""
    classes = _Groups(profile, "file_counters", samples, ("file_class", "entity", "size_bytes"), IO)
    columns: dict[str, np.ndarray] = {}
    for code, name in enumerate(classes.names):
        columns |= {
            f"{name}.{column}": values for column, values in zip(IO, classes.group_increments(code), strict=True)
        }
        columns[f"{name}.size_bytes"] = classes.states.sums(code)[1:]
    return columns


def _server(profile: Profile, samples: Samples) -> tuple[dict[str, np.ndarray], float | None]:
    """Return the columns of the server, in the same form as the files', and the age of the oldest transaction."""
    counters = _Groups(profile, "server_counters", samples, ("counter", "counter", "value"), ["value"])
    columns, longest_s = {}, None
    for code, name in enumerate(counters.names):
        if name == LONGEST_TRANSACTION:
            longest_s = float(np.fmax.reduce(counters.states.sums(code), initial=0.0)) / 1000
        elif name in STATES:
            columns[f"server.{name}"] = counters.states.sums(code)[1:]
        else:
            [columns[f"server.{name}"]] = counters.group_increments(code)
    workers = columns.pop("server.parallel_workers", None)
    if workers is not None and "server.transactions" in columns:
        # PostgreSQL counts two commits for each: at its start, and when it takes over the session's settings. A worker
        # hands them in before the session counts it, at times in an interval of few other transactions.
        of_sessions = columns["server.transactions"] - 2 * np.nan_to_num(workers)
        columns["server.transactions"] = np.maximum(of_sessions, 0.0)
    if "server.cpu_ms" in columns:
        columns["server.cpu_s"] = columns.pop("server.cpu_ms") / 1000
    return columns, longest_s
