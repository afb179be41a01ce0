"""The totals of a profile: by class of file, and in waits."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stallmark.analysis.profile.placed import seconds_of
from stallmark.analysis.profile.rates import Counted
from stallmark.record.profile.intervals import FileClass, Intervals

_COUNTS = ("reads", "read_bytes", "read_stall_ms", "writes", "write_bytes", "write_stall_ms")


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


def class_totals(intervals: Intervals) -> list[ClassTotals]:
    """Return the totals of all classes that the profile has, in the order of `FileClass`."""
    found = []
    for name in FileClass:
        rows = intervals.file_io.filter(pc.equal(intervals.file_io.column("file_class"), name))
        if rows.num_rows:
            found.append(_class_totals(name, rows))
    return found


def server_quotient(intervals: Intervals, amount: str, base: str) -> float | None:
    """Return the quotient of two counts of the server, or None if they are not known of one time."""
    return Counted(*(intervals.server.column(name).to_numpy() for name in (amount, base))).mean()


def wait_totals(intervals: Intervals, seen_s: float) -> tuple[list[WaitTotal], list[WaitTotal]]:
    """Return all waits by class and by type, longest first."""
    waits = intervals.waits
    total = _known_sum(waits.column("wait_ms")) or 0.0
    if not total or not seen_s:
        return [], []
    kinds = waits.group_by(["wait_class", "wait_type"]).aggregate([("wait_ms", "sum"), ("waits", "sum")]).to_pylist()
    types = [
        WaitTotal(
            row["wait_type"],
            row["wait_class"],
            row["wait_ms_sum"],
            row["wait_ms_sum"] / total,
            row["wait_ms_sum"] / 1000 / seen_s,
            row["wait_ms_sum"] / row["waits_sum"] if row["waits_sum"] else None,
        )
        for row in kinds
        if row["wait_ms_sum"]
    ]
    classes = []
    for name in dict.fromkeys(one.wait_class for one in types):
        own = [one for one in types if one.wait_class == name]
        wait_ms = sum(one.wait_ms for one in own)
        classes.append(WaitTotal(name, name, wait_ms, wait_ms / total, wait_ms / 1000 / seen_s, None))
    return _longest_first(classes), _longest_first(types)


def known_states(intervals: Intervals, column: str) -> np.ndarray:
    """Return the values of a state of the server, without those that are not known."""
    values = intervals.server.column(column).to_numpy()
    return values[np.isfinite(values)]


def _class_totals(name: FileClass, rows: pa.Table) -> ClassTotals:
    ends = seconds_of(rows.column("end"))
    seconds = ends - seconds_of(rows.column("start"))
    columns = {column: rows.column(column).to_numpy() for column in _COUNTS}
    reads, writes = columns["reads"], columns["writes"]
    sizes = rows.column("size_bytes").to_numpy()
    sized = np.isfinite(sizes)
    sizes, at = sizes[sized], ends[sized]

    def mean(amount: np.ndarray, base: np.ndarray) -> float | None:
        return Counted(amount, base).mean()

    return ClassTotals(
        name,
        float(seconds[np.isfinite(writes) | np.isfinite(reads)].sum()),
        **{column: _known_sum(rows.column(column)) for column in _COUNTS},
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


def _known_sum(column: pa.ChunkedArray) -> float | None:
    found = pc.sum(column).as_py()
    return None if found is None else float(found)


def _longest_first(waits: Sequence[WaitTotal]) -> list[WaitTotal]:
    return sorted(waits, key=lambda one: (-one.wait_ms, one.name))
