"""The I/O that the server counts by file, or by kind of process, read in one pass for all that asks for it.

I/O on data files by kind of process, where the server tells them apart, as PostgreSQL does (pg_stat_io).

A worker of autovacuum hands in its counts when it is done with a table, all at once. So a step has the work of the
vacuums that ended in it, and none of one that went on after it.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from stallmark.analysis.read.counters import Counters, Stretch, View, lasting
from stallmark.analysis.read.interval import Interval
from stallmark.analysis.read.rises import Codes, Rises, summed
from stallmark.analysis.read.sample_times import first_of_runs, floats, numbers_of, placed, sample_times
from stallmark.analysis.read.server_summary import ProcessIo
from stallmark.record.manifest.course import POSTGRESQL
from stallmark.record.reader import Record
from stallmark.stats.thresholds import REPORT_DELAY_S

TABLE = "server_io"
OF_FILES = [f"{verb}{what}" for what in ("s", "_bytes", "_stall_ms") for verb in ("read", "write", "extend")]
COUNTS = OF_FILES[:6]
_COLUMNS = (*OF_FILES, "syncs", "sync_stall_ms", "hits")
_TIMES = (("reads", "read_stall_ms"), ("writes", "write_stall_ms"))
_LOG_TIMES = (("writes", "write_ms"),)
"""Each count with the time of what it counts, of the server's I/O and of the log's own view."""
_START = re.compile(r"\bstart (\S+)")


@dataclass(frozen=True)
class ServerIo:
    """The counters of one run: by kind of file, and by file or process over the stretches that were asked for."""

    kinds: Mapping[str, Counters] = field(default_factory=dict)
    entities: Mapping[str, Counters] = field(default_factory=dict)
    file_kinds: Mapping[str, str] = field(default_factory=dict)
    """Of each file its kind; empty where the server does not count by file."""
    growths: Mapping[str, np.ndarray] = field(default_factory=dict)
    """File -> when it was seen to have grown (s); nothing of those that never were."""
    untimed: Mapping[str, np.ndarray] = field(default_factory=dict)
    """When samples without times were taken, by kind of file."""
    starts: np.ndarray = field(default_factory=lambda: np.empty((0, 2)))
    """The times of samples between which the server had another start. Behind one address that may be another server.
    Nothing if the epochs name no start."""


def read_server_io(
    record: Record, within: Sequence[Stretch] | None = None, columns: Sequence[str] = _COLUMNS
) -> ServerIo:
    """Read the I/O. Entities are known `within` these stretches, and left out without them."""
    times = sample_times(record, TABLE)
    if times is None or not len(times):
        return ServerIo()
    product = record.manifest.server.product
    delay_s = REPORT_DELAY_S.get(product, 0.0)
    kinds = View(record, TABLE, times, columns, delay_s)
    files = None if within is None else View(record, TABLE, times, columns[: len(OF_FILES)], delay_s, within)
    taker = _ByKindAndFile(len(times), kinds, files)
    rises = Rises(times, len(columns), taker)
    if files:
        files.samples.rises = rises
    entity_codes, kind_codes, epoch_codes = Codes(), Codes(), Codes()
    growths, starts, untimed = _Growths(times), _Starts(times), _Untimed(times)
    are_files = False
    for at, batch in placed(record, TABLE, ["entity", "kind", "epoch", *columns, "size_bytes"]):
        entity, kind = entity_codes.of(batch, "entity"), kind_codes.of(batch, "kind")
        epoch = epoch_codes.of(batch, "epoch")
        values = [numbers_of(batch, column) for column in columns]
        taker.learn(entity, kind)
        rises.add(at, entity, np.zeros_like(entity), epoch, values, peers=kind)
        are_files = {"entity", "kind", "size_bytes"} <= set(batch.schema.names)
        if files and are_files:
            growths.add(at, entity, epoch, floats(batch, "size_bytes"))
        starts.add(at, epoch, epoch_codes.names)
        if product == POSTGRESQL:
            untimed.add(at, kind, dict(zip(columns, values, strict=True)), _TIMES)
    rises.finish()
    known = [rises.groups_with(column) for column in range(len(columns))]
    of_file = [kind_codes.names[kind] for kind in taker.kind_of[: len(entity_codes.names)]] if are_files else []
    return ServerIo(
        kinds=kinds.counters(kind_codes.names, [{int(taker.kind_of[one]) for one in some} for some in known]),
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

    def take(self, places: np.ndarray, rises: Sequence[np.ndarray | None], lost: np.ndarray) -> None:
        self._kinds.take(*summed(self._of_kind(places), rises, lost))
        if self._files:
            self._files.take(places, rises[: self._of_files], lost)

    def take_late(self, column: int, places: np.ndarray, rises: np.ndarray, lost: np.ndarray) -> None:
        self._kinds.take_late(column, self._of_kind(places), rises, lost)
        if self._files and column < self._of_files:
            self._files.take_late(column, places, rises, lost)

    def take_unknown(self, column: int, first: int, last: int) -> None:
        kind = int(self.kind_of[first // self._times]) * self._times
        self._kinds.take_unknown(column, kind + first % self._times, kind + last % self._times)
        if self._files and column < self._of_files:
            self._files.take_unknown(column, first, last)

    def _of_kind(self, places: np.ndarray) -> np.ndarray:
        file, at = np.divmod(places, self._times)
        found: np.ndarray = self.kind_of[file] * self._times + at
        return found


class _Growths:
    """The samples at which files had grown."""

    def __init__(self, times: np.ndarray):
        self._times = times
        self._rises = Rises(times, 1, self)
        self._places: list[np.ndarray] = []
        self._size, self._epochs = np.empty(0), np.empty(0, dtype=np.int64)  # of each file's last row

    def add(self, at: np.ndarray, file: np.ndarray, epoch: np.ndarray, size: np.ndarray) -> None:
        """Add rows. Most sizes stay as they were, and then there is nothing to do."""
        more = int(file.max(initial=-1)) + 1 - len(self._size)
        self._size = np.append(self._size, np.full(max(more, 0), np.nan))
        self._epochs = np.append(self._epochs, np.full(max(more, 0), -1))
        if (self._size[file] == size).all() and (self._epochs[file] == epoch).all():
            return
        self._size[file], self._epochs[file] = size, epoch  # of several, the last
        self._rises.add(at, file, np.zeros_like(file), epoch, [size])

    def take(self, places: np.ndarray, rises: Sequence[np.ndarray | None], lost: np.ndarray) -> None:
        self._places.extend(places[rise > 0] for rise in rises if rise is not None)

    def take_late(self, column: int, places: np.ndarray, rises: np.ndarray, lost: np.ndarray) -> None:
        self._places.append(places[rises > 0])

    def take_unknown(self, _: int, first: int, last: int) -> None:
        pass  # what was not seen is not counted

    def by_file(self, names: Sequence[str]) -> dict[str, np.ndarray]:
        """Return when each file was seen to have grown, of those that were."""
        places = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *self._places]))
        file, at = np.divmod(places, len(self._times))
        return {names[code]: self._times[at[file == code]] for code in np.unique(file)}


class _Starts:
    """The samples between which the server had another start."""

    def __init__(self, times: np.ndarray):
        self._times = times
        self._numbers: dict[str, int] = {}  # of starts, in the order in which they were met
        self._of_epoch = np.empty(0, dtype=np.int64)
        self._last = np.empty((0, 2))  # the time of the last sample and its start
        self.spans: list[tuple[float, float]] = []

    def add(self, at: np.ndarray, epoch: np.ndarray, names: Sequence[str]) -> None:
        new = [self._number(name) for name in names[len(self._of_epoch) :]]
        self._of_epoch = np.append(self._of_epoch, np.array(new, dtype=np.int64))
        first = first_of_runs(at)
        start = self._of_epoch[epoch[first]] if len(names) else np.full(int(first.sum()), -1)
        samples = np.column_stack([self._times[at[first]], start])[start >= 0]
        samples = np.concatenate([self._last, samples])
        changes = np.flatnonzero(np.diff(samples[:, 1]) != 0)
        self.spans += [(float(samples[one, 0]), float(samples[one + 1, 0])) for one in changes]
        self._last = samples[-1:]

    def _number(self, epoch: str) -> int:
        """Return the number of the start that an epoch names; -1 if it names none."""
        found = _START.search(epoch)
        return self._numbers.setdefault(found[1], len(self._numbers)) if found else -1


class _Untimed:
    """Samples of PostgreSQL's I/O that were taken while it did not time its I/O, in a run that was timed otherwise.

    `track_io_timing` can be turned off at any time. The counts go on then, and the times stand still.
    """

    def __init__(self, times: np.ndarray):
        self._times = times
        self._timed: set[int] = set()
        self._untimed: set[int] = set()  # kind × number of samples + index of the sample

    def add(
        self,
        at: np.ndarray,
        kind: np.ndarray,
        values: Mapping[str, np.ndarray | None],
        pairs: Sequence[tuple[str, str]],
    ) -> None:
        """Add rows of kinds with their values. `pairs`: each count with the time of what it counts."""
        for count, time in pairs:
            counted, took = values.get(count), values.get(time)
            if counted is not None and took is not None:
                self._timed.update(np.unique(kind[~np.isnan(took)]).tolist())
                without = np.flatnonzero(~np.isnan(counted) & np.isnan(took))
                self._untimed.update(np.unique(kind[without] * len(self._times) + at[without]).tolist())

    def by_kind(self, names: Sequence[str]) -> dict[str, np.ndarray]:
        """Return when such samples were taken, by kind of file ("" without kinds), if others have times."""
        kind, at = np.divmod(np.array(sorted(self._untimed), dtype=np.int64), len(self._times))
        names = names or [""]
        return {names[one]: self._times[at[kind == one]] for one in self._timed & set(kind.tolist())}


def read_untimed_log(record: Record) -> np.ndarray:
    """Return when samples of the log's own view were taken without times, if others have them."""
    times = sample_times(record, "wal")
    if record.manifest.server.product != POSTGRESQL or times is None:
        return np.empty(0)
    untimed = _Untimed(times)
    for at, batch in placed(record, "wal", [name for pair in _LOG_TIMES for name in pair]):
        values = {name: numbers_of(batch, name) for pair in _LOG_TIMES for name in pair}
        untimed.add(at, np.zeros_like(at), values, _LOG_TIMES)
    return untimed.by_kind([]).get("", np.empty(0))


def untimed_spans(counters: Counters, untimed: np.ndarray, delay_s: float) -> np.ndarray:
    """Return which times between the samples of counters touch one without times."""
    i = np.flatnonzero(np.isin(counters.t, untimed - delay_s))
    found = np.zeros_like(counters.breaks)
    found[i[i > 0] - 1] = found[i[i < len(found)]] = True
    return lasting(found, counters.t + delay_s, delay_s)


AUTOVACUUM = "autovacuum worker"
DATA, TEMP = "relation", "temp relation"


def by_process(record: Record, server: ServerIo, *targets: str, columns: Sequence[str] = COUNTS) -> dict[str, Counters]:
    """Return the counters of I/O on `targets` (DATA, TEMP) by kind of process, at the samples of all data files; empty
    if the server does not tell them apart."""
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


def summarise_processes(processes: Mapping[str, Counters], interval: Interval) -> list[ProcessIo] | None:
    """Return the processes with I/O on data files in an interval, the one with most first, autovacuum also without any.
    None if the server does not tell them apart, or its counters began again."""
    counted: dict[str, tuple[float, float]] = {}
    for name, counters in processes.items():
        delta = counters.over(interval.begin, interval.end)
        if delta is None or delta.broken:
            return None
        reads, writes, extends = (delta.get(each) or 0.0 for each in ("reads", "writes", "extends"))
        if reads or writes or extends or name == AUTOVACUUM:
            counted[name] = (reads, writes + extends)
    if not counted:
        return None
    all_reads, all_writes = map(sum, zip(*counted.values(), strict=True))
    found = [
        ProcessIo(
            name,
            reads=round(reads),
            read_share=reads / all_reads if all_reads else None,
            writes=round(writes),
            write_share=writes / all_writes if all_writes else None,
        )
        for name, (reads, writes) in counted.items()
    ]
    return sorted(found, key=lambda one: (-one.reads - one.writes, one.process))
