"""Rates over time, of what an interval counted: by interval, by minute and by hour, over the time that was seen."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stallmark.record.profile.intervals import FileClass, Intervals
from stallmark.record.profile.manifest import ProfileManifest

MINUTE_S, HOUR_S = 60, 3600
_MB = 1e6


class Measure(StrEnum):
    """A rate of the profile. Those in ms are means over the I/Os that ended; `CPU` is a share of the cores."""

    IOS = "ios_per_s"
    READS = "reads_per_s"
    WRITES = "writes_per_s"
    READ_MB = "read_mb_per_s"
    WRITE_MB = "write_mb_per_s"
    READ_MS = "data_read_ms"
    WRITE_MS = "data_write_ms"
    LOG_WRITES = "log_writes_per_s"
    LOG_MB = "log_mb_per_s"
    LOG_MS = "log_write_ms"
    TRANSACTIONS = "transactions_per_s"
    BATCHES = "batches_per_s"
    CPU = "cpu_share"
    CONNECTIONS = "connections"


@dataclass(frozen=True)
class Counted:
    """A measure in every interval (n) as a quotient: what was counted, over seconds or over I/Os. Both are NaN where it
    is not known."""

    amount: np.ndarray
    base: np.ndarray

    @property
    def is_known(self) -> bool:
        """Tell whether it is known in any interval."""
        return bool((np.isfinite(self.amount) & np.isfinite(self.base)).any())

    def over(self, groups: np.ndarray, count: int) -> np.ndarray:
        """Return the quotient in each of `count` groups; NaN where a group has nothing."""
        known = np.isfinite(self.amount) & np.isfinite(self.base)
        amount = np.bincount(groups[known], weights=self.amount[known], minlength=count)
        base = np.bincount(groups[known], weights=self.base[known], minlength=count)
        return np.divide(amount, base, out=np.full(count, np.nan), where=base > 0)

    def mean(self) -> float | None:
        """Return the quotient over all time; None where it is not known."""
        found = self.over(np.zeros(len(self.amount), dtype=int), 1)[0]
        return float(found) if np.isfinite(found) else None


@dataclass(frozen=True)
class Rates:
    """All measures that are known of a profile, over its intervals (n): `start` and `end` in seconds since 1970."""

    start: np.ndarray
    end: np.ndarray
    counted: Mapping[Measure, Counted]

    @property
    def seconds(self) -> np.ndarray:
        return self.end - self.start

    @property
    def middle(self) -> np.ndarray:
        return (self.start + self.end) / 2

    def by(self, length_s: int) -> "Slots":
        """Return all whole minutes or hours in which anything was seen."""
        slots, groups = np.unique(np.floor(self.middle / length_s).astype(int), return_inverse=True)
        values = {measure: counted.over(groups, len(slots)) for measure, counted in self.counted.items()}
        return Slots(slots * float(length_s), np.bincount(groups, weights=self.seconds, minlength=len(slots)), values)

    def between(self, begin: float, end: float) -> "Rates":
        """Return the intervals whose middle lies from `begin` to `end`."""
        inside = (self.middle >= begin) & (self.middle < end)
        return Rates(
            self.start[inside],
            self.end[inside],
            {name: Counted(one.amount[inside], one.base[inside]) for name, one in self.counted.items()},
        )


@dataclass(frozen=True)
class Slots:
    """Minutes or hours (m): their begin in seconds since 1970, the seconds seen, and the measures, NaN where nothing is
    known."""

    begin: np.ndarray
    seen_s: np.ndarray
    values: Mapping[Measure, np.ndarray]


def seconds_of(column: pa.ChunkedArray) -> np.ndarray:
    """Return times as seconds since 1970."""
    return column.cast(pa.int64()).to_numpy() / 1e6


def rates_of(intervals: Intervals, manifest: ProfileManifest) -> Rates:
    """Return the rates of a profile. A measure of which nothing is known in any interval is left out."""
    spans = pa.concat_tables([table.select(["start", "end"]) for table in (intervals.file_io, intervals.server)])
    start, first = np.unique(seconds_of(spans.column("start")), return_index=True)
    end = seconds_of(spans.column("end"))[first]
    seconds = end - start
    of_class = {name: _Class(intervals.file_io, name, start) for name in FileClass}
    data, log = of_class[FileClass.DATA], of_class[FileClass.LOG]

    def server(name: str, scale: float = 1.0) -> np.ndarray:
        return _placed(intervals.server, name, start) / scale

    def everywhere(*columns: str, scale: float = 1.0) -> np.ndarray:
        there = [one for one in of_class.values() if one.is_there]
        return _total([one[column] for one in there for column in columns], start) / scale

    cores = manifest.server.cores
    log_bytes = log["write_bytes"] if np.isfinite(log["write_bytes"]).any() else server("log_bytes")
    log_writes = log["writes"] if np.isfinite(log["writes"]).any() else server("log_flushes")
    found = {
        Measure.IOS: Counted(everywhere("reads", "writes"), seconds),
        Measure.READS: Counted(everywhere("reads"), seconds),
        Measure.WRITES: Counted(everywhere("writes"), seconds),
        Measure.READ_MB: Counted(everywhere("read_bytes", scale=_MB), seconds),
        Measure.WRITE_MB: Counted(everywhere("write_bytes", scale=_MB), seconds),
        Measure.READ_MS: Counted(data["read_stall_ms"], data["reads"]),
        Measure.WRITE_MS: Counted(data["write_stall_ms"], data["writes"]),
        Measure.LOG_WRITES: Counted(log_writes, seconds),
        Measure.LOG_MB: Counted(log_bytes / _MB, seconds),
        Measure.LOG_MS: Counted(log["write_stall_ms"], log["writes"]),
        Measure.TRANSACTIONS: Counted(server("transactions"), seconds),
        Measure.BATCHES: Counted(server("batches"), seconds),
        Measure.CPU: Counted(server("cpu_s"), seconds * cores if cores else np.full(len(start), np.nan)),
        Measure.CONNECTIONS: Counted(server("connections") * seconds, seconds),
    }
    return Rates(start, end, {name: one for name, one in found.items() if one.is_known})


class _Class:
    """The columns of a class of file, placed on the starts of all intervals."""

    def __init__(self, file_io: pa.Table, name: str, start: np.ndarray):
        self._rows = file_io.filter(pc.equal(file_io.column("file_class"), name))
        self._start = start
        self.is_there = self._rows.num_rows > 0

    def __getitem__(self, column: str) -> np.ndarray:
        return _placed(self._rows, column, self._start)


def _placed(rows: pa.Table, column: str, start: np.ndarray) -> np.ndarray:
    found = np.full(len(start), np.nan)
    places = np.searchsorted(start, seconds_of(rows.column("start")))
    found[places] = rows.column(column).cast(pa.float64()).to_numpy(zero_copy_only=False)
    return found


def _total(columns: list[np.ndarray], start: np.ndarray) -> np.ndarray:
    """Return a sum, NaN where a part is; a part that is never known is left out."""
    known = [column for column in columns if np.isfinite(column).any()]
    return np.sum(known, axis=0) if known else np.full(len(start), np.nan)
