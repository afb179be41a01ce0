"""A run of virtual users: they execute transactions for a time while collectors sample, with concurrent streams
if asked."""

from contextlib import ExitStack
from typing import Any

from stallmark.collectors.sampler import Sampler
from stallmark.driver.controller import Drive, Interrupted, LoadProgress
from stallmark.driver.machines import ExpectedMachines
from stallmark.driver.messages import LoadSpec
from stallmark.engines.base import Engine
from stallmark.experiment.concurrent_streams import RunningStreams
from stallmark.experiment.maintenance import ConcurrentMaintenance
from stallmark.experiment.manifest import Work, of_load
from stallmark.experiment.progress import Phase
from stallmark.experiment.run import AnyRun
from stallmark.record.manifest.course import ExpectedMachines as RecordedMachines
from stallmark.record.manifest.part import now
from stallmark.record.writer import RecordWriter
from stallmark.scenarios.model import Scenario, Variant


class Run(AnyRun):
    """A run of virtual users. With `expected` they are on other machines."""

    _scenario: Scenario

    def __init__(
        self, scenario: Scenario, variant: Variant, engine: Engine, *, expected: ExpectedMachines | None, **common: Any
    ):
        super().__init__(scenario, variant, engine, **common)
        self._timeline = scenario.timeline()
        self._streams = scenario.streams_of(variant)
        self._expected = expected

    def _work(self) -> Work:
        return of_load(self._scenario, self._workload, self._streams)

    def _drive(self, writer: RecordWriter) -> str | None:
        if expected := self._expected:
            waited_for = RecordedMachines(count=expected.count, host=expected.host, port=expected.port)
            writer.update(expected_machines=waited_for)
            writer.save_manifest()
        choice = self._scenario.workload
        load = LoadSpec(
            self._engine.spec(),
            choice.name,
            dict(choice.scale),
            dict(choice.deck()),
            self._scenario.call_timeout,
            choice.locality,
            self._place.repeat,
        )
        drive = Drive(self._timeline, load, writer, self._expected)
        sampler = Sampler(self._collectors, writer.append, drive.clock)
        streams = None
        if self._streams:
            streams = RunningStreams(self._scenario, self._streams, self._engine, writer, drive.clock)

        maintenance = None
        if self._variant.during:
            maintenance = ConcurrentMaintenance(self._variant.during, self._engine, writer, drive.clock)

        def finish() -> None:
            with ExitStack() as ends:
                ends.callback(_finish, drive, writer)
                if maintenance:
                    ends.callback(maintenance.finish)
                if streams:
                    ends.callback(streams.finish)  # first: users still ran during their last queries

        def notes() -> list[str]:
            return streams.notes() if streams else []

        def check() -> None:
            if streams:
                streams.poll()
            self._check_server()

        def show(progress: LoadProgress) -> None:
            if maintenance and progress.elapsed_s >= progress.step.measure_s and not progress.waiting:
                maintenance.begin()
            self._show_progress(progress)

        try:
            with (
                self._given_back(sampler, writer, finish, notes),
                self._watch,
                self._show.bar(f"{self._title}: running", self._timeline.end_s, Phase.WARM_UP),
            ):
                self._show.advance(0, "starting")
                drive.start(self._show.say)
                if drive.load_machines:
                    executors = [machine.executors for machine in drive.load_machines]
                    sessions = self._timeline.all_background_sessions(executors)
                    workload = writer.manifest.workload.changed(background_sessions=sessions)
                    writer.update(load_machines=drive.load_machines, workload=workload)
                self._engine.devices.engage()
                writer.update(started=now())
                writer.save_manifest()
                sampler.start()
                if streams:
                    streams.begin()
                drive.follow(show, check)
        except Interrupted as interruption:
            return str(interruption)
        return drive.fruitless()

    def _show_progress(self, progress: LoadProgress) -> None:
        phase = Phase.WARM_UP if progress.elapsed_s < progress.step.measure_s else Phase.MEASURING
        if progress.waiting:
            phase = Phase.UNSTEADY
        note = f"{phase}, {progress.step.users} users, {progress.tps:,.0f} TPS"
        if progress.errors:
            note += f", {progress.errors} errors"
        self._show.advance(progress.elapsed_s, note, progress.ends_s, phase)


def _finish(drive: Drive, writer: RecordWriter) -> None:
    """Finish the load. Even if that fails, put into the record what was left unheard."""
    try:
        drive.finish()
    finally:
        writer.update(unheard=drive.unheard(), left_waiting=drive.left_waiting(), load_machines=drive.load_machines)
