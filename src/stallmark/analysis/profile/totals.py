"""The totals of a profile: by class of file, and in waits."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stallmark.analysis.profile.rates import Counted
from stallmark.record.profile.intervals import IO, FileClass, Intervals, is_known


@dataclass(frozen=True)
class ClassTotals:
    """The I/O of a class of file in the `seen_s` seconds in which its reads or writes are known. None: not known.

    Shares, means and rates are over the intervals in which both of their parts are known. `grown_bytes` is from the
    first to the last size that is known, which are `grown_s` seconds apart; `reads_at_once`: mean reads under way.
    """

    file_class: FileClass
    seen_s: float
    reads: float | None
    read_bytes: float | None
    read_stall_ms: float | None
    writes: float | None
    write_bytes: float | None
    write_stall_ms: float | None
    size_bytes: float | None
    grown_bytes: float | None
    grown_s: float | None
    read_share: float | None
    read_kib: float | None
    write_kib: float | None
    read_ms: float | None
    write_ms: float | None
    reads_per_s: float | None
    writes_per_s: float | None
    read_bytes_per_s: float | None
    reads_at_once: float | None


@dataclass(frozen=True)
class WaitTotal:
    """A class of wait, or one of its types: `share` of all waiting, and how many waited at once on average."""

    name: str
    wait_class: str
    wait_ms: float
    share: float
    waiting: float
    mean_ms: float | None


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
        name,
        float(seconds[np.isfinite(writes) | np.isfinite(reads)].sum()),
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
