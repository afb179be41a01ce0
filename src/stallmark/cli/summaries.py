"""Summaries of records already made, long ones on all cores."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import TypeVar

import pyarrow as pa

from stallmark.analysis.experiment import ExperimentSummary, summarise
from stallmark.analysis.loads.summary import has_loads, summarise_each_load
from stallmark.errors import StallmarkError
from stallmark.record.reader import Record, find_records

T = TypeVar("T")

LONG_BYTES = 100_000_000
"""Size of all records together from which on a process of its own for each is faster: it takes seconds to start."""


def summarise_each(folders: Sequence[Path]) -> dict[str, ExperimentSummary]:
    """Summarise the records in the folders: every load of users by its name where they have several, else all under an
    empty name."""
    records = find_records(folders)
    return on_all_cores(records, summarise_each_load) if has_loads(records) else {"": summarise_records(records)}


def of_each(
    experiments: Mapping[str, ExperimentSummary], make: Callable[[ExperimentSummary], T]
) -> tuple[dict[str, T], dict[str, StallmarkError]]:
    """Return what is made of each load, and why nothing is of others. Raise StallmarkError where nothing is of any."""
    made: dict[str, T] = {}
    failed: dict[str, StallmarkError] = {}
    for name, experiment in experiments.items():
        try:
            made[name] = make(experiment)
        except StallmarkError as error:
            failed[name] = error
    if not made:
        raise next(iter(failed.values()))
    return made, failed


def summarise_records(records: Sequence[Record]) -> ExperimentSummary:
    return on_all_cores(records, summarise)


def on_all_cores(records: Sequence[Record], make: Callable[..., T]) -> T:
    """Return what `make(records, map)` does, long records each in a process of its own."""
    stored = sum(file.stat().st_size for record in records for file in record.folder.iterdir() if file.is_file())
    workers = min(len(records), os.cpu_count() or 1)
    _take_memory_once()
    if workers < 2 or stored < LONG_BYTES or "gevent" in sys.modules:  # which has patched what a pool needs
        return make(records, map)
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_take_memory_once) as pool:
        return make(records, pool.map)


def _take_memory_once() -> None:
    """Let Arrow take memory where NumPy does: a pool of its own keeps for itself what neither uses any more."""
    pa.set_memory_pool(pa.system_memory_pool())
