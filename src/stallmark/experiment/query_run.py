"""Runs with the warehouse's queries: streams execute them to their end, or beside users."""

import random
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from stallmark.analysis.read.queries import PHASES
from stallmark.collectors.sampler import Sampler
from stallmark.driver.controller import Interrupted
from stallmark.driver.pacing import DueQueries, QueryQueue
from stallmark.driver.query_streams import Query, QueryDrive, Refreshing, Stopwatch, StreamProgress, StreamStep, Taken
from stallmark.engines.base import Engine
from stallmark.experiment import progress
from stallmark.experiment.run import AnyRun, RunOrder
from stallmark.experiment.work import Work, phase_step, work_of_queries
from stallmark.record.manifest.course import LeftWaiting, now
from stallmark.record.manifest.workload import application
from stallmark.record.writer import RecordWriter
from stallmark.scenarios.database import WorkloadChoice
from stallmark.scenarios.load import StreamsLoad
from stallmark.scenarios.model import QueryScenario
from stallmark.scenarios.queries import Phase
from stallmark.transactions.warehouse.queries import MOST_STREAMS, POWER, order, parameters, text
from stallmark.transactions.warehouse.refresh import Refresh

# A load of streams: queries of the warehouse while virtual users execute transactions on the same server. Their
# figures are kept apart.

PHASE = "concurrent"


def drawn_query(query: int, stream: int, choice: WorkloadChoice, dialect: str, dop: int | None = None) -> Query:
    """Return a query with its drawn parameters. On SQL Server `dop` is in the text; on PostgreSQL the session sets
    it."""
    drawn = parameters(query, choice.seed, stream, choice.scale["factor"])
    in_text = dop if dialect == "mssql" else None
    return Query(f"Q{query}", text(query, dialect, drawn, dop=in_text), dop)


class RunningStreams:
    """The streams of one load. In a closed loop each executes the 22 queries in an order of its own, then in the next
    order, as long as the step has it. In an open loop they share one order after the other: whichever is free executes
    the query that is due, so that the 22 come equally often however few come due."""

    def __init__(
        self,
        name: str,
        load: StreamsLoad,
        seed: int,
        engine: Engine,
        writer: RecordWriter,
        clock: Callable[[], float],
        times: float = 1.0,
    ):
        """Prepare a load whose queries come due, if at a rate, at `times` times the scenario's rate. The record has a
        table for queries that do not end."""
        self._choice = load.choice(seed)
        self._dialect = engine.dialect
        self._drive = QueryDrive(engine, writer, load.timeout, clock, name, application("streams", name))
        self._streams = 0
        arrivals = load.arrival_plan().times(times)
        self._rate = arrivals.rate
        rng = random.Random(f"{seed}/{writer.manifest.repeat}/queries of {name}")
        self._due = DueQueries(arrivals, rng, clock) if arrivals.rate else None
        self._writer, self._name, self._clock = writer, name, clock
        self._forgotten = self._recorded = 0
        self.poll = self._drive.poll
        self.notes = self._drive.notes

    def run(self, streams: int, cells: int = 1) -> None:
        """Have so many streams run from now on, with queries at a rate for each of the cells. Queries under way are
        given up where the number of streams changes."""
        if streams == self._streams:
            return
        self.finish()
        self._streams = streams
        if not streams:
            return
        if self._due and self._rate:
            every = self._steps(1, 1)
            self._drive.begin(PHASE, [(number, every) for number in range(1, streams + 1)], due=self._due)
            self._due.set_rate(cells * self._rate)
        else:
            steps = [(number, self._steps(number, streams)) for number in range(1, streams + 1)]
            self._drive.begin(PHASE, steps, over_and_over=True)

    def set_rate(self, rate: float) -> None:
        """Let queries come due at this rate from now on. Those under way continue; those that wait are forgotten."""
        self._rate = rate
        if self._due and self._streams:
            self._due.set_rate(rate)
            self._record_left(self._due)

    def finish(self) -> None:
        """End the streams, and give up what is under way."""
        if self._due:
            # First, so that no query comes due while the streams end.
            self._due.set_rate(0)
        self._drive.finish()
        if self._due:
            self._record_left(self._due)
        self._streams = 0

    def queue(self) -> QueryQueue | None:
        """Return the queries that are due now; None in a closed loop."""
        return self._due.queue(self._streams) if self._due else None

    def left(self) -> dict[str, Any]:
        """Return the work left undone, for the manifest. Call it after `finish`."""
        return {"left_waiting": LeftWaiting(arrivals=self._forgotten), "given_up": len(self._drive.given_up)}

    def _record_left(self, due: DueQueries) -> None:
        """Record the queries that were due and will have no row."""
        left = [Taken(due_s, None) for due_s in due.pop_forgotten()]
        self._forgotten += len(left)
        left += self._drive.given_up[self._recorded :]
        self._recorded = len(self._drive.given_up)
        now_s = self._clock()
        self._writer.append(
            "queries_left", [{"load": self._name, **taken._asdict(), "left_s": now_s} for taken in left]
        )

    def _steps(self, number: int, streams: int) -> list[Query]:
        """Return the steps of a stream: the orders of the table from its number on, so that no two streams have the
        same one at once."""
        return [
            drawn_query(query, stream, self._choice, self._dialect)
            for stream in range(number, MOST_STREAMS + 1, streams)
            for query in order(stream)
        ]


# A run of the warehouse's queries: streams execute them while collectors sample, each stream to its end.
class QueryRun(AnyRun):
    """A run of queries, by phases.

    Power: refresh, the 22 queries one after the other, refresh. Throughput: streams of the 22 queries at once, and one
    stream that refreshes as often. Each: single queries, the whole list at one degree of parallelism before the next
    degree. So a query finds in the pool what the others left there, and not its own pages from the degree before.
    """

    _scenario: QueryScenario

    def __init__(self, scenario: QueryScenario, engine: Engine, order: RunOrder):
        super().__init__(scenario, engine, order)
        self._queries = scenario.queries
        self._refresh = Refresh(engine, scenario.workload.scale["factor"])
        self._done = 0

    def _work(self) -> Work:
        return work_of_queries(self._scenario, self._workload, self._dops())

    def _mend(self) -> None:
        if left := self._refresh.pending():
            self._refresh.repair()
            self._notes.append(f"{left} The old ones were deleted before this run began.")
        if self._queries.refreshes:
            self._refresh.check_left(self._sets())

    def _sets(self) -> int:
        """Return the number of refresh sets still needed: by this run, and by later ones that begin at its end."""
        sets = {"power": 1, "throughput": self._scenario.streams, "each": 0}
        runs = len(self._scenario.run_order()) - self._order.place.sequence + 1
        # Sets that later runs will use must exist now, unless each run starts from the loaded data.
        executions = sum(sets[phase] for phase in self._queries.phases)
        return executions * (runs if self._scenario.reset == "continue" else 1)

    def _drive(self, writer: RecordWriter) -> str | None:
        phases = [(phase, list(self._streams(phase))) for phase in self._queries.phases]
        total = sum(len(steps) for _, streams in phases for _, steps in streams)
        clock = Stopwatch()
        drive = QueryDrive(self._engine, writer, self._queries.timeout, clock, self._scenario.workload.name)
        sampler = Sampler(self._collectors, writer.append, clock)
        try:
            with (
                self._given_back(sampler, writer, drive.finish, drive.notes),
                self._watch,
                self._show.bar(f"{self._title}: running", None, progress.Phase.MEASURING),
            ):
                # From here on an emulated array is slow: preparation was done at full speed.
                self._engine.devices.engage()
                writer.update(started=now())
                writer.save_manifest()
                clock.start()
                sampler.start()
                for phase, streams in phases:
                    show = partial(self._show_phase, phase, total)
                    began, ended = drive.follow(phase, streams, show, self._check_server)
                    self._done += sum(len(steps) for _, steps in streams)
                    users = sum(any(isinstance(step, Query) for step in steps) for _, steps in streams)
                    writer.update(steps=(*writer.manifest.steps, phase_step(phase, users, began, ended)))
                    writer.save_manifest()
        except Interrupted as interruption:
            return str(interruption)
        return None

    def _streams(self, phase: Phase) -> Iterator[tuple[int, Sequence[StreamStep]]]:
        """Yield number and steps of each stream of a phase, with every text made."""
        refresh = self._refresh
        first = Refreshing("RF1", lambda: refresh.insert().rows, refresh.prepare)
        last = Refreshing("RF2", lambda: refresh.delete().rows)
        refreshes = self._queries.refreshes
        if phase == "power":
            queries = [self._query(query, POWER, None) for query in order(POWER)]
            yield POWER, [first, *queries, last] if refreshes else queries
        elif phase == "throughput":
            count = self._scenario.streams
            for stream in range(1, count + 1):
                yield stream, [self._query(query, stream, None) for query in order(stream)]
            if refreshes:
                yield count + 1, [first, last] * count
        else:
            only = self._queries.only or self._scenario.query_streams.queries
            yield POWER, [self._query(query, POWER, dop) for dop in self._dops() for query in only]

    def _query(self, query: int, stream: int, dop: int | None) -> Query:
        return drawn_query(query, stream, self._scenario.workload, self._engine.dialect, dop)

    def _dops(self) -> list[int | None]:
        """Return the degrees of parallelism that the scenario asks for, `all` as the number of cores; [None] where it
        asks for none."""
        if self._queries.dop is None:
            return [None]
        cores = self._engine.cores()
        return list(dict.fromkeys(cores if dop == "all" else dop for dop in self._queries.dop))

    def _show_phase(self, phase: Phase, total: int, progress: StreamProgress) -> None:
        done = self._done + progress.done
        note = f"{PHASES[phase]}, {', '.join(progress.under_way) or 'at its end'}, {done} of {total} done"
        if progress.failed:
            note += f", {progress.failed} failed"
        self._show.advance(done, note, total)
