"""Summaries of records already made, long ones on all cores."""

import gc
import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from typing import TypeVar

import pyarrow as pa

from stallmark.analysis.experiment import ExperimentSummary
from stallmark.analysis.finding import mixed_versions
from stallmark.analysis.loads import summarise_each_load
from stallmark.errors import StallmarkError
from stallmark.record.reader import Record, find_records
from stallmark.report.text import sentence

T = TypeVar("T")

LONG_BYTES = 20_000_000
"""Minimum size of all records together for which a process of its own for each pays for its start. On two cores, four
runs of 90 minutes (19 MB) took 2.6 s in place of 3.5, of 6 hours (84 MB) 5.2 in place of 9.6."""
ROOM_BYTES, OURS_BYTES = 500_000_000, 120_000_000
"""The memory that all processes together should take, and that of the one which waits for the others."""
START_BYTES, SECOND_BYTES = 150_000_000, 1_500
"""The memory that a process takes to summarise a record: to start with, and for each second of its run."""


def summarise_each(folders: Sequence[Path]) -> dict[str, ExperimentSummary]:
    """Summarise the records in the folders: every load of users by its name where they have several, else all under an
    empty name."""
    return on_all_cores(find_records(folders), summarise_each_load)


def summarise_each_alike(folders: Sequence[Path]) -> dict[str, ExperimentSummary]:
    """Summarise the records as `summarise_each` does. Raise StallmarkError if their data are of several versions."""
    experiments = summarise_each(folders)
    for experiment in experiments.values():
        if mixed := mixed_versions(run.manifest for run in experiment.runs):
            raise StallmarkError(sentence(mixed))
    return experiments


def on_all_cores(records: Sequence[Record], make: Callable[..., T]) -> T:
    """Return the result of `make(records, map)`, with each long record in a process of its own if memory allows two."""
    stored = sum(file.stat().st_size for record in records for file in record.folder.iterdir() if file.is_file())
    workers = min(len(records), os.cpu_count() or 1, (ROOM_BYTES - OURS_BYTES) // max(map(_takes_bytes, records)))
    _share_memory_pool()
    # Starting processes takes longer than short records do, and gevent has patched the parts that a pool needs.
    if workers < 2 or stored < LONG_BYTES or "gevent" in sys.modules:
        return make(records, map)
    # Forked processes share the modules that are imported by now. Outside of Linux, system libraries do not survive it.
    import_module("scipy.special")
    method = "fork" if sys.platform == "linux" else "spawn"
    with ProcessPoolExecutor(workers, mp_context=get_context(method), initializer=_prepare_process) as pool:
        return make(records, pool.map)


def _prepare_process() -> None:
    _share_memory_pool()
    gc.freeze()  # a search for garbage would write to shared memory, and so copy it


def _takes_bytes(record: Record) -> int:
    """Return the memory to summarise a record, which grows with the seconds of the run and not with its rows."""
    seconds = max((step.end_s for step in record.manifest.steps), default=0.0)
    return START_BYTES + round(seconds) * SECOND_BYTES


def _share_memory_pool() -> None:
    """Let Arrow take memory where NumPy does: a pool of its own keeps for itself what neither uses any more."""
    pa.set_memory_pool(pa.system_memory_pool())
