"""Drives a load on a real database, as a run does, for tests of what the record says of it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from stallmark.driver.drive import Drive, Progress
from stallmark.driver.engines.embedded import EmbeddedEngine
from stallmark.driver.plan import Plan
from stallmark.driver.record import Record, RecordWriter


def drive_to_the_end(
    bank: EmbeddedEngine,
    folder: Path,
    plan: Plan,
    manifest: dict[str, Any],
    meanwhile: Callable[[Progress], None] = lambda progress: None,
) -> Record:
    """`bank` holds one branch; `meanwhile` is called several times a second."""
    order = {
        "engine": bank.spec(),
        "workload": "bank",
        "scale": {"branches": 1},
        "deck": {"transfer": 1},
        "locality": 0.0,
        "call_timeout_s": 30.0,
    }
    writer = RecordWriter(folder, {"started": "now"} | manifest)
    drive = Drive(plan, order, writer)
    try:
        drive.start()
        drive.follow(meanwhile, lambda: None)
    finally:
        drive.finish()
        writer.close()
    return Record(folder)
