"""The driver's tables of one run, read once for the run and for each of its loads."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stallmark.analysis.read.interval import Interval
from stallmark.analysis.read.latency import Latencies
from stallmark.analysis.read.second_sums import SecondSums
from stallmark.analysis.read.throughput import Load
from stallmark.record import histogram as hdr
from stallmark.record.reader import Record
from stallmark.record.table_file import readable

_COUNTS = ("committed", "rolled_back", "failed", "retries", "latency_us", "service_us")
_TIMES = ("latency", "service")
_HISTOGRAMS = tuple(f"{time}_{part}" for time in _TIMES for part in ("gaps", "counts"))
_OWN_IO = ("sampled", "reads", "read_bytes", "hits", "read_us")
_USER_SUMS = ("running", "busy_us", "think_us", "lag_us")


@dataclass(frozen=True)
class Part:
    """A run, or one `load` of it, and what is asked of it: so many seconds and the measured intervals. `attended`:
    transactions that no virtual user starts."""

    load: str | None
    seconds: int
    intervals: Sequence[Interval]
    attended: frozenset[str] = frozenset()


def read_load(
    record: Record, seconds: int, intervals: Sequence[Interval], attended: frozenset[str] = frozenset()
) -> Load:
    """Read the load of a run, or of one of its loads, by itself."""
    part = Part(record.load, seconds, intervals, attended)
    return DriverTables(record.whole, [part]).load_of(part)


class DriverTables:
    """The tables of a run, read for some parts of it in one pass. Histograms are merged over stretches of seconds that
    lie in the same intervals of all parts."""

    def __init__(self, run: Record, parts: Sequence[Part]):
        self._run, self._loads = run, any(part.load is not None for part in parts)
        self._seconds = seconds = max(part.seconds for part in parts)
        intervals = [interval for part in parts for interval in part.intervals]
        self._edges = np.unique([end for interval in intervals for end in (interval.begin, interval.end)])
        self._measured = np.zeros(seconds, dtype=bool)
        for interval in intervals:
            interval.of(self._measured)[:] = True
        self._histograms: dict[tuple[int, str], np.ndarray] = {}  # by stretch and time: (number, bucket)
        self._counts = SecondSums("transaction", _COUNTS, seconds)
        self._own_io = SecondSums("transaction", _OWN_IO, seconds)
        self._users = SecondSums("executor", (*_USER_SUMS, "cpu_us"), seconds)
        self._machines: dict[int, int] = {}  # by executor
        for second, batch in self._batches("transactions", ["transaction", *_COUNTS, *_HISTOGRAMS]):
            self._add_histograms(batch, second, self._counts.add(batch, second))
        for second, batch in self._batches("transaction_io", ["transaction", *_OWN_IO]):
            self._own_io.add(batch, second)
        for second, batch in self._batches("users", ["machine", "executor", *_USER_SUMS, "cpu_us"]):
            self._users.add(batch, second)
            self._find_machines(batch)

    def load_of(self, part: Part) -> Load:
        """Return the load of one of the parts."""
        own = {int(name): sums for name, sums in self._users.of(part.load, part.seconds).items()}
        used = self._users.of(None, part.seconds)
        users = {executor: own[executor] | {"cpu_us": used[str(executor)]["cpu_us"]} for executor in sorted(own)}
        executors: dict[int, list[int]] = {}
        for executor in users:
            executors.setdefault(self._machines[executor], []).append(executor)
        return Load(
            part.seconds,
            counts=self._counts.of(part.load, part.seconds),
            latency=self._merged(part, "latency"),
            service=self._merged(part, "service"),
            users=users,
            executors=executors,
            own_io=self._own_io.of(part.load, part.seconds),
            attended=part.attended,
        )

    def _batches(self, table: str, columns: Sequence[str]) -> Iterator[tuple[np.ndarray, pa.RecordBatch]]:
        """Yield columns of a table with the seconds of the rows, without the partial last one of a run that was cut."""
        if self._loads:
            self._run.require(table, "load")
        for batch in self._run.batches(table, ["second", "load", *columns]):
            inside = pc.less(batch.column("second"), self._seconds)
            batch = batch if pc.all(inside).as_py() else batch.filter(inside)
            if batch.num_rows:
                yield batch.column("second").to_numpy().astype(np.int64), batch

    def _add_histograms(self, batch: pa.RecordBatch, second: np.ndarray, number: np.ndarray) -> None:
        stretch = np.where(self._measured[second], np.searchsorted(self._edges, second, side="right"), -1)
        for one in np.unique(stretch[stretch >= 0]).tolist():
            inside = stretch == one
            some = batch if inside.all() else batch.filter(pa.array(inside))
            row, room = number[inside], int(number.max()) + 1
            for time in _TIMES:
                totals = self._histograms.get((one, time), np.empty((0, hdr.BUCKETS), dtype=np.int64))
                if room > len(totals):
                    totals = np.pad(totals, ((0, room - len(totals)), (0, 0)))
                    self._histograms[one, time] = totals
                with readable(self._run.folder / "transactions"):
                    hdr.add_to(totals, row, *(some.column(f"{time}_{part}") for part in ("gaps", "counts")))

    def _merged(self, part: Part, time: str) -> dict[tuple[int, str], Latencies]:
        """Return the histograms of a part by the number of the interval and the transaction."""
        found: dict[tuple[int, str], Latencies] = {}
        numbers = self._counts.numbers(part.load, part.seconds)
        for interval in part.intervals:
            begin, end = np.searchsorted(self._edges, [interval.begin, interval.end], side="right").tolist()
            stretches = [self._histograms[one, time] for one in range(begin, end) if (one, time) in self._histograms]
            for name, some in numbers.items():
                merged = found[interval.index, name] = Latencies.empty()
                for totals in stretches:
                    for number in some:
                        if number < len(totals):
                            merged.counts += totals[number]
        return found

    def _find_machines(self, batch: pa.RecordBatch) -> None:
        """Note the load machine of each executor; 0 in records from before there were any."""
        executors, first = np.unique(batch.column("executor").to_numpy(), return_index=True)
        for executor, row in zip(executors.tolist(), first.tolist(), strict=True):
            machine = batch.column("machine")[row].as_py() if "machine" in batch.schema.names else None
            self._machines.setdefault(executor, machine or 0)
