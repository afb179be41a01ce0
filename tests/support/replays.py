"""A profile's I/O for tests, and storage that takes it in no time."""

import heapq
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from stallmark.record.manifest.storage import ServiceLevelObjective
from stallmark.sizing.manifest import Piece, StreamName, Window
from stallmark.sizing.replay_io import Due, Issued

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
    """Disks hit at random, first in, first out, and a log that flushes one write after the other. As with fio, each of
    a stream's `threads` has one I/O under way: what is due meanwhile is issued late."""

    disks: int
    service_ms: float
    flush_ms: float = 1.0
    threads: int = 32
    plays: int = 0

    def play(
        self,
        streams: Mapping[StreamName, Due],
        seconds: float,
        rng: np.random.Generator,
        tell: Callable[[float], None] = lambda seconds: None,
    ) -> dict[StreamName, Issued]:
        self.plays += 1
        data = _shared([streams["reads"], streams["writes"]], self.threads, self.disks, self.service_ms, seconds, rng)
        log = _shared([streams["log"]], 1, 1, self.flush_ms, seconds, rng)
        return dict(zip(("reads", "writes", "log"), [*data, *log], strict=True))


def _shared(
    streams: Sequence[Due], threads: int, disks: int, service_ms: float, seconds: float, rng: np.random.Generator
) -> list[Issued]:
    """Return what becomes of the I/Os of streams on the same disks."""
    ms = [np.full(len(due), np.nan) for due in streams]
    late_s = [np.full(len(due), np.inf) for due in streams]
    free = [0.0] * disks
    disk = rng.integers(0, disks, sum(map(len, streams))).tolist()
    line = [
        (float(due.moments_s[first]), of, first)
        for of, due in enumerate(streams)
        for first in range(min(threads, len(due)))
    ]
    heapq.heapify(line)
    while line:
        moment, of, io = heapq.heappop(line)
        hit = disk.pop()
        free[hit] = ended = max(free[hit], moment) + service_ms / 1000
        late_s[of][io] = moment - streams[of].moments_s[io]
        if ended <= seconds:
            ms[of][io] = (ended - moment) * 1000
            if io + threads < len(streams[of]):
                heapq.heappush(line, (max(ended, float(streams[of].moments_s[io + threads])), of, io + threads))
    return [issued(*one) for one in zip(streams, ms, late_s, strict=True)]
