"""The totals of a profile: by class of file, and in waits."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stallmark.analysis.profile.placed import seconds_of
from stallmark.record.profile.intervals import FileClass, Intervals


@dataclass(frozen=True)
class ClassTotals:
    """The I/O of a class of file in the `seen_s` seconds in which its reads and writes are known. None: not known.
    `grown_bytes` is from the first to the last size that is known."""

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

    @property
    def read_share(self) -> float | None:
        """Return the share of reads among its I/Os."""
        return _quotient(self.reads, _sum(self.reads, self.writes))

    @property
    def read_kib(self) -> float | None:
        return _scaled(_quotient(self.read_bytes, self.reads), 1 / 1024)

    @property
    def write_kib(self) -> float | None:
        return _scaled(_quotient(self.write_bytes, self.writes), 1 / 1024)

    @property
    def read_ms(self) -> float | None:
        return _quotient(self.read_stall_ms, self.reads)

    @property
    def write_ms(self) -> float | None:
        return _quotient(self.write_stall_ms, self.writes)

    @property
    def reads_per_s(self) -> float | None:
        return _quotient(self.reads, self.seen_s)

    @property
    def writes_per_s(self) -> float | None:
        return _quotient(self.writes, self.seen_s)


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


def server_total(intervals: Intervals, column: str) -> float | None:
    """Return what the server counted over all time; None where it is not known."""
    return _known_sum(intervals.server.column(column))


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
    seconds = seconds_of(rows.column("end")) - seconds_of(rows.column("start"))
    known = np.isfinite(rows.column("writes").to_numpy()) | np.isfinite(rows.column("reads").to_numpy())
    columns = ("reads", "read_bytes", "read_stall_ms", "writes", "write_bytes", "write_stall_ms")
    sizes = rows.column("size_bytes").to_numpy()
    sizes = sizes[np.isfinite(sizes)]
    return ClassTotals(
        name,
        float(seconds[known].sum()),
        **{column: _known_sum(rows.column(column)) for column in columns},
        size_bytes=float(sizes[-1]) if len(sizes) else None,
        grown_bytes=float(sizes[-1] - sizes[0]) if len(sizes) > 1 else None,
    )


def _known_sum(column: pa.ChunkedArray) -> float | None:
    found = pc.sum(column).as_py()
    return None if found is None else float(found)


def _longest_first(waits: Sequence[WaitTotal]) -> list[WaitTotal]:
    return sorted(waits, key=lambda one: (-one.wait_ms, one.name))


def _sum(*parts: float | None) -> float | None:
    known = [part for part in parts if part is not None]
    return sum(known) if len(known) == len(parts) else None


def _quotient(amount: float | None, base: float | None) -> float | None:
    return amount / base if amount is not None and base else None


def _scaled(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor
