"""Runs of the warehouse's queries: streams execute them to their end."""

from collections.abc import Iterator, Sequence
from functools import partial

from stallmark.analysis.read.queries import PHASES
from stallmark.collectors.sampler import Sampler
from stallmark.driver.controller import Interrupted
from stallmark.driver.query_streams import Query, QueryDrive, Refreshing, Stopwatch, StreamProgress, StreamStep
from stallmark.engines.base import Engine
from stallmark.experiment import progress
from stallmark.experiment.loads_beside import drawn_query
from stallmark.experiment.run import AnyRun, RunOrder
from stallmark.experiment.work import Work, phase_step, work_of_queries
from stallmark.record.manifest.course import now
from stallmark.record.writer import RecordWriter
from stallmark.scenarios.model import QueryScenario
from stallmark.scenarios.queries import Phase
from stallmark.transactions.warehouse.queries import POWER, order
from stallmark.transactions.warehouse.refresh import Refresh


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
