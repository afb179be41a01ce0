"""Summaries of records already made, long ones on all cores."""

import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from stallmark.analysis.experiment import ExperimentSummary, summarise
from stallmark.record.reader import find_records

LONG_BYTES = 100_000_000
"""Size of all records together from which on a process of its own for each is faster: it takes seconds to start."""


def summarise_folders(folders: Sequence[Path]) -> ExperimentSummary:
    """Summarise the records in the folders. Not for a process that Locust has patched: its pools hang."""
    records = find_records(folders)
    stored = sum(file.stat().st_size for record in records for file in record.folder.iterdir() if file.is_file())
    workers = min(len(records), os.cpu_count() or 1)
    if workers < 2 or stored < LONG_BYTES:
        return summarise(records)
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        return summarise(records, pool.map)
