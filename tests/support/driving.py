"""A run's load on the bank, from end to end, for tests to begin and to disturb."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
from msgspec.structs import replace

from stallmark.driver.controller import Drive, Interrupted, LoadProgress
from stallmark.driver.messages import ExecutorOrder, LoadSpec
from stallmark.driver.pacing import Arrivals
from stallmark.driver.timeline import Timeline, consecutive_steps
from stallmark.engines.postgres.embedded.engine import EmbeddedEngine
from stallmark.experiment.manifest import steps_of
from stallmark.record.reader import Record
from stallmark.record.writer import RecordWriter
from support.manifests import a_manifest

THINKING = Arrivals(think_ms=20)
"""Of users who leave the machine some time."""


def load_spec(bank: EmbeddedEngine, **changes: Any) -> LoadSpec:
    return replace(LoadSpec(bank.spec(), "bank", {"branches": 1}, {"transfer": 1}, call_timeout_s=30.0), **changes)


def executor_order(bank: EmbeddedEngine, load: dict[str, Any] | None = None, **changes: Any) -> ExecutorOrder:
    """Order one executor that is alone; `load` changes its LoadSpec."""
    alone = ExecutorOrder(load_spec(bank, **load or {}), Arrivals(), seed=1, background_sessions=0)
    return replace(alone, **changes)


def timeline(users: list[int], seconds: float, arrivals: Arrivals | None = None) -> Timeline:
    steps = consecutive_steps(users, ramp_s=0, warm_up_s=0, measure_s=seconds)
    return Timeline(steps, arrivals or THINKING, seed=1)


def history_rows(bank: EmbeddedEngine) -> int:
    [(count,)] = bank.query("SELECT count(*) FROM bank.history")
    return count


def total(record: Record, table: str, column: str) -> int:
    return sum(record.table(table)[column].to_pylist())


class Load:
    """A drive with its record, and what became of its processes."""

    def __init__(self, bank: EmbeddedEngine, folder: Path, load: Timeline, **changes: Any):
        self.writer = RecordWriter(folder, a_manifest())
        self.drive = Drive(load, load_spec(bank, **changes), self.writer)
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


def with_background(users: int, seconds: float) -> Timeline:
    return dataclasses.replace(timeline([users], seconds), background_per_user=0.5)


def drive_to_the_end(
    bank: EmbeddedEngine,
    folder: Path,
    timeline: Timeline,
    meanwhile: Callable[[LoadProgress], None] = lambda progress: None,
) -> Record:
    """`bank` holds one branch; `meanwhile` is called several times a second."""
    writer = RecordWriter(folder, a_manifest(steps=steps_of(timeline)))
    drive = Drive(timeline, load_spec(bank), writer)
    try:
        drive.start()
        drive.follow(meanwhile, lambda: None)
    finally:
        drive.finish()
        writer.close()
    return Record(folder)
