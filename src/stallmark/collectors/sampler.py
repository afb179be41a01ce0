"""The interface of a collector, a small class that reads one view of the server or the machine, and the sampler, which
runs collectors during the load: every source at its own interval, without drift, at a known cost.

Collectors store cumulative counters as they are, with the server's clock and with whatever identifies an
epoch (statistics reset, server start, device). Deltas are computed later, by the analysis.
"""

import logging
import math
import random
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import pyarrow as pa

from stallmark.engines.base import Engine
from stallmark.errors import StallmarkError, as_reason
from stallmark.record.writer import Columns, Rows

# Seconds to wait at the end for a collector whose server hangs.
LAST_ANSWER_S = 15.0
_log = logging.getLogger(__name__)

Row = dict[str, Any]
"""A row as a query returns it, by column. Its columns, with types, units and meaning, are in `Collector.columns` alone:
the record and its documentation are made from these, and tests hold what a query returns against them."""
Sink = Callable[[str, Sequence[Row]], None]
"""The taker of the rows of a table, by its name."""

DATABASE = "database"
"""The column of an answer that names the database of a row, if several databases are ours."""


class Collector(ABC):
    """Read one source at a fixed interval.

    Class attributes describe it to users (in the report) and to the record. `columns` are
    those of its table after `t` (seconds since the run's start), which the sampler adds.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    help: ClassVar[str]
    interval_s: ClassVar[float] = 1.0
    columns: ClassVar[pa.Schema]
    polling: ClassVar[bool] = False
    """It samples a passing state instead of reading counters: at a random instant of every interval, so that nothing
    periodic can hide between the samples, and with no extra sample at the end."""

    of_each_database: ClassVar[bool] = False
    """Its view shows only the database that a connection is in: where several are ours, each of them is asked."""

    named: ClassVar[Sequence[str]] = ()
    """The columns whose values are unique within one database: where several are ours, its name comes before them."""

    step_ends: Sequence[float] = ()
    """The ends of the measured intervals as they are planned, in seconds since the run's start."""

    alarm: str | None = None
    """The reason why the run must stop without a verdict, once there is one."""

    incomplete: str | None = None
    """The part that its rows lack because it could not be read, as a clause without a full stop; None if nothing."""

    def __init__(self, engine: Engine):
        self.engine = engine
        self.databases = engine.databases()

    @property
    def several(self) -> bool:
        """Return True if several databases are ours."""
        return len(self.databases) > 1

    def with_database_names(self, rows: Sequence[Row]) -> Sequence[Row]:
        """Return rows with their database's name where it belongs; it is left out where one database is ours."""
        if not (self.named or self.of_each_database) or not rows:
            return rows
        if not self.several and DATABASE not in {*rows[0], *self.columns.names}:
            return rows
        copied = list(rows)
        for row in copied:
            database = row.pop(DATABASE, None)
            if self.several:
                row |= {name: f"{database}.{row[name]}" for name in self.named}
            if DATABASE in self.columns.names:
                row[DATABASE] = database if self.several else None
        return copied

    def unavailable(self) -> str | None:
        """Return the reason why it can measure nothing here, as a sentence; None when it can. Called once, before the
        run.
        """
        return None

    def limitation(self) -> str | None:
        """Return a sentence on the columns that stay empty here, with the reason; None when all is measured."""
        return None

    def open(self) -> None:
        """Get ready to sample (connect). Called in the sampler's thread, and again after a failure, for what that has
        broken: a query that was refused is not a reason for another login.
        """

    @abstractmethod
    def sample(self, now: float) -> Sequence[Row]:
        """Read once; every row is a mapping of `columns`. `now` is in seconds since the run's start."""

    def finish(self) -> Sequence[Row]:
        """Return the rows it still holds because it aggregates. Called once, after the last sample."""
        return []

    def files(self) -> Mapping[str, str]:
        """Return texts to be kept beside the record's tables, by their paths in its folder. Called once, at the end."""
        return {}

    def close(self) -> None:
        """Let go of what `open` took."""


class ServerConnection(ABC):
    """The connection of one collector. A call of `open` connects, so that no sample waits for a login; after the
    connection broke, the next call connects again.
    """

    def __init__(self, engine: Engine):
        self._engine = engine
        self._connection: Any = None

    @abstractmethod
    def open(self) -> None:
        """Connect, unless that is done. Raise StallmarkError when it fails."""

    @abstractmethod
    def rows(self, sql: str) -> Rows:
        """Return the rows of a query.

        Raise StallmarkError without a connection, or if the server refuses or does not answer.
        """

    @abstractmethod
    def close(self) -> None:
        """Close the connection, if there is one, and forget it."""


# Several databases of ours on one server, asked as one.


@lru_cache(maxsize=64)
def name_of(engine: Engine) -> str:
    """Return the name of an engine's database, for which its server is asked once."""
    return engine.database_name()


class EachDatabase(ServerConnection):
    """A connection to each of several databases, which are asked one after the other. Their rows are one sample, at the
    time of the first."""

    def __init__(self, engines: Sequence[Engine], connected: Callable[[Engine], ServerConnection]):
        super().__init__(engines[0])
        self._connections = [(engine, connected(engine)) for engine in engines]

    def open(self) -> None:
        for _, connection in self._connections:
            connection.open()

    def rows(self, sql: str) -> Rows:
        together: list[tuple[Any, ...]] = []
        for engine, connection in self._connections:
            name = name_of(engine)
            try:
                rows = connection.rows(sql)
            except StallmarkError as error:
                raise StallmarkError(f"{name}: {error}") from error
            together += [(*row, name) for row in rows.values]
        if together and "server_time" in rows.names:
            index = rows.names.index("server_time")
            together = [(*row[:index], together[0][index], *row[index + 1 :]) for row in together]
        return Rows([*rows.names, DATABASE], together)

    def close(self) -> None:
        for _, connection in self._connections:
            connection.close()


class ServerCollector(Collector):
    """A collector that stores the rows of its query as they come."""

    connection_type: ClassVar[type[ServerConnection]]

    def __init__(self, engine: Engine):
        super().__init__(engine)
        self.connection: ServerConnection = self.connection_type(engine)
        if self.several and self.of_each_database:
            self.connection = EachDatabase(self.databases, self.connection_type)

    @property
    @abstractmethod
    def sql(self) -> str:
        """Return the query."""

    def open(self) -> None:
        self.connection.open()

    def sample(self, now: float) -> Sequence[Row]:
        return self.with_database_names(self.connection.rows(self.sql))

    def close(self) -> None:
        self.connection.close()


# The sampler.


@dataclass
class Outage:
    """A time without samples of one collector, in seconds since the run's start. `until` is None if it lasts to the
    end."""

    collector: str
    since: float
    reason: str
    until: float | None = None


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

    `sink` receives the name of a table and its rows, one call at a time; `clock` gives seconds since the run's start.
    Each collector has a thread and a connection of its own, so that a slow one delays no other. Counters are read at
    once, at every whole interval, and at the end; passing states at random instants. `wait` sleeps for some seconds and
    is true when the sampler is to stop.

    The `t` of a row is the middle of the call that read it, and `took_s` the duration of the call, without a login.

    A collector that fails is reported in `failures`, once per outage, and tried again at its next tick. `missed` counts
    the ticks that were passed over, because an earlier sample took too long.
    """

    def __init__(
        self,
        collectors: Sequence[Collector],
        sink: Sink,
        clock: Callable[[], float],
        *,
        wait: Callable[[float], bool] | None = None,
    ):
        self._sink = sink
        self.now = clock
        self._stop = threading.Event()
        self.wait = wait or self._stop.wait
        self._lock = threading.Lock()
        self.failures: list[Outage] = []
        self.missed: Counter[str] = Counter()
        self._lanes = [_Lane(self, collector) for collector in collectors]

    def start(self) -> None:
        """Start the threads; return when every counter has been read once, to cover the load from its start."""
        for lane in self._lanes:
            lane.thread.start()
        deadline = time.monotonic() + LAST_ANSWER_S
        for lane in self._lanes:
            lane.ready.wait(max(0.0, deadline - time.monotonic()))

    def stop(self) -> None:
        """Take the last sample and end the threads. A second call does nothing."""
        self._stop.set()
        deadline = time.monotonic() + LAST_ANSWER_S
        for lane in self._lanes:
            # A load that failed early has started no thread, and there is nothing to join.
            if lane.thread.ident is not None:
                lane.thread.join(max(0.0, deadline - time.monotonic()))
            # A server that hangs must not keep a finished run from its report.
            if lane.thread.is_alive():
                lane.abandon()

    @property
    def incomplete(self) -> dict[str, str]:
        """Return the gaps of collectors' rows as text, by collector name."""
        collectors = (lane.collector for lane in self._lanes)
        return {collector.name: collector.incomplete for collector in collectors if collector.incomplete}

    def store(self, table: str, rows: Sequence[Row]) -> None:
        with self._lock:
            self._sink(table, rows)


class _Lane:
    """A collector and the thread that samples it."""

    def __init__(self, sampler: Sampler, collector: Collector):
        self._sampler = sampler
        self.collector = collector
        self._ticks: Ticks
        self._is_open = self._to_close = False
        self._failure: Outage | None = None
        self._cost_from = 0.0
        self._wall_ns = self._cpu_ns = 0
        self._abandoned = False
        self.ready = threading.Event()
        self.thread = threading.Thread(target=self._main, name=f"sampler {collector.name}", daemon=True)

    def abandon(self) -> None:
        """Give up waiting for a server that does not answer, and for the rows it would still bring."""
        self._abandoned = True
        now = self._sampler.now()
        self._fail(now, StallmarkError(f"there was no answer within {LAST_ANSWER_S:.0f} s at the end"))

    def _main(self) -> None:
        now = self._cost_from = self._sampler.now()
        polling = self.collector.polling
        # Momentary states are sampled at random, or a periodic load would always be seen in the same phase.
        self._ticks = Ticks(self.collector.interval_s, now, random.random if polling else None)
        if not polling:
            self._sample()
        self.ready.set()
        while not self._sampler.wait(max(0.0, self._ticks.due - self._sampler.now())):
            if self._ticks.due <= self._sampler.now():
                self._sample()
                self._ticks.advance(self._sampler.now())
            # Once a second at most, so that the cost of recording the cost is small.
            if self._sampler.now() - self._cost_from >= 1:
                self._store_cost()
        self._finish()
        self._store_cost()

    def _sample(self) -> None:
        with self._measured(), self._guarded():
            if not self._is_open:
                # Set before the call: a login that fails halfway leaves something to close.
                self._to_close = True
                self.collector.open()
                self._is_open = True
            before = self._sampler.now()
            rows = self.collector.sample(before)
            self._store(rows, before, self._sampler.now())

    def _finish(self) -> None:
        self._sampler.missed[self.collector.name] += self._ticks.missed
        if not self.collector.polling:
            self._sample()
        with self._guarded():
            before = self._sampler.now()
            rows = self.collector.finish()
            self._store(rows, before, self._sampler.now())
        self._close()

    def _store(self, rows: Sequence[Row], began: float, ended: float) -> None:
        # An answer after the end would be written into a closed record.
        if rows and not self._abandoned:
            call = {"t": (began + ended) / 2, "took_s": ended - began}
            timed = rows.with_constants(**call) if isinstance(rows, Rows | Columns) else [call | row for row in rows]
            self._sampler.store(self.collector.name, timed)

    def _store_cost(self) -> None:
        self._cost_from = self._sampler.now()
        if not self._wall_ns:
            return
        costs = {"wall_us": self._wall_ns // 1000, "cpu_us": self._cpu_ns // 1000}
        self._wall_ns = self._cpu_ns = 0
        if not self._abandoned:
            with self._guarded():
                row = {"t": self._cost_from, "collector": self.collector.name} | costs
                self._sampler.store("collector_cost", [row])

    @contextmanager
    def _measured(self) -> Iterator[None]:
        wall, cpu = time.perf_counter_ns(), time.thread_time_ns()
        yield
        self._wall_ns += time.perf_counter_ns() - wall
        self._cpu_ns += time.thread_time_ns() - cpu

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Record the failure of one collector without disturbing the others."""
        began = self._sampler.now()
        try:
            yield
        except Exception as error:
            _log.debug("collector %s failed", self.collector.name, exc_info=True)
            self._is_open = False
            self._fail(began, error)
        else:
            # `finish` and the storing of costs succeed without a connection, too, which does not end an outage.
            if self._failure and self._is_open:
                self._failure.until = self._sampler.now()
                self._failure = None

    def _fail(self, since: float, error: Exception) -> None:
        if self._failure is None:
            self._failure = Outage(self.collector.name, since, _reason(error))
            self._sampler.failures.append(self._failure)

    def _close(self) -> None:
        if self._to_close:
            self._to_close = self._is_open = False
            try:
                self.collector.close()
            except Exception:
                _log.debug("collector %s did not close", self.collector.name, exc_info=True)


def _reason(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    sentence = as_reason(lines[0]) if lines else type(error).__name__
    return sentence if isinstance(error, StallmarkError) else f"{sentence} ({type(error).__name__})"
