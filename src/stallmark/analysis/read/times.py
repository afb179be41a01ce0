"""The seconds of a run that are measured, and the times of samples on the driver's clock.

Counts of the driver and of the wait sampler are kept per whole second. So a measured interval is the whole seconds
inside [measure_s, end_s). Everything else (counters, CPU) is taken over exactly these seconds.

A row of a collector holds the middle of the call that read it (`t`), the call's length and the server's own time. The
server counted at its own time, which on a busy machine is far from the middle of the call. So samples are dated by the
server's time, less the offset of its clock from ours. Offset and drift come from the shortest calls of the run, which
fix the server's time best.

A check of the server's clock: did it run evenly with ours while a step was measured? Gaps: how long a source was not
read while a step was measured, and samples at its ends that are dated too roughly for its rates.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.lib.stride_tricks import sliding_window_view

from stallmark.analysis.finding import Finding, Kind, caution, invalid
from stallmark.record.manifest import Manifest
from stallmark.record.reader import Record
from stallmark.stats.thresholds import CLOCK_JUMP_S, DATED_ROUGHLY, GAP_S


class ReadKind(Kind):
    """Faults of the record, and findings that follow from it directly."""

    HISTOGRAM_FULL = "histogram_full"
    HISTOGRAM_LOST_EVENTS = "histogram_lost_events"
    HISTOGRAM_UNIT_UNKNOWN = "histogram_unit_unknown"
    CLOCK_JUMPED = "clock_jumped"
    ERROR_BURST = "error_burst"
    ACTIVE_FITS_DRAM = "active_set_fits_dram"
    ACTIVE_FITS_FLASH = "active_set_fits_flash"
    DATED_ROUGHLY = "dated_roughly"
    FEW_SAMPLES = "few_samples"
    NOT_READ = "not_read_for_a_while"
    QUERY_STORE_STOPPED = "query_store_stopped"
    QUERY_STORE_CHANGED = "query_store_capture_changed"
    QUERY_STORE_DROPPED = "query_store_dropped_counts"
    PLANS_LEFT = "plans_left_the_cache"
    COUNTERS_RESTARTED = "counters_restarted"
    QUERY_FAILED = "query_failed"
    PHASE_CUT = "query_phase_cut"


class CyclesBy(StrEnum):
    """The counts by which checkpoints are recognised."""

    COUNT = "count_of_checkpoints"
    BURSTS = "bursts_of_pages_written"


@dataclass(frozen=True)
class Cycles:
    """The checkpoint cycles of one measured interval. Seconds are of the run."""

    count: int  # whole ones
    checkpoints: int  # number counted in the measured interval, at their ends or beginnings
    begin_s: int  # begin of the first complete cycle, and end of the last
    end_s: int
    measured_s: int  # how long was measured
    whole: bool  # the figures are over these cycles and nothing else
    mean_s: float | None  # mean length of a cycle
    shown_by: CyclesBy
    resolution_s: float
    finding: Finding


Span = tuple[int, int]
"""The first second of an interval, and the one after its last: the same interval may have one number in a run, and
another in the record of a load that rested in some steps."""


@dataclass(frozen=True)
class Interval:
    """The measured seconds begin ≤ s < end of a step."""

    index: int  # number of the step in the manifest
    begin: int
    end: int
    planned_s: float
    cut: bool  # fewer seconds than planned
    cycles: Cycles | None = None  # None if the server's checkpoints are unknown

    @property
    def seconds(self) -> int:
        return self.end - self.begin

    @property
    def span(self) -> Span:
        return self.begin, self.end

    def select(self, per_second: np.ndarray) -> np.ndarray:
        return per_second[self.begin : self.end]


def measured_intervals(manifest: Manifest, recorded: int, cut: bool) -> list[Interval]:
    """Return the intervals of the steps that were reached. A step without one whole measured second is left out.

    `recorded` is the number of whole seconds there are, `cut` whether the run ended early.
    """
    intervals = []
    for index, step in enumerate(manifest.steps):
        begin, whole = math.ceil(step.measure_s), math.floor(step.end_s)
        # A complete run in which nothing happened at the end still lasted: silence is a measurement.
        end = min(whole, recorded) if cut else whole
        if end > begin:
            intervals.append(Interval(index, begin, end, step.end_s - step.measure_s, cut and end < whole))
    return intervals


_DATES = ("t", "took_s", "server_time")

BEST_OF_S = 10.0  # the shortest call of each such period is used
_AROUND = 9  # distances between samples that tell what is usual there
LINE_FROM_S, LINE_FROM_SAMPLES = 60.0, 5  # a line through fewer would be one through their errors


@dataclass(frozen=True)
class ServerClock:
    """The server's clock: its time is `offset_s` + (1 + `drift`) × seconds since the run's start."""

    offset_s: float
    drift: float
    uncertainty_s: float  # typical error of a sample's time
    samples: int

    def date(self, t: np.ndarray, took_s: np.ndarray, server: np.ndarray) -> np.ndarray:
        """Return the sample times, in seconds since the run's start: never outside of their calls, even if a clock
        jumped."""
        counted = (server - self.offset_s) / (1 + self.drift)
        return np.where(np.isfinite(counted), np.clip(counted, t - took_s / 2, t + took_s / 2), t)


@lru_cache(maxsize=2)
def server_clock(record: Record) -> ServerClock | None:
    """Return the server's clock by the calls of all collectors, or None if none records its time and their length."""
    tables = [name for name in record.manifest.collectors if "server_time" in record.schema(name).names]
    timed_tables = [calls for name in tables if (calls := _timed(record, name))]
    if not timed_tables:
        return None
    t, took, server = (np.concatenate(column) for column in zip(*timed_tables, strict=True))
    known = np.isfinite(server) & np.isfinite(took)
    if not known.any():
        return None
    t, half, offset = t[known], took[known] / 2, (server - t)[known]
    shortest = np.lexsort((half, t // BEST_OF_S))
    _, first = np.unique((t // BEST_OF_S)[shortest], return_index=True)
    best = shortest[first]
    t, half, offset = t[best], half[best], offset[best]
    drift, at_zero = 0.0, float(offset[np.argmin(half)])
    if len(t) >= LINE_FROM_SAMPLES and np.ptp(t) >= LINE_FROM_S:
        drift, at_zero = (float(coefficient) for coefficient in np.polyfit(t, offset, 1, w=1 / (half + 1e-3)))
    errors = np.abs(offset - at_zero - drift * t) + half
    return ServerClock(at_zero, drift, float(np.median(errors)), len(t))


class _Calls(NamedTuple):
    """The calls that read a table, in the order of its rows: the first row of each, its middle, its length and the
    server's time. The last two are None if the table lacks them."""

    row: np.ndarray
    t: np.ndarray
    took_s: np.ndarray | None
    server: np.ndarray | None


@lru_cache(maxsize=32)  # a table's are asked for by its readers, by the clock, and to find gaps
def _calls(record: Record, table: str) -> _Calls | None:
    """Read the calls of a table; return None if the table is missing, or lacks times."""
    parts: dict[str, bytearray] = {}  # not arrays: many small ones keep the memory of large ones from being used again
    rows, last = 0, dict.fromkeys(_DATES, np.nan)
    for batch in record.batches(table, _DATES):
        columns = {name: floats(batch, name) for name in _DATES if name in batch.schema.names}
        if "t" not in columns:
            return None
        begins = np.zeros(batch.num_rows, dtype=bool)
        for name, values in columns.items():
            compared = np.nan_to_num(values, nan=-np.inf) if batch.column(name).null_count else values
            begins |= np.append(last[name], compared[:-1])[: len(values)] != compared
            last[name] = compared[-1] if len(values) else last[name]
        call_starts = np.flatnonzero(begins)
        for name, values in (
            {"row": rows + call_starts} | {name: values[call_starts] for name, values in columns.items()}
        ).items():
            parts.setdefault(name, bytearray()).extend(values.tobytes())
        rows += batch.num_rows
    arrays = {name: np.frombuffer(buffer, np.int64 if name == "row" else np.float64) for name, buffer in parts.items()}
    return _Calls(arrays["row"], arrays["t"], arrays.get("took_s"), arrays.get("server_time")) if arrays else None


def forget_calls() -> None:
    """Free the calls of all tables: those of a long run fill memory, and few are asked for again."""
    _calls.cache_clear()
    release_memory()


def release_memory() -> None:
    """Return memory freed between kept arrays to the system: batches of tables leave many such holes."""
    pa.default_memory_pool().release_unused()


def _dates(record: Record, calls: _Calls) -> np.ndarray:
    """Return the time at which each call was answered, in seconds since the run's start; the middle of the call if the
    record lacks its length."""
    if calls.took_s is None or calls.server is None or not (clock := server_clock(record)):
        return calls.t
    return clock.date(calls.t, np.nan_to_num(calls.took_s), calls.server)


def sample_times(record: Record, table: str) -> np.ndarray | None:
    """Return the rising sample times of a table, or None if the table is missing."""
    calls = _calls(record, table)
    return None if calls is None else np.unique(_dates(record, calls))


def rows_by_sample(record: Record, table: str, columns: Sequence[str]) -> Iterator[tuple[np.ndarray, pa.RecordBatch]]:
    """Yield some columns of a table, a batch of rows at a time, and the number of each row's sample in
    `sample_times`; nothing of a table without times."""
    if (calls := _calls(record, table)) is None:
        return
    _, number = np.unique(_dates(record, calls), return_inverse=True)
    for rows, lengths, batch in _batches(record, table, calls, columns):
        yield np.repeat(number[rows], lengths), batch


def rows_with_times(record: Record, table: str, columns: Sequence[str]) -> Iterator[tuple[np.ndarray, pa.RecordBatch]]:
    """Yield some columns of a table, a batch of rows at a time, and when each was read, in seconds since the run's
    start; nothing of a table without times."""
    if (calls := _calls(record, table)) is None:
        return
    t = _dates(record, calls)
    for rows, lengths, batch in _batches(record, table, calls, columns):
        yield np.repeat(t[rows], lengths), batch


def _batches(
    record: Record, table: str, calls: _Calls, columns: Sequence[str]
) -> Iterator[tuple[slice, np.ndarray, pa.RecordBatch]]:
    """Yield batches of a table with the calls that they are of, and how many rows are of each."""
    begin = 0
    for batch in record.batches(table, list(dict.fromkeys(columns)) or ["t"]):
        end = begin + batch.num_rows
        first, last = np.searchsorted(calls.row, [begin, end - 1], side="right")
        rows = slice(int(first) - 1, int(last))
        begins = np.maximum(calls.row[rows], begin)
        yield rows, np.diff(begins, append=end), batch
        begin = end


def sample_spread(record: Record, table: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the time of each sample of a table, and by how much later it may have been taken: until its call was over.
    Empty if the record lacks the length of calls."""
    clock, calls = server_clock(record), _timed(record, table)
    if clock is None or calls is None:
        return np.empty(0), np.empty(0)
    t, took, server = calls
    times = clock.date(t, took, server)
    return times, t + took / 2 - times + clock.uncertainty_s


def planned_interval_s(record: Record, table: str) -> float:
    """Return the planned interval of a collector, or 1 s if the record lacks it."""
    collector = record.manifest.collectors.get(table)
    return (collector.interval_s if collector else None) or 1.0


def longest_apart_s(t: np.ndarray, interval_s: float) -> np.ndarray:
    """Return, for each two neighbours of the samples at `t` (rising), the distance from which samples were missed
    between them, shape (n - 1,).

    A view that takes longer to answer than the planned interval is read at the pace of its answers. Therefore the usual
    distance is the median of the surrounding distances: a collector that stops once leaves a gap.
    """
    apart = np.diff(t)
    if len(apart) < 2:
        return np.full(len(apart), GAP_S * max(1.0, interval_s))
    around = sliding_window_view(apart, min(len(apart), _AROUND))
    middle = (around.shape[1] - 1) // 2
    usual = np.partition(around, middle, axis=1)[:, middle]
    window = np.clip(np.arange(len(apart)) - middle, 0, len(usual) - 1)
    longest: np.ndarray = GAP_S * np.maximum(max(1.0, interval_s), usual[window])
    return longest


def open_s(t: np.ndarray, gaps: np.ndarray, ends: Sequence[float], interval_s: float = 1.0) -> float:
    """Return the seconds at both ends of an interval together for which the increment is uncertain: half of the
    distance between the samples around each end.

    0 if samples are as close as planned (`interval_s`), beyond the first and the last sample, and in one of the `gaps`:
    no end falls there.
    """
    total = 0.0
    for end in ends:
        before = int(np.searchsorted(t, end, side="right")) - 1
        if 0 <= before < len(gaps) and end > t[0] and not gaps[before]:
            apart = float(t[before + 1] - t[before])
            total += apart / 2 if apart > GAP_S * max(1.0, interval_s) else 0.0
    return total


def numbers(record: Record, table: str, column: str) -> np.ndarray | None:
    """Return a column as float64, NaN for null; None when the table has no such column. Memory grows with rows."""
    parts = [numbers_of(batch, column) for batch in record.batches(table, [column])]
    return np.concatenate(parts) if parts and parts[0] is not None else None  # type: ignore[arg-type]


def numbers_of(batch: pa.RecordBatch, column: str) -> np.ndarray | None:
    """Return a column of a batch as float64, NaN for null, or None if the column is missing."""
    return floats(batch, column) if column in batch.schema.names else None


def floats(batch: pa.RecordBatch, column: str) -> np.ndarray:
    """Return a column that a batch has as float64, NaN for null."""
    values: np.ndarray = batch.column(column).cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return values


def plus(sums: np.ndarray, numbers: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return sums by number with further values added."""
    more = np.bincount(numbers, values, len(sums)).astype(float)  # without values bincount returns integers
    more[: len(sums)] += sums
    return more


def first_of_runs(values: np.ndarray) -> np.ndarray:
    """Return a mask of the values that differ from the one before them."""
    return np.append(True, values[1:] != values[:-1])[: len(values)]


def _timed(record: Record, table: str) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Return the middle, the length and the server's time of every call that read a table, or None if one of these is
    missing."""
    calls = _calls(record, table)
    if calls is None or calls.took_s is None or calls.server is None or not len(calls.t):
        return None
    t, first = np.unique(calls.t, return_index=True)
    return t, calls.took_s[first], calls.server[first]


_WITH_SERVER_TIME = ("wal", "checkpoints", "database", "server_io")
"""Any that is read every second will do; those with few rows for a sample first."""

SAMPLES = 5


def clock_findings(record: Record, intervals: Sequence[Interval]) -> dict[Span, Finding]:
    """Return the faults of the clock, by interval; empty if no server time is recorded.

    Samples carry the driver's monotonic time and the server's time of day, and both must advance equally. A jump by
    more than CLOCK_JUMP_S means that a machine stopped or was moved, and rates of these seconds are wrong. One late
    sample is not a jump: medians of SAMPLES are compared.
    """
    if (clocks := _clocks(record)) is None:
        return {}
    return dict(_jumps(*clocks, intervals))


def _jumps(t: np.ndarray, server: np.ndarray, intervals: Sequence[Interval]) -> Iterator[tuple[Span, Finding]]:
    for interval in intervals:
        offset = (server - t)[(t >= interval.begin) & (t <= interval.end)]
        if len(offset) < 2 * SAMPLES:
            continue
        medians = np.median(sliding_window_view(offset, SAMPLES), axis=1)
        jumps = medians[SAMPLES:] - medians[:-SAMPLES]
        worst = float(jumps[np.argmax(np.abs(jumps))])
        if abs(worst) > CLOCK_JUMP_S:
            yield interval.span, invalid(ReadKind.CLOCK_JUMPED, jump_s=worst)


def _clocks(record: Record) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the times of collectors' calls by the clocks of the driver and of the server. They are of the first table
    that has both; None if no table has."""
    for name in _WITH_SERVER_TIME:
        if (calls := _calls(record, name)) and calls.server is not None and len(calls.t) > 1:
            known = np.isfinite(calls.server) & (np.diff(calls.t, prepend=-np.inf) > 0)
            return calls.t[known], calls.server[known]
    return None


def gap_findings(record: Record, intervals: Sequence[Interval]) -> dict[Span, list[Finding]]:
    """Return the sources that were not read for a while, by the interval that the gap touches. A source that is
    sometimes silent leaves no rows; one with an epoch always reports."""
    sources = [
        (collector.title, t, interval_s, _longest_s(t, interval_s), sample_spread(record, name))
        for name, collector in record.manifest.collectors.items()
        for interval_s in [collector.interval_s or 1.0]
        if not collector.unavailable and (t := _reads(record, name)) is not None
    ]
    by_span: dict[Span, list[Finding]] = {}
    for interval in intervals:
        unseen = {title: _unseen_s(t, longest_s, interval) for title, t, _, longest_s, _ in sources}
        few = {
            title: open_s(t, np.diff(t) > longest_s[1:-1], (interval.begin, interval.end), interval_s)
            for title, t, interval_s, longest_s, _ in sources
        }
        rough = {title: _rough_s(*dates, interval) for title, *_, dates in sources}
        rough = {title: seconds for title, seconds in rough.items() if seconds > few[title]}
        by_span[interval.span] = [
            *_gap_finding(ReadKind.NOT_READ, unseen, 0.0, interval),
            *_gap_finding(ReadKind.FEW_SAMPLES, few, DATED_ROUGHLY * interval.seconds, interval),
            *_gap_finding(ReadKind.DATED_ROUGHLY, rough, DATED_ROUGHLY * interval.seconds, interval),
        ]
    return by_span


def _gap_finding(kind: ReadKind, seconds: Mapping[str, float], above: float, interval: Interval) -> Iterator[Finding]:
    """Yield one finding for all sources whose gaps exceed `above`, with the longest gap."""
    sources = [title for title, gap_s in seconds.items() if gap_s > above]
    if sources:
        yield caution(kind, sources=sources, seconds=max(seconds.values()), measured_s=interval.seconds)


def _longest_s(t: np.ndarray, interval_s: float) -> np.ndarray:
    """Return the distances from which samples were missed between neighbours, before the first and after the last too,
    shape (n + 1,)."""
    longest_s = longest_apart_s(t, interval_s) if len(t) > 1 else np.array([GAP_S * max(1.0, interval_s)])
    return np.concatenate([longest_s[:1], longest_s, longest_s[-1:]])[: len(t) + 1]


def _rough_s(t: np.ndarray, late: np.ndarray, interval: Interval) -> float:
    """Return the uncertainty of the sample times at both ends: each was taken between the server's time and the end of
    its call."""
    if not len(t):
        return 0.0
    ends = np.searchsorted(t, [interval.begin, interval.end])
    return float(max(late[max(0, i - 1) : i + 1].max() for i in ends))


def _reads(record: Record, table: str) -> np.ndarray | None:
    """Return the read times of a source, or None if it has no epoch, or never reported anything."""
    first = next(record.batches(table, ["epoch"]), None)
    if first is not None and not first.num_columns:
        return None
    t = sample_times(record, table)
    return None if t is None or not len(t) else t


def _unseen_s(t: np.ndarray, longest_s: np.ndarray, interval: Interval) -> float:
    edges = np.concatenate([[min(interval.begin, t[0])], t, [max(interval.end, t[-1])]])
    overlap = np.minimum(edges[1:], interval.end) - np.maximum(edges[:-1], interval.begin)
    unseen = np.diff(edges) > longest_s
    return float(overlap[unseen & (overlap > 0)].sum())
