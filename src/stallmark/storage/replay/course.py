"""The I/Os of a level of a replay: when each is due, and its size.

Each piece has as many I/Os as the profile had, times the multiple, at random moments: a Poisson process of which the
count is known. The profile tells the mean size alone. A mean between two usual sizes of databases' I/O is mixed of
these, so that the bytes per second are the profile's, too.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil

import numpy as np

from stallmark.record.sizing.manifest import Piece, StreamName, Window

LEAST_PIECE_S = 2.0
"""A shorter piece is joined with the next: it would be over before queues show it."""
WARM_UP_S = 2.0
"""The first piece begins so much earlier, at its own rates. What is due then is not judged: queues fill."""
USUAL_BYTES = (8192, 65536, 524288)
LOG_PAGE = 4096
STREAMS: tuple[StreamName, ...] = ("reads", "writes", "log")
_BYTES = {"reads": "read_bytes", "writes": "write_bytes", "log": "log_bytes"}
_IOS = {"reads": "reads", "writes": "writes", "log": "log_writes"}


@dataclass(frozen=True)
class Due:
    """I/Os in the order in which they are due: `at` in seconds since the warm-up began, and `bytes` of each."""

    at: np.ndarray
    bytes: np.ndarray

    def __len__(self) -> int:
        return len(self.at)


def pieces_of(windows: Sequence[Window], played: float) -> tuple[Piece, ...]:
    """Return what is played of the windows, one after the other, with the seconds that each piece takes."""
    return tuple(piece for window in windows for piece in _joined(window, played))


@dataclass(frozen=True)
class Span:
    """The time in which a window is played: from `start`, in seconds since the warm-up ended, for `seconds`."""

    window: Window
    start: float
    seconds: float


def spans_of(windows: Sequence[Window], played: float) -> tuple[Span, ...]:
    """Return the time in which each window is played."""
    found: list[Span] = []
    for window in windows:
        start = found[-1].start + found[-1].seconds if found else 0.0
        found.append(Span(window, start, sum(piece.seconds for piece in _joined(window, played))))
    return tuple(found)


def _joined(window: Window, played: float) -> Iterator[Piece]:
    together: list[Piece] = []
    left = window.seconds * played
    for piece in window.pieces:
        together.append(piece)
        seconds = sum(one.seconds for one in together) * played
        if seconds >= LEAST_PIECE_S and left - seconds >= LEAST_PIECE_S:
            yield _mean(together, seconds)
            left -= seconds
            together = []
    if together:
        yield _mean(together, sum(one.seconds for one in together) * played)


def _mean(pieces: Sequence[Piece], seconds: float) -> Piece:
    whole = Window(begin=0, because="ios_per_s", pieces=tuple(pieces))
    rates = {name: whole.mean(name) for name in Piece.model_fields if name != "seconds"}
    return Piece(seconds=seconds, **rates)


def length_s(pieces: Sequence[Piece]) -> float:
    """Return the seconds of a level, warm-up included."""
    return WARM_UP_S + sum(piece.seconds for piece in pieces)


def due(
    pieces: Sequence[Piece],
    stream: StreamName,
    multiple: float,
    sector: int,
    rng: np.random.Generator,
    most_per_s: float = np.inf,
) -> Due:
    """Return the I/Os of a stream. Sizes are whole sectors; where there would be more than `most_per_s`, fewer are so
    much larger that the bytes are the same."""
    mix = written if stream == "log" else mixed
    moments, sizes = [], []
    begin = owed = 0.0
    for seconds, piece in [(WARM_UP_S, pieces[0]), *((piece.seconds, piece) for piece in pieces)]:
        rate = min(getattr(piece, _IOS[stream]) * multiple, most_per_s)
        owed += seconds * rate
        if rate and (count := int(owed + 1e-9)):
            moments.append(begin + np.sort(rng.uniform(0, seconds, count)))
            mean = getattr(piece, _BYTES[stream]) * multiple / rate
            sizes.append(rng.permutation(mix(count, mean, sector)))
            owed -= count  # the rest of an I/O is due in the next piece
        begin += seconds
    if not moments:
        return Due(np.empty(0), np.empty(0, dtype=np.int64))
    return Due(np.concatenate(moments), np.concatenate(sizes))


def mixed(count: int, mean: float, sector: int) -> np.ndarray:
    """Return the sizes of so many I/Os of data: 8 and 64 KiB, or 64 and 512 KiB, where their mean lies between these,
    else all of the mean's."""
    for small, large in pairwise(USUAL_BYTES):
        if small <= mean <= large:
            many = round(count * (mean - small) / (large - small))
            return np.repeat([small, large], [count - many, many])
    return np.full(count, max(sector, round(mean / sector) * sector))


def written(count: int, mean: float, sector: int) -> np.ndarray:
    """Return the sizes of so many writes of the log: the mean, in whole pages of the log's file."""
    page = max(sector, LOG_PAGE)
    return np.full(count, max(page, ceil(mean / page) * page))
