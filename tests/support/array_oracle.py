"""An array as model.h describes it, simulated in another way: the truth for the C model.

A discrete-event simulation with real queues of jobs, dictionaries for what is on flash, and its own chance. It shares
no code and no idea of data structures with the model: queues that give a second chance stand for the clocks of the
cache, sorted lists for the tier's table, servers that take the next job for the booked times.
"""

from __future__ import annotations

import heapq
import random
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from stallmark.storage.emulator import ArrayModel, FlashCache, FlashTier

READ, WRITE, SYNC = range(3)
STRIPE, BLOCK, LARGEST_CACHED, WAYS = 1 << 20, 8192, 64 << 10, 16


@dataclass
class Job:
    read: bool
    offset: int
    size: int
    done: Callable[[], None] = lambda: None
    sync: bool = False


@dataclass
class Server:
    """Serves one job after the other; `time_of` says how long one takes that begins now."""

    clock: Clock
    time_of: Callable[[Job], float]
    waiting: deque[Job] = field(default_factory=deque)
    busy: bool = False

    def take(self, job: Job) -> None:
        self.waiting.append(job)
        if not self.busy:
            self._next()

    def _next(self) -> None:
        self.busy = bool(self.waiting)
        if self.busy:
            job = self.waiting.popleft()
            self.clock.later(self.time_of(job), lambda: self._finish(job))

    def _finish(self, job: Job) -> None:
        job.done()
        self._next()


class Clock:
    def __init__(self) -> None:
        self.now = 0.0
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._number = 0

    def later(self, seconds: float, what: Callable[[], None]) -> None:
        self._number += 1
        heapq.heappush(self._events, (self.now + seconds, self._number, what))

    def run(self) -> Iterator[None]:
        while self._events:
            self.now, _, what = heapq.heappop(self._events)
            what()
            yield


class Spindle:
    """A disk: each stripe has a random cylinder and angle; where it stopped is where it goes on for nothing."""

    def __init__(self, model: ArrayModel, clock: Clock, chance: random.Random):
        self._model, self._clock = model, clock
        self._places: dict[int, tuple[float, float]] = defaultdict(lambda: (chance.random(), chance.random()))
        self._cylinder, self._stopped = 0.0, -1

    def time_of(self, job: Job) -> float:
        model = self._model
        if job.sync:
            self._stopped = -1
            return (model.sync_ms or 0) / 1e3
        transfer = job.size / (model.mb_per_s * 1e6)
        sequential = job.offset == self._stopped
        self._stopped = job.offset + job.size
        if sequential:
            return transfer
        if not model.rpm:
            return (model.read_ms if job.read else model.write_ms) / 1e3 + transfer
        turn = 60 / model.rpm
        cylinder, angle = self._places[job.offset // STRIPE]
        distance, self._cylinder = abs(cylinder - self._cylinder), cylinder
        seek = model.seek_ms / 1e3 * (0.2 + 1.5 * distance**0.5) if distance else 0
        under_head = (self._clock.now + seek) / turn
        begins = angle + job.offset % STRIPE / (model.mb_per_s * 1e6 * turn)
        return seek + (begins - under_head) % 1 * turn + transfer


class Cache:
    """Blocks, each in its one bucket, which is a queue: the first leaves, or has its second chance at the end."""

    def __init__(self, blocks: int):
        self._buckets: list[deque[int]] = [deque() for _ in range(blocks // WAYS)]
        self._used_again: dict[int, bool] = {}

    def use(self, block: int) -> bool:
        """True if it is there."""
        held = block in self._used_again
        if held:
            self._used_again[block] = True
        return held

    def put(self, block: int) -> None:
        bucket = self._buckets[hash((block, WAYS)) % len(self._buckets)]
        if len(bucket) == WAYS:
            while self._used_again[bucket[0]]:
                self._used_again[bucket[0]] = False
                bucket.rotate(-1)
            del self._used_again[bucket.popleft()]
        bucket.append(block)
        self._used_again[block] = False


class Oracle:
    """An array of that model in a closed loop."""

    def __init__(self, model: ArrayModel, seed: int):
        self.model, self.chance, self.clock = model, random.Random(seed), Clock()
        self.spindles = [
            Server(self.clock, Spindle(model, self.clock, self.chance).time_of) for _ in range(model.spindles)
        ]
        flash = model.flash
        self.channels = [Server(self.clock, self._flash_time) for _ in range(flash.channels if flash else 0)]
        self._channel_of: dict[int, Server] = {}
        self.cached = Cache(flash.size // BLOCK if isinstance(flash, FlashCache) else 0)
        self.heat: dict[int, float] = defaultdict(float)
        self.on_flash: set[int] = set()
        self.latencies: list[float] = []
        self.by_flash: list[bool] = []
        if isinstance(flash, FlashTier):
            self.clock.later(flash.cycle_s, self._cycle)

    def closed(self, outstanding: int, requests: int, draw: Callable[[], tuple[int, int, int]]) -> None:
        """As `Array.closed`; fills `latencies` and `by_flash`."""
        for _ in range(outstanding):
            self._ask(requests, draw)
        for _ in self.clock.run():
            if len(self.latencies) >= requests:
                return

    def _ask(self, requests: int, draw: Callable[[], tuple[int, int, int]]) -> None:
        operation, offset, size = draw()
        started = self.clock.now

        def done() -> None:
            self.latencies.append(self.clock.now - started)
            self.by_flash.append(by_flash)
            self._ask(requests, draw)

        by_flash = self.submit(operation, offset, size, done)

    def submit(self, operation: int, offset: int, size: int, done: Callable[[], None]) -> bool:
        """An I/O that arrives now; returns whether flash serves it. `done` is called when it has ended."""
        if operation == SYNC:
            return self._sync(offset, done)
        job = Job(operation == READ, offset, size, done)
        by_flash = self._on_flash(job)
        (self._channel(offset) if by_flash else self._spindle(offset)).take(job)
        return by_flash

    def _sync(self, offset: int, done: Callable[[], None]) -> bool:
        """A barrier where that offset is: at its spindle, or on the tier's flash."""
        job = Job(False, offset, 0, done, sync=True)
        tier = self.model.tier
        up = tier is not None and offset // tier.extent_bytes in self.on_flash
        (self._channel(offset) if up else self._spindle(offset)).take(job)
        return up

    def _on_flash(self, job: Job) -> bool:
        flash = self.model.flash
        if isinstance(flash, FlashTier):
            extent = job.offset // flash.extent_bytes
            self.heat[extent] += 1
            return extent in self.on_flash
        if not isinstance(flash, FlashCache):
            return False
        if job.read and job.size > LARGEST_CACHED:
            return False
        blocks = range(job.offset // BLOCK, -(-(job.offset + job.size) // BLOCK))
        missing = [block for block in blocks if not self.cached.use(block)]
        for block in missing if job.read else []:
            self.cached.put(block)
        hit = not missing
        # A miss fills the cache with what was not there, a write of what is there writes it there, too.
        if written := len(missing) if job.read else len(blocks) - len(missing):
            self._channel(job.offset).take(Job(False, job.offset, written * BLOCK))
        return hit and job.read

    def _cycle(self) -> None:
        flash = self.model.flash
        assert isinstance(flash, FlashTier)
        up = sorted((e for e in self.heat if e not in self.on_flash), key=self.heat.__getitem__)
        down = sorted(self.on_flash, key=self.heat.__getitem__, reverse=True)
        for _ in range(min(flash.moved_bytes // flash.extent_bytes, len(up))):
            hot = up.pop()
            if len(self.on_flash) >= flash.size // flash.extent_bytes:
                if self.heat[hot] <= 1.5 * self.heat[down[-1]]:
                    break
                self._move(down.pop(), False)
            self._move(hot, True)
        for extent in self.heat:
            self.heat[extent] *= 0.75
        self.clock.later(flash.cycle_s, self._cycle)

    def _move(self, extent: int, up: bool) -> None:
        size = self.model.flash.extent_bytes
        for offset in range(extent * size, (extent + 1) * size, STRIPE):
            self._spindle(offset).take(Job(up, offset, min(size, STRIPE)))
            self._channel(offset).take(Job(not up, offset, min(size, STRIPE)))
        (self.on_flash.add if up else self.on_flash.remove)(extent)

    def _spindle(self, offset: int) -> Server:
        return self.spindles[offset // STRIPE % len(self.spindles)]

    def _channel(self, offset: int) -> Server:
        return self._channel_of.setdefault(offset // BLOCK, self.chance.choice(self.channels))

    def _flash_time(self, job: Job) -> float:
        flash = self.model.flash
        return (flash.read_ms if job.read else flash.write_ms) / 1e3 + job.size / (flash.mb_per_s * 1e6)
