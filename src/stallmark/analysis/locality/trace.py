"""The trace of a run's I/Os, from its record."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stallmark.record.reader import Record

PAGE_BYTES = 8192
EXTENT_PAGES = (1 << 20) // PAGE_BYTES
_FILE_PAGES = 1 << 24
"""The numbers that the pages of a file may have; PostgreSQL's files have 2^17 pages at most."""
_READ, _WRITE = 0, 1


@dataclass(frozen=True)
class DataFile:
    relation: str
    table: str
    kind: str
    size_bytes: int


@dataclass(frozen=True)
class Trace:
    """The I/Os of a run, in the order in which they ended. Reads and writes are arrays of equal length each."""

    files: Sequence[DataFile | None]  # by number; None for a file that no table was known to have
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
        """Return the pages read one by one, as numbers that tell them and their extents apart, and the read of each."""
        count = np.maximum(1, -(-self.read_bytes // PAGE_BYTES))
        first = self.read_file.astype(np.int64) * _FILE_PAGES + self.read_offset // PAGE_BYTES
        reads = np.repeat(np.arange(len(count)), count)
        within = np.arange(len(reads)) - np.repeat(np.cumsum(count) - count, count)
        return first[reads] + within, reads


def has_trace(record: Record) -> bool:
    return {"io_trace", "io_files"} <= set(record.tables())


def read_trace(record: Record) -> Trace:
    """Return the trace of a run; `has_trace` says whether there is one."""
    known = {
        row["file"]: DataFile(row["relation"], row["table"], row["kind"], row["size_bytes"])
        for row in record.table("io_files").to_pylist()
    }
    names = {"begun_us": "f8", "file": "i8", "offset": "i8", "bytes": "i4", "pid": "i4", "op": "i1", "lost": "i8"}
    parts: dict[str, list[np.ndarray]] = {name: [] for name in names}
    for batch in record.batches("io_trace", list(names)):
        for name, kind in names.items():
            parts[name].append(batch.column(name).to_numpy(zero_copy_only=False).astype(kind))
    all_of = {name: np.concatenate([np.empty(0, names[name]), *found]) for name, found in parts.items()}
    inodes, number = np.unique(all_of["file"], return_inverse=True)
    untouched = known.keys() - set(inodes.tolist())
    begun_s, read, write = all_of["begun_us"] / 1e6, all_of["op"] == _READ, all_of["op"] == _WRITE
    return Trace(
        files=[known.get(inode) for inode in (*inodes.tolist(), *untouched)],
        read_s=begun_s[read],
        read_file=number[read].astype(np.int32),
        read_offset=all_of["offset"][read],
        read_bytes=all_of["bytes"][read],
        read_process=all_of["pid"][read],
        write_s=begun_s[write],
        write_bytes=all_of["bytes"][write],
        lost=int(all_of["lost"].sum()),
    )
