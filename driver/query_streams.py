"""The streams of a run of queries: a thread and a connection for each, one query after the other, each one timed.

Between two queries a stream only takes the time, and asks for what the server noted of the last one. Plans are read in
the thread that follows the streams, and every text was made before the clock began.
"""

import itertools
import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

from stallmark.driver.controller import Interrupted
from stallmark.driver.pacing import DueQueries
from stallmark.engines.abilities import Answer, Measures, QuerySession
from stallmark.engines.base import Engine
from stallmark.errors import CallFailed, ErrorClass, StallmarkError, as_reason
from stallmark.record.writer import RecordWriter

FAREWELL_S = 30.0
TICK_S = 0.2

_LOST = (ErrorClass.CONNECTION_LOST, ErrorClass.UNKNOWN_OUTCOME)


@dataclass(frozen=True)
class Query:
    """A statement; `dop` is how many processors may work on it at once, None for the server's setting."""

    name: str
    text: str
    dop: int | None = None


@dataclass(frozen=True)
class Refreshing:
    """A refresh function, which changes the data and returns how many rows it changed. It has connections of its own;
    `prepare` is not timed."""

    name: str
    do: Callable[[], int]
    prepare: Callable[[], None] = lambda: None


StreamStep = Query | Refreshing


@dataclass(frozen=True)
class StreamProgress:
    """The state of a run at this moment, for display."""

    done: int
    total: int
    under_way: Sequence[str]
    failed: int


@dataclass(frozen=True)
class _Done:
    """A step that has ended: with an `answer` of a query, the `rows` of a refresh, or an `error`. In an open loop
    `due_s` is the time at which it was due.
    """

    stream: int
    position: int
    step: StreamStep
    started_s: float
    seconds: float
    answer: Answer | None = None
    rows: int | None = None
    error: CallFailed | None = None
    due_s: float | None = None


class Taken(NamedTuple):
    """A step that a stream has taken up: when it was due, in an open loop, and when it began, if it has."""

    due_s: float | None
    started_s: float | None


class Stopwatch:
    """A clock that returns seconds since the run's start, monotonic."""

    def __init__(self) -> None:
        self.start()

    def start(self) -> None:
        """Make this moment second 0 of the run."""
        self._start_ns = time.monotonic_ns()

    def __call__(self) -> float:
        return (time.monotonic_ns() - self._start_ns) / 1e9


class QueryDrive:
    """The streams of one run, phase by phase. Each query is recorded as soon as it has ended.

    A phase is either followed to its end, or begun, polled while other work goes ahead, and ended with `finish`.
    `application` is the name under which the server sees the sessions.
    """

    def __init__(
        self,
        engine: Engine,
        writer: RecordWriter,
        timeout_s: float,
        clock: Callable[[], float],
        load: str,
        application: str = "stallmark-user",
    ):
        self._engine = engine
        self._writer = writer
        self._timeout_s = timeout_s
        self._load = load
        self._application = application
        self.clock = clock
        self._events: SimpleQueue[_Done | Exception] = SimpleQueue()
        self._phase = ""
        self._streams: list[_Stream] = []
        self._notes: dict[str, None] = {}
        self.given_up: list[Taken] = []
        """The steps that were under way when their streams had to end. They are in no row."""

    def follow(
        self,
        phase: str,
        streams: Sequence[tuple[int, Sequence[StreamStep]]],
        show: Callable[[StreamProgress], None],
        check: Callable[[], None],
    ) -> tuple[float, float]:
        """Execute streams, each a number and its steps, at once and to their ends. Return the start of the first and
        the end of the last, in seconds of the run.

        A query that fails or takes too long is recorded, and its stream continues. `check` is called several times a
        second and may raise Interrupted. That is also raised when the server is lost, or when a refresh fails: later
        queries would find other data than they should.
        """
        total = sum(len(steps) for _, steps in streams)
        began = self.begin(phase, streams)
        while any(stream.thread.is_alive() for stream in self._streams) or not self._events.empty():
            self.poll(TICK_S)
            check()
            under_way = [stream.under_way for stream in self._streams if stream.under_way]
            show(StreamProgress(self._done, total, under_way, self._failed))
        self.finish()
        return began, self._ended

    def begin(
        self,
        phase: str,
        streams: Sequence[tuple[int, Sequence[StreamStep]]],
        *,
        over_and_over: bool = False,
        due: DueQueries | None = None,
    ) -> float:
        """Start streams, each a number and its steps, and return when, in seconds of the run. With `due` they have the
        same steps, over and over: whichever is free executes the next one when it is due."""
        self._phase, self._done, self._failed = phase, 0, 0
        for number, steps in streams:
            self._streams.append(_Stream(self, number, steps, over_and_over, due))
        began = self._ended = self.clock()
        for stream in self._streams:
            stream.thread.start()
        return began

    def poll(self, wait_s: float = 0.0) -> None:
        """Record the queries that have ended, waiting up to `wait_s` seconds for the first. Raise Interrupted as
        `follow` does."""
        with suppress(Empty):
            event = self._events.get(block=wait_s > 0, timeout=wait_s or None)
            while True:
                if isinstance(event, Exception):
                    raise Interrupted(f"a stream ended unexpectedly: {event}") from event
                self._done, self._ended = self._done + 1, max(self._ended, event.started_s + event.seconds)
                self._failed += event.error is not None
                self._record(event)
                _raise_if_fatal(event)
                event = self._events.get_nowait()

    def finish(self) -> None:
        """Give up what is under way and end the streams. Call it whatever has happened. A refresh is not given up: it
        is one transaction, and ends soon."""
        for stream in self._streams:
            stream.stop()
        deadline = time.monotonic() + FAREWELL_S
        for stream in self._streams:
            stream.end(deadline)
            if stream.taken:
                self.given_up.append(stream.taken)
            if stream.session and stream.session.limited:
                self._notes[stream.session.limited] = None
        while not self._events.empty():
            if isinstance(event := self._events.get(), _Done):
                self._record(event)
        self._streams = []

    def notes(self) -> list[str]:
        """Return sentences about what the server does not report on queries. Call it after `finish`."""
        return list(self._notes)

    def open_session(self) -> QuerySession:
        try:
            return self._engine.queries(self._timeout_s, self._application)
        except CallFailed as error:
            raise StallmarkError(f"A stream got no connection: {error.message} ({error.code}).") from None

    def post(self, event: _Done | Exception) -> None:
        self._events.put(event)

    def _record(self, done: _Done) -> None:
        row: dict[str, Any] = {
            "phase": self._phase,
            "load": self._load,
            "stream": done.stream,
            "position": done.position,
            "query": done.step.name,
            "dop": done.step.dop if isinstance(done.step, Query) else None,
            "due_s": done.due_s,
            "started_s": done.started_s,
            "seconds": done.seconds,
            "rows": done.rows,
        }
        if done.error:
            row |= {"error_class": str(done.error.kind), "error": f"{done.error.message} ({done.error.code})"}
        if done.answer:
            session = next(stream.session for stream in self._streams if stream.number == done.stream)
            assert session
            measures = self._measures(session, done)
            waits = None if measures.wait_ms is None else json.dumps(measures.wait_ms)
            row |= asdict(measures) | {"wait_ms": waits}
            if done.answer.plan and measures.plan_hash:
                name = plan_file(done.step.name, measures.plan_hash, session.plan_suffix)
                _save_plan(self._writer.folder / name, done.answer.plan)
        self._writer.append("queries", [row])

    def _measures(self, session: QuerySession, done: _Done) -> Measures:
        assert done.answer
        try:
            return session.measures(done.answer)
        except ValueError as error:
            self._notes[f"The plan of {done.step.name} could not be read ({error})."] = None
            return Measures(rows=done.answer.rows)


def plan_file(query: str, plan_hash: str, suffix: str) -> str:
    """Return the path, within the record, of a query's plan of that shape: "plans/q09-2f….json"."""
    return f"plans/q{int(query.removeprefix('Q')):02d}-{plan_hash}.{suffix}"


def _save_plan(path: Path, plan: str) -> None:
    """Keep the plan of the first execution; those of later ones differ in their counts alone."""
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        path.write_text(plan, encoding="utf-8")


def _raise_if_fatal(done: _Done) -> None:
    if done.error is None:
        return
    if done.error.kind.fatal:
        raise Interrupted(f"the server lost data: {done.error.message} ({done.error.code}); check its storage")
    if done.error.kind in _LOST:
        raise Interrupted(f"stream {done.stream} lost the server in {done.step.name}: {done.error.message}")
    if isinstance(done.step, Refreshing):
        raise Interrupted(f"{done.step.name} failed: {done.error.message} ({done.error.code})")


class _Stream:
    """A stream: one thread, and one connection if it has queries. The connection is opened before any stream begins."""

    def __init__(
        self, drive: QueryDrive, number: int, steps: Sequence[StreamStep], over_and_over: bool, due: DueQueries | None
    ):
        self.number = number
        self.under_way = ""
        self.taken: Taken | None = None
        """The step that has not ended."""
        self._drive = drive
        self._stopping = threading.Event()
        in_order: Iterable[StreamStep] = itertools.cycle(steps) if over_and_over else steps
        self._steps = self._as_due(steps, due) if due else ((None, step) for step in in_order)
        has_queries = any(isinstance(step, Query) for step in steps)
        self.session = drive.open_session() if has_queries else None
        self.thread = threading.Thread(target=self._main, name=f"stream {number}", daemon=True)

    def stop(self) -> None:
        self._stopping.set()
        if self.session and self.thread.is_alive():
            self.session.cancel()

    def end(self, deadline: float) -> None:
        """Wait until `deadline` for the stream to end, cancelling again and again: a server forgets a cancel that comes
        between two queries."""
        while self.thread.is_alive() and time.monotonic() < deadline:
            self.thread.join(TICK_S)
            self.stop()
        if self.session and not self.thread.is_alive():
            self.session.close()

    def _as_due(self, steps: Sequence[StreamStep], due: DueQueries) -> Iterator[tuple[float | None, StreamStep]]:
        while taken := due.next_due(self._stopping):
            number, due_s = taken
            yield due_s, steps[number % len(steps)]

    def _main(self) -> None:
        try:
            for position, (due_s, step) in enumerate(self._steps, 1):
                if self._stopping.is_set():
                    self.taken = None if due_s is None else Taken(due_s, None)  # nobody begins it any more
                    break
                self.taken = Taken(due_s, self._drive.clock())
                self.under_way = step.name
                do = self._execute if isinstance(step, Query) else self._refresh
                done = do(position, step)  # type: ignore[arg-type]
                if done.error and self._stopping.is_set():  # because we end
                    break
                self._drive.post(replace(done, due_s=due_s))
                self.taken = None
                self.under_way = ""
                if done.error and (done.error.kind in _LOST or isinstance(step, Refreshing)):
                    break
            self.under_way = ""
        except Exception as error:  # ours, and no server's: it must not end a thread in silence
            self._drive.post(error)

    def _execute(self, position: int, query: Query) -> _Done:
        assert self.session
        try:
            self.session.set_dop(query.dop)
        except CallFailed as error:
            return _Done(self.number, position, query, self._drive.clock(), 0.0, error=error)
        answer, failure = None, None
        started = self._drive.clock()
        try:
            answer = self.session.execute(query.text)
        except CallFailed as error:
            failure = error
        seconds = self._drive.clock() - started
        if answer:
            answer = self.session.with_notes(answer)
        return _Done(self.number, position, query, started, seconds, answer, error=failure)

    def _refresh(self, position: int, step: Refreshing) -> _Done:
        rows, failure = None, None
        started = self._drive.clock()
        try:
            step.prepare()
            started = self._drive.clock()
            rows = step.do()
        except CallFailed as error:
            failure = error
        except StallmarkError as error:
            failure = CallFailed(ErrorClass.OTHER, "Stallmark", as_reason(error))
        seconds = self._drive.clock() - started
        return _Done(self.number, position, step, started, seconds, rows=rows, error=failure)
