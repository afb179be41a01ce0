"""The view of an experiment while it continues: which run and phase, and its lines, by what was added to records."""

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stallmark import format
from stallmark.analysis.read.io import Io, read_io
from stallmark.analysis.read.rises import Codes
from stallmark.analysis.read.server_io import read_server_io
from stallmark.analysis.read.server_state import read_state_views
from stallmark.analysis.read.server_summary import SERVER, WAIT_CLASSES, summed
from stallmark.analysis.read.throughput import Latencies, read_load
from stallmark.errors import StallmarkError
from stallmark.experiment.estimate import Estimate
from stallmark.experiment.progress import Doing, Show
from stallmark.experiment.remaining_runs import order_of, refuse_run, scenario_of, with_records
from stallmark.experiment.status import State, Status, estimate_for, status_of
from stallmark.record.manifest import FILE
from stallmark.record.reader import GrowingStream, RecentRecord, Record, find_records, recorded_seconds
from stallmark.scenarios.model import AnyScenario
from stallmark.scenarios.run_order import PlannedRun

# The lines of a run for the live page: sums of every second, from which means of any stretch follow.

Sums = dict[str, np.ndarray]
"""Arrays of one value a second; NaN in seconds of which nothing is known."""


class LiveLine(NamedTuple):
    """A line of the live page: title and unit, the sum that it shows, and the one by which that is divided."""

    title: str
    unit: str
    amount: str
    per: str | None = None
    write: Callable[[float | None], str] = format.number


MEANS = {
    "tps": LiveLine("Transactions", "committed per second", "committed"),
    "latency_ms": LiveLine("Response time", "ms, mean", "latency_sum_ms", "done"),
    "read_ms": LiveLine("Read stall", "ms per read of a data file", "read_stall_ms", "reads"),
    "log_ms": LiveLine("Log stall", "ms per flush of the log", "log_stall_ms", "log_flushes"),
    "hit_share": LiveLine("Buffer pool hits", "% of the pages asked for", "hits", "asked", format.share),
}
"""The lines that every run has."""
_WAITED_FOR = {
    "io": "I/O",
    "lock": "locks",
    "wal": "the log",
    "replica": "a replica",
    "memory": "memory",
    "latch": "latches",
    "parallel": "parallel workers",
    "worker": "a worker",
    "other": "other things",
}
WAITS = {
    f"waits_{name}": LiveLine(f"Waiting for {_WAITED_FOR[name]}", "sessions", f"waits_{name}")
    for name in WAIT_CLASSES
    if name not in ("client", "cpu")
}
"""The lines of sessions that wait, by class: not for their client, nor on a CPU."""
LINES = MEANS | WAITS


def sums(record: Record, seconds: int) -> Sums:
    """Return the sums of a run's seconds 0 … seconds − 1."""
    io, unknown = read_io(record, read_server_io(record)), np.full(seconds, np.nan)
    series: Sums = dict.fromkeys(("committed", "done", "latency_sum_ms", "users"), unknown)
    if record.manifest.kind != "queries":
        load = read_load(record, seconds, [])
        series = {
            "committed": load.all("committed"),
            "done": load.all("committed") + load.all("rolled_back"),
            "latency_sum_ms": load.all("latency_us") / 1000,
            "users": load.user_sum("running"),
        }
    data = io.data.per_second(seconds) if io.data else {}
    for name, counters in (("reads", SERVER.reads), ("read_stall_ms", SERVER.read_ms)):
        line = summed(data, counters)
        series[name] = unknown if line is None else line
    series["log_flushes"], series["log_stall_ms"] = _log(io, seconds)
    series["hits"], series["asked"] = _pool_requests(record, io, seconds)
    return series | _waits(record, seconds)


def means(values: Sums, line: str, width: int = 1) -> np.ndarray:
    """Return a line as means over `width` seconds each, weighted by I/Os or transactions.

    The last mean may cover fewer seconds. It is NaN for seconds without I/Os, transactions or measurement.
    """
    shown = LINES.get(line)
    above = values[shown.amount if shown else line]
    below = values[shown.per] if shown and shown.per else np.ones(len(above))
    known = np.isfinite(above) & np.isfinite(below)
    begins = np.arange(0, len(above), width)
    if not len(begins):
        return np.empty(0)
    total, count = (np.add.reduceat(np.where(known, part, 0.0), begins) for part in (above, below))
    return np.divide(total, count, out=np.full(len(total), np.nan), where=count > 0)


def mean(series: Sums, line: str, pick: slice | np.ndarray) -> float | None:
    """Return the mean of a line over some seconds, as `means`, or None."""
    picked = {name: values[pick] for name, values in series.items()}
    means_of_line = means(picked, line, max(1, len(picked["committed"])))
    return float(means_of_line[0]) if len(means_of_line) and np.isfinite(means_of_line[0]) else None


def _log(io: Io, seconds: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the flushes of the log per second, and the time they took. A flush is a sync where the server counts
    syncs, else a write."""
    unknown = np.full(seconds, np.nan)
    log = io.wal.per_second(seconds) if io.wal else {}
    names = io.wal_names
    writes, write_ms = summed(log, names.writes), summed(log, names.write_ms)
    syncs, sync_ms = summed(log, names.syncs), summed(log, names.sync_ms)
    if writes is None or write_ms is None:
        return unknown, unknown
    if syncs is None or sync_ms is None:
        return writes, write_ms
    # A server may write its log without syncs (O_DSYNC): then each write is a flush.
    return np.where(syncs > 0, syncs, writes), write_ms + sync_ms


def _pool_requests(record: Record, io: Io, seconds: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the pages per second that the buffer pool had, and those it was asked for: of our database where it is
    counted, else of the server."""
    if io.own_database:
        blocks = io.own_database.per_second(seconds)
        return blocks["blocks_hit"], blocks["blocks_hit"] + blocks["blocks_read"]
    state, unknown = read_state_views(record), np.full(seconds, np.nan)
    asked = state.pool_pages("Page lookups/sec", seconds)
    read = state.pool_pages("Page reads/sec", seconds)
    return (unknown, unknown) if asked is None or read is None else (np.maximum(asked - read, 0), asked)


def _waits(record: Record, seconds: int) -> Sums:
    """Return the mean number of sessions that waited, by class; NaN in seconds without a sample."""
    waits = {line: np.zeros(seconds) for line in WAITS}
    sampled, classes = np.zeros(seconds, dtype=bool), Codes()
    for batch in record.batches("waits", ["second", "wait_class", "samples", "polls"]):
        second = batch.column("second").to_numpy()
        of_row = classes.codes(batch, "wait_class")
        line_of = np.array([f"waits_{name if name in WAIT_CLASSES else 'other'}" for name in classes.names])
        waiting = batch.column("samples").to_numpy() / np.maximum(batch.column("polls").to_numpy(), 1)
        # Seconds without a sample stay unknown: 0 would mean that no session waited.
        sampled[second[second < seconds]] = True
        for line in WAITS:
            rows = (second < seconds) & (line_of[of_row] == line)
            np.add.at(waits[line], second[rows], waiting[rows])
    return {line: np.where(sampled, values, np.nan) for line, values in waits.items()}


# A run that is followed: its lines, and its totals for Prometheus, from what was added to its record since.

COUNTS = ("committed", "rolled_back", "failed", "retries", "latency_us")
_TABLES = ("transactions", "users", "errors", "server_io", "wal", "database", "performance", "waits")
_SETTLED_S = 30
"""Seconds after which a value is final: collectors that sample every 5 s, and servers that report late, are heard."""


@dataclass
class LiveTally:
    """The transactions of one type in one step, while it warmed up or while it was measured."""

    counts: Counter[str] = field(default_factory=Counter)
    latencies: Latencies = field(default_factory=Latencies.empty)


class FollowedRun:
    """A run under way, or one that has ended. `follow` reads what was added."""

    def __init__(self, record: Record):
        self.record = record
        self.seconds = 0
        self.sums: Sums = {}
        self.tallies: dict[tuple[int, bool, str], LiveTally] = defaultdict(LiveTally)
        """The tally of each step's number, measured or warm-up, and transaction."""
        self.errors: Counter[tuple[str, str]] = Counter()
        """Failed attempts by transaction and class."""
        self.files: dict[str, Mapping[str, Any]] = {}
        """The last sample of every file, as the server counts it: since the server's own start."""
        self._streams = {name: GrowingStream(record.folder / f"{name}.arrows") for name in _TABLES}
        self._recent: dict[str, list[pa.RecordBatch]] = {name: [] for name in _TABLES}
        self.whole = False
        """True once a run that has ended was read to its end."""

    def follow(self, record: Record) -> None:
        """Read what was added; `record` is the same one, with its manifest as it is now."""
        self.record = record
        if record.manifest.status == "running":
            self._add()
        elif not self.whole:
            self.whole = True
            self.seconds = _seconds_of(record)
            self.sums = sums(record, self.seconds)

    def step_at(self, second: float) -> tuple[int, bool]:
        """Return the number of the step that a second falls into, and whether it is measured."""
        steps = self.record.manifest.steps
        number = next((number for number, step in enumerate(steps) if second < step.end_s), len(steps) - 1)
        return number, bool(steps) and steps[number].measure_s <= second < steps[number].end_s

    def measured(self) -> np.ndarray:
        """Return, for each second, whether it is measured; before the first step all are."""
        second = np.arange(self.seconds)
        inside = [(second >= step.measure_s) & (second < step.end_s) for step in self.record.manifest.steps]
        return np.any(inside, axis=0) if inside else np.ones(self.seconds, dtype=bool)

    def _add(self) -> None:
        new = {name: stream.read() for name, stream in self._streams.items()}
        for name, batches in new.items():
            self._recent[name] += batches
        if new["transactions"]:
            self._count(pa.Table.from_batches(new["transactions"]))
        for batch in new["errors"]:
            for row in batch.select(["transaction", "error_class", "attempts"]).to_pylist():
                self.errors[row["transaction"], row["error_class"]] += row["attempts"]
        for batch in new["server_io"]:
            self.files |= {row["entity"]: row for row in batch.to_pylist()}
        before = max(0, self.seconds - _SETTLED_S)
        self.seconds = max(self.seconds, self._heard(new))
        series = sums(RecentRecord(self.record, self._recent), self.seconds)
        self.sums = {
            name: np.append(self.sums.get(name, line)[:before], line[before:]) for name, line in series.items()
        }
        for batches in self._recent.values():
            batches[:] = [batch for batch in batches if _latest(batch) >= self.seconds - 2 * _SETTLED_S]

    def _heard(self, new: Mapping[str, list[pa.RecordBatch]]) -> int:
        """Return the whole seconds that were heard of: of the driver; in a run of queries, of the server."""
        if self.record.manifest.kind == "queries":
            return max((int(_latest(batch)) for batch in new["server_io"] + new["database"]), default=0)
        return max((int(_latest(batch)) + 1 for batch in new["users"] + new["transactions"]), default=0)

    def _count(self, rows: pa.Table) -> None:
        keys = [
            (*self.step_at(second), name)
            for second, name in zip(rows["second"].to_pylist(), rows["transaction"].to_pylist(), strict=True)
        ]
        for key in set(keys):
            rows_of_key = rows.filter(pa.array([row_key == key for row_key in keys])).combine_chunks().to_batches()[0]
            tally = self.tallies[key]
            tally.counts.update({name: int(pc.sum(rows_of_key.column(name)).as_py() or 0) for name in COUNTS})
            tally.latencies.merge(rows_of_key.column("latency_gaps"), rows_of_key.column("latency_counts"))


def _latest(batch: pa.RecordBatch) -> float:
    """Return the last second of a batch's rows."""
    column = batch.column("t" if "t" in batch.schema.names else "second")
    return float(column[-1].as_py()) if len(column) else -1.0


def _seconds_of(record: Record) -> int:
    """Return the seconds of an ended run: to the end of its last step, after which users stop one by one."""
    seconds = recorded_seconds(record)
    ends = max((step.end_s for step in record.manifest.steps), default=seconds)
    return min(seconds, int(ends))


# The view of a running experiment: its run, phase and remaining time, and the lines of its runs.


@dataclass(frozen=True)
class Seen:
    """An experiment at one moment."""

    folder: Path
    scenario: AnyScenario
    order: Sequence[PlannedRun]
    status: Status
    runs: dict[int, FollowedRun]
    """The runs that have begun, by number."""
    present: int | None
    """The number of the run under way or in preparation, or None before the first and after the last."""
    doing: Doing | None
    """The present activity, known only to the process that runs the experiment, otherwise None."""

    @property
    def running(self) -> FollowedRun | None:
        """Return the run whose record is being written."""
        run = self.runs.get(self.present or 0)
        return run if run and run.record.manifest.status == "running" else None

    @property
    def final(self) -> bool:
        """Return True if the experiment is over and all runs were read to their ends."""
        over = self.status.state in (State.COMPLETE, State.ENDED)
        return over and all(run.whole for run in self.runs.values())

    @property
    def phase(self) -> str:
        """Return the phase in the words of `Phase`, or of the status where only records are known."""
        # The records are newer than the process that ended or hangs.
        if self.status.state in (State.COMPLETE, State.ENDED, State.SILENT):
            return self.status.state
        if self.doing:
            return self.doing.phase
        return self.status.now.phase if self.status.now else self.status.state


class View:
    """The view of one experiment's folder; `look` reads new records. With the running process's `show`, phases that
    leave no record are known too.
    """

    def __init__(self, folder: Path, scenario: AnyScenario | None = None, show: Show | None = None):
        """Without a scenario, take the records' own. Raise StallmarkError if they have none."""
        if scenario is None:
            refuse_run(folder)
            scenario = scenario_of(folder, find_records(with_records(folder)[:1] or [folder])[-1].manifest)
        self.folder, self.scenario, self.runs_here = folder, scenario, show is not None
        self._show = show
        self._expected: Estimate | None = None
        self._records: dict[Path, tuple[int, Record]] = {}
        self._runs: dict[int, FollowedRun] = {}
        self._ended: tuple[State, str] | None = None
        self._seen: Seen | None = None
        self._looked = 0.0
        self._looking = threading.Lock()

    def end(self, state: State, because: str) -> None:
        """Note that no run follows any more."""
        self._ended = state, because

    def look(self, fresh_s: float = 0.0) -> Seen:
        """Return the experiment as it is now, or was at most `fresh_s` ago; as it was, while files are
        being replaced."""
        with self._looking:
            # Several open pages share one reading of the records.
            if self._seen and time.monotonic() - self._looked < fresh_s:
                return self._seen
            try:
                self._seen, self._looked = self._look(), time.monotonic()
            except (OSError, StallmarkError):
                # Files are replaced while the run writes: the previous view is better than an error.
                if self._seen is None:
                    raise
            return self._seen

    def _look(self) -> Seen:
        records = self._read()
        runs = {record.manifest.sequence or 1: record for record in records}
        self._runs = {number: self._followed(number, record) for number, record in runs.items()}
        for number in self._due(runs):
            self._runs[number].follow(runs[number])
        status = self._status(records)
        doing = self._show.doing if self._show and not self._ended else None
        running = next((number for number, record in runs.items() if record.manifest.status == "running"), None)
        present = None if self._ended else running or (doing.run if doing else None)
        order = order_of(self.scenario, [record.manifest for record in records])
        return Seen(self.folder, self.scenario, order, status, dict(self._runs), present, doing)

    def _followed(self, number: int, record: Record) -> FollowedRun:
        known = self._runs.get(number)
        # True for a run that is repeated on resuming, after it was cut short.
        made_anew = known is not None and known.whole and _goes_on(record)
        return FollowedRun(record) if known is None or made_anew else known

    def _read(self) -> list[Record]:
        """Return the records there are, in order; each is read again only when its manifest has changed."""
        known = {}
        for path in self.folder.glob(f"*/{FILE}"):
            # Manifests of ended runs do not change: reading hundreds each second would take its toll.
            changed = path.stat().st_mtime_ns
            before = self._records.get(path.parent)
            known[path.parent] = before if before and before[0] == changed else (changed, Record(path.parent))
        self._records = known
        return sorted((record for _, record in known.values()), key=lambda record: record.manifest.sequence or 1)

    def _due(self, runs: dict[int, Record]) -> list[int]:
        """Return the runs to read now: all that continue, and the latest of the ended ones.

        Reading a long run takes a second, so ended runs are read one per call.
        """
        ended = [number for number, run in self._runs.items() if not run.whole and not _goes_on(runs[number])]
        return [number for number in runs if _goes_on(runs[number])] + sorted(ended)[-1:]

    def _status(self, records: Sequence[Record]) -> Status:
        if records:
            self._expected = self._expected or estimate_for(self.scenario, self.folder.parent, records[0].manifest)
            progress = status_of(self.folder, self.scenario, self._expected, records)
        else:
            left_s = self._show.left_s if self._show else None
            planned = len(self.scenario.run_order())
            progress = Status(self.folder, self.scenario.title or self.scenario.name, "", planned, 0,
                           State.BETWEEN, left_s=left_s)  # fmt: skip
        if self._ended:
            state, because = self._ended
            return replace(progress, state=state, because=because or None, left_s=None)
        # This process is at work, even if the last record is complete.
        if self.runs_here:
            return replace(progress, state=State.RUNNING, because=None)
        return progress


def _goes_on(record: Record) -> bool:
    return record.manifest.status == "running"
