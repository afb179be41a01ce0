"""The rates and totals of a profile's intervals."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated

import numpy as np

from stallmark import format
from stallmark.analysis.columns import Shown, words
from stallmark.analysis.finding import Kind
from stallmark.record.profile.intervals import IO, FileClass, Intervals, is_known
from stallmark.record.profile.manifest import GAP, ProfileManifest


# The kinds of what is found in a production server's profile.
class ProfileKind(Kind):
    SEEN = "profile_seen"
    BUSIEST = "profile_busiest"
    OTHER_PEAK = "profile_peak_by_measure"
    IO_MIX = "profile_io_mix"
    WAITS = "profile_waits"
    WAITS_MET = "profile_waits_met"
    LOG = "profile_log"
    GROWTH = "profile_growth"
    NO_READS = "profile_no_reads"
    READS_AT_MOST = "profile_reads_at_most"
    POOL_TURNOVER = "profile_pool_turnover"
    FITS = "profile_database_fits"
    MEMORY_NOT_KNOWN = "profile_memory_not_known"
    GAPS = "profile_gaps"
    LATE = "profile_late"
    RESTARTS = "profile_restarts"
    OTHER_SERVER = "profile_other_server"
    CLOCK_SET = "profile_clock_set"
    LOST = "profile_counts_lost"
    MISSING = "profile_missing"
    SHORT = "profile_short"
    CACHED_READS = "profile_cached_reads"
    SAMPLED_WAITS = "profile_sampled_waits"
    COUNTED_AT_END = "profile_counted_at_the_end"
    COST = "profile_cost"


# Rates over time, of what an interval counted: by interval, by minute and by hour, over the time that was seen; the
# windows in which a measure was highest for a quarter of an hour; and totals by class of file, and of waits.

MINUTE_S, HOUR_S = 60, 3600
_MB = 1e6
WINDOW_S = 900.0
WINDOWS = 5
SEEN_SHARE = 0.8
"""The share of a window that must have been seen: one busy minute beside a gap is no busy quarter of an hour."""
MORE = 1.1
"""So many times as much of a measure is a peak of its own: a sizing would not show less, whose levels lie about as far
apart."""


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
        """Return whether it is known in any interval. Of a device that did nothing there is no time per I/O."""
        return bool((np.isfinite(self.amount) & (self.base > 0)).any())

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
    """All measures that are known of a profile, over its intervals (n): `start` and `end` in seconds since 1970.
    `late_s`: the length from which an interval is one whose sample came late, as only those of an import are."""

    start: np.ndarray
    end: np.ndarray
    counted: Mapping[Measure, Counted]
    late_s: float = np.inf

    @property
    def seconds(self) -> np.ndarray:
        return self.end - self.start

    @property
    def middle(self) -> np.ndarray:
        return (self.start + self.end) / 2

    def by(self, length_s: int, ahead_s: np.ndarray | float = 0.0) -> "Slots":
        """Return all whole minutes or hours in which anything was seen: of UTC, or of clocks that were ahead of it by
        `ahead_s` in each interval. An hour that such clocks showed twice is one. What came late is in no minute, and
        in an hour only if it is not longer."""
        kept = self.seconds <= (self.late_s if length_s <= MINUTE_S else max(self.late_s, length_s))
        ahead_s, rates = np.broadcast_to(ahead_s, kept.shape)[kept], self._where(kept)
        slots, groups = np.unique(np.floor((rates.middle + ahead_s) / length_s).astype(int), return_inverse=True)
        values = {measure: counted.over(groups, len(slots)) for measure, counted in rates.counted.items()}
        return Slots(slots * float(length_s), np.bincount(groups, weights=rates.seconds, minlength=len(slots)), values)

    def between(self, begin: float, end: float) -> "Rates":
        """Return the intervals whose middle lies from `begin` to `end`."""
        return self._where((self.middle >= begin) & (self.middle < end))

    def _where(self, kept: np.ndarray) -> "Rates":
        counted = {name: Counted(one.amount[kept], one.base[kept]) for name, one in self.counted.items()}
        return replace(self, start=self.start[kept], end=self.end[kept], counted=counted)


@dataclass(frozen=True)
class Slots:
    """Minutes or hours (m): their begin in seconds since 1970 by the clocks they were asked by, the seconds seen, and
    the measures, NaN where nothing is known."""

    begin: np.ndarray
    seen_s: np.ndarray
    values: Mapping[Measure, np.ndarray]


def rates_of(intervals: Intervals, manifest: ProfileManifest) -> Rates:
    """Return the rates of a profile. A measure of which nothing is known in any interval is left out."""
    seconds, cores = intervals.seconds, manifest.server.cores

    def server(column: str) -> np.ndarray:
        return intervals.column(f"server.{column}")

    def took(of: FileClass, stall: str, ios: str) -> Counted:
        return Counted(intervals.column(f"{of}.{stall}"), intervals.column(f"{of}.{ios}"))

    found = {
        Measure.IOS: Counted(intervals.total("reads", "writes"), seconds),
        Measure.READS: Counted(intervals.total("reads"), seconds),
        Measure.WRITES: Counted(intervals.total("writes"), seconds),
        Measure.READ_MB: Counted(intervals.total("read_bytes") / _MB, seconds),
        Measure.WRITE_MB: Counted(intervals.total("write_bytes") / _MB, seconds),
        Measure.READ_MS: took(FileClass.DATA, "read_stall_ms", "reads"),
        Measure.WRITE_MS: took(FileClass.DATA, "write_stall_ms", "writes"),
        Measure.LOG_WRITES: Counted(intervals.log("writes", "log_flushes"), seconds),
        Measure.LOG_MB: Counted(intervals.log("write_bytes", "log_bytes") / _MB, seconds),
        Measure.LOG_MS: took(FileClass.LOG, "write_stall_ms", "writes"),
        Measure.TRANSACTIONS: Counted(server("transactions"), seconds),
        Measure.BATCHES: Counted(server("batches"), seconds),
        Measure.CPU: Counted(server("cpu_s"), seconds * cores if cores else np.full(len(seconds), np.nan)),
        Measure.CONNECTIONS: Counted(server("connections") * seconds, seconds),
    }
    counted = {name: one for name, one in found.items() if one.is_known}
    return Rates(intervals.start, intervals.end, counted, GAP * manifest.interval_s)


PEAKS = (
    *(Measure.IOS, Measure.READS, Measure.WRITES, Measure.LOG_WRITES),
    *(Measure.READ_MB, Measure.WRITE_MB, Measure.LOG_MB),
)
"""The measures of what storage is asked for."""


@dataclass(frozen=True)
class Window:
    """A window: `begin` and `end` in seconds since 1970, and the measures in it over the seconds seen."""

    begin: float
    end: float
    seen_s: float
    values: Mapping[Measure, float | None]


def busiest(
    rates: Rates, measure: Measure = Measure.IOS, length_s: float = WINDOW_S, count: int = WINDOWS
) -> list[Window]:
    """Return the windows with the highest rate, highest first. No two overlap. A profile shorter than one has none.
    Each begins where an interval does."""
    if measure not in rates.counted or not len(rates.start):
        return []
    counted = rates.counted[measure]
    rate, seen_s = sliding(rates.start, rates.end, counted.amount, counted.base, length_s)
    rate = np.where(np.isnan(rate), -np.inf, rate)
    found: list[Window] = []
    for place in np.argsort(-rate, kind="stable"):
        if len(found) == count or not np.isfinite(rate[place]):
            break
        begin, end = float(rates.start[place]), float(rates.start[place]) + length_s
        if all(end <= one.begin or begin >= one.end for one in found):
            inside = rates.between(begin, end)
            values = {name: one.mean() for name, one in inside.counted.items()}
            found.append(Window(begin, end, float(seen_s[place]), values))
    return found


def peaks(rates: Rates) -> dict[Measure, Window]:
    """Return the busiest window by each measure of what storage is asked for, of those that it was asked for."""
    found = {measure: busiest(rates, measure, count=1) for measure in PEAKS}
    return {measure: one[0] for measure, one in found.items() if one and one[0].values[measure]}


def sliding(
    start: np.ndarray, end: np.ndarray, amount: np.ndarray, base: np.ndarray, length_s: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean rate in the window that begins with each interval (n), and the seconds of it in which both are
    known; the rate is NaN if these are too few."""
    known = np.isfinite(amount) & np.isfinite(base)
    of, over, seen = (
        np.concatenate([[0.0], np.cumsum(np.where(known, values, 0.0))]) for values in (amount, base, end - start)
    )
    last = np.searchsorted(end, start + length_s + 1e-6, side="right")
    of, over, seen = of[last] - of[:-1], over[last] - over[:-1], seen[last] - seen[:-1]
    enough = (over > 0) & (seen >= SEEN_SHARE * length_s)
    return np.divide(of, over, out=np.full(len(start), np.nan), where=enough), seen


@dataclass(frozen=True)
class ClassTotals:
    """The I/O of a class of file in the `seen_s` seconds in which its reads or writes are known. None: not known.

    Shares, means and rates are over the intervals in which both of their parts are known. `grown_bytes` is from the
    first to the last size that is known, which are `grown_s` seconds apart; `reads_at_once`: mean reads under way.
    """

    file_class: Annotated[FileClass, words("files")]
    reads_per_s: Annotated[float | None, Shown("reads/s")]
    writes_per_s: Annotated[float | None, Shown("writes/s")]
    read_share: Annotated[float | None, Shown("reads", format.share)]
    read_kib: Annotated[float | None, Shown("KiB/read", importance=1)]
    write_kib: Annotated[float | None, Shown("KiB/write", importance=2)]
    read_ms: Annotated[float | None, Shown("ms/read")]
    write_ms: Annotated[float | None, Shown("ms/write")]
    size_bytes: Annotated[float | None, Shown("size", format.size, importance=3)]
    grown_bytes: Annotated[float | None, Shown("growth", format.signed_size, importance=4)]
    grown_s: float | None
    seen_s: float
    reads: float | None
    read_bytes: float | None
    read_stall_ms: float | None
    writes: float | None
    write_bytes: float | None
    write_stall_ms: float | None
    read_bytes_per_s: float | None
    reads_at_once: float | None


@dataclass(frozen=True)
class WaitTotal:
    """A class of wait, or one of its types: `share` of all waiting, and how many waited at once on average."""

    name: str
    wait_class: str
    wait_ms: float
    share: Annotated[float, Shown("share", format.share)]
    waiting: Annotated[float, Shown("waiting")]
    mean_ms: Annotated[float | None, Shown("ms each", importance=1)]


def server_quotient(intervals: Intervals, amount: str, base: str) -> float | None:
    """Return the quotient of two counts of the server, or None if they are not known of one time."""
    return Counted(*(intervals.column(f"server.{name}") for name in (amount, base))).mean()


def wait_totals(intervals: Intervals, seen_s: float) -> tuple[list[WaitTotal], list[WaitTotal]]:
    """Return all waits by class and by type, longest first."""
    total = sum(one.wait_ms for one in intervals.waits)
    if not total or not seen_s:
        return [], []

    def of(name: str, wait_class: str, wait_ms: float, waits: float | None) -> WaitTotal:
        mean_ms = wait_ms / waits if waits else None
        return WaitTotal(name, wait_class, wait_ms, wait_ms / total, wait_ms / 1000 / seen_s, mean_ms)

    types = [of(one.wait_type, one.wait_class, one.wait_ms, one.waits) for one in intervals.waits if one.wait_ms]
    by_class: dict[str, float] = {}
    for one in types:
        by_class[one.wait_class] = by_class.get(one.wait_class, 0.0) + one.wait_ms
    classes = [of(name, name, wait_ms, None) for name, wait_ms in by_class.items()]
    return _longest_first(classes), _longest_first(types)


def class_totals(intervals: Intervals) -> list[ClassTotals]:
    """Return the totals of all classes that the profile has, in the order of `FileClass`."""
    return [_class_totals(name, intervals) for name in intervals.classes]


def _class_totals(name: FileClass, intervals: Intervals) -> ClassTotals:
    seconds = intervals.seconds
    columns = {column: intervals.column(f"{name}.{column}") for column in IO}
    reads, writes = columns["reads"], columns["writes"]
    sizes = intervals.column(f"{name}.size_bytes")
    sized = np.isfinite(sizes)
    sizes, at = sizes[sized], intervals.end[sized]

    def mean(amount: np.ndarray, base: np.ndarray) -> float | None:
        return Counted(amount, base).mean()

    return ClassTotals(
        file_class=name,
        seen_s=float(seconds[np.isfinite(writes) | np.isfinite(reads)].sum()),
        **{column: float(np.nansum(values)) if is_known(values) else None for column, values in columns.items()},
        size_bytes=float(sizes[-1]) if len(sizes) else None,
        grown_bytes=float(sizes[-1] - sizes[0]) if len(sizes) > 1 else None,
        grown_s=float(at[-1] - at[0]) if len(sizes) > 1 else None,
        read_share=mean(reads, reads + writes),
        read_kib=mean(columns["read_bytes"] / 1024, reads),
        write_kib=mean(columns["write_bytes"] / 1024, writes),
        read_ms=mean(columns["read_stall_ms"], reads),
        write_ms=mean(columns["write_stall_ms"], writes),
        reads_per_s=mean(reads, seconds),
        writes_per_s=mean(writes, seconds),
        read_bytes_per_s=mean(columns["read_bytes"], seconds),
        reads_at_once=mean(columns["read_stall_ms"] / 1000, seconds),
    )


def _longest_first(waits: Sequence[WaitTotal]) -> list[WaitTotal]:
    return sorted(waits, key=lambda one: (-one.wait_ms, one.name))
