"""A profile's I/O for tests, and storage that takes it in no time."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from stallmark.record.manifest.storage import ServiceLevelObjective
from stallmark.record.sizing.manifest import Piece, StreamName, Window
from stallmark.storage.replay.course import Due
from stallmark.storage.replay.play import Issued

READS_20 = ServiceLevelObjective(name="oltp", read_ms=20, percentile="p95")


def a_piece(seconds: float = 15.0, reads: float = 0, writes: float = 0, log_writes: float = 0, **mean: float) -> Piece:
    """`mean`: the mean bytes of a read, a write, and a write of the log."""
    size = {"read": 8192, "write": 8192, "log": 4096} | mean
    return Piece(
        seconds=seconds,
        reads=reads,
        read_bytes=reads * size["read"],
        writes=writes,
        write_bytes=writes * size["write"],
        log_writes=log_writes,
        log_bytes=log_writes * size["log"],
    )


def a_window(*pieces: Piece) -> Window:
    return Window(begin=0, because="ios_per_s", pieces=pieces)


def issued(due: Due, ms: np.ndarray, late_s: float | np.ndarray = 0.0) -> Issued:
    return Issued(due, ms, np.where(np.isnan(ms), np.inf, late_s))


def mean_of_a_disk(service_ms: float, busy: float) -> float:
    """Return the mean time of I/Os that come at random to a disk with a fixed time of service (M/D/1)."""
    return service_ms * (1 + busy / (1 - busy) / 2)


@dataclass
class Disks:
    """Disks hit at random, first in, first out, and a log that flushes one write after the other."""

    disks: int
    service_ms: float
    flush_ms: float = 1.0
    plays: int = 0

    def play(
        self,
        streams: Mapping[StreamName, Due],
        seconds: float,
        rng: np.random.Generator,
        tell: Callable[[float], None] = lambda seconds: None,
    ) -> dict[StreamName, Issued]:
        self.plays += 1
        at = np.concatenate([streams["reads"].at, streams["writes"].at])
        ms = np.empty(len(at))
        disk = rng.integers(0, self.disks, len(at))
        for one in range(self.disks):
            mine = np.flatnonzero(disk == one)
            mine = mine[np.argsort(at[mine])]
            ms[mine] = _queued(at[mine], self.service_ms)
        ms[at + ms / 1000 > seconds] = np.nan
        reads = len(streams["reads"])
        waited = _queued(streams["log"].at, self.flush_ms)
        flushed = np.where(streams["log"].at + waited / 1000 > seconds, np.nan, self.flush_ms)
        return {
            "reads": issued(streams["reads"], ms[:reads]),
            "writes": issued(streams["writes"], ms[reads:]),
            "log": issued(streams["log"], flushed, (waited - self.flush_ms) / 1000),
        }


def _queued(at: np.ndarray, service_ms: float) -> np.ndarray:
    """Return how long each takes, in ms."""
    took, free = np.empty(len(at)), 0.0
    for place, moment in enumerate(at.tolist()):
        free = max(free, moment) + service_ms / 1000
        took[place] = (free - moment) * 1000
    return took
