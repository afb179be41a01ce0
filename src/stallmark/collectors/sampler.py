"""Run the collectors during the load: every source at its own interval, without drift, at a known cost."""

import logging
import math
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from stallmark.collectors.base import Collector, Row
from stallmark.errors import StallmarkError

LAST_ANSWER_S = 15.0  # how long a collector that asks a server which hangs is waited for at the end
_log = logging.getLogger(__name__)


@dataclass
class Failure:
    """A collector measured nothing from `since` to `until` (seconds since the run's start; None: the end)."""

    collector: str
    title: str
    since: float
    reason: str
    until: float | None = None

    def __str__(self) -> str:
        until = "to the end" if self.until is None else f"to {self.until:.0f} s"
        return f"{self.title}: nothing measured from {self.since:.0f} s {until}, because {self.reason}."


class Ticks:
    """The instants of one collector: one in every slot of `interval_s`, counted from the run's start, at the
    slot's begin or, with `jitter` (0 ≤ value < 1), at a random point in it.

    Missed slots are never made up for, because samples must not bunch: begun ones, with jitter ended ones.
    """

    def __init__(self, interval_s: float, now: float, jitter: Callable[[], float] | None = None):
        self._interval_s = interval_s
        self._jitter = jitter
        self._slot = math.floor(now / interval_s)
        self.missed = 0
        self.due: float
        self.advance(now)

    def advance(self, now: float) -> None:
        """Go on to the next slot that is not missed at `now`."""
        expected = self._slot + 1
        under_way = math.floor(now / self._interval_s)
        self._slot = max(expected, under_way if self._jitter else under_way + 1)
        self.missed += self._slot - expected
        self.due = (self._slot + (self._jitter() if self._jitter else 0.0)) * self._interval_s


class Sampler:
    """Sample `collectors` in background threads from `start` until `stop`.

    `sink` receives the name of a table and its rows, one call at a time; `clock` gives seconds since the
    run's start. Those that read counters share a thread, which samples them at once, at every whole interval,
    and at the end; each polling collector has a thread of its own. `wait` sleeps for some seconds and is true
    when the sampler is to stop.

    A collector that fails is reported in `failures`, once per outage, and tried again at its next tick.
    `missed` counts the ticks that were passed over, because an earlier sample took too long.
    """

    def __init__(
        self,
        collectors: Sequence[Collector],
        sink: Callable[[str, Sequence[Row]], None],
        clock: Callable[[], float],
        *,
        wait: Callable[[float], bool] | None = None,
    ):
        self._sink = sink
        self._clock = clock
        self._stop = threading.Event()
        self._wait = wait or self._stop.wait
        self._lock = threading.Lock()
        self.failures: list[Failure] = []
        self.missed: Counter[str] = Counter()
        counters = [collector for collector in collectors if not collector.polling]
        groups = [[collector] for collector in collectors if collector.polling]
        self._lanes = [_Lane(self, group) for group in ([counters] if counters else []) + groups]

    def start(self) -> None:
        """Start the threads; return when every counter has been read once, to cover the load from its start."""
        for lane in self._lanes:
            lane.thread.start()
        for lane in self._lanes:
            lane.ready.wait(LAST_ANSWER_S)

    def stop(self) -> None:
        """Take the last sample and end the threads. A second call does nothing."""
        self._stop.set()
        deadline = time.monotonic() + LAST_ANSWER_S
        for lane in self._lanes:
            if lane.thread.ident is not None:
                lane.thread.join(max(0.0, deadline - time.monotonic()))
            if lane.thread.is_alive():
                lane.abandon()

    def store(self, table: str, rows: Sequence[Row]) -> None:
        with self._lock:
            self._sink(table, rows)

    def now(self) -> float:
        return self._clock()

    def wait(self, seconds: float) -> bool:
        return self._wait(seconds)


class _Lane:
    """A thread and the collectors it samples, one after the other."""

    def __init__(self, sampler: Sampler, collectors: Sequence[Collector]):
        self._sampler = sampler
        self._runs = [_Run(collector) for collector in collectors]
        self._cost_from = 0.0
        self._abandoned = False
        self.ready = threading.Event()
        self.thread = threading.Thread(
            target=self._main, name=f"sampler {'+'.join(c.name for c in collectors)}", daemon=True
        )

    def abandon(self) -> None:
        """Give up waiting for a server that does not answer, and for the rows it would still bring."""
        self._abandoned = True
        now = self._sampler.now()
        for run in self._runs:
            self._fail(run, now, StallmarkError(f"there was no answer within {LAST_ANSWER_S:.0f} s at the end"))

    def _main(self) -> None:
        now = self._cost_from = self._sampler.now()
        for run in self._runs:
            polling = run.collector.polling
            run.ticks = Ticks(run.collector.interval_s, now, random.random if polling else None)
            if not polling:
                self._sample(run)
        self.ready.set()
        while not self._sampler.wait(max(0.0, min(run.ticks.due for run in self._runs) - self._sampler.now())):
            now = self._sampler.now()
            for run in self._runs:
                if run.ticks.due <= now:
                    self._sample(run)
                    run.ticks.advance(self._sampler.now())
            if self._sampler.now() - self._cost_from >= 1:
                self._store_cost()
        for run in self._runs:
            self._finish(run)
        self._store_cost()

    def _sample(self, run: "_Run") -> None:
        collector = run.collector
        with self._measured(run), self._guarded(run):
            if not run.is_open:
                collector.open()
                run.is_open = True
            before = self._sampler.now()
            rows = collector.sample(before)
            self._store(run, rows, (before + self._sampler.now()) / 2)

    def _finish(self, run: "_Run") -> None:
        self._sampler.missed[run.collector.name] += run.ticks.missed
        if not run.collector.polling:
            self._sample(run)
        with self._guarded(run):
            self._store(run, run.collector.finish(), self._sampler.now())
        self._close(run)

    def _store(self, run: "_Run", rows: Sequence[Row], t: float) -> None:
        if rows and not self._abandoned:
            self._sampler.store(run.collector.name, [{"t": t} | row for row in rows])

    def _store_cost(self) -> None:
        self._cost_from = self._sampler.now()
        rows: list[dict[str, Any]] = []
        for run in self._runs:
            if run.wall_ns:
                costs = {"wall_us": run.wall_ns // 1000, "cpu_us": run.cpu_ns // 1000}
                rows.append({"t": self._cost_from, "collector": run.collector.name} | costs)
                run.wall_ns = run.cpu_ns = 0
        if rows and not self._abandoned:
            with self._guarded(self._runs[0]):
                self._sampler.store("collector_cost", rows)

    @contextmanager
    def _measured(self, run: "_Run") -> Iterator[None]:
        wall, cpu = time.perf_counter_ns(), time.thread_time_ns()
        yield
        run.wall_ns += time.perf_counter_ns() - wall
        run.cpu_ns += time.thread_time_ns() - cpu

    @contextmanager
    def _guarded(self, run: "_Run") -> Iterator[None]:
        """Whatever goes wrong with one collector is noted, and is nobody else's trouble."""
        began = self._sampler.now()
        try:
            yield
        except Exception as error:
            _log.debug("collector %s failed", run.collector.name, exc_info=True)
            self._close(run)
            self._fail(run, began, error)
        else:
            if run.failure and run.is_open:
                run.failure.until = self._sampler.now()
                run.failure = None

    def _fail(self, run: "_Run", since: float, error: Exception) -> None:
        if run.failure is None:
            title = run.collector.title
            run.failure = Failure(run.collector.name, title, since, _reason(error))
            self._sampler.failures.append(run.failure)

    def _close(self, run: "_Run") -> None:
        if run.is_open:
            run.is_open = False
            try:
                run.collector.close()
            except Exception:
                _log.debug("collector %s did not close", run.collector.name, exc_info=True)


class _Run:
    """The state of one collector in the sampler."""

    def __init__(self, collector: Collector):
        self.collector = collector
        self.ticks: Ticks
        self.is_open = False
        self.failure: Failure | None = None
        self.wall_ns = 0
        self.cpu_ns = 0


def _reason(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    sentence = lines[0].rstrip(".") if lines else type(error).__name__
    return sentence if isinstance(error, StallmarkError) else f"{sentence} ({type(error).__name__})"
