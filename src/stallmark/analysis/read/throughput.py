"""The load as the driver counted it: transactions and users, per second and per measured interval."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from stallmark.analysis.read.interval import Interval
from stallmark.analysis.read.latency import Latencies
from stallmark.record.reader import Record
from stallmark.record.table_file import readable

_COUNTS = ("committed", "rolled_back", "failed", "retries", "latency_us", "service_us")
_HISTOGRAMS = ("latency_gaps", "latency_counts", "service_gaps", "service_counts")
_OWN_IO = ("sampled", "reads", "read_bytes", "hits", "read_us")
_USER_SUMS = ("running", "busy_us", "think_us", "lag_us")


@dataclass
class Load:
    """The load of one run. `counts[transaction][column]` is an array per second; `latency[(interval, transaction)]`
    is merged."""

    seconds: int
    counts: dict[str, dict[str, np.ndarray]] = field(default_factory=dict)
    latency: dict[tuple[int, str], Latencies] = field(default_factory=dict)
    service: dict[tuple[int, str], Latencies] = field(default_factory=dict)
    users: dict[int, dict[str, np.ndarray]] = field(default_factory=dict)
    """By executor; `cpu_us` is of all loads that it has, because they share the one core that an executor can use."""
    executors: dict[int, list[int]] = field(default_factory=dict)  # by load machine; 0: the load came from one
    own_io: dict[str, dict[str, np.ndarray]] = field(default_factory=dict)
    """By transaction and column of `transaction_io`; NaN in seconds for which the server does not tell."""
    attended: frozenset[str] = frozenset()  # transactions that no virtual user starts

    def all(self, column: str) -> np.ndarray:
        """Return a count per second over all transaction types."""
        return self._sum([counts[column] for counts in self.counts.values()])

    def of_users(self, column: str) -> np.ndarray:
        """Return a count per second over the transactions that virtual users start."""
        counts = self.counts.items()
        return self._sum([columns[column] for name, columns in counts if name not in self.attended])

    def ended(self, transaction: str) -> np.ndarray:
        """Return the transactions per second that were committed, rolled back or given up."""
        counts = self.counts.get(transaction)
        return self._sum([counts[name] for name in ("committed", "rolled_back", "failed")] if counts else [])

    def user_sum(self, column: str, machine: int | None = None) -> np.ndarray:
        """Return a column of the users' table per second, over all executors or those of one load machine."""
        executors = self.users if machine is None else self.executors[machine]
        return self._sum([self.users[executor][column] for executor in executors])

    def sessions(self) -> np.ndarray:
        """Return the sessions per second that have something to do: those of users, and busy background sessions."""
        attending = self.all("service_us") - self.of_users("service_us")
        return self.user_sum("running") + attending / 1e6

    def _sum(self, arrays: Sequence[np.ndarray]) -> np.ndarray:
        return np.sum(arrays, axis=0) if arrays else np.zeros(self.seconds)


def read_load(
    record: Record, seconds: int, intervals: Sequence[Interval], attended: frozenset[str] = frozenset()
) -> Load:
    """Read the driver's tables in one pass; each histogram inside a measured interval is decoded once."""
    load = Load(seconds, attended=attended)
    interval_of = np.full(seconds, -1)
    for interval in intervals:
        interval_of[interval.begin : interval.end] = interval.index
    for batch in record.batches("transactions", ["second", "transaction", *_COUNTS, *_HISTOGRAMS]):
        batch = _within(batch, seconds)
        second = batch.column("second").to_numpy()
        where = interval_of[second]
        for name, rows in _by_name(batch.column("transaction")):
            counts = load.counts.setdefault(name, {column: np.zeros(seconds) for column in _COUNTS})
            for column in _COUNTS:
                np.add.at(counts[column], second[rows], batch.column(column).to_numpy()[rows])
            for index in np.unique(where[rows]):
                if index >= 0:
                    some = pa.array(rows[where[rows] == index])
                    for into, what in ((load.latency, "latency"), (load.service, "service")):
                        merged = into.setdefault((int(index), name), Latencies.empty())
                        with readable(record.folder / "transactions"):
                            merged.merge(*(batch.column(f"{what}_{part}").take(some) for part in ("gaps", "counts")))
    for batch in record.batches("transaction_io", ["second", "transaction", *_OWN_IO]):
        batch = _within(batch, seconds)
        second = batch.column("second").to_numpy()
        for transaction, rows in _by_name(batch.column("transaction")):
            looks = load.own_io.setdefault(transaction, {name: np.zeros(seconds) for name in _OWN_IO})
            for name in _OWN_IO:
                values = batch.column(name).cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
                np.add.at(looks[name], second[rows], values[rows])
    for batch in record.batches("users", ["second", "machine", "executor", *_USER_SUMS]):
        batch = _within(batch, seconds)
        second, executor = batch.column("second").to_numpy(), batch.column("executor").to_numpy()
        for number in np.unique(executor):
            rows = executor == number
            if number not in load.users:
                machine = _machine(batch, int(np.argmax(rows)))
                load.executors.setdefault(machine, []).append(int(number))
            sums = load.users.setdefault(int(number), {name: np.zeros(seconds) for name in (*_USER_SUMS, "cpu_us")})
            for column in _USER_SUMS:
                np.add.at(sums[column], second[rows], batch.column(column).to_numpy()[rows])
    for batch in record.of_all_loads("users", ["second", "executor", "cpu_us"]):
        batch = _within(batch, seconds)
        second, executor = batch.column("second").to_numpy(), batch.column("executor").to_numpy()
        for number, sums in load.users.items():
            rows = executor == number
            np.add.at(sums["cpu_us"], second[rows], batch.column("cpu_us").to_numpy()[rows])
    return load


def _machine(batch: pa.RecordBatch, row: int) -> int:
    """Return the load machine of a row; 0 in records from before there were any."""
    return (batch.column("machine")[row].as_py() or 0) if "machine" in batch.schema.names else 0


def _within(batch: pa.RecordBatch, seconds: int) -> pa.RecordBatch:
    """Return the rows without the partial last second of a run that was cut."""
    return batch.filter(pa.compute.less(batch.column("second"), seconds))


def _by_name(names: pa.Array) -> Iterator[tuple[str, np.ndarray]]:
    """Yield every name with its rows, names in order; the column may be dictionary-encoded."""
    encoded = names if isinstance(names, pa.DictionaryArray) else names.dictionary_encode()
    codes, words = encoded.indices.to_numpy(), encoded.dictionary.to_pylist()
    for code in sorted(np.unique(codes), key=lambda code: words[code]):
        yield words[code], np.flatnonzero(codes == code)
