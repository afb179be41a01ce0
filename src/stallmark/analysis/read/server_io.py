"""The I/O that the server counts by file, or by kind of process, read in one pass for all users of the figures.

I/O on data files is split by kind of process if the server reports it so, as PostgreSQL does (pg_stat_io). A worker of
autovacuum hands in its counts when it is done with a table, all at once. So a step has the work of the vacuums that
ended in it, and none of one that went on after it.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Annotated

import numpy as np

from stallmark import format
from stallmark.analysis.read.counters import Counters, Stretch, View, lasting
from stallmark.analysis.read.rises import Codes, CounterIncrements, sum_by_place
from stallmark.analysis.read.server_summary import SERVER, IoSummary, combine_io, summarise_io
from stallmark.analysis.read.times import Interval, first_of_runs, floats, numbers_of, rows_by_sample, sample_times
from stallmark.format import Shown
from stallmark.record.manifest.course import POSTGRESQL
from stallmark.record.reader import Record
from stallmark.stats.thresholds import REPORT_DELAY_S

TABLE = "server_io"
OF_FILES = [f"{verb}{quantity}" for quantity in ("s", "_bytes", "_stall_ms") for verb in ("read", "write", "extend")]
COUNTS = OF_FILES[:6]
_COLUMNS = (*OF_FILES, "syncs", "sync_stall_ms", "hits")
_TIMES = (("reads", "read_stall_ms"), ("writes", "write_stall_ms"))
_LOG_TIMES = (("writes", "write_ms"),)
"""Each count with its time, for the server's I/O and for the log's own view."""
_START = re.compile(r"\bstart (\S+)")
OURS = ("data", "wal")
"""The kinds of files of databases that are ours."""


@dataclass(frozen=True)
class FileSummary:
    """One file of a server that counts by file. `io` is None if its counters were reset."""

    name: str  # "database/logical name"
    kind: str  # data, wal, temp, foreign
    io: IoSummary | None
    growths: int  # times it grew


@dataclass(frozen=True)
class ServerIo:
    """The counters of one run: by kind of file, and by file or process over the stretches that were asked for."""

    kinds: Mapping[str, Counters] = field(default_factory=dict)
    entities: Mapping[str, Counters] = field(default_factory=dict)
    file_kinds: Mapping[str, str] = field(default_factory=dict)
    """The kind of each file; empty if the server does not count by file."""
    growths: Mapping[str, np.ndarray] = field(default_factory=dict)
    """Growth times (s) by file; files that never grew are missing."""
    untimed: Mapping[str, np.ndarray] = field(default_factory=dict)
    """Times of samples without I/O times, by kind of file."""
    starts: np.ndarray = field(default_factory=lambda: np.empty((0, 2)))
    """The times of samples between which the server had another start. Behind one address that may be another server.
    Nothing if the epochs name no start."""

    def summarise_files(self, interval: Interval) -> list[FileSummary]:
        """Return our own files and those in which something was read or written, ours first."""
        files = []
        for name, kind in self._kinds_by_file():
            io = summarise_io(self.entities[name], interval, SERVER, "server")
            times = self.growths.get(name, np.empty(0))
            grown = int(np.sum((times > interval.begin) & (times <= interval.end)))
            if kind in OURS or io is None or io.reads or io.writes:
                files.append(FileSummary(name, kind, io, grown))
        order = ("data", "wal", "temp", "foreign")
        return sorted(files, key=lambda file: (order.index(file.kind), file.name))

    def io_of(self, database: str, interval: Interval) -> tuple[IoSummary | None, IoSummary | None]:
        """Return the I/O of one database's data files and of its log over an interval, or None if unknown."""
        by_kind: dict[str, list[IoSummary | None]] = {kind: [] for kind in OURS}
        for name, kind in self._kinds_by_file():
            if name.startswith(f"{database}/") and kind in OURS:
                by_kind[kind].append(summarise_io(self.entities[name], interval, SERVER, "server"))
        data, wal = (reduce(_add_io, ios) if ios else None for ios in by_kind.values())
        return data, wal

    def _kinds_by_file(self) -> list[tuple[str, str]]:
        return [(name, kind) for name, kind in self.file_kinds.items() if name in self.entities]

    def our_databases(self) -> Collection[str]:
        """Return the databases that are ours, if the server counts by file."""
        return {name.partition("/")[0] for name, kind in self.file_kinds.items() if kind in OURS}


def _add_io(first: IoSummary | None, second: IoSummary | None) -> IoSummary | None:
    return combine_io(first, second) if first and second else None


def read_server_io(record: Record, within: Sequence[Stretch] | None = None) -> ServerIo:
    """Read the I/O. Entities are known `within` these stretches, and left out without them."""
    times = sample_times(record, TABLE)
    if times is None or not len(times):
        return ServerIo()
    product = record.manifest.server.product
    delay_s = REPORT_DELAY_S.get(product, 0.0)
    kinds = View(record, TABLE, times, _COLUMNS, delay_s)
    files = None if within is None else View(record, TABLE, times, OF_FILES, delay_s, within)
    taker = _ByKindAndFile(len(times), kinds, files)
    rises = CounterIncrements(times, len(_COLUMNS), taker)
    if files:
        files.samples.source = rises
    entity_codes, kind_codes, epoch_codes = Codes(), Codes(), Codes()
    growths, starts, untimed = _Growths(times), _Starts(times), _Untimed(times)
    are_files = False
    for time, batch in rows_by_sample(record, TABLE, ["entity", "kind", "epoch", *_COLUMNS, "size_bytes"]):
        entity, kind = entity_codes.codes(batch, "entity"), kind_codes.codes(batch, "kind")
        epoch = epoch_codes.codes(batch, "epoch")
        values = [numbers_of(batch, column) for column in _COLUMNS]
        taker.learn(entity, kind)
        rises.add(time, entity, np.zeros_like(entity), epoch, values, peers=kind)
        are_files = {"entity", "kind", "size_bytes"} <= set(batch.schema.names)
        if files and are_files:
            growths.add_rows(time, entity, epoch, floats(batch, "size_bytes"))
        starts.add(time, epoch, epoch_codes.names)
        # Only PostgreSQL can stop timing while it counts.
        if product == POSTGRESQL:
            untimed.add(time, kind, dict(zip(_COLUMNS, values, strict=True)), _TIMES)
    rises.finish()
    known = [rises.groups_with(column) for column in range(len(_COLUMNS))]
    of_file = [kind_codes.names[kind] for kind in taker.kind_of[: len(entity_codes.names)]] if are_files else []
    return ServerIo(
        kinds=kinds.counters(kind_codes.names, [{int(taker.kind_of[file]) for file in files} for files in known]),
        entities=files.counters(entity_codes.names, known[: len(OF_FILES)]) if files else {},
        file_kinds=dict(zip(entity_codes.names, of_file, strict=False)),
        growths=growths.by_file(entity_codes.names),
        untimed=untimed.by_kind(kind_codes.names),
        starts=np.array(starts.spans).reshape(-1, 2),
    )


class _ByKindAndFile:
    """A taker of rises by file, which gives them to the views by kind and by file."""

    def __init__(self, times: int, kinds: View, files: View | None):
        self._times, self._kinds, self._files = times, kinds.samples, files.samples if files else None
        self._of_files = len(OF_FILES)
        self.kind_of = np.empty(0, dtype=np.int64)
        """The code of each file's kind."""

    def learn(self, entity: np.ndarray, kind: np.ndarray) -> None:
        more = int(entity.max(initial=-1)) + 1 - len(self.kind_of)
        self.kind_of = np.append(self.kind_of, np.zeros(max(more, 0), dtype=np.int64))
        self.kind_of[entity] = kind

    def add(self, places: np.ndarray, rises: Sequence[np.ndarray | None], lost: np.ndarray) -> None:
        self._kinds.add(*sum_by_place(self._kind_places(places), rises, lost))
        if self._files:
            self._files.add(places, rises[: self._of_files], lost)

    def add_grid(self, time: np.ndarray, groups: np.ndarray, rises: Sequence[np.ndarray | None]) -> None:
        self._kinds.add_grid(time, self._kind_places(groups), rises)
        if self._files:
            self._files.add_grid(time, groups, rises[: self._of_files])

    def add_late(self, column: int, places: np.ndarray, rises: np.ndarray, lost: np.ndarray) -> None:
        self._kinds.add_late(column, self._kind_places(places), rises, lost)
        if self._files and column < self._of_files:
            self._files.add_late(column, places, rises, lost)

    def mark_unknown(self, column: int, first: int, last: int) -> None:
        kind = int(self.kind_of[first // self._times]) * self._times
        self._kinds.mark_unknown(column, kind + first % self._times, kind + last % self._times)
        if self._files and column < self._of_files:
            self._files.mark_unknown(column, first, last)

    def _kind_places(self, places: np.ndarray) -> np.ndarray:
        file, time = np.divmod(places, self._times)
        kind_places: np.ndarray = self.kind_of[file] * self._times + time
        return kind_places


class _Growths:
    """The samples at which files had grown."""

    def __init__(self, times: np.ndarray):
        self._times = times
        self._rises = CounterIncrements(times, 1, self)
        self._places: list[np.ndarray] = []
        self._size, self._epochs = np.empty(0), np.empty(0, dtype=np.int64)  # size and epoch of each file's last row

    def add_rows(self, time: np.ndarray, file: np.ndarray, epoch: np.ndarray, size: np.ndarray) -> None:
        """Add rows. Most sizes stay as they were, and then there is nothing to do."""
        more = int(file.max(initial=-1)) + 1 - len(self._size)
        self._size = np.append(self._size, np.full(max(more, 0), np.nan))
        self._epochs = np.append(self._epochs, np.full(max(more, 0), -1))
        if (self._size[file] == size).all() and (self._epochs[file] == epoch).all():
            return
        self._size[file], self._epochs[file] = size, epoch  # the last of several wins
        self._rises.add(time, file, np.zeros_like(file), epoch, [size])

    def add(self, places: np.ndarray, rises: Sequence[np.ndarray | None], lost: np.ndarray) -> None:
        self._places.extend(places[rise > 0] for rise in rises if rise is not None)

    def add_late(self, column: int, places: np.ndarray, rises: np.ndarray, lost: np.ndarray) -> None:
        self._places.append(places[rises > 0])

    def mark_unknown(self, _: int, first: int, last: int) -> None:
        pass  # growth that was not observed is not counted

    def by_file(self, names: Sequence[str]) -> dict[str, np.ndarray]:
        """Return the growth times of each file that grew."""
        places = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *self._places]))
        file, time = np.divmod(places, len(self._times))
        return {names[code]: self._times[time[file == code]] for code in np.unique(file)}


class _Starts:
    """The samples between which the server had another start."""

    def __init__(self, times: np.ndarray):
        self._times = times
        self._numbers: dict[str, int] = {}  # numbers of starts, in the order of appearance
        self._of_epoch = np.empty(0, dtype=np.int64)
        self._last = np.empty((0, 2))  # the time of the last sample and its start
        self.spans: list[tuple[float, float]] = []

    def add(self, time: np.ndarray, epoch: np.ndarray, names: Sequence[str]) -> None:
        new = [self._number(name) for name in names[len(self._of_epoch) :]]
        self._of_epoch = np.append(self._of_epoch, np.array(new, dtype=np.int64))
        first = first_of_runs(time)
        start = self._of_epoch[epoch[first]] if len(names) else np.full(int(first.sum()), -1)
        samples = np.column_stack([self._times[time[first]], start])[start >= 0]
        samples = np.concatenate([self._last, samples])
        changes = np.flatnonzero(np.diff(samples[:, 1]) != 0)
        self.spans += [(float(samples[change, 0]), float(samples[change + 1, 0])) for change in changes]
        self._last = samples[-1:]

    def _number(self, epoch: str) -> int:
        """Return the number of the start that an epoch names; -1 if it names none."""
        match = _START.search(epoch)
        return self._numbers.setdefault(match[1], len(self._numbers)) if match else -1


class _Untimed:
    """Samples of PostgreSQL's I/O that were taken while it did not time its I/O, in a run that was timed otherwise.

    `track_io_timing` can be turned off at any time. Then the counts continue, and the times stop.
    """

    def __init__(self, times: np.ndarray):
        self._times = times
        self._timed: set[int] = set()
        self._untimed: set[int] = set()  # kind × number of samples + index of the sample

    def add(
        self,
        time: np.ndarray,
        kind: np.ndarray,
        values: Mapping[str, np.ndarray | None],
        pairs: Sequence[tuple[str, str]],
    ) -> None:
        """Add rows of kinds with their values. `pairs`: each count with its time."""
        for count, duration in pairs:
            counted, took = values.get(count), values.get(duration)
            if counted is not None and took is not None:
                self._timed.update(np.unique(kind[~np.isnan(took)]).tolist())
                without = np.flatnonzero(~np.isnan(counted) & np.isnan(took))
                self._untimed.update(np.unique(kind[without] * len(self._times) + time[without]).tolist())

    def by_kind(self, names: Sequence[str]) -> dict[str, np.ndarray]:
        """Return the times of such samples, by kind of file ("" without kinds), if others have I/O times."""
        kind, time = np.divmod(np.array(sorted(self._untimed), dtype=np.int64), len(self._times))
        names = names or [""]
        return {
            names[kind_code]: self._times[time[kind == kind_code]] for kind_code in self._timed & set(kind.tolist())
        }


def read_untimed_log(record: Record) -> np.ndarray:
    """Return the times of samples of the log's own view without I/O times, if others have them."""
    times = sample_times(record, "wal")
    if record.manifest.server.product != POSTGRESQL or times is None:
        return np.empty(0)
    untimed = _Untimed(times)
    for time, batch in rows_by_sample(record, "wal", [name for pair in _LOG_TIMES for name in pair]):
        values = {name: numbers_of(batch, name) for pair in _LOG_TIMES for name in pair}
        untimed.add(time, np.zeros_like(time), values, _LOG_TIMES)
    return untimed.by_kind([]).get("", np.empty(0))


def untimed_spans(counters: Counters, untimed: np.ndarray, delay_s: float) -> np.ndarray:
    """Return a mask of the spans between the samples of counters that touch a sample without I/O times."""
    i = np.flatnonzero(np.isin(counters.t, untimed - delay_s))
    touching = np.zeros_like(counters.breaks)
    touching[i[i > 0] - 1] = touching[i[i < len(touching)]] = True
    return lasting(touching, counters.t + delay_s, delay_s)


AUTOVACUUM = "autovacuum worker"
DATA, TEMP = "relation", "temp relation"


def by_process(record: Record, server: ServerIo, *targets: str, columns: Sequence[str] = COUNTS) -> dict[str, Counters]:
    """Return the counters of I/O on `targets` (DATA, TEMP) by kind of process, at the samples of all data files; empty
    if the server counts I/O only in total."""
    data = server.kinds.get("data")
    if data is None or record.manifest.server.product != POSTGRESQL:
        return {}
    totals: dict[str, dict[str, np.ndarray]] = {}
    for entity, counters in server.entities.items():
        process, target, _ = entity.split("/")
        if target not in targets:
            continue
        # A row of zeros is left out after the first sample: until an entity is seen again, it had counted nothing.
        last = np.searchsorted(counters.t, data.t, side="right") - 1
        of_process = totals.setdefault(process, {})
        for name in columns:
            if (total := counters.totals.get(name)) is not None:
                of_process[name] = of_process.get(name, 0.0) + np.where(last >= 0, total[last], 0.0)
    return {name: Counters(data.t, of_process, data.breaks, data.gaps) for name, of_process in totals.items()}


@dataclass(frozen=True)
class ProcessIo:
    """The reads and writes of data files by one kind of the server's processes; a file that grew was written."""

    process: str  # name on the server: "client backend" is a session, "autovacuum worker" vacuums and analyzes
    reads: Annotated[int, Shown("count", format.count, "Reads")]
    read_share: Annotated[float | None, Shown("share", format.share, "Reads")]  # share of all; None if nothing was read
    writes: Annotated[int, Shown("count", format.count, "Writes")]
    write_share: Annotated[float | None, Shown("share", format.share, "Writes")]


def summarise_processes(processes: Mapping[str, Counters], interval: Interval) -> list[ProcessIo] | None:
    """Return the processes with I/O on data files in an interval, the one with most first, autovacuum also without any.
    None if the server counts I/O only in total, or its counters were reset."""
    counted: dict[str, tuple[float, float]] = {}
    for name, counters in processes.items():
        delta = counters.delta(interval.begin, interval.end)
        if delta is None or delta.broken:
            return None
        reads, writes, extends = (delta.values.get(operation) or 0.0 for operation in ("reads", "writes", "extends"))
        if reads or writes or extends or name == AUTOVACUUM:
            counted[name] = (reads, writes + extends)
    if not counted:
        return None
    all_reads, all_writes = map(sum, zip(*counted.values(), strict=True))
    summaries = [
        ProcessIo(
            name,
            reads=round(reads),
            read_share=reads / all_reads if all_reads else None,
            writes=round(writes),
            write_share=writes / all_writes if all_writes else None,
        )
        for name, (reads, writes) in counted.items()
    ]
    return sorted(summaries, key=lambda process: (-process.reads - process.writes, process.process))
