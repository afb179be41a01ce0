"""The I/Os of a level of a replay: when each is due, and `fio`, which issues them."""

import math
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import ceil
from pathlib import Path
from tempfile import gettempdir

import numpy as np
import psutil

from stallmark.errors import StallmarkError
from stallmark.sizing.manifest import Piece, StreamName, Window
from stallmark.storage.fio import SKIP_BYTES
from stallmark.storage.probe_file import ProbeFile
from stallmark.storage.programs import GuardedProgram

# The I/Os of a level of a replay: when each is due, and its size.
#
# Each piece has the profile's number of I/Os, times the multiple, at random moments: a Poisson process with a known
# count. The profile has only the mean size. A mean between two usual sizes of databases' I/O is mixed from these,
# so that the bytes per second are the profile's, too.

LEAST_PIECE_S = 2.0
"""Minimum length of a piece; a shorter one is joined with the next, as it would end before queues build up."""
WARM_UP_S = 2.0
"""The first piece begins this much earlier, at its own rates. I/Os of the warm-up are not judged, because queues
fill."""
USUAL_BYTES = (8192, 65536, 524288)
LOG_PAGE = 4096
STREAMS: tuple[StreamName, ...] = ("reads", "writes", "log")
_BYTES = {"reads": "read_bytes", "writes": "write_bytes", "log": "log_bytes"}
_IOS = {"reads": "reads", "writes": "writes", "log": "log_writes"}


@dataclass(frozen=True)
class Due:
    """The scheduled I/Os of a stream, in order."""

    moments_s: np.ndarray
    """Seconds since the warm-up began."""
    bytes: np.ndarray
    """The size of each I/O."""

    def __len__(self) -> int:
        return len(self.moments_s)


def pieces_of(windows: Sequence[Window], played: float) -> tuple[Piece, ...]:
    """Return the pieces of all windows, one after the other, each with its duration in the replay."""
    return tuple(piece for window in windows for piece in _join_pieces(window, played))


@dataclass(frozen=True)
class Span:
    """The time span of a window in the replay."""

    window: Window
    start: float
    """Seconds since the warm-up ended."""
    seconds: float


def spans_of(windows: Sequence[Window], played: float) -> tuple[Span, ...]:
    """Return the time span of each window in the replay."""
    spans: list[Span] = []
    for window in windows:
        start = spans[-1].start + spans[-1].seconds if spans else 0.0
        spans.append(Span(window, start, sum(piece.seconds for piece in _join_pieces(window, played))))
    return tuple(spans)


def _join_pieces(window: Window, played: float) -> Iterator[Piece]:
    together: list[Piece] = []
    left = window.seconds * played
    for piece in window.pieces:
        together.append(piece)
        seconds = sum(part.seconds for part in together) * played
        if seconds >= LEAST_PIECE_S and left - seconds >= LEAST_PIECE_S:
            yield _mean_piece(together, seconds)
            left -= seconds
            together = []
    if together:
        yield _mean_piece(together, sum(part.seconds for part in together) * played)


def _mean_piece(pieces: Sequence[Piece], seconds: float) -> Piece:
    whole = Window(begin=0, because="ios_per_s", pieces=tuple(pieces))
    rates = {name: whole.mean(name) for name in Piece.model_fields if name != "seconds"}
    return Piece(seconds=seconds, **rates)


def length_s(pieces: Sequence[Piece]) -> float:
    """Return the seconds of a level, warm-up included."""
    return WARM_UP_S + sum(piece.seconds for piece in pieces)


def due_ios(
    pieces: Sequence[Piece],
    stream: StreamName,
    multiple: float,
    sector: int,
    rng: np.random.Generator,
    most_per_s: float = np.inf,
) -> Due:
    """Return the scheduled I/Os of a stream. Sizes are whole sectors. Above `most_per_s`, fewer but larger I/Os carry
    the same bytes."""
    mix = log_sizes if stream == "log" else data_sizes
    moments, sizes = [], []
    begin = owed = 0.0
    for seconds, piece in [(WARM_UP_S, pieces[0]), *((piece.seconds, piece) for piece in pieces)]:
        rate = min(getattr(piece, _IOS[stream]) * multiple, most_per_s)
        owed += seconds * rate
        if rate and (count := int(owed + 1e-9)):
            moments.append(begin + np.sort(rng.uniform(0, seconds, count)))
            mean = getattr(piece, _BYTES[stream]) * multiple / rate
            sizes.append(rng.permutation(mix(count, mean, sector)))
            owed -= count  # the fraction of an I/O is carried over to the next piece
        begin += seconds
    if not moments:
        return Due(np.empty(0), np.empty(0, dtype=np.int64))
    return Due(np.concatenate(moments), np.concatenate(sizes))


def data_sizes(count: int, mean: float, sector: int) -> np.ndarray:
    """Return the sizes of `count` data I/Os. A mean from 8 to 64 KiB, or from 64 to 512 KiB, is a mix of these two
    sizes; outside of these ranges all I/Os have the mean size."""
    for small, large in pairwise(USUAL_BYTES):
        if small <= mean <= large:
            many = round(count * (mean - small) / (large - small))
            return np.repeat([small, large], [count - many, many])
    return np.full(count, max(sector, round(mean / sector) * sector))


def log_sizes(count: int, mean: float, sector: int) -> np.ndarray:
    """Return `count` log-write sizes: the mean, in whole pages of the log's file."""
    page = max(sector, LOG_PAGE)
    return np.full(count, max(page, ceil(mean / page) * page))


# One level of a replay is played: `fio` issues each I/O when it is due, by a list of them for each of its threads. A
# thread has one I/O under way. The I/Os of a stream are dealt to its threads in turn, so that a thread is seldom busy
# when its next one is due; where it is, that one follows at once, and its wait is part of what it took. The log has one
# thread: a server has one flush of it under way. fio notes how long each I/O took, in the order of the list. So what
# has not ended is known as well.
#
# fio's lists (version 2) hold moments in ms since it began. Its handbook has them as waits in µs; a fio that takes them
# so would be done too early, and is refused.

MOST_THREADS = 256
"""Maximum number of threads of a stream. Storage within a service level has fewer I/Os in flight, except the
fastest."""
_DEPTH = 3.0
"""Threads per I/O in flight, on average, if reads take the longest time that the service level allows."""
_START_S = 1.0
_START_S_PER_IO = 4e-6
"""The time that fio has to start and to read its lists."""
_END_S = 0.5
"""Seconds after the last I/O is due, for I/Os in flight to end."""
_EARLY_S = 0.5
_HANGS_S = 60.0
_SCRATCH = "stallmark-replay-"
_CLOCK_S = 0.002
"""fio's lists and logs hold whole ms: an I/O that was issued in time may seem late by up to this."""


@dataclass(frozen=True)
class Issued:
    """The I/Os of a stream, in the order in which they were due."""

    due: Due
    ms: np.ndarray
    """The time of each I/O, NaN if it has not ended."""
    late_s: np.ndarray
    """The delay from when the I/O was due until it was issued, infinite if it never was."""
    stop_s: float = -math.inf
    """The moment when the level was ended, as in `due`; by default the end of the time allowed for I/Os in flight."""

    @property
    def has_ended(self) -> np.ndarray:
        return np.isfinite(self.ms)

    @property
    def since_due_ms(self) -> np.ndarray:
        """Return the time of each I/O since it was due. An I/O that has not ended waited until the level ended."""
        waited_ms = (np.maximum(self.stop_s, self.due.moments_s + _END_S) - self.due.moments_s) * 1000
        return np.where(self.has_ended, self.ms + self.late_s * 1000, waited_ms)

    def part(self, those: np.ndarray) -> "Issued":
        return replace(
            self,
            due=Due(self.due.moments_s[those], self.due.bytes[those]),
            ms=self.ms[those],
            late_s=self.late_s[those],
        )


@dataclass(frozen=True)
class Player:
    """The means to play levels."""

    program: str
    data: ProbeFile
    log: ProbeFile
    environment: Mapping[str, str]
    contiguous: bool
    """True if log writes follow each other without a gap. On an emulated array they do not, so that each pays for its
    position, as a flush of the server's WAL does there."""
    limit_ms: float

    def play(
        self,
        streams: Mapping[StreamName, Due],
        seconds: float,
        rng: np.random.Generator,
        progress: Callable[[float], None] = lambda seconds: None,
    ) -> dict[StreamName, Issued]:
        """Play the I/Os of a level and return their results.

        `progress` receives the elapsed seconds. Raise StallmarkError if fio fails.
        """
        # fio reads its lists before the first I/O is due, which takes time for each.
        start = _START_S + _START_S_PER_IO * sum(map(len, streams.values()))
        scratch = Path(gettempdir()) / f"{_SCRATCH}{os.getpid()}"
        remove_stale_scratch()
        scratch.mkdir(mode=0o700)
        try:
            jobs = [
                (name, part)
                for name, due in streams.items()
                # One thread for the log: a server writes it in order.
                for part in deal(due, 1 if name == "log" else self._threads(due))
            ]
            order = [*self._common(start + seconds + _END_S)]
            for number, (name, part) in enumerate(jobs):
                listed = scratch / f"{number}.list"
                listed.write_text(self._list(name, streams[name], part, start, rng))
                order += self._job(name, listed, scratch / f"{number}")
            last = max((due.moments_s[-1] for due in streams.values() if len(due)), default=0.0)
            self._run(order, start + last, start + seconds, lambda over: progress(max(0.0, over - start)))
            took = [_read_latencies(scratch / f"{number}") for number in range(len(jobs))]
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        return {
            name: _issued_ios(
                due, [(p, t) for (stream, p), t in zip(jobs, took, strict=True) if stream == name], seconds + _END_S
            )
            for name, due in streams.items()
        }

    def _threads(self, due: Due) -> int:
        busiest = np.bincount(due.moments_s.astype(np.int64)).max(initial=0)
        return int(np.clip(_DEPTH * busiest * self.limit_ms / 1000 + 2, 2, MOST_THREADS))

    def _list(self, name: StreamName, due: Due, part: slice, start: float, rng: np.random.Generator) -> str:
        """Return fio's list of the I/Os of one thread."""
        sizes = due.bytes[part]
        verb = "read" if name == "reads" else "write"
        if name == "log":
            offsets = _sequential_offsets(sizes, self.log.bytes, self.contiguous)
        else:
            offsets = SKIP_BYTES + rng.integers(0, (self.data.bytes - SKIP_BYTES) // sizes, len(sizes)) * sizes
        moments = np.round((start + due.moments_s[part]) * 1000).astype(np.int64)
        lines = (
            f"f wait {moment} 0\nf {verb} {offset} {size}\n"
            for moment, offset, size in zip(moments.tolist(), offsets.tolist(), sizes.tolist(), strict=True)
        )
        return f"fio version 2 iolog\nf add\nf open\n{''.join(lines)}f close\n"

    def _common(self, seconds: float) -> Sequence[str]:
        return [
            self.program,
            "--ioengine=psync",
            "--direct=1",
            "--thread=1",
            f"--runtime={round(seconds * 1000)}ms",
            # The files are ours, and whole: fio shall neither lay one out, nor extend, nor remove it.
            "--overwrite=1",
            "--fallocate=none",
            "--allow_file_create=0",
            "--invalidate=0",
            "--refill_buffers=1",
            "--buffer_compress_percentage=50",
            "--buffer_compress_chunk=4096",
            "--disable_slat=1",
            "--disable_clat=1",
            "--per_job_logs=0",
            "--eta=never",
        ]

    def _job(self, name: StreamName, listed: Path, log: Path) -> Sequence[str]:
        file = self.log if name == "log" else self.data
        return [
            f"--name={name}",
            f"--read_iolog={listed}",
            f"--replay_redirect={file.path}",
            f"--write_lat_log={log}",
            *(["--sync=dsync"] if name == "log" else []),
        ]

    def _run(self, order: Sequence[str], least: float, most: float, tell: Callable[[float], None]) -> None:
        """Run fio, which should take from `least` to about `most` seconds."""
        began = time.monotonic()
        fio = GuardedProgram(order, self.environment)
        try:
            while not fio.has_ended:
                if (over := time.monotonic() - began) > most + _HANGS_S:
                    raise StallmarkError(
                        f"The I/O of the replay did not end {_HANGS_S:.0f} s after its time: the device hangs; look at "
                        "it before measuring anything."
                    )
                tell(min(over, most))
                time.sleep(0.2)
        finally:
            fio.stop()
            fio.wait()
        if fio.failed:
            raise StallmarkError(f"The replay failed: {fio.end_reason()}.")
        if time.monotonic() - began < least - _EARLY_S:
            raise StallmarkError(
                f"{self.program} issued the replay's I/Os before they were due: it reads lists of I/Os differently "
                "from fio 3.33: install that version."
            )


def deal(due: Due, threads: int) -> list[slice]:
    """Return the I/Os of each thread, dealt in turn."""
    return [slice(number, None, threads) for number in range(min(threads, len(due)))]


def _sequential_offsets(sizes: np.ndarray, file_bytes: int, contiguous: bool) -> np.ndarray:
    """Return the offsets of consecutive writes, which continue at the file's beginning after its end."""
    room = (file_bytes - SKIP_BYTES) // 4096 * 4096
    offsets = np.concatenate([[0], np.cumsum(sizes * (1 if contiguous else 2))[:-1]])
    return SKIP_BYTES + np.minimum(offsets % room, room - sizes)


def _read_latencies(log: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return the end and the duration of each I/O of a thread, in ms."""
    path = log.with_name(f"{log.name}_lat.log")
    text = path.read_text() if path.exists() else ""
    rows = np.array([line.split(",", 2)[:2] for line in text.splitlines()], dtype=float).reshape(-1, 2)
    return rows[:, 0], rows[:, 1] / 1e6


def _issued_ios(due: Due, parts: Sequence[tuple[slice, tuple[np.ndarray, np.ndarray]]], stop_s: float) -> Issued:
    ms, late = np.full(len(due), np.nan), np.full(len(due), np.inf)
    for part, (ended, took) in parts:
        ms[part][: len(took)] = took
        moments = due.moments_s[part][: len(took)]
        # A thread's clock begins with it, some ms after fio: its most punctual I/O is taken to be in time.
        after = (ended - took) / 1000 - moments
        noted = after - after.min(initial=np.inf)
        late[part][: len(took)] = np.maximum(
            _wait_for_earlier_s(moments, took / 1000), np.where(noted > _CLOCK_S, noted, 0.0)
        )
    return Issued(due, ms, late, stop_s)


def _wait_for_earlier_s(due_s: np.ndarray, took_s: np.ndarray) -> np.ndarray:
    """Return the time that each I/O of a thread waited for its predecessors."""
    before = np.cumsum(took_s) - took_s
    return np.maximum.accumulate(due_s - before) + before - due_s


def remove_stale_scratch() -> None:
    """Remove the lists of replays whose process no longer exists."""
    for folder in Path(gettempdir()).glob(f"{_SCRATCH}*"):
        number = folder.name.removeprefix(_SCRATCH)
        if number.isdecimal() and (int(number) == os.getpid() or not psutil.pid_exists(int(number))):
            shutil.rmtree(folder, ignore_errors=True)
