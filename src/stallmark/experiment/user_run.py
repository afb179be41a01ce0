"""A run whose load is planned by time: virtual users execute transactions while collectors sample, with streams of
queries and raw I/O beside them where these are asked for."""

from contextlib import ExitStack

from stallmark.collectors.sampler import Sampler
from stallmark.driver.controller import Drive, Interrupted, LoadProgress
from stallmark.driver.machines import ExpectedMachines
from stallmark.engines.base import Engine
from stallmark.experiment.io_sink import io_sink
from stallmark.experiment.load_specs import load_specs, placed, search_plan
from stallmark.experiment.loads_beside import LoadsBeside
from stallmark.experiment.maintenance import ConcurrentMaintenance
from stallmark.experiment.progress import Phase
from stallmark.experiment.run import AnyRun, RunOrder
from stallmark.experiment.work import Work, of_load, on_machines
from stallmark.format import exact
from stallmark.record.manifest.course import ExpectedMachines as RecordedMachines
from stallmark.record.manifest.course import now
from stallmark.record.manifest.workload import cut_short, ended_early
from stallmark.record.writer import RecordWriter
from stallmark.scenarios.model import TimedScenario
from stallmark.scenarios.users import PlannedStep


class Run(AnyRun):
    """A run of loads. With `expected` the users are on other machines."""

    _scenario: TimedScenario

    def __init__(self, scenario: TimedScenario, engine: Engine, order: RunOrder, expected: ExpectedMachines | None):
        super().__init__(scenario, engine, order)
        self._timeline = scenario.timeline(self._variant)
        planned = scenario.steps_of(self._variant)
        self._planned = {step.name: plan for step, plan in zip(self._timeline.steps, planned, strict=True)}
        self._expected = expected

    def _plan_of(self, step: str) -> PlannedStep:
        """Return how large each load is in a step. In one that a search has added, all but its own are as in the
        first."""
        return self._planned.get(step) or self._planned[self._timeline.steps[0].name]

    def _work(self) -> Work:
        return of_load(self._scenario, self._variant)

    def _drive(self, writer: RecordWriter) -> str | None:
        if expected := self._expected:
            waited_for = RecordedMachines(count=expected.count, host=expected.host, port=expected.port)
            writer.update(expected_machines=waited_for)
            writer.save_manifest()
        loads = placed(load_specs(self._scenario, self._variant, self._order.place.repeat), self._engine)
        search = search_plan(self._scenario, self._variant)
        drive = Drive(self._timeline, self._engine.spec(), loads, writer, self._expected, search)
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
                ends.callback(beside.finish)  # first: users still ran during their last queries

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
                if drive.load_machines:
                    writer.update(load_machines=drive.load_machines)
                    writer.update(**on_machines(writer.manifest, drive.background_sessions()))
                self._engine.devices.engage()
                writer.update(started=now())
                writer.save_manifest()
                sampler.start()
                enter(self._timeline.steps[0].name)
                drive.follow(show, check, beside.take_rate)
        except Interrupted as interruption:
            return str(interruption)
        return ended_early(writer.manifest.loads) or drive.fruitless()

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
        """Return when the load ends: at the latest, or of a search as it usually does."""
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
            else load.changed(**beside.left(load.name))
            for load in cut_short(writer.manifest.loads, drive.ended | beside.ended)
        ]
        writer.update(loads=loads)
        writer.update(unheard=drive.unheard(), left_waiting=drive.left_waiting(), load_machines=drive.load_machines)
