"""A run's load on the bank, from end to end, for tests to begin and to disturb."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psutil
from msgspec.structs import replace

from stallmark.driver.channel import Channel, start_child
from stallmark.driver.controller import Drive, Interrupted, LoadProgress
from stallmark.driver.load import LoadPart, LoadSpec, RunFacts, Timeline, consecutive_steps
from stallmark.driver.messages import Connected, ExecutorOrder, Finished, Join, MachineFacts, Quit, WorkerOrder
from stallmark.driver.pacing import Arrivals
from stallmark.engines.postgres.embedded_engine import EmbeddedEngine
from stallmark.experiment.work import steps_of
from stallmark.processes import kill
from stallmark.record.reader import Record
from stallmark.record.writer import RecordWriter
from support.manifests import a_manifest

THINKING = Arrivals(think_ms=100)
"""Of users who leave the machine some time."""


def load_spec(*users: int, **changes: Any) -> LoadSpec:
    """Return a load of the bank with so many users in each step."""
    load = LoadSpec("bank", "bank", {"branches": 1}, {"transfer": 1}, users, seed=1, call_timeout_s=30.0)
    return replace(load, **{"arrivals": THINKING} | changes)


def executor_order(bank: EmbeddedEngine, load: dict[str, Any] | None = None, **changes: Any) -> ExecutorOrder:
    """Order one executor that is alone; `load` changes its LoadSpec, `changes` its part and its place."""
    part = LoadPart(load_spec(1, **{"arrivals": Arrivals()} | (load or {})), background_sessions=0)
    of_part = {name: value for name, value in changes.items() if name in LoadPart.__struct_fields__}
    place = {name: value for name, value in changes.items() if name in ExecutorOrder.__struct_fields__}
    return ExecutorOrder(bank.spec(), [replace(part, **of_part)], **place)


def timeline(loads: Sequence[LoadSpec], seconds: float) -> Timeline:
    """Return steps that each last so long."""
    users = map(sum, zip(*(load.users for load in loads), strict=True))
    return Timeline(
        consecutive_steps([(f"{count} users", count) for count in users], ramp_s=0, warm_up_s=0, measure_s=seconds)
    )


def load_machine(ends: ExitStack, bank: EmbeddedEngine, port: int) -> Channel:
    """Start a load machine that has asked to join."""
    process, channel = start_child("stallmark.machines.worker")
    ends.callback(kill, process)
    ends.callback(channel.close)
    channel.send(WorkerOrder("127.0.0.1", port, bank.spec()))
    channel.expect(Connected)
    channel.send(Join("here", RunFacts(), MachineFacts(cores=1)))
    return channel


def dismiss(machines: Sequence[Channel]) -> None:
    """End load machines, and wait until they have ended."""
    for channel in machines:
        channel.send(Quit())
        while not isinstance(channel.receive(), Finished):
            pass


def history_rows(bank: EmbeddedEngine) -> int:
    [(count,)] = bank.query("SELECT count(*) FROM bank.history")
    return count


def total(record: Record, table: str, column: str) -> int:
    return sum(record.table(table)[column].to_pylist())


class Load:
    """A drive with its record, and what became of its processes."""

    def __init__(self, bank: EmbeddedEngine, folder: Path, loads: Sequence[LoadSpec], seconds: float):
        self.writer = RecordWriter(folder, a_manifest())
        self.drive = Drive(timeline(loads, seconds), bank.spec(), loads, self.writer)
        self.conductor = psutil.Process(self.drive._process.pid)
        self.seen: set[psutil.Process] = {self.conductor}
        self.progress: list[Any] = []

    def executors(self) -> list[psutil.Process]:
        found = [p for p in self.conductor.children() if "stallmark.driver.executor" in p.cmdline()]
        self.seen.update(found)
        return found

    def run(self, meanwhile: Callable[["Load"], None] = lambda load: None) -> Record:
        """`meanwhile` is called once, when the first transactions have come in."""
        waiting = [meanwhile]

        def check() -> None:
            if self.drive._merger.seen.committed and waiting:
                self.executors()
                waiting.pop()(self)

        reason = None
        try:
            self.drive.start()
            self.drive.follow(self.progress.append, check)
        except Interrupted as interruption:
            reason = str(interruption)
        finally:
            self.drive.finish()
            self.writer.close(reason)
        return Record(self.writer.folder)


def drive_to_the_end(
    bank: EmbeddedEngine,
    folder: Path,
    timeline: Timeline,
    arrivals: Arrivals,
    meanwhile: Callable[[LoadProgress], None] = lambda progress: None,
) -> Record:
    """`bank` holds one branch; `meanwhile` is called several times a second."""
    writer = RecordWriter(folder, a_manifest(steps=steps_of(timeline, arrivals)))
    load = load_spec(*(step.users for step in timeline.steps), arrivals=arrivals)
    drive = Drive(timeline, bank.spec(), [load], writer)
    try:
        drive.start()
        drive.follow(meanwhile, lambda: None)
    finally:
        drive.finish()
        writer.close()
    return Record(folder)
