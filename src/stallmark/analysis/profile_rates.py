"""The rates and totals of a profile's intervals."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated

import numpy as np

from stallmark import format
from stallmark.analysis.finding import Kind
from stallmark.format import Shown, words
from stallmark.record.profile import GAP, IO, FileClass, Intervals, ProfileManifest, is_known


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
    COARSE = "profile_samples_far_apart"
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
"""The share of a window that must have been observed: one busy minute next to a gap is not a busy quarter of an
hour."""
MORE = 1.1
"""Factor from which a window is a separate peak of a measure: a sizing would not show less, as its levels are about as
far apart."""


class Measure(StrEnum):
    """A rate of the profile. Measures in ms are means over the I/Os that ended; `CPU` is a share of the cores."""

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
class Quotient:
    """A measure in every interval (n) as a quotient: an amount over seconds or over I/Os. Both are NaN if unknown."""

    amount: np.ndarray
    base: np.ndarray

    @property
    def is_known(self) -> bool:
        """Return True if the quotient is known in any interval. A device that did nothing has no time per I/O."""
        return bool((np.isfinite(self.amount) & (self.base > 0)).any())

    def quotients(self, groups: np.ndarray, count: int) -> np.ndarray:
        """Return the quotient in each of `count` groups; NaN for a group without values."""
        known = np.isfinite(self.amount) & np.isfinite(self.base)
        amount = np.bincount(groups[known], weights=self.amount[known], minlength=count)
        base = np.bincount(groups[known], weights=self.base[known], minlength=count)
        return np.divide(amount, base, out=np.full(count, np.nan), where=base > 0)

    def mean(self) -> float | None:
        """Return the quotient over all time, or None if unknown."""
        quotient = self.quotients(np.zeros(len(self.amount), dtype=int), 1)[0]
        return float(quotient) if np.isfinite(quotient) else None


@dataclass(frozen=True)
class Rates:
    """All known measures of a profile, over its intervals (n)."""

    start: np.ndarray  # seconds since 1970
    end: np.ndarray  # seconds since 1970
    measures: Mapping[Measure, Quotient]
    late_s: float = np.inf  # the length from which the sample of an interval came late, only in imports

    @property
    def seconds(self) -> np.ndarray:
        return self.end - self.start

    @property
    def middle(self) -> np.ndarray:
        return (self.start + self.end) / 2

    def slots(self, length_s: int, ahead_s: np.ndarray | float = 0.0) -> "Slots":
        """Return all complete minutes or hours that were observed at least in part, in UTC or in clocks ahead of UTC.
        An hour that such clocks showed twice is one. Late intervals are in no minute, and in an hour only if they are
        not longer."""
        kept = self.seconds <= (self.late_s if length_s <= MINUTE_S else max(self.late_s, length_s))
        ahead_s, rates = np.broadcast_to(ahead_s, kept.shape)[kept], self._select(kept)
        slots, groups = np.unique(np.floor((rates.middle + ahead_s) / length_s).astype(int), return_inverse=True)
        values = {measure: quotient.quotients(groups, len(slots)) for measure, quotient in rates.measures.items()}
        return Slots(slots * float(length_s), np.bincount(groups, weights=rates.seconds, minlength=len(slots)), values)

    def part(self, begin: float, end: float) -> "Rates":
        """Return the intervals with a middle from `begin` to `end`."""
        return self._select((self.middle >= begin) & (self.middle < end))

    def _select(self, kept: np.ndarray) -> "Rates":
        measures = {
            name: Quotient(quotient.amount[kept], quotient.base[kept]) for name, quotient in self.measures.items()
        }
        return replace(self, start=self.start[kept], end=self.end[kept], measures=measures)


@dataclass(frozen=True)
class Slots:
    """Minutes or hours (m)."""

    begin: np.ndarray  # seconds since 1970, by the clocks of `Rates.slots`
    seen_s: np.ndarray  # seconds observed
    values: Mapping[Measure, np.ndarray]  # NaN if unknown


def rates_of(intervals: Intervals, manifest: ProfileManifest) -> Rates:
    """Return the rates of a profile. A measure that is unknown in every interval is omitted."""
    seconds, cores = intervals.seconds, manifest.server.cores

    def server(column: str) -> np.ndarray:
        return intervals.column(f"server.{column}")

    def mean_time(file_class: FileClass, stall: str, ios: str) -> Quotient:
        return Quotient(intervals.column(f"{file_class}.{stall}"), intervals.column(f"{file_class}.{ios}"))

    quotients = {
        Measure.IOS: Quotient(intervals.total("reads", "writes"), seconds),
        Measure.READS: Quotient(intervals.total("reads"), seconds),
        Measure.WRITES: Quotient(intervals.total("writes"), seconds),
        Measure.READ_MB: Quotient(intervals.total("read_bytes") / _MB, seconds),
        Measure.WRITE_MB: Quotient(intervals.total("write_bytes") / _MB, seconds),
        Measure.READ_MS: mean_time(FileClass.DATA, "read_stall_ms", "reads"),
        Measure.WRITE_MS: mean_time(FileClass.DATA, "write_stall_ms", "writes"),
        Measure.LOG_WRITES: Quotient(intervals.log("writes", "log_flushes"), seconds),
        Measure.LOG_MB: Quotient(intervals.log("write_bytes", "log_bytes") / _MB, seconds),
        Measure.LOG_MS: mean_time(FileClass.LOG, "write_stall_ms", "writes"),
        Measure.TRANSACTIONS: Quotient(server("transactions"), seconds),
        Measure.BATCHES: Quotient(server("batches"), seconds),
        Measure.CPU: Quotient(server("cpu_s"), seconds * cores if cores else np.full(len(seconds), np.nan)),
        Measure.CONNECTIONS: Quotient(server("connections") * seconds, seconds),
    }
    # Sources differ in their counters, and a measure without values would fill pages with dashes.
    measures = {name: quotient for name, quotient in quotients.items() if quotient.is_known}
    return Rates(intervals.start, intervals.end, measures, GAP * manifest.interval_s)


PEAKS = (
    *(Measure.IOS, Measure.READS, Measure.WRITES, Measure.LOG_WRITES),
    *(Measure.READ_MB, Measure.WRITE_MB, Measure.LOG_MB),
)
"""The measures of the demand on storage."""


@dataclass(frozen=True)
class Window:
    """A window of a profile, and the measures over the seconds observed in it."""

    begin: float  # seconds since 1970
    end: float  # seconds since 1970
    seen_s: float
    values: Mapping[Measure, float | None]


def busiest(rates: Rates, measure: Measure = Measure.IOS, count: int = WINDOWS) -> list[Window]:
    """Return the windows with the highest rate, highest first. No two overlap, and each begins with an interval. A
    profile shorter than a window has none."""
    if measure not in rates.measures or not len(rates.start):
        return []
    counted = rates.measures[measure]
    rate, seen_s = sliding(rates.start, rates.end, counted.amount, counted.base, WINDOW_S)
    rate = np.where(np.isnan(rate), -np.inf, rate)
    windows: list[Window] = []
    for place in np.argsort(-rate, kind="stable"):
        if len(windows) == count or not np.isfinite(rate[place]):
            break
        begin, end = float(rates.start[place]), float(rates.start[place]) + WINDOW_S
        # Overlapping windows would show the same peak several times.
        if all(end <= window.begin or begin >= window.end for window in windows):
            inside = rates.part(begin, end)
            values = {name: quotient.mean() for name, quotient in inside.measures.items()}
            windows.append(Window(begin, end, float(seen_s[place]), values))
    return windows


def peaks(rates: Rates) -> dict[Measure, Window]:
    """Return the busiest window by each measure of the demand on storage, without measures that are always 0."""
    busiest_by_measure = {measure: busiest(rates, measure, count=1) for measure in PEAKS}
    return {
        measure: windows[0] for measure, windows in busiest_by_measure.items() if windows and windows[0].values[measure]
    }


def sliding(
    start: np.ndarray, end: np.ndarray, amount: np.ndarray, base: np.ndarray, length_s: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean rate in the window that begins with each interval (n), and its seconds in which both amounts are
    known; the rate is NaN if these are too few."""
    known = np.isfinite(amount) & np.isfinite(base)
    amounts, over, seen = (
        np.concatenate([[0.0], np.cumsum(np.where(known, values, 0.0))]) for values in (amount, base, end - start)
    )
    last = np.searchsorted(end, start + length_s + 1e-6, side="right")
    amounts, over, seen = amounts[last] - amounts[:-1], over[last] - over[:-1], seen[last] - seen[:-1]
    # A window across a gap has too little time for a mean.
    enough = (over > 0) & (seen >= SEEN_SHARE * length_s)
    return np.divide(amounts, over, out=np.full(len(start), np.nan), where=enough), seen


@dataclass(frozen=True)
class ClassTotals:
    """The I/O of a class of file in the `seen_s` seconds in which its reads or writes are known. Unknown values are
    None.

    Shares, means and rates are over the intervals in which both of their parts are known.
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
    reads_at_once: float | None  # mean number of reads under way


@dataclass(frozen=True)
class WaitTotal:
    """A class of wait, or one of its types."""

    name: str
    wait_class: str
    wait_ms: float
    share: Annotated[float, Shown("share", format.share)]  # share of all waiting
    waiting: Annotated[float, Shown("waiting")]  # mean number of sessions waiting at once
    mean_ms: Annotated[float | None, Shown("ms each", importance=1)]


def pages_read_per_lookup(intervals: Intervals) -> float | None:
    """Return pages read, ahead included, per page lookup; or None if these are not known for a common time."""
    return Quotient(*map(intervals.column, ("server.pages_read", "server.page_lookups"))).mean()


def wait_totals(intervals: Intervals, seen_s: float) -> tuple[list[WaitTotal], list[WaitTotal]]:
    """Return all waits by class and by type, longest first."""
    total = sum(wait.wait_ms for wait in intervals.waits)
    if not total or not seen_s:
        return [], []

    def total_of(name: str, wait_class: str, wait_ms: float, waits: float | None) -> WaitTotal:
        mean_ms = wait_ms / waits if waits else None
        return WaitTotal(name, wait_class, wait_ms, wait_ms / total, wait_ms / 1000 / seen_s, mean_ms)

    types = [
        total_of(wait.wait_type, wait.wait_class, wait.wait_ms, wait.waits) for wait in intervals.waits if wait.wait_ms
    ]
    by_class: dict[str, float] = {}
    for wait in types:
        by_class[wait.wait_class] = by_class.get(wait.wait_class, 0.0) + wait.wait_ms
    classes = [total_of(name, name, wait_ms, None) for name, wait_ms in by_class.items()]
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
    sizes, time_s = sizes[sized], intervals.end[sized]

    def mean(amount: np.ndarray, base: np.ndarray) -> float | None:
        return Quotient(amount, base).mean()

    return ClassTotals(
        file_class=name,
        seen_s=float(seconds[np.isfinite(writes) | np.isfinite(reads)].sum()),
        **{column: float(np.nansum(values)) if is_known(values) else None for column, values in columns.items()},
        size_bytes=float(sizes[-1]) if len(sizes) else None,
        grown_bytes=float(sizes[-1] - sizes[0]) if len(sizes) > 1 else None,
        grown_s=float(time_s[-1] - time_s[0]) if len(sizes) > 1 else None,
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
    return sorted(waits, key=lambda wait: (-wait.wait_ms, wait.name))
