"""The reads of a load, from a trace of its I/O: over time, over the data, and by caches that would have held its
pages."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stallmark.analysis.step_summary import StepSummary
from stallmark.record.reader import Record
from stallmark.stats.thresholds import SHARE_SAMPLES

# The trace of a run's I/Os, from its record.

PAGE_BYTES = 8192
EXTENT_PAGES = (1 << 20) // PAGE_BYTES
_FILE_PAGES = 1 << 24
"""Upper bound of the pages of a file: PostgreSQL's files have 2^17 pages at most."""
_READ, _WRITE = 0, 1


@dataclass(frozen=True)
class DataFile:
    table: str
    kind: str
    size_bytes: int


@dataclass(frozen=True)
class Trace:
    """The I/Os of a run, in the order in which they ended. The arrays of reads have one length, those of writes
    another."""

    files: Sequence[DataFile | None]  # index: number; None for a file of no known table
    read_s: np.ndarray  # since the run's start
    read_file: np.ndarray
    read_offset: np.ndarray
    read_bytes: np.ndarray
    read_process: np.ndarray
    write_s: np.ndarray
    write_bytes: np.ndarray
    lost: int

    @property
    def data_files(self) -> list[DataFile]:
        return [file for file in self.files if file]

    def pages(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the pages read, each as a number that identifies the page and its extent, and the read of each
        page."""
        count = np.maximum(1, -(-self.read_bytes // PAGE_BYTES))
        first = self.read_file.astype(np.int64) * _FILE_PAGES + self.read_offset // PAGE_BYTES
        reads = np.repeat(np.arange(len(count)), count)
        within = np.arange(len(reads)) - np.repeat(np.cumsum(count) - count, count)
        return first[reads] + within, reads


def has_trace(record: Record) -> bool:
    return {"io_trace", "io_files"} <= set(record.tables())


def read_trace(record: Record) -> Trace:
    """Return the trace of a run for which `has_trace` is true."""
    known = {
        row["file"]: DataFile(row["table"], row["kind"], row["size_bytes"])
        for row in record.table("io_files").to_pylist()
    }
    names = {"begun_us": "f8", "file": "i8", "offset": "i8", "bytes": "i4", "pid": "i4", "op": "i1", "lost": "i8"}
    parts: dict[str, list[np.ndarray]] = {name: [] for name in names}
    for batch in record.batches("io_trace", list(names)):
        for name, kind in names.items():
            parts[name].append(batch.column(name).to_numpy(zero_copy_only=False).astype(kind))
    columns = {name: np.concatenate([np.empty(0, names[name]), *arrays]) for name, arrays in parts.items()}
    inodes, number = np.unique(columns["file"], return_inverse=True)
    # Files without a read count for the size of the data.
    untouched = known.keys() - set(inodes.tolist())
    begun_s, read, write = columns["begun_us"] / 1e6, columns["op"] == _READ, columns["op"] == _WRITE
    return Trace(
        files=[known.get(inode) for inode in (*inodes.tolist(), *untouched)],
        read_s=begun_s[read],
        read_file=number[read].astype(np.int32),
        read_offset=columns["offset"][read],
        read_bytes=columns["bytes"][read],
        read_process=columns["pid"][read],
        write_s=begun_s[write],
        write_bytes=columns["bytes"][write],
        lost=int(columns["lost"].sum()),
    )


# The figures of a trace: what an LRU flash behind the pool would answer, the footprint, the skew, and the shares.

FLASH_SHARES = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64)
HOTTEST = (0.01, 0.1, 0.2)
_OVER_TIME = 60
_OVER_DATA = np.geomspace(0.001, 1, 61)


@dataclass(frozen=True)
class FlashSize:
    """An LRU flash of one size behind the pool, with the bounds of its hit rate. Between the bounds are reads whose
    previous read is older than the trace."""

    share: float  # flash ÷ data
    size_bytes: int
    least: float | None  # share of the pages read that it surely answers
    most: float | None  # share that it may answer


@dataclass(frozen=True)
class Skew:
    """The share of the reads that is in the hottest part of the data, by two estimates.

    Beforehand: the first half of the interval chooses the hottest part, and the second half judges it. Chance cannot
    make this estimate too large. Afterwards: the same reads choose and judge, so chance makes this estimate too large.
    """

    unit_bytes: int  # 8 KiB: pages; 1 MiB: extents
    units: int  # number in the data
    hottest: dict[str, tuple[float | None, float | None]]  # keys: share of the data; values: beforehand, afterwards
    curve: list[tuple[float, float, float]]  # share of the data, beforehand, afterwards


@dataclass(frozen=True)
class TableReads:
    table: str | None  # None: files of no known table
    reads: int
    share: float | None  # share of all reads
    index_share: float | None  # share of the table's reads that read an index
    data_share: float  # share of all data


@dataclass(frozen=True)
class ReadSize:
    size_bytes: int
    reads: int
    share: float | None


@dataclass(frozen=True)
class Traced:
    """The figures of a traced step, over its measured interval."""

    run: str
    pool_share: float | None
    reads: int
    read_bytes: int
    writes: int
    write_bytes: int
    lost: int
    counted_reads: int | None  # the server's own count, scaled to the interval
    warmed_by: int  # pages read before the judged ones
    judged_by: int  # pages read whose hits are counted
    flash: list[FlashSize]  # FLASH_SHARES
    as_large_as_pools: list[FlashSize]  # sizes of the pools of other runs
    footprint: list[tuple[float, int]]  # seconds, bytes read at least once by that time
    footprint_share: float  # share of the data at the end
    once_share: float | None  # share of the pages read that were read once
    skew: list[Skew]
    tables: list[TableReads]  # most reads first
    sizes: list[ReadSize]
    sequential_share: float | None  # share of the reads that begin where the process's last one ended


def analyse_trace(trace: Trace, step: StepSummary, data_bytes: int, pools: Sequence[float]) -> Traced:
    """Return the figures over the measured interval of a step. I/Os before it warm the flash. `pools` are the pools of
    other runs, as shares of the data."""
    begin, end, io = step.interval.begin_s, step.interval.end_s, step.storage.data
    pages, read_of = trace.pages()
    page_s = trace.read_s[read_of]
    until = page_s < end
    pages, page_s = pages[until], page_s[until]
    inside = page_s >= begin
    later = page_s >= (begin + end) / 2
    mine = (trace.read_s >= begin) & (trace.read_s < end)
    written = (trace.write_s >= begin) & (trace.write_s < end)
    sizes = [file.size_bytes for file in trace.data_files]
    within, within_s = pages[inside], page_s[inside]
    first = previous_accesses(within) < 0
    times = np.linspace(begin, end, _OVER_TIME + 1)
    seen = np.sort(within_s[first])
    footprint = np.searchsorted(seen, times) * PAGE_BYTES
    touched, count = np.unique(within, return_counts=True)
    size, reads_of_size = np.unique(trace.read_bytes[mine], return_counts=True)
    total = int(mine.sum())
    flash = _flash(pages, later, data_bytes, [*FLASH_SHARES, *pools])
    # The first half chooses the hottest data, the second judges the choice.
    halves = within[within_s < (begin + end) / 2], within[within_s >= (begin + end) / 2]
    return Traced(
        run=step.run,
        pool_share=step.buffer_pool_share,
        reads=total,
        read_bytes=int(trace.read_bytes[mine].sum()),
        writes=int(written.sum()),
        write_bytes=int(trace.write_bytes[written].sum()),
        lost=trace.lost,
        counted_reads=round(io.reads * (end - begin) / io.seconds) if io and io.seconds else None,
        warmed_by=int((~later).sum()),
        judged_by=int(later.sum()),
        flash=flash[: len(FLASH_SHARES)],
        as_large_as_pools=flash[len(FLASH_SHARES) :],
        footprint=[(float(time - begin), int(read_bytes)) for time, read_bytes in zip(times, footprint, strict=True)],
        footprint_share=len(touched) * PAGE_BYTES / data_bytes,
        once_share=share(int((count == 1).sum()), len(touched)),
        skew=[
            _skew(halves, 1, sum(-(-size // PAGE_BYTES) for size in sizes)),
            _skew(halves, EXTENT_PAGES, sum(-(-size // (EXTENT_PAGES * PAGE_BYTES)) for size in sizes)),
        ],
        tables=_tables(trace, mine),
        sizes=[
            ReadSize(int(size_bytes), int(reads), share(int(reads), total))
            for size_bytes, reads in zip(size, reads_of_size, strict=True)
        ],
        sequential_share=_sequential(trace, mine),
    )


def share(part: int, whole: int) -> float | None:
    """Return part ÷ whole, or None for too few samples."""
    return part / whole if whole >= SHARE_SAMPLES else None


def _flash(pages: np.ndarray, judged: np.ndarray, data_bytes: int, shares: Sequence[float]) -> list[FlashSize]:
    """Return the hits of LRU flash with these shares of the data among the `judged` accesses, after all earlier
    accesses. A page that was not read before in the trace is surely no longer on flash once more other pages were read
    than the flash holds."""
    distance = stack_distances(pages)
    cold = distance == COLD
    others = np.cumsum(cold) - cold
    warm, unknown = np.sort(distance[judged & ~cold]), np.sort(others[judged & cold])
    count = int(judged.sum())
    sizes = []
    for part in shares:
        holds = round(part * data_bytes / PAGE_BYTES)
        hits = int(np.searchsorted(warm, holds, "right"))
        doubtful = int(np.searchsorted(unknown, holds))
        size_bytes = holds * PAGE_BYTES
        sizes.append(FlashSize(part, size_bytes, share(hits, count), share(hits + doubtful, count)))
    return sizes


def _skew(halves: Sequence[np.ndarray], pages: int, units: int) -> Skew:
    """Return the skew over units of `pages` pages."""
    ids, half = np.unique(np.concatenate(halves) // pages, return_inverse=True)
    split = len(halves[0])
    early, late = (np.bincount(part, minlength=len(ids)) for part in (half[:split], half[split:]))
    beforehand = np.cumsum(late[np.argsort(-early, kind="stable")] * (np.sort(early)[::-1] > 0))
    afterwards = np.cumsum(np.sort(early + late)[::-1])

    def share_in_hottest(sums: np.ndarray, part: float) -> float | None:
        hottest = min(round(part * units), len(sums))
        return share(
            int(sums[hottest - 1]) if hottest else 0, int((late if sums is beforehand else early + late).sum())
        )

    both = {
        part: (share_in_hottest(beforehand, part), share_in_hottest(afterwards, part))
        for part in (*HOTTEST, *_OVER_DATA.tolist())
    }
    return Skew(
        unit_bytes=pages * PAGE_BYTES,
        units=units,
        hottest={f"{part:g}": both[part] for part in HOTTEST},
        curve=[(part, *both[part]) for part in _OVER_DATA.tolist() if None not in both[part]],  # type: ignore[misc]
    )


def _tables(trace: Trace, mine: np.ndarray) -> list[TableReads]:
    reads = np.bincount(trace.read_file[mine], minlength=len(trace.files)).tolist()
    data = sum(file.size_bytes for file in trace.data_files) or 1
    by_table: dict[str | None, list[int]] = {}  # reads, index reads, bytes
    for file, count in zip(trace.files, reads, strict=True):
        sums = by_table.setdefault(file.table if file else None, [0, 0, 0])
        sums[0] += count
        sums[1] += count * bool(file and file.kind == "index")
        sums[2] += file.size_bytes if file else 0
    total = sum(reads)
    tables = [
        TableReads(table, count, share(count, total), share(index, count), size / data)
        for table, (count, index, size) in by_table.items()
        if count
    ]
    return sorted(tables, key=lambda table: -table.reads)


def _sequential(trace: Trace, mine: np.ndarray) -> float | None:
    process, file, offset, size = (
        column[mine] for column in (trace.read_process, trace.read_file, trace.read_offset, trace.read_bytes)
    )
    order = np.lexsort((file, process))  # stable: the reads of each process in each file in their order
    ends = (offset + size)[order]
    follows = (offset[order][1:] == ends[:-1]) & (file[order][1:] == file[order][:-1])
    follows &= process[order][1:] == process[order][:-1]
    return share(int(follows.sum()), len(order))


# The stack distances of a sequence of accesses, from which the hits of an LRU cache of every size follow at once: R. L.
# Mattson, J. Gecsei, D. R. Slutz, I. L. Traiger: Evaluation techniques for storage hierarchies, IBM Systems Journal 9
# (1970) 78-117.

COLD = -1
"""The distance of the first access to a page, which no cache answers."""


def stack_distances(pages: np.ndarray) -> np.ndarray:
    """Return, for each access, the number of different pages accessed since the last access to its page, that page
    included.

    An LRU cache of at least that many pages answers the access. The distance is COLD for the first access to a page.
    For example, the pages 7 8 8 7 have the distances COLD, COLD, 1 and 2.

    Takes about a second for a million accesses.
    """
    last = previous_accesses(pages)
    # Between two accesses to a page each other page counts at its first one there, whose own last access lies before
    # both. Of all accesses so far those with an earlier last one are counted; all up to the page's last access are.
    earlier = _smaller_before(last)
    return np.where(last < 0, COLD, earlier - last).astype(np.int64)


def previous_accesses(pages: np.ndarray) -> np.ndarray:
    """Return, for each access, the index of the last access to the same page, or -1 for the first one."""
    order = np.argsort(pages, kind="stable")
    ordered = pages[order]
    last = np.full(len(pages), -1, dtype=np.int64)
    same = ordered[1:] == ordered[:-1]
    last[order[1:][same]] = order[:-1][same]
    return last


def _smaller_before(values: np.ndarray) -> np.ndarray:
    """Return, for each value, how many of those before it are smaller; of values that are all -1 or different. The
    first of several that are -1 count as smaller than the later ones.

    The values in ascending order are split by the bits of their places, from the highest on: of two places that differ
    first in this bit, the one without it comes first.
    """
    count = len(values)
    places = np.argsort(values, kind="stable").astype(np.int32)
    smaller = np.zeros(count, dtype=np.int32)  # counts for each of `places`
    begins = np.zeros(count, dtype=np.int32)  # begin of each place's part
    for bit in reversed(range(max(1, (count - 1).bit_length()))):
        later = (places >> bit & 1).astype(bool)
        before = np.zeros(count + 1, dtype=np.int32)
        np.cumsum(~later, out=before[1:], dtype=np.int32)
        zeros = before[-1]
        left = before[begins]  # zeros in front of its part
        smaller += np.where(later, before[:-1] - left, 0)
        # All parts' halves without the bit move to the front, in order; then all with it.
        begins = np.where(later, zeros + begins - left, left)
        places, smaller, begins = (
            np.concatenate([values[~later], values[later]]) for values in (places, smaller, begins)
        )
    counts = np.empty(count, dtype=np.int32)
    counts[places] = smaller
    return counts
