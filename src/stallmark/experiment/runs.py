"""The two kinds of runs: of loads planned by time, in which virtual users execute transactions while collectors sample,
and of the warehouse's queries, which streams execute to their end."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial

from stallmark.collectors.sampler import Row, Sampler, Sink
from stallmark.driver.controller import Drive, Interrupted, LoadProgress
from stallmark.driver.load import ExpectedMachines
from stallmark.driver.query_streams import Query, QueryDrive, Refreshing, Stopwatch, StreamProgress, StreamStep
from stallmark.driver.searched_load import IOSample, SearchedLoad
from stallmark.engines.abilities import required
from stallmark.engines.base import Engine
from stallmark.errors import CallFailed
from stallmark.experiment import LoadByHand
from stallmark.experiment.any_run import AnyRun, RunOrder
from stallmark.experiment.loads_beside import LoadsBeside, drawn_query
from stallmark.experiment.progress import Phase
from stallmark.experiment.work import (
    Work,
    as_planned,
    load_specs,
    on_machines,
    phase_step,
    search_plan,
    with_databases,
    work_of_loads,
    work_of_queries,
)
from stallmark.format import exact
from stallmark.record.manifest.course import ExpectedMachines as RecordedMachines
from stallmark.record.manifest.course import now
from stallmark.record.manifest.workload import PHASES, cut_short, ended_early
from stallmark.record.schema import MAINTENANCE
from stallmark.record.writer import RecordWriter
from stallmark.scenarios.model import Phase as QueryPhase
from stallmark.scenarios.model import QueryScenario, TimedScenario
from stallmark.scenarios.timed import PlannedStep
from stallmark.scenarios.variant import During
from stallmark.transactions.warehouse import POWER, order
from stallmark.transactions.warehouse.refresh import Refresh

# The way of the server's I/O counters, while a run goes on, to the search that judges by them.


def io_sink(store: Sink, load: SearchedLoad) -> Sink:
    """Return a sink that stores rows and counts the reads of data files among them, of all the server's processes."""

    def sink(table: str, rows: Sequence[Row]) -> None:
        store(table, rows)
        if table == "server_io" and (sample := _data_file_sample(rows)):
            load.count_io(sample)

    return sink


def _data_file_sample(rows: Sequence[Row]) -> IOSample | None:
    data = [row for row in rows if row["kind"] == "data"]
    if not data:
        return None

    def total(name: str) -> float:
        return float(sum(row.get(name) or 0 for row in data))

    # A server that does not time its reads has None, which must not become 0 ms.
    timed = any(row["read_stall_ms"] is not None for row in data)
    return IOSample(data[0]["t"], total("reads"), total("read_stall_ms") if timed else None)


# Maintenance beside the users of a run: the same statement over and over, from when measuring begins until the end.

FAREWELL_S = 30.0
CANCEL_EVERY_S = 0.2


class ConcurrentMaintenance:
    """One thread and one connection. A statement that fails ends it; its row has the error."""

    def __init__(self, during: During, engine: Engine, writer: RecordWriter, clock: Callable[[], float]):
        self._kind, self._writer, self._clock = during.kind, writer, clock
        writer.add_table("maintenance", MAINTENANCE)
        self._work = required(engine.maintenance[during.kind]).open(during.target)
        self._stopping = threading.Event()
        self._rows: list[dict[str, object]] = []
        self._thread = threading.Thread(target=self._main, name="maintenance", daemon=True)

    def begin(self) -> None:
        """Begin, once; later calls do nothing."""
        if self._thread.ident is None:
            self._thread.start()

    def finish(self) -> None:
        """Give up what is under way, and write down what was done."""
        self._stopping.set()
        give_up_s = time.monotonic() + FAREWELL_S
        while self._thread.is_alive() and time.monotonic() < give_up_s:
            # Again and again, because a server forgets a cancel that comes before the statement.
            self._work.cancel()
            self._thread.join(CANCEL_EVERY_S)
        # A driver may crash if a connection in use is closed.
        if not self._thread.is_alive():
            self._work.close()
        self._writer.append("maintenance", self._rows)

    def _main(self) -> None:
        while not self._stopping.is_set():
            started, error = self._clock(), None
            try:
                self._work.execute()
            except CallFailed as failure:
                error = f"{failure.message} ({failure.code})"
            # An error by our own cancel is the end of the run and not a failure of the maintenance.
            cut = self._stopping.is_set() and error is not None
            self._rows.append(
                {
                    "kind": self._kind,
                    "started_s": started,
                    "seconds": self._clock() - started,
                    "finished": error is None,
                    "error": None if cut else error,
                }
            )
            if error and not cut:
                return


class Run(AnyRun):
    """A run of loads. With `expected` the users are on other machines; `by_hand`, somebody changes their number."""

    _scenario: TimedScenario

    def __init__(
        self,
        scenario: TimedScenario,
        engine: Engine,
        order: RunOrder,
        expected: ExpectedMachines | None,
        by_hand: LoadByHand | None = None,
    ):
        super().__init__(scenario, engine, order)
        self._timeline = scenario.timeline(self._variant)
        planned = scenario.steps_of(self._variant)
        self._planned = {step.name: plan for step, plan in zip(self._timeline.steps, planned, strict=True)}
        self._plan = planned[0]
        self._expected, self._by_hand = expected, by_hand
        self._most_users = by_hand.most_users if by_hand else as_planned

    def _plan_of(self, step: str) -> PlannedStep:
        """Return the size of each load in a step. In a step that was added meanwhile, by a search or by hand, only
        users differ from the step before.
        """
        self._plan = self._planned.get(step, self._plan)
        return self._plan

    def _work(self) -> Work:
        return work_of_loads(self._scenario, self._variant, self._engine.dialect, self._most_users)

    def _drive(self, writer: RecordWriter) -> str | None:
        if expected := self._expected:
            waited_for = RecordedMachines(count=expected.count, host=expected.host, port=expected.port)
            writer.update(expected_machines=waited_for)
            writer.save_manifest()
        specs = load_specs(self._scenario, self._variant, self._order.place.repeat, self._most_users)
        loads = with_databases(specs, self._engine)
        search = search_plan(self._scenario, self._variant)
        page = self._by_hand.page if self._by_hand else None
        drive = Drive(self._timeline, self._engine.spec(), loads, writer, self._expected, search, page)
        sink = io_sink(writer.append, drive.searched) if drive.searched else writer.append
        sampler = Sampler(self._collectors, sink, drive.clock)
        beside = LoadsBeside(self._scenario, self._variant, self._engine, writer, drive.clock)

        maintenance = None
        if self._variant.during:
            maintenance = ConcurrentMaintenance(self._variant.during, self._engine, writer, drive.clock)

        def finish() -> None:
            with ExitStack() as ends:
                ends.callback(_finish, drive, beside, writer)
                if maintenance:
                    ends.callback(maintenance.finish)
                # Callbacks run from the last to the first. The streams end first, since users still ran during their
                # last queries.
                ends.callback(beside.finish)

        def enter(step: str) -> None:
            planned = self._plan_of(step)
            beside.enter(planned.counts, planned.cells or 1)

        def check() -> None:
            beside.poll()
            if drive.searched:
                drive.searched.count_queries(drive.clock(), beside.queues())
            self._check_server()

        def show(progress: LoadProgress) -> None:
            enter(progress.step.name)
            if maintenance and progress.elapsed_s >= progress.step.measure_s and not progress.waiting:
                maintenance.begin()
            self._show_progress(progress)

        try:
            with (
                self._given_back(sampler, writer, finish, beside.notes),
                self._watch,
                self._show.bar(f"{self._title}: running", self._timeline.end_s, Phase.WARM_UP),
            ):
                beside.prepare(lambda note: self._show.advance(0, note))
                self._show.advance(0, "starting")
                drive.start(self._show.say)
                if self._by_hand:
                    self._by_hand.announce(self._show.say)
                if drive.load_machines:
                    writer.update(load_machines=drive.load_machines)
                    writer.update(**on_machines(writer.manifest, drive.background_sessions()))
                self._engine.devices.engage()
                writer.update(started=now())
                writer.save_manifest()
                sampler.start()
                enter(self._timeline.steps[0].name)
                drive.follow(show, check, beside.set_rate)
        except Interrupted as interruption:
            return str(interruption)
        return ended_early(writer.manifest.loads) or drive.no_result_reason()

    def _show_progress(self, progress: LoadProgress) -> None:
        phase = Phase.WARM_UP if progress.elapsed_s < progress.step.measure_s else Phase.MEASURING
        if progress.waiting:
            phase = Phase.UNSTEADY
        note = f"{phase}, {progress.step.users} users, {progress.tps:,.0f} TPS"
        if self._scenario.searched_of(self._variant):
            note = f"{phase}, {progress.step.name}, {progress.tps:,.0f} TPS"
            if judged := progress.last_level:
                note += f" ({exact(judged.level)} {judged.verdict})"
        if progress.errors:
            note += f", {progress.errors} errors"
        self._show.advance(progress.elapsed_s, note, self._ends_s(progress), phase)

    def _ends_s(self, progress: LoadProgress) -> float:
        """Return the time at which the load ends: at the latest, or of a search as it usually does."""
        if not self._scenario.searched_of(self._variant):
            return progress.ends_s
        return min(progress.ends_s, max(self._scenario.usual_s(self._variant), progress.step.end_s))


def _finish(drive: Drive, beside: LoadsBeside, writer: RecordWriter) -> None:
    """Finish the load. Even if that fails, put into the record what was left unheard, and which loads ended early."""
    try:
        drive.finish()
    finally:
        loads = [
            load.changed(left_waiting=drive.left_waiting(load.name), unfinished=drive.unfinished(load.name))
            if load.kind == "users"
            else load.changed(**beside.work_left(load.name))
            for load in cut_short(writer.manifest.loads, drive.ended | beside.ended)
        ]
        writer.update(loads=loads)
        writer.update(
            unheard=drive.lost_reports(), left_waiting=drive.left_waiting(), load_machines=drive.load_machines
        )


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
        return work_of_queries(self._scenario, self._dops())

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
                self._show.bar(f"{self._title}: running", None, Phase.MEASURING),
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

    def _streams(self, phase: QueryPhase) -> Iterator[tuple[int, Sequence[StreamStep]]]:
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

    def _show_phase(self, phase: QueryPhase, total: int, progress: StreamProgress) -> None:
        done = self._done + progress.done
        note = f"{PHASES[phase]}, {', '.join(progress.under_way) or 'at its end'}, {done} of {total} done"
        if progress.failed:
            note += f", {progress.failed} failed"
        self._show.advance(done, note, total)
