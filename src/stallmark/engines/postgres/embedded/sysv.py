"""System V shared memory of PostgreSQL: one small segment per server, which outlives a killed one and its folder."""

import ctypes
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_SEGMENTS = Path("/proc/sysvipc/shm")  # Linux alone
_MAGIC = (679834894).to_bytes(4, "little")
"""The first bytes of the header of every PostgreSQL's segment (PGShmemMagic, src/include/storage/pg_shmem.h)."""

_NONE = bytes(len(_MAGIC))
_HEADER_BYTES = 56
"""A segment of our servers is as large as its header: what they share is in memory that they inherit (mmap)."""

_REMOVE, _READ_ONLY = 0, 0o10000  # IPC_RMID, SHM_RDONLY
_FAILED = ctypes.c_void_p(-1).value


@dataclass(frozen=True)
class Segment:
    """A segment of this user that no process has attached."""

    number: int
    key: int
    """PostgreSQL takes the inode of the data directory, or the next number that is free."""

    size_bytes: int
    age_s: float

    def begins_with(self) -> bytes:
        """Return the first four bytes; none where the segment is gone."""
        library = ctypes.CDLL(None)
        library.shmat.restype = ctypes.c_void_p
        address = library.shmat(self.number, None, _READ_ONLY)
        if address == _FAILED:
            return b""
        try:
            return ctypes.string_at(address, min(self.size_bytes, len(_MAGIC)))
        finally:
            library.shmdt(ctypes.c_void_p(address))

    @property
    def is_postgres(self) -> bool:
        return self.begins_with() == _MAGIC

    def remove(self) -> None:
        ctypes.CDLL(None).shmctl(self.number, _REMOVE, None)


def unattached() -> Iterator[Segment]:
    """Yield this user's segments that no process has attached; none where they cannot be seen."""
    with suppress(OSError):
        names, *lines = (line.split() for line in _SEGMENTS.read_text().splitlines())
        for line in lines:
            values = {name: int(value) for name, value in zip(names, line, strict=True)}
            if values["uid"] == os.getuid() and not values["nattch"]:
                age_s = time.time() - values["ctime"]  # the other times are also those of a look at what it holds
                yield Segment(values["shmid"], values["key"] % 2**32, values["size"], age_s)


def remove_of(data: Path, *, unfinished: bool = False) -> None:
    """Remove the segment of a server that was killed in `data`; with `unfinished`, only one without a header.

    A server that starts in the same folder removes the segment itself, with all that its header leads to. One whose
    header was not written yet it takes for somebody else's, and leaves there.
    """
    with suppress(FileNotFoundError):
        key = data.stat().st_ino % 2**32
        for segment in unattached():
            if segment.key != key or segment.size_bytes != _HEADER_BYTES:
                continue
            if segment.begins_with() in ({_NONE} if unfinished else {_NONE, _MAGIC}):
                segment.remove()
