"""A trace of the reads, writes and syncs of a server's data files, without root (Linux only).

The server process is started with a library (interposer.c) that writes every I/O of its processes into a ring in shared
memory, while someone reads it. A reader that is too slow loses the newest; how many is counted.

trace = IoTrace.create(Path("/dev/shm/trace"), build_dir=cache) server = subprocess.Popen([...], env=os.environ |
trace.environment({})) trace.begin() events, lost = trace.read()
"""

from __future__ import annotations

import mmap
import os
import sys
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Self

import numpy as np

from stallmark.storage.emulator import UnsupportedSystem
from stallmark.storage.emulator.arrays import new_shared_file, preloadable

SLOTS = 1 << 18
"""12 MiB, of which only what is used takes memory: more I/Os than any server does in five seconds."""
READ, WRITE, SYNC = range(3)
VARIABLE = "STALLMARK_IO_TRACE"

_MAGIC = 0x3154534F49545453
_HEAD = np.dtype([(name, "u8") for name in ("magic", "slots", "on", "head", "tail", "lost", "unused", "unused_too")])
EVENT = np.dtype(
    [
        ("number", "u8"),
        ("begun_us", "u8"),
        ("file", "u8"),
        ("offset", "u8"),
        ("took_us", "u4"),
        ("bytes", "u4"),
        ("process", "u4"),
        ("operation", "u4"),
    ]
)


class IoTrace:
    """The ring that a server's processes write into, and its one reader."""

    def __init__(self, file: Path, library: Path, shared: mmap.mmap) -> None:
        """Take what `create` has made; call that instead."""
        self._file, self._library = file, library
        self._head = np.frombuffer(shared, _HEAD, 1)
        self._slots = np.frombuffer(shared, EVENT, offset=_HEAD.itemsize)
        self._stuck: int | None = None

    @staticmethod
    def prepare(build_dir: Path) -> Path:
        """Return the library, built if need be. Raise UnsupportedSystem outside Linux, EmulatedArrayError if it cannot
        be built."""
        if not sys.platform.startswith("linux"):
            raise UnsupportedSystem(f"I/Os of a server can be traced on Linux only, and this is {sys.platform}.")
        source = (resources.files(__package__) / "interposer.c").read_bytes()
        return preloadable("io_trace", {"interposer.c": source}, (), build_dir)

    @classmethod
    def create(cls, file: Path, *, build_dir: Path, slots: int = SLOTS) -> Self:
        """Build the library if need be and write a new ring (best below /dev/shm, mode 0600); raise as `prepare`."""
        library = cls.prepare(build_dir)
        with new_shared_file(file, _HEAD.itemsize + slots * EVENT.itemsize) as shared:
            trace = cls(file, library, shared)
            trace._head["magic"], trace._head["slots"] = _MAGIC, slots
        return trace

    def environment(self, others: Mapping[str, str]) -> dict[str, str]:
        """Return the variables that the server process needs: the `others` with those of this trace, whose library
        comes first in LD_PRELOAD, so that it times what a caller waits for."""
        already = others.get("LD_PRELOAD", os.environ.get("LD_PRELOAD"))
        preload = f"{self._library}:{already}" if already else str(self._library)
        return {**others, "LD_PRELOAD": preload, VARIABLE: str(self._file)}

    def begin(self) -> None:
        """Trace I/Os from now on; traces that were not read are dropped."""
        self._head["on"] = 0
        self._head["tail"], self._head["lost"] = self._head["head"], 0
        self._head["on"] = 1

    def end(self) -> None:
        self._head["on"] = 0

    def read(self) -> tuple[np.ndarray, int]:
        """Return the I/Os since the last call, in the order in which they ended, and how many were lost meanwhile."""
        tail, head = int(self._head["tail"][0]), int(self._head["head"][0])
        places = np.arange(tail, head)
        events = self._slots[places % len(self._slots)]
        complete = events["number"] == places.astype("u8") + 1
        lost = int(self._head["lost"][0])
        # Losses in between are not counted: a full ring loses more.
        self._head["lost"] = 0
        if not complete.all():
            # One is being written, or its process was killed: then it is still missing at the next call.
            first = tail + int(np.argmin(complete))
            if self._stuck == first:
                lost, keep = lost + int((~complete).sum()), complete
            else:
                head, keep = first, places < first
            self._stuck, events = first, events[keep]
        self._head["tail"] = head
        return events, lost

    def close(self) -> None:
        """Remove the ring. Stop the server first: no process can be started with it any more."""
        self._file.unlink(missing_ok=True)
