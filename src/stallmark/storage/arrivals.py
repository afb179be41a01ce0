"""Reads or writes that arrive at random at a rate, independent of the storage. This is our own program, because fio
measures an I/O only from its issue.

Run as `python -m stallmark.storage.arrivals PLAN`. PLAN is JSON, the fields of `Plan`. Each thread takes the
next free I/O, waits until it is due, and executes it. While all threads are busy, I/Os wait for one, and this wait is
part of their latency. The delay of a thread that wakes up late is not the storage's and is left out: an I/O counts as
begun when it was due, or when the thread's previous I/O ended.

An example: an I/O is due at 10.0 ms. Its thread wakes up at 10.2 ms and the read takes 5 ms: the latency is 5.0 ms. If
the thread was busy until 14.0 ms and the I/O ends at 19.0 ms, the latency is 9.0 ms, 4.0 of them waiting.

Once a second of the run it reports as fio does, and `waiting`: the wait so far of each I/O that is due and has not
ended.
"""

import json
import math
import mmap
import os
import select
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, Self

import numpy as np

from stallmark.errors import StallmarkError
from stallmark.record import histogram
from stallmark.storage.fio import SKIP_BYTES
from stallmark.storage.probe_file import compressible_bytes

NS_PER_US = 1000


# The reports that `fio` makes while it runs: JSON documents, each with everything since it began. Our own program for
# I/Os at a rate reports in the same way.


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
        """Return the first `share` of the work, as if fast and slow I/Os were evenly spread."""
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
    ns = np.array([int(bin_ns) for bin_ns in bins], dtype=np.int64)
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

    def pop_ended(self, until: float) -> list[tuple[int, Work]]:
        """Return the seconds that ended by then, and forget them."""
        ended = sorted(second for second in self._found if second + 1 <= until)
        return [(second, self._found.pop(second)) for second in ended]

    def _add(self, second: int, work: Work) -> None:
        self._found[second] = self._found.get(second, NOTHING) + work


MOST_PER_S = 5000
"""The I/Os per second up to which Python's threads add less than 0.1 ms to the time of one."""
GRACE_S = 5.0
"""Seconds that a program of raw I/O has to end by itself after the order, and to report the last I/Os."""
_DRAWN = 256  # arrivals at once
_TURN_S = 1e-4
"""Seconds that a report, which takes some ms, keeps the threads from their I/Os."""
_US = 10**6


@dataclass(frozen=True)
class Plan:
    """The I/Os of a cell."""

    file: str
    operation: Literal["read", "write"]
    blocks: dict[int, float]
    """The share of I/Os by size in bytes."""
    size_bytes: int
    outstanding: int
    rate: float
    seed: int
    began: float = 0.0
    """The start of the run on the monotonic clock, from which reports count seconds."""

    def command(self, began: float) -> list[str]:
        """Return the command line that does this plan in a run that began then."""
        return [sys.executable, "-m", __name__, json.dumps(asdict(replace(self, began=began)))]

    @classmethod
    def from_json(cls, text: str) -> Self:
        fields = json.loads(text)
        return cls(**fields | {"blocks": {int(size): share for size, share in fields["blocks"].items()}})


@dataclass(frozen=True)
class Arrival:
    """An I/O: when it is due on the monotonic clock, its size and its place in the file."""

    due: float
    bytes: int
    offset: int


class Arrivals:
    """The I/Os that no thread has taken yet: a Poisson process from `begin` on."""

    def __init__(self, plan: Plan, begin: float):
        self._plan, self._last = plan, begin
        self._rng = np.random.default_rng(plan.seed)
        self._drawn: deque[tuple[np.ndarray, np.ndarray, np.ndarray]] = deque()  # moments, sizes, places
        # The index of the next arrival in the first batch of `_drawn`.
        self._taken = 0

    def next_arrival(self) -> Arrival:
        if not self._drawn:
            self._draw()
        due, sizes, offsets = (float(drawn[self._taken]) for drawn in self._drawn[0])
        self._taken += 1
        if self._taken == _DRAWN:
            self._drawn.popleft()
            self._taken = 0
        return Arrival(due, int(sizes), int(offsets))

    def due_by(self, now: float) -> np.ndarray:
        """Return the due times of the arrivals that are due by now."""
        while self._last <= now:
            self._draw()
        moments = np.concatenate([np.empty(0), *(due for due, _, _ in self._drawn)])[self._taken :]
        return moments[: np.searchsorted(moments, now, side="right")]

    def _draw(self) -> None:
        plan = self._plan
        due = self._last + np.cumsum(self._rng.exponential(1 / plan.rate, _DRAWN))
        shares = np.array([*plan.blocks.values()])
        sizes = self._rng.choice(list(plan.blocks), _DRAWN, p=shares / shares.sum())
        offsets = SKIP_BYTES + self._rng.integers(0, (plan.size_bytes - SKIP_BYTES) // sizes) * sizes
        self._last = float(due[-1])
        self._drawn.append((due, sizes, offsets))


class Threads:
    """The threads that do the I/Os of a plan, until `stop`."""

    def __init__(self, plan: Plan):
        self._plan, self._file = plan, _open(plan)
        self._began = time.monotonic()
        self._arrivals = Arrivals(plan, self._began)
        self._lock = threading.Lock()
        self._taken: dict[int, Arrival] = {}  # one entry per thread
        self._ended: list[tuple[float, int]] = []  # seconds and bytes of each
        self._stop = threading.Event()
        self._stopped = math.inf
        self._counts = np.zeros(histogram.BUCKETS, dtype=np.int64)
        self._us, self._bytes = 0.0, 0
        self._threads = [
            threading.Thread(target=self._run, args=[number], daemon=True) for number in range(plan.outstanding)
        ]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Issue no more, and wait for what is under way, for less than a guard does."""
        self._stopped = time.monotonic()
        self._stop.set()
        for thread in self._threads:
            thread.join(max(0.0, self._stopped + GRACE_S - 1 - time.monotonic()))

    def report(self) -> dict[str, Any]:
        """Return the work done since the beginning, and the waiting time of each I/O that has not ended."""
        with self._lock:
            now = time.monotonic()
            until = min(now, self._stopped)
            taken = [arrival.due for arrival in self._taken.values() if arrival.due <= until]
            waiting = np.concatenate([taken, self._arrivals.due_by(until)])
            ended, self._ended = self._ended, []
        us = np.array([seconds for seconds, _ in ended]) * _US
        self._counts += histogram.count(us, np.ones(len(us)))
        self._us += float(us.sum())
        self._bytes += sum(size for _, size in ended)
        done = {
            "io_bytes": self._bytes,
            "runtime": (now - self._began) * 1000,
            "lat_ns": {"mean": self._us * NS_PER_US / max(int(self._counts.sum()), 1), "bins": _bins(self._counts)},
        }
        ages = histogram.count((now - waiting) * _US, np.ones(len(waiting)))
        return {"jobs": [{self._plan.operation: done}], "waiting": _bins(ages), "t": now - self._plan.began}

    def _run(self, number: int) -> None:
        try:
            self._work(number, np.random.default_rng([self._plan.seed, number]))
        except OSError as error:
            print(f"{self._plan.operation} error: {error.strerror}", file=sys.stderr, flush=True)
            os._exit(1)

    def _work(self, number: int, rng: np.random.Generator) -> None:
        buffer = memoryview(mmap.mmap(-1, max(self._plan.blocks)))
        transfer = os.preadv if self._plan.operation == "read" else os.pwritev
        free = -math.inf
        while True:
            with self._lock:
                arrival = self._taken[number] = self._arrivals.next_arrival()
            part = buffer[: arrival.bytes]
            if self._plan.operation == "write":
                part[:] = compressible_bytes(rng, arrival.bytes)
            if self._stop.wait(max(0.0, arrival.due - time.monotonic())):
                return
            issued = time.monotonic()
            transfer(self._file, [part], arrival.offset)
            free = max(free, arrival.due) + time.monotonic() - issued
            with self._lock:
                self._ended.append((free - arrival.due, arrival.bytes))
                del self._taken[number]


def _bins(counts: np.ndarray) -> dict[int, int]:
    """Return the buckets in use as fio has them, by ns."""
    used = np.flatnonzero(counts)
    return dict(zip((histogram.VALUES_US[used] * NS_PER_US).tolist(), counts[used].tolist(), strict=True))


def _open(plan: Plan) -> int:
    """Open the file past the system's cache."""
    access = os.O_RDONLY if plan.operation == "read" else os.O_WRONLY
    try:
        file = os.open(plan.file, access | getattr(os, "O_DIRECT", 0))
    except OSError as error:
        sys.exit(f"error: file {plan.file}: {error.strerror}")
    if sys.platform == "darwin":
        import fcntl  # Windows has none

        fcntl.fcntl(file, fcntl.F_NOCACHE, 1)
    return file


def main() -> None:
    plan = Plan.from_json(sys.argv[1])
    stopped, stop = os.pipe()
    os.set_blocking(stop, False)
    signal.set_wakeup_fd(stop)
    signal.signal(signal.SIGTERM, lambda number, frame: None)
    sys.setswitchinterval(_TURN_S)
    threads = Threads(plan)
    while not select.select([stopped], [], [], 1 - (time.monotonic() - plan.began) % 1)[0]:
        _print(threads.report())
    threads.stop()
    _print(threads.report())
    # A normal exit would wait for a thread whose I/O hangs.
    os._exit(0)


def _print(report: dict[str, Any]) -> None:
    print(f"{{\n{json.dumps(report)[1:-1]}\n}}", flush=True)


if __name__ == "__main__":
    main()
