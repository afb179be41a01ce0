"""Throughput and latency: the driver's tables of one run, read once for the run and for each of its loads.

Merged latency histograms, and percentiles for which the sample is large enough.

The load as the driver counted it: transactions and users, per second and per measured interval.

Sums of a table's columns per second, by load and by the name of what a row is of.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stallmark.analysis.read.rises import Codes, PairCodes
from stallmark.analysis.read.times import Interval, floats, release_memory
from stallmark.record import histogram as hdr
from stallmark.record.reader import Record
from stallmark.record.table_file import readable
from stallmark.stats.thresholds import PERCENTILES, SAMPLES_BEYOND


@dataclass
class Latencies:
    """The merged counts of one histogram layout."""

    counts: np.ndarray

    @classmethod
    def empty(cls) -> "Latencies":
        return cls(np.zeros(hdr.BUCKETS, dtype=np.int64))

    @property
    def size(self) -> int:
        return int(self.counts.sum())

    def merge(self, gaps: pa.ListArray, counts: pa.ListArray) -> None:
        """Add the histograms in two columns of a record. Raise ValueError when one is damaged."""
        self.counts += hdr.total(gaps, counts)

    def add(self, other: "Latencies") -> None:
        self.counts += other.counts

    def percentile_ms(self, share: float, never: int = 0) -> float | None:
        """Return the latency that `share` of all transactions did not exceed; None for too small a sample. `never`
        more took longer than any, and the latency is infinite if it is of one of these."""
        size = self.size + never
        # Rounded before it is compared: 1 − 0.9 is a little less than 0.1 in binary.
        if size < round(SAMPLES_BEYOND / (1 - share), 6):
            return None
        rank = math.ceil(round(share * size, 6))
        if rank > self.size:
            return math.inf
        return self._value_ms(int(np.searchsorted(np.cumsum(self.counts), rank)))

    def share_over(self, limit_ms: float, never: int = 0) -> float | None:
        """Return the share that took longer than the limit, to the precision of the histogram, with `never` further
        ones that did, or None without any."""
        within, size = int(np.searchsorted(hdr.VALUES_US, limit_ms * 1000, side="right")), self.size + never
        return float((self.counts[within:].sum() + never) / size) if size else None

    def sum_ms(self) -> float:
        """Return the sum of all, to the precision of the histogram."""
        return float(self.counts @ hdr.VALUES_US) / 1000

    def max_ms(self) -> float | None:
        used = np.flatnonzero(self.counts)
        return self._value_ms(int(used[-1])) if len(used) else None

    def summary(self, never: int = 0) -> dict[str, float | None]:
        longest = math.inf if never else self.max_ms()
        return {name: self.percentile_ms(share, never) for name, share in PERCENTILES.items()} | {"max": longest}

    @staticmethod
    def _value_ms(index: int) -> float:
        return float(hdr.TOPS_US[index] / 1000)


@dataclass(frozen=True)
class Load:
    """The load of a run, or of one of its loads. `counts[transaction][column]` is an array per second;
    `latency[(interval, transaction)]` is merged."""

    seconds: int
    counts: Mapping[str, Mapping[str, np.ndarray]] = field(default_factory=dict)
    latency: Mapping[tuple[int, str], Latencies] = field(default_factory=dict)
    service: Mapping[tuple[int, str], Latencies] = field(default_factory=dict)
    users: Mapping[int, Mapping[str, np.ndarray]] = field(default_factory=dict)
    """Values by executor; `cpu_us` covers all loads of the executor, because they share the one core that it can
    use."""
    executors: Mapping[int, Sequence[int]] = field(
        default_factory=dict
    )  # keys: load machine, or 0 if the load came from one
    own_io: Mapping[str, Mapping[str, np.ndarray]] = field(default_factory=dict)
    """Values by transaction and column of `transaction_io`; NaN in seconds without a report of the server."""
    statements: Mapping[str, Mapping[str, np.ndarray]] = field(default_factory=dict)
    """Values by statement of a user's own SQL and column of `own_statements`."""
    statement_latency: Mapping[tuple[int, str], Latencies] = field(default_factory=dict)
    attended: frozenset[str] = frozenset()  # transactions that no virtual user starts

    def all(self, column: str) -> np.ndarray:
        """Return a count per second over all transaction types."""
        return self._sum([counts[column] for counts in self.counts.values()])

    def users_sum(self, column: str) -> np.ndarray:
        """Return a count per second over the transactions that virtual users start."""
        counts = self.counts.items()
        return self._sum([columns[column] for name, columns in counts if name not in self.attended])

    def ended_per_second(self, transaction: str) -> np.ndarray:
        """Return the transactions per second that were committed, rolled back or given up."""
        counts = self.counts.get(transaction)
        return self._sum([counts[name] for name in ("committed", "rolled_back", "failed")] if counts else [])

    def user_sum(self, column: str, machine: int | None = None) -> np.ndarray:
        """Return a column of the users' table per second, over all executors or those of one load machine."""
        executors = self.users if machine is None else self.executors[machine]
        return self._sum([self.users[executor][column] for executor in executors])

    def sessions(self) -> np.ndarray:
        """Return the sessions per second that have something to do: those of users, and busy background sessions."""
        attending = self.all("service_us") - self.users_sum("service_us")
        return self.user_sum("running") + attending / 1e6

    def _sum(self, arrays: Sequence[np.ndarray]) -> np.ndarray:
        total = np.zeros(self.seconds)
        for values in arrays:
            total += values
        return total


_MOST = np.iinfo(np.int32).max


class SecondLines:
    """Numbered lines of sums per second, in half of the memory while all are whole numbers that fit in it."""

    def __init__(self, seconds: int):
        self._lines = np.zeros((0, seconds), dtype=np.int32)

    def add(self, low: int, added: np.ndarray) -> None:
        """Add sums by number and second, of the seconds from `low` on."""
        if len(added) > len(self._lines):
            few, self._lines = self._lines, np.zeros((len(added), self._lines.shape[1]), dtype=self._lines.dtype)
            self._lines[: len(few)] = few
        rows = np.flatnonzero(added.any(axis=1))  # memory that nothing was written to is not taken
        cells = rows[:, np.newaxis], np.arange(low, low + added.shape[1])
        total = _in_few_bytes(self._lines[cells] + added[rows])
        if total.dtype.itemsize > self._lines.itemsize:
            self._lines = self._lines.astype(total.dtype)
        self._lines[cells] = total

    def sums(self, numbers: Sequence[int], seconds: int) -> np.ndarray:
        """Return the first `seconds` of some lines together: of a single one as they are, not copied."""
        lines = [self._lines[number, :seconds] for number in numbers if number < len(self._lines)]
        if len(lines) == 1:
            return lines[0]
        return _in_few_bytes(sum(lines, np.zeros(seconds))) if lines else np.broadcast_to(np.int32(0), seconds)


def _in_few_bytes(values: np.ndarray) -> np.ndarray:
    fits = np.abs(values).max(initial=0) <= _MOST and (values == np.rint(values)).all()
    return values.astype(np.int32) if fits else values


class SecondSums:
    """The sums of `columns` in each second, by load and by the values of the column `name`. Rows of older records
    belong to no load."""

    def __init__(self, name: str, columns: Sequence[str], seconds: int):
        self._name, self._seconds = name, seconds
        self._loads, self._names, self._pairs = Codes(), Codes(), PairCodes()
        self._first = np.zeros(0, dtype=np.int64)  # the second of the first row of each pair
        self._lines = {column: SecondLines(seconds) for column in columns}

    def add(self, batch: pa.RecordBatch, second: np.ndarray) -> np.ndarray:
        """Add a batch with the second of each row, and return the number of each row's load and name."""
        number = self._pairs.codes(self._loads.codes(batch, "load"), self._names.codes(batch, self._name))
        room = len(self._pairs)
        self._first = np.append(self._first, np.full(room - len(self._first), self._seconds))
        np.minimum.at(self._first, number, second)
        low = int(second.min())
        width = int(second.max()) + 1 - low
        index = number * width + second - low
        for column, lines in self._lines.items():
            values = floats(batch, column)
            if values.any():
                lines.add(low, np.bincount(index, values, room * width).reshape(room, width))
        return number

    def numbers(self, load: str | None, seconds: int) -> dict[str, list[int]]:
        """Return the numbers of each name that a load, or any, has rows of in its first `seconds`."""
        numbers: dict[str, list[int]] = {}
        loads, names = self._loads.names or [""], self._names.names
        for number, (load_code, name) in enumerate(self._pairs.pairs):
            if self._first[number] < seconds and load in (None, loads[load_code]):
                numbers.setdefault(names[name], []).append(number)
        return numbers

    def sums(self, load: str | None, seconds: int) -> dict[str, dict[str, np.ndarray]]:
        """Return the sums in the first `seconds` of a load, or of all, by name and column."""
        return {
            name: {column: lines.sums(numbers, seconds) for column, lines in self._lines.items()}
            for name, numbers in self.numbers(load, seconds).items()
        }


_COUNTS = ("committed", "rolled_back", "failed", "retries", "latency_us", "service_us")
_TIMES = ("latency", "service")
_OF_STATEMENT = ("executions", "rows", "errors", "latency_us")
_OWN_IO = ("sampled", "reads", "read_bytes", "hits", "read_us")
_USER_SUMS = ("running", "busy_us", "think_us", "lag_us")


def _histograms(*times: str) -> list[str]:
    """Return the names of the histogram columns of each time, such as `latency_gaps`."""
    return [f"{time}_{part}" for time in times for part in ("gaps", "counts")]


@dataclass(frozen=True)
class Part:
    """A run or one of its loads, with its measured intervals."""

    load: str | None  # None: the complete run
    seconds: int
    intervals: Sequence[Interval]
    attended: frozenset[str] = frozenset()  # transactions that no virtual user starts


def read_load(record: Record, seconds: int, intervals: Sequence[Interval]) -> Load:
    """Read the load of a run, or of one of its loads, by itself."""
    part = Part(record.load, seconds, intervals)
    return DriverTables(record.whole, [part]).load_of(part)


class DriverTables:
    """The tables of a run, read in one pass for several parts of the run. Histograms are merged over all seconds that
    belong to the same intervals in every part."""

    def __init__(self, run: Record, parts: Sequence[Part]):
        self._run, self._loads = run, any(part.load is not None for part in parts)
        self._seconds = seconds = max(part.seconds for part in parts)
        intervals = [interval for part in parts for interval in part.intervals]
        self._edges = np.unique([end for interval in intervals for end in (interval.begin, interval.end)])
        self._measured = np.zeros(seconds, dtype=bool)
        for interval in intervals:
            interval.select(self._measured)[:] = True
        # Keys: segment, table and time; arrays: (number, bucket).
        self._histograms: dict[tuple[int, str, str], np.ndarray] = {}
        self._counts = SecondSums("transaction", _COUNTS, seconds)
        self._own_io = SecondSums("transaction", _OWN_IO, seconds)
        self._statements = SecondSums("statement", _OF_STATEMENT, seconds)
        self._users = SecondSums("executor", (*_USER_SUMS, "cpu_us"), seconds)
        self._machines: dict[int, int] = {}  # keys: executor
        for second, batch in self._batches("transactions", ["transaction", *_COUNTS, *_histograms(*_TIMES)]):
            self._add_histograms("transactions", _TIMES, batch, second, self._counts.add(batch, second))
        for second, batch in self._batches("own_statements", ["statement", *_OF_STATEMENT, *_histograms("latency")]):
            self._add_histograms("own_statements", ["latency"], batch, second, self._statements.add(batch, second))
        for second, batch in self._batches("transaction_io", ["transaction", *_OWN_IO]):
            self._own_io.add(batch, second)
        for second, batch in self._batches("users", ["machine", "executor", *_USER_SUMS, "cpu_us"]):
            self._users.add(batch, second)
            self._find_machines(batch)
        release_memory()

    def load_of(self, part: Part) -> Load:
        """Return the load of one of the parts."""
        own = {int(name): sums for name, sums in self._users.sums(part.load, part.seconds).items()}
        used = self._users.sums(None, part.seconds)
        users = {executor: own[executor] | {"cpu_us": used[str(executor)]["cpu_us"]} for executor in sorted(own)}
        executors: dict[int, list[int]] = {}
        for executor in users:
            executors.setdefault(self._machines[executor], []).append(executor)
        return Load(
            part.seconds,
            counts=self._counts.sums(part.load, part.seconds),
            latency=self._merged(part, self._counts, "transactions", "latency"),
            service=self._merged(part, self._counts, "transactions", "service"),
            users=users,
            executors=executors,
            own_io=self._own_io.sums(part.load, part.seconds),
            statements=self._statements.sums(part.load, part.seconds),
            statement_latency=self._merged(part, self._statements, "own_statements", "latency"),
            attended=part.attended,
        )

    def _batches(self, table: str, columns: Sequence[str]) -> Iterator[tuple[np.ndarray, pa.RecordBatch]]:
        """Yield columns of a table with the seconds of the rows, without the partial last one of a run that was cut."""
        for batch in self._run.batches(table, ["second", "load", *columns]):
            if self._loads:
                self._run.require_load(table)
            inside = pc.less(batch.column("second"), self._seconds)
            batch = batch if pc.all(inside).as_py() else batch.filter(inside)
            if batch.num_rows:
                yield batch.column("second").to_numpy().astype(np.int64), batch

    def _add_histograms(
        self, table: str, times: Sequence[str], batch: pa.RecordBatch, second: np.ndarray, number: np.ndarray
    ) -> None:
        stretch = np.where(self._measured[second], np.searchsorted(self._edges, second, side="right"), -1)
        for stretch_number in np.unique(stretch[stretch >= 0]).tolist():
            inside = stretch == stretch_number
            rows = batch if inside.all() else batch.filter(pa.array(inside))
            row, room = number[inside], int(number.max()) + 1
            for time in times:
                key = stretch_number, table, time
                totals = self._histograms.get(key, np.empty((0, hdr.BUCKETS), dtype=np.int64))
                if room > len(totals):
                    totals = np.pad(totals, ((0, room - len(totals)), (0, 0)))
                    self._histograms[key] = totals
                with readable(self._run.folder / table):
                    hdr.add_to(totals, row, *(rows.column(f"{time}_{part}") for part in ("gaps", "counts")))

    def _merged(self, part: Part, counted: SecondSums, table: str, time: str) -> dict[tuple[int, str], Latencies]:
        """Return the histograms of a part by the number of the interval and the name that a table's rows are of."""
        by_name: dict[tuple[int, str], Latencies] = {}
        numbers = counted.numbers(part.load, part.seconds)
        for interval in part.intervals:
            begin, end = np.searchsorted(self._edges, [interval.begin, interval.end], side="right").tolist()
            keys = [(stretch, table, time) for stretch in range(begin, end)]
            stretches = [self._histograms[key] for key in keys if key in self._histograms]
            for name, rows in numbers.items():
                merged = by_name[interval.index, name] = Latencies.empty()
                for totals in stretches:
                    for number in rows:
                        if number < len(totals):
                            merged.counts += totals[number]
        return by_name

    def _find_machines(self, batch: pa.RecordBatch) -> None:
        """Note the load machine of each executor; 0 in records from before there were any."""
        executors, first = np.unique(batch.column("executor").to_numpy(), return_index=True)
        for executor, row in zip(executors.tolist(), first.tolist(), strict=True):
            machine = batch.column("machine")[row].as_py() if "machine" in batch.schema.names else None
            self._machines.setdefault(executor, machine or 0)
