"""The reports that `fio` makes while it runs: JSON documents, each with everything since it began. Our own program for
I/Os at a rate reports in the same way."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from stallmark.errors import StallmarkError
from stallmark.record import histogram

NS_PER_US = 1000


@dataclass(frozen=True)
class Work:
    """I/Os, since fio began or in a stretch of time: their bytes, the sum of their latencies, and their number in each
    bucket of a record's histogram."""

    bytes: int
    latency_us: int
    buckets: np.ndarray

    @property
    def ios(self) -> int:
        return int(self.buckets.sum())

    def __add__(self, other: "Work") -> "Work":
        return Work(self.bytes + other.bytes, self.latency_us + other.latency_us, self.buckets + other.buckets)

    def __sub__(self, other: "Work") -> "Work":
        return Work(self.bytes - other.bytes, self.latency_us - other.latency_us, self.buckets - other.buckets)

    def first(self, share: float) -> "Work":
        """Return the first `share` of the work, as if it was evenly spread: fast and slow I/Os alike."""
        upto = np.floor(np.cumsum(self.buckets) * share + 0.5).astype(np.int64)
        return Work(round(self.bytes * share), round(self.latency_us * share), np.diff(upto, prepend=0))


NOTHING = Work(0, 0, np.zeros(histogram.BUCKETS, dtype=np.int64))


@dataclass(frozen=True)
class Report:
    """A report: the work since the program began, and for how many seconds it had gone on. `waiting`: for how long each
    I/O had waited that was due and had not ended, as buckets; None of fio, whose I/Os are never due."""

    work: Work
    seconds: float
    waiting: np.ndarray | None = None


def documents(lines: Iterator[str]) -> Iterator[str | dict[str, Any]]:
    """Yield the documents among lines of fio's output, and the lines between them, as they come.

    A document's outer braces are lines of their own, and no other line of fio's is. One that was cut is left out.
    """
    document: list[str] = []
    for line in lines:
        if document:
            document.append(line)
            if line.rstrip("\n") == "}":
                yield json.loads("".join(document))
                document = []
        elif line.rstrip("\n") == "{":
            document.append(line)
        elif line.strip():
            yield line.strip()


def parse(document: dict[str, Any], operation: str) -> Report:
    """Return the report of a document on reads or writes. Raise StallmarkError for one that is not fio's."""
    try:
        [job] = document["jobs"]
        done = job[operation]
        buckets = _buckets(done["lat_ns"].get("bins", {}))
        # Not `total_ios`: it is of another moment than the bins.
        latency_us = round(done["lat_ns"]["mean"] * int(buckets.sum()) / NS_PER_US)
        waiting = _buckets(document["waiting"]) if "waiting" in document else None
        return Report(Work(int(done["io_bytes"]), latency_us, buckets), done["runtime"] / 1000, waiting)
    except (KeyError, ValueError, TypeError, AttributeError):
        raise StallmarkError(
            "fio reports what cannot be read: Stallmark needs fio 3.0 or later (fio --version)."
        ) from None


def _buckets(bins: dict[str, int]) -> np.ndarray:
    ns = np.array([int(each) for each in bins], dtype=np.int64)
    return histogram.count(ns // NS_PER_US, np.array(list(bins.values()), dtype=np.int64))


class Seconds:
    """The work of each second of a run, from that between reports, which is taken to be evenly spread."""

    def __init__(self) -> None:
        self._found: dict[int, Work] = {}

    def add(self, begin: float, end: float, work: Work) -> None:
        """Add the work between two moments of the run."""
        while (boundary := int(begin) + 1) < end:
            first = work.first((boundary - begin) / (end - begin))
            self._add(int(begin), first)
            begin, work = boundary, work - first
        self._add(int(begin), work)

    def take(self, until: float) -> list[tuple[int, Work]]:
        """Return the seconds that ended by then, and forget them."""
        ended = sorted(second for second in self._found if second + 1 <= until)
        return [(second, self._found.pop(second)) for second in ended]

    def _add(self, second: int, work: Work) -> None:
        self._found[second] = self._found.get(second, NOTHING) + work
