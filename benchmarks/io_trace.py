"""The trace of a server's I/Os by process, in order: `stallmark` with a traced embedded server.

    STALLMARK_TRACE=FOLDER python -m benchmarks.io_trace run SCENARIO …     (from the root of the repository)

A trace holds no times of the device that are not also the caller's: what it waited for, and what it did in between.
"""

import os
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from stallmark.cli.main import main
from stallmark.storage.emulator import EmulatedArrays, build

READ, WRITE, SYNC = range(3)
FOLDER = "STALLMARK_TRACE"
_EVENT = np.dtype(
    [("begun", "u8"), ("ended", "u8"), ("file", "u8"), ("offset", "u8"), ("bytes", "u4"), ("operation", "u4")]
)


@dataclass(frozen=True)
class Process:
    """One process's I/Os in order, as arrays of equal length. Times are seconds since the Epoch."""

    begun: np.ndarray
    ended: np.ndarray
    file: np.ndarray  # inode
    offset: np.ndarray
    size: np.ndarray
    operation: np.ndarray


def read_trace(folder: Path, begin: float, end: float) -> list[Process]:
    """Return the I/Os that began within [begin, end), of every process that did any."""
    found = []
    for path in sorted(folder.iterdir()):
        one = np.fromfile(path, dtype=_EVENT, count=_written(path) // _EVENT.itemsize)
        one = one[one["begun"] > 0]
        one = one[(one["begun"] >= begin * 1e9) & (one["begun"] < end * 1e9)]
        if len(one):
            times = one["begun"] / 1e9, one["ended"] / 1e9
            found.append(Process(*times, one["file"], one["offset"], one["bytes"], one["operation"]))
    return found


def _written(path: Path) -> int:
    """Return the bytes of a sparse file before its first hole."""
    fd = os.open(path, os.O_RDONLY)
    try:
        return os.lseek(fd, 0, os.SEEK_HOLE)
    finally:
        os.close(fd)


def traced() -> None:
    """Run `stallmark`; the embedded server's processes are traced above the emulated array."""
    folder = Path(os.environ[FOLDER])
    folder.mkdir(parents=True, exist_ok=True)
    source = Path(__file__).with_suffix(".c").read_bytes()
    library = build.library("io_trace", {"io_trace.c": source}, (), folder.parent)
    plain = EmulatedArrays.environment

    def environment(self: EmulatedArrays) -> dict[str, str]:
        """Return the environment that traces; the first of LD_PRELOAD is the outermost."""
        found = plain(self)
        return found | {"LD_PRELOAD": f"{library}:{found['LD_PRELOAD']}", FOLDER: str(folder)}

    EmulatedArrays.environment = environment  # type: ignore[method-assign]
    main()


if __name__ == "__main__":
    sys.argv[0] = "stallmark"
    traced()
